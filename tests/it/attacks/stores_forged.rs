//! Stores with contents that assay would never write: every reading command ends with a report or with exit code 2.

use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use rusqlite::types::Value;

use crate::sandbox::{Sandbox, errors};

/// Failed and left out trials, notes, histograms, series and an A/A run.
const EXPERIMENT: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 6\n\
                          [simulated]\ncv = 0.01\neffects = { \"bs=8k\" = 0.5 }\n\
                          [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";
const CHANGES: &str = "UPDATE trial SET excluded = 'others were busy' WHERE run = 1 AND round = 1;
    UPDATE trial SET status = '{\"failed\":{\"reason\":\"r\",\"command\":\"c\",\"output\":\"o\"}}' WHERE run = 1 AND round = 2;
    UPDATE trial SET notes = '[\"a note\"]' WHERE run = 1 AND round = 3;
    INSERT INTO leftover VALUES (1, '/nowhere/at/all');";
/// What every reading command is; `{}` is the store.
const READERS: [&[&str]; 8] = [
    &["list"],
    &["list", "--json"],
    &["show", "1", "--values"],
    &["report", "1", "--format", "json"],
    &["report", "1", "--format", "html"],
    &["export", "1", "--format", "json"],
    &["export", "1", "--format", "csv"],
    &["compare", "1", "2"],
];

/// A sound store with two runs, made once.
pub(super) fn sound_store() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let sandbox = Sandbox::new();
        sandbox.write("s.toml", EXPERIMENT);
        sandbox.succeed(&["run", "s.toml", "--quiet"]);
        sandbox.succeed(&["run", "s.toml", "--quiet", "--aa"]);
        let path = sandbox.path().join("assay.db");
        rusqlite::Connection::open(&path).unwrap().execute_batch(CHANGES).unwrap();
        std::fs::read(path).unwrap()
    })
}

/// A command that may have 500 MB and 15 s of a processor.
fn limited(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let mut command = sandbox.command("prlimit");
    command.args(["--data=500000000", "--cpu=15", env!("CARGO_BIN_EXE_assay")]).args(arguments);
    command.output().unwrap()
}

/// What is wrong with how a reading command ended.
fn fault(arguments: &[&str], output: &Output) -> Option<String> {
    let said = errors(output);
    let ended_well = match output.status.code() {
        Some(0) => true,
        // Of damaged runs nothing may be left to compare.
        Some(1) => arguments.first() == Some(&"compare") && said.contains("nothing was compared"),
        Some(2) => said.contains("hint: "),
        _ => false,
    };
    let ends = !ended_well || said.contains("panicked");
    ends.then(|| format!("{arguments:?}: {}: {}", output.status, said.chars().take(600).collect::<String>()))
}

fn faults_of(store: &[u8], readers: &[&[&str]]) -> Vec<String> {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("assay.db");
    std::fs::write(&path, store).unwrap();
    let faults = readers.iter().filter_map(|words| fault(words, &limited(&sandbox, words))).collect();
    assert!(std::fs::read(&path).unwrap() == store, "a reading command changed the store");
    assert_eq!(sandbox.names().len(), 1, "a reading command made files");
    faults
}

/// xorshift64*
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % n
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

const COLUMNS: &[(&str, &[&str])] = &[
    (
        "run",
        &[
            "id", "name", "source", "state", "assay_version", "started_unix_ns", "command_line", "seed",
            "engine", "job_text", "experiment", "design", "aa", "notes", "owner",
        ],
    ),
    ("cell", &["run", "cell", "levels"]),
    ("facts", &["run", "facts", "json"]),
    ("metric", &["run", "metric", "job", "name", "unit", "better"]),
    (
        "trial",
        &[
            "run", "trial", "cell", "round", "position", "attempt", "started_unix_ns", "elapsed_s", "facts",
            "status", "excluded", "notes",
        ],
    ),
    ("value", &["run", "trial", "metric", "value"]),
    ("histogram", &["run", "trial", "number", "job", "direction", "kind", "hdr"]),
    ("series", &["run", "trial", "number", "job", "name", "interval_s", "numbers"]),
    ("leftover", &["run", "path"]),
];

