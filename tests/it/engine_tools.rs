//! dbench, fs_mark and xfs_io as engines: the real tools through the real program (`make test` installs them), and the
//! readers of what they print under random damage.

use assay::catalog::{outcomes_from_dbench, outcomes_from_fs_mark, outcomes_from_xfs_io, xfs_io_transfers};
use assay::engine::{self, EngineKind};
use assay::record::{Run, Status};
use proptest::prelude::*;

use crate::sandbox::{Sandbox, errors};
use crate::spoiled::own;
use crate::target_bench;

/// Whether the engine can be used here.
fn here(kind: EngineKind, version: &str) -> bool {
    match engine::of(kind).probe() {
        Ok(probe) => {
            assert!(probe.version.starts_with(version) && probe.path.is_some(), "{probe:?}");
            true
        }
        Err(error) => {
            crate::tools::skipped(&error.to_string());
            false
        }
    }
}

/// The values of a metric in all trials, with each trial's first level.
fn values(run: &Run, name: &str) -> Vec<(u32, f64)> {
    let at = run.metrics.iter().position(|metric| metric.job.is_empty() && metric.name == name);
    let at = at.unwrap_or_else(|| panic!("no {name} among {:?}", run.metrics)) as u32;
    let of = |trial: &assay::record::Trial| {
        assert_eq!(trial.status, Status::Done);
        (run.cells[trial.cell as usize].levels[0], trial.value(at).unwrap())
    };
    run.trials.iter().map(of).collect()
}

/// Nothing but the store is left in the sandbox.
fn put_back(sandbox: &Sandbox, besides: &[&str]) {
    let left: Vec<String> =
        sandbox.names().into_iter().filter(|name| !name.starts_with("assay.db")).collect();
    assert_eq!(left, besides);
}

#[test]
fn dbench_runs_with_its_clients_as_a_factor() {
    if !here(EngineKind::Dbench, "dbench ") {
        return;
    }
    let sandbox = Sandbox::new();
    let line =
        ["run", "--engine", "dbench", "--vary", "clients=1,2", "--vary", "dbench.time=2s", "--rounds", "1"];
    let report = sandbox.succeed(&line);
    assert!(report.contains("clients") && report.contains("bw"), "{report}");
    let run = sandbox.export("1");
    assert!(run.engine.starts_with("dbench "), "{}", run.engine);
    assert!(values(&run, "bw").iter().all(|(_, bw)| *bw > 1e4), "{:?}", values(&run, "bw"));
    assert!(values(&run, "lat_ns.max").iter().all(|(_, ns)| *ns > 0.0));
    // Each client begins with one Mkdir of its own directory.
    let made = values(&run, "Mkdir.count");
    let of = |arm: u32| made.iter().find(|(level, _)| *level == arm).unwrap().1;
    assert!(of(0) >= 1.0 && of(1) >= 2.0, "{made:?}");
    assert!(values(&run, "runtime").iter().all(|(_, s)| (2.0..30.0).contains(s)));
    put_back(&sandbox, &[]);
}

#[test]
fn fs_mark_runs_from_an_experiment_file() {
    if !here(EngineKind::FsMark, "fs_mark 3") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write(
        "e.toml",
        "[fs_mark]\nfiles = 40\nsize = \"4k\"\nthreads = 2\nsync = 0\n[stop]\nrounds = 2\n\
         [[factor]]\nname = \"sync\"\nlevels = [1, 0]\n",
    );
    let report = sandbox.succeed(&["run", "e.toml"]);
    assert!(report.contains("files_per_s"), "{report}");
    let run = sandbox.export("1");
    assert!(values(&run, "files").iter().all(|(_, files)| *files == 80.0));
    assert!(values(&run, "files_per_s").iter().all(|(_, rate)| *rate > 1.0));
    // fsync is called in the first arm only.
    let fsync = run.metrics.iter().position(|metric| metric.name == "fsync.lat_ns.mean").unwrap() as u32;
    for trial in &run.trials {
        let synced = run.cells[trial.cell as usize].levels[0] == 0;
        assert_eq!(trial.value(fsync).is_some(), synced, "{trial:?}");
    }
    put_back(&sandbox, &["e.toml"]);
}

/// A metric of a job in each trial, with the trial's first level; none where the trial has no such value.
fn of_job(run: &Run, job: &str, name: &str) -> Vec<(u32, f64)> {
    let at = run.metrics.iter().position(|metric| metric.job == job && metric.name == name);
    let Some(at) = at else { return Vec::new() };
    let value = |trial: &assay::record::Trial| {
        assert_eq!(trial.status, Status::Done, "{trial:?}");
        Some((run.cells[trial.cell as usize].levels[0], trial.value(at as u32)?))
    };
    run.trials.iter().filter_map(value).collect()
}

