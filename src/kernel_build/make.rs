//! A program of a build, with its words in a log, its progress, and an end when assay is to end.
//!
//! Enters: a command, a log, a flag. Leaves: success, or what the log says of why not. The program and all it starts are a process
//! group of their own: a signal to assay ends all of it, and when assay is killed the kernel ends the program. What it has started may
//! outlive that, so all of them keep the locks of the directories they write into.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::error::{BuildError, is_beside};
use crate::sys::{clean_command, dies_with_its_parent, keeps_open, regular_file};

/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a program may take to end itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of a log when something failed.
const MOST_LOG: u64 = 64 << 20;
/// Most lines of a message.
const MOST_LINES: usize = 6;
/// What watches a build.
pub(super) struct Watch<'w> {
    /// All words go here.
    pub(super) log: &'w Path,
    /// What is done with it, for messages: `building`.
    pub(super) doing: &'w str,
    /// What is built.
    pub(super) what: &'w str,
    /// Set by a signal.
    pub(super) cancelled: &'w AtomicBool,
    /// Called with the number of objects that the program which runs has made so far.
    pub(super) objects: &'w mut dyn FnMut(u64),
    /// Locks of the directories that are written into, which last as long as any program of the build.
    pub(super) locks: Vec<Arc<File>>,
}

impl Watch<'_> {
    /// What is done.
    fn all(&self) -> String {
        format!("{} {}", self.doing, self.what)
    }

    /// What it means that a signal ended it.
    pub(super) fn interrupted(&self) -> BuildError {
        BuildError::Interrupted { what: self.all() }
    }

    /// The same, of programs that write into what this is the lock of.
    pub(super) fn holding(&mut self, lock: &Arc<File>) -> Watch<'_> {
        let locks = self.locks.iter().chain([lock]).map(Arc::clone).collect();
        Watch {
            log: self.log,
            doing: self.doing,
            what: self.what,
            cancelled: self.cancelled,
            objects: &mut *self.objects,
            locks,
        }
    }
}

/// make(1) with as many jobs as processors, and the same words in every kernel of what it was built by and when: what levels differ
/// in is the patch alone.
pub(super) fn make(directory: &Path) -> Command {
    let mut command = clean_command("make");
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    command.arg("-C").arg(directory).arg(format!("-j{jobs}"));
    command.env("LOCALVERSION", "");
    command.env("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970");
    command
        .env("KBUILD_BUILD_USER", "assay")
        .env("KBUILD_BUILD_HOST", "assay")
        .env("KBUILD_BUILD_VERSION", "1");
    command
}

/// tar(1) that unpacks into a directory; a name with a colon is no other machine's.
pub(super) fn tar(into: &Path) -> Command {
    let mut command = clean_command("tar");
    command.args(["--extract", "--no-same-owner", "--force-local", "--directory"]).arg(into);
    command
}

/// Runs a program to its end.
///
/// # Errors
/// [`BuildError::Interrupted`], or what its words say of why it failed.
pub(super) fn run(mut command: Command, watch: &mut Watch<'_>) -> Result<(), BuildError> {
    command.stdin(Stdio::null());
    ran(command, watch)
}

/// The same of a program that reads what another one writes.
///
/// # Errors
/// As [`run`].
pub(super) fn run_reading(
    mut command: Command,
    input: impl Into<Stdio>,
    watch: &mut Watch<'_>,
) -> Result<(), BuildError> {
    command.stdin(input);
    ran(command, watch)
}

fn ran(mut command: Command, watch: &mut Watch<'_>) -> Result<(), BuildError> {
    let written = BuildError::io("cannot write", watch.log);
    let mut log = File::options().create(true).append(true).read(true).open(watch.log).map_err(written)?;
    let shown = format!("{command:?}");
    let begins = log.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = writeln!(log, "$ {shown}");
    let twice = |file: &File| file.try_clone().map_err(BuildError::io("cannot write", watch.log));
    command.stdout(twice(&log)?).stderr(twice(&log)?).process_group(0);
    dies_with_its_parent(&mut command, Signal::TERM);
    watch.locks.iter().for_each(|lock| keeps_open(&mut command, lock));
    let name = command.get_program().to_string_lossy().into_owned();
    let started = command.spawn();
    let mut child = started.map_err(|source| BuildError::NotStarted { command: name.clone(), source })?;
    let mut reader = File::open(watch.log).map_err(BuildError::io("cannot read", watch.log))?;
    let _ = reader.seek(SeekFrom::Start(begins));
    let mut counter = Counter::default();
    loop {
        let ended = ended(&mut child).map_err(BuildError::io("cannot wait for", &name))?;
        counter.count(&mut reader);
        (watch.objects)(counter.objects);
        if let Some(status) = ended {
            if status.success() {
                return Ok(());
            }
            if watch.cancelled.load(Ordering::SeqCst) {
                return Err(watch.interrupted());
            }
            return Err(failure(watch, &name, begins, status));
        }
        if watch.cancelled.load(Ordering::SeqCst) {
            end(&mut child);
            return Err(watch.interrupted());
        }
        std::thread::sleep(LOOK);
    }
}

