//! `assay compare` as a user meets it: what it accepts, where results go, exit codes, and how it refuses.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bad_inputs::without_privilege;
use crate::sandbox::{Sandbox, errors};

/// What a run of the program gave.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the program with no colour and a store that is not there.
pub(crate) fn assay(arguments: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("ASSAY_DB", "/dev/null/assay.db")
        .output()
        .expect("assay starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("assay writes UTF-8");
    Answer { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Its standard output, when it ended with 0.
pub(crate) fn ok(arguments: &[&str]) -> String {
    let answer = assay(arguments);
    assert_eq!(answer.code, Some(0), "{arguments:?}: {}", answer.err);
    answer.out
}

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn write(directory: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Ten values an arm, `shift` per cent apart, hardly any noise.
fn numbers(directory: &Path, name: &str, shift: f64) -> String {
    let lines: Vec<String> =
        (0..10).map(|i| format!("{}", (100.0 + f64::from(i) * 0.01) * (1.0 + shift))).collect();
    write(directory, name, lines.join("\n"))
}

#[test]
fn a_directory_a_glob_and_a_label_are_arms() {
    let directory = tempfile::tempdir().unwrap();
    for side in ["before", "after"] {
        fs::create_dir(directory.path().join(side)).unwrap();
        for index in 1..=3 {
            let name = directory.path().join(side).join(format!("{index}.json"));
            fs::copy(data(&format!("fio/single-4k-{index}.json")), name).unwrap();
        }
    }
    let before = directory.path().join("before").to_str().unwrap().to_owned();
    let after = format!("patched={}/after/*.json", directory.path().display());
    let out = ok(&["compare", &before, &after, "--format", "csv"]);
    let bw = out.lines().find(|line| line.starts_with(",write.bw,")).unwrap();
    assert!(bw.starts_with(",write.bw,B/s,higher,primary,before,patched,3,3,"), "{bw}");
    let text = ok(&["compare", &before, &after]);
    assert!(
        text.starts_with("patched against before\n") && text.contains("imported from fio json"),
        "{text}"
    );
}

#[test]
fn verdicts_decide_the_exit_code_only_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let base = numbers(directory.path(), "base", 0.0);
    let worse = numbers(directory.path(), "worse", 0.10);
    let better = numbers(directory.path(), "better", -0.10);
    let few = write(directory.path(), "few", "100\n101\n");
    // An interval from 0.99 % to 1.01 %: real, and below the 2 % that matter.
    let little = numbers(directory.path(), "little", 0.01);
    // Seven at +3 %, three at +1 %: the interval ends on either side of 2 %.
    let maybe: Vec<String> =
        (0..10).map(|i| format!("{}", if i < 7 { 103.0 } else { 101.0 } + f64::from(i) * 0.01)).collect();
    let maybe = write(directory.path(), "maybe", maybe.join("\n"));
    for (candidate, condition, code) in [
        (&worse, "slower", 3),
        (&worse, "changed", 3),
        (&worse, "undecided", 0),
        (&better, "slower", 0),
        (&better, "changed", 3),
        (&base, "changed", 0),
        (&worse, "slower:any", 3),
        (&better, "slower:any", 0),
        (&better, "changed:any", 3),
        (&maybe, "slower", 0),
        (&maybe, "changed", 0),
        (&maybe, "undecided", 0),
        (&maybe, "slower:any", 3),
        (&maybe, "changed:any", 3),
        (&little, "slower", 0),
        (&little, "slower:any", 3),
        (&little, "changed:any", 3),
        (&base, "changed:any", 0),
        (&few, "undecided", 3),
        // All but what is known to be no slower, or no other.
        (&maybe, "slower,undecided", 3),
        (&maybe, "changed,undecided", 3),
        (&worse, "slower,undecided", 3),
        (&better, "slower,undecided", 0),
        (&better, "changed,undecided", 3),
        (&little, "slower,undecided", 0),
        (&few, "slower,undecided", 3),
    ] {
        let answer = assay(&["compare", &base, candidate, "--fail-if", condition]);
        assert_eq!(
            answer.err.contains(&format!("--fail-if {condition}: holds for 1 of 1")),
            code == 3,
            "{}",
            answer.err
        );
        assert_eq!(answer.code, Some(code), "{candidate} {condition}: {}{}", answer.out, answer.err);
        assert!(!answer.out.is_empty());
        assert_eq!(assay(&["compare", &base, candidate]).code, Some(0));
    }
    for (candidate, words) in [
        (&worse, "worse is slower than base by more than 2 %"),
        (&maybe, "maybe is slower than base, maybe by less than 2 %"),
        (&little, "little is slower than base, but by less than 2 % (real but below δ)"),
        (&better, "better is faster than base by more than 2 %"),
    ] {
        let out = assay(&["compare", &base, candidate]).out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains(words), "{out}");
    }
    // A gate that sees nothing is not open: too few repeats, or a metric of one side only.
    for condition in ["slower", "changed:any"] {
        let answer = assay(&["compare", &base, &few, "--fail-if", condition]);
        assert_eq!(answer.code, Some(1), "{condition}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains("no row that decides has one"), "{}", answer.err);
    }
    // Turned round, the slower one gains.
    let turned = assay(&["compare", &base, &worse, "--value", "score:higher", "--fail-if", "slower"]);
    assert_eq!(turned.code, Some(0), "{}", turned.out);
    let other = assay(&["compare", &base, &worse, "--baseline", "worse", "--fail-if", "slower"]);
    assert_eq!(other.code, Some(0), "{}", other.out);
}

#[test]
fn a_gate_asks_what_is_better_and_for_something_that_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let table = |name: &str, first: &str, second: &str| {
        let rows = (0..8).map(|i| format!("a,{i},{}\nb,{i},{}\n", 200 + i % 3, 100 + i % 3));
        write(directory.path(), name, format!("arm,{first},{second}\n{}", rows.collect::<String>()))
    };
    let drop = table("drop.csv", "rep", "iops_mean");
    let of = |file: &str, value: &str| {
        assay(&["compare", file, "--arm", "arm", "--value", value, "--fail-if", "slower"])
    };
    assert_eq!(of(&drop, "iops_mean").code, Some(3), "half of the IOPS are slower");
    let unknown = table("unknown.csv", "rep", "score");
    let refused = of(&unknown, "score");
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains("whether more or less of 'score' is better"), "{}", refused.err);
    assert_eq!(of(&unknown, "score:higher").code, Some(3));
    assert_eq!(of(&unknown, "score:lower").code, Some(0));
    // Different rows: nothing stands in both arms.
    let apart = write(directory.path(), "apart.csv", "arm,row,ms\na,x,1\na,x,2\nb,y,1\nb,y,2\n");
    let nothing = assay(&["compare", &apart, "--arm", "arm", "--row", "row", "--value", "ms"]);
    assert_eq!(nothing.code, Some(1), "{}", nothing.out);
    assert!(nothing.err.contains("nothing was compared"), "{}", nothing.err);
    // What is not known passes a gate for slower, and the log says so.
    let noisy =
        (0..6).map(|i| format!("a,{}\nb,{}\n", 100 + 40 * (i % 3), 110 + 45 * (i % 3))).collect::<String>();
    let noisy = write(directory.path(), "noisy.csv", format!("arm,ms\n{noisy}"));
    let passed = of(&noisy, "ms");
    assert_eq!(passed.code, Some(0));
    let said = passed.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("1 of 1 rows are undecided; slower,undecided fails"), "{said}");
}

