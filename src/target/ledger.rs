//! The record of what a run has made: one file for each work directory, in a directory that only this user can change. It is the only
//! authority to undo or remove anything; what lies in the work directory or in a store is not.
//!
//! Enters: a work directory, its [`Contents`]. Leaves: the same contents for whoever comes later, and whether their run still lives.
//!
//! The file holds two slots of fixed size, written in turn and filled with zeros when it is made: a record is rewritten without new
//! space, so that a full disk cannot keep anything from being put back, and a kill leaves the old slot or the new one. A run holds a
//! lock (flock(2)) on the file as long as it lives; the kernel ends the lock with the process, in whatever PID namespace that is. A
//! second lock, on a file beside it, is held while something is made or undone.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::TargetError;
use super::made::{Made, OwnFile, WorkPlace};
use super::places;
use crate::sys::is_kept;

/// Version of [`Contents`]; another one is left alone.
const VERSION: u32 = 1;
/// Bytes of one of the two slots, besides those for the files that a job names.
const SLOT: u64 = 256 << 10;
/// How often a place is looked for that another assay removes, as its last record is gone, at the same moment.
const ATTEMPTS: u32 = 50;
/// Sequence number, length and checksum.
const HEAD: usize = 24;
/// An agent that was killed needs this long at most to be gone.
const PATIENCE: Duration = Duration::from_secs(15);
/// A record is complete a moment after it is made.
const INCOMPLETE: Duration = Duration::from_secs(60);
/// The end of the name of the file that is locked while something is made or undone.
const WORKING: &str = ".working";

/// Something made, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The stack it belongs to; `None`: a single trial.
    pub(super) stack: Option<String>,
    pub(super) made: Made,
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

/// All that is known of what one work directory's run has made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    version: u32,
    /// The start of the machine in which it was made; kernel objects of another one are gone.
    pub(super) boot: String,
    /// The session it belongs to: its records share these random digits.
    pub(super) session: String,
    /// The token that every process started for it carries.
    #[serde(default)]
    pub(super) mark: String,
    /// What people call the run.
    pub(super) run: String,
    /// Its process, for messages only.
    pub(super) pid: u32,
    pub(super) work: WorkPlace,
    /// Files made elsewhere, for a job that names them.
    pub(super) files: Vec<OwnFile>,
    /// Settings of the host that its trials set, and no other run.
    #[serde(default)]
    pub(super) settings: Vec<PathBuf>,
    pub(super) entries: Vec<Entry>,
    pub(super) standing: BTreeMap<String, Standing>,
}

/// One record, open.
#[derive(Debug)]
pub(super) struct Ledger {
    directory: OwnedFd,
    name: String,
    file: File,
    /// Bytes of one slot.
    slot: u64,
    /// The sequence number of the newest slot.
    sequence: std::cell::Cell<u64>,
}

impl Ledger {
    /// Makes the record of a work directory that is about to be made, and takes the lock that says that its run lives.
    /// `room` are bytes kept for files that are made elsewhere.
    pub(super) fn create(work: &Path, session: &str, run: &str, room: u64) -> Result<Ledger, TargetError> {
        let contents = Contents {
            version: VERSION,
            boot: crate::host::boot_id(),
            session: session.to_owned(),
            mark: crate::host::run_mark().to_owned(),
            run: run.to_owned(),
            pid: std::process::id(),
            work: WorkPlace::planned(work)?,
            ..Contents::default()
        };
        let name = name_of(work);
        let (directory, file) = new_file(&name)?;
        let ledger = Ledger { directory, name, file, slot: SLOT + room, sequence: 0.into() };
        let made = ledger.reserve().and_then(|()| ledger.stay_alive()).and_then(|()| ledger.write(&contents));
        made.inspect_err(|_| ledger.forget())?;
        Ok(ledger)
    }

    /// The record of a work directory; `None`: this user has none.
    pub(super) fn of(work: &Path) -> Result<Option<(Ledger, Contents)>, TargetError> {
        let name = name_of(work);
        for place in places::all().0 {
            if let Some((ledger, contents)) = Ledger::open(&place, &name)?
                && contents.work.path == work
            {
                return Ok(Some((ledger, contents)));
            }
        }
        Ok(None)
    }

    /// All records of this user, and what could not be read.
    pub(super) fn all() -> (Vec<(Ledger, Contents)>, Vec<String>) {
        let (mut found, (places, mut unread)) = (Vec::new(), places::all());
        for place in places {
            for name in names(&place.directory) {
                match Ledger::open(&place, &name) {
                    Ok(Some(one)) => found.push(one),
                    Ok(None) => remove_incomplete(&place, &name),
                    Err(error) => unread.push(error.to_string()),
                }
            }
        }
        found.sort_by(|(_, a), (_, b)| a.work.path.cmp(&b.work.path));
        (found, unread)
    }

