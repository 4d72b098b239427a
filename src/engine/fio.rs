//! The fio engine: any fio from 3.28 on that is on `PATH`, run on the job text as it is.
//!
//! Enters: [`Task::job`]; fio runs in [`Task::directory`], so that files the job does not place land there, with the
//! task's variables in its environment for `${VAR}`. Leaves: what its JSON says, all jobs and groups. It must not
//! read or change the job. Job and output are memory files: a killed trial leaves nothing of them behind.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

use super::child::{self, End, Program};
use super::tool::{self, unsupported};
use super::{Engine, EngineError, Probe, Task, native};
use crate::record::{FailureKind, FioTrial, Note, Outcome, outcome_from_fio_json};
use crate::sys::program::find_in;

/// The oldest fio whose JSON this reads.
const OLDEST: (u32, u32) = (3, 28);
/// The oldest one that the tests run.
const TESTED: (u32, u32) = (3, 33);
/// How many of fio's messages become notes of a trial that succeeded.
const MOST_NOTES: usize = 10;

/// What the native engine does otherwise (docs/METHODOLOGY.md).
const RATE_NOTE: &str = "fio counts lat_ns from the issue of an I/O, not from the time its rate made it due: what it had to wait \
                         until then is in no latency. Compare engines by clat_ns";

/// The fio engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fio;

impl Engine for Fio {
    fn probe(&self) -> Result<Probe, EngineError> {
        probe_in(std::env::var_os("PATH").as_deref())
    }

    /// As far as the job has a meaning here, too.
    fn written_elsewhere(&self, task: &Task) -> Vec<PathBuf> {
        native::written_elsewhere(task)
    }

    fn prepare(&self, task: &Task) -> Result<(), EngineError> {
        match task.job.as_deref().filter(|job| lays_out(job)) {
            Some(job) => lay_out(&program_of(&self.probe()?), job, task),
            None => Ok(()),
        }
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let probe = self.probe()?;
        let mut outcome = run_with(&program_of(&probe), task)?;
        outcome.notes.extend(untested_note(&probe.version).map(Note::from));
        Ok(outcome)
    }
}

fn program_of(probe: &Probe) -> PathBuf {
    probe.path.clone().unwrap_or_else(|| PathBuf::from("fio"))
}

fn probe_in(path: Option<&OsStr>) -> Result<Probe, EngineError> {
    let Some(fio) = find_in("fio", path) else {
        return unsupported(
            "fio is not on PATH; install it (Debian, Ubuntu: apt-get install fio), version 3.28 or newer"
                .to_owned(),
        );
    };
    let mut version = String::new();
    let program = Program {
        argv: vec![fio.to_string_lossy().into_owned(), "--version".to_owned()],
        directory: None,
        variables: Vec::new(),
        timeout_s: Some(10.0),
    };
    let ended = program.run(&mut |line| {
        if version.is_empty() {
            line.trim().clone_into(&mut version);
        }
    })?;
    let fio_name = fio.display();
    if let Some(trouble) = ended.end.trouble(&format!("{fio_name} --version")) {
        return unsupported(format!("{trouble}; reinstall fio"));
    }
    match version_number(&version) {
        Some(number) if number >= OLDEST => Ok(Probe { version, path: Some(fio) }),
        Some(_) => unsupported(format!(
            "{fio_name} is {version}, whose output differs; install fio 3.28 or newer (Debian 12, Ubuntu 22.04, or \
             https://github.com/axboe/fio) and put it first on PATH"
        )),
        None => unsupported(format!(
            "{fio_name} says its version is '{version}', not fio-3.28 or newer; put the real fio first on PATH"
        )),
    }
}

/// That assay's tests run newer ones.
fn untested_note(version: &str) -> Option<String> {
    let is_older = version_number(version).is_some_and(|number| number < TESTED);
    is_older.then(|| {
        format!(
            "{version} is older than those that assay is tested with, 3.33 and later: its results are read, and what its jobs do may differ"
        )
    })
}

