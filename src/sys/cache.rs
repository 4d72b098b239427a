//! Where unpacked and built kernels and packed initramfs are kept: `$XDG_CACHE_HOME/assay`, by their content.
//!
//! Enters: bytes, names. Leaves: digests, directories. Everything here can be removed at any time. Kernels are booted from here, so
//! nobody but this user and root may be able to change what is there: otherwise nothing is kept beyond this run.

use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use twox_hash::XxHash64;

use super::regular_file::{self, Unfit};
use super::{private_directory, terminal};

/// A larger file is no kernel, no package of one and no configuration.
const MOST_BYTES: u64 = 2 << 30;

/// The cache could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}: {source}", path.display())]
pub struct CacheError {
    /// What was tried.
    pub what: &'static str,
    /// With which file.
    pub path: PathBuf,
    /// The system's words.
    pub source: std::io::Error,
}

impl CacheError {
    fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> CacheError {
        let path = path.into();
        move |source| CacheError { what, path, source }
    }
}

/// Where the cache is.
enum Base {
    /// What lies there was put there by this user or root.
    Kept(PathBuf),
    /// Somebody else may change what lies where it would be, for this reason; or there is no such place.
    Unsafe(String),
}

fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| match usual() {
        None => Base::Unsafe("neither XDG_CACHE_HOME nor HOME says where a cache may be".to_owned()),
        Some(path) => match private_directory::check(&path) {
            Ok(()) => Base::Kept(path),
            Err(why) => Base::Unsafe(format!("the cache {} is not used: {why}", path.display())),
        },
    })
}

/// An absolute path in the environment: as the XDG specification has it, a relative one counts for nothing.
fn named(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// `~/.cache/assay/kernels`, where people put packages, root too; `None`: `XDG_CACHE_HOME` names another place, or it is not safe.
#[must_use]
pub fn put_by_hand() -> Option<PathBuf> {
    let place = named("HOME").filter(|_| named("XDG_CACHE_HOME").is_none())?.join(".cache/assay/kernels");
    private_directory::check(&place).is_ok().then_some(place)
}

/// `$XDG_CACHE_HOME/assay`; else root's is `/var/cache/assay`, whoever's home directory `HOME` names, and a user's `~/.cache/assay`.
fn usual() -> Option<PathBuf> {
    let own = || match rustix::process::geteuid().is_root() {
        true => Some(PathBuf::from("/var/cache")),
        false => named("HOME").map(|home| home.join(".cache")),
    };
    named("XDG_CACHE_HOME").or_else(own).map(|base| base.join("assay"))
}

/// The directory that takes the cache's place while this process lives.
static PRIVATE: Mutex<Option<tempfile::TempDir>> = Mutex::new(None);

fn private() -> MutexGuard<'static, Option<tempfile::TempDir>> {
    PRIVATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what was kept in place of a cache that is not safe; asked at the end of the program.
pub fn remove_private_cache() {
    drop(private().take());
}

/// The directory of this kind of thing, which may not be there; `None`: nothing is kept.
#[must_use]
pub fn place(kind: &str) -> Option<PathBuf> {
    match base() {
        Base::Kept(path) => Some(path.join(kind)).filter(|path| private_directory::check(path).is_ok()),
        Base::Unsafe(_) => private().as_ref().map(|place| place.path().join(kind)),
    }
}

/// The directory of this kind of thing, made if need be.
///
/// # Errors
/// [`CacheError`]: it cannot be made.
pub fn directory(kind: &str) -> Result<PathBuf, CacheError> {
    if let Base::Kept(path) = base() {
        let directory = path.join(kind);
        let made = private_directory::made_directory(&directory).map(drop).map_err(std::io::Error::other);
        return made.map(|()| directory.clone()).map_err(CacheError::io("cannot keep kernels in", directory));
    }
    let mut private = private();
    let failed = CacheError::io("cannot make a directory in", std::env::temp_dir());
    let place = match private.take() {
        Some(place) => place,
        None => {
            let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            let made = tempfile::Builder::new().prefix("assay-cache-").permissions(own).tempdir();
            let place = made.map_err(failed)?;
            private_directory::check(place.path())
                .map_err(std::io::Error::other)
                .map_err(CacheError::io("cannot keep kernels in", place.path()))?;
            if let Base::Unsafe(why) = base() {
                // Nobody to tell is no reason to end a run.
                let _ = writeln!(
                    terminal::err(),
                    "assay: {why};\n  what it would keep is in {} until this run ends",
                    place.path().display()
                );
            }
            place
        }
    };
    let directory = place.path().join(kind);
    *private = Some(place);
    std::fs::create_dir_all(&directory).map_err(CacheError::io("cannot make", &directory))?;
    Ok(directory)
}

/// XXH64 of what was written into it, as 16 hexadecimal digits.
#[must_use]
pub fn digits(hasher: &XxHash64) -> String {
    format!("{:016x}", hasher.finish())
}

/// The digest of a whole file.
///
/// # Errors
/// [`Unfit`]: no regular file, or too large.
pub fn digest_of(path: &Path) -> Result<String, Unfit> {
    let (mut file, mut hasher) = (regular_file::open(path)?, XxHash64::with_seed(0));
    if file.metadata()?.len() > MOST_BYTES {
        return Err(Unfit::TooLarge { limit_bytes: MOST_BYTES });
    }
    let mut chunk = vec![0_u8; 1 << 20];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(digits(&hasher)),
            read => hasher.write(&chunk[..read]),
        }
    }
}

/// Bytes on the disk of a file, or of all files below a directory that no other directory has, too (hard links).
#[must_use]
pub fn bytes_below(root: &Path) -> u64 {
    let (mut bytes, mut open) = (0, vec![root.to_owned()]);
    while let Some(path) = open.pop() {
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => {
                open.extend(
                    std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()),
                );
            }
            Ok(found) if found.nlink() < 2 => bytes += found.blocks() * 512,
            _ => {}
        }
    }
    bytes
}

/// Removes the oldest files of a directory until `kept` are left; what cannot be removed stays.
pub fn prune(directory: &Path, kept: usize) {
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
///
/// # Errors
/// It is held by somebody else, or cannot be opened.
pub fn hold(directory: &Path) -> std::io::Result<File> {
    let held = File::open(directory)?;
    flock(&held, FlockOperation::NonBlockingLockExclusive)?;
    Ok(held)
}

/// Removes directories below `place` that were being filled (their names begin with a dot) and that nobody holds any
/// more; younger ones than `age` may not be held yet.
pub fn remove_abandoned(place: &Path, age: Duration) {
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
    fn what_a_dead_process_unpacked_goes_and_what_is_held_stays() {
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
        // A process that another test is starting may have it open until it executes its program.
        for _ in 0..1000 {
            remove_abandoned(place.path(), Duration::ZERO);
            if !place.path().join(".tmpHeld").exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("what nobody holds any more stays");
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