#[test]
fn the_phases_of_fs_mark_are_rows_of_the_report() {
    if !here(EngineKind::FsMark, "fs_mark 3") {
        return;
    }
    // Only root may give files away.
    let (phases, names) = if rustix::process::geteuid().is_root() {
        ("create,chown,unlink", vec!["create", "chown", "unlink"])
    } else {
        ("create,unlink", vec!["create", "unlink"])
    };
    let sandbox = Sandbox::new();
    sandbox.write(
        "e.toml",
        &format!(
            "[fs_mark]\nfiles = 30\nsize = 0\nsync = 0\nthreads = 2\nphases = \"{phases}\"\n[stop]\nrounds = 2\n\
             [[factor]]\nname = \"directory_per_thread\"\nlevels = [0, 1]\n"
        ),
    );
    let report = sandbox.succeed(&["run", "e.toml"]);
    let run = sandbox.export("1");
    let mut sum = vec![0.0; run.trials.len()];
    for name in names {
        assert!(report.contains(&format!("job {name}: ")), "{report}");
        assert!(of_job(&run, name, "total_ios").iter().all(|(_, files)| *files == 60.0));
        let times = of_job(&run, name, "runtime");
        assert_eq!(times.len(), 4);
        for (sum, ((_, seconds), (_, rate))) in
            sum.iter_mut().zip(times.iter().zip(of_job(&run, name, "iops")))
        {
            assert!(*seconds > 0.0 && (rate * seconds - 60.0).abs() < 1e-6);
            *sum += seconds;
        }
        // Single calls of what assay does itself: their mean lies within, and all of them within the phase.
        let of = |what: &str| of_job(&run, name, &format!("lat_ns.{what}"));
        assert_eq!(of("mean").is_empty(), name == "create");
        for (((_, low), (_, mean)), ((_, high), (_, seconds))) in
            of("min").iter().zip(of("mean")).zip(of("max").iter().zip(times))
        {
            assert!(
                *low > 0.0 && *low <= mean && mean <= *high && *high <= seconds * 1e9,
                "{low} {mean} {high}"
            );
        }
    }
    let memory = values(&run, "max_rss");
    assert!(memory.len() == 4 && memory.iter().all(|(_, bytes)| *bytes > 100_000.0), "{memory:?}");
    for ((_, whole), sum) in values(&run, "runtime").iter().zip(sum) {
        assert!((whole - sum).abs() < 1e-9);
    }
    assert!(run.trials.iter().all(|trial| own(&trial.notes).is_empty()), "{:?}", run.trials);
    put_back(&sandbox, &["e.toml"]);
}

/// A name that a person gives to a number says nothing about operations.
#[test]
fn a_commands_metrics_are_no_operations() {
    if !target_bench::can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let metrics = ["--metric", "files=n ([0-9]+)", "--metric", "operations=n ([0-9]+)", "--primary", "files"];
    let command = ["--", "sh", "-c", "echo n ${n}; sync"];
    let target = ["-t", "loop:32m", "-t", "fs=ext4"];
    let run = ["run", "--vary", "n=5,6", "--rounds", "1", "-q"];
    target_bench::succeed(&sandbox, &[&run[..], &metrics, &target, &command].concat());
    let run = sandbox.export("1");
    assert_eq!(values(&run, "dev.flushes").len(), 2);
    assert!(values(&run, "files").iter().all(|(arm, files)| *files == f64::from(*arm) + 5.0));
    assert!(run.metrics.iter().all(|metric| metric.name != "dev.flushes_per_op"), "{:?}", run.metrics);
}