/// (3, 33) from `fio-3.33` or `fio-3.36-12-gabcdef`.
fn version_number(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.strip_prefix("fio-")?.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn run_with(fio: &Path, task: &Task) -> Result<Outcome, EngineError> {
    let Some(job) = task.job.as_deref() else {
        return unsupported("the fio engine was given no job".to_owned());
    };
    let mut files = MemoryFiles::of(job).map_err(|error| memory_failed(&error))?;
    let program = files.program(fio, task);
    // From here on a failure's command is one that works without our memory files.
    let command = by_hand(fio, task, job);
    let repeatable = |error: EngineError| match error {
        EngineError::Failed { kind, reason, output, so_far, .. } => {
            EngineError::Failed { kind, reason, command: command.clone(), output, so_far }
        }
        other => other,
    };
    let ended = program.run_until(&mut killed_job).map_err(repeatable)?;
    let mut text = Vec::new();
    files
        .output
        .rewind()
        .and_then(|()| files.output.read_to_end(&mut text))
        .map_err(|error| memory_failed(&error))?;
    let judged = judge(&ended.end, &ended.tail, &String::from_utf8_lossy(&text)).map_err(repeatable);
    judged.map(|mut outcome| {
        outcome.notes.extend(has_a_rate(job).then(|| Note::from(RATE_NOTE)));
        // Of all its processes; fio itself says how long its jobs lived and ran. Nobody knows what they waited after a ramp.
        let is_known = ended.lives.wall_s > 0.0 && !task.has_a_ramp();
        outcome.samples.extend(is_known.then(|| tool::waits(&ended)).into_iter().flatten());
        outcome
    })
}

/// Has fio make the files that the job reads or overwrites, so that observers do not see it. What fails here fails in the trial, too,
/// which says why.
fn lay_out(fio: &Path, job: &str, task: &Task) -> Result<(), EngineError> {
    let files =
        MemoryFiles::of(&format!("[global]\ncreate_only=1\n{job}")).map_err(|error| memory_failed(&error))?;
    let program = Program { timeout_s: None, ..files.program(fio, task) };
    program.run_until(&mut killed_job).map(drop)
}

/// What makes a second run of the job's beginning do more than lay files out: commands, logs and pauses would come twice, files would go or
/// grow.
const ONCE: [&str; 9] = [
    "exec_prerun", "exec_postrun", "unlink", "write_iolog", "startdelay", "start_delay", "create_only",
    "file_append", "unlink_each_loop",
];

/// Whether fio writes files before a job begins, and a run of its own may do it: it reads, overwrites, or maps files. Read as fio writes it,
/// as the job may mean something to fio only.
fn lays_out(job: &str) -> bool {
    let lines = || job.lines().map(str::trim).filter(|line| !line.starts_with([';', '#']));
    if lines().any(|line| {
        line.starts_with("include ") || ONCE.contains(&line.split('=').next().unwrap_or_default().trim())
    }) {
        return false;
    }
    let writes = |to: &str| matches!(to.split(':').next(), Some("write" | "randwrite" | "trim" | "randtrim"));
    // Of all sections, and of the one that is being read: whether each only writes; without a direction fio reads.
    let (mut of_all, mut own) = (false, None);
    let mut reads = false;
    let mut is_global = true;
    for line in lines() {
        if line.starts_with('[') {
            reads |= !is_global && !own.take().unwrap_or(of_all);
            is_global = line == "[global]";
        }
        let Some((key, to)) = line.split_once('=').map(|(key, to)| (key.trim(), to.trim())) else {
            // A flag without a value is set.
            reads |= line == "overwrite";
            continue;
        };
        match key {
            "rw" | "readwrite" if is_global => of_all = writes(to),
            "rw" | "readwrite" => own = Some(writes(to)),
            "overwrite" => reads |= to != "0",
            "ioengine" => reads |= to == "mmap",
            _ => {}
        }
    }
    reads || !is_global && !own.unwrap_or(of_all)
}

/// The job and the output of one fio.
struct MemoryFiles {
    job: File,
    output: File,
}

impl MemoryFiles {
    fn of(job: &str) -> std::io::Result<MemoryFiles> {
        let mut files =
            MemoryFiles { job: memory_file(c"assay-job")?, output: memory_file(c"assay-fio-output")? };
        files.job.write_all(job.as_bytes())?;
        Ok(files)
    }

    fn program<'t>(&self, fio: &Path, task: &'t Task) -> Program<'t> {
        Program {
            argv: vec![
                fio.to_string_lossy().into_owned(),
                "--eta=never".to_owned(),
                "--output-format=json+".to_owned(),
                format!("--output={}", path_of(&self.output)),
                path_of(&self.job),
            ],
            directory: Some(&task.directory),
            variables: child::environment(task),
            timeout_s: task.timeout_s,
        }
    }
}

