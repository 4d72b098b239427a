//! What was made for a run, written down before it is made, in the run's work directory.
//!
//! Enters: what is about to be made. Leaves: a file from which everything can be undone by whoever comes later: the agent
//! itself, its parent when it died, `assay cleanup` when both were killed. Undoing twice does no harm. A lock keeps an
//! agent that is still dying and whoever undoes its work apart.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::claim::Claims;
use super::error::TargetError;
use super::{registry, undo};

/// The journal's file in the work directory.
const JOURNAL: &str = ".assay-journal";
/// The file that is locked while something is made or undone.
const LOCK: &str = ".assay-lock";
/// An agent that was killed needs this long at most to be gone.
const PATIENCE: Duration = Duration::from_secs(15);

/// One thing that is made, or was there and was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Made {
    /// Loop devices on this file, and the file.
    Loop {
        /// The backing file.
        image: PathBuf,
    },
    /// A zram device.
    Zram {
        /// Those that were there before.
        before: Vec<u32>,
        /// Its number, once known.
        number: Option<u32>,
        /// Whether it was added; else one that was there, and unused, is reset.
        added: bool,
        /// Its size.
        bytes: u64,
        /// The kernel's number for this disk and no other (`diskseq`, since Linux 5.15), once known.
        #[serde(default)]
        sequence: Option<u64>,
    },
    /// A null_blk device of this name in configfs.
    NullBlk {
        /// The name.
        name: String,
    },
    /// A module that was loaded.
    Module {
        /// Its name.
        name: String,
    },
    /// A filesystem made on a device that is not assay's.
    Filesystem {
        /// The device.
        device: PathBuf,
        /// The filesystem's own identity, once it is complete; without it nothing is wiped.
        identity: Option<String>,
    },
    /// A mount.
    Mount {
        /// Where.
        point: PathBuf,
    },
    /// Two settings of which one is 0, of which one was changed.
    Pair {
        /// The amount, the share.
        paths: [PathBuf; 2],
        /// What they said before.
        before: [String; 2],
    },
    /// A setting that was changed.
    Knob {
        /// The file.
        path: PathBuf,
        /// What it said before.
        before: String,
    },
}

impl Made {
    /// The name of the step that makes it.
    fn step(&self) -> &'static str {
        match self {
            Made::Loop { .. } => "loop",
            Made::Zram { .. } => "zram",
            Made::NullBlk { .. } => "null_blk",
            Made::Module { .. } => "module",
            Made::Filesystem { .. } => "filesystem",
            Made::Mount { .. } => "mount",
            Made::Knob { .. } | Made::Pair { .. } => "knob",
        }
    }
}

/// Something made, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// The stack it belongs to; `None`: a single trial.
    stack: Option<String>,
    made: Made,
}

/// A device with its filesystem that stands, ready to be used again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    /// For which trials it was made.
    pub(super) epoch: String,
    /// Facts known only to who made it.
    pub(super) facts: BTreeMap<String, String>,
    /// What the kernel warned of when it was made.
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Contents {
    boot: String,
    entries: Vec<Entry>,
    standing: BTreeMap<String, Standing>,
}

/// The journal of one work directory, locked as long as this lives.
#[derive(Debug)]
pub(super) struct Journal {
    directory: PathBuf,
    contents: Contents,
    /// About what was to be undone and stays, as others use it.
    notes: Vec<String>,
    /// Locks on what was made; they would be in the way of its undoing.
    claims: Claims,
    /// Closing it unlocks; children do not inherit it over exec.
    _lock: File,
}

