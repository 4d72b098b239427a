//! Two runs at the same time: a device is the first one's until it has ended, however that happens.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{Loop, ON_DEVICE, PATIENCE, assay, can_make, kill_all, run, succeed};

#[test]
fn a_device_is_one_runs_at_a_time() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", ON_DEVICE);
    let device = Loop::new(&sandbox, 16);
    let name = device.path.to_string_lossy().into_owned();
    let link = sandbox.path().join("link");
    std::os::unix::fs::symlink(&device.path, &link).unwrap();
    let link = link.to_string_lossy().into_owned();
    for signal in [Signal::INT, Signal::KILL] {
        // Also between two trials the device is its own: it is the run that holds it.
        let shell = "touch started; sleep 20; true ${n}";
        let first = ["run", "-q", "--db", "1.db", "-t", &name, "--destroy", &name, "--vary", "n=1,2"];
        let mut first = assay(&sandbox, &[&first[..], &["--", "sh", "-c", shell]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !sandbox.path().join("started").exists() {
            assert!(begun.elapsed() < PATIENCE && first.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::remove_file(sandbox.path().join("started")).unwrap();
        for other in [&name, &link] {
            let words = ["run", "job.fio", "-q", "--db", "2.db", "--vary", "bs=4k,8k", "-t", other];
            let output = run(&sandbox, &[&words[..], &["--destroy", other]].concat());
            let said = errors(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(&format!("{other} is another run's: it is locked")), "{said}");
            assert_eq!(said.matches("hint: wait until that run has ended").count(), 1, "{said}");
            assert!(!sandbox.path().join("2.db").exists(), "something was touched");
        }
        if signal == Signal::KILL {
            kill_all(&sandbox);
        } else {
            kill_process(Pid::from_child(&first), signal).unwrap();
        }
        first.wait().unwrap();
        succeed(&sandbox, &["cleanup", "--db", "1.db"]);
        let words = ["run", "job.fio", "-q", "--db", "3.db", "--vary", "bs=4k,8k", "--rounds", "1"];
        succeed(&sandbox, &[&words[..], &["-t", &name, "--destroy", &name, "--destroy", &link]].concat());
    }
}
