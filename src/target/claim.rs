//! A device is one run's at a time: its node is locked (flock(2)) as long as the run, or the trial, lasts.
//!
//! Enters: paths that may be overwritten. Leaves: what holds the locks, or whose device it is already. The kernel lets go of
//! them with the process, however that ends. Whoever else keeps to <https://systemd.io/BLOCK_DEVICE_LOCKING> is kept off, too.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::overwrite::Refusal;

/// udev locks a device while it looks at it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Locks on devices; they end with this.
#[derive(Debug, Default)]
pub struct Claims {
    _locks: Vec<File>,
}

/// Locks each block device of these paths: a disk as a whole, of a partition only that.
///
/// # Errors
/// [`Refusal::Claimed`]: another run works on it.
pub fn claim(paths: &[PathBuf]) -> Result<Claims, Refusal> {
    let mut devices: Vec<(u64, PathBuf)> = Vec::new();
    for path in paths {
        let Ok(found) = std::fs::metadata(path) else { continue };
        // One device can have several names, and must not be in its own way.
        if found.file_type().is_block_device() && !devices.iter().any(|(known, _)| *known == found.rdev()) {
            devices.push((found.rdev(), path.clone()));
        }
    }
    let mut locks = Vec::new();
    for (number, path) in &devices {
        if let Some(disk) = disk_of(*number) {
            let own = std::fs::metadata(&disk)
                .is_ok_and(|found| devices.iter().any(|(number, _)| *number == found.rdev()));
            if !own {
                // Runs on two of its partitions share the disk; one on all of it shares with none.
                locks.extend(lock(&disk, FlockOperation::NonBlockingLockShared, path)?);
            }
        }
        locks.extend(lock(path, FlockOperation::NonBlockingLockExclusive, path)?);
    }
    Ok(Claims { _locks: locks })
}

/// The disk that a device is a partition of.
fn disk_of(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let sys = Path::new("/sys/dev/block").join(format!("{major}:{minor}")).canonicalize().ok()?;
    let disk = sys.join("partition").exists().then(|| sys.parent().and_then(Path::file_name)).flatten()?;
    Some(Path::new("/dev").join(disk))
}

/// What cannot be opened cannot be written to either, which is said elsewhere.
fn lock(device: &Path, how: FlockOperation, asked: &Path) -> Result<Option<File>, Refusal> {
    let Ok(file) = File::open(device) else { return Ok(None) };
    let begun = Instant::now();
    loop {
        match flock(&file, how) {
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Refusal::Claimed(asked.to_owned())),
            // A filesystem of /dev that has no locks.
            Err(_) => return Ok(None),
            Ok(()) => return Ok(Some(file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_what_is_not_there_are_nobodys() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let paths = [file, directory.path().join("nothing")];
        let first = claim(&paths).unwrap();
        let second = claim(&paths).unwrap();
        drop((first, second));
    }

    #[test]
    fn a_disk_is_no_partition() {
        for entry in std::fs::read_dir("/sys/block").unwrap().flatten() {
            let number = std::fs::read_to_string(entry.path().join("dev")).unwrap();
            let (major, minor) = number.trim().split_once(':').unwrap();
            let number = rustix::fs::makedev(major.parse().unwrap(), minor.parse().unwrap());
            assert_eq!(disk_of(number), None, "{entry:?}");
        }
    }
}
