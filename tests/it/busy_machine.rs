//! A machine that others use, as the whole program sees it: with pressure files of the test's own.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::loop_device::LoopDevice;
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::can_make;
use crate::tools::{impossible_here, installed, is_root};

/// Pressure of the last ten seconds, in percent.
fn pressure(percent: u32) -> String {
    format!(
        "some avg10={percent}.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"
    )
}

/// `assay run` of a command where files of the sandbox stand for what the kernel says of the machine, on no device.
fn command(sandbox: &Sandbox, more: &[&str]) -> Command {
    sandbox.write("stat", "cpu  500 0 0 900 0 0 0 0 0 0\n");
    sandbox.write("calm", &pressure(0));
    let own = "mount --bind stat /proc/stat && mount --bind calm /proc/pressure/cpu && mount --bind calm /proc/pressure/memory && \
               mount --bind io /proc/pressure/io && exec \"$@\"";
    let mut command = sandbox.with_own_mounts(own, &[env!("CARGO_BIN_EXE_assay"), "run"]);
    command.args(["--directory", "/dev/shm", "--vary", "n=1,2", "--rounds", "4"]).args(more);
    command.args(["--", "true", "${n}"]);
    command
}

fn run(sandbox: &Sandbox, more: &[&str]) -> Output {
    command(sandbox, more).output().unwrap()
}

fn possible() -> bool {
    if !(is_root() && installed("unshare")) {
        return false;
    }
    let is_there = Path::new("/proc/pressure/io").exists() && Path::new("/dev/shm").is_dir();
    if !is_there {
        impossible_here("no /proc/pressure or no /dev/shm: no busy machine can be made up");
    }
    is_there
}

fn in_one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_busy_machine_is_said_first_in_the_head_and_in_the_verdict() {
    if !possible() {
        return;
    }
    let sandbox = Sandbox::that_waits();
    sandbox.write("io", &pressure(50));
    let output = run(&sandbox, &["--settle", "0"]);
    let (said, report) = (in_one_line(&output.stderr), in_one_line(&output.stdout));
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("busy machine: tasks wait for I/O 50 % of the time, load "), "{said}");
    assert!(said.contains("--wait-idle 10m waits for a quiet one"), "{said}");
    assert!(report.contains("busy machine at the start: tasks wait for I/O 50 %"), "{report}");
    assert_eq!(report.matches("busy machine at the start").count(), 1, "{report}");
    assert_eq!(report.matches("(on a busy machine)").count(), 1, "the verdict's own line: {report}");
    for format in ["markdown", "html", "lkml"] {
        let written = sandbox.succeed(&["report", "1", "--format", format]);
        let written = in_one_line(written.as_bytes());
        assert!(
            written.replace('\u{a0}', " ").contains("busy machine at the start: "),
            "{format}: {written}"
        );
    }
    assert_eq!(
        sandbox.export("1").busy_machine().map(|why| why.starts_with("tasks wait for I/O")),
        Some(true)
    );

    sandbox.write("io", &pressure(0));
    let output = run(&sandbox, &[]);
    let all = in_one_line(&output.stderr) + &in_one_line(&output.stdout);
    assert!(output.status.success() && !all.contains("busy machine"), "{all}");
}

