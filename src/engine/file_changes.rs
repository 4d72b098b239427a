//! Every file below a directory given an attribute or another owner, or unlinked, by a number of threads.
//!
//! Enters: directories, a change, threads, a time limit. Leaves: how long single calls took. It must not know who made the
//! files.
//!
//! The files are listed beforehand. Each thread has an equal run of that list, so that threads share a directory only where
//! it has files of both: with as many alike directories as threads, each has its own.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::fs::{AtFlags, Gid, Uid, XattrFlags, chownat, lsetxattr, unlinkat};

use super::phase::Latencies;

/// The owner that files are given to: Debian's and everybody's `daemon`, who is not root.
const OWNER: u32 = 1;
/// The attribute that files are given.
const ATTRIBUTE: &str = "user.assay";

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// lsetxattr(2) of an attribute of so many bytes that the file does not have yet.
    Attribute(usize),
    /// fchownat(2) to another user and group.
    Owner,
    /// unlinkat(2).
    Unlink,
}

impl Change {
    pub(super) fn name(self) -> &'static str {
        match self {
            Change::Attribute(_) => "xattr",
            Change::Owner => "chown",
            Change::Unlink => "unlink",
        }
    }
}

/// Files by directory, in the order in which the filesystem lists them.
#[derive(Debug, Default)]
pub(super) struct Files {
    directories: Vec<PathBuf>,
    /// Index into `directories`, name.
    files: Vec<(usize, OsString)>,
}

/// Why a change came to no end.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The time was over.
    TooLong,
    /// A call failed.
    Failed(String),
}

impl Files {
    /// All that is not a directory below `roots`; subdirectories by name.
    ///
    /// # Errors
    /// What a directory could not be read for, with its name.
    pub(super) fn below(roots: &[PathBuf]) -> Result<Files, String> {
        let mut found = Files::default();
        for root in roots {
            found.list(root).map_err(|error| format!("cannot list {}: {error}", root.display()))?;
        }
        Ok(found)
    }

