//! Text of others that acts on a terminal, a spreadsheet or a reader: in trials' output, names, paths, stores, facts.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use assay::record::{FailureKind, Run, Status};
use assay::store::Store;
use assay::sys::terminal::acts;

use crate::sandbox::{Sandbox, errors};

/// Writes to the clipboard (OSC 52), clears the screen, turns text round, and more.
const EVIL: &str =
    "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{1b}[31m\u{9b}2J\u{7f}\r\u{8}\u{202e}\u{2066}\u{200b}X";
const SIMULATED: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 4\n\
                         [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";
const FORMATS: [&str; 7] = ["text", "lkml", "mmtests", "markdown", "html", "json", "csv"];

/// A run with evil in everything that is text.
fn evil_run(sandbox: &Sandbox) -> Run {
    sandbox.write("s.toml", SIMULATED);
    sandbox.succeed(&["run", "s.toml", "--quiet", "--db", "plain.db"]);
    let mut run: Run = serde_json::from_str(&sandbox.succeed(&["export", "1", "--db", "plain.db"])).unwrap();
    let evil = |text: &mut String| text.push_str(EVIL);
    evil(&mut run.name);
    evil(&mut run.engine);
    evil(&mut run.assay_version);
    run.command_line.iter_mut().for_each(evil);
    run.job_text = Some(format!("[w]\nsize=1m\n# {EVIL}\n"));
    run.notes.push(format!("note {EVIL}").into());
    for factor in &mut run.design.factors {
        evil(&mut factor.name);
        factor.levels.iter_mut().for_each(evil);
    }
    for facts in &mut run.facts {
        for (name, mut value) in facts.clone() {
            evil(&mut value);
            facts.set(name, value);
        }
        facts.set(format!("fact{EVIL}"), EVIL);
    }
    for metric in run.metrics.iter_mut().skip(1) {
        evil(&mut metric.job);
        evil(&mut metric.name);
    }
    run.trials[0].excluded = Some(EVIL.to_owned());
    run.trials[1].notes.push(EVIL.into());
    run.trials[2].status = Status::Skipped { reason: EVIL.to_owned() };
    run.trials[3].status = Status::Failed {
        kind: FailureKind::Passing,
        reason: EVIL.to_owned(),
        command: EVIL.to_owned(),
        output: format!("{EVIL}\n{EVIL}"),
    };
    run.id = None;
    run
}

/// A sandbox whose store holds that run as number 1.
fn with_evil_run() -> Sandbox {
    let sandbox = Sandbox::new();
    let run = evil_run(&sandbox);
    let id = Store::open(&sandbox.path().join("assay.db")).unwrap().insert_run(&run).unwrap();
    assert_eq!(id, 1);
    sandbox
}

fn harmless(bytes: &[u8], what: &str) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let found: Vec<char> = text.chars().filter(|c| acts(*c)).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
}

fn both_harmless(output: &Output, what: &str) {
    harmless(&output.stdout, what);
    harmless(&output.stderr, what);
}

#[test]
fn nothing_of_a_foreign_store_acts_on_a_terminal() {
    let sandbox = with_evil_run();
    let ask = |arguments: &[&str]| {
        let output = sandbox.run(arguments);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {}", errors(&output));
        assert!(!output.stdout.is_empty(), "{arguments:?}: {}", errors(&output));
        both_harmless(&output, &format!("{arguments:?}"));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(&["list"]).lines().count(), 2);
    let shown = ask(&["show", "1", "--values"]);
    assert!(
        shown.contains("\\x1b]52;c;ZXZpbA==\\x07\\x1b[2J\\x1b[31m\\x9b2J\\x7f\\x0d\\x08\\u{202e}\\u{2066}"),
        "{shown}"
    );
    let listed: serde_json::Value = serde_json::from_str(ask(&["list", "--json"]).trim()).unwrap();
    assert!(listed["name"].as_str().unwrap().ends_with(EVIL), "JSON reads back as it was");
    for format in FORMATS {
        ask(&["report", "1", "--format", format, "--all-metrics"]);
        let file = format!("report.{format}");
        sandbox.succeed(&["report", "1", "--format", format, "--all-metrics", "-o", &file]);
        harmless(&std::fs::read(sandbox.path().join(&file)).unwrap(), &file);
    }
    for format in ["json", "csv"] {
        ask(&["export", "1", "--format", format]);
        let file = format!("export.{format}");
        sandbox.succeed(&["export", "1", "--format", format, "-o", &file]);
        harmless(&std::fs::read(sandbox.path().join(&file)).unwrap(), &file);
        for format in FORMATS {
            ask(&["compare", &file, "--format", format]);
        }
        ask(&["report", &file]);
    }
    let label = EVIL.replace('=', "");
    ask(&["compare", &format!("a{label}=1"), &format!("b{label}=1")]);
}