    /// `None`: there is none of that name, or it was never complete.
    fn open(place: &places::Place, name: &str) -> Result<Option<(Ledger, Contents)>, TargetError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&place.directory, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            other => File::from(other.map_err(|error| place.failed("cannot open", name, error))?),
        };
        let found = file.metadata().map_err(TargetError::io("cannot look at", place.path.join(name)))?;
        let mine = found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
        if !mine || found.nlink() != 1 || found.mode() & 0o077 != 0 {
            let path = place.path.join(name);
            return Err(TargetError::failed(format!(
                "{} can be read or changed by others, or belongs to somebody else: it is left alone",
                path.display()
            )));
        }
        let directory = place.directory.try_clone().map_err(TargetError::io("cannot open", &place.path))?;
        let slot = found.len() / 2;
        let ledger = Ledger { directory, name: name.to_owned(), file, slot, sequence: 0.into() };
        let contents = ledger.read()?;
        Ok(contents.map(|contents| (ledger, contents)))
    }

    /// The newest complete slot.
    fn read(&self) -> Result<Option<Contents>, TargetError> {
        let newest =
            [0, self.slot].into_iter().filter_map(|at| self.slot(at)).max_by_key(|(number, _)| *number);
        let Some((sequence, bytes)) = newest else { return Ok(None) };
        self.sequence.set(sequence);
        let strange = |why: &dyn std::fmt::Display| {
            TargetError::failed(format!("the record {} cannot be read: {why}", self.name))
        };
        let contents: Contents = serde_json::from_slice(&bytes).map_err(|error| strange(&error))?;
        if contents.version != VERSION {
            return Err(strange(&format!("it has version {}, written by another assay", contents.version)));
        }
        Ok(Some(contents))
    }

    fn slot(&self, at: u64) -> Option<(u64, Vec<u8>)> {
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, at).ok()?;
        let word = |from: usize| Some(u64::from_le_bytes(head.get(from..from + 8)?.try_into().ok()?));
        let (sequence, length, sum) = (word(0)?, word(8)?, word(16)?);
        if sequence == 0 || length > self.slot.saturating_sub(HEAD as u64) {
            return None;
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, at + HEAD as u64).ok()?;
        (checksum(&bytes) == sum).then_some((sequence, bytes))
    }

    /// Writes the slot that is not the newest; needs no space that the file does not have.
    pub(super) fn write(&self, contents: &Contents) -> Result<(), TargetError> {
        let payload = serde_json::to_vec(contents).map_err(|error| {
            let reason = format!("what is made cannot be written down: {error}");
            TargetError::unavailable(reason, "--directory names a place whose path is valid UTF-8")
        })?;
        if payload.len() as u64 + HEAD as u64 > self.slot {
            let reason = format!("more is made at once than a record of {} KiB can hold", self.slot >> 10);
            return Err(TargetError::unavailable(
                reason,
                "fresh=trial keeps less standing; or run fewer cells",
            ));
        }
        let sequence = self.sequence.get() + 1;
        let words = [sequence, payload.len() as u64, checksum(&payload)];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(payload);
        let at = (sequence % 2) * self.slot;
        self.file.write_all_at(&bytes, at).map_err(TargetError::io("cannot write", &self.name))?;
        self.sequence.set(sequence);
        Ok(())
    }

    /// Fills both slots, so that they are there whatever happens to the disk.
    fn reserve(&self) -> Result<(), TargetError> {
        let zeros = vec![0; 2 * self.slot as usize];
        self.file.write_all_at(&zeros, 0).map_err(TargetError::io("cannot reserve space in", &self.name))
    }

    /// Takes the lock that is held as long as the run lives; waits for another process that only looks whether somebody has it.
    fn stay_alive(&self) -> Result<(), TargetError> {
        locked(&self.file, &self.name, || {
            format!("another assay looks at the record {} and does not end", self.name)
        })
    }

    /// Whether another process holds that lock. If none does, this one now does.
    pub(super) fn is_alive(&self) -> bool {
        matches!(flock(&self.file, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK))
    }

    /// Whether another process holds that lock; several may ask at once.
    pub(super) fn seems_alive(&self) -> bool {
        let asked = flock(&self.file, FlockOperation::NonBlockingLockShared);
        if asked.is_ok() {
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
        matches!(asked, Err(Errno::WOULDBLOCK))
    }

    /// Lets go of the lock that says that the run lives.
    #[cfg(test)]
    pub(super) fn release(&self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }

    /// Takes the lock under which something is made or undone; waits for another holder for 15 s.
    pub(super) fn begin_work(&self) -> Result<File, TargetError> {
        let name = format!("{}{WORKING}", self.name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = openat(&self.directory, &name, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(opened.map_err(|error| TargetError::io("cannot make", &name)(error.into()))?);
        locked(&file, &name, || format!("an agent still works in the directory of {}", self.name))?;
        Ok(file)
    }

    /// Takes the lock under which records are compared with each other; waits for another holder for 15 s. The directory has this
    /// record in it, so that nobody puts another one in its place.
    pub(super) fn alone(&self) -> Result<File, TargetError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Opened anew: a lock belongs to what was opened, which other records of this process share.
        let opened = openat(&self.directory, ".", flags, Mode::empty());
        let place =
            File::from(opened.map_err(|error| TargetError::io("cannot open", &self.name)(error.into()))?);
        locked(&place, &self.name, || {
            "another assay compares its settings with other runs' and does not end".to_owned()
        })?;
        Ok(place)
    }

    /// The contents as they are now: an agent may have written since they were read.
    pub(super) fn again(&self) -> Result<Contents, TargetError> {
        self.read()?.ok_or_else(|| TargetError::failed(format!("the record {} is gone", self.name)))
    }

    /// Removes the record: nothing is left that it is about.
    pub(super) fn forget(&self) {
        for name in [self.name.clone(), format!("{}{WORKING}", self.name)] {
            let _ = unlinkat(&self.directory, &name, AtFlags::empty());
        }
        places::leave();
    }
}

/// Takes a lock; waits for another holder for 15 s, and then says why it has none.
fn locked(file: &File, name: &str, why_not: impl Fn() -> String) -> Result<(), TargetError> {
    let begun = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::WOULDBLOCK) => return Err(TargetError::failed(why_not())),
            Err(error) => return Err(TargetError::io("cannot lock", name)(error.into())),
        }
    }
}