    fn list(&mut self, directory: &Path) -> io::Result<()> {
        let at = self.directories.len();
        self.directories.push(directory.to_owned());
        let mut below = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                below.push(entry.path());
            } else {
                self.files.push((at, entry.file_name()));
            }
        }
        below.sort();
        below.iter().try_for_each(|directory| self.list(directory))
    }

    /// How many.
    pub(super) fn count(&self) -> u64 {
        self.files.len() as u64
    }

    /// The run of one of `threads`.
    fn share(&self, thread: usize, threads: usize) -> &[(usize, OsString)] {
        let cut = |at: usize| self.files.len() * at / threads;
        self.files.get(cut(thread)..cut(thread + 1)).unwrap_or_default()
    }

    /// Changes them all; returns when the last thread has ended.
    ///
    /// # Errors
    /// The first call that failed, or that `deadline` has passed.
    pub(super) fn change(
        &self,
        change: Change,
        threads: usize,
        deadline: Option<Instant>,
    ) -> Result<Latencies, Stopped> {
        let stop = AtomicBool::new(false);
        let one = |thread: usize| {
            let done = self.change_share(self.share(thread, threads), change, deadline, &stop);
            stop.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        };
        let one = &one;
        let ended: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
            running.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        let mut all = Latencies::default();
        for thread in ended {
            let lost = |_| Stopped::Failed(format!("a thread of the {} phase was lost", change.name()));
            all.merge(&thread.map_err(lost)??);
        }
        Ok(all)
    }

    fn change_share(
        &self,
        share: &[(usize, OsString)],
        change: Change,
        deadline: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<Latencies, Stopped> {
        let mut latencies = Latencies::default();
        let value = match change {
            Change::Attribute(bytes) => vec![b'x'; bytes],
            Change::Owner | Change::Unlink => Vec::new(),
        };
        for of_one in share.chunk_by(|a, b| a.0 == b.0) {
            let Some(path) = of_one.first().and_then(|(at, _)| self.directories.get(*at)) else { continue };
            let failed = |name: &OsString, error: io::Error| {
                let path = path.join(name);
                Stopped::Failed(format!("{} of {}: {error}", change.name(), path.display()))
            };
            let directory = File::open(path).map_err(|error| failed(&OsString::new(), error))?;
            let mut before = Instant::now();
            for (_, name) in of_one {
                let called = match change {
                    // There is no call yet that takes a directory and a name (setxattrat is of Linux 6.13).
                    Change::Attribute(_) => lsetxattr(path.join(name), ATTRIBUTE, &value, XattrFlags::CREATE),
                    Change::Owner => {
                        let owner = (Some(Uid::from_raw(OWNER)), Some(Gid::from_raw(OWNER)));
                        chownat(&directory, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)
                    }
                    Change::Unlink => unlinkat(&directory, name, AtFlags::empty()),
                };
                called.map_err(|error| failed(name, error.into()))?;
                let now = Instant::now();
                latencies.add(now.duration_since(before));
                before = now;
                if stop.load(Ordering::Relaxed) {
                    // Another thread says why.
                    return Ok(latencies);
                }
                if deadline.is_some_and(|deadline| now > deadline) {
                    return Err(Stopped::TooLong);
                }
            }
        }
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn tree(files: usize) -> (tempfile::TempDir, Vec<PathBuf>) {
        let place = tempfile::tempdir().unwrap();
        let roots = vec![place.path().join("a"), place.path().join("b")];
        for (at, root) in roots.iter().enumerate() {
            std::fs::create_dir_all(root.join("01")).unwrap();
            for file in 0..files {
                let below = if file % 3 == 0 { root.join("01") } else { root.clone() };
                std::fs::write(below.join(format!("f{at}-{file}")), "x").unwrap();
            }
        }
        (place, roots)
    }

    #[test]
    fn every_file_is_changed_once_whatever_the_number_of_threads() {
        for threads in [1, 2, 3, 7, 50] {
            let (_place, roots) = tree(10);
            let files = Files::below(&roots).unwrap();
            assert_eq!(files.count(), 20);
            let shares: Vec<usize> = (0..threads).map(|at| files.share(at, threads).len()).collect();
            assert_eq!(shares.iter().sum::<usize>(), 20);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "{shares:?}");
            // Before Linux 6.6 a tmpfs has no attributes of users.
            match files.change(Change::Attribute(64), threads, None) {
                Ok(latencies) => {
                    assert_eq!(latencies.count, 20);
                    let mut value = [0; 100];
                    let path = roots[1].join("01/f1-0");
                    assert_eq!(rustix::fs::lgetxattr(&path, ATTRIBUTE, &mut value[..]).unwrap(), 64);
                }
                Err(Stopped::Failed(why)) => assert!(why.contains("not supported"), "{why}"),
                Err(Stopped::TooLong) => panic!("no time limit was given"),
            }
            if rustix::process::geteuid().is_root() {
                assert_eq!(files.change(Change::Owner, threads, None).unwrap().count, 20);
                let owner = std::fs::metadata(roots[1].join("01/f1-0")).unwrap();
                assert_eq!((owner.uid(), owner.gid()), (OWNER, OWNER));
            }
            let latencies = files.change(Change::Unlink, threads, None).unwrap();
            assert_eq!(latencies.count, 20);
            assert!(latencies.min_ns <= latencies.max_ns && latencies.max_ns > 0);
            assert_eq!(Files::below(&roots).unwrap().count(), 0);
        }
    }

    #[test]
    fn two_alike_directories_and_two_threads_are_one_each() {
        let (_place, roots) = tree(10);
        let files = Files::below(&roots).unwrap();
        let of = |thread: usize| {
            let path = |(at, _): &(usize, OsString)| files.directories[*at].clone();
            files.share(thread, 2).iter().map(path).collect::<Vec<_>>()
        };
        assert!(of(0).iter().all(|path| path.starts_with(&roots[0])));
        assert!(of(1).iter().all(|path| path.starts_with(&roots[1])));
    }

    #[test]
    fn what_fails_names_the_file_and_time_ends_it() {
        let (_place, roots) = tree(10);
        let files = Files::below(&roots).unwrap();
        match files.change(Change::Unlink, 2, Some(Instant::now())) {
            Err(Stopped::TooLong) => {}
            other => panic!("{other:?}"),
        }
        match files.change(Change::Unlink, 1, None) {
            Err(Stopped::Failed(reason)) => {
                assert!(reason.starts_with("unlink of ") && reason.contains("No such file"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        assert!(Files::below(&[PathBuf::from("/no/such")]).unwrap_err().contains("cannot list /no/such"));
    }
}
