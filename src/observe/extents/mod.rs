//! Where the files of a trial lie: how many extents each has, and how often the owner changes along the device.
//!
//! Enters: the directory of the trial and the files its job has elsewhere. Leaves: `extents.*`, read (FS_IOC_FIEMAP) when the
//! trial has ended and before its files are removed. It must not know which engine wrote them.

mod arrangement;
mod fiemap;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Observer, Unseen};
use crate::record::{Better, Metric, Note, Outcome, Sample, Unit};
use arrangement::{Arrangement, FileMap};

/// Looks at the extents of every file of a trial.
#[derive(Clone, Debug)]
pub struct ExtentsObserver {
    directory: PathBuf,
    elsewhere: Vec<PathBuf>,
}

impl ExtentsObserver {
    /// The observer of all files below `directory`, and of those in `elsewhere`.
    #[must_use]
    pub fn of(directory: &Path, elsewhere: Vec<PathBuf>) -> ExtentsObserver {
        ExtentsObserver { directory: directory.to_owned(), elsewhere }
    }

    /// Every file once, however many names lead to it.
    ///
    /// # Errors
    /// The first that cannot be looked at, in words.
    fn files(&self) -> Result<Vec<(PathBuf, File)>, String> {
        let mut own = Vec::new();
        below(&self.directory, &mut own).map_err(|error| format!("{}: {error}", self.directory.display()))?;
        // A link below the directory is no file of the trial's; a job's filename may be one, and the job follows it.
        let paths = own.into_iter().map(|path| (path, libc::O_NOFOLLOW));
        let paths = paths.chain(self.elsewhere.iter().map(|path| (path.clone(), 0)));
        let (mut seen, mut files) = (BTreeSet::new(), Vec::new());
        for (path, flags) in paths {
            // A pipe opened without O_NONBLOCK waits for its other end. Nothing is read: no time of access changes.
            let opened = OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK).open(&path);
            match opened.and_then(|file| file.metadata().map(|found| (file, found))) {
                Ok((file, found)) if found.is_file() && seen.insert((found.dev(), found.ino())) => {
                    files.push((path, file));
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(files)
    }

    /// Where all of them lie, and how many extents have no place.
    fn maps(&self) -> Result<(Vec<FileMap>, u64), String> {
        let (mut maps, mut unplaced) = (Vec::new(), 0);
        for (path, file) in self.files()? {
            let map = fiemap::read(&file).map_err(|error| format!("{}: {error}", path.display()))?;
            unplaced += map.unplaced;
            let device = file.metadata().map_or(0, |found| found.dev());
            maps.push(FileMap { device, extents: map.extents });
        }
        Ok((maps, unplaced))
    }
}

/// All that is no directory below `directory`, but assay's own mark, journal and lock; no link is followed.
fn below(directory: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next)? {
            let entry = entry?;
            let own = next == directory && entry.file_name().to_string_lossy().starts_with(".assay-");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && !own {
                into.push(entry.path());
            }
        }
    }
    Ok(())
}

impl Observer for ExtentsObserver {
    fn start(&mut self) {}

    /// `extents.files`, `.count`, `.per_file` (mean), `.max` (of one file), `.mean_bytes`, `.owner_changes` and
    /// `.owner_changes_per_mib`; nothing where a file's extents cannot be told.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        // One number over some of the files would look like that of all.
        let (maps, unplaced) = self.maps().map_err(|why| Unseen::new("no extents", why))?;
        let not_counted = (unplaced > 0).then(|| {
            format!("{unplaced} extents have no place of their own on the device (data in the inode) and are not counted")
        });
        let (samples, nothing) = match Arrangement::of(&maps) {
            Some(arrangement) => (samples(&arrangement), None),
            None => {
                (Vec::new(), Some(format!("no extents: no file with data in {}", self.directory.display())))
            }
        };
        let notes = not_counted.into_iter().chain(nothing).map(Note::from).collect();
        Ok(Outcome { samples, notes, ..Outcome::default() })
    }
}

fn samples(seen: &Arrangement) -> Vec<Sample> {
    let sample = |name: &str, unit: Unit, better: Better, value: f64| Sample {
        metric: Metric::new("", format!("extents.{name}"), unit, better),
        value,
    };
    let fewer = |name: &str, value: f64| sample(name, Unit::Count, Better::Lower, value);
    vec![
        fewer("per_file", seen.count as f64 / seen.files as f64),
        fewer("max", seen.most as f64),
        fewer("owner_changes", seen.owner_changes as f64),
        sample(
            "owner_changes_per_mib",
            Unit::Other("/MiB".to_owned()),
            Better::Lower,
            seen.owner_changes as f64 / (seen.bytes as f64 / 1_048_576.0),
        ),
        sample("mean_bytes", Unit::Bytes, Better::Higher, seen.bytes as f64 / seen.count as f64),
        fewer("count", seen.count as f64),
        fewer("files", seen.files as f64),
    ]
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_filesystem_without_fiemap_is_a_note() {
        let directory = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
        std::fs::write(directory.path().join("f"), "x").unwrap();
        let mut observer = ExtentsObserver::of(directory.path(), Vec::new());
        observer.start();
        let reason = observer.stop().unwrap_err();
        assert!(reason.to_string().starts_with("no extents: ") && reason.why.contains("FIEMAP"), "{reason}");
    }

    #[test]
    fn nothing_written_is_a_note() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(".assay-work"), "not the trial's").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
        let mut observer = ExtentsObserver::of(directory.path(), vec!["/no/such/file".into()]);
        let seen = observer.stop().unwrap();
        assert_eq!(seen.samples, Vec::new());
        assert!(seen.notes[0].text.starts_with("no extents: no file with data in "), "{:?}", seen.notes);
    }

    #[test]
    fn a_file_is_looked_at_once_and_wherever_it_is() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
        let directory = tempfile::Builder::new().prefix("extents-").tempdir_in(here).unwrap();
        let [inside, outside] = ["inside", "outside"].map(|name| directory.path().join(name));
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        let write = |path: &Path| {
            let mut file = File::create(path).unwrap();
            file.write_all(&[7; 8192]).unwrap();
        };
        write(&inside.join("deep/a"));
        write(&outside);
        std::fs::hard_link(inside.join("deep/a"), inside.join("b")).unwrap();
        // A job's filename may be a link.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let mut observer = ExtentsObserver::of(&inside, vec![link, outside]);
        let seen = observer.stop();
        // One that is there and cannot be opened: a number over the others would not be that of all.
        let endless = directory.path().join("endless");
        std::os::unix::fs::symlink(&endless, &endless).unwrap();
        let mut blind = ExtentsObserver::of(&inside, vec![endless]);
        let reason = blind.stop().unwrap_err();
        let samples = match seen {
            Ok(seen) => seen.samples,
            Err(reason) => {
                assert!(reason.why.contains("FIEMAP"), "{reason}");
                eprintln!("SKIPPED: the filesystem of the build has no FIEMAP");
                return;
            }
        };
        let value =
            |name: &str| samples.iter().find(|s| s.metric.name == format!("extents.{name}")).unwrap().value;
        // Written back by the look itself, so that none of it is still without a place.
        assert_eq!((value("files"), value("count") * value("mean_bytes")), (2.0, 16384.0));
        assert!(value("owner_changes") >= 1.0);
        assert!(
            reason.to_string().starts_with("no extents: ") && reason.why.contains("endless: "),
            "{reason}"
        );
    }
}