#[test]
fn an_output_file_says_its_format_and_stdout_stays_empty() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (numbers(directory.path(), "a", 0.0), numbers(directory.path(), "b", 0.1));
    let csv = directory.path().join("r.csv");
    let answer = assay(&["compare", &a, &b, "-o", csv.to_str().unwrap()]);
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), ""));
    assert!(fs::read_to_string(&csv).unwrap().starts_with("job,metric,unit,"));
    let missing = directory.path().join("missing/r.csv");
    let nowhere = assay(&["compare", &a, &b, "-o", missing.to_str().unwrap()]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.err.contains("hint: "), "{}", nowhere.err);
}

#[test]
fn unreadable_files_of_a_directory_end_with_1_or_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    for index in 1..=3 {
        let name = directory.path().join(format!("{index}.json"));
        fs::copy(data(&format!("fio/single-4k-{index}.json")), name).unwrap();
    }
    write(directory.path(), "cut.json", fs::read(data("fio/truncated.json")).unwrap());
    write(directory.path(), "empty.json", "");
    let side = format!("after={}", directory.path().display());
    let base = data("fio/single-4k-1.json");
    let refused = assay(&["compare", &base, &side]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
    assert!(refused.err.contains("2 of 6 files cannot be used"), "{}", refused.err);
    assert!(refused.err.contains("cut.json, line ") && refused.err.contains("empty.json is empty"));
    assert!(
        refused.err.ends_with("hint: --skip-unreadable compares the others and names these\n"),
        "{}",
        refused.err
    );
    let skipped = assay(&["compare", &base, &side, "--skip-unreadable", "--format", "csv"]);
    assert_eq!(skipped.code, Some(0), "{}", skipped.err);
    assert_eq!(skipped.err.lines().filter(|line| line.starts_with("assay: left out: ")).count(), 2);
    assert!(skipped.out.contains(",single-4k-1,after,1,3,"), "{}", skipped.out);
}

