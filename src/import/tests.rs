//! Whole inputs into runs.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::record::{Source, Status, Trial};
use crate::units::Better;

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn inputs(specs: &[&str]) -> Vec<Input> {
    specs
        .iter()
        .map(|spec| {
            let (label, rest) = split_label(spec);
            Input::Files(find_files(rest, label).unwrap())
        })
        .collect()
}

fn run(specs: &[&str], options: &Options) -> Run {
    load(inputs(specs), options).unwrap().run
}

fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_directory_of_fio_files_is_an_arm_varying_options_are_rows() {
    let before = format!("before={}", data("fio/single-*.json"));
    let after = format!("after={}", data("fio/single-4k-*.json"));
    let run = run(&[&before, &after], &Options::default());
    assert_eq!(run.arms(), ["before", "after"]);
    assert_eq!(run.source, Source::Imported("fio json".to_owned()));
    assert_eq!(run.design.factors[1].name, "bs");
    assert_eq!(run.design.factors[1].levels, ["4k", "64k"]);
    assert_eq!(run.cells.len(), 3);
    assert_eq!(run.trials.len(), 9);
    assert!(run.metrics.iter().all(|metric| metric.job.is_empty()));
    assert!(run.trials.iter().all(|trial| trial.started_unix_ns > 0 && trial.facts.is_some()));
    assert_eq!(
        run.trials.iter().filter(|trial| trial.cell == 0).map(|trial| trial.round).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert!(
        run.facts
            .iter()
            .all(|facts| facts.get("fio.bs").is_none() && facts.get("fio.version") == Some("fio-3.33"))
    );
}

#[test]
fn options_of_sections_that_vary_are_rows() {
    let directory = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data("fio/groups.json")).unwrap();
    assert!(text.contains("\"fsync\" : \"8\""));
    let other = text.replace("\"fsync\" : \"8\"", "\"fsync\" : \"32\"");
    for (side, of_side) in [("a", [&text, &other]), ("b", [&text, &other])] {
        fs::create_dir(directory.path().join(side)).unwrap();
        for (number, text) in of_side.into_iter().enumerate() {
            write(&directory.path().join(side), &format!("{number}.json"), text);
        }
    }
    let specs = ["a", "b"].map(|side| format!("{side}={}/*.json", directory.path().join(side).display()));
    let run = run(&[&specs[0], &specs[1]], &Options::default());
    assert_eq!((run.design.factors[1].name.as_str(), run.cells.len()), ("fsync[w]", 4));
    assert_eq!(run.design.factors[1].levels, ["8", "32"]);
}

#[test]
fn several_jobs_keep_their_names() {
    let groups = data("fio/groups.json");
    let run = run(&[&format!("a={groups}"), &format!("b={groups}")], &Options::default());
    assert!(run.metrics.iter().any(|metric| metric.job == "rw" && metric.name == "read.bw"));
    assert_eq!(run.trials.len(), 2);
}

#[test]
fn single_jobs_of_different_names_are_compared_and_noted() {
    let directory = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data("fio/single-4k-1.json")).unwrap();
    let renamed =
        write(directory.path(), "r.json", &text.replace("\"jobname\" : \"j\"", "\"jobname\" : \"k\""));
    let run = run(
        &[&format!("a={}", data("fio/single-4k-1.json")), &format!("b={}", renamed.display())],
        &Options::default(),
    );
    assert!(run.metrics.iter().all(|metric| metric.job.is_empty()));
    assert!(run.notes.iter().any(|note| note.text.contains("'j' in a, 'k' in b")), "{:?}", run.notes);
}

#[test]
fn numbers_and_their_direction() {
    let directory = tempfile::tempdir().unwrap();
    let a = write(directory.path(), "a", "# ms\n1.5\n2.5 # warm\n");
    let b = write(directory.path(), "b", "3\n");
    let specs = [a.to_str().unwrap(), b.to_str().unwrap()];
    let plain = run(&specs, &Options::default());
    assert_eq!((plain.trials.len(), plain.metrics[0].name.as_str()), (3, "value"));
    assert!(plain.notes[0].text.starts_with("plain numbers: less is taken as better"));
    let mut options = Options::default();
    options.columns.values.push(ValueColumn::parse_spec("score:points:higher").unwrap());
    let said = run(&specs, &options);
    assert_eq!((said.metrics[0].name.as_str(), said.metrics[0].better), ("score", Better::Higher));
    assert!(said.notes.is_empty());
    let broken = write(directory.path(), "c", "1\nx\n");
    let error = load(inputs(&[specs[0], broken.to_str().unwrap()]), &Options::default()).unwrap_err();
    assert!(error.to_string().ends_with("c, line 2: value is 'x', which is not a number"), "{error}");
}

