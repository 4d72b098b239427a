//! Metrics that hooks give back, here and in guests; settings that come with a mount.

use assay::record::{Status, Unit};

use crate::guests::{kernels, nothing_left, run};
use crate::hook_files::files;
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, can_make, fact, left_behind, succeed};

#[test]
fn hooks_give_metrics_back_and_nonsense_is_a_note() {
    let sandbox = Sandbox::new();
    let before = "test ! -s $ASSAY_METRICS; echo size=3MiB >> $ASSAY_METRICS";
    let after = "printf 'lag=%s.5ms\\nnonsense\\n' $n > $ASSAY_METRICS";
    let words = ["run", "-q", "--vary", "n=1,2", "--rounds", "2", "--primary", "hook.lag"];
    let hooks = ["--before", before, "--after", after, "--", "true", "${n}"];
    let output = run(&sandbox, &[&words[..], &hooks].concat());
    assert!(output.status.success(), "{}", errors(&output));
    nothing_left(&sandbox);
    let run = sandbox.export("1");
    assert_eq!(run.trials.len(), 4);
    for trial in &run.trials {
        assert_eq!(trial.status, Status::Done);
        let value = |name: &str| {
            let at = run.metrics.iter().position(|metric| metric.name == name).unwrap();
            let value = trial.values.iter().find(|(metric, _)| *metric as usize == at).unwrap().1;
            (value, run.metrics[at].unit.clone())
        };
        assert_eq!(value("hook.size"), ((3 << 20) as f64, Unit::Bytes));
        assert_eq!(value("hook.lag"), (1.5e6 + 1e6 * f64::from(trial.cell), Unit::Nanoseconds));
        let note = "line 2 of the after hook's ASSAY_METRICS gives no metric: write \
                    NAME=VALUE[UNIT][:higher|lower]: nonsense";
        assert!(trial.notes.iter().any(|found| found.text == note), "{:?}", trial.notes);
    }
}

#[test]
fn a_deciding_metric_that_no_hook_gave_is_a_failure_and_no_wrong_request() {
    let sandbox = Sandbox::new();
    let words = ["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--primary", "hook.lag"];
    let hooks = ["--after", "echo size=3 > $ASSAY_METRICS", "--", "true", "${n}"];
    let output = run(&sandbox, &[&words[..], &hooks].concat());
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let said = "no hook gave hook.lag, which decides; hooks gave hook.size";
    assert!(errors(&output).contains(said), "{}", errors(&output));
}