#[test]
fn one_file_with_its_arms_inside_is_enough() {
    let directory = tempfile::tempdir().unwrap();
    let text = r#"{"results":[{"command":"cp a b","times":[1.0,1.01,1.02,1.03,1.04]},
        {"command":"cat a","times":[2.0,2.01,2.02,2.03,2.04]}]}"#;
    let file = write(directory.path(), "h.json", text);
    let out = ok(&["compare", &file, "--format", "csv"]);
    assert!(out.contains(",runtime,s,lower,primary,cp a b,cat a,5,5,"), "{out}");
}

type Case = (Vec<String>, &'static str);

/// Files that are no results, alone or beside a good one.
fn wrong_files(here: &Path) -> Vec<Case> {
    let good = data("fio/single-4k-1.json");
    let real = fs::read_to_string(&good).unwrap();
    let bench = data("benchstat/old.txt");
    let empty_directory = here.join("none");
    fs::create_dir(&empty_directory).unwrap();
    let file = |name: &str, text: &str| write(here, name, text);
    [
        (vec![file("empty", ""), good.clone()], "is empty"),
        (vec![file("blank", "\n# nothing\n\n"), good.clone()], "is empty"),
        (vec![file("cut.json", &real[..900]), good.clone()], "ends too early"),
        (
            vec![file("nan.json", &real.replacen(": 0.000000", ": -nan", 1)), good.clone()],
            "'-nan' where a number",
        ),
        (
            vec![
                file("neg.json", &real.replacen("\"total_ios\" : 2", "\"total_ios\" : -2", 1)),
                good.clone(),
            ],
            "cannot be negative",
        ),
        (vec![file("other.json", "{\"hello\": 1}"), good.clone()], "JSON, but not fio's"),
        (
            vec![file("nojobs.json", "{\"fio version\": \"fio-3.33\", \"jobs\": []}"), good.clone()],
            "has no 'jobs'",
        ),
        (vec![file("prose", "it was fast\n"), good.clone()], "it starts with 'it was fast'"),
        (
            vec![file("deep.json", &format!("{{\"jobname\":{}", "[".repeat(50_000))), good.clone()],
            "deep.json",
        ),
        (vec![file("text.txt", "1\n2\nthree\n"), good.clone()], "line 3: value is 'three'"),
        (vec![file("inf.txt", "1\ninf\n"), good.clone()], "line 2: value is 'inf'"),
        (vec![file("go.txt", "BenchmarkX 1 5 ns/op 7\n"), bench.clone()], "a value without a unit"),
        (vec![file("goneg.txt", "BenchmarkX 1 -5 ns/op\n"), bench.clone()], "cannot be negative"),
        (vec![file("h1.json", "{\"results\":[{\"command\":\"x\"}]}")], "has no 'times'"),
        (
            vec![file("h2.json", "{\"results\":[{\"command\":\"x\",\"times\":[-1]}]}")],
            "which no run time can be",
        ),
        (vec![file("h3.json", "{\"results\":[{\"command\":\"x\",\"times\":[1,2]}]}")], "one arm only"),
        (vec![file("h4.json", "{\"results\":[{\"command\":\"x\",\"times\":[1,")], "ends too early"),
        (vec![file("new.json", "{\"version\":99,\"assay_version\":\"9\"}")], "written by a newer assay"),
        (vec![file("old.json", "{\"version\":1,\"assay_version\":\"0\"}")], "missing field"),
        (vec![here.join("missing").to_str().unwrap().to_owned(), good.clone()], "no such file"),
        (vec![empty_directory.to_str().unwrap().to_owned(), good.clone()], "without files"),
        (vec![here.join("*.nothing").to_str().unwrap().to_owned(), good.clone()], "no file matches"),
        (vec![here.join("a[").to_str().unwrap().to_owned(), good.clone()], "glob cannot be read"),
        (vec!["/dev/null".to_owned(), good.clone()], "is a character device"),
        (vec!["12345".to_owned(), good.clone()], "assay.db"),
        (vec![good.clone()], "one arm only"),
        (vec![data("fio/failed.json"), data("fio/failed.json")], "every trial in it failed"),
    ]
    .into()
}

/// Flags that do not fit the table of fs_mark's results.
fn wrong_flags() -> Vec<Case> {
    let table = data("published/fsmark.csv");
    let line = |more: &[&str]| [&[table.as_str()], more].concat().into_iter().map(str::to_owned).collect();
    [
        (&[][..], "say which columns hold results with --value"),
        (&["--value", "seconds"], "which column tells the arms apart"),
        (&["--arm", "varient", "--value", "seconds"], "no column 'varient'; the nearest is 'variant'"),
        (&["--arm", "variant", "--value", "secs"], "no column 'secs'; the nearest is 'seconds'"),
        (&["--arm", "variant", "--row", "thread", "--value", "seconds"], "the nearest is 'threads'"),
        (&["--arm", "variant", "--value", "seconds:higer"], "did you mean 'higher'"),
        (&["--arm", "variant", "--value", "a:b:c:d"], "too many ':'"),
        (&["--arm", "variant", "--value", ":ms"], "names no column"),
        (&["--arm", "variant", "--value", "operation"], "operation is 'create', which is not a number"),
        (&["--arm-columns", "seconds"], "at least two arms"),
        (&["--arm-columns", "seconds,minutes"], "no column 'minutes'"),
        (
            &["--arm", "variant", "--value", "seconds", "--baseline", "none"],
            "no arm 'none'; the arms are async, sync",
        ),
        (&["--arm", "variant", "--value", "seconds", "--primary", "second"], "the nearest is 'seconds'"),
        (&["--arm", "variant", "--value", "seconds", "--delta", "2"], "write e.g. 2% or 0.02"),
        (&["--arm", "variant", "--value", "seconds", "--delta", "0"], "no difference is that small"),
        (&["--arm", "variant", "--value", "seconds", "--alpha", "nan"], "not a ratio"),
        (&["--arm", "variant", "--value", "seconds", "--format", "yaml"], "'yaml' is not a report format"),
        (&["--arm", "variant", "--value", "seconds", "--fail-if", "sometimes"], "possible values"),
        (&["--arm", "variant", "--arm-columns", "a,b"], "cannot be used with"),
    ]
    .into_iter()
    .map(|(more, words)| (line(more), words))
    .collect()
}

/// Tables that are wrong themselves.
fn wrong_tables(here: &Path) -> Vec<Case> {
    [
        ("long.csv", "arm,v\na,1\nb,2,3\n", "line 3: this row has 3 fields, the header has 2"),
        ("nan.csv", "arm,v\na,1\nb,NaN\n", "line 3: v is 'NaN'"),
        ("header.csv", "arm,v\n", "no rows"),
        ("blank.csv", "arm,v\na,\nb,\n", "no value was found"),
        ("same.csv", "arm,v\na,1\na,2\n", "one arm only"),
    ]
    .into_iter()
    .map(|(name, text, words)| {
        let path = write(here, name, text);
        (["--arm", "arm", "--value", "v"].map(str::to_owned).into_iter().chain([path]).collect(), words)
    })
    .collect()
}

#[test]
fn fifty_mistakes_are_answered_with_2_a_message_and_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [wrong_files(directory.path()), wrong_flags(), wrong_tables(directory.path())].concat();
    assert!(cases.len() >= 50, "{}", cases.len());
    for (arguments, words) in cases {
        let mut line = vec!["compare"];
        line.extend(arguments.iter().map(String::as_str));
        let answer = assay(&line);
        assert_eq!(answer.code, Some(2), "{line:?}: {}{}", answer.out, answer.err);
        let squeezed = answer.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed.contains(words), "{line:?}: {}", answer.err);
        assert!(squeezed.contains("hint: ") || squeezed.contains("--help"), "{line:?}: {}", answer.err);
        assert!(answer.out.is_empty() && !answer.err.contains("panicked"), "{line:?}: {}", answer.err);
    }
}

