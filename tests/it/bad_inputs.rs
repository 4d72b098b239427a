//! Wrong requests, each with the exit code of design, one clear message, a hint, and nothing touched.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::loop_device::LoopDevice;
use crate::sandbox::{Sandbox, errors};
use crate::tools::{available, is_root, skipped};

const JOB: &str = "[w]\nrw=write\nbs=4k\nsize=64k\n";
const SIMULATED: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 4\n\
                         [simulated]\ncv = 0.001\neffects = { \"bs=8k\" = 0.5 }\n\
                         [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";
const FIO_JSON: &str = include_str!("../data/fio/single-4k-1.json");
const CSV: &str = "kernel,bw\nold,100\nold,101\nnew,110\nnew,111\n";

/// A file of a case: text, or something that text cannot be.
#[derive(Clone, Copy)]
enum Content {
    Text(&'static str),
    Directory,
    /// A store with one finished run, 1.
    Store,
    /// The same, changed by SQL.
    StoreBut(&'static str),
    /// The same, with its middle overwritten.
    Corrupt,
    /// Text that only its owner, who is not the caller, may read.
    Unreadable,
    /// A program.
    Script(&'static str),
}
use Content::{Corrupt, Directory, Script, Store, StoreBut, Text, Unreadable};

/// What is asked, what lies there, and what must come of it.
struct Case {
    arguments: &'static str,
    files: &'static [(&'static str, Content)],
    code: i32,
    words: &'static [&'static str],
}

const fn wrong(
    arguments: &'static str,
    files: &'static [(&'static str, Content)],
    words: &'static [&'static str],
) -> Case {
    Case { arguments, files, code: 2, words }
}

const fn fails(
    arguments: &'static str,
    files: &'static [(&'static str, Content)],
    words: &'static [&'static str],
) -> Case {
    Case { arguments, files, code: 1, words }
}

const RUN: &str = "run job.fio --vary bs=4k,8k";
const GOOD: &[(&str, Content)] = &[("job.fio", Text(JOB))];