#[test]
fn with_colours_only_colours_act() {
    let sandbox = with_evil_run();
    let colour = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for arguments in [&["report", "1", "--all-metrics"][..], &["compare", "1"], &["doctor"], &["--help"]] {
        let mut command = sandbox.assay(arguments);
        let output = command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        harmless(colour.replace_all(&text, "").as_bytes(), &format!("{arguments:?}"));
        assert!(arguments[0] == "doctor" || colour.is_match(&text), "{arguments:?}: {text}");
        // Red is what assay makes red: that of the store was spelled out or taken away.
        assert!(!text.contains("\u{1b}[31m\\x9b") && !text.contains("\u{1b}[31m\u{9b}"), "{text}");
    }
}

#[test]
fn messages_and_progress_spell_out_what_acts() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", SIMULATED);
    sandbox.write("evil.fio", &format!("[w]\nsize=1m\n{EVIL}=1\nrw={EVIL}\nbs=4k\n[{EVIL}\n"));
    sandbox.write("evil.toml", &format!("name = \"{}\"\ncolour = \"\u{202e}\"\n", "\u{9b}2J"));
    sandbox.write("evil.csv", &format!("arm{EVIL},b\n1,{EVIL}\n"));
    sandbox.write("evil.json", &format!("{{\"jobname\": \"{EVIL}\""));
    for arguments in [
        &["run", EVIL][..],
        &["run", "evil.fio", "--vary", "bs=4k,8k"],
        &["run", "evil.toml"],
        &["run", "s.toml", "--vary", &format!("{EVIL}=1,2")],
        &["run", "s.toml", "--directory", EVIL],
        &["run", "s.toml", "--engine", EVIL],
        &["run", "s.toml", "--html", &format!("none/{EVIL}")],
        &["run", "--vary", "n=1,2", "--", EVIL, "${n}"],
        &["compare", EVIL, EVIL],
        &["compare", "evil.csv", "--arm", EVIL, "--value", "b"],
        &["compare", "evil.csv", "--arm", &format!("arm{EVIL}"), "--value", "b"],
        &["compare", "evil.json", "evil.json"],
        &["report", EVIL],
        &["show", EVIL],
        &["list", "--db", EVIL],
        &["doctor", EVIL],
        &["recipes", "show", EVIL],
        &[EVIL],
        &["run", &format!("--{EVIL}")],
    ] {
        let output = sandbox.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", errors(&output));
        both_harmless(&output, &format!("{arguments:?}"));
    }
}

/// A command that prints evil and fails; its output reaches the progress, the report and `show`.
fn failing() -> [&'static str; 9] {
    ["run", "--vary", "n=1,2", "--rounds", "1", "--", "sh", "-c", FAILING]
}
const FAILING: &str =
    "printf '\\033]52;c;ZXZpbA==\\007\\033[2J\\302\\2332J\\342\\200\\256${n}\\n\\233'; exit 3";

#[test]
fn what_a_trial_prints_does_not_act() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&failing());
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("\\x1b]52;c;ZXZpbA==\\x07\\x1b[2J"), "{}", errors(&output));
    both_harmless(&output, "run");
    both_harmless(&sandbox.run(&["show", "1"]), "show");
}

