//! Tests of experiments as a whole.

use std::path::Path;

use super::*;
use crate::catalog::EngineKind;
use crate::catalog::StopRule;

const FULL: &str = r#"
name = "direct-vs-buffered"
job_text = """
[w]
rw=randwrite
size=${SIZE}
"""
compare = "cache"
primary = "write.bw"
before = "sync"
timeout = "5m"
[target]
directory = "/mnt/test"
[variables]
SIZE = "64m"
[stop]
max_rounds = 20
delta = "3%"
alpha = 0.01
time_budget = "10m"
[[factor]]
name = "bs"
levels = [4096, "64k"]
[[factor]]
name = "cache"
[[factor.level]]
label = "buffered"
set = { end_fsync = 1, "job.direct" = false }
[[factor.level]]
label = "direct"
set = { direct = 1 }
[simulated]
bw = 5e8
effects = { "cache=direct" = 0.05 }
"#;

fn toml(text: &str) -> Result<Experiment, ExperimentErrors> {
    Experiment::from_toml(text, "e.toml", Path::new("/base"), &CommandLine::default())
}

fn job(vary: &[&str]) -> Result<Experiment, ExperimentErrors> {
    let line =
        CommandLine { vary: vary.iter().map(|text| (*text).to_owned()).collect(), ..CommandLine::default() };
    Experiment::from_job("[a]\nsize=1m\n", "dir/a.fio", Path::new("dir"), &line)
}

fn set(key: &str, value: &str, namespace: Namespace) -> Assignment {
    Assignment { namespace, key: key.to_owned(), value: value.to_owned() }
}

#[test]
fn a_full_file_is_read() {
    let experiment = toml(FULL).unwrap();
    assert_eq!(experiment.engine, EngineKind::Native);
    assert_eq!((experiment.compare, experiment.primary.as_deref()), (1, Some("write.bw")));
    assert_eq!(
        experiment.factors[0].levels[0],
        Level { label: "4096".into(), set: vec![set("bs", "4096", Namespace::Any)] }
    );
    let buffered = &experiment.factors[1].levels[0];
    assert_eq!(buffered.set, [set("end_fsync", "1", Namespace::Any), set("direct", "0", Namespace::Job)]);
    assert_eq!((experiment.stop.max_rounds, experiment.stop.delta, experiment.stop.alpha), (20, 0.03, 0.01));
    assert_eq!((experiment.stop.time_budget_s, experiment.trial_timeout_s), (Some(600.0), Some(300.0)));
    assert_eq!(experiment.variables, [("SIZE".to_owned(), "64m".to_owned())]);
    assert_eq!(experiment.simulated.as_ref().map(|simulated| simulated.effects.len()), Some(1));
    assert!(experiment.job.is_some_and(|job| job.text.starts_with("[w]\n")));
}

#[test]
fn it_survives_being_stored() {
    let experiment = toml(FULL).unwrap();
    let json = serde_json::to_string(&experiment).unwrap();
    assert_eq!(serde_json::from_str::<Experiment>(&json).unwrap(), experiment);
}

#[test]
fn a_job_with_vary_is_an_experiment() {
    let experiment = job(&["direct=0,1", "bs=4k,64k"]).unwrap();
    assert_eq!((experiment.name.as_str(), experiment.compare), ("a", 0));
    assert_eq!(experiment.factors.len(), 2);
    assert_eq!(experiment.stop, StopRule::default());
    // A single level is a fixed setting beside something that varies; the arms are what varies.
    assert_eq!(job(&["direct=1", "bs=4k,64k"]).unwrap().compare, 1);
}

#[test]
fn a_command_is_an_experiment() {
    let line = CommandLine { vary: vec!["clients=1,8".to_owned()], ..CommandLine::default() };
    let argv = ["prog".to_owned(), "${clients}".to_owned()];
    let experiment = Experiment::from_command(&argv, &line).unwrap();
    assert_eq!((experiment.engine, experiment.name.as_str()), (EngineKind::Command, "prog"));
    assert_eq!(experiment.command, argv);
    assert_eq!(experiment.job, None);
}

