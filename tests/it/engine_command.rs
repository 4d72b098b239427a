//! What the command engine leaves behind when assay itself is killed: nothing.

use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use assay::engine::command::Command;
use assay::engine::{Engine, Task};

const PID_FILE: &str = "ASSAY_TEST_PID_FILE";

/// The process to be killed: this test binary again, with only this test and the variable set. Without the variable
/// it is not asked for and does nothing.
#[test]
fn victim() {
    let Some(pid_file) = std::env::var_os(PID_FILE) else { return };
    let pid_file = pid_file.into_string().unwrap();
    // One process in the group, one in a session of its own, and the shell.
    let script = format!(
        "sleep 60 & echo $! >{pid_file}.new; setsid sleep 60 & echo $! >>{pid_file}.new; echo $$ >>{pid_file}.new; mv {pid_file}.new {pid_file}; wait"
    );
    let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let _ = Command.run(&Task { command, directory: "/".into(), ..Task::default() });
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_kill_of_assay_ends_everything_the_command_started() {
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        let directory = tempfile::tempdir().unwrap();
        let pid_file = directory.path().join("pids");
        let mut victim = Process::new(std::env::current_exe().unwrap())
            .args(["--exact", "engine_command::victim"])
            .env(PID_FILE, &pid_file)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("the list of processes", || pid_file.exists());
        let pids: Vec<String> =
            std::fs::read_to_string(&pid_file).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(pids.len(), 3);
        assert!(pids.iter().all(|pid| alive(pid)), "{pids:?}");
        let victim_pid = rustix::process::Pid::from_child(&victim);
        let signal = rustix::process::Signal::from_named_raw(signal).unwrap();
        rustix::process::kill_process(victim_pid, signal).unwrap();
        victim.wait().unwrap();
        wait_for("the end of all processes", || pids.iter().all(|pid| !alive(pid)));
    }
}
