//! What a trial makes, written into the record of its work directory before it is made. `putting_back.rs` undoes it.
//!
//! Enters: what is about to be made. Leaves: a record from which everything can be undone by whoever comes later: the agent
//! itself, its parent when it died, `assay cleanup` when both were killed. Undoing twice does no harm. A lock keeps an
//! agent that is still dying and whoever undoes its work apart.

mod putting_back;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::claim::Claims;
use super::error::TargetError;
use super::ledger::{Contents, Entry, Ledger, Standing};
use super::made::{Found, Made};
use super::own_file;

/// What was made in a work directory, while something is made or undone.
#[derive(Debug)]
pub(super) struct Journal {
    ledger: Rc<Ledger>,
    contents: Contents,
    /// What was to be undone and stays, because others use it now.
    notes: Vec<String>,
    /// How long filesystems took to be unmounted, where any was.
    unmounting: Option<Duration>,
    /// Locks that are held until what was made is undone.
    claims: Claims,
    _working: File,
}

impl Journal {
    /// Opens the record of a work directory; waits for another holder for 15 s.
    ///
    /// # Errors
    /// [`TargetError::NotOurs`]: there is no record, or it is about another directory.
    pub(super) fn open(work: &Path) -> Result<Journal, TargetError> {
        let real = work.canonicalize().map_err(TargetError::io("cannot look at", work))?;
        let not_ours = |why: &str| TargetError::NotOurs { path: work.to_owned(), why: why.to_owned() };
        let (ledger, _) =
            Ledger::of(&real)?.ok_or_else(|| not_ours("no record of this user says that assay made it"))?;
        let journal = Journal::begin_with(Rc::new(ledger))?;
        match journal.contents.work.look()? {
            Found::Ours(_) => Ok(journal),
            Found::Nothing => Err(not_ours("it is gone")),
            Found::Foreign(why) => Err(not_ours(&why)),
        }
    }

    /// Begins to undo what a record says.
    pub(super) fn begin_with(ledger: Rc<Ledger>) -> Result<Journal, TargetError> {
        let _working = ledger.begin_work()?;
        let mut contents = ledger.again()?;
        let boot = crate::host::boot_id();
        if contents.boot != boot {
            // After a restart the kernel has none of it; devices of other origin may have the same names.
            contents.entries.clear();
            contents.standing.clear();
            contents.boot = boot;
        }
        let (notes, claims) = (Vec::new(), Claims::default());
        Ok(Journal { ledger, contents, notes, unmounting: None, claims, _working })
    }

    /// What is at the work directory's path now.
    pub(super) fn found(&self) -> Result<Found, TargetError> {
        self.contents.work.look()
    }

    /// Where it is.
    pub(super) fn directory(&self) -> &Path {
        &self.contents.work.path
    }