impl Journal {
    /// Opens and locks the journal of a work directory; waits for another holder for 15 s.
    pub(super) fn open(directory: &Path) -> Result<Journal, TargetError> {
        let lock = lock(&directory.join(LOCK))?;
        let path = directory.join(JOURNAL);
        let boot = crate::host::boot_id();
        let contents = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                TargetError::failed(format!("{} cannot be read: {error}", path.display()))
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                registry::register(directory);
                Contents { boot: boot.clone(), ..Contents::default() }
            }
            Err(error) => return Err(TargetError::io("cannot read", path)(error)),
        };
        let mut journal = Journal {
            directory: directory.to_owned(),
            contents,
            notes: Vec::new(),
            claims: Claims::default(),
            _lock: lock,
        };
        if journal.contents.boot != boot {
            journal.forget_kernel_objects(boot);
        }
        Ok(journal)
    }

    /// After a restart the kernel has none of it; devices of other origin may have the same names.
    fn forget_kernel_objects(&mut self, boot: String) {
        self.contents = Contents { boot, ..Contents::default() };
    }

    /// Writes down what is about to be made.
    pub(super) fn begin(&mut self, stack: Option<&str>, made: Made) -> Result<(), TargetError> {
        let step = made.step();
        self.contents.entries.push(Entry { stack: stack.map(str::to_owned), made });
        self.write()?;
        self.reached(step);
        Ok(())
    }

    /// Replaces the last entry by one that knows more.
    pub(super) fn now_known(&mut self, made: Made) -> Result<(), TargetError> {
        if let Some(last) = self.contents.entries.last_mut() {
            last.made = made;
        }
        self.write()
    }

    /// Undoes what a trial that did not come to its end has left, and what lasts no longer than a trial.
    pub(super) fn undo_unfinished(&mut self) -> Result<(), TargetError> {
        let of_trial = self.undo_trial();
        let standing: Vec<String> = self.contents.standing.keys().cloned().collect();
        let unfinished = |stack: &String| !standing.contains(stack);
        self.undo(|entry| entry.stack.as_ref().is_some_and(unfinished)).and(of_trial)
    }

    /// Holds locks until what was made is undone.
    pub(super) fn keep(&mut self, claims: Claims) {
        self.claims = claims;
    }

    /// Notes about what was to be undone and stays; told once.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// A step is done: where a test wants to kill the run at just this step, it waits here to be killed.
    pub(super) fn reached(&self, step: &str) {
        if std::env::var_os("ASSAY_TEST_PAUSE").is_some_and(|wanted| wanted == step) {
            let _ = std::fs::write(self.directory.join("paused"), step);
            std::thread::sleep(Duration::from_secs(60));
        }
    }

    /// What stands under this name.
    pub(super) fn standing(&self, stack: &str) -> Option<&Standing> {
        self.contents.standing.get(stack)
    }

    /// Writes down that a stack is complete.
    pub(super) fn stands(&mut self, stack: &str, standing: Standing) -> Result<(), TargetError> {
        self.contents.standing.insert(stack.to_owned(), standing);
        self.write()
    }

    /// Undoes what was made for one stack, the last first.
    pub(super) fn undo_stack(&mut self, stack: &str) -> Result<(), TargetError> {
        if self.contents.standing.remove(stack).is_some() {
            self.write()?;
        }
        self.undo(|entry| entry.stack.as_deref() == Some(stack))
    }

    /// Puts back what was set for a single trial: in the order it was set, as a scheduler resets other settings. One that
    /// cannot be put back does not keep the others from it; it stays written down.
    pub(super) fn undo_trial(&mut self) -> Result<(), TargetError> {
        let before = self.contents.entries.len();
        let mut failed = Vec::new();
        for entry in std::mem::take(&mut self.contents.entries) {
            let undone = if entry.stack.is_none() { undo::undo(&entry.made) } else { Ok(None) };
            if entry.stack.is_some() || undone.is_err() {
                self.contents.entries.push(entry);
            }
            match undone {
                Ok(note) => self.notes.extend(note),
                Err(error) => failed.push(error),
            }
        }
        let written = if self.contents.entries.len() < before { self.write() } else { Ok(()) };
        all_of(failed).and(written)
    }

    /// Undoes everything; what could not be undone keeps nothing else from it but what it lies on.
    pub(super) fn undo_all(&mut self) -> Result<(), TargetError> {
        self.contents.standing.clear();
        let of_trial = self.undo_trial();
        self.undo(|entry| entry.stack.is_some()).and(of_trial)
    }

    fn undo(&mut self, wanted: impl Fn(&Entry) -> bool) -> Result<(), TargetError> {
        self.claims = Claims::default();
        while let Some(at) = self.contents.entries.iter().rposition(&wanted) {
            let note = undo::undo(&self.contents.entries[at].made)?;
            self.notes.extend(note);
            self.contents.entries.remove(at);
            self.write()?;
        }
        Ok(())
    }

    /// In one step, so that a kill leaves the old journal or the new one.
    fn write(&self) -> Result<(), TargetError> {
        let path = self.directory.join(JOURNAL);
        let new = self.directory.join(format!("{JOURNAL}.new"));
        let bytes = serde_json::to_vec(&self.contents).unwrap_or_default();
        std::fs::write(&new, bytes)
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(TargetError::io("cannot write", path))
    }
}

fn lock(path: &Path) -> Result<File, TargetError> {
    let file = File::create(path).map_err(TargetError::io("cannot make", path))?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let path = path.parent().unwrap_or(path).display();
                return Err(TargetError::failed(format!("{path} is in use by an agent that still runs")));
            }
            Err(error) => return Err(TargetError::io("cannot lock", path)(error.into())),
        }
    }
}