#[test]
fn on_a_terminal_what_a_trial_prints_does_not_act() {
    let sandbox = Sandbox::new();
    // script(1) is part of every Debian; it gives the program a terminal.
    if Command::new("script").arg("--version").output().is_err() {
        return crate::tools::skipped("there is no script(1) (bsdutils)");
    }
    let words = std::iter::once(env!("CARGO_BIN_EXE_assay")).chain(failing());
    let line = shlex::try_join(words).unwrap();
    let mut command = sandbox.command("script");
    command.env_remove("NO_COLOR").env("TERM", "xterm").stdin(Stdio::null());
    let output = command.args(["-qec", &line, "/dev/null"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\\x1b]52;c;ZXZpbA==\\x07\\x1b[2J"), "{text:?}");
    for evil in ["\u{1b}]52", "\u{7}", "\u{1b}[2J", "\u{9b}", "\u{202e}"] {
        assert!(!text.contains(evil), "{evil:?} in {text:?}");
    }
}

#[test]
fn no_cell_of_a_csv_is_a_formula_and_all_read_back() {
    let sandbox = Sandbox::new();
    let mut run = evil_run(&sandbox);
    let levels = [
        "=cmd|' /C calc'!A0", "-o noatime", "+1+1", "@SUM(1)", "\t=1", "\r=1", "'quoted", "-5", "a\\b", EVIL,
    ];
    run.design.factors[0].name = "=HYPERLINK(1)".to_owned();
    run.design.factors[0].levels = levels.map(str::to_owned).to_vec();
    run.cells = (0..levels.len() as u32).map(|level| assay::record::Cell { levels: vec![level] }).collect();
    run.metrics[0].job = "=job".to_owned();
    for (at, trial) in run.trials.iter_mut().enumerate() {
        trial.cell = (at % levels.len()) as u32;
        (trial.status, trial.excluded) = (Status::Done, None);
    }
    let (mut more, first) = (run.trials.clone(), run.trials[0].clone());
    more.resize(20, first);
    more.iter_mut().enumerate().for_each(|(at, trial)| trial.cell = (at % levels.len()) as u32);
    run.trials = more;
    sandbox.write("run.json", &serde_json::to_string_pretty(&run).unwrap());
    let csv = sandbox.succeed(&["export", "run.json", "--format", "csv"]);
    let report = sandbox.succeed(&["report", "run.json", "--format", "csv"]);
    for table in [&csv, &report] {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(table.as_bytes());
        for cell in
            reader.records().flat_map(|record| record.unwrap().iter().map(str::to_owned).collect::<Vec<_>>())
        {
            let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!formula || cell.parse::<f64>().is_ok(), "{cell:?}");
        }
    }
    assert!(
        csv.contains(",'=HYPERLINK(1),") && csv.contains(",-5,") && report.contains("'-o noatime"),
        "{csv}"
    );
    sandbox.write("run.csv", &csv);
    let back = assay::import::load_export(&sandbox.path().join("run.csv")).unwrap();
    assert_eq!(back.design.factors[0].name, "=HYPERLINK(1)");
    assert_eq!(back.design.factors[0].levels, levels);
    let named = |run: &Run| -> Vec<(String, String)> {
        run.metrics.iter().map(|metric| (metric.job.clone(), metric.name.clone())).collect()
    };
    let used = run.trials[0].values.len();
    assert_eq!(named(&back)[..used.min(3)], named(&run)[..used.min(3)]);
    // Asked for, cells are as they were.
    let raw = sandbox.succeed(&["export", "run.json", "--format", "csv", "--raw-cells"]);
    assert!(raw.contains(",-o noatime,") && raw.contains("=cmd|' /C calc'!A0"), "{raw}");
    let raw = sandbox.succeed(&["report", "run.json", "--format", "csv", "--raw-cells"]);
    assert!(raw.contains(",-o noatime,") && !raw.contains("'-o"), "{raw}");
}

/// Files that write to a standard stream by another way than the edge, and why.
const OTHERS: [(&str, &str); 3] = [
    ("sys/terminal.rs", "the edge itself"),
    ("launch/agent.rs", "the agent's reply, JSON for the assay that started it"),
    ("launch/qemu/inside.rs", "the console of a guest"),
];

#[test]
fn only_the_edge_writes_to_standard_streams() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut open, mut found) = (vec![source.clone()], Vec::new());
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&source).unwrap().display().to_string();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            if name.ends_with("tests.rs") || OTHERS.iter().any(|(other, _)| name == *other) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            // Asking what a stream is writes nothing to it.
            let code = code.replace("std::io::stderr().is_terminal()", "").replace("fstat(std::io::std", "");
            for way in
                ["io::stdout(", "io::stderr(", "anstream::", "println!", "print!(", "use std::io::{stdout"]
            {
                found.extend(code.contains(way).then(|| format!("{name}: {way}")));
            }
        }
    }
    assert!(found.is_empty(), "sys::terminal writes: {found:?}");
}
