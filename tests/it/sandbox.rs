//! A directory of a test's own beside the build (not in /tmp, which is often memory), and the real program in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use assay::record::Run;

/// Marks every process that a sandbox starts, also those that leave its process group and directory.
const MARK: &str = "ASSAY_TEST_SANDBOX";

/// Tests run side by side: the machine is not looked at before a run, and a device that never comes to rest is soon given up. It is as idle
/// as for any user when it is idle for this long.
pub(crate) const HASTE: [(&str, &str); 2] = [("ASSAY_TEST_LOOK", "0"), ("ASSAY_TEST_SETTLE_MS", "50")];

pub(crate) struct Sandbox {
    directory: tempfile::TempDir,
    /// Where its runs write down what they make: other tests clean up, too.
    records: tempfile::TempDir,
    hastes: bool,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        crate::deadline::watched();
        crate::tools::failures_are_said_at_once();
        let made = |prefix: &str| {
            tempfile::Builder::new().prefix(prefix).tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
        };
        let (directory, records) = (made("sandbox-"), made("records-"));
        // As /tmp is: some tests run the program as another user.
        let sticky = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        std::fs::set_permissions(records.path(), sticky).unwrap();
        Sandbox { directory, records, hastes: true }
    }

    /// One in which runs wait for a quiet machine and a device at rest, as they do for users.
    pub(crate) fn that_waits() -> Sandbox {
        Sandbox { hastes: false, ..Sandbox::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory of the records of its runs; gone when there are none.
    pub(crate) fn records(&self) -> PathBuf {
        self.records.path().join("assay")
    }

    /// A place that is not there yet, where any user may keep a secret.
    pub(crate) fn state_of_another_user(&self) -> PathBuf {
        let taken = std::fs::read_dir(self.records.path()).unwrap().count();
        self.records.path().join(format!("state-{taken}"))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `assay` as tests want it: a run counts the rounds, too, from which the hypervisor took time.
    pub(crate) fn assay(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_assay"));
        match arguments {
            // A run that goes on keeps to what it was begun with.
            ["run", rest @ ..] if !rest.iter().any(|word| matches!(*word, "--resume" | "--more")) => {
                command.args(["run", "--keep-disturbed"]).args(rest)
            }
            _ => command.args(arguments),
        };
        command
    }

    /// A program with nothing of the caller's surroundings that could change what `assay` does.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env(MARK, self.path())
            .env("NO_COLOR", "1")
            .env("ASSAY_RUN_DIR", self.records())
            .env_remove("ASSAY_DB")
            .stdin(Stdio::null());
        if self.hastes {
            command.envs(HASTE);
        }
        command
    }

    /// Runs a shell's `script` with `$@`, in a mount namespace of its own: a copy of all mounts of this moment, which would keep those of
    /// tests that run beside it long after they are unmounted, so that they are taken out of it first.
    pub(crate) fn with_own_mounts(&self, script: &str, arguments: &[&str]) -> Command {
        let others = "cat /proc/self/mountinfo > copied; while read -r _ _ _ _ point _; do \
                      case $point in $PWD/*) ;; */target/tmp/*) umount -l $point;; esac; done < copied 2> refused; ";
        let mut command = self.command("unshare");
        command.args(["--mount", "sh", "-c", &(others.to_owned() + script), "sh"]).args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.assay(arguments).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", failure(arguments, &output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.assay(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A stored run as another program would read it.
    pub(crate) fn export(&self, run: &str) -> Run {
        serde_json::from_str(&self.succeed(&["export", run, "--format", "json"])).unwrap()
    }

    /// Names of all that is in the directory.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// Processes that this sandbox has started and that still live, as (number, command line).
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}", self.path().display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let (environment, line) = (read("environ"), read("cmdline"));
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let here =
                std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.path()));
            let marked = environment.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
            if marked || here || line.contains(&*self.path().to_string_lossy()) {
                found.push((pid, line));
            }
        }
        found
    }

    /// Fails when a process is left `patience` from now.
    pub(crate) fn no_process_left(&self, patience: Duration) {
        let begun = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < patience, "still running: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A command that failed, in one line that begins with why: logs are often cut.
pub(crate) fn failure(arguments: &[&str], output: &Output) -> String {
    format!("{}: {} <- {arguments:?}", output.status, errors(output).trim().replace('\n', " | "))
}

/// What was said on standard error, its wrapped messages in one line each.
pub(crate) fn errors(output: &Output) -> String {
    let mut said = String::new();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        match line.strip_prefix("  ") {
            Some(rest) if !rest.starts_with(['|', ' ']) && !rest.starts_with("command: ") => {
                said.pop();
                said.push(' ');
                said.push_str(rest);
            }
            _ => said.push_str(line),
        }
        said.push('\n');
    }
    said
}
