//! Two runs at the same time that set one setting of the host: the second one is refused before its first trial.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{PATIENCE, assay, can_make, left_behind, run, succeed};

/// How often the kernel may print a message: a number of the whole machine that no other test sets or asks.
const SETTING: &str = "/proc/sys/kernel/printk_ratelimit_burst";

/// The setting, put back when a test fails. One test at a time has it.
struct Setting(String);

static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

impl Setting {
    fn now() -> String {
        std::fs::read_to_string(SETTING).unwrap().trim().to_owned()
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = std::fs::write(SETTING, &self.0);
    }
}

fn wait_for(file: &Path, child: &mut Child) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_setting_of_the_host_is_one_runs_at_a_time() {
    if !can_make() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (sandbox, setting) = (Sandbox::new(), Setting(Setting::now()));
    let vary = format!("sysfs:{SETTING}=21,22");
    let shell = ["--", "sh", "-c", "touch started; sleep 60"];
    let words = [&["run", "-q", "--db", "1.db", "--vary", &vary], &shell[..]].concat();
    let mut first = assay(&sandbox, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&sandbox.path().join("started"), &mut first);
    let held = Setting::now();
    assert!(["21", "22"].contains(&held.as_str()), "{held}");
    // As the baseline of an experiment on something else, too.
    let fixed = format!("sysfs:{SETTING}=23");
    for other in [&["--vary", &vary][..], &["-t", &fixed, "--vary", "n=1,2"]] {
        let output = run(
            &sandbox,
            &[&["run", "-q", "--db", "2.db"], other, &["--", "sh", "-c", "true ${n}"]].concat(),
        );
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let by = format!("{SETTING} is being set by run 1 of ");
        assert!(said.contains(&by) && said.contains(&format!("/1.db (process {})", first.id())), "{said}");
        assert_eq!(
            said.matches("hint: only one run at a time can put it back: wait until").count(),
            1,
            "{said}"
        );
        assert!(!sandbox.path().join("2.db").exists(), "something was touched");
        assert_eq!(Setting::now(), held, "the refused run has undone the other one's");
    }
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    first.wait().unwrap();
    assert_eq!(Setting::now(), setting.0);
    let words = ["run", "-q", "--db", "2.db", "--vary", &vary, "--rounds", "1", "--", "true"];
    succeed(&sandbox, &words);
    assert_eq!(Setting::now(), setting.0);
    assert_eq!(left_behind(&sandbox, 0).len(), 0);
}

#[test]
fn of_runs_that_begin_at_once_one_sets_the_setting() {
    if !can_make() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (sandbox, setting) = (Sandbox::new(), Setting(Setting::now()));
    let vary = format!("sysfs:{SETTING}=21,22");
    let shell = ["--", "sh", "-c", "echo begin >>log; sleep 1; echo end >>log"];
    let mut runs: Vec<Child> = (0..4)
        .map(|number| {
            let db = format!("{number}.db");
            let words = ["run", "-q", "--db", &db, "--vary", &vary, "--rounds", "1", "--settle", "0"];
            let mut command = assay(&sandbox, &[&words[..], &shell].concat());
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let codes: Vec<Option<i32>> = runs.iter_mut().map(|run| run.wait().unwrap().code()).collect();
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert!(codes.iter().all(|code| [Some(0), Some(2)].contains(code)), "{codes:?}");
    // Those that came later ran alone, too.
    let log = std::fs::read_to_string(sandbox.path().join("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.chunks(2).all(|pair| pair == ["begin", "end"]), "{log}");
    assert_eq!(lines.len(), 4 * codes.iter().filter(|code| **code == Some(0)).count());
    assert_eq!(Setting::now(), setting.0);
    assert_eq!(left_behind(&sandbox, 0).len(), 0);
}