/// One line a case; arguments are split at blanks.
const CASES: &[Case] = &[
    // Job files.
    wrong(RUN, &[("job.fio", Text("[w\nrw=write\n"))], &["job.fio:1", "'[w' is not a section"]),
    wrong(RUN, &[("job.fio", Text("rw=write\n[w]\n"))], &["job.fio:1", "before the first [section]"]),
    wrong(RUN, &[("job.fio", Text("[w]\nsize=1m\niodpth=4\n"))], &["job.fio:3", "'iodpth'", "iodepth"]),
    wrong(
        RUN,
        &[("job.fio", Text("[w]\nsize=1m\nverify=md5\nzonemode=zbd\nflow=5\n"))],
        &[
            "job.fio:3: verify: the native engine does not have 'md5'",
            "job.fio:4: zonemode=zbd",
            "job.fio:5: flow",
            "hint: --engine fio runs it",
        ],
    ),
    wrong(RUN, &[("job.fio", Text("[w]\nsize=1q\n"))], &["job.fio:2", "'q' in '1q' is not a unit of size"]),
    wrong(RUN, &[("job.fio", Text("[w]\nsize=1m\nrw=sideways\n"))], &["job.fio:3", "sideways"]),
    wrong(RUN, &[("job.fio", Text("[w]\nsize=1m\niodepth=many\n"))], &["job.fio:3", "many"]),
    wrong(RUN, &[("job.fio", Text("[w]\nsize=1m\niodepth=NaN\n"))], &["job.fio:3", "NaN"]),
    wrong(RUN, &[("job.fio", Text("[w]\nsize=1m\nruntime=-5\n"))], &["job.fio:3", "-5"]),
    wrong(RUN, &[("job.fio", Text("[w]\nrw=write\n"))], &["job.fio", "size"]),
    wrong(RUN, &[("job.fio", Text(""))], &["job.fio: no job in it"]),
    wrong(RUN, &[("job.fio", Text("[global]\nsize=1m\n"))], &["job.fio: only [global] sections"]),
    wrong(RUN, &[("job.fio", Text("[w]\nsize=${SIZE}\n"))], &["job.fio:2", "SIZE"]),
    wrong(RUN, &[("job.fio", Text("include missing.fio\n[w]\nsize=1m\n"))], &["job.fio:1", "missing.fio"]),
    wrong(RUN, &[("job.fio", Text("include job.fio\n[w]\nsize=1m\n"))], &["job.fio", "include"]),
    wrong(RUN, &[("job.fio", Directory)], &["the directory job.fio has no .fio and no .toml file"]),
    wrong(RUN, &[], &["job.fio: No such file"]),
    wrong(RUN, &[("job.fio", Unreadable)], &["job.fio: Permission denied"]),
    // --vary and the other options of a run.
    wrong(
        "run job.fio",
        GOOD,
        &["nothing varies", "--vary KEY=LEVEL,LEVEL; or --aa", "`assay compare RUN RUN`"],
    ),
    wrong("run job.fio --vary direct", GOOD, &["--vary direct", "write KEY=LEVEL,LEVEL"]),
    wrong("run job.fio --vary =1,2", GOOD, &["--vary =1,2"]),
    wrong("run job.fio --vary direct=", GOOD, &["--vary direct="]),
    wrong("run job.fio --vary direct=1", GOOD, &["direct has one level"]),
    wrong("run job.fio --vary direct=0,0", GOOD, &["level 0 of direct is given twice"]),
    wrong("run job.fio --vary direct=0,1 --vary direct=0,1", GOOD, &["direct is varied twice"]),
    wrong("run job.fio --vary diretc=0,1", GOOD, &["diretc", "did you mean direct"]),
    wrong("run job.fio --vary bs=4k,8q", GOOD, &["'q' in '8q' is not a unit of size"]),
    wrong("run job.fio --vary rw=read,sideways", GOOD, &["sideways"]),
    wrong("run job.fio --vary direct=0,1 --compare bs", GOOD, &["no factor 'bs'", "there are direct"]),
    wrong(
        "run job.fio --vary direct=0,1 --engine turbo",
        GOOD,
        &["no engine 'turbo'", "native, null, bare, fio"],
    ),
    wrong("run job.fio --vary direct=0,1 --rounds 0", GOOD, &["rounds is 0"]),
    wrong("run job.fio --vary direct=0,1 --rounds -3", GOOD, &["--rounds", "-3"]),
    wrong("run job.fio --vary direct=0,1 --max-rounds 1", GOOD, &["max_rounds is 1; write 4 to"]),
    wrong(
        "run job.fio --vary direct=0,1 --delta 0",
        GOOD,
        &["delta: '0' is 0, and no difference is that small"],
    ),
    wrong("run job.fio --vary direct=0,1 --delta -2%", GOOD, &["delta"]),
    wrong("run job.fio --vary direct=0,1 --delta nan", GOOD, &["'nan' is not a ratio"]),
    wrong(
        "run job.fio --vary direct=0,1 --delta p98=3%",
        GOOD,
        &["delta p98=…: no trial reports such a metric"],
    ),
    wrong("run job.fio --vary direct=0,1 --delta p99=0", GOOD, &["delta: 'p99=0' is 0"]),
    wrong("run job.fio --vary direct=0,1 --alpha 2", GOOD, &["'2' is 200%"]),
    wrong("run job.fio --vary direct=0,1 --time-budget 5parsecs", GOOD, &["'parsecs'", "is not a time unit"]),
    wrong(
        "run job.fio --vary direct=0,1 --timeout 99999999999999999999d",
        GOOD,
        &["over a year", "--timeout"],
    ),
    wrong("run job.fio --vary direct=0,1 --timeout -1s", GOOD, &["timeout"]),
    wrong("run job.fio --vary direct=0,1 --format pdf", GOOD, &["'pdf'", "lkml"]),
    wrong("run job.fio --vary direct=0,1 --fail-if sometimes", GOOD, &["'sometimes'", "slower"]),
    wrong("run job.fio --vary direct=0,1 --frobnicate", GOOD, &["--frobnicate"]),
    wrong(
        "run job.fio --vary direct=0,1 --metric x=y=(1)",
        GOOD,
        &["metrics are read from what a command or a hook prints"],
    ),
    wrong("run job.fio --vary direct=0,1 -d no/where", GOOD, &["no/where: No such file"]),
    wrong("run job.fio --vary direct=0,1 -d job.fio", GOOD, &["job.fio is not a directory"]),
    wrong("run job.fio --vary direct=0,1 --db no/where.db", GOOD, &["no/where.db"]),
    wrong("run job.fio --vary direct=0,1 --db .", GOOD, &["a directory"]),
    wrong("run job.fio --vary direct=0,1 -o report.xyz", GOOD, &["no report format has the ending .xyz"]),
    wrong("run job.fio --vary direct=0,1 -o a.md --html b.html", GOOD, &["cannot be used with"]),
    wrong("run job.fio --vary direct=0,1 --html no/where.html", GOOD, &["cannot write no/where.html"]),
    wrong("run", &[], &["nothing to run is given"]),
    wrong("run job.fio --vary bs=4k,8k -- echo", GOOD, &["both a file and a command"]),
    wrong(
        "run job.fio --vary bs=4k,8k,12k,16k,20k,24k,28k,32k,36k,40k --vary iodepth=1,2,3,4,5,6,7,8,9,10,11 \
         --vary numjobs=1,2,3,4,5,6,7,8,9,10",
        GOOD,
        &["more than 1000 cells"],
    ),
    // What must not be overwritten.
    wrong(
        RUN,
        &[
            ("job.fio", Text("[w]\nrw=write\nsize=64k\nfilename=./precious\n")),
            ("assay-x", Directory),
            ("d", Directory),
        ],
        &["@precious"],
    ),
    // Experiment files.
    wrong(
        "run e.toml",
        &[("e.toml", Text("colour = \"red\"\njob_text = \"[w]\\nsize=1m\\n\"\n"))],
        &["e.toml:1", "unknown key 'colour'", "known are name"],
    ),
    wrong(
        "run e.toml",
        &[("e.toml", Text("job_text = \"[w]\\nsize=1m\\n\"\n[stop]\nmax_rounds = \"many\"\n"))],
        &["e.toml:3", "max_rounds is a text"],
    ),
    wrong(
        "run e.toml --aa",
        &[("e.toml", Text("job_text = \"[w]\\nsize=1m\\n\"\n[stop]\ndelta = -0.5\n"))],
        &["e.toml:3", "delta"],
    ),
    wrong("run e.toml", &[("e.toml", Text("job_text = \"x\" y\n"))], &["e.toml:1", "not TOML"]),
    wrong("run e.toml", &[("e.toml", Text(""))], &["e.toml"]),
    wrong(
        "run e.toml",
        &[("e.toml", Text("job = \"none.fio\"\n[[factor]]\nname = \"bs\"\nlevels = [1, 2]\n"))],
        &["none.fio"],
    ),
    wrong(
        "run e.toml",
        &[(
            "e.toml",
            Text(
                "compare = \"fs\"\njob_text = \"[w]\\nsize=1m\\n\"\n[[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n",
            ),
        )],
        &["e.toml:1", "no factor 'fs'", "there are bs"],
    ),
    wrong(
        "run e.toml",
        &[(
            "e.toml",
            Text("job_text = \"[w]\\nsize=1m\\n\"\n[[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"4k\"]\n"),
        )],
        &["e.toml", "4k", "twice"],
    ),
    // Commands.
    wrong("run --vary n=1,2 -- ./no-such-program ${n}", &[], &["there is no program './no-such-program'"]),
    wrong("run --vary n=1,2 -- echo hi", &[], &["n: no ${n}"]),
    wrong(
        "run --vary n=1,2 --metric x=( -- echo ${n}",
        &[],
        &["'(' of metric 'x' is not a regular expression"],
    ),
    wrong("run --vary n=1,2 --metric x -- echo ${n}", &[], &["'x' is not a metric", "name=REGEX"]),
    wrong("run --vary n=1,2 --metric x=y -- echo ${n}", &[], &["'x'", "group"]),
    fails(
        "run --vary n=1,2 -- false ${n}",
        &[],
        &["'false' ended with exit code 1", "failed again", "stopped: a cell kept failing"],
    ),
    fails(
        "run --vary n=1,2 --metric x=y=([0-9]+) -- echo ${n}",
        &[],
        &["metric 'x' was not found", "failed again"],
    ),
    fails("run --vary n=1,2 --before false -- echo ${n}", &[], &["the before hook failed"]),
    fails("run --vary n=1,2 --timeout 100ms -- sleep ${n}", &[], &["took longer than the limit of 0.1 s"]),
    // The store.
    wrong("report 1", &[], &["there is no store at assay.db"]),
    wrong("list", &[], &["there is no store at assay.db"]),
    wrong("report 99", &[("assay.db", Store)], &["no run 99", "the newest are 1"]),
    wrong("show 99", &[("assay.db", Store)], &["no run 99"]),
    wrong("export 99", &[("assay.db", Store)], &["no run 99"]),
    wrong("run --resume 99", &[("assay.db", Store)], &["no run 99"]),
    wrong("run --resume 1", &[("assay.db", Store)], &["run 1 is finished"]),
    wrong("run --resume 1 job.fio", &[("assay.db", Store)], &["--resume", "cannot be used with"]),
    wrong("run --resume one", &[("assay.db", Store)], &["'one'"]),
    wrong("report 1 --format pdf", &[("assay.db", Store)], &["'pdf'", "markdown"]),
    wrong("report 1 -o no/where.html", &[("assay.db", Store)], &["cannot write no/where.html"]),
    wrong("export 1 --format xml", &[("assay.db", Store)], &["'xml'", "csv"]),
    wrong("list", &[("assay.db", StoreBut("PRAGMA user_version = 99"))], &["schema 99", "newer assay"]),
    wrong(
        RUN,
        &[("job.fio", Text(JOB)), ("assay.db", StoreBut("PRAGMA user_version = 99"))],
        &["schema 99", "newer assay"],
    ),
    wrong("list", &[("assay.db", StoreBut("PRAGMA application_id = 7"))], &["another program's database"]),
    wrong("list", &[("assay.db", Text("hello"))], &["not an assay store"]),
    wrong(RUN, &[("job.fio", Text(JOB)), ("assay.db", Text("hello"))], &["not an assay store"]),
    wrong(
        "report 1",
        &[("assay.db", StoreBut("UPDATE run SET design = '{}'"))],
        &["run 1", "damaged", "design"],
    ),
    wrong("report 1", &[("assay.db", Corrupt)], &["assay.db", "malformed", ".recover"]),
    // Results of others.
    wrong("compare", &[], &["required"]),
    wrong("compare a b", &[], &["a: there is no such file or directory"]),
    wrong("compare a b", &[("a", Directory), ("b", Directory)], &["a is a directory without files"]),
    wrong("compare a.json a.json", &[("a.json", Text(""))], &["a.json"]),
    wrong(
        "compare a.json a.json",
        &[("a.json", Text(include_str!("../data/fio/truncated.json")))],
        &["a.json, line 123", "ends too early"],
    ),
    wrong("compare a.json a.json", &[("a.json", Text("{\"a\":"))], &["a.json"]),
    wrong("compare a.txt a.txt", &[("a.txt", Text("1\n2\nNaN\n"))], &["a.txt, line 3", "'NaN'"]),
    wrong("compare a.txt a.txt", &[("a.txt", Text("1\n2\n1e999\n"))], &["a.txt, line 3", "1e999"]),
    wrong("compare a.txt a.txt", &[("a.txt", Text("what is this\n"))], &["a.txt has no format known here"]),
    wrong("compare a.csv", &[("a.csv", Text(CSV))], &["--arm"]),
    wrong("compare a.csv --arm arm --value bw", &[("a.csv", Text(CSV))], &["no column 'arm'", "kernel, bw"]),
    wrong("compare a.csv --arm kernel --value tps", &[("a.csv", Text(CSV))], &["no column 'tps'"]),
    wrong("compare a.csv --arm kernel --row fs --value bw", &[("a.csv", Text(CSV))], &["no column 'fs'"]),
    wrong("compare a.csv --arm kernel --value bw:higer", &[("a.csv", Text(CSV))], &["did you mean 'higher'"]),
    wrong(
        "compare a.csv --arm kernel --value bw",
        &[("a.csv", Text("kernel,bw\nold,1\nnew,nan\n"))],
        &["a.csv, line 3", "'nan'"],
    ),
    wrong(
        "compare a.csv --arm kernel --value bw",
        &[("a.csv", Text("kernel,bw\nold,1\nnew\n"))],
        &["a.csv", "line 3"],
    ),
    wrong("report a.json", &[("a.json", Text(FIO_JSON))], &["a.json", "assay export"]),
    wrong("report none.json", &[], &["none.json", "no such file"]),
    fails(
        "compare a b",
        &[
            ("a", Directory),
            ("b", Directory),
            ("a/1.json", Text(FIO_JSON)),
            ("b/1.json", Text(FIO_JSON)),
            ("b/2.json", Text("junk")),
        ],
        &["1 of 3 files", "b/2.json", "--skip-unreadable"],
    ),
    fails(
        "compare a b",
        &[
            ("a", Directory),
            ("b", Directory),
            ("a/1.json", Text(FIO_JSON)),
            ("b/1.json", Text(FIO_JSON)),
            ("b/2.json", Unreadable),
        ],
        &["b/2.json", "ermission denied"],
    ),
    // The rest.
    wrong("frobnicate", &[], &["'frobnicate'"]),
    wrong("show", &[], &["required", "RUN"]),
    wrong("generate nonsense", &[], &["nonsense"]),
    wrong("doctor no/where", &[], &["no/where"]),
];

