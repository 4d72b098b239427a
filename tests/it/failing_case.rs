//! One experiment of which one level cannot work: what must come of it, and the surroundings that make it fail.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use assay::record::Status;

use crate::sandbox::{Sandbox, errors};
use crate::tools::skipped;

/// A job with `${X}`, its good and its bad level, and what the error must say.
pub(crate) struct Case<'c> {
    pub(crate) job: &'c str,
    pub(crate) good: &'c str,
    pub(crate) bad: &'c str,
    /// A program and its arguments that start assay, e.g. prlimit.
    pub(crate) under: &'c [&'c str],
    /// Of `assay run`.
    pub(crate) options: &'c [&'c str],
    pub(crate) words: &'c [&'c str],
    /// I/Os that were counted before it failed, where that is no matter of chance.
    pub(crate) ios: Option<u64>,
    /// It is known before anything is touched: the whole request is refused.
    pub(crate) refused: bool,
}

pub(crate) const PLAIN: Case<'static> =
    Case { job: "", good: "", bad: "", under: &[], options: &[], words: &[], ios: None, refused: false };

impl Case<'_> {
    fn command(&self, sandbox: &Sandbox) -> Command {
        let vary = format!("X={},{}", self.good, self.bad);
        let mut arguments = vec!["run", "job.fio", "--vary", &vary, "--rounds", "1"];
        if !self.options.contains(&"--timeout") {
            // What hangs is a failure of the test, not its end.
            arguments.extend(["--timeout", "60s"]);
        }
        arguments.extend(self.options);
        let plain = sandbox.assay(&arguments);
        let [program, before @ ..] = self.under else { return plain };
        let mut command = Command::new(program);
        command.args(before).arg(plain.get_program()).args(plain.get_args());
        command.current_dir(sandbox.path()).stdin(std::process::Stdio::null());
        for (name, value) in plain.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        // Whoever it runs as may write nothing at the caller's home.
        command.env("ASSAY_STATE_DIR", sandbox.state_of_another_user());
        command
    }

    /// Runs it in `sandbox`, which keeps the names it has.
    pub(crate) fn fails(&self, sandbox: &Sandbox) {
        self.fails_as(sandbox, &mut self.prepared(sandbox));
    }

    pub(crate) fn prepared(&self, sandbox: &Sandbox) -> Command {
        sandbox.write("job.fio", self.job);
        let _ = std::fs::remove_file(sandbox.path().join("assay.db"));
        self.command(sandbox)
    }

    pub(crate) fn fails_as(&self, sandbox: &Sandbox, command: &mut Command) {
        let before: BTreeSet<String> = sandbox.names();
        let begun = Instant::now();
        let output = command.output().unwrap();
        let (said, job) = (errors(&output), self.job);
        let code = if self.refused { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{job}{said}");
        assert!(begun.elapsed() < Duration::from_secs(180), "{job} took {:?}", begun.elapsed());
        let complaints = said.lines().filter(|line| line.starts_with("assay: ")).count();
        assert_eq!((complaints, said.matches("hint: ").count()), (1, 1), "{job}{said}");
        if self.refused {
            assert!(self.words.iter().all(|word| said.contains(word)), "{job}{said} lacks {:?}", self.words);
            assert_eq!(sandbox.names(), before, "{job}");
            print!("{said}");
            return;
        }
        let run = sandbox.export("1");
        let (mut good, mut reasons) = (0, BTreeSet::new());
        for trial in &run.trials {
            match &trial.status {
                Status::Done if trial.cell == 0 => {
                    good += 1;
                    assert!(!trial.values.is_empty(), "{job}");
                }
                Status::Failed { reason, .. } if trial.cell == 1 => {
                    reasons.insert(reason.clone());
                    let metrics =
                        trial.values.iter().map(|(at, value)| (&run.metrics[*at as usize].name, *value));
                    let counted: f64 =
                        metrics.filter(|(name, _)| name.ends_with(".total_ios")).map(|(_, n)| n).sum();
                    assert!(self.ios.is_none_or(|ios| ios as f64 == counted), "{job}{counted} I/Os so far");
                }
                status => panic!("{job}level {}: {status:?}\n{said}", trial.cell),
            }
        }
        assert_eq!(good, 1, "{job}the good level's trial is kept: {said}");
        assert!(!reasons.is_empty(), "{job}the bad level did not fail: {said}");
        for reason in &reasons {
            assert!(
                self.words.iter().all(|word| reason.contains(word)),
                "{job}'{reason}' lacks {:?}",
                self.words
            );
            assert!(!reason.contains('\n') && reason.len() < 400, "{job}one line: {reason}");
            assert!(unwrapped(&said).contains(&unwrapped(reason)), "{job}'{reason}' is not told: {said}");
        }
        sandbox.no_process_left(Duration::from_secs(30));
        let left: BTreeSet<String> = sandbox.names().difference(&before).cloned().collect();
        assert_eq!(left, BTreeSet::from(["assay.db".to_owned()]), "{job}");
        println!("{}", reasons.into_iter().next().unwrap_or_default());
    }
}

/// Without blanks and line ends: messages are wrapped, and a path wider than a line is broken.
pub(crate) fn unwrapped(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A mount that goes when the test does.
pub(crate) struct Mounted(pub(crate) std::path::PathBuf);

impl Mounted {
    /// `None`, said on standard error, where this machine does not let the tests mount.
    pub(crate) fn new(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> Option<Mounted> {
        let at = sandbox.path().join(name);
        std::fs::create_dir_all(&at).unwrap();
        let mounted = Command::new("mount").args(arguments).arg(&at).status();
        if !mounted.is_ok_and(|status| status.success()) {
            skipped(&format!("mount {arguments:?} is not permitted here"));
            return None;
        }
        Some(Mounted(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// One instruction of a socket filter (linux/filter.h).
fn step(code: u32, yes: u8, no: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

/// Lets the program's `call` fail with `errno`, where its third argument is `third`, if one is given. A limit of the
/// whole machine (aio-max-nr, io_uring_disabled) would reach the tests beside this one.
pub(crate) fn failing(command: &mut Command, call: libc::c_long, third: Option<u32>, errno: i32) {
    use std::os::unix::process::CommandExt;
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    // struct seccomp_data: the number at 0, the arguments, 8 bytes each, from 16.
    let mut filter = vec![step(load, 0, 0, 0)];
    match third {
        None => filter.push(step(equal, 0, 1, call as u32)),
        Some(value) => {
            filter.extend([step(equal, 0, 3, call as u32), step(load, 0, 0, 32), step(equal, 0, 1, value)]);
        }
    }
    filter.push(step(give, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    filter.push(step(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    #[expect(unsafe_code, reason = "only a process itself can put a filter on itself")]
    // SAFETY: between fork and exec only two prctl are called, on memory that the closure owns.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
            {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
}