#[test]
fn a_file_without_read_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let path = sandbox.write("secret.txt", "1\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let other = sandbox.write("other.txt", "1\n");
    let arguments = ["compare", path.to_str().unwrap(), other.to_str().unwrap()];
    let output = without_privilege(&sandbox, &arguments).output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("secret.txt cannot be read: Permission denied") && said.contains("hint: "),
        "{said}"
    );
}

#[test]
fn stored_runs_are_arms_and_one_alone_is_judged_again() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("assay.db");
    let database = database.to_str().unwrap();
    let mut store = assay::store::Store::open(Path::new(database)).unwrap();
    for shift in [0.0, 0.05] {
        let text = fs::read(numbers(directory.path(), "numbers", shift)).unwrap();
        let run = assay::import::read_bytes_twice(&text, &assay::import::Columns::default()).unwrap();
        store.insert_run(&run).unwrap();
    }
    drop(store);
    let both = ok(&["compare", "old=1", "2", "--db", database, "--format", "csv"]);
    let rows: Vec<&str> = both.lines().skip(1).collect();
    // Each run's own arms have become rows.
    assert!(both.starts_with("row.arm,"), "{both}");
    assert!(rows[0].starts_with("baseline,,value,,lower,primary,old,run 2,10,10,"), "{both}");
    assert!(rows[1].starts_with("candidate,,value,,lower,primary,old,run 2,10,10,"), "{both}");
    assert!(rows.iter().all(|row| row.contains(",slower_beyond_delta,")), "{both}");
    let again = ok(&["compare", "1", "--db", database, "--format", "csv"]);
    assert!(again.contains(",value,,lower,primary,baseline,candidate,10,10,"), "{again}");
    // One level of a run beside another one's.
    let level =
        ok(&["compare", "1:arm=baseline", "new=2:arm=candidate", "--db", database, "--format", "csv"]);
    assert!(level.contains(",value,,lower,primary,\"run 1, arm=baseline\",new,10,10,"), "{level}");
    // What is left out is not missing.
    assert!(!level.contains("so_far"), "{level}");
    let alone = assay(&["compare", "1:arm=baseline", "--db", database]);
    assert_eq!(alone.code, Some(1), "{}", alone.out);
    assert!(alone.err.contains("no row has two arms"), "{}", alone.err);
    let none = assay(&["compare", "1:arm=other", "2", "--db", database]);
    assert_eq!(none.code, Some(2));
    assert!(none.err.contains("arm has no level 'other'; there are baseline, candidate"), "{}", none.err);
    let unknown = assay(&["compare", "1", "9", "--db", database]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.err.contains("no run 9") && unknown.err.contains("hint: `assay list`"),
        "{}",
        unknown.err
    );
}