#[test]
fn a_quiet_machine_is_waited_for_as_long_as_asked() {
    if !possible() {
        return;
    }
    let sandbox = Sandbox::that_waits();
    sandbox.write("io", &pressure(50));
    let begun = Instant::now();
    let output = run(&sandbox, &["--wait-idle", "1s"]);
    let said = in_one_line(&output.stderr);
    assert!(said.contains("waiting for a quiet machine, up to") && said.contains("busy machine: "), "{said}");
    assert!(output.status.success() && begun.elapsed() >= Duration::from_secs(1), "{said}");

    let begun = Instant::now();
    let output = std::thread::scope(|threads| {
        threads.spawn(|| {
            std::thread::sleep(Duration::from_secs(2));
            sandbox.write("io", &pressure(0));
        });
        command(&sandbox, &["--wait-idle", "60s"]).output().unwrap()
    });
    let said = errors(&output);
    assert!(output.status.success() && said.contains("waiting for a quiet machine"), "{said}");
    assert!(!said.contains("busy machine: ") && begun.elapsed() < Duration::from_secs(50), "{said}");
    assert_eq!(sandbox.export("2").busy_machine(), None);

    for (wrong, why) in [("soon", "--wait-idle: 'soon' is not a time"), ("2d", "a time of over a day")] {
        let refused = sandbox.run(&["run", "--wait-idle", wrong, "--vary", "n=1,2", "--", "true"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(errors(&refused).contains(why), "{}", errors(&refused));
    }
}

#[test]
fn a_wait_for_the_device_is_a_time_or_nothing() {
    let sandbox = Sandbox::that_waits();
    for (wrong, why) in [("soon", "'soon' is not a time"), ("2h", "settle is over an hour")] {
        let refused = sandbox.run(&["run", "--settle", wrong, "--vary", "n=1,2", "--", "true"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(errors(&refused).contains(why), "{}", errors(&refused));
    }
    sandbox.write(
        "s.toml",
        "settle = \"0\"\ncommand = [\"true\", \"${n}\"]\n[[factor]]\nname = \"n\"\nlevels = [1, 2]\n",
    );
    sandbox.succeed(&["run", "s.toml", "-q", "--rounds", "1"]);
    assert_eq!(sandbox.export("1").experiment["settle_s"], 0.0);
    sandbox.succeed(&["run", "s.toml", "-q", "--rounds", "1", "--settle", "300ms"]);
    assert_eq!(sandbox.export("2").experiment["settle_s"], 0.3);
}

#[test]
fn others_who_use_the_named_device_are_said() {
    let sandbox = Sandbox::that_waits();
    let Some(device) = LoopDevice::on(&sandbox.path().join("own.img"), 16 << 20) else { return };
    let name = device.path.to_str().unwrap();
    sandbox.write("job.fio", "[j]\nrw=randread\nsize=1m\n");
    let planned = |target: &[&str]| {
        let wanted = ["run", "job.fio", "--plan", "--vary", "bs=4k,8k"];
        in_one_line(sandbox.succeed(&[&wanted[..], target].concat()).as_bytes())
    };
    let said = format!("others' I/O on {}: ", name.trim_start_matches("/dev/"));
    let endless = format!("while dd if={name} of=/dev/null bs=64k iflag=direct 2>/dev/null; do :; done");
    let mut other = Command::new("sh").args(["-c", &endless]).spawn().unwrap();
    let (named, below) = (planned(&["-t", name, "--destroy", name]), planned(&[]));
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(named.contains("busy machine at this moment") && named.contains(&said), "{named}");
    assert!(!below.contains(&said), "no trial works there: {below}");
}

/// The kernel's thread reads the file behind a loop device: those are the trial's own reads.
#[test]
fn what_a_trial_reads_through_its_own_loop_device_is_nobody_elses() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::that_waits();
    sandbox.write("job.fio", "[r]\nrw=read\nbs=256k\nsize=40m\ndirect=1\nloops=4\n");
    sandbox.succeed(&["run", "job.fio", "--aa", "--rounds", "2", "-q", "-t", "loop:64m", "-t", "fs=ext4"]);
    let run = sandbox.export("1");
    assert!(run.trials.len() >= 4, "{:?}", run.trials);
    let rules: Vec<&String> = run.trials.iter().filter_map(|trial| trial.excluded.as_ref()).collect();
    assert!(rules.iter().all(|rule| !rule.contains("read")), "{rules:?}");
    let notes = run.trials.iter().flat_map(|trial| &trial.notes).chain(&run.notes);
    assert!(notes.clone().all(|note| !note.text.contains("others read")), "{:?}", notes.collect::<Vec<_>>());
}