fn odd_value(chance: &mut Chance) -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    match chance.below(24) {
        0 => Value::Integer(-1),
        1 => Value::Integer(i64::MIN),
        2 => Value::Integer(i64::MAX),
        3 => Value::Integer(u32::MAX.into()),
        4 => Value::Integer(i64::from(u32::MAX) + 1),
        5 => Value::Integer(1 << 24),
        6 => Value::Real(f64::INFINITY),
        7 => Value::Real(-1e308),
        8 => Value::Real(5e-324),
        9 => Value::Real(1e300),
        10 => Value::Null,
        11 => Value::Blob(vec![0xff, 0xfe, 0, 0x80]),
        12 => Value::Blob(vec![0x1c; 4096]),
        13 => text(""),
        14 => text("\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{202e}"),
        15 => text("[]"),
        16 => text("{}"),
        17 => text("null"),
        18 => text(&"[".repeat(100_000)),
        19 => text(&format!("[{}]", vec!["4294967295"; 50].join(","))),
        20 => text(&"x".repeat(3_000_000)),
        21 => text("\"done\""),
        22 => text("1e999"),
        _ => Value::Integer(0),
    }
}

/// Changes numbers within JSON texts, too: what has the right form can still mean nonsense.
fn odd_json(chance: &mut Chance, text: &str) -> String {
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|(at, c)| {
            c.is_ascii_digit() && !text[..*at].ends_with(|c: char| c.is_ascii_digit() || c == '.')
        })
        .map(|(at, _)| at)
        .collect();
    if starts.is_empty() {
        return "{}".to_owned();
    }
    let at = *chance.of(&starts);
    let end = text[at..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(text.len(), |n| at + n);
    let odd = chance
        .of(&["-1", "0", "4294967295", "18446744073709551615", "1e308", "-1e308", "1e-320", "2000000000"]);
    format!("{}{odd}{}", &text[..at], &text[end..])
}

/// The sound store with one to three changes.
fn mutated(chance: &mut Chance, path: &Path) -> Vec<u8> {
    let mut bytes = sound_store().to_vec();
    if chance.below(4) == 0 {
        for _ in 0..=chance.below(3) {
            // Mostly where pages begin: there lies what they are.
            let page = chance.below(bytes.len() / 4096) * 4096;
            let at = page + if chance.below(2) == 0 { chance.below(64) } else { chance.below(4096) };
            bytes[at] = *chance.of(&[0, 1, 2, 5, 10, 13, 0x7f, 0x80, 0xff]);
        }
        return bytes;
    }
    std::fs::write(path, &bytes).unwrap();
    let store = rusqlite::Connection::open(path).unwrap();
    // What assay's schema refuses, another program can write.
    store.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;").unwrap();
    for _ in 0..=chance.below(3) {
        let (table, columns) = chance.of(COLUMNS);
        let column = chance.of(columns);
        let old: Option<String> = store
            .query_row(&format!("SELECT {column} FROM {table} LIMIT 1"), [], |row| row.get(0))
            .unwrap_or_default();
        let value = match old {
            Some(text) if text.contains('{') && chance.below(2) == 0 => Value::Text(odd_json(chance, &text)),
            _ => odd_value(chance),
        };
        let key = match *table {
            "run" | "leftover" => "run".to_owned(),
            "cell" | "facts" | "metric" => (*table).to_owned(),
            _ => "trial".to_owned(),
        };
        let only = match chance.below(3) {
            _ if *table == "run" => String::new(),
            0 => "WHERE run = 1".to_owned(),
            _ => format!("WHERE run = 1 AND {key} = {}", chance.below(if *table == "cell" { 2 } else { 12 })),
        };
        // Some are refused by a unique index: then nothing is odd, which is one of the cases.
        let _ = store.execute(&format!("UPDATE OR REPLACE {table} SET {column} = ?1 {only}"), [value]);
    }
    drop(store);
    std::fs::read(path).unwrap()
}