#[test]
fn the_command_line_lies_over_the_file() {
    let line = CommandLine {
        vary: vec!["bs=1k,2k,4k".to_owned(), "iodepth=1,2".to_owned()],
        rounds: Some(7),
        engine: Some("fio".to_owned()),
        compare: Some("bs".to_owned()),
        ..CommandLine::default()
    };
    let experiment = Experiment::from_toml(FULL, "e.toml", Path::new(""), &line).unwrap();
    let names: Vec<&str> = experiment.factors.iter().map(|factor| factor.name.as_str()).collect();
    assert_eq!(names, ["bs", "cache", "iodepth"]);
    assert_eq!(experiment.factors[0].levels.len(), 3);
    assert_eq!((experiment.compare, experiment.engine), (0, EngineKind::Fio));
    assert_eq!(experiment.stop.rounds, Some(7));
}

#[test]
fn the_command_line_chooses_labelled_levels_of_the_file() {
    let cache = |vary: &str| {
        let (vary, compare) = (vec![vary.to_owned()], Some("bs".to_owned()));
        let line = CommandLine { vary, compare, ..CommandLine::default() };
        Experiment::from_toml(FULL, "e.toml", Path::new(""), &line).unwrap().factors.swap_remove(1)
    };
    let direct = Level { label: "direct".into(), set: vec![set("direct", "1", Namespace::Any)] };
    let buffered = vec![set("end_fsync", "1", Namespace::Any), set("direct", "0", Namespace::Job)];
    let swapped = cache("cache=direct,buffered");
    assert_eq!(swapped.levels, [direct.clone(), Level { label: "buffered".into(), set: buffered }]);
    assert_eq!(cache("cache=direct").levels, [direct]);
    // One that is no label: all of them are values of the key.
    let other = cache("cache=direct,4k");
    assert_eq!(other.levels[0].set, [set("cache", "direct", Namespace::Any)]);
    assert_eq!(other.levels[1].set, [set("cache", "4k", Namespace::Any)]);
}

#[test]
fn metrics_that_a_person_names_are_shown() {
    let line = CommandLine {
        metrics: vec!["tps=tps: (.*)".to_owned(), "p99=p99: (.*):ms".to_owned()],
        aa: true,
        ..CommandLine::default()
    };
    let experiment = Experiment::from_command(&["true".to_owned()], &line).unwrap();
    assert_eq!(experiment.show, ["tps", "p99"]);
    let line = CommandLine { after: Some("true".to_owned()), ..line };
    let of_job = Experiment::from_job("[a]\nsize=1m\n", "a.fio", Path::new(""), &line).unwrap();
    assert_eq!(of_job.show, ["tps", "p99"]);
}

#[test]
fn a_a_needs_nothing_that_varies() {
    let line = CommandLine { aa: true, ..CommandLine::default() };
    let experiment = Experiment::from_job("[a]\nsize=1m\n", "a.fio", Path::new(""), &line).unwrap();
    assert_eq!((experiment.aa, experiment.stop.rounds), (true, Some(10)));
    let line = CommandLine { aa: true, max_rounds: Some(8), ..CommandLine::default() };
    let experiment = Experiment::from_job("[a]\nsize=1m\n", "a.fio", Path::new(""), &line).unwrap();
    assert_eq!(experiment.stop.rounds, Some(8));
}

#[test]
fn metrics_keep_their_colons() {
    let text = "command = [\"prog\"]\n[[metric]]\nname = \"tps\"\nregex = 'tps: ([0-9.]+)'\nunit = \"/s\"\n\
                [[factor]]\nname = \"n\"\nlevels = [1, 2]\n";
    assert_eq!(toml(text).unwrap().metrics, ["tps=tps: ([0-9.]+):/s"]);
    assert!(
        toml(&text.replace("\"/s\"", "\"parsec\""))
            .unwrap_err()
            .to_string()
            .contains("unknown unit 'parsec'")
    );
}

