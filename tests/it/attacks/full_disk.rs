//! A full disk ends a run with everything put back: what is needed for that is reserved beforehand.

use std::collections::BTreeSet;
use std::process::Command;

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{can_make, left_behind};

/// A small filesystem that the run works on and keeps its store and its records on.
struct Small<'s> {
    sandbox: &'s Sandbox,
}

impl Small<'_> {
    fn new(sandbox: &Sandbox, mebibytes: u32) -> Small<'_> {
        let point = sandbox.path().join("small");
        std::fs::create_dir(&point).unwrap();
        let size = format!("size={mebibytes}m");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "small"]).arg(&point).status();
        assert!(status.unwrap().success());
        Small { sandbox }
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.sandbox.path().join("small")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.sandbox.path().join("small")).status();
    }
}

#[test]
fn a_disk_that_fills_up_keeps_nothing_from_being_put_back() {
    if !can_make() {
        return;
    }
    let knob = "/proc/sys/vm/swappiness";
    let setting = std::fs::read_to_string(knob).unwrap();
    for target in [&["-t", "fs=tmpfs"][..], &["-t", "loop:8m", "-t", "fs=ext4"]] {
        let sandbox = Sandbox::new();
        let small = Small::new(&sandbox, 24);
        sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=1m\nfsync=4\n");
        // To the last byte, before the second trial; the store, the records and the images lie on it, too.
        let fill = "test -e once && { cat /dev/zero > small/filler; :; }; touch once; true";
        let value = if setting.trim() == "61" { "62" } else { "61" };
        let set = format!("sysfs:{knob}={value}");
        let words = ["run", "job.fio", "-q", "-d", "small", "--db", "small/assay.db", "--vary", "bs=4k,8k"];
        let words = [&words[..], &["--rounds", "3", "--before", fill, "-t", &set], target].concat();
        let mut command = sandbox.assay(&words);
        let output = command.env("ASSAY_RUN_DIR", sandbox.path().join("small/records")).output().unwrap();
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(std::fs::read_to_string(knob).unwrap(), setting, "{said}");
        let names = small.names();
        assert!(
            !names.iter().any(|name| name.starts_with("assay-") || name == "records"),
            "{names:?}: {said}"
        );
        drop(small);
        assert_eq!(left_behind(&sandbox, 0), BTreeSet::new(), "{said}");
    }
}