/// The one failure, or all in one.
fn all_of(mut failed: Vec<TargetError>) -> Result<(), TargetError> {
    match failed.len() {
        0 => Ok(()),
        1 => Err(failed.remove(0)),
        _ => {
            let reasons: Vec<String> = failed.iter().map(ToString::to_string).collect();
            let hint = failed.remove(0).hint();
            let reason = reasons.join("; ");
            Err(TargetError::Failed { reason, command: String::new(), output: String::new(), hint })
        }
    }
}

/// Undoes all that a work directory's journal says, and returns notes about what stays; a directory without one has
/// nothing to undo.
pub(super) fn undo_all(directory: &Path) -> Result<Vec<String>, TargetError> {
    if !directory.join(JOURNAL).exists() {
        return Ok(Vec::new());
    }
    let mut journal = Journal::open(directory)?;
    journal.undo_all().map(|()| journal.notes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A work directory that leaves the registry when it goes.
    struct Work(tempfile::TempDir);

    impl Work {
        fn new() -> Work {
            Work(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> &Path {
            self.0.path()
        }
    }

    impl Drop for Work {
        fn drop(&mut self) {
            registry::unregister(self.path());
        }
    }

    fn knob(path: &Path, before: &str) -> Made {
        Made::Knob { path: path.to_owned(), before: before.to_owned() }
    }

    #[test]
    fn what_was_written_down_is_undone_by_another() {
        let work = Work::new();
        let setting = work.path().join("setting");
        std::fs::write(&setting, "old").unwrap();
        let mut journal = Journal::open(work.path()).unwrap();
        journal.begin(None, knob(&setting, "old")).unwrap();
        std::fs::write(&setting, "new").unwrap();
        drop(journal);
        undo_all(work.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&setting).unwrap(), "old");
        std::fs::write(&setting, "later").unwrap();
        undo_all(work.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&setting).unwrap(), "later", "undone once only");
    }

    #[test]
    fn a_setting_that_cannot_be_put_back_stops_no_other_and_stays_written_down() {
        let work = Work::new();
        let (first, stuck, last) =
            (work.path().join("first"), work.path().join("stuck"), work.path().join("last"));
        let mut journal = Journal::open(work.path()).unwrap();
        for path in [&first, &last] {
            std::fs::write(path, "new").unwrap();
        }
        // Nobody can write to a directory.
        std::fs::create_dir(&stuck).unwrap();
        for path in [&first, &stuck, &last] {
            journal.begin(None, knob(path, "old")).unwrap();
        }
        drop(journal);
        for _ in 0..2 {
            let error = undo_all(work.path()).unwrap_err();
            assert!(error.to_string().contains("stuck was old and could not be put back"), "{error}");
            assert!(error.hint().contains("echo old >"), "{}", error.hint());
            for path in [&first, &last] {
                assert_eq!(std::fs::read_to_string(path).unwrap(), "old");
            }
        }
        // Whoever does it by hand is done.
        std::fs::remove_dir(&stuck).unwrap();
        std::fs::write(&stuck, "old").unwrap();
        assert_eq!(undo_all(work.path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_a_trial_set_does_not_outlive_it_and_a_stack_does() {
        let work = Work::new();
        let (trial, stack) = (work.path().join("trial"), work.path().join("stack"));
        for path in [&trial, &stack] {
            std::fs::write(path, "set").unwrap();
        }
        let mut journal = Journal::open(work.path()).unwrap();
        journal.begin(Some("s"), knob(&stack, "old")).unwrap();
        journal.begin(None, knob(&trial, "old")).unwrap();
        journal.stands("s", Standing { epoch: "3".to_owned(), ..Standing::default() }).unwrap();
        journal.undo_trial().unwrap();
        assert_eq!(std::fs::read_to_string(&trial).unwrap(), "old");
        assert_eq!(std::fs::read_to_string(&stack).unwrap(), "set");
        drop(journal);
        let mut journal = Journal::open(work.path()).unwrap();
        assert_eq!(journal.standing("s").unwrap().epoch, "3");
        journal.undo_stack("s").unwrap();
        assert_eq!(journal.standing("s"), None);
        assert_eq!(std::fs::read_to_string(&stack).unwrap(), "old");
    }

    #[test]
    fn nothing_of_another_start_of_the_machine_is_touched() {
        let work = Work::new();
        let setting = work.path().join("setting");
        std::fs::write(&setting, "new").unwrap();
        Journal::open(work.path()).unwrap().begin(None, knob(&setting, "old")).unwrap();
        let path = work.path().join(JOURNAL);
        let text = std::fs::read_to_string(&path).unwrap().replace(&crate::host::boot_id(), "another");
        std::fs::write(&path, text).unwrap();
        undo_all(work.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&setting).unwrap(), "new");
    }
}