/// The device's counters for each phase, under a filesystem that flushes at each fsync, with and without a volatile cache.
#[test]
fn a_phase_counts_the_flushes_that_the_write_cache_is_asked_for() {
    if !here(EngineKind::FsMark, "fs_mark 3") || !target_bench::can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write(
        "e.toml",
        "[fs_mark]\nfiles = 20\nsize = \"4k\"\nsync = 1\nphases = \"create,unlink\"\n[target]\nfs = \"ext4\"\n[stop]\nrounds = 1\n\
         [[factor]]\nname = \"sysfs:queue/write_cache\"\nlevels = [\"write back\", \"write through\"]\n",
    );
    let own = target_bench::Loop::new(&sandbox, 64);
    let cache = || std::fs::read_to_string(own.sys().join("queue/write_cache")).unwrap();
    let before = cache();
    let device = own.path.to_str().unwrap();
    target_bench::succeed(&sandbox, &["run", "e.toml", "-t", device, "--destroy", device]);
    assert_eq!(cache(), before);
    let run = sandbox.export("1");
    let facts = |level: u32| {
        let trial =
            run.trials.iter().find(|trial| run.cells[trial.cell as usize].levels[0] == level).unwrap();
        run.facts[trial.facts.unwrap() as usize].get("queue.write_cache").unwrap().to_owned()
    };
    assert_eq!([facts(0), facts(1)], ["write back", "write through"]);
    for (level, flushes) in of_job(&run, "create", "dev.flushes") {
        // One fsync a file, each a commit of the journal with at least one flush.
        assert!(if level == 0 { flushes >= 20.0 } else { flushes == 0.0 }, "{level}: {flushes}");
    }
    let create = of_job(&run, "create", "dev.flushes");
    let unlink = of_job(&run, "unlink", "dev.flushes");
    for ((_, whole), ((_, create), (_, unlink))) in
        values(&run, "dev.flushes").iter().zip(create.iter().zip(&unlink))
    {
        // ext4 commits its journal every five seconds, also between the phases.
        assert!((0.0..=2.0).contains(&(whole - create - unlink)), "{whole} {create} {unlink}");
        assert!(unlink <= create);
    }
    for ((_, per_op), (_, whole)) in
        values(&run, "dev.flushes_per_op").iter().zip(values(&run, "dev.flushes"))
    {
        assert!((per_op - whole / 40.0).abs() < 1e-12);
    }
    assert_eq!(of_job(&run, "create", "dev.flushes_per_op").len(), 2);
    put_back(&sandbox, &["e.toml", "own.img"]);
}

const XFS_IO: &str = "primary = \"write.iops\"\n[xfs_io]\nprepare = [\"pwrite 0 1m\", \"fsync\"]\n\
                      commands = [\"pwrite -b ${bs} 0 256k\", \"fsync\", \"pread 0 1m\"]\n[stop]\nrounds = 1\n\
                      [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"64k\"]\n";

#[test]
fn xfs_io_runs_a_script_whose_words_vary() {
    if !here(EngineKind::XfsIo, "xfs_io ") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", XFS_IO);
    sandbox.succeed(&["run", "e.toml"]);
    let run = sandbox.export("1");
    let mut ios = values(&run, "write.total_ios");
    ios.sort_by_key(|(arm, _)| *arm);
    assert_eq!(ios, [(0, 64.0), (1, 4.0)]);
    // What was prepared is there to be read, and is not counted.
    assert!(values(&run, "read.io_bytes").iter().all(|(_, bytes)| *bytes == 1_048_576.0));
    assert!(values(&run, "write.io_bytes").iter().all(|(_, bytes)| *bytes == 262_144.0));
    assert!(values(&run, "runtime").iter().all(|(_, s)| *s > 0.0));
    // Whole commands as levels.
    let line =
        ["run", "e.toml", "--vary", "xfs_io.commands=pwrite 0 64k,pwrite 0 64k; fsync", "--vary", "bs=4k"];
    sandbox.succeed(&line);
    let run = sandbox.export("2");
    assert!(values(&run, "write.io_bytes").iter().all(|(_, bytes)| *bytes == 65_536.0));
    put_back(&sandbox, &["e.toml"]);
}