/// A record that was never complete, as its run was killed while it was made: nothing had been made yet.
fn remove_incomplete(place: &places::Place, name: &str) {
    if !is_record(name) {
        return;
    }
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(file) = openat(&place.directory, name, flags, Mode::empty()).map(File::from) else { return };
    let age = file.metadata().and_then(|found| found.modified()).ok().and_then(|then| then.elapsed().ok());
    let unlocked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if unlocked && age.is_some_and(|age| age > INCOMPLETE) {
        let _ = unlinkat(&place.directory, name, AtFlags::empty());
        places::leave();
    }
}

/// A new file in the first place that can be had.
fn new_file(name: &str) -> Result<(OwnedFd, File), TargetError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for attempt in 0.. {
        let place = places::first()?;
        match openat(&place.directory, name, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::NOENT) if attempt < ATTEMPTS => {}
            other => {
                let file = File::from(other.map_err(|error| place.failed("cannot make", name, error))?);
                return Ok((place.directory, file));
            }
        }
    }
    Err(TargetError::failed("no place for a record stays"))
}

/// The same for the same path, and like no other.
fn name_of(work: &Path) -> String {
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(work.as_os_str());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    let last: String =
        work.file_name().unwrap_or_default().to_string_lossy().chars().map(plain).take(64).collect();
    format!("{last}.{:016x}", checksum(bytes))
}

fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash64::oneshot(0, bytes)
}

fn names(directory: &OwnedFd) -> Vec<String> {
    let entries = Dir::read_from(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Where a user has no other place, records lie beside what is kept from one day to the next.
    let is_other =
        |name: &str| name.starts_with('.') || name.ends_with(WORKING) || is_kept(name) && !is_record(name);
    names.filter(|name| !is_other(name)).collect()
}

/// Whether it is a name of [`name_of`]: nothing else is removed as a record that was never complete.
fn is_record(name: &str) -> bool {
    let sum = name.rsplit_once('.').map_or("", |(_, sum)| sum);
    !name.starts_with('.') && sum.len() == 16 && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(directory: &Path) -> Ledger {
        Ledger {
            directory: File::open(directory).unwrap().into(),
            name: "record".to_owned(),
            file: File::options().create(true).append(true).open(directory.join("record")).unwrap(),
            slot: SLOT,
            sequence: 0.into(),
        }
    }

    #[test]
    fn only_records_are_taken_for_records() {
        let record = name_of(Path::new("/data/assay-1"));
        assert!(is_record(&record), "{record}");
        for other in [
            "secret",
            "secret.0123456789ab",
            "probe.json",
            &format!("{record}{WORKING}"),
            ".x.0123456789abcdef",
        ] {
            assert!(!is_record(other), "{other}");
        }
        let directory = tempfile::tempdir().unwrap();
        for name in ["secret", "secret.0123", &record, &format!("{record}{WORKING}"), "anything"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let mut found = names(&File::open(directory.path()).unwrap().into());
        found.sort();
        assert_eq!(found, ["anything", &record], "what nobody knows is told");
    }

    #[test]
    fn a_lock_that_another_takes_for_a_look_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let (own, others) = (opened(directory.path()), opened(directory.path()));
        flock(&others.file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let looks = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(others);
        });
        own.stay_alive().unwrap();
        looks.join().unwrap();
        assert!(opened(directory.path()).seems_alive());
    }
}
