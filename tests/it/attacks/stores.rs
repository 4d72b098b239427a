//! What `--db` may name: everything but a store of assay's is refused, and no byte of it is changed.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use assay::store::Store;

use super::stores_forged::sound_store;
use crate::bad_inputs::without_privilege;
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{Loop, can_make};

const JOB: &str = "[w]\nrw=write\nbs=4k\nsize=64k\n";
const RUN: &[&str] = &["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1", "--engine", "null"];
/// Every command that opens a store.
const COMMANDS: [&[&str]; 9] = [
    RUN,
    &["run", "--resume", "1"],
    &["list"],
    &["show", "1"],
    &["report", "1"],
    &["export", "1"],
    &["compare", "1", "2"],
    &["cleanup"],
    &["cleanup", "--dry-run"],
];
const READERS: [&[&str]; 6] = [
    &["list"],
    &["show", "1"],
    &["report", "1"],
    &["export", "1"],
    &["compare", "1", "2"],
    &["cleanup", "--dry-run"],
];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    sandbox
}

/// What lies in the sandbox: kinds, and the bytes of files.
fn listing(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let describe = |path: &Path| {
        let found = std::fs::symlink_metadata(path).unwrap();
        if found.is_file() {
            let mut hash = std::hash::DefaultHasher::new();
            std::hash::Hash::hash(&std::fs::read(path).unwrap(), &mut hash);
            return format!("{} bytes, {:x}", found.len(), std::hash::Hasher::finish(&hash));
        }
        let target = std::fs::read_link(path).unwrap_or_default();
        format!("{:?} {} {}", found.file_type(), found.file_type().is_fifo(), target.display())
    };
    let names = sandbox.names();
    names.into_iter().map(|name| (name.clone(), describe(&sandbox.path().join(&name)))).collect()
}

/// In 20 s, with a register of targets of its own: other tests clean up, too.
fn ask(sandbox: &Sandbox, arguments: &[&str], store: &Path) -> Output {
    let mut command = sandbox.command("timeout");
    command.args(["-s", "KILL", "20", env!("CARGO_BIN_EXE_assay")]).args(arguments).arg("--db").arg(store);
    command.env("ASSAY_RUN_DIR", sandbox.path().join("registered")).output().unwrap()
}