#[test]
fn what_a_vary_of_one_level_set_is_a_difference_of_two_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("w.fio", "[w]\nrw=write\nsize=1m\nbs=16k\n");
    let run = |name: &str, more: &[&str]| {
        sandbox.succeed(&[&["run", "w.fio", "-q", "--aa", "--rounds", "4", "--name", name], more].concat());
    };
    run("b8", &["--vary", "bs=8k"]);
    run("b64", &["--vary", "bs=64k", "--vary", "sync=dsync"]);
    let report = sandbox.succeed(&["compare", "b8", "b64", "--verbose"]);
    for line in ["job.bs: 8k for run b8; 64k for run b64", "job.sync: not set for run b8; dsync for run b64"]
    {
        assert!(report.contains(line), "{line}: {report}");
    }
    let named = ["compare", "b8", "b64", "--primary", "w:write.clat_ns.mean"];
    assert!(sandbox.succeed(&named).contains("write.clat_ns.mean in"));
}

#[test]
fn an_arm_that_stalls_and_copies_of_a_file_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let sides = ["old", "new", "copies"].map(|side| directory.path().join(side));
    sides.iter().for_each(|side| fs::create_dir(side).unwrap());
    for index in 1..=3 {
        let text = fs::read_to_string(data(&format!("fio/single-4k-{index}.json"))).unwrap();
        let name = format!("{index}.json");
        write(&sides[0], &name, &text);
        let mut hung: serde_json::Value = serde_json::from_str(&text).unwrap();
        hung["jobs"][0]["write"] = hung["jobs"][0]["trim"].clone();
        hung["timestamp"] = index.into();
        write(&sides[1], &name, if index == 1 { text.clone() } else { hung.to_string() });
        write(&sides[2], &name, fs::read(data("fio/single-4k-1.json")).unwrap());
    }
    let [old, new, copies] = sides.map(|side| side.to_str().unwrap().to_owned());
    let stalled = ok(&["compare", &old, &new, "--verbose"]);
    assert!(stalled.contains("job 'j' did no I/O"), "{stalled}");
    let copied = ok(&["compare", &old, &copies, "--format", "csv"]);
    let bw = copied.lines().find(|line| line.starts_with(",write.bw,")).unwrap();
    assert!(bw.contains(",old,copies,3,1,"), "{bw}");
    let told = ok(&["compare", &old, &copies, "--verbose"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("2 files are byte for byte the same as another of its side, and left out"),
        "{told}"
    );
}

#[test]
fn no_gate_turns_on_a_direction_that_a_name_does_not_tell() {
    let directory = tempfile::tempdir().unwrap();
    let lines: String = (0..8).map(|i| format!("a,{0},{0}\nb,{1},{1}\n", 50 + i, 70 + i)).collect();
    let table = write(directory.path(), "t.csv", format!("arm,hit_pct,files_s\n{lines}"));
    let of =
        |value: &str| assay(&["compare", &table, "--arm", "arm", "--value", value, "--fail-if", "slower"]);
    let unsaid = of("hit_pct");
    assert_eq!(unsaid.code, Some(2), "{}", unsaid.out);
    assert!(
        unsaid.err.contains("nothing says whether more or less of 'hit_pct' is better"),
        "{}",
        unsaid.err
    );
    assert_eq!(of("files_s").code, Some(0), "b is faster");
    assert_eq!(of("hit_pct:lower").code, Some(3));
}
