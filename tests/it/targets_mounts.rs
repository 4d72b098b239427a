//! What others mount in a directory of assay's is never emptied: neither by the next trial nor by whoever puts everything back.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, PATIENCE, assay, can_make, left_behind, paused_at, run, succeed};
use crate::tools::installed;

/// A directory of somebody's with a file in it.
fn precious(sandbox: &Sandbox) -> PathBuf {
    let file = sandbox.path().join("home/file");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "x").unwrap();
    file
}

fn mounts(sandbox: &Sandbox) -> Vec<String> {
    let here = sandbox.path().canonicalize().unwrap();
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    points.filter(|point| point.starts_with(&*here.to_string_lossy())).map(str::to_owned).collect()
}

/// Unmounts what a test has mounted, also when it fails.
struct Unmount<'s>(&'s Sandbox);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        for point in mounts(self.0).iter().rev() {
            let _ = Command::new("umount").arg(point).status();
        }
    }
}

/// The mount is named with what helps, what is on it is there, and what helps does help.
fn refused_until_unmounted(sandbox: &Sandbox, said: &str, file: &std::path::Path) {
    assert!(file.exists(), "{said}");
    let points = mounts(sandbox);
    assert_eq!(points.len(), 1, "{points:?}");
    let words = format!("{} is mounted, and not by assay", points[0]);
    let hint = format!("hint: umount {}, then `assay cleanup`", points[0]);
    assert!(said.contains(&words) && said.contains(&hint), "{said}");
    let again = run(sandbox, &["cleanup"]);
    let said = errors(&again);
    assert_eq!(again.status.code(), Some(1), "{said}");
    assert!(said.contains(&words) && said.contains(&hint) && file.exists(), "{said}");
    assert!(Command::new("umount").arg(&points[0]).status().unwrap().success());
    succeed(sandbox, &["cleanup"]);
    assert!(file.exists());
    assert!(!sandbox.names().iter().any(|name| name.starts_with("assay-")), "{:?}", sandbox.names());
}

#[test]
fn who_keeps_what_is_unmounted_is_named() {
    if !can_make() || !installed("unshare") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let words =
        ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "1", "-t", "loop:32m", "-t", "fs=ext4"];
    let child = paused_at(&sandbox, "stack", &words);
    // Such a copy of the mounts is what each container begins with.
    let mut holder = sandbox.with_own_mounts("touch holds; exec sleep 60", &[]).spawn().unwrap();
    wait_for(&sandbox, "holds", &mut holder);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot detach /dev/loop") && said.contains("hint: assay cleanup tries again"),
        "{said}"
    );
    let named = format!(" for {} sleep, in a mount namespace of its own", holder.id());
    assert!(said.contains("it is mounted at ") && said.contains(&named), "{said}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    succeed(&sandbox, &["cleanup"]);
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

fn wait_for(sandbox: &Sandbox, name: &str, child: &mut Child) {
    let begun = Instant::now();
    while !sandbox.path().join(name).exists() {
        assert!(begun.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_a_hook_mounted_survives_an_interrupt() {
    if !can_make() {
        return;
    }
    // A directory alone, and one with a journal. The other hook does not come to its end.
    for target in [&[][..], &["-t", "sysfs:/proc/sys/vm/swappiness=61"]] {
        let sandbox = Sandbox::new();
        let file = precious(&sandbox);
        let _after = Unmount(&sandbox);
        let before = "mkdir $ASSAY_DIRECTORY/src && mount --bind home $ASSAY_DIRECTORY/src && touch mounted";
        let shell = "sleep 20; true ${n}";
        let words = ["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--before", before, "--after"];
        let words =
            [&words[..], &["sleep 20; umount $ASSAY_DIRECTORY/src"], target, &["--", "sh", "-c", shell]]
                .concat();
        let mut child = assay(&sandbox, &words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&sandbox, "mounted", &mut child);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        refused_until_unmounted(&sandbox, &said, &file);
    }
}

#[test]
fn what_a_hook_mounted_before_it_failed_survives_the_next_trial() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let file = precious(&sandbox);
    let _after = Unmount(&sandbox);
    let before = "mkdir -p $ASSAY_DIRECTORY/src && mount --bind home $ASSAY_DIRECTORY/src && false";
    let words = ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "2", "--before", before];
    let output = run(&sandbox, &words);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    refused_until_unmounted(&sandbox, &said, &file);
}

#[test]
fn a_standing_filesystem_is_emptied_but_not_its_mounts() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let file = precious(&sandbox);
    let _after = Unmount(&sandbox);
    // Only the first trial's hook mounts; the second trial would empty the filesystem.
    let before =
        "test -e once || { touch once; mkdir $ASSAY_DIRECTORY/src; mount --bind home $ASSAY_DIRECTORY/src; }";
    let target = ["-t", "fs=tmpfs", "-t", "fresh=run", "--before", before];
    let output = run(
        &sandbox,
        &[&["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "1"][..], &target].concat(),
    );
    assert!(file.exists(), "{}", errors(&output));
    // Its own filesystem cannot be unmounted with another on it, so that one is unmounted, and nothing is left.
    assert_eq!(mounts(&sandbox), Vec::<String>::new(), "{}", errors(&output));
    let said = sandbox.run(&["show", "1"]);
    let told = String::from_utf8_lossy(&said.stdout).into_owned() + &errors(&output);
    assert!(told.contains("src is mounted, and not by assay"), "{told}");
}