/// Every command refuses `store`, says `word`, and changes nothing.
fn refused(sandbox: &Sandbox, commands: &[&[&str]], store: &Path, word: &str) {
    let before = listing(sandbox);
    for arguments in commands {
        let output = ask(sandbox, arguments, store);
        let said = errors(&output);
        let what = format!("{arguments:?} --db {}: {}: {said}", store.display(), output.status);
        assert_eq!(output.status.code(), Some(2), "{what}");
        assert!(said.contains(word) && said.contains("hint: "), "not {word:?}: {what}");
        assert_eq!(listing(sandbox), before, "{what}");
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_store_is_a_regular_file_or_refused() {
    let sandbox = sandbox();
    let at = |name: &str| sandbox.path().join(name);
    fifo(&at("fifo"));
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::fs::create_dir(at("directory")).unwrap();
    symlink(at("nothing"), at("dangling")).unwrap();
    symlink("/dev/zero", at("to-device")).unwrap();
    symlink(at("fifo"), at("to-fifo")).unwrap();
    symlink("loop", at("loop")).unwrap();
    sandbox.write("text", "this is no database, only a text that is long enough to be looked at");
    for (name, word) in [
        ("fifo", "a FIFO"),
        ("socket", "a socket"),
        ("directory", "a directory"),
        ("dangling", "a symbolic link to a file that does not exist"),
        ("to-device", "a character device"),
        ("to-fifo", "a FIFO"),
        ("loop", "symbolic links"),
        ("text", "no SQLite file"),
    ] {
        refused(&sandbox, &COMMANDS, &at(name), word);
    }
    for device in ["/dev/null", "/dev/zero", "/dev/full"] {
        refused(&sandbox, &COMMANDS, Path::new(device), "a character device");
    }
}

#[test]
fn a_block_device_named_as_store_keeps_its_bytes() {
    if !can_make() {
        return;
    }
    let sandbox = sandbox();
    let device = Loop::new(&sandbox, 4);
    // Empty, full of something, and a store written to the device itself.
    for content in [&[][..], &[0xa5; 65536][..], sound_store()] {
        let mut whole = content.to_vec();
        whole.resize(4 << 20, 0);
        let mut opened = std::fs::OpenOptions::new().write(true).open(&device.path).unwrap();
        std::io::Write::write_all(&mut opened, &whole).unwrap();
        // Written to the image now, not while it is looked at.
        opened.sync_all().unwrap();
        drop(opened);
        refused(&sandbox, &COMMANDS, &device.path, "a block device");
        symlink(&device.path, sandbox.path().join("link")).unwrap();
        refused(&sandbox, &COMMANDS, &sandbox.path().join("link"), "a block device");
        std::fs::remove_file(sandbox.path().join("link")).unwrap();
        assert!(std::fs::read(&device.path).unwrap() == whole, "the device has other bytes");
    }
}

#[test]
fn databases_of_others_are_refused_as_they_are() {
    let sandbox = sandbox();
    let at = |name: &str| sandbox.path().join(name);
    let make =
        |name: &str, sql: &str| rusqlite::Connection::open(at(name)).unwrap().execute_batch(sql).unwrap();
    make("theirs", "CREATE TABLE theirs (x)");
    make("no-table", "PRAGMA user_version = 2");
    std::fs::write(at("wal"), sound_store()).unwrap();
    make("wal", "PRAGMA journal_mode = WAL");
    std::fs::write(at("short"), &sound_store()[..60]).unwrap();
    refused(&sandbox, &COMMANDS, &at("theirs"), "another program's database");
    refused(&sandbox, &COMMANDS, &at("no-table"), "another program's database");
    refused(&sandbox, &COMMANDS, &at("wal"), "WAL");
    refused(&sandbox, &COMMANDS, &at("short"), "no SQLite file");
}

/// A journal that SQLite plays back, and after that deletes the file whose name it ends with.
fn journal_naming(victim: &Path, pages: u32) -> Vec<u8> {
    let name = victim.to_str().unwrap().as_bytes();
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for number in [0, 0x1234_5678, pages, 512, 4096] {
        journal.extend(u32::to_be_bytes(number));
    }
    journal.resize(512, 0);
    // The page that no database has, the name, its length and checksum, and the magic number again.
    journal.extend(u32::to_be_bytes((1 << 30) / 4096 + 1));
    journal.extend(name);
    journal.extend(u32::to_be_bytes(name.len() as u32));
    let sum = name.iter().fold(0_u32, |sum, byte| sum.wrapping_add(i32::from(*byte as i8) as u32));
    journal.extend(sum.to_be_bytes());
    journal.extend([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    journal
}

#[test]
fn a_journal_cannot_delete_or_overwrite_another_file() {
    let at = |sandbox: &Sandbox, name: &str| sandbox.path().join(name);
    type Plant = fn(&Sandbox, &Path);
    let cases: [(&str, Plant); 7] = [
        ("names another file", |sandbox, journal| {
            let victim = sandbox.write("victim", "precious");
            std::fs::write(journal, journal_naming(&victim, (sound_store().len() / 4096) as u32)).unwrap();
        }),
        ("no journal of SQLite", |_, journal| std::fs::write(journal, "precious notes of mine").unwrap()),
        ("no journal of SQLite", |_, journal| std::fs::write(journal, "note").unwrap()),
        ("a symbolic link", |sandbox, journal| {
            symlink(sandbox.write("victim", "precious"), journal).unwrap();
        }),
        ("a second name", |sandbox, journal| {
            std::fs::hard_link(sandbox.write("victim", ""), journal).unwrap();
        }),
        ("a FIFO", |_, journal| fifo(journal)),
        ("a directory", |_, journal| std::fs::create_dir(journal).unwrap()),
    ];
    for (word, plant) in cases {
        for empty in [false, true] {
            let sandbox = sandbox();
            let store: &[u8] = if empty { &[] } else { sound_store() };
            std::fs::write(at(&sandbox, "assay.db"), store).unwrap();
            plant(&sandbox, &at(&sandbox, "assay.db-journal"));
            refused(&sandbox, &COMMANDS, &at(&sandbox, "assay.db"), word);
        }
    }
    for name in ["assay.db-wal", "assay.db-shm"] {
        let sandbox = sandbox();
        std::fs::write(at(&sandbox, "assay.db"), sound_store()).unwrap();
        sandbox.write(name, "precious");
        refused(&sandbox, &COMMANDS, &at(&sandbox, "assay.db"), "is beside it, which assay never makes");
    }
    for name in ["assay.db-journal", "assay.db-wal", "assay.db-shm"] {
        let sandbox = sandbox();
        sandbox.write(name, "precious");
        refused(&sandbox, &[RUN], &at(&sandbox, "assay.db"), "a store that is gone");
    }
}

#[test]
fn an_empty_file_of_the_caller_becomes_a_store() {
    let sandbox = sandbox();
    let path = sandbox.write("assay.db", "");
    let output = ask(&sandbox, &["list"], &path);
    assert!(output.status.success() && std::fs::read(&path).unwrap().is_empty(), "{}", errors(&output));
    let output = ask(&sandbox, RUN, &path);
    assert!(output.status.success(), "{}", errors(&output));
    if rustix::process::geteuid().is_root() {
        let theirs = sandbox.write("theirs.db", "");
        std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
        refused(&sandbox, &COMMANDS, &theirs, "an empty file of another user");
    }
}

#[test]
fn reading_needs_no_right_to_write_and_makes_no_file() {
    let sandbox = sandbox();
    let path = sandbox.path().join("assay.db");
    std::fs::write(&path, sound_store()).unwrap();
    // One of an older schema is read without being migrated.
    std::fs::write(sandbox.path().join("old.db"), older_store()).unwrap();
    for name in ["assay.db", "old.db"] {
        std::fs::set_permissions(sandbox.path().join(name), PermissionsExt::from_mode(0o444)).unwrap();
    }
    let before = listing(&sandbox);
    for name in ["assay.db", "old.db"] {
        for arguments in READERS {
            let words: Vec<&str> = arguments.iter().copied().chain(["--db", name]).collect();
            let mut command = without_privilege(&sandbox, &words);
            std::fs::set_permissions(sandbox.path(), PermissionsExt::from_mode(0o555)).unwrap();
            let output = command.env("ASSAY_RUN_DIR", sandbox.path().join("registered")).output().unwrap();
            std::fs::set_permissions(sandbox.path(), PermissionsExt::from_mode(0o755)).unwrap();
            // Its two runs have no row in common.
            let expected = i32::from(arguments.first() == Some(&"compare"));
            assert_eq!(output.status.code(), Some(expected), "{words:?}: {}", errors(&output));
            assert_eq!(listing(&sandbox), before, "{words:?}");
        }
    }
}

/// The sound store as schema 1 had it.
fn older_store() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (new, old) = (directory.path().join("new.db"), directory.path().join("old.db"));
    std::fs::write(&new, sound_store()).unwrap();
    let store = rusqlite::Connection::open(&old).unwrap();
    store.execute_batch(include_str!("../../data/store/schema-1.sql")).unwrap();
    let attach = format!("ATTACH '{}' AS new; PRAGMA foreign_keys = OFF;", new.display());
    store.execute_batch(&attach).unwrap();
    let head =
        "id, name, source, state, assay_version, started_unix_ns, command_line, seed, engine, job_text,
        experiment, design, aa, notes";
    store.execute_batch(&format!("INSERT INTO run SELECT {head} FROM new.run")).unwrap();
    for table in ["cell", "facts", "metric", "trial", "value", "histogram", "series"] {
        store.execute_batch(&format!("INSERT INTO {table} SELECT * FROM new.{table}")).unwrap();
    }
    store.execute_batch("PRAGMA application_id = 0x61737361; PRAGMA user_version = 1; DETACH new").unwrap();
    drop(store);
    std::fs::read(old).unwrap()
}

#[test]
fn what_a_killed_writer_began_is_undone_by_its_owner_only() {
    let sandbox = sandbox();
    let path = sandbox.path().join("assay.db");
    let original = sandbox.path().join("original");
    std::fs::write(&original, sound_store()).unwrap();
    // A transaction that has reached the file: what kill -9 leaves is a copy of both now.
    let writer = rusqlite::Connection::open(&original).unwrap();
    writer
        .execute_batch(
            "PRAGMA cache_size = 1; BEGIN; UPDATE value SET value = 7; UPDATE trial SET notes = '[]'",
        )
        .unwrap();
    let half = std::fs::read(&original).unwrap();
    let journal = std::fs::read(sandbox.path().join("original-journal")).unwrap();
    writer.execute_batch("ROLLBACK").unwrap();
    assert!(half != sound_store() && journal.len() > 4096, "nothing was written yet");
    let lay = || {
        std::fs::write(&path, &half).unwrap();
        std::fs::write(sandbox.path().join("assay.db-journal"), &journal).unwrap();
    };
    lay();
    let output = ask(&sandbox, &["export", "1"], &path);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(std::fs::read(&path).unwrap() == sound_store());
    assert!(!sandbox.names().contains("assay.db-journal"));
    lay();
    if rustix::process::geteuid().is_root() {
        for name in ["assay.db", "assay.db-journal"] {
            std::os::unix::fs::chown(sandbox.path().join(name), Some(65534), None).unwrap();
        }
        refused(&sandbox, &READERS[..5], &path, "only its owner can put it right");
        // Another user's journal is none of this store.
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        refused(&sandbox, &COMMANDS, &path, "a file of another user");
    }
}

#[test]
fn nothing_in_a_store_is_executed() {
    const ENDLESS: &str =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS run, x AS path FROM n";
    let cases = [
        (format!("DROP TABLE leftover; CREATE VIEW leftover AS {ENDLESS}"), "view leftover"),
        (format!("ALTER TABLE trial RENAME TO t; CREATE VIEW trial AS SELECT t.* FROM t, ({ENDLESS})"), "trial"),
        ("CREATE TRIGGER k AFTER UPDATE ON run BEGIN DELETE FROM run; END".to_owned(), "trigger k"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)".to_owned(), "table f"),
        ("ALTER TABLE run ADD COLUMN g AS (hex(zeroblob(1000000000)))".to_owned(), "table run"),
        ("ALTER TABLE run ADD COLUMN g TEXT DEFAULT 'x'".to_owned(), "table run"),
        ("CREATE INDEX i ON run (abs(seed))".to_owned(), "index i"),
        ("DROP INDEX trial_once".to_owned(), "no index trial_once"),
        ("DROP TABLE leftover".to_owned(), "no table leftover"),
        ("CREATE TABLE \"a\u{1b}[2J\" (x)".to_owned(), "table a\\u{1b}[2J"),
        (
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'aa              INTEGER', \
             'aa INTEGER CHECK (length(zeroblob(1000000000)) > 0)')"
                .to_owned(),
            "table run",
        ),
    ];
    for (sql, word) in cases {
        let sandbox = sandbox();
        let path = sandbox.path().join("assay.db");
        std::fs::write(&path, sound_store()).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        refused(&sandbox, &COMMANDS, &path, word);
    }
}

#[test]
fn a_store_of_this_process_is_closed_after_its_last_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("assay.db");
    let store = Store::open(&path).unwrap();
    let open = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        links.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|file| file == path)).count()
    };
    drop(Store::read(&path).unwrap());
    assert!(open() >= 3, "the file that was looked at is kept open: closing it would drop SQLite's locks");
    drop(store);
    assert_eq!(open(), 0);
}