#[test]
fn a_failing_script_fails_its_trials_with_the_tools_words() {
    if !here(EngineKind::XfsIo, "xfs_io ") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", &XFS_IO.replace("\"pread 0 1m\"", "\"pread 64m 1m\""));
    let output = sandbox.run(&["run", "e.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("xfs_io moved nothing at offset 67108864"), "{}", errors(&output));
    // xfs_io says it and ends with 0.
    sandbox.write("e.toml", &XFS_IO.replace("\"fsync\",", "\"mwrite 0 4k\","));
    let output = sandbox.run(&["run", "e.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("xfs_io says: no mapped regions"), "{}", errors(&output));
    // What is no command of it is known before anything is run.
    sandbox.write("e.toml", &XFS_IO.replace("\"fsync\",", "\"fsink\","));
    let output = sandbox.run(&["run", "e.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("(fsync is the"), "{}", errors(&output));
}

#[test]
fn a_wrong_setting_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[a]\nrw=write\nsize=1m\n");
    sandbox.write("e.toml", "[dbench]\nclient = 1\ntime = 1\n");
    sandbox.write("f.toml", "[dbench]\ntime = 1\nloadfile = \"none.txt\"\n");
    sandbox.write("n.toml", "[fs_mark]\nsize = \"${n}\"\n");
    for (line, words) in [
        (&["run", "e.toml", "--aa"][..], "unknown key 'client' in [dbench]; did you mean clients?"),
        (&["run", "f.toml", "--aa"], "f.toml:2: dbench.time: '1' is not a whole number of seconds from 2"),
        (&["run", "f.toml", "--aa"], "there is no file /"),
        (&["run", "n.toml", "--vary", "n=4k,x"], "fs_mark.size: 'x' is not a size"),
        (
            &["run", "n.toml", "--vary", "n=4k,8k", "--vary", "phases=unlink"],
            "'unlink' is not create, then any of xattr, chown",
        ),
        (
            &["run", "--engine", "dbench", "--vary", "clients=1,0"],
            "dbench.clients: '0' is not a whole number",
        ),
        (
            &["run", "--engine", "dbench", "--vary", "cleints=1,2"],
            "did you mean clients (a setting of the engine)",
        ),
        (&["run", "--engine", "xfs_io", "--vary", "direct=0,1"], "needs [xfs_io] commands"),
        (
            &["run", "--engine", "xfs_io", "--vary", "commands=pwrite 0 4k,inject x"],
            "'inject x': xfs_io only reads",
        ),
        (&["run", "--engine", "fs_mark", "job.fio", "--aa"], "engine fs_mark runs no job"),
    ] {
        let output = sandbox.run(line);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {}", errors(&output));
        let said = errors(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{line:?}: {}", errors(&output));
        assert!(errors(&output).contains("hint: "), "{line:?}: {}", errors(&output));
    }
}

#[test]
fn a_missing_tool_is_refused_with_its_package() {
    let sandbox = Sandbox::new();
    let line = ["run", "--engine", "dbench", "--vary", "clients=1,2"];
    let output = sandbox.assay(&line).env("PATH", sandbox.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("apt-get install dbench"), "{}", errors(&output));
}

#[test]
fn outputs_that_exist_are_compared() {
    let sandbox = Sandbox::new();
    let data = |name: &str| format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let (one, four) = (data("dbench/clients-1.txt"), data("dbench/clients-4.txt"));
    // The same outputs on both sides: equal, and a row for each number of clients.
    let all = data("dbench/clients-*.txt");
    let json = sandbox.succeed(&["compare", &format!("a={all}"), &format!("b={all}"), "--format", "json"]);
    assert!(json.contains("\"clients\"") && json.contains("\"bw\""), "{json}");
    // No number of clients is in both.
    let apart = sandbox.run(&["compare", &one, &four]);
    assert_eq!(apart.status.code(), Some(1), "{}", errors(&apart));
    assert!(String::from_utf8_lossy(&apart.stdout).contains("clients"), "{}", errors(&apart));
    let marks = data("fs_mark/loops.txt");
    assert!(
        sandbox.succeed(&["compare", &format!("a={marks}"), &format!("b={marks}")]).contains("files_per_s")
    );
    let writes = data("xfs_io/three-writes.txt");
    let text = sandbox.succeed(&["compare", &format!("a={writes}"), &format!("b={writes}")]);
    assert!(text.contains("write.bw"), "{text}");
    let output = sandbox.run(&["compare", &one, &data("dbench/no-space.txt")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("No space left on device"), "{}", errors(&output));
}

/// Real outputs of all three tools.
fn captures() -> Vec<String> {
    let files = glob::glob(&format!("{}/tests/data/*/*.txt", env!("CARGO_MANIFEST_DIR"))).unwrap().flatten();
    let ours = |path: &std::path::PathBuf| {
        let parent = path.parent().and_then(|parent| parent.file_name()).unwrap_or_default();
        ["dbench", "fs_mark", "xfs_io"].iter().any(|tool| parent == *tool)
    };
    let texts: Vec<String> = files.filter(ours).map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(texts.len() >= 10, "{}", texts.len());
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_outputs_never_panic_and_all_values_are_finite(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..30, "[-0-9:./% \n#a-z]{0,8}"), 0..6),
    ) {
        let captures = captures();
        let mut text: Vec<char> = captures[which.index(captures.len())].chars().collect();
        for (at, cut, word) in damage {
            let at = at.index(text.len() + 1);
            let end = (at + cut).min(text.len());
            text.splice(at..end, word.chars());
        }
        let text: String = text.into_iter().collect();
        let _ = xfs_io_transfers(&text);
        for read in [outcomes_from_dbench, outcomes_from_fs_mark, outcomes_from_xfs_io] {
            for trial in read(&text).unwrap_or_default() {
                let finite = trial.outcome.samples.iter().all(|s| s.value.is_finite() && s.value >= 0.0);
                prop_assert!(finite, "{:?}", trial.outcome.samples);
            }
        }
    }
}
