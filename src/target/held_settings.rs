//! A setting of the host is one run's at a time: of two that set it, neither could put it back. What a killed run has changed is put
//! back first: a run that began with it would take the changed value for the one to put back.
//!
//! Enters: the settings that the trials of a run will set. Leaves: them in the run's own record, or whose they are already. Only records
//! of this user count: those of runs that live, and of killed ones what is still changed. Nothing of another run is touched. Looking and
//! writing down is one step: both happen under a lock on the directory of the records, which only this user can open.

use std::path::PathBuf;

use super::directory::WorkDirectory;
use super::error::TargetError;
use super::follows::clash;
use super::ledger::{Contents, Ledger};
use super::overwrite::Refusal;
use super::{setting_pair, undo};

/// The settings that cannot be set by two runs when one of them sets these.
fn all_of(wanted: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for path in wanted {
        // One file has many names below /sys.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let both = setting_pair::of(&real).map_or_else(|| vec![real], Vec::from);
        all.extend(both);
    }
    all.sort();
    all.dedup();
    all
}

/// A setting that a killed run has changed, and that clashes with one of these.
fn left_changed(contents: &Contents, wanted: &[PathBuf]) -> Option<PathBuf> {
    // After a restart the kernel has values of its own again.
    if contents.boot != crate::host::boot_id() {
        return None;
    }
    let mut changed = contents.entries.iter().flat_map(|entry| undo::settings_to_put_back(&entry.made));
    changed.find(|left| {
        let real = left.canonicalize().unwrap_or_else(|_| left.clone());
        wanted.iter().any(|one| clash(one, &real))
    })
}

/// Whether no other run that lives sets any of these, and no killed one has left any of them changed.
///
/// # Errors
/// [`TargetError::Refused`] with the setting and that run.
pub fn settings_are_free(wanted: &[PathBuf]) -> Result<(), TargetError> {
    free_but_for(&all_of(wanted), "")
}

fn free_but_for(wanted: &[PathBuf], session: &str) -> Result<(), TargetError> {
    if wanted.is_empty() {
        return Ok(());
    }
    for (ledger, contents) in Ledger::all().0.into_iter().filter(|(_, of)| of.session != session) {
        let taken = wanted.iter().find(|one| contents.settings.iter().any(|other| clash(one, other)));
        if let Some(setting) = taken.filter(|_| ledger.seems_alive()) {
            let (setting, run) = (setting.clone(), contents.run);
            return Err(Refusal::Held { setting, run, pid: contents.pid }.into());
        }
        if let Some(setting) = left_changed(&contents, wanted).filter(|_| !ledger.seems_alive()) {
            return Err(Refusal::LeftChanged { setting, run: contents.run }.into());
        }
    }
    Ok(())
}

impl WorkDirectory {
    /// Keeps other runs from setting these until this directory is removed or its process has ended.
    ///
    /// # Errors
    /// As [`settings_are_free`]; the record cannot be written.
    pub fn hold_settings(&self, wanted: &[PathBuf]) -> Result<(), TargetError> {
        let wanted = all_of(wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        let _alone = self.ledger().alone()?;
        let mut contents = self.ledger().again()?;
        free_but_for(&wanted, &contents.session)?;
        contents.settings = wanted;
        self.ledger().write(&contents)
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::Session;
    use super::super::journal::Journal;
    use super::super::made::Made;
    use std::path::Path;

    use super::*;

    /// A run that sets nothing yet.
    fn run(base: &Path, name: &str) -> WorkDirectory {
        let session = Session::new(&format!("run {name} of /x/assay.db")).unwrap();
        WorkDirectory::create_for(&base.join(name), &session, &[]).unwrap()
    }

    #[test]
    fn a_setting_is_one_living_runs() {
        let base = tempfile::tempdir().unwrap();
        let (first, second) = (run(base.path(), "assay-1"), run(base.path(), "assay-2"));
        let setting = [base.path().join("setting")];
        assert!(settings_are_free(&setting).is_ok());
        first.hold_settings(&setting).unwrap();
        first.hold_settings(&setting).unwrap();
        let said = second.hold_settings(&setting).unwrap_err();
        let words =
            format!("setting is being set by run assay-1 of /x/assay.db (process {})", std::process::id());
        assert!(said.to_string().ends_with(&words), "{said}");
        assert!(settings_are_free(&setting).is_err());
        second.hold_settings(&[base.path().join("another")]).unwrap();
        // As a kill would: the lock goes, the record stays.
        let path = first.path().canonicalize().unwrap();
        first.dies();
        second.hold_settings(&setting).unwrap();
        let left = super::super::abandoned().0.into_iter().find(|one| one.work() == path).unwrap();
        left.remove().unwrap();
        second.close().unwrap();
        assert!(settings_are_free(&setting).is_ok());
    }

    #[test]
    fn what_a_killed_run_left_changed_is_put_back_first() {
        let base = tempfile::tempdir().unwrap();
        let (first, second) = (run(base.path(), "assay-1"), run(base.path(), "assay-2"));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let path = PathBuf::from(format!("/proc/{}/oom_score_adj", child.id()));
        let now = || std::fs::read_to_string(&path).unwrap().trim().to_owned();
        let (before, wanted) = (now(), [path.clone()]);
        let mut journal = Journal::open(first.path()).unwrap();
        let knob = Made::Knob { path: path.clone(), before: before.clone(), sequence: None };
        journal.begin(None, knob).unwrap();
        drop(journal);
        let work = first.path().canonicalize().unwrap();
        first.dies();
        second.hold_settings(&wanted).expect("written down, and not changed yet");
        std::fs::write(&path, "900").unwrap();
        let said = second.hold_settings(&wanted).unwrap_err();
        assert!(
            said.to_string().ends_with("was left changed by run assay-1 of /x/assay.db, which was killed"),
            "{said}"
        );
        assert!(said.hint().contains("assay cleanup"), "{}", said.hint());
        second.hold_settings(&[base.path().join("another")]).unwrap();
        let left = super::super::abandoned().0.into_iter().find(|one| one.work() == work).unwrap();
        left.remove().unwrap();
        assert_eq!(now(), before);
        second.hold_settings(&wanted).unwrap();
        second.close().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn of_many_that_begin_at_once_one_has_it() {
        let base = tempfile::tempdir().unwrap();
        let setting = [base.path().join("setting")];
        let all_have_asked = std::sync::Barrier::new(8);
        let held = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (base, setting, all_have_asked, held) = (base.path(), &setting, &all_have_asked, &held);
                scope.spawn(move || {
                    let run = run(base, &format!("assay-{number}"));
                    all_have_asked.wait();
                    let holds = run.hold_settings(setting).is_ok();
                    held.fetch_add(usize::from(holds), std::sync::atomic::Ordering::SeqCst);
                    all_have_asked.wait();
                });
            }
        });
        assert_eq!(held.into_inner(), 1);
    }

    #[test]
    fn what_one_setting_changes_in_another_is_held_with_it() {
        let wanted = all_of(&[PathBuf::from("/proc/sys/vm/dirty_ratio")]);
        assert_eq!(wanted.len(), 2, "{wanted:?}");
    }
}
