//! Tests of plans as a whole.

use std::path::PathBuf;

use super::*;
use crate::catalog::EngineKind;
use crate::experiment::CommandLine;

mod deciding;

const JOB: &str = "[global]\nrw=write\nsize=${SIZE}\n[a]\nbs=4k\n[b]\nbs=8k\nstonewall\n";

fn experiment(job: &str, line: &CommandLine) -> Experiment {
    let toml = format!("job_text = '''\n{job}'''\n[variables]\nSIZE = \"1m\"\n");
    Experiment::from_toml(&toml, "e.toml", Path::new("/"), line).unwrap()
}

fn vary(levels: &[&str]) -> CommandLine {
    CommandLine { vary: levels.iter().map(|text| (*text).to_owned()).collect(), ..CommandLine::default() }
}

fn plan(job: &str, levels: &[&str]) -> Result<Plan, PlanError> {
    Plan::new(&experiment(job, &vary(levels)), 1, Path::new("/"), "own")
}

fn text(plan: &Plan, cell: usize) -> &str {
    plan.cells[cell].job_text.as_deref().unwrap()
}

#[test]
fn a_fio_option_is_set_in_every_job() {
    let plan = plan(JOB, &["direct=0,1"]).unwrap();
    assert_eq!(plan.cells.len(), 2);
    assert_eq!(
        text(&plan, 1),
        "[global]\nrw=write\nsize=1m\n\n[a]\nbs=4k\ndirect=1\n\n[b]\nbs=8k\nstonewall\ndirect=1\n"
    );
    assert_eq!(plan.cells[1].label, "direct=1");
    assert_eq!(
        plan.cells[1].variables,
        [("SIZE", "1m"), ("direct", "1")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

#[test]
fn options_are_for_a_filesystem_that_a_cell_has() {
    let both = ["fs=xfs,ext4", "device=loop:1g", "mkfs.xfs=-m reflink=0", "target.mount.ext4=noatime"];
    let cells = plan(JOB, &both).unwrap().cells;
    let options = |cell: usize| (cells[cell].target.mkfs.join(" "), cells[cell].target.mount.join(","));
    assert_eq!([options(0), options(1)].map(|(mkfs, mount)| mkfs + &mount), ["-m reflink=0", "noatime"]);
    for (levels, words) in [
        (
            &["fs=ext4,btrfs", "device=loop:1g", "mkfs.xfs=-K"][..],
            "mkfs.xfs is given, but no cell has fs=xfs",
        ),
        (&["mount.xfs=default,noatime"], "mount.xfs is given, but no cell has fs=xfs"),
        (&["mkfs.zfs=a,b"], "mkfs.zfs: assay makes no zfs; write one of mkfs.xfs, mkfs.ext4"),
        (
            &["fs=xfs,ext4", "device=loop:1g", "mkfs.xfs=a", "target.mkfs.xfs=b"],
            "mkfs.xfs is set by two factors",
        ),
    ] {
        let said = plan(JOB, levels).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
    let aa = CommandLine { aa: true, ..vary(&["fs=ext4,xfs", "device=loop:1g", "mkfs.xfs=-K"]) };
    assert!(
        Plan::new(&experiment(JOB, &aa), 1, Path::new("/"), "own").is_ok(),
        "it is for a level that is left out"
    );
}

#[test]
fn a_log_is_of_one_filesystem_at_a_time() {
    let on = ["fs=xfs,ext4", "device=loop:1g", "log=/dev/no"];
    assert!(plan(JOB, &on).is_ok());
    let said = plan(JOB, &[&on[..], &["fresh=round"]].concat()).unwrap_err().to_string();
    assert!(said.contains("/dev/no cannot hold what several levels put on it beyond a trial"), "{said}");
    let kernel = concat!("kernel=", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let guests = ["dm=none,crypt", "device=virtio_blk:1g", kernel, "fs=xfs"];
    assert!(plan(JOB, &guests).is_ok(), "made anew for each trial");
    let said = plan(JOB, &[&guests[..], &["fresh=round"]].concat()).unwrap_err().to_string();
    assert!(said.contains("virtio_blk:1g cannot hold what several levels put on it"), "{said}");
    let said = plan(JOB, &["fs=xfs,btrfs", "device=loop:1g", "log=loop:128m"]).unwrap_err().to_string();
    assert!(said.contains("btrfs has no log on another device, only XFS and ext4 have one"), "{said}");
}

#[test]
fn a_variable_precedes_an_option_and_that_a_setting() {
    let named = plan("[a]\nsize=1m\nbs=${bs}\ndirectory=/x\n", &["bs=4k,8k"]).unwrap();
    assert!(text(&named, 1).contains("bs=8k\n") && text(&named, 1).matches("bs=").count() == 1);
    let option = plan("[a]\nsize=1m\n", &["directory=/x,/y"]).unwrap();
    assert_eq!(
        option.cells[1].directory,
        PathBuf::from("/y/own"),
        "a setting, although fio has an option of this name"
    );
    assert!(!text(&option, 1).contains("directory"));
    let option = plan("[a]\nsize=1m\n", &["job.directory=/x,y"]).unwrap();
    assert!(text(&option, 0).contains("directory=/x") && text(&option, 1).contains("directory=/y"));
    assert_eq!(option.cells[1].directory, PathBuf::from("/own"));
    let setting = plan("[a]\nsize=1m\n", &["target.directory=/x,/y"]).unwrap();
    assert!(!text(&setting, 1).contains("directory"));
    assert_eq!(setting.cells[1].directory, PathBuf::from("/y/own"));
}

#[test]
fn the_levels_cross_with_the_last_factor_fastest() {
    let plan = plan(JOB, &["direct=0,1", "SIZE=1m,2m,4m"]).unwrap();
    let labels: Vec<&str> = plan.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "direct=0 SIZE=1m", "direct=0 SIZE=2m", "direct=0 SIZE=4m", "direct=1 SIZE=1m",
            "direct=1 SIZE=2m", "direct=1 SIZE=4m"
        ]
    );
    assert_eq!(plan.cells[5].levels, [1, 2]);
    assert_eq!(plan.trials_at_most(), 180);
}

#[test]
fn a_level_may_set_several_things() {
    let toml = "job_text = \"[a]\\nsize=1m\\nrw=write\"\n[[factor]]\nname = \"cache\"\n[[factor.level]]\nlabel = \"buffered\"\n\
                set = { end_fsync = 1 }\n[[factor.level]]\nlabel = \"direct\"\nset = { direct = 1, \"target.directory\" = \"/d\" }\n";
    let experiment = Experiment::from_toml(toml, "e.toml", Path::new("/"), &CommandLine::default()).unwrap();
    let plan = Plan::new(&experiment, 1, Path::new("/"), "own").unwrap();
    assert_eq!(text(&plan, 0), "[a]\nsize=1m\nrw=write\nend_fsync=1\n");
    assert_eq!(text(&plan, 1), "[a]\nsize=1m\nrw=write\ndirect=1\n");
    assert_eq!(plan.cells[1].directory, PathBuf::from("/d/own"));
    assert_eq!(
        plan.files.iter().map(|file| file.path.to_str().unwrap()).collect::<Vec<_>>(),
        ["/d/own/a.0.0", "/own/a.0.0"]
    );
}

#[test]
fn keys_that_name_nothing_get_the_nearest_that_do() {
    for (key, expected) in [
        (
            "drect=0,1",
            "drect: no ${drect}, no fio option and no setting of this name; did you mean direct (a fio option)",
        ),
        ("SIEZ=1m,2m", "did you mean SIZE (a variable) or size (a fio option)"),
        ("target.directroy=a,b", "directroy: no setting of this name; did you mean directory (a setting)?"),
        ("job.kernel=a,b", "kernel: no ${kernel} and no fio option"),
        ("kernel=a,b", "kernel=a: no such file; write a vmlinuz"),
        (
            "block=4k,8k",
            "block: no ${block}, no fio option and no setting of this name; did you mean bs (a fio option)?",
        ),
        ("queue-depth=1,8", "did you mean iodepth (a fio option)?"),
        ("wal.fsync=0,1", "wal.fsync: SECTION:fsync sets fsync in one section, and the job has a, b"),
        ("schedular=none,bfq", "did you mean scheduler (a setting)"),
        (
            "zzzzzzzzzzzzz=1,2",
            "zzzzzzzzzzzzz: no ${zzzzzzzzzzzzz}, no fio option and no setting of this name",
        ),
    ] {
        let message = plan(JOB, &[key]).unwrap_err().to_string();
        assert!(message.contains(expected), "{key}: {message}");
    }
}

#[test]
fn a_level_that_the_shell_would_not_see_is_told() {
    let message = |before: &str| {
        let line = CommandLine { before: Some(before.to_owned()), ..vary(&["n=1,2"]) };
        Plan::new(&experiment(JOB, &line), 1, Path::new("/"), "own").unwrap_err().to_string()
    };
    assert!(message("sysctl vm.x=$n").contains("n: $n is left to the shell; write ${n} where"));
    assert!(message("echo $node").contains("no ${n}, no fio option"), "another name");
}

#[test]
fn what_only_fio_has_is_found_before_anything_runs() {
    let error = plan(JOB, &["ioengine=psync,posixaio"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("ioengine=posixaio: ioengine: the native engine does not have 'posixaio'"),
        "{error}"
    );
    let crossed = plan(JOB, &["ioengine=psync,posixaio", "bs=4k,8k"]).unwrap_err();
    assert!(crossed.to_string().ends_with("(with ioengine=posixaio bs=4k and 1 more)"), "{crossed}");
    assert_eq!(error.hint, "--engine fio runs it".into());
    let everywhere = plan("[a]\nsize=1m\nzonemode=zbd\n", &["direct=0,1"]).unwrap_err();
    assert_eq!(everywhere.problems, ["e.toml:3: zonemode=zbd: the native engine does not have this option"]);
    let line = CommandLine { engine: Some("fio".to_owned()), ..vary(&["ioengine=psync,posixaio"]) };
    let fio = Plan::new(&experiment(JOB, &line), 1, Path::new("/"), "own").unwrap();
    assert_eq!((fio.tools.as_slice(), fio.files_known), (&["fio".to_owned()][..], false));
}

#[test]
fn values_that_cannot_be_are_found_in_their_cell() {
    for (levels, expected) in [
        ("bs=4k,4q", "bs=4q: bs: 'q' in '4q' is not a unit of size; write k, m, g, t or p"),
        ("engine=native,rocket", "engine=rocket: no such engine"),
        ("engine=native,command", "engine=command: the experiment has no command to run: write it behind --"),
    ] {
        let message = plan(JOB, &[levels]).unwrap_err().to_string();
        assert!(message.contains(expected), "{levels}: {message}");
    }
    assert!(
        plan(JOB, &["direct=0,1", "job.direct=1,0"]).unwrap_err().to_string().contains("set by two factors")
            && plan(JOB, &["direct=0,1", "buffered=0,1"])
                .unwrap_err()
                .to_string()
                .contains("set by two factors")
            && plan(JOB, &["bs=4k,8k", "bsrange=1k-4k,8k-16k"])
                .unwrap_err()
                .to_string()
                .contains("two factors")
    );
    assert!(
        plan("[a]\nsize=${ASSAY_TEST_NO}\n", &["direct=0,1"])
            .unwrap_err()
            .to_string()
            .contains("has no value")
    );
    let many: Vec<String> = (0..40).map(|level| level.to_string()).collect();
    let many = many.join(",");
    assert!(
        plan(JOB, &[&format!("randseed={many}"), &format!("loops={many}")])
            .unwrap_err()
            .to_string()
            .contains("1000 cells")
    );
}

#[test]
fn a_command_takes_variables_and_leaves_the_shells_own() {
    let argv = ["sh", "-c", "prog ${clients} ${HOME_OF_SHELL}"].map(str::to_owned);
    let line = CommandLine { before: Some("echo ${mode}".to_owned()), ..vary(&["clients=1,8", "mode=a,b"]) };
    let experiment = Experiment::from_command(&argv, &line).unwrap();
    let plan = Plan::new(&experiment, 1, Path::new("/"), "own").unwrap();
    assert_eq!(plan.cells[3].command[2], "prog 8 ${HOME_OF_SHELL}");
    assert_eq!(
        plan.cells[3].variables,
        [("clients", "8"), ("mode", "b")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
    assert_eq!((plan.tools.as_slice(), plan.files_known), (&["sh".to_owned()][..], false));
    let wrong = Experiment::from_command(&argv, &vary(&["direct=0,1"])).unwrap();
    let message = Plan::new(&wrong, 1, Path::new("/"), "own").unwrap_err().to_string();
    assert!(message.contains("a fio option, but a command is run"), "{message}");
}

#[test]
fn a_a_runs_the_baseline_twice() {
    let line = CommandLine { aa: true, ..vary(&["direct=1,0"]) };
    let plan = Plan::new(&experiment(JOB, &line), 1, Path::new("/"), "own").unwrap();
    assert_eq!(
        plan.factors,
        [PlannedFactor { name: "a/a".into(), levels: vec!["A".into(), "A'".into()], sets: Vec::new() }]
    );
    assert_eq!(plan.cells[0].job_text, plan.cells[1].job_text);
    assert!(text(&plan, 1).contains("direct=1"));
    assert_eq!((plan.cells[1].levels.as_slice(), plan.cells[1].label.as_str()), (&[1][..], "A'"));
    assert_eq!((plan.rounds_at_most(), plan.compare), (10, 0));
}

#[test]
fn files_and_times_are_told_beforehand() {
    let job = "[global]\nsize=1m\nruntime=10\nramp_time=2\n[a]\nrw=write\nnumjobs=2\n[b]\nrw=read\nfilename=f\n\
               [c]\nrw=randread\nfilename=f\noffset=1m\nstonewall\nstartdelay=500ms\n";
    let plan = plan(job, &["direct=0,1"]).unwrap();
    let file = |path: &str, bytes: u64, writes| PlannedFile {
        path: PathBuf::from(path),
        bytes: Some(bytes),
        writes,
        deletes: false,
    };
    assert_eq!(
        plan.files,
        [
            file("/own/a.0.0", 1 << 20, Writes::Content),
            file("/own/a.1.0", 1 << 20, Writes::Content),
            file("/own/f", 2 << 20, Writes::Layout),
        ]
    );
    assert_eq!(plan.cells[0].longest_s, Some(24.5));
    // What is read is filled first, and each trial starts an agent; a device that others keep busy is waited for.
    assert_eq!(plan.cells[0].laid_out_bytes, 2 << 20);
    let idle = Expected::default();
    let round = plan.longest_round_s(&idle).unwrap();
    assert!((73.5..76.0).contains(&round), "two trials and a lead-in: {round}");
    let twelve = plan.longest_s(12, &idle).unwrap();
    assert!((twelve - 12.0 * round - 0.7).abs() < 1e-6, "{twelve}");
    let busy = Expected { wait_s: 0.5, rounds_for_one: 2.0, ..idle };
    assert!((plan.longest_round_s(&busy).unwrap() - round - 1.5).abs() < 1e-9);
    assert!((plan.longest_s(12, &busy).unwrap() - 0.7 - 24.0 * (round + 1.5)).abs() < 1e-6);
    let sized = Plan::new(&experiment(JOB, &vary(&["direct=0,1"])), 1, Path::new("/"), "own").unwrap();
    assert_eq!(sized.longest_s(12, &idle), None);
}

#[test]
fn the_budget_ends_it_with_the_trial_that_passes_it() {
    let line = CommandLine { time_budget: Some("100s".to_owned()), ..vary(&["direct=0,1"]) };
    let experiment = experiment("[a]\nsize=1m\nruntime=10\n", &line);
    let plan = Plan::new(&experiment, 1, Path::new("/"), "own").unwrap();
    let longest = plan.longest_s(30, &Expected::default()).unwrap();
    assert!((110.0..112.0).contains(&longest), "{longest}");
    // What is done before the first trial is part of it.
    let slow = Expected { wait_s: 0.5, ..Expected::default() };
    let longest = plan.longest_s(30, &slow).unwrap();
    assert!((110.0..113.0).contains(&longest), "{longest}");
}

#[test]
fn simulated_effects_multiply() {
    let toml = "engine = \"simulated\"\n[simulated]\nbw = 1e8\nsleep_ms = 5\neffects = { \"a=2\" = 0.1, \"b=y\" = -0.5 }\n\
                [[factor]]\nname = \"a\"\nlevels = [1, 2]\n[[factor]]\nname = \"b\"\nlevels = [\"x\", \"y\"]\n";
    let experiment = Experiment::from_toml(toml, "e.toml", Path::new("/"), &CommandLine::default()).unwrap();
    let plan = Plan::new(&experiment, 1, Path::new("/"), "own").unwrap();
    let effects: Vec<f64> = plan.cells.iter().map(|cell| cell.simulated.unwrap().effect).collect();
    for (effect, expected) in effects.iter().zip([0.0, -0.5, 0.1, -0.45]) {
        assert!((effect - expected).abs() < 1e-12, "{effects:?}");
    }
    assert_eq!(plan.cells[0].engine, EngineKind::Simulated);
    assert_eq!(plan.cells[0].longest_s, Some(0.005));
}

#[test]
fn what_a_hook_or_a_command_is_to_see_is_to_be_named_there() {
    let hint = |line: &CommandLine, job: &str| {
        let mut experiment = experiment(job, line);
        experiment.before = line.before.clone();
        Plan::new(&experiment, 1, Path::new("/"), "own").unwrap_err().hint.to_string()
    };
    let mut line = vary(&["m=fdatasync,open_datasync"]);
    assert!(hint(&line, JOB).contains("assay help jobs"), "neither");
    line.before = Some("./reload.sh".to_owned());
    assert_eq!(hint(&line, JOB), "if the hook is to see it, name it there: --before 'm=${m} ./reload.sh'");
    let toml = "command = ['prog']\n";
    let line = vary(&["m=a,b"]);
    let experiment = Experiment::from_toml(toml, "e.toml", Path::new("/"), &line).unwrap();
    let error = Plan::new(&experiment, 1, Path::new("/"), "own").unwrap_err();
    assert_eq!(error.hint.to_string(), "write '${m}' in the command where its level belongs");
}

#[test]
fn an_option_of_one_section_is_set_there_alone() {
    let first = |levels: &[&str]| plan(JOB, levels).unwrap();
    let set = first(&["b:fsync=1,4"]);
    assert!(text(&set, 1).ends_with("[b]\nbs=8k\nstonewall\nfsync=4\n"), "{}", text(&set, 1));
    assert_eq!(text(&set, 1).matches("fsync").count(), 1);
    assert_eq!((set.cells[1].label.as_str(), set.factors[0].name.as_str()), ("b:fsync=4", "b:fsync"));
    let both = first(&["a:blocksize=1k,2k", "job.b:bs=16k,32k"]);
    assert!(text(&both, 3).contains("[a]\nbs=2k\n\n[b]\nstonewall\nbs=32k\n"), "{}", text(&both, 3));
    for (levels, words) in [
        (&["b:bs=1k,2k", "bs=4k,8k"][..], "bs is set by two factors: b:bs and bs"),
        (&["direct=0,1", "b:buffered=0,1"], "b:buffered is set by two factors: direct and b:buffered"),
        (&["b.bs=1k,2k"], "b.bs: write b:bs for an option of one section"),
        (&["c:bs=1k,2k"], "c:bs: SECTION:bs sets bs in one section, and the job has a, b"),
        (&["b:filename=x,y"], "filename cannot be set in [b] alone"),
    ] {
        let said = plan(JOB, levels).unwrap_err().to_string();
        assert!(said.contains(words), "{levels:?}: {said}");
    }
}

#[test]
fn a_job_with_files_elsewhere_does_not_measure_what_is_made() {
    let levels = ["fs=xfs,ext4", "device=loop:1g"];
    let said =
        |job: &str| plan(job, &levels).map(|_| String::new()).unwrap_or_else(|error| error.to_string());
    for outside in [
        "[a]\nsize=1m\ndirectory=/data\n",
        "[global]\ndirectory=/data\n[a]\nsize=1m\n",
        "[a]\nsize=1m\nfilename=/data/f:/data/g\n",
        "[a]\nsize=1m\nfilename=../../../../../../../../data/f\n",
        "[a]\nsize=1m\nfilename=f\ndirectory=/data\n[b]\nsize=1m\nfilename=/data/h\n",
    ] {
        let said = said(outside);
        assert!(
            said.contains("are at /data") && said.contains("lie on the xfs that is made on loop:1g"),
            "{said}"
        );
    }
    for inside in [
        "[a]\nsize=1m\n",
        "[a]\nsize=1m\ndirectory=sub\n",
        "[a]\nsize=1m\nfilename=f:g\n",
        "[log]\nsize=1m\ndirectory=/data\n[a]\nsize=1m\n",
        "[log]\nsize=1m\nfilename=/data/f\n[a]\nsize=1m\nfilename=f\n",
        "[global]\nfilename=shared\n[a]\nsize=1m\nfilename=/data/f\n",
    ] {
        assert_eq!(said(inside), "", "{inside}");
    }
    let hook =
        CommandLine { before: Some("mount --bind $ASSAY_DIRECTORY /data".to_owned()), ..vary(&levels) };
    let hooked = experiment("[a]\nsize=1m\ndirectory=/data\n", &hook);
    assert!(Plan::new(&hooked, 1, Path::new("/"), "own").is_ok(), "a hook may bring it there");
    let device = plan("[a]\nsize=1m\ndirectory=/data\n", &["scheduler=none,bfq"]).map(|_| ());
    assert!(device.is_ok(), "nothing is made: {device:?}");
}

#[test]
fn a_smallest_difference_of_the_only_section_is_one_of_the_trial() {
    let own = |job: &str| {
        let delta = Some("3%,w:p99=10%,bw=5%".to_owned());
        let line = CommandLine { delta, ..vary(&["bs=4k,8k"]) };
        let plan = Plan::new(&experiment(job, &line), 1, Path::new("/"), "own").unwrap();
        (plan.stop.delta, plan.deltas.into_iter().map(|own| (own.metric, own.delta)).collect::<Vec<_>>())
    };
    let named = |metric: &str| vec![(metric.to_owned(), 0.1), ("bw".to_owned(), 0.05)];
    assert_eq!(own("[w]\nsize=1m\n"), (0.03, named("p99")));
    assert_eq!(own("[w]\nsize=1m\n[x]\nsize=1m\n"), (0.03, named("w:p99")));
}
