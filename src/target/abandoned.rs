//! What killed runs have left: records that no living process holds.
//!
//! Enters: nothing but this user's own records. Leaves: each with what undoing it would do, to be listed or removed.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::directory::remove_recorded;
use super::ledger::{Contents, Ledger};
use super::made::{Found, is_nothing};

/// Who only asks whether a run lives holds its lock for a moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// One work directory of a killed run, and all that was made for it.
#[derive(Debug)]
pub struct Abandoned {
    ledger: Rc<Ledger>,
    contents: Contents,
}

impl Abandoned {
    /// The work directory.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.contents.work.path
    }

    /// What people call the run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.contents.run
    }

    /// The random digits of its session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.contents.session
    }

    /// Whether nothing is there of all that its record names, as after somebody else removed it, or on a disk that is not mounted now.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        is_gone(&self.contents)
    }

    /// What is there of it: files made for a job that names them, then the work directory.
    #[must_use]
    pub fn paths(&self) -> Vec<&Path> {
        let files = self.contents.files.iter().map(|file| file.path.as_path());
        files.filter(|file| std::fs::symlink_metadata(file).is_ok()).chain([self.work()]).collect()
    }

    /// What would be done before the paths are removed, in this order.
    #[must_use]
    pub fn would_do(&self) -> Vec<String> {
        let same_start = self.contents.boot == crate::host::boot_id();
        let entries = self.contents.entries.iter().rev().filter(|_| same_start);
        entries.map(|entry| entry.made.undoing()).collect()
    }

    /// Undoes all of it; notes are about what stays.
    ///
    /// # Errors
    /// As [`super::WorkDirectory::close`]; another process may have begun it.
    pub fn remove(&self) -> std::io::Result<Vec<String>> {
        let begun = Instant::now();
        while self.ledger.is_alive() {
            if begun.elapsed() > PATIENCE {
                let why = "another assay removes it at this moment";
                return Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, why));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end_processes()?;
        remove_recorded(&self.ledger)
    }

    /// Ends what outlived the run, its agent and its guard.
    fn end_processes(&self) -> std::io::Result<()> {
        let mark = &self.contents.mark;
        // The program that began this run may be at work on another.
        let of_another_session =
            |contents: &Contents| contents.mark == *mark && contents.session != self.contents.session;
        let all = Ledger::all().0;
        if all.iter().any(|(ledger, contents)| of_another_session(contents) && ledger.seems_alive()) {
            return Ok(());
        }
        match crate::host::kill_marked(mark).as_slice() {
            [] => Ok(()),
            left => Err(std::io::Error::other(format!("processes of the run cannot be ended: {left:?}"))),
        }
    }
}

fn is_gone(contents: &Contents) -> bool {
    let kernel_has_none = contents.boot != crate::host::boot_id();
    matches!(contents.work.look(), Ok(Found::Nothing))
        && contents.files.iter().all(|file| is_nothing(&file.path))
        && contents
            .entries
            .iter()
            .all(|entry| (kernel_has_none && !entry.made.is_on_disk()) || entry.made.is_gone())
        && !crate::host::marked_lives(&contents.mark)
}

/// What this user's killed runs have left, and why some records were not looked at.
#[must_use]
pub fn abandoned() -> (Vec<Abandoned>, Vec<String>) {
    let (all, unread) = Ledger::all();
    let dead = all.into_iter().filter(|(ledger, _)| !ledger.seems_alive());
    let found = dead.map(|(ledger, contents)| Abandoned { ledger: Rc::new(ledger), contents });
    (found.collect(), unread)
}

fn is_about(contents: &Contents, path: &Path) -> bool {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok()).unwrap_or_default();
    let real = parent.join(path.file_name().unwrap_or_default());
    contents.work.path == real || contents.files.iter().any(|file| file.path == real)
}

/// Whether a record of this user's, of a living run or a dead one, is about a path.
#[must_use]
pub fn is_recorded(path: &Path) -> bool {
    Ledger::all().0.iter().any(|(_, contents)| is_about(contents, path))
}

/// The same of something that is there.
#[must_use]
pub fn is_left(path: &Path) -> bool {
    Ledger::all().0.iter().any(|(_, contents)| is_about(contents, path) && !is_gone(contents))
}

/// The process of a living session of this user; `None`: it has ended, or never was this user's.
#[must_use]
pub fn session_lives(token: &str) -> Option<u32> {
    let of_session = |(_, contents): &(Ledger, Contents)| !token.is_empty() && contents.session == token;
    let mut found = Ledger::all().0.into_iter().filter(of_session);
    found.find(|(ledger, _)| ledger.seems_alive()).map(|(_, contents)| contents.pid)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::directory::{Session, WorkDirectory};
    use super::super::journal::Journal;
    use super::super::made::Made;
    use super::*;

    #[test]
    fn many_that_begin_and_end_at_once_keep_their_place() {
        let base = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..4 {
                let path = base.path().join(format!("assay-{number}"));
                scope.spawn(move || {
                    for _ in 0..50 {
                        let work = WorkDirectory::create(&path).unwrap();
                        assert!(path.is_dir() && is_recorded(&path), "{}", path.display());
                        work.close().unwrap();
                        assert!(!path.exists() && !is_recorded(&path), "{}", path.display());
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_lives_is_not_abandoned_and_what_died_is() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap().join("assay-1");
        let session = Session::new("run 7 of /x/assay.db").unwrap();
        let work = WorkDirectory::create_for(&path, &session, &[]).unwrap();
        let mine = || abandoned().0.into_iter().find(|one| one.work() == path);
        assert_eq!(session_lives(session.token()), Some(std::process::id()));
        assert!(mine().is_none());
        // As a kill would: the lock goes, the record stays.
        let (ledger, contents) = Ledger::of(&path).unwrap().unwrap();
        drop((ledger, contents));
        work.dies();
        assert_eq!(session_lives(session.token()), None);
        let left = mine().unwrap();
        assert_eq!(left.run(), "run 7 of /x/assay.db");
        assert_eq!(left.remove().unwrap(), Vec::<String>::new());
        assert!(!path.exists() && mine().is_none());
    }

    #[test]
    fn what_somebody_else_removed_is_gone_and_its_record_stays() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap().join("assay-1");
        let work = WorkDirectory::create(&path).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let setting = PathBuf::from(format!("/proc/{}/oom_score_adj", child.id()));
        let mut journal = Journal::open(&path).unwrap();
        let before = std::fs::read_to_string(&setting).unwrap().trim().to_owned();
        journal.begin(None, Made::Knob { path: setting, before, sequence: None }).unwrap();
        drop(journal);
        work.dies();
        std::fs::remove_dir_all(&path).unwrap();
        let mine = || abandoned().0.into_iter().find(|one| one.work() == path);
        let is_gone = || mine().unwrap().is_gone();
        assert!(!is_gone() && is_left(&path), "the setting is still there");
        child.kill().unwrap();
        child.wait().unwrap();
        // Children that other tests have at this moment carry the mark, too.
        let begun = Instant::now();
        while !is_gone() && begun.elapsed() < Duration::from_secs(90) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(is_gone() && !is_left(&path) && is_recorded(&path), "a disk with it may be mounted later");
        assert_eq!(mine().unwrap().remove().unwrap(), Vec::<String>::new());
        assert!(mine().is_none(), "but whoever cleans up wants it away");
    }
}