#[test]
fn what_value_says_of_no_unit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let go = write(directory.path(), "go", "BenchmarkA 1 5 ns/op 7 p99\nBenchmarkA 1 6 ns/op 8 p99\n");
    let plain = write(directory.path(), "plain", "1\n2\n");
    let load = |path: &Path, values: &[&str]| {
        let mut options = Options::default();
        options.columns.values = values.iter().map(|spec| ValueColumn::parse_spec(spec).unwrap()).collect();
        let path = path.to_str().unwrap();
        load(inputs(&[&format!("a={path}"), &format!("b={path}")]), &options)
    };
    for (path, values, words) in [
        (&go, &["tps:higher"][..], "--value: no benchmark has the unit 'tps'; there are ns/op, p99"),
        (&plain, &["x:higher", "y:higher"], "--value: plain numbers are one column, and 'y' is a second one"),
    ] {
        let error = load(path, values).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    // To name a unit that is there says nothing of it and harms nothing.
    assert_eq!(load(&go, &["ns/op"]).unwrap().run.metrics.len(), 2);
    // A unit in which the numbers of a benchmark are.
    let run = load(&go, &["p99:ms", "ns/op:lower"]).unwrap().run;
    let p99 = run.metrics.iter().position(|metric| metric.name == "p99").unwrap();
    assert_eq!(
        (run.metrics[p99].unit.clone(), run.metrics[p99].better),
        (crate::units::Unit::Nanoseconds, Better::Lower)
    );
    assert_eq!(run.trials[0].values[1].1, 7e6);
}

#[test]
fn hyperfine_commands_are_arms_alone_and_rows_beside_others() {
    let directory = tempfile::tempdir().unwrap();
    let text =
        r#"{"results":[{"command":"a","times":[1.0,2.0],"exit_codes":[0,1]},{"command":"b","times":[3.0]}]}"#;
    let path = write(directory.path(), "h.json", text);
    let path = path.to_str().unwrap();
    let alone = run(&[path], &Options::default());
    assert_eq!(
        (alone.arms().to_vec(), alone.design.factors.len()),
        (vec!["a".to_owned(), "b".to_owned()], 1)
    );
    assert!(!alone.trials[1].counts());
    let both = run(&[&format!("x={path}"), &format!("y={path}")], &Options::default());
    assert_eq!(both.design.factors[1].levels, ["a", "b"]);
    // `hyperfine -i`: what ends with 1 each time was meant to, and what a signal ended was not.
    let ignored = r#"{"results":[{"command":"a","times":[1.0,2.0,3.0],"exit_codes":[1,1,null]}]}"#;
    let one = write(directory.path(), "i.json", ignored);
    let run = run(&[&format!("x={path}"), &format!("y={}", one.display())], &Options::default());
    let counts: Vec<bool> = run.trials.iter().map(Trial::counts).collect();
    // … and where the other arm ended with 0 it did not do the same work.
    assert_eq!(counts, [true, false, true, false, false, false]);
    assert!(
        run.notes.iter().any(|note| note.text.contains("exit code 1 as a rule where")),
        "{:?}",
        run.notes
    );
    assert_eq!(run.design.factors[1].levels, ["a", "b"], "one command matches its own among several");
}

#[test]
fn columns_are_arms_in_their_order_and_in_the_unit_of_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let table = write(directory.path(), "w.csv", "rep,old,new\n1,,5.1\n2,10.2,5.2\n3,10.1,5.0\n");
    let mut options = Options::default();
    options.columns.arm_columns =
        vec![["old", "new:ms"].map(|spec| ValueColumn::parse_spec(spec).unwrap()).to_vec()];
    let run = run(&[table.to_str().unwrap()], &options);
    assert_eq!(run.arms(), ["old", "new"], "a field that is missing makes no other baseline");
    let values: Vec<f64> = run.trials.iter().map(|trial| trial.values[0].1).collect();
    assert_eq!(values, [5.1e6, 10.2e6, 5.2e6, 10.1e6, 5.0e6]);
}

#[test]
fn columns_that_no_input_has_are_refused() {
    let mut options = Options::default();
    options.columns.values = vec![ValueColumn::parse_spec("read.iops:higher").unwrap()];
    let before = format!("before={}", data("fio/single-*.json"));
    let after = format!("after={}", data("fio/single-4k-*.json"));
    let error = load(inputs(&[&before, &after]), &options).map(drop).unwrap_err().to_string();
    assert!(error.contains("--value is of tables, and fio json has no columns"), "{error}");
}