/// A monitor around the trials, which holds the hook's output open.
#[test]
fn what_a_hook_leaves_in_the_background_does_not_hold_the_trial_up() {
    let sandbox = Sandbox::new();
    let before = format!(
        "(while sleep 0.01; do echo sample; done) & echo $! > {0}/monitor; echo begun",
        sandbox.path().display()
    );
    let after = format!("kill $(cat {0}/monitor)", sandbox.path().display());
    let words = ["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--before", &before, "--after", &after];
    let output = run(&sandbox, &[&words[..], &["--", "true", "${n}"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(sandbox.export("1").trials.len(), 2);
    nothing_left(&sandbox);
}

#[test]
fn a_failed_hook_keeps_its_words_behind_the_trials_own() {
    let sandbox = Sandbox::new();
    let words = ["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--after"];
    let after = "echo x=1 > $ASSAY_METRICS; echo the after hook speaks; exit 3";
    let output = run(&sandbox, &[&words[..], &[after, "--", "sh", "-c", "exit ${n}"]].concat());
    let run = sandbox.export("1");
    assert!(!run.trials.is_empty(), "{}", errors(&output));
    for trial in &run.trials {
        let Status::Failed { reason, output, .. } = &trial.status else { panic!("{:?}", trial.status) };
        assert!(!reason.contains("hook"), "{reason}");
        assert!(output.contains("the after hook failed: ") && output.contains("hook speaks"), "{output}");
    }
}

#[test]
fn a_setting_of_a_filesystem_holds_after_its_mount() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let path = "/sys/fs/xfs/DEVICE/error/metadata/EIO/max_retries";
    let vary = format!("sysfs:{path}=5,7");
    let words = ["run", "job.fio", "-q", "-t", "loop:400m", "-t", "fs=xfs", "--vary", &vary, "--rounds", "1"];
    succeed(&sandbox, &words);
    let set = |cell: u32| fact(&sandbox, "1", cell, &format!("sysfs.{path}"));
    assert_eq!([set(0), set(1)], ["5", "7"]);
    assert_eq!(left_behind(&sandbox, 0).len(), 0);
    // Of a filesystem that is not made it has to be there already.
    let other = "sysfs:/sys/fs/ext4/no_such_device/x=5,7";
    let words = ["run", "job.fio", "-q", "-t", "loop:400m", "-t", "fs=xfs", "--vary", other, "--rounds", "1"];
    let output = run(&sandbox, &words);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("there is no /sys/fs/ext4/no_such_device/x"), "{}", errors(&output));
}

#[test]
fn guests_have_their_modules_settings_and_hooks() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", crate::guests::JOB);
    let kernel = format!("kernel={}", kernels[1]);
    let vary = "sysfs:/sys/fs/xfs/vda/error/metadata/EIO/max_retries=5,7";
    let words =
        ["run", "job.fio", "-q", "-t", &kernel, "-t", "virtio_blk:400m", "-t", "fs=xfs", "--vary", vary];
    let after = "head -c 300000 /dev/zero > $ASSAY_FILES/zeros; n=$(cat /sys/fs/xfs/vda/error/metadata/EIO/max_retries); \
                 echo said ${n}k; echo retries=$n > $ASSAY_METRICS";
    let more = ["--rounds", "1", "--after", after, "--metric", "size=said ([0-9]+)k:KiB"];
    let output = run(&sandbox, &[&words[..], &more].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let run_of = |id: &str| sandbox.export(id);
    let first = run_of("1");
    let at = first.metrics.iter().position(|metric| metric.name == "hook.retries").unwrap();
    for (number, trial) in first.trials.iter().enumerate() {
        let value = trial.values.iter().find(|(metric, _)| *metric as usize == at).unwrap().1;
        assert_eq!(value, [5.0, 7.0][trial.cell as usize]);
        // Files come out of the guest, and what the hook says is one of them.
        assert_eq!(trial.files.iter().find(|file| file.name == "zeros").unwrap().bytes, [0; 300_000]);
        assert!(files(&first, number)["after.out"].starts_with("said "));
        assert_eq!(crate::guests::value(&first, number, "size"), Some(1024.0 * value));
        let facts = &first.facts[trial.facts.unwrap() as usize];
        assert!(facts.get("now.host.load1").is_some(), "{facts:?}");
    }
    let page = sandbox.succeed(&["report", "1", "--format", "html"]);
    assert!(page.contains("now.host.load1"), "a guest's report carries the load of its host");
    // A filesystem's module that nothing else asks for.
    let words =
        ["run", "-q", "-t", &kernel, "-t", "modules=xfs", "--vary", "n=1,2", "--rounds", "1", "--", "sh"];
    // And a kernel that says of itself in one arm that something is wrong.
    let script = "grep -qw xfs /proc/filesystems && { [ ${n} = 1 ] || \
                  echo '<4>WARNING: CPU: 1 PID: 9 at fs/x.c:7 f+0x1/0x2' > /dev/kmsg; }";
    let output = run(&sandbox, &[&words[..], &["-c", script]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let second = run_of("2");
    assert!(second.trials.iter().all(|trial| trial.status == Status::Done), "{:?}", second.trials);
    assert!(second.trials.iter().all(|t| !t.notes.iter().any(|note| note.text.contains("cannot be loaded"))));
    for trial in &second.trials {
        let told = |note: &assay::record::Note| {
            note.text == "the kernel reported a fault: WARNING: at fs/x.c:7 f+0x1/0x2"
        };
        assert_eq!(trial.notes.iter().any(told), trial.cell == 1, "{:?}", trial.notes);
    }
    let report = sandbox.succeed(&["report", "2", "--verbose"]);
    assert!(report.contains("the kernel reported a fault: WARNING: at fs/x.c:7"), "{report}");
    nothing_left(&sandbox);
}

#[test]
fn a_recipe_with_another_filesystem_falls_back_all_the_same() {
    let sandbox = Sandbox::new();
    for (setting, falls_back) in [("fs=ext4", true), ("device=ram:400m", false)] {
        let output = run(&sandbox, &["run", "dio-scaling", "--quick", "--plan", "-t", setting]);
        let said = errors(&output);
        // Where none of the places can be had it says what keeps each.
        let chose =
            said.contains("runs on ") || said.contains("none of its targets is possible on this machine");
        assert_eq!(chose, falls_back, "{setting}: {said}");
    }
}