fn memory_failed(error: &std::io::Error) -> EngineError {
    EngineError::Failed {
        kind: FailureKind::Passing,
        reason: format!("cannot make a memory file for fio's job or output: {error}"),
        command: String::new(),
        output: String::new(),
        so_far: Vec::new(),
    }
}

/// That a job's process was killed. fio goes on without it, counts what it did until then and ends with 0, or waits for it for
/// ever.
fn killed_job(line: &str) -> Option<String> {
    let (pid, signal) = line.trim().strip_prefix("fio: pid=")?.split_once(", got signal=")?;
    let signal: i32 = signal.parse().ok()?;
    Some(format!(
        "the process of a fio job ({pid}) was ended by signal {signal}{}",
        child::signal_name(signal)
    ))
}

/// Whether any section of a job sets a rate. Read as fio writes it: the job may mean something to fio only.
fn has_a_rate(job: &str) -> bool {
    let keys = job.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key.trim());
    keys.into_iter().any(|key| matches!(key, "rate" | "rate_iops"))
}

fn memory_file(name: &std::ffi::CStr) -> std::io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// A path by which a child process can open one of our open files.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// What a person types to repeat the trial, in one line: the job comes on fio's standard input, and the directory, which
/// went with the trial, is made again.
fn by_hand(fio: &Path, task: &Task, job: &str) -> String {
    let directory = child::quoted(&task.directory.to_string_lossy());
    let lines: Vec<String> = job.trim_end().lines().map(child::quoted).collect();
    let argv = [fio.to_string_lossy().into_owned(), "-".to_owned()].to_vec();
    let program = Program { argv, directory: None, variables: child::environment(task), timeout_s: None };
    format!(
        "mkdir -p {directory} && cd {directory} && printf '%s\\n' {} | {}",
        lines.join(" "),
        program.shell_line()
    )
}