#[test]
fn the_published_f2fs_table_keeps_its_scale() {
    let mut options = Options::default();
    options.columns.arm = Some("variant".to_owned());
    options.columns.rows = vec!["write".to_owned(), "io_size".to_owned()];
    options.columns.values = vec![ValueColumn::parse_spec("kb_s:higher").unwrap()];
    let csv = data("published/f2fs-dio-serialize.csv");
    let first = run(&[&csv], &options);
    assert_eq!(first.arms(), ["serialize all", "serialize none", "serialize partial"]);
    assert_eq!(first.trials[0].values, [(0, 45637.0)]);
    assert_eq!(first.cells.len(), 16);
    assert!(first.notes.is_empty(), "{:?}", first.notes);
    options.baseline = Some("serialize none".to_owned());
    let turned = run(&[&csv], &options);
    assert_eq!(turned.arms(), ["serialize none", "serialize all", "serialize partial"]);
    assert_eq!(turned.arm_of(turned.trials[0].cell), 1);
    options.baseline = Some("none".to_owned());
    let error = load(inputs(&[&csv]), &options).unwrap_err();
    assert!(error.to_string().contains("there is no arm 'none'; the arms are serialize all"), "{error}");
}

#[test]
fn an_export_comes_back_as_it_was_and_its_damage_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let groups = data("fio/groups.json+");
    let original = run(&[&format!("a={groups}"), &format!("b={groups}")], &Options::default());
    let text = serde_json::to_string_pretty(&original).unwrap();
    let path = write(directory.path(), "e.json", &text);
    assert_eq!(load_export(&path).unwrap(), original);
    assert_eq!(run(&[path.to_str().unwrap()], &Options::default()), original);
    let turned =
        run(&[path.to_str().unwrap()], &Options { baseline: Some("b".to_owned()), ..Options::default() });
    assert_eq!((turned.arms()[0].as_str(), turned.arm_of(turned.trials[0].cell)), ("b", 1));
    // Beside another input all its arms become rows.
    let pair =
        run(&[&format!("old={}", path.display()), &format!("new={}", path.display())], &Options::default());
    assert_eq!(
        (pair.arms(), pair.design.factors[1].levels.as_slice()),
        (&["old".to_owned(), "new".to_owned()][..], original.arms())
    );

    // What was tried twice is one trial of its round, as in the run's own report, also where it was tried again much later.
    let mut retried = original.clone();
    let first = retried.trials.iter().position(|trial| trial.cell == 0).unwrap();
    let again = Trial { attempt: 1, ..retried.trials[first].clone() };
    retried.trials[first].status = Status::Skipped { reason: "at first".to_owned() };
    retried.trials.push(again);
    let text_of_retried = serde_json::to_string(&retried).unwrap();
    let tried_twice = write(directory.path(), "r.json", &text_of_retried);
    let pair = run(
        &[&format!("old={}", tried_twice.display()), &format!("new={}", path.display())],
        &Options::default(),
    );
    let mut places: Vec<(u32, u32, u32)> =
        pair.trials.iter().map(|trial| (trial.cell, trial.round, trial.attempt)).collect();
    assert_eq!(places.iter().filter(|place| place.2 == 1).count(), 1, "{places:?}");
    places.retain(|place| place.2 == 0);
    let all = places.len();
    places.sort_unstable();
    places.dedup();
    assert_eq!((places.len(), all), (2 * original.trials.len(), 2 * original.trials.len()));

    for (from, to, words) in [
        ("\"version\": 1", "\"version\": 9", "newer assay: record version 9"),
        ("\"compare\": 0", "\"compare\": 5", "it compares a factor that it does not have"),
        ("\"cell\": 1", "\"cell\": 77", "is of cell 77, which does not exist"),
    ] {
        let damaged = write(directory.path(), "d.json", &text.replacen(from, to, 1));
        let error = load_export(&damaged).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let cut = write(directory.path(), "cut.json", &text[..text.len() - 10]);
    assert!(load_export(&cut).unwrap_err().to_string().contains("ends too early"));
    let other = load_export(Path::new(&groups)).unwrap_err();
    assert!(other.to_string().contains("this is fio json, not what"), "{other}");
}