/// A store with one finished run, made once.
fn store() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let sandbox = Sandbox::new();
        sandbox.write("s.toml", SIMULATED);
        sandbox.succeed(&["run", "s.toml", "--quiet"]);
        std::fs::read(sandbox.path().join("assay.db")).unwrap()
    })
}

fn put(sandbox: &Sandbox, name: &str, content: Content) {
    let path = sandbox.path().join(name);
    match content {
        Text(text) => std::fs::write(path, text).unwrap(),
        Directory => std::fs::create_dir(path).unwrap(),
        Store => std::fs::write(path, store()).unwrap(),
        StoreBut(sql) => {
            std::fs::write(&path, store()).unwrap();
            rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        }
        Corrupt => {
            let mut bytes = store().to_vec();
            let middle = bytes.len() / 2;
            bytes[4096..middle].fill(0xa5);
            std::fs::write(path, bytes).unwrap();
        }
        Unreadable => {
            std::fs::write(&path, JOB).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o000)).unwrap();
        }
        Script(text) => {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
}

/// Everything in the sandbox with what it holds.
fn listing(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    fn walk(at: &std::path::Path, into: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                into.insert(path.display().to_string(), Vec::new());
                walk(&path, into);
            } else {
                into.insert(path.display().to_string(), std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(sandbox.path(), &mut found);
    found
}

/// As nobody when the tests run as root, who may read everything.
pub(crate) fn without_privilege(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    if !rustix::process::geteuid().is_root() {
        return sandbox.assay(arguments);
    }
    std::fs::set_permissions(sandbox.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_assay")])
        .args(arguments)
        .current_dir(sandbox.path())
        .stdin(Stdio::null());
    command
}

/// What is wrong with the answer; empty: nothing.
fn faults(output: &Output, code: i32, words: &[&str]) -> Vec<String> {
    let said = errors(output);
    let mut faults = Vec::new();
    if output.status.code() != Some(code) {
        faults.push(format!("exit {:?}, not {code}", output.status.code()));
    }
    for word in words.iter().filter(|word| !said.contains(*word)) {
        faults.push(format!("does not say {word:?}"));
    }
    let lines = |start: &str| said.lines().filter(|line| line.starts_with(start)).count();
    if lines("assay: ") != 1 {
        faults.push(format!("{} messages", lines("assay: ")));
    }
    if lines("hint: ") != 1 || !said.lines().last().is_some_and(|line| line.starts_with("hint: ")) {
        faults.push(format!("{} hints, or not at the end", lines("hint: ")));
    }
    if said.contains("panicked") || said.contains("RUST_BACKTRACE") {
        faults.push("a panic".to_owned());
    }
    faults
}

fn check(case: &Case) -> Option<String> {
    let sandbox = Sandbox::new();
    for (name, content) in case.files {
        put(&sandbox, name, *content);
    }
    let mut words = case.words.to_vec();
    let arguments: Vec<&str> = case.arguments.split_whitespace().collect();
    if words == ["@precious"] {
        // A job that names a file which exists; relative names lie in the work directory, so it is absolute.
        let precious = sandbox.write("precious", "data");
        sandbox.write("job.fio", &format!("[w]\nrw=write\nsize=64k\nfilename={}\n", precious.display()));
        words = vec![
            "precious exists, and the job would overwrite it",
            "hint: if everything on it may be lost: --destroy",
        ];
    }
    let before = listing(&sandbox);
    let unreadable = case.files.iter().any(|(_, content)| matches!(content, Unreadable));
    let mut command =
        if unreadable { without_privilege(&sandbox, &arguments) } else { sandbox.assay(&arguments) };
    let output = command.output().unwrap();
    let mut faults = faults(&output, case.code, &words);
    let mut after = listing(&sandbox);
    if case.code == 1 && arguments[0] == "run" {
        after.retain(|name, _| !name.ends_with("/assay.db"));
    }
    if after != before {
        let names: Vec<&String> = after.keys().filter(|name| !before.contains_key(*name)).collect();
        faults.push(format!("touched the directory: {names:?}"));
    }
    (!faults.is_empty())
        .then(|| format!("assay {}\n  {}\n{}", case.arguments, faults.join("\n  "), errors(&output)))
}

#[test]
fn wrong_requests_are_refused_in_words_and_touch_nothing() {
    const { assert!(CASES.len() >= 50) };
    let wrong: Vec<String> = CASES.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{} of {}:\n\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

/// Runs in the sandbox and demands the answer, with nothing left but the store.
fn demand(sandbox: &Sandbox, command: &mut Command, code: i32, words: &[&str]) {
    let mut before = listing(sandbox);
    let output = command.output().unwrap();
    let faults = faults(&output, code, words);
    assert!(faults.is_empty(), "{faults:?}\n{}", errors(&output));
    let mut after = listing(sandbox);
    if code != 2 {
        before.retain(|name, _| !name.ends_with("/assay.db"));
        after.retain(|name, _| !name.ends_with("/assay.db"));
    }
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert_eq!(after, before);
}

#[test]
fn a_missing_or_old_fio_is_said_before_anything_is_run() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    put(&sandbox, "bin", Directory);
    let arguments = ["run", "job.fio", "--vary", "bs=4k,8k", "--engine", "fio"];
    let path = sandbox.path().join("bin");
    demand(&sandbox, sandbox.assay(&arguments).env("PATH", &path), 2, &["fio is not on PATH", "3.28"]);
    put(&sandbox, "bin/fio", Script("#!/bin/sh\necho fio-3.1\n"));
    demand(&sandbox, sandbox.assay(&arguments).env("PATH", &path), 2, &["bin/fio is fio-3.1", "3.28"]);
    put(&sandbox, "bin/fio", Script("#!/bin/sh\necho something else\n"));
    demand(&sandbox, sandbox.assay(&arguments).env("PATH", &path), 2, &["bin/fio", "3.28"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_said_beforehand() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    put(&sandbox, "closed", Directory);
    let closed = PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(sandbox.path().join("closed"), closed).unwrap();
    let arguments = ["run", "job.fio", "--vary", "bs=4k,8k", "-d", "closed"];
    demand(&sandbox, &mut without_privilege(&sandbox, &arguments), 2, &["/closed: Permission denied"]);
    let arguments = ["run", "job.fio", "--vary", "bs=4k,8k", "--db", "closed/assay.db"];
    demand(&sandbox, &mut without_privilege(&sandbox, &arguments), 2, &["closed/assay.db"]);
}

#[test]
fn fail_if_is_exit_code_3_and_no_error() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", SIMULATED);
    put(&sandbox, "assay.db", Store);
    let with = |condition: &str| sandbox.run(&["report", "1", "--fail-if", condition]).status.code();
    assert_eq!((with("changed"), with("slower"), with("undecided")), (Some(3), Some(0), Some(0)));
    let run = ["run", "s.toml", "--quiet", "--fail-if", "changed"];
    assert_eq!(sandbox.run(&run).status.code(), Some(3));
}

#[test]
fn a_reader_that_went_changes_no_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", SIMULATED);
    // What is undecided is told on standard error, and then judged.
    sandbox.write("n.toml", &SIMULATED.replace("cv = 0.001", "cv = 0.2").replace("= 0.5", "= 0.02"));
    let program = env!("CARGO_BIN_EXE_assay");
    let gates = [("s", "changed", 3), ("s", "slower", 0), ("n", "slower", 0), ("n", "slower,undecided", 3)];
    for (file, gate, code) in gates {
        for gone in ["2>&1 >/dev/null", "2>/dev/null"] {
            // By chance one of twenty seeds would decide what is undecided.
            let run = format!("'{program}' run {file}.toml --seed 5 --fail-if {gate} {gone}");
            let line = format!("(sleep 0.2; {run}; echo $? >code) | true");
            let output = Command::new("sh").arg("-c").arg(line).current_dir(sandbox.path()).output().unwrap();
            assert!(output.status.success());
            let found = std::fs::read_to_string(sandbox.path().join("code")).unwrap();
            assert_eq!(found.trim(), code.to_string(), "{file}, {gate}, {gone}");
        }
    }
}

#[test]
fn a_closed_standard_input_is_no_obstacle() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let program = env!("CARGO_BIN_EXE_assay");
    let line = format!("'{program}' run job.fio --vary bs=4k,8k --rounds 1 <&-");
    let output = Command::new("sh").arg("-c").arg(line).current_dir(sandbox.path()).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
}

/// A mount that is put back also when the test fails.
struct Undo(std::path::PathBuf);

impl Drop for Undo {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Whether this machine lets the tests mount; says so when not.
fn may_mount() -> bool {
    is_root()
}

#[test]
fn a_full_disk_is_named_with_the_bytes_that_are_missing() {
    if !may_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    put(&sandbox, "small", Directory);
    let small = sandbox.path().join("small");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&small).status();
    if !mounted.unwrap().success() {
        return skipped("mount is not permitted here");
    }
    let _undo = Undo(small);
    // Without a runtime the whole size is written in any case, and it is refused before the first trial.
    sandbox.write("job.fio", "[w]\nrw=write\nsize=4m\n");
    let arguments = ["run", "job.fio", "--vary", "bs=4k,8k", "-d", "small", "--plan"];
    demand(
        &sandbox,
        &mut sandbox.assay(&arguments),
        2,
        &["the job's files take 4", "has room for", "hint: lower size="],
    );
    sandbox.write("job.fio", "[w]\nrw=write\nsize=4m\nruntime=60\n");
    for engine in ["native", "fio"] {
        if engine == "fio" && !available("fio") {
            continue;
        }
        // Room for the whole file is reserved by the native engine in any case.
        let (code, words): (_, &[&str]) = match engine {
            "native" => (2, &["the job's files take 4", "has room for", "hint: lower size="]),
            _ => (1, &["No space left on device", "w.0.0", "hint: assay show"]),
        };
        let arguments = ["run", "job.fio", "--vary", "bs=4k,8k", "-d", "small", "--engine", engine];
        demand(&sandbox, &mut sandbox.assay(&arguments), code, words);
    }
    let filled = std::fs::write(sandbox.path().join("small/filler"), vec![1; 2 << 20]);
    assert!(filled.is_err(), "2 MiB cannot fit");
    let arguments = ["run", "--vary", "n=1,2", "-d", "small", "--", "echo", "${n}"];
    demand(&sandbox, &mut sandbox.assay(&arguments), 1, &["No space left on device", "--directory"]);
}

#[test]
fn a_block_device_needs_destroy_and_must_be_empty_and_unused() {
    if !may_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(own) = LoopDevice::on(&sandbox.path().join("image"), 8 << 20) else { return };
    let device = own.path.to_string_lossy().into_owned();
    sandbox.write("job.fio", &format!("[w]\nrw=write\nsize=64k\nfilename={device}\n"));
    let unnamed = ["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1"];
    demand(&sandbox, &mut sandbox.assay(&unnamed), 2, &["is a block device", "--destroy"]);
    let named = ["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1", "--destroy", &device];
    let formatted = Command::new("mkfs.ext4").arg("-q").arg(&device).status().unwrap();
    assert!(formatted.success());
    demand(&sandbox, &mut sandbox.assay(&named), 2, &["carries an ext2/3/4 filesystem", "wipefs"]);
    put(&sandbox, "mnt", Directory);
    let at = sandbox.path().join("mnt");
    // Read only: ext4 would write its inode tables in the background, and the image must be as it was.
    if Command::new("mount").args(["-o", "ro"]).arg(&device).arg(&at).status().unwrap().success() {
        let undo = Undo(at);
        demand(&sandbox, &mut sandbox.assay(&named), 2, &["is in use: mounted at", "unmount"]);
        drop(undo);
    } else {
        skipped("mount is not permitted here");
    }
    // Emptied and named, it is used, and nothing else is.
    let wiped = Command::new("wipefs").args(["-q", "-a", &device]).status().unwrap();
    assert!(wiped.success());
    let output = sandbox.run(&named);
    assert!(output.status.success(), "{}", errors(&output));
}