    /// The random digits of the run, which names in the kernel carry.
    pub(super) fn session(&self) -> &str {
        &self.contents.session
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

    /// What the last entry says was not made after all.
    pub(super) fn not_made(&mut self) -> Result<(), TargetError> {
        self.contents.entries.pop();
        self.write()
    }

    /// Holds locks until what was made is undone.
    pub(super) fn keep(&mut self, claims: Claims) {
        self.claims = claims;
    }

    /// Notes about what was to be undone and stays; told once.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// How long the filesystems took that were unmounted since this was last asked; `None`: there was none.
    pub(super) fn take_unmounting(&mut self) -> Option<Duration> {
        self.unmounting.take()
    }

    /// A step is done: where a test wants to kill the run at just this step, it waits here to be killed.
    pub(super) fn reached(&self, step: &str) {
        if std::env::var_os("ASSAY_TEST_PAUSE").is_some_and(|wanted| wanted == step) {
            let _ = std::fs::write(self.directory().join("paused"), step);
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

    /// In one step, so that a kill leaves the old contents or the new ones.
    fn write(&self) -> Result<(), TargetError> {
        self.ledger.write(&self.contents)
    }

    /// Makes empty files for a job that names them outside the work directory. Nothing may be there: what came since it was announced is
    /// somebody's.
    pub(super) fn make_files(&mut self, paths: &[PathBuf]) -> Result<(), TargetError> {
        let begun = self.contents.files.len();
        for path in paths {
            let planned = own_file::planned(path)?;
            self.contents.files.push(planned);
        }
        self.write()?;
        let made = self.contents.files[begun..].iter_mut().try_for_each(own_file::make);
        // What was made until an error is known as this run's; what was in the way never was.
        self.contents.files.retain(|file| file.inode.is_some());
        self.write().and(made)
    }

    /// Looks whether the files that were made elsewhere are still those; one that the last trial removed is made again.
    pub(super) fn check_files(&mut self) -> Result<(), TargetError> {
        let mut again = false;
        for file in &mut self.contents.files {
            again |= own_file::check(file)?;
        }
        if again { self.write() } else { Ok(()) }
    }

    /// The work directory, where files were made elsewhere for its job.
    pub(super) fn with_files(&self) -> Option<PathBuf> {
        (!self.contents.files.is_empty()).then(|| self.directory().to_owned())
    }

    /// Takes over what a watch of those files has written.
    pub(super) fn read_again(&mut self) -> Result<(), TargetError> {
        self.contents = self.ledger.again()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::WorkDirectory;
    use super::super::made::Seen;
    use super::*;

    /// A setting of the kernel that everybody has: a process's own.
    struct Setting(std::process::Child);

    impl Setting {
        fn new() -> Setting {
            Setting(std::process::Command::new("sleep").arg("60").spawn().unwrap())
        }

        fn path(&self) -> PathBuf {
            PathBuf::from(format!("/proc/{}/oom_score_adj", self.0.id()))
        }

        fn set(&self, value: &str) -> PathBuf {
            std::fs::write(self.path(), value).unwrap();
            self.path()
        }

        fn now(&self) -> String {
            std::fs::read_to_string(self.path()).unwrap().trim().to_owned()
        }
    }

    impl Drop for Setting {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn work() -> (tempfile::TempDir, WorkDirectory) {
        let base = tempfile::tempdir().unwrap();
        let work = WorkDirectory::create(&base.path().join("assay-1")).unwrap();
        (base, work)
    }

    fn knob(path: PathBuf, before: &str) -> Made {
        Made::Knob { path, before: before.to_owned(), sequence: None }
    }

    #[test]
    fn what_was_written_down_is_undone_by_another() {
        let (_base, work) = work();
        let setting = Setting::new();
        let mut journal = Journal::open(work.path()).unwrap();
        journal.begin(None, knob(setting.set("500"), "400")).unwrap();
        drop(journal);
        Journal::open(work.path()).unwrap().undo_all().unwrap();
        assert_eq!(setting.now(), "400");
        setting.set("600");
        Journal::open(work.path()).unwrap().undo_all().unwrap();
        assert_eq!(setting.now(), "600", "undone once only");
    }

    #[test]
    fn one_that_cannot_be_put_back_stops_no_other_and_stays() {
        let (_base, work) = work();
        let (first, last) = (Setting::new(), Setting::new());
        // Nobody can write to it.
        let stuck = PathBuf::from("/proc/self/limits");
        let mut journal = Journal::open(work.path()).unwrap();
        for path in [first.set("500"), stuck, last.set("500")] {
            journal.begin(None, knob(path, "400")).unwrap();
        }
        drop(journal);
        for _ in 0..2 {
            let error = Journal::open(work.path()).unwrap().undo_all().unwrap_err();
            assert!(error.to_string().contains("limits was 400 and could not be put back"), "{error}");
            assert!(error.hint().contains("echo 400 >"), "{}", error.hint());
            assert_eq!((first.now(), last.now()), ("400".to_owned(), "400".to_owned()));
        }
        let mut journal = Journal::open(work.path()).unwrap();
        assert_eq!(journal.contents.entries.len(), 1);
        journal.contents.entries.clear();
        journal.write().unwrap();
    }

    #[test]
    fn what_a_trial_set_does_not_outlive_it_and_a_stack_does() {
        let (_base, work) = work();
        let (trial, stack) = (Setting::new(), Setting::new());
        let mut journal = Journal::open(work.path()).unwrap();
        journal.begin(Some("s"), knob(stack.set("500"), "400")).unwrap();
        journal.begin(None, knob(trial.set("500"), "400")).unwrap();
        journal.stands("s", Standing { epoch: "3".to_owned(), ..Standing::default() }).unwrap();
        journal.undo_trial().unwrap();
        assert_eq!((trial.now(), stack.now()), ("400".to_owned(), "500".to_owned()));
        drop(journal);
        let mut journal = Journal::open(work.path()).unwrap();
        assert_eq!(journal.standing("s").unwrap().epoch, "3");
        journal.undo_stack("s").unwrap();
        assert_eq!(journal.standing("s"), None);
        assert_eq!(stack.now(), "400");
    }

    #[test]
    fn nothing_of_another_start_of_the_machine_is_touched() {
        let (_base, work) = work();
        let setting = Setting::new();
        let mut journal = Journal::open(work.path()).unwrap();
        journal.begin(None, knob(setting.set("500"), "400")).unwrap();
        journal.contents.boot = "another".to_owned();
        journal.write().unwrap();
        drop(journal);
        Journal::open(work.path()).unwrap().undo_all().unwrap();
        assert_eq!(setting.now(), "500");
    }

    #[test]
    fn a_text_file_is_no_setting() {
        let (base, work) = work();
        let text = base.path().join("text");
        std::fs::write(&text, "mine").unwrap();
        let mut journal = Journal::open(work.path()).unwrap();
        journal.begin(None, knob(text.clone(), "theirs")).unwrap();
        journal.undo_all().unwrap();
        assert_eq!(std::fs::read_to_string(&text).unwrap(), "mine");
        assert!(journal.notes()[0].contains("is not a setting of the kernel"));
    }

    #[test]
    fn files_made_for_a_job_are_removed_and_others_stay() {
        let (base, work) = work();
        let (mine, theirs) = (base.path().join("mine"), base.path().join("theirs"));
        let mut journal = Journal::open(work.path()).unwrap();
        std::fs::write(&theirs, "x").unwrap();
        let refused = journal.make_files(std::slice::from_ref(&theirs)).unwrap_err();
        assert!(refused.to_string().contains("appeared"), "{refused}");
        assert_eq!(journal.contents.files, Vec::new());
        journal.make_files(std::slice::from_ref(&mine)).unwrap();
        journal.check_files().unwrap();
        // The trial's own job may remove it; then it is made again.
        std::fs::remove_file(&mine).unwrap();
        journal.check_files().unwrap();
        assert_eq!(journal.contents.files[0].inode, Seen::of(&mine).ok().map(|seen| seen.inode));
        let kept = base.path().join("kept");
        std::fs::rename(&mine, &kept).unwrap();
        std::fs::write(&mine, "somebody's").unwrap();
        assert!(journal.check_files().is_err());
        journal.remove_files().unwrap();
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "somebody's");
        assert!(journal.notes()[0].contains("is another file now"));
    }
}