#[test]
fn unreadable_files_of_a_directory_are_all_named_or_left_out() {
    let directory = tempfile::tempdir().unwrap();
    for (name, from) in [("1.json", "fio/single-4k-1.json"), ("2.json", "fio/single-4k-3.json")] {
        fs::copy(data(from), directory.path().join(name)).unwrap();
    }
    write(directory.path(), "3.json", &fs::read_to_string(data("fio/truncated.json")).unwrap());
    write(directory.path(), "4.json", "");
    let side = format!("b={}", directory.path().display());
    let specs = [data("fio/single-4k-2.json"), side];
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let error = load(inputs(&specs), &Options::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("2 of 5 files cannot be used")
            && text.contains("3.json, line ")
            && text.contains("4.json is empty"),
        "{text}"
    );
    assert!(error.hint().unwrap().contains("--skip-unreadable"));
    let loaded = load(inputs(&specs), &Options { skip_unreadable: true, ..Options::default() }).unwrap();
    assert_eq!((loaded.run.trials.len(), loaded.skipped.len()), (3, 2));
}

#[test]
fn what_cannot_be_compared_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let one = data("fio/single-4k-1.json");
    let failed = data("fio/failed.json");
    let error = load(inputs(&[&one]), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("holds one arm only"), "{error}");
    let error =
        load(inputs(&[&format!("a={failed}"), &format!("b={failed}")]), &Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("every trial in it failed, the first with: job 'j' ended with error 1"),
        "{error}"
    );
    let nested = Input::Files(Side {
        label: "d".to_owned(),
        files: vec![directory.path().to_owned()],
        several: false,
        notes: Vec::new(),
    });
    let error = load(vec![nested], &Options::default()).unwrap_err();
    assert!(error.to_string().ends_with("is a directory where a file should be"), "{error}");
    let device = load(inputs(&["/dev/zero", &one]), &Options::default()).unwrap_err();
    assert!(device.to_string().contains("is a character device"), "{device}");
}

#[test]
fn the_csv_export_is_read_back_as_arms_and_rows() {
    let directory = tempfile::tempdir().unwrap();
    let text = "trial,round,position,attempt,status,direct,bs,job,metric,unit,value\n\
                0,0,0,0,done,0,4k,,write.bw,B/s,100\n0,0,0,0,done,0,4k,,usr_cpu,s,0.5\n\
                1,0,1,0,failed,1,4k,,,,\n2,0,1,1,done,1,4k,,write.bw,B/s,120\n3,1,0,0,excluded,1,4k,,write.bw,B/s,90\n";
    let path = write(directory.path(), "e.csv", text);
    let run = run(&[path.to_str().unwrap()], &Options::default());
    assert_eq!(
        (run.arms(), run.design.factors[1].name.as_str()),
        (&["0".to_owned(), "1".to_owned()][..], "bs")
    );
    assert_eq!(run.trials.len(), 4);
    assert!(run.design.paired);
    assert_eq!(run.trials[0].values, [(0, 100.0), (1, 0.5)]);
    assert_eq!(run.trials.iter().filter(|trial| trial.counts()).count(), 2);
    assert_eq!(
        (&run.metrics[0].unit, run.metrics[0].better),
        (&crate::units::Unit::BytesPerSecond, Better::Higher)
    );
    // A score: what its unit does not tell, the table does.
    let score = text.replace("unit,value", "unit,better,value").replace(",1,4k,,,,\n", ",1,4k,,,,,\n");
    let score = score.replace("write.bw,B/s,", "score,,higher,").replace("usr_cpu,s,", "usr_cpu,s,lower,");
    let path = write(directory.path(), "s.csv", &score);
    let run = self::run(&[path.to_str().unwrap()], &Options::default());
    assert_eq!(
        run.metrics.iter().map(|metric| metric.better).collect::<Vec<_>>(),
        [Better::Higher, Better::Lower]
    );
    assert_eq!(run.trials[2].values, [(0, 120.0)]);
    let wrong = write(directory.path(), "w.csv", &score.replace("score,,higher,120", "score,,more,120"));
    assert!(load_export(&wrong).unwrap_err().to_string().contains("neither higher nor lower"));
    let cut = write(directory.path(), "c.csv", &text.replace("0.5", "x"));
    let error = load_export(&cut).unwrap_err();
    assert!(error.to_string().ends_with("c.csv, line 3: value is 'x', which is not a number"), "{error}");
}

#[test]
fn the_only_job_may_be_named_in_the_deciding_metric() {
    let (before, after) = (data("fio/single-4k-1.json"), data("fio/single-4k-2.json"));
    let primary = |asked: &str| {
        let options = Options { primary: Some(asked.to_owned()), ..Options::default() };
        run(&[&before, &after], &options).design.primary.unwrap_or_default()
    };
    assert_eq!(primary("j:write.bw,j:write.clat_ns.p99"), "write.bw,write.clat_ns.p99");
    assert_eq!(primary("j:write.bw,write.bw"), "write.bw");
    assert_eq!(primary("other:write.bw"), "other:write.bw", "nobody's: whoever checks it says so");
}
