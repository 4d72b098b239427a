//! What a record says was made, undone, and what could not be undone kept in it.
//!
//! Enters: an open [`Journal`]. Leaves: a record without what was undone, and notes about what stays. Apart from what writes the record,
//! because each thing that is made (a zram device, a module) is written down by its own file, and undone by that file, too.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use super::super::claim::Claims;
use super::super::error::TargetError;
use super::super::ledger::Entry;
use super::super::made::{Found, Made};
use super::super::{follows, frozen, own_file, undo};
use super::Journal;

impl Journal {
    /// The work directory, if it is still the one that was made.
    fn inside(&self) -> Option<PathBuf> {
        matches!(self.found(), Ok(Found::Ours(_))).then(|| self.directory().to_owned())
    }

    /// Undoes what a trial that did not come to its end has left, and what lasts no longer than a trial.
    pub(in crate::target) fn undo_unfinished(&mut self) -> Result<(), TargetError> {
        let of_trial = self.undo_trial();
        let standing: Vec<String> = self.contents.standing.keys().cloned().collect();
        let unfinished = |stack: &String| !standing.contains(stack);
        self.undo(|entry| entry.stack.as_ref().is_some_and(unfinished)).and(of_trial)
    }

    /// Undoes what was made for one stack, the last first.
    pub(in crate::target) fn undo_stack(&mut self, stack: &str) -> Result<(), TargetError> {
        let written = if self.contents.standing.remove(stack).is_some() { self.write() } else { Ok(()) };
        self.undo(|entry| entry.stack.as_deref() == Some(stack)).and(written)
    }

    /// Puts back what was set for a single trial: what others change after them, as a scheduler resets other settings. One that
    /// cannot be put back does not keep the others from it; it stays written down.
    pub(in crate::target) fn undo_trial(&mut self) -> Result<(), TargetError> {
        let before = self.contents.entries.len();
        let mut failed = Vec::new();
        let inside = self.inside();
        let mut entries = std::mem::take(&mut self.contents.entries);
        // Stable, and only settings have a rank: the order of everything else is that in which it was made.
        entries.sort_by_key(|entry| match &entry.made {
            Made::Knob { path, .. } => follows::rank(path),
            _ => 0,
        });
        for entry in entries {
            let undone =
                if entry.stack.is_none() { undo::undo(&entry.made, inside.as_deref()) } else { Ok(None) };
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
    pub(in crate::target) fn undo_all(&mut self) -> Result<(), TargetError> {
        self.contents.standing.clear();
        let of_trial = self.undo_trial();
        self.undo(|entry| entry.stack.is_some()).and(of_trial)
    }

    /// A record that cannot be written keeps nothing from being undone: undoing twice does no harm.
    fn undo(&mut self, wanted: impl Fn(&Entry) -> bool) -> Result<(), TargetError> {
        self.claims = Claims::default();
        let (inside, mut written) = (self.inside(), Ok(()));
        // What could not be undone keeps what it lies on; other stacks have nothing to do with it.
        let (mut stuck, mut failed): (Vec<Option<String>>, Vec<TargetError>) = (Vec::new(), Vec::new());
        while let Some(at) =
            self.contents.entries.iter().rposition(|entry| wanted(entry) && !stuck.contains(&entry.stack))
        {
            let (made, begun) = (&self.contents.entries[at].made, Instant::now());
            let note = match undo::undo(made, inside.as_deref()) {
                Ok(note) => note,
                Err(error) => {
                    failed.push(error);
                    stuck.push(self.contents.entries[at].stack.clone());
                    continue;
                }
            };
            if matches!(made, Made::Mount { .. }) {
                self.unmounting = Some(self.unmounting.unwrap_or_default() + begun.elapsed());
            }
            self.notes.extend(note);
            self.contents.entries.remove(at);
            written = written.and(self.write());
        }
        all_of(failed).and(written)
    }

    /// Removes the files that were made elsewhere; one that is another now stays, which is noted.
    pub(in crate::target) fn remove_files(&mut self) -> Result<(), TargetError> {
        let (mut failed, mut asked) = (Vec::new(), BTreeMap::new());
        for file in std::mem::take(&mut self.contents.files) {
            // Whoever removes a file of a frozen filesystem hangs; each is asked once, by a file that is the run's own.
            let device = file.inode.map(|inode| inode.device);
            let asks = || frozen::takes_changes(&file.path).map_err(|error| error.to_string());
            let takes = match own_file::is_there(&file) {
                true => asked.entry(device).or_insert_with(asks).clone(),
                false => Ok(()),
            };
            let removed = match takes {
                Ok(()) => own_file::remove(&file),
                Err(why) => {
                    let why = std::io::Error::new(std::io::ErrorKind::TimedOut, why);
                    Err(TargetError::io("cannot remove", &file.path)(why))
                }
            };
            match removed {
                Ok(note) => self.notes.extend(note),
                Err(error) => {
                    failed.push(error);
                    self.contents.files.push(file);
                }
            }
        }
        self.write().and(all_of(failed))
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