#[test]
fn two_hundred_mutated_stores_are_read_or_refused() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (seed, count) = (number("ASSAY_TEST_SEED", 1), number("ASSAY_TEST_STORES", 200));
    println!("ASSAY_TEST_SEED={seed}");
    let next = std::sync::atomic::AtomicU64::new(0);
    let work = || -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let mut wrong = Vec::new();
        loop {
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if at >= count {
                return wrong;
            }
            let mut chance = Chance((seed << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let store = mutated(&mut chance, &place.path().join("assay.db"));
            let readers: Vec<&[&str]> = READERS.iter().skip(at as usize % 3).step_by(3).copied().collect();
            let faults = faults_of(&store, &readers);
            if let (Some(directory), false) = (std::env::var_os("ASSAY_TEST_KEEP"), faults.is_empty()) {
                std::fs::write(Path::new(&directory).join(format!("{at}.db")), &store).unwrap();
            }
            wrong.extend(faults.into_iter().map(|fault| format!("store {at}: {fault}")));
        }
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn huge_values_are_refused_with_little_memory() {
    // Made in this process, whose memory for SQLite is limited, too.
    let long_list =
        "'[' || substr(replace(hex(zeroblob(3000000)), '0', '[],'), 1, 17999999 / 3 * 3 - 1) || ']'";
    for (sql, word) in [
        ("UPDATE histogram SET hdr = zeroblob(70000000) WHERE run = 1 AND trial = 0", "larger than 64 MiB"),
        (
            "UPDATE series SET numbers = zeroblob(20000000) WHERE run = 1",
            "more than a report can have in memory",
        ),
        (&format!("UPDATE run SET experiment = {long_list}"), "more than a report can have in memory"),
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.path().join("assay.db");
        std::fs::write(&path, sound_store()).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        for arguments in [&["show", "1"][..], &["report", "1"], &["report", "1", "--format", "json"]] {
            let output = limited(&sandbox, arguments);
            let said = errors(&output);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}: {said}", output.status);
            assert!(said.contains(word), "{sql}: {arguments:?}: {said}");
        }
        assert!(limited(&sandbox, &["list"]).status.success());
    }
}

/// Pages that each point two hundred times at the next one: a small file with more rows than can ever be read.
#[test]
fn a_table_without_end_is_refused_in_time() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("assay.db");
    std::fs::write(&path, sound_store()).unwrap();
    let store = rusqlite::Connection::open(&path).unwrap();
    // Enough trials for a page that has others below it.
    let more = "WITH RECURSIVE n(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM n WHERE x < 4000)
        INSERT INTO trial SELECT 1, x, 0, x, 0, 0, 0, 0.1, 0, '\"done\"', NULL, '[]' FROM n";
    store.execute_batch(more).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'trial'";
    let root: usize = store.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize - 1;
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let page: Vec<u8> = bytes[root * 4096..][..4096].to_vec();
    assert_eq!(page[0], 2, "a page of an index with others below it");
    let first = bytes.len() / 4096 + 1;
    let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
    let pointing_at = |next: usize| {
        let mut copy = page.clone();
        for cell in 0..cells {
            let at = usize::from(u16::from_be_bytes([copy[12 + 2 * cell], copy[13 + 2 * cell]]));
            copy[at..at + 4].copy_from_slice(&(next as u32).to_be_bytes());
        }
        copy[8..12].copy_from_slice(&(next as u32).to_be_bytes());
        copy
    };
    let leaf = page[usize::from(u16::from_be_bytes([page[12], page[13]]))..][..4].to_vec();
    let leaf = u32::from_be_bytes([leaf[0], leaf[1], leaf[2], leaf[3]]) as usize;
    const LEVELS: usize = 15;
    bytes[root * 4096..][..4096].copy_from_slice(&pointing_at(first));
    for level in 0..LEVELS {
        bytes.extend(pointing_at(if level + 1 == LEVELS { leaf } else { first + level + 1 }));
    }
    let pages = (bytes.len() / 4096) as u32;
    bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    // An index counts the trials of a list.
    assert!(limited(&sandbox, &["list"]).status.success());
    for arguments in [&["show", "1"][..], &["report", "1"], &["export", "1"], &["run", "--resume", "1"]] {
        let output = limited(&sandbox, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}: {}", output.status, errors(&output));
    }
    assert!(std::fs::read(&path).unwrap() == bytes);
}