/// An outcome from how fio ended, what it printed and its JSON.
fn judge(end: &End, printed: &str, json: &str) -> Result<Outcome, EngineError> {
    let before_json = json.split('{').next().unwrap_or_default();
    let messages: Vec<&str> =
        printed.lines().chain(before_json.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
    let failed = |reason: String, trial: Option<FioTrial>| {
        let known = trial.as_ref().map_or(FailureKind::Passing, |trial| trial.failure_kind);
        let kind = messages.iter().filter_map(|line| kind_of(line)).fold(known, FailureKind::max);
        let so_far = trial.map(|t| t.outcome.samples).unwrap_or_default();
        Err(EngineError::Failed { kind, reason, command: String::new(), output: messages.join("\n"), so_far })
    };
    let own_words = messages.iter().find(|line| looks_like_an_error(line)).or(messages.first());
    let with_own_words = |reason: String| match own_words {
        Some(words) => format!("{reason}: {words}"),
        None => reason,
    };
    let trials = outcome_from_fio_json(json);
    if let End::GivenUp(reason) = end {
        return failed(reason.clone(), None);
    }
    if let Some(trouble) = end.trouble("fio") {
        return failed(with_own_words(trouble), trials.ok().and_then(|mut all| all.pop()));
    }
    let mut trial = match trials.map(|mut all| all.pop()) {
        Ok(Some(trial)) => trial,
        Ok(None) => return failed(with_own_words("fio wrote no result".to_owned()), None),
        Err(error) => return failed(with_own_words(format!("fio's output cannot be read: {error}")), None),
    };
    if let Some(error) = trial.error.take() {
        return failed(with_own_words(error), Some(trial));
    }
    trial.drop_single_job_name();
    let mut outcome = trial.outcome;
    for message in messages {
        let note = Note::from(format!("fio says: {message}"));
        if outcome.notes.len() < MOST_NOTES && !outcome.notes.contains(&note) {
            outcome.notes.push(note);
        }
    }
    Ok(outcome)
}

/// What fio's own line says of another attempt: `fio: pid=9, err=28/file:engines.c:1, …`, `verify: bad magic header …`.
fn kind_of(line: &str) -> Option<FailureKind> {
    if line.starts_with("verify: bad") || line.starts_with("crc32c: verify failed") {
        return Some(FailureKind::WrongData);
    }
    let number = line.split_once("err=")?.1.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(FailureKind::of_errno(number.parse().ok()?))
}

fn looks_like_an_error(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["error", "bad option", "failed", "no such", "cannot", "unable", "not supported", "denied", "no space"]
        .iter()
        .any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_seen_where_one_is_set() {
        assert!(has_a_rate("[a]\nrate_iops = ${R}\n") && has_a_rate("[global]\nrate=1m\n[a]\n"));
        assert!(!has_a_rate("[rate]\n; rate=1m\n#rate=1m\nrate_process=poisson\nrate_min=1\n"));
    }

    #[test]
    fn files_are_laid_out_before_what_reads_or_overwrites_them() {
        for job in [
            "[a]\nsize=1m\n",
            "[a]\nrw=randrw\n",
            "[a]\nrw=write\n[b]\nrw=${RW}\n",
            "[a]\nrw=write\noverwrite=1\n",
            "[a]\nrw=write\noverwrite\n",
            "[a]\nsize=1m\n[b]\nrw=write\n",
            "[global]\nrw=write\n[a]\n[b]\nrw=read\n",
            "[a]\nrw=write\nioengine=mmap\n",
        ] {
            assert!(lays_out(job), "{job}");
        }
        for job in [
            "[a]\nrw=write\n",
            "[a]\nreadwrite=randwrite:8\noverwrite=0\n",
            "[global]\nrw=write\n[a]\nsize=1m\n[b]\n; rw=read\n",
            "[a]\nrw=read\nexec_prerun=./x\n",
            "[a]\nrw=read\nunlink=1\n",
            "[a]\nrw=read\ncreate_only=0\n",
            "[a]\nrw=read\nstartdelay = 3\n",
            "include other.fio\n[a]\nrw=read\n",
        ] {
            assert!(!lays_out(job), "{job}");
        }
    }

    fn fake_fio(directory: &Path, script: &str) {
        // Written by a shell: a descriptor of ours, open for writing, could be inherited by a child that another
        // test's thread forks just then, and the script would be "busy" (ETXTBSY).
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 755 \"$2\"";
        let path = directory.join("fio");
        let status = std::process::Command::new("sh").args(["-c", write, "sh", script]).arg(path).status();
        assert!(status.unwrap().success());
    }

    fn reason<T: std::fmt::Debug>(result: Result<T, EngineError>) -> String {
        match result {
            Err(EngineError::Unsupported { reason } | EngineError::Failed { reason, .. }) => reason,
            Ok(value) => panic!("{value:?}"),
        }
    }

    #[test]
    fn versions_are_read_as_fio_prints_them() {
        assert_eq!(version_number("fio-3.33"), Some((3, 33)));
        assert_eq!(version_number("fio-3.36-12-gabcdef"), Some((3, 36)));
        assert_eq!(version_number("fio-4.0"), Some((4, 0)));
        assert!((3, 9) < OLDEST && (4, 0) > OLDEST);
        assert!(untested_note("fio-3.28").unwrap().starts_with("fio-3.28 is older"));
        assert_eq!((untested_note("fio-3.33"), untested_note("fio-4.0")), (None, None));
        assert_eq!(version_number("flexible io 3"), None);
    }

    #[test]
    fn a_missing_old_or_strange_fio_is_refused_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let path = Some(directory.path().as_os_str());
        assert!(reason(probe_in(path)).contains("apt-get install fio"));
        assert!(reason(probe_in(None)).contains("not on PATH"));
        for (script, part) in [
            ("echo fio-3.16", "fio-3.16, whose output differs; install fio 3.28 or newer"),
            ("echo fio-3.27", "fio-3.27, whose output differs"),
            ("echo hello", "says its version is 'hello'"),
            ("exit 4", "exit code 4"),
        ] {
            fake_fio(directory.path(), script);
            let reason = reason(probe_in(path));
            assert!(reason.contains(part), "{reason}");
        }
        fake_fio(directory.path(), "echo fio-3.28");
        assert_eq!(probe_in(path).unwrap().version, "fio-3.28");
        fake_fio(directory.path(), "echo fio-3.37");
        let probe = probe_in(path).unwrap();
        assert_eq!((probe.version.as_str(), probe.path), ("fio-3.37", Some(directory.path().join("fio"))));
    }

    #[test]
    fn fio_reads_the_job_and_writes_through_memory_files() {
        let directory = tempfile::tempdir().unwrap();
        // Shows the job and the place it runs in as its error, and writes cut JSON.
        let script = "[ \"$1\" = - ] && exec grep -qxF 'size=${size}'; \
                      cat \"$4\" >&2; pwd >&2; echo '{' >\"${3#--output=}\"";
        fake_fio(directory.path(), script);
        let task = Task {
            job: Some("[a]\nrw=write\nsize=${size}\n".to_owned()),
            directory: directory.path().to_owned(),
            variables: vec![("size".to_owned(), "1m".to_owned())],
            ..Task::default()
        };
        let Err(EngineError::Failed { reason, command, output, .. }) =
            run_with(&directory.path().join("fio"), &task)
        else {
            panic!("it succeeded")
        };
        assert!(reason.contains("fio's output cannot be read"), "{reason}");
        assert!(output.starts_with("[a]\nrw=write\nsize=${size}\n"), "{output}");
        assert!(output.contains(directory.path().to_str().unwrap()), "{output}");
        assert!(command.ends_with("/fio -") && command.contains("size=1m"), "{command}");
        // What a person would paste does the same, also when the directory is gone.
        let gone = directory.path().join("gone");
        let pasted = command.replacen(&*directory.path().to_string_lossy(), &gone.to_string_lossy(), 2);
        let shell = std::process::Command::new("sh").args(["-c", &pasted]).output().unwrap();
        assert!(shell.status.success() && gone.is_dir(), "{pasted}: {shell:?}");
    }

    #[test]
    fn what_would_come_again_is_told_from_what_may_pass() {
        for (line, kind) in [
            (
                "fio: pid=9, err=28/file:engines.c:1, func=xfer, error=No space left on device",
                FailureKind::Lasting,
            ),
            (
                "fio: pid=9, err=5/file:io_u.c:1889, func=io_u error, error=Input/output error",
                FailureKind::Passing,
            ),
            ("fio: pid=9, err=84/file:io_u.c:2218, func=io_u_queued_complete", FailureKind::WrongData),
            (
                "verify: bad magic header 0, wanted acca at file x offset 0, length 4096",
                FailureKind::WrongData,
            ),
            ("file x is too small", FailureKind::Passing),
        ] {
            let Err(EngineError::Failed { kind: found, .. }) = judge(&End::Code(1), line, "") else {
                panic!("{line}")
            };
            assert_eq!(found, kind, "{line}");
        }
    }

    #[test]
    fn fios_own_words_are_in_the_reason() {
        let printed = "note: something\nBad option <nonsense=1>\nfio: job a dropped";
        let words = reason(judge(&End::Code(1), printed, ""));
        assert_eq!(words, "'fio' ended with exit code 1: Bad option <nonsense=1>");
        let in_file = "fio: pid=9, err=28/file:engines.c:1, func=xfer, error=No space left on device\n{";
        assert!(reason(judge(&End::Code(1), "", in_file)).contains("No space left on device"));
        assert!(reason(judge(&End::Code(0), "", "")).contains("cannot be read"));
    }
}