/// How a program ended; `None`: it has not. What it has started and left alone ends with it.
fn ended(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let Some(group) = group(child) else { return child.try_wait() };
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::Pid(group), how)?.is_none() {
        return Ok(None);
    }
    // The group has this number for as long as the program was not waited for.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().map(Some)
}

fn group(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// make(1) removes what it is making when a signal ends it.
fn end(child: &mut Child) {
    let Some(group) = group(child) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if matches!(ended(child), Ok(Some(_)) | Err(_)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Objects that kbuild says it makes: `  CC      fs/f2fs/file.o`, one a line.
#[derive(Default)]
struct Counter {
    rest: Vec<u8>,
    objects: u64,
}

impl Counter {
    fn count(&mut self, log: &mut File) {
        let mut bytes = Vec::new();
        let _ = log.read_to_end(&mut bytes);
        self.rest.extend(bytes);
        while let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
            self.objects += u64::from(is_object(&self.rest[..at]));
            self.rest.drain(..=at);
        }
    }
}

fn is_object(line: &[u8]) -> bool {
    [b"  CC  ".as_slice(), b"  CC [M]", b"  AS  ", b"  AS [M]"].iter().any(|start| line.starts_with(start))
}

/// What a log says of a failure: mistakes of the compiler, symbols that are missing, or the last words.
fn failure(watch: &Watch<'_>, command: &str, begins: u64, status: ExitStatus) -> BuildError {
    let text = regular_file::read(watch.log, MOST_LOG).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[(begins as usize).min(text.len())..]).into_owned();
    // Behind the line with the command itself.
    let words = text.split_once('\n').map_or("", |(_, words)| words);
    if let Some(error) = BuildError::of_the_machine(words, &watch.all()) {
        return error;
    }
    if status.signal() == Some(Signal::KILL.as_raw()) {
        // Nobody but the kernel, and whoever has the right, ends one like this.
        return BuildError::Machine {
            what: watch.all(),
            said: format!("{command} was killed"),
            is_space: false,
        };
    }
    told(&text, watch.what, watch.log, command)
}

fn told(text: &str, what: &str, log: &Path, command: &str) -> BuildError {
    let some = |picked: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        picked.take(MOST_LINES).map(|line| line.trim().to_owned()).collect()
    };
    let (what, log): (String, PathBuf) = (what.to_owned(), log.to_owned());
    let mut said = text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
    if is_beside(command) {
        // tar goes on and ends with words that say nothing.
        let said = if command == "tar" { said.next() } else { said.last() }.unwrap_or("it says nothing");
        return BuildError::Failed { command: command.to_owned(), said: said.to_owned() };
    }
    let symbols =
        some(&mut text.lines().filter(|line| line.contains("modpost:") && line.contains("undefined!")));
    if !symbols.is_empty() {
        return BuildError::Symbols { what, symbols, log };
    }
    let mistake = |line: &&str| {
        line.contains(": error:")
            || line.contains(": fatal error:")
            || line.contains("undefined reference to")
    };
    let mut first = some(&mut text.lines().filter(mistake));
    if first.is_empty() {
        first = some(&mut text.lines().filter(|line| line.starts_with("make") && line.contains(" *** ")));
    }
    if !first.is_empty() {
        return BuildError::DoesNotCompile { what, first, log };
    }
    let said = said.last().unwrap_or("it says nothing");
    BuildError::Failed { command: command.to_owned(), said: said.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    fn ran(script: &str, cancelled: bool) -> (Result<(), BuildError>, Vec<u64>, String) {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut seen = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let flag = AtomicBool::new(cancelled);
        let mut objects = |count| seen.push(count);
        let mut watch = fake::watch(&log, &flag, &mut objects);
        let result = run(command, &mut watch);
        let text = std::fs::read_to_string(&log).unwrap();
        (result, seen, text)
    }

    #[test]
    fn objects_are_counted_and_all_words_kept() {
        let (result, seen, log) =
            ran("echo '  CC      a.o'; echo '  CC [M]  b.o'; echo '  LD      c'; echo x >&2", false);
        result.unwrap();
        assert_eq!(seen.last(), Some(&2));
        assert!(log.starts_with("$ ") && log.ends_with("x\n"), "{log}");
    }

    #[test]
    fn make_is_told_nothing_by_the_surroundings() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("Makefile"), "all:\n\t@env | sort\n").unwrap();
        let text = String::from_utf8(make(place.path()).output().unwrap().stdout).unwrap();
        // cargo sets many of its own.
        assert!(!text.contains("CARGO_"), "{text}");
        assert!(text.contains("KBUILD_BUILD_USER=assay\n") && text.contains("LOCALVERSION=\n"), "{text}");
    }

    #[test]
    fn a_failure_is_told_by_its_first_lines() {
        let said = |text: &str| told(text, "mine", Path::new("/l"), "make");
        let compile =
            said("$ make\n  CC  a.o\na.c:3:1: error: expected ';'\nx\nmake[2]: *** [a.o] Error 1\n");
        assert_eq!(compile.to_string(), "mine does not compile:\n  a.c:3:1: error: expected ';'");
        assert_eq!(compile.hint(), "/l has all that the build said");
        let symbols = said("ERROR: modpost: \"no_such\" [f2fs.ko] undefined!\nmake: *** x\n");
        assert!(matches!(symbols, BuildError::Symbols { .. }), "{symbols}");
        let rule = said("make[1]: *** No rule to make target 'x'.  Stop.\n");
        assert!(matches!(rule, BuildError::DoesNotCompile { .. }), "{rule}");
        assert_eq!(said("$ git\nfatal: no\n").to_string(), "make failed: fatal: no");
    }

    #[test]
    fn what_cannot_be_started_is_of_the_machine() {
        let directory = tempfile::tempdir().unwrap();
        let (log, flag, mut objects) = (directory.path().join("log"), AtomicBool::new(false), |_| ());
        let program = directory.path().join("program");
        std::fs::write(&program, "no program").unwrap();
        let error = run(Command::new(&program), &mut fake::watch(&log, &flag, &mut objects)).unwrap_err();
        assert!(error.to_string().contains("cannot be started: "), "{error}");
        assert!(!error.is_of_the_revision() && !error.is_of_the_request());
        assert!(error.hint().contains("no source is at fault"));
        // Words of git about a file are no mistakes of a compiler.
        let git = "$ git\nfatal: loose object: error: x\nerror: a.c: error: unable to create file\n";
        assert!(!told(git, "mine", Path::new("/l"), "git").is_of_the_revision());
    }

    #[test]
    fn a_lack_of_space_or_memory_is_not_of_what_was_built() {
        let make = "make[2]: *** [scripts/Makefile.build:244: fs/one.o] Error 1\n";
        for (line, is_space) in [
            ("fs/one.c:1: fatal error: error writing to /tmp/cc1.s: No space left on device", true),
            ("tar: linux/README: Cannot write: No space left on device", true),
            ("fatal: unable to write new index file: Disk quota exceeded", true),
            ("gcc: fatal error: Killed signal terminated program cc1", false),
            ("/bin/sh: fork: Cannot allocate memory", false),
            ("cc1: out of memory allocating 65536 bytes after a total of 1 byte", false),
            ("make[2]: *** [scripts/Makefile.build:244: fs/one.o] Killed", false),
        ] {
            let script = format!("echo '  CC  a.o'; echo '{line}'; printf '{make}'; exit 2");
            let error = ran(&script, false).0.unwrap_err();
            assert_eq!(error.to_string(), format!("building mine failed: {line}"));
            assert!(!error.is_of_the_revision() && !error.is_of_the_request(), "{line}");
            assert_eq!(error.is_of_space(), is_space, "{line}");
        }
        // A line of the source that the compiler shows.
        let shown = "printf 'a.c:3:1: error: x\\n    3 | \"No space left on device\";\\n'; exit 2";
        let error = ran(shown, false).0.unwrap_err();
        assert!(matches!(error, BuildError::DoesNotCompile { .. }), "{error}");
        let (result, ..) = ran("kill -KILL $$", false);
        assert!(matches!(result, Err(BuildError::Machine { is_space: false, .. })), "{result:?}");
    }

    #[test]
    fn a_signal_ends_the_whole_group() {
        let begun = Instant::now();
        let (result, ..) = ran("sleep 60 & sleep 60", true);
        assert!(matches!(result, Err(BuildError::Interrupted { .. })));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
