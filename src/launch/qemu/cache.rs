//! Where unpacked kernels and packed initramfs are kept: `$XDG_CACHE_HOME/assay`, by their content.
//!
//! Enters: bytes, names. Leaves: digests, directories. Everything here can be removed at any time.

use std::fs::File;
use std::hash::Hasher;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use twox_hash::XxHash64;

use super::error::GuestError;

/// The directory of this kind of thing, which may not be there.
pub(super) fn place(kind: &str) -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CACHE_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("assay").join(kind)
}

/// The directory of this kind of thing, made if need be.
pub(super) fn directory(kind: &str) -> Result<PathBuf, GuestError> {
    let directory = place(kind);
    std::fs::create_dir_all(&directory).map_err(GuestError::io("cannot make", &directory))?;
    Ok(directory)
}

/// XXH64 of what was written into it, as 16 hexadecimal digits.
pub(super) fn digits(hasher: &XxHash64) -> String {
    format!("{:016x}", hasher.finish())
}

/// The digest of a whole file.
pub(super) fn digest_of(path: &Path) -> std::io::Result<String> {
    let (mut file, mut hasher) = (File::open(path)?, XxHash64::with_seed(0));
    let mut chunk = vec![0_u8; 1 << 20];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(digits(&hasher)),
            read => hasher.write(&chunk[..read]),
        }
    }
}

/// Removes the oldest files of a directory until `kept` are left; what cannot be removed stays.
pub(super) fn prune(directory: &Path, kept: usize) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    files.sort();
    let surplus = files.len().saturating_sub(kept);
    for (_, path) in files.into_iter().take(surplus) {
        let _ = std::fs::remove_file(path);
    }
}

/// Holds a directory that is being filled: the kernel lets go of it when this process ends, however it ends.
pub(super) fn hold(directory: &Path) -> std::io::Result<File> {
    let held = File::open(directory)?;
    flock(&held, FlockOperation::NonBlockingLockExclusive)?;
    Ok(held)
}

/// Removes directories below `place` that were being filled (their names begin with a dot) and that nobody holds any
/// more; younger ones than `age` may not be held yet.
pub(super) fn remove_abandoned(place: &Path, age: Duration) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let found = entry.metadata().ok().filter(|found| hidden && found.is_dir());
        let since = found.and_then(|found| found.modified().ok()?.elapsed().ok());
        if since.is_some_and(|since| since >= age) && hold(&entry.path()).is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_was_unpacking_goes_and_what_is_held_stays() {
        let place = tempfile::tempdir().unwrap();
        for name in [".tmpDead", ".tmpHeld", "0123456789abcdef"] {
            std::fs::create_dir_all(place.path().join(name).join("boot")).unwrap();
        }
        let held = hold(&place.path().join(".tmpHeld")).unwrap();
        remove_abandoned(place.path(), Duration::from_secs(60));
        assert!(place.path().join(".tmpDead").exists(), "it is young");
        remove_abandoned(place.path(), Duration::ZERO);
        assert!(!place.path().join(".tmpDead").exists());
        assert!(place.path().join(".tmpHeld").exists() && place.path().join("0123456789abcdef").exists());
        drop(held);
        remove_abandoned(place.path(), Duration::ZERO);
        assert!(!place.path().join(".tmpHeld").exists());
    }

    #[test]
    fn digests_are_xxh64_and_few_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0");
        std::fs::write(&path, "").unwrap();
        // The reference value of XXH64 of nothing with seed 0.
        assert_eq!(digest_of(&path).unwrap(), "ef46db3751d8e999");
        for name in 1..12 {
            std::fs::write(directory.path().join(name.to_string()), "x").unwrap();
        }
        prune(directory.path(), 8);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 8);
        assert!(!path.exists(), "the oldest goes first");
    }
}