#[test]
fn mistakes_carry_their_line_and_what_would_be_right() {
    let base = "job_text = \"[a]\\nsize=1m\"\n[[factor]]\nname = \"direct\"\nlevels = [0, 1]\n";
    for (text, expected) in [
        ("nmae = \"x\"\n", "e.toml:1: unknown key 'nmae'; did you mean name?"),
        ("name = 5\n", "e.toml:1: name is a whole number; write a text in quotes"),
        ("engine = \"natvie\"\n", "e.toml:1: no engine 'natvie'; did you mean native?"),
        ("engine = \"command\"\n", "engine command needs a command"),
        ("compare = \"bs\"\n", "e.toml:1: compare names no factor 'bs'; there are direct"),
        ("stop = { delta = 0 }\n", "delta: '0' is 0, and no difference is that small"),
        ("stop = { delta = \"p99=0\" }\n", "e.toml:1: delta: 'p99=0' is 0"),
        ("stop = { rounds = 9, anytime = true }\n", "e.toml:1: anytime and a fixed number of rounds exclude"),
        ("stop = { exact = true, anytime = true }\n", "anytime and exact exclude each other"),
        (
            "keep_traces = true\nobserve = [\"fs\"]\n",
            "traces are kept of what blocks watches; add --observe blocks",
        ),
        ("stop = { delta = 2 }\n", "delta: '2' is 200%"),
        ("stop = { alpha = \"x\" }\n", "is not a ratio"),
        ("stop = { max_rounds = 3 }\n", "max_rounds is 3; write 4 to 120"),
        ("stop = { rounds = 0 }\n", "rounds is 0"),
        (
            "stop = { max_rounds = 9, rounds = 5 }\n",
            "e.toml:1: rounds asks for exactly so many rounds, max_rounds for as",
        ),
        ("stop = { time_budget = \"10 parsecs\" }\n", "e.toml:1: 'parsecs'"),
        ("target = { kernel = \"x\" }\n", "kernel=x: no such file; write a vmlinuz"),
        ("target = { directroy = \"x\" }\n", "unknown key 'directroy' in [target]; did you mean directory?"),
        ("simulated = { bw = 1e9, effects = { \"direct=2\" = 0.1 } }\n", "no level 'direct=2'"),
        ("simulated = { cv = nan }\n", "cv is a fraction; write a number"),
        (
            "metric = [{ name = \"m\", regex = \"(x)\" }]\n",
            "metrics are read from what a command or a hook prints",
        ),
        ("command = [\"x\"]\n", "a command is given, but engine native runs none"),
        ("job = \"x.fio\"\n", "both job and job_text"),
        ("name = \n", "e.toml:1: not TOML"),
    ] {
        let message = toml(&format!("{text}{base}")).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn mistakes_of_factors() {
    for (factor, expected) in [
        ("name = \"a\"\nlevels = [1, 1]", "e.toml:2: level 1 of a is given twice"),
        ("name = \"a\"\nlevels = [1]", "e.toml:2: a has one level"),
        ("name = \"a\"\nlevels = []", "factor 'a' has no levels"),
        ("levels = [1, 2]", "e.toml:2: a factor without a name"),
        ("name = \"a\"\n[[factor.level]]\nset = { x = 1 }", "e.toml:4: a level without a label"),
        (
            "name = \"a\"\nlevels = [1, 2]\n[[factor]]\nname = \"a\"\nlevels = [1, 2]",
            "e.toml:5: factor 'a' is given twice",
        ),
        ("name = \"a\"\nlevels = [1, [2]]", "levels is a list; write a text or a number"),
    ] {
        let message =
            toml(&format!("job_text = \"[a]\\nsize=1m\"\n[[factor]]\n{factor}\n")).unwrap_err().to_string();
        assert!(message.contains(expected), "{factor}: {message}");
    }
}

#[test]
fn plain_values_under_level_are_one_mistake() {
    let factor = "[[factor]]\nname = \"a\"\nlevel = [\"0\", \"1\", 2]\n";
    let message = toml(&format!("job_text = \"[a]\\nsize=1m\"\n{factor}")).unwrap_err().to_string();
    assert!(message.starts_with("e.toml:4: level is for [[factor.level]] with label and set"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn mistakes_of_the_command_line() {
    for (vary, expected) in [
        (&["direct=0,0"][..], "--vary direct=0,0: level 0 of direct is given twice"),
        (&["direct=0"], "direct has one level"),
        (&["direct=0,1", "direct=0,1"], "direct is varied twice"),
        (&["direct"], "names no levels"),
        (&[], "nothing varies"),
    ] {
        let message = job(vary).unwrap_err().to_string();
        assert!(message.contains(expected), "{vary:?}: {message}");
    }
}

#[test]
fn files_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let load = |name: &str| Experiment::load(&directory.path().join(name), &CommandLine::default());
    std::fs::write(directory.path().join("binary.fio"), [0xff, 0xfe, 0]).unwrap();
    std::fs::write(
        directory.path().join("lost.toml"),
        "job = \"gone.fio\"\n[[factor]]\nname=\"a\"\nlevels=[1,2]\n",
    )
    .unwrap();
    assert!(load("none.fio").unwrap_err().to_string().contains("No such file"));
    assert!(load(".").unwrap_err().to_string().contains("is a directory"));
    assert!(load("binary.fio").unwrap_err().to_string().contains("not a text file"));
    let message = load("lost.toml").unwrap_err().to_string();
    assert!(message.contains("lost.toml:1: job") && message.contains("gone.fio: No such file"), "{message}");
}

#[test]
fn includes_are_kept_with_the_experiment() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("more.inc"), "bs=8k\n").unwrap();
    std::fs::write(directory.path().join("a.fio"), "[a]\nsize=1m\ninclude more.inc\n").unwrap();
    let line = CommandLine { aa: true, ..CommandLine::default() };
    let experiment = Experiment::load(&directory.path().join("a.fio"), &line).unwrap();
    assert_eq!(experiment.job.map(|job| job.text), Some("[a]\nsize=1m\nbs=8k\n".to_owned()));
}

const SIZED: &str = r#"
command = ["x", "${n}", "${SIZE}"]
timeout = "5m"
variables = { SIZE = "1g", OTHER = 1 }
stop = { rounds = 9 }
[[factor]]
name = "n"
level = [{ label = "one", set = { n = 1 } }, { label = "two", set = { n = 2 } }, { label = "three", set = { n = 3 } }]
[[factor]]
name = "m"
levels = [1, 2]
[quick]
variables = { SIZE = "8m" }
stop = { max_rounds = 4 }
[[quick.factor]]
name = "n"
levels = ["one", "three"]
[recipe]
asks = ["Why?"]
time = "1 h"
stand_in = "m"
otherwise = [["ram:1g", "kernel=newest"]]
"#;

fn sized(line: &CommandLine) -> Result<Experiment, ExperimentErrors> {
    Experiment::from_toml(SIZED, "e.toml", Path::new("/base"), line)
}

fn names(experiment: &Experiment) -> Vec<String> {
    let told = |factor: &Factor| {
        let labels: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
        format!("{}={}", factor.name, labels.join(","))
    };
    experiment.factors.iter().map(told).collect()
}

#[test]
fn quick_takes_the_place_of_what_it_names() {
    let whole = sized(&CommandLine::default()).unwrap();
    assert_eq!((whole.stop.rounds, names(&whole)), (Some(9), vec!["n=one,two,three".into(), "m=1,2".into()]));
    let quick = sized(&CommandLine { quick: true, ..CommandLine::default() }).unwrap();
    assert_eq!((quick.stop.rounds, quick.stop.max_rounds), (None, 4));
    assert_eq!(quick.trial_timeout_s, Some(300.0));
    assert_eq!(names(&quick), ["n=one,three", "m=1,2"]);
    assert_eq!(quick.factors[0].levels[1].set, [set("n", "3", Namespace::Any)], "labels keep what they set");
    let mut variables = quick.variables;
    variables.sort();
    assert_eq!(variables, [("OTHER".into(), "1".into()), ("SIZE".into(), "8m".into())]);
    let line = CommandLine { quick: true, ..CommandLine::default() };
    // A truth value, too, either way.
    let off = "lead_in = false\nkeep_disturbed = true\n".to_owned()
        + &SIZED.replace("[quick]", "[quick]\nlead_in = true\nkeep_disturbed = false");
    let both = [false, true].map(|quick| {
        let line = CommandLine { quick, ..CommandLine::default() };
        let experiment = Experiment::from_toml(&off, "e", Path::new(""), &line).unwrap();
        (experiment.no_lead_in, experiment.keep_disturbed)
    });
    assert_eq!(both, [(true, true), (false, false)]);
    let full =
        SIZED.replace("levels = [\"one\", \"three\"]", "level = [{ label = \"one\", set = { n = 9 } }]");
    let quick = Experiment::from_toml(&full, "e", Path::new(""), &line).unwrap();
    assert_eq!(quick.factors[0].levels[0].set, [set("n", "9", Namespace::Any)]);
    let error = Experiment::from_toml("command = [\"x\"]\naa = true", "e", Path::new(""), &line).unwrap_err();
    assert!(error.to_string().contains("there is no [quick] table"), "{error}");
    let error = toml("[quick]\nquick = 1\n[recipe]\nask = 1").unwrap_err().to_string();
    assert!(error.contains("unknown key 'quick' in [quick]"), "{error}");
    assert!(error.contains("unknown key 'ask' in [recipe]; did you mean asks?"), "{error}");
}

#[test]
fn quick_has_its_own_metric_of_a_name_and_its_own_rounds() {
    let text = "command = [\"x\", \"${n}\"]\nstop = { anytime = true }\n[[factor]]\nname = \"n\"\nlevels = [1, 2]\n[[metric]]\nname = \"tps\"\nregex = \"a ([0-9]+)\"\n\
                [quick]\nstop = { rounds = 4 }\n[[quick.metric]]\nname = \"tps\"\nregex = \"b ([0-9]+)\"\n";
    let of = |quick: bool| {
        let line = CommandLine { quick, ..CommandLine::default() };
        Experiment::from_toml(text, "e", Path::new(""), &line).unwrap()
    };
    let (whole, quick) = (of(false), of(true));
    assert!(whole.stop.anytime && whole.metrics.len() == 1 && whole.metrics[0].contains("a ("), "{whole:?}");
    assert_eq!((quick.stop.anytime, quick.stop.rounds, quick.metrics.len()), (false, Some(4), 1));
    assert!(quick.metrics[0].contains("b ("), "{quick:?}");
}

#[test]
fn designs_are_there_when_they_are_asked_for() {
    let text = format!(
        "{SIZED}\n[design]\ncompare = \"design\"\ntarget = {{ kernel = \"newest\", source = \"newest\" }}\n\
         [[design.factor]]\nname = \"n\"\nlevels = [\"two\"]\n\
         [[design.factor]]\nname = \"m\"\nlevel = [{{ label = \"none\", set = {{}} }}]\n\
         [[design.factor]]\nname = \"design\"\n\
         level = [{{ label = \"today\", set = {{ patch = \"none\" }} }}, {{ label = \"alone\", set = {{ patch = \"assay:dio-append\" }} }}]\n"
    );
    let of = |vary: &[&str]| {
        let vary = vary.iter().map(|text| (*text).to_owned()).collect();
        Experiment::from_toml(&text, "e", Path::new(""), &CommandLine { vary, ..CommandLine::default() })
    };
    let plain = of(&[]).unwrap();
    assert_eq!(names(&plain), ["n=one,two,three", "m=1,2"]);
    assert!(!plain.wants_newest_source());
    for (asked, expected) in
        [("design=all", "design=today,alone"), ("design=alone,today", "design=alone,today")]
    {
        let mut experiment = of(&[asked]).unwrap();
        assert_eq!(names(&experiment), ["n=two", expected], "m is taken out");
        assert_eq!(experiment.factors[experiment.compare].name, "design");
        assert!(experiment.wants_newest_source() && experiment.wants_newest_kernel());
        experiment.newest_source(Path::new("/k/linux-source.deb"));
        assert!(!experiment.wants_newest_source() && experiment.wants_newest_kernel());
    }
    let error = of(&["design=other"]).unwrap_err().to_string();
    assert!(error.contains("the designs are today, alone, or all"), "{error}");
}

#[test]
fn what_the_command_line_adds_to_a_recipe_is_what_is_asked() {
    let vary = |texts: &[&str]| {
        let vary = texts.iter().map(|text| (*text).to_owned()).collect();
        let experiment = sized(&CommandLine { vary, ..CommandLine::default() }).unwrap();
        (experiment.factors[experiment.compare].name.clone(), names(&experiment).len())
    };
    assert_eq!(vary(&[]), ("n".to_owned(), 2));
    assert_eq!(vary(&["n=one,two"]), ("n".to_owned(), 2));
    assert_eq!(vary(&["engine=command,simulated"]), ("engine".to_owned(), 2), "m stood in for it");
    assert_eq!(vary(&["engine=command,simulated", "m=2,3"]), ("engine".to_owned(), 3));
    assert_eq!(vary(&["engine=command"]), ("n".to_owned(), 3), "one level asks nothing");
    let about = RecipeTable::of(SIZED, "e.toml").unwrap().unwrap();
    assert_eq!(about.otherwise, [["ram:1g", "kernel=newest"]]);
    assert_eq!((about.time.as_str(), about.asks.len()), ("1 h", 1));
    assert_eq!(RecipeTable::of("aa = true", "e").unwrap(), None);
}

#[test]
fn a_patch_needs_neither_source_nor_device_to_be_named() {
    let of = |vary: &[&str], target: &[&str]| {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let line = CommandLine { vary: texts(vary), target: texts(target), ..CommandLine::default() };
        let mut experiment = sized(&line).unwrap();
        experiment.complete();
        let disk = experiment.target.device.as_ref().map(ToString::to_string);
        (experiment.wants_newest_source(), disk)
    };
    let disk = || Some("virtio_blk:1g".to_owned());
    let patch = "patch=none,assay:dio-append";
    assert_eq!(of(&[patch], &["fs=xfs"]), (true, disk()));
    assert_eq!(of(&[patch, "fs=xfs,f2fs"], &["kernel=newest"]), (true, disk()));
    assert_eq!(of(&[patch], &["fs=xfs", "ram:300m"]), (true, Some("ram:300m".to_owned())));
    assert_eq!(of(&[patch, "device=ram:300m,virtio_blk:1g"], &["fs=xfs"]), (true, None));
    assert_eq!(of(&[patch], &["fs=tmpfs"]), (true, None));
    assert_eq!(of(&["rev=v1,v2"], &["fs=xfs"]), (false, None), "nobody knows of which repository");
    assert_eq!(of(&["kernel=host,newest"], &["fs=xfs"]), (false, None), "this machine has no such disk");
    assert_eq!(of(&["fs=xfs,ext4"], &[]), (false, None), "a device of this machine is named by its owner");
}

#[test]
fn the_newest_kernel_is_found_by_others() {
    let target = vec!["kernel=newest".to_owned()];
    let vary = vec!["kernel=host,newest".to_owned()];
    let mut experiment = sized(&CommandLine { target, vary, ..CommandLine::default() }).unwrap();
    assert!(experiment.wants_newest_kernel());
    experiment.newest_kernel(Path::new("/k/vmlinuz"));
    assert!(!experiment.wants_newest_kernel());
    assert_eq!(experiment.target.guest.kernel.as_deref(), Some(Path::new("/k/vmlinuz")));
    let levels = &experiment.factors[experiment.compare].levels;
    assert_eq!((levels[0].set[0].value.as_str(), levels[1].set[0].value.as_str()), ("host", "/k/vmlinuz"));
}

#[test]
fn kernels_of_a_release_are_found_by_others() {
    let target = vec!["kernel=6.1.0-57-amd64".to_owned()];
    let vary = vec!["kernel=host,6.1.0-57-amd64,6.12.9".to_owned()];
    let mut experiment = sized(&CommandLine { target, vary, ..CommandLine::default() }).unwrap();
    assert_eq!(experiment.kernel_releases(), ["6.1.0-57-amd64", "6.12.9"]);
    experiment.kernel_of_release("6.1.0-57-amd64", Path::new("/k/vmlinuz"));
    assert_eq!(experiment.kernel_releases(), ["6.12.9"]);
    assert_eq!(experiment.target.guest.kernel.as_deref(), Some(Path::new("/k/vmlinuz")));
    let levels = &experiment.factors[experiment.compare].levels;
    let values: Vec<&str> = levels.iter().map(|level| level.set[0].value.as_str()).collect();
    assert_eq!(values, ["host", "/k/vmlinuz", "6.12.9"]);
}

#[test]
fn settings_of_a_tool_that_no_arm_runs_are_a_mistake() {
    let two = "[[factor]]\nname = \"x.clients\"\nlevels = [1, 2]\n".replace("x.", "dbench.");
    let message = |text: &str| toml(text).unwrap_err().to_string();
    let both = message(&format!("[dbench]\ntime = 2\n[fs_mark]\nfiles = 9\n{two}"));
    assert!(both.contains("fs_mark has settings here, but engine dbench runs"), "{both}");
    let with_job = message(&format!("job_text = \"[w]\\nsize=1m\\n\"\n[dbench]\ntime = 2\n{two}"));
    assert_eq!(with_job.matches("dbench has settings here, but engine native runs").count(), 1, "{with_job}");
    let varied = job(&["dbench.clients=1,8"]).unwrap_err().to_string();
    assert!(varied.contains("dbench has settings here"), "{varied}");
    // A level may run it.
    let engines = "[dbench]\ntime = 2\n[fs_mark]\nfiles = 9\n[[factor]]\nname = \"engine\"\nlevels = [\"dbench\", \"fs_mark\"]\n";
    assert_eq!(toml(engines).unwrap().engine, EngineKind::Dbench);
    let engines = job(&["engine=native,fio"]).unwrap();
    assert_eq!(engines.engine, EngineKind::Native);
}

#[test]
fn what_a_job_takes_from_the_environment_becomes_its_own() {
    let text = "aa = true\njob_text = \"[a]\\nsize=1m\\ndescription=${PATH} ${HERE}\\n# ${HOME}\\n\"\n[variables]\nHERE = \"x\"\n";
    let line = CommandLine::default();
    let mut experiment = Experiment::from_toml(text, "test", Path::new(""), &line).unwrap();
    experiment.complete();
    let path = std::env::var("PATH").unwrap();
    assert_eq!(experiment.variables, [("HERE".to_owned(), "x".to_owned()), ("PATH".to_owned(), path)]);
}
