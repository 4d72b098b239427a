//! What builds leave in the cache: finished kernels, unpacked sources and headers, rooms in which kernels are built.
//!
//! Enters: a kind and a key. Leaves: directories that are whole or not there. An entry is filled under a name that begins with a dot and
//! renamed at the end; who uses one holds it, so that nobody removes it meanwhile, and so do the programs that fill it, which may outlive
//! assay. All kinds together have a limit.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::error::BuildError;
use super::{logs, mark};
use crate::sys::cache;

/// Finished kernels.
pub(super) const BUILT: &str = "built";
/// Sources, and headers of Debian's kernels, as they were unpacked.
pub(super) const SOURCES: &str = "sources";
/// Trees with their objects.
pub(super) const ROOMS: &str = "rooms";
const KINDS: [&str; 3] = [BUILT, SOURCES, ROOMS];
/// What is needed only while it is held.
const SCRATCH: &str = "scratch";

/// All of it together; a room and a source are 2 to 3 GiB with the small configuration. A distribution's with what debuggers want is more by
/// itself: then nothing else is kept.
const MOST_BYTES: u64 = 20 << 30;
/// How long a directory that nobody holds may have been made by somebody who is about to.
const ABANDONED: Duration = Duration::from_secs(60);
/// How the name of an entry begins that is being filled.
const PARTIAL: &str = ".partial-";
/// The same of one that is being removed.
const GONE: &str = ".gone-";
/// How often something that has the name of a new entry is removed, before that is given up.
const TRIES: u32 = 5;

/// An entry of the cache, which nobody removes while this is held.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its directory.
    pub(super) path: PathBuf,
    /// Its lock, which the programs of a build keep, too.
    pub(super) lock: Arc<File>,
}

/// A directory with files that are read for as long as this is held.
pub(super) struct Kept {
    /// The directory.
    pub(super) root: PathBuf,
    /// The entry that it is in; a directory of the user's is in none.
    _entry: Option<Entry>,
}

impl Kept {
    /// A directory that is no part of the cache.
    pub(super) fn elsewhere(root: &Path) -> Kept {
        Kept { root: root.to_owned(), _entry: None }
    }

    /// A directory of an entry.
    pub(super) fn of(entry: Entry, below: &str) -> Kept {
        Kept { root: entry.path.join(below), _entry: Some(entry) }
    }
}

/// A finished entry; `None`: there is none, it is being removed, or a kernel is not as it was.
pub(super) fn found(kind: &str, key: &str) -> Option<Entry> {
    let path = cache::place(kind)?.join(key);
    // First the lock: what was read without it may be gone a moment later.
    let lock = locked(&path, FlockOperation::NonBlockingLockShared).ok()??;
    let fits = if kind == BUILT { mark::fits(&path) } else { mark::is_there(&path) };
    if !fits {
        return None;
    }
    mark::touch(&path);
    Some(Entry { lock: Arc::new(lock), path })
}

/// Whether a finished entry is there; it is not taken for used.
pub(super) fn is_there(kind: &str, key: &str) -> bool {
    cache::place(kind).is_some_and(|place| mark::is_there(&place.join(key)))
}

/// The lock of a directory; `None`: somebody else has it, or another directory has got this name meanwhile.
///
/// # Errors
/// It cannot be opened.
fn locked(path: &Path, how: FlockOperation) -> std::io::Result<Option<File>> {
    use std::os::unix::fs::MetadataExt;
    let lock = File::open(path)?;
    if flock(&lock, how).is_err() {
        return Ok(None);
    }
    let mine = lock.metadata()?;
    let is_same = path.metadata().is_ok_and(|found| (found.dev(), found.ino()) == (mine.dev(), mine.ino()));
    Ok(is_same.then_some(lock))
}

/// An empty directory for as long as it is held, with its lock. What a killed assay left of such is removed by the next one.
///
/// # Errors
/// It cannot be made.
pub(super) fn scratch() -> Result<(tempfile::TempDir, File), BuildError> {
    let place = cache::directory(SCRATCH)?;
    cache::remove_abandoned(&place, ABANDONED);
    let made = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(&place);
    let made = made.map_err(BuildError::io("cannot make a directory in", &place))?;
    let lock = cache::hold(made.path()).map_err(BuildError::io("cannot lock", made.path()))?;
    Ok((made, lock))
}

/// Fills an entry's directory, whose lock is held.
pub(super) type Fill<'f> = dyn FnMut(&Path, &Arc<File>) -> Result<(), BuildError> + 'f;

/// The entry of this key, filled by `fill` if it is not there.
///
/// # Errors
/// Those of `fill`, after which nothing is left of it.
pub(super) fn made(kind: &str, key: &str, fill: &mut Fill<'_>) -> Result<Entry, BuildError> {
    if let Some(entry) = found(kind, key) {
        return Ok(entry);
    }
    let place = cache::directory(kind)?;
    cache::remove_abandoned(&place, ABANDONED);
    let partial = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(&place);
    let partial = partial.map_err(BuildError::io("cannot make a directory in", &place))?;
    let lock = cache::hold(partial.path()).map_err(BuildError::io("cannot lock", partial.path()))?;
    let lock = Arc::new(lock);
    fill(partial.path(), &lock)?;
    mark::write(partial.path(), kind == BUILT)?;
    // From here on others may use it, and nobody may remove it.
    flock(&*lock, FlockOperation::LockShared)
        .map_err(|error| BuildError::io("cannot lock", partial.path())(error.into()))?;
    let entry = put(&partial.keep(), &place.join(key), lock, &mut || found(kind, key))?;
    prune(MOST_BYTES);
    Ok(entry)
}

/// Gives a filled directory its name. Another assay may have been faster, whose work `theirs` finds and is as good; anything else of this
/// name is no entry: what a kill has left of one, or one that is being removed.
fn put(
    partial: &Path,
    path: &Path,
    lock: Arc<File>,
    theirs: &mut dyn FnMut() -> Option<Entry>,
) -> Result<Entry, BuildError> {
    let mut tries = 0;
    loop {
        let Err(error) = std::fs::rename(partial, path) else {
            return Ok(Entry { path: path.to_owned(), lock });
        };
        tries += 1;
        let entry = theirs();
        if entry.is_some() || tries == TRIES {
            let _ = std::fs::remove_dir_all(partial);
            return entry.ok_or_else(|| BuildError::io("cannot make", path)(error));
        }
        if !removed(path) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The room of this key, which only one assay has at a time: whoever comes second waits for `wait` to say that it has enough.
///
/// # Errors
/// It cannot be made.
pub(super) fn room(
    key: &str,
    waited: &mut dyn FnMut() -> Result<(), BuildError>,
) -> Result<Entry, BuildError> {
    let path = cache::directory(ROOMS)?.join(key);
    loop {
        std::fs::create_dir_all(&path).map_err(BuildError::io("cannot make", &path))?;
        match locked(&path, FlockOperation::NonBlockingLockExclusive) {
            Ok(Some(lock)) => {
                // At once: somebody may kill this build, and what it left is to be found.
                mark::begin(&path)?;
                return Ok(Entry { path, lock: Arc::new(lock) });
            }
            // It may have been removed between the two calls.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BuildError::io("cannot open", &path)(error));
            }
            _ => {}
        }
        waited()?;
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Says how large a room has become, and makes place for it.
pub(super) fn room_was_used(room: &Entry) {
    let _ = mark::write(&room.path, false);
    prune(MOST_BYTES);
}

/// An entry as it lies there.
struct Lying {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// All of them, also those that a kill has kept from getting a mark, or half of whose removal it has left.
fn all() -> Vec<Lying> {
    let places = KINDS.iter().filter_map(|kind| cache::place(kind));
    let entries = places.flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten());
    let lying = entries.filter_map(|entry| {
        let path = entry.path();
        let is_one = path.is_dir() && !entry.file_name().to_string_lossy().starts_with(PARTIAL);
        let (bytes, used) = is_one.then(|| mark::read(&path))??;
        Some(Lying { used, bytes, path })
    });
    lying.collect()
}

/// Removes what was not used for the longest time until the rest is below the limit; what is held stays.
fn prune(limit: u64) {
    let mut lying = all();
    lying.sort_by_key(|entry| entry.used);
    let mut sum: u64 = lying.iter().map(|entry| entry.bytes).sum();
    for entry in lying {
        if sum <= limit {
            return;
        }
        if removed(&entry.path) {
            sum -= entry.bytes;
        }
    }
}

/// Removes an entry that nobody holds. It loses its name first: what a kill leaves of it is in nobody's way.
fn removed(path: &Path) -> bool {
    let Ok(Some(_lock)) = locked(path, FlockOperation::NonBlockingLockExclusive) else { return false };
    let name =
        format!("{GONE}{}", crate::sys::random_digits().unwrap_or_else(|_| std::process::id().to_string()));
    let gone = path.with_file_name(name);
    let gone = if std::fs::rename(path, &gone).is_ok() { gone.as_path() } else { path };
    std::fs::remove_dir_all(gone).is_ok()
}

/// What builds have left in the cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left {
    /// Kernels, sources and rooms.
    pub entries: usize,
    /// Of all of them.
    pub bytes: u64,
}

/// What builds have left in the cache.
#[must_use]
pub fn in_the_cache() -> Left {
    let lying = all();
    Left { entries: lying.len(), bytes: lying.iter().map(|entry| entry.bytes).sum() }
}

/// Removes everything that builds have left in the cache and nobody uses, and says what went.
pub fn empty_the_cache() -> Left {
    let gone: Vec<Lying> = all().into_iter().filter(|entry| removed(&entry.path)).collect();
    for kind in KINDS.into_iter().chain([SCRATCH]) {
        cache::place(kind).iter().for_each(|place| cache::remove_abandoned(place, ABANDONED));
    }
    logs::remove_all();
    Left { entries: gone.len(), bytes: gone.iter().map(|entry| entry.bytes).sum() }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::AtomicBool;

    use rustix::process::{Pid, Signal, kill_process};

    use super::super::{fake, make};
    use super::*;

    fn busy() -> Result<(), BuildError> {
        Err(BuildError::Interrupted { what: "a wait".to_owned() })
    }

    /// Makes an entry with a file in it.
    fn make_one(key: &str) -> Entry {
        made(SOURCES, key, &mut |into, _| {
            std::fs::write(into.join("file"), "x").map_err(BuildError::io("cannot write", into))
        })
        .unwrap()
    }

    #[test]
    fn what_is_held_stays_and_what_is_being_removed_is_not_found() {
        let name = "what_is_held_stays_and_what_is_being_removed_is_not_found";
        fake::alone(module_path!(), name, |_| {
            let kept = Kept::of(make_one("a"), "file");
            let log = logs::log("a").unwrap();
            empty_the_cache();
            assert!(kept.root.is_file() && log.path.is_file());
            drop(kept);
            let entry = found(SOURCES, "a").unwrap();
            let path = entry.path.clone();
            drop(entry);
            let removing = cache::hold(&path).unwrap();
            assert!(found(SOURCES, "a").is_none(), "it may be gone in a moment");
            drop(removing);
            let words = log.path.clone();
            drop(log);
            empty_the_cache();
            assert!(!path.exists());
            assert!(!words.exists());
        });
    }

    #[test]
    fn what_a_killed_build_left_is_counted_and_removed() {
        fake::alone(module_path!(), "what_a_killed_build_left_is_counted_and_removed", |_| {
            let room = room("room", &mut busy).unwrap();
            std::fs::write(room.path.join("objects"), vec![1; 1 << 20]).unwrap();
            assert!(mark::is_there(&room.path));
            let path = room.path.clone();
            drop(room);
            // What another assay of an earlier version was killed in.
            let unmarked = cache::directory(BUILT).unwrap().join("key");
            std::fs::create_dir(&unmarked).unwrap();
            let left = in_the_cache();
            assert!(left.entries == 2 && left.bytes >= 1 << 20, "{left:?}");
            assert_eq!(empty_the_cache().entries, 2);
            assert!(!path.exists() && !unmarked.exists());
        });
    }

    #[test]
    fn what_is_left_of_an_entry_is_in_nobodys_way() {
        fake::alone(module_path!(), "what_is_left_of_an_entry_is_in_nobodys_way", |_| {
            let place = cache::directory(SOURCES).unwrap();
            std::fs::create_dir_all(place.join("a/tree")).unwrap();
            assert!(found(SOURCES, "a").is_none());
            let entry = make_one("a");
            assert!(entry.path.join("file").is_file() && !entry.path.join("tree").exists());
            // What is held is not removed for another one, and what is as good is taken.
            let second = put(
                &tempfile::tempdir_in(&place).unwrap().keep(),
                &entry.path,
                entry.lock.clone(),
                &mut || None,
            );
            assert!(second.is_err());
            assert!(found(SOURCES, "a").is_some());
            // A kill in the middle of a removal.
            std::fs::create_dir_all(place.join(".gone-1/tree")).unwrap();
            drop(entry);
            assert_eq!(empty_the_cache().entries, 2);
            assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
        });
    }

    #[test]
    fn a_kernel_that_was_damaged_is_built_again() {
        fake::alone(module_path!(), "a_kernel_that_was_damaged_is_built_again", |_| {
            let mut builds = 0;
            let mut make = || {
                made(BUILT, "key", &mut |into, _| {
                    builds += 1;
                    super::super::tree::put(into, "boot/vmlinuz-6.12", Some((b"image", false)))
                })
                .unwrap()
                .path
            };
            let image = make().join("boot/vmlinuz-6.12");
            make();
            std::fs::write(&image, "").unwrap();
            make();
            assert_eq!(std::fs::read_to_string(&image).unwrap(), "image");
            assert_eq!(builds, 2);
        });
    }

    #[test]
    fn a_room_is_taken_while_a_program_of_a_killed_build_lives() {
        fake::alone(module_path!(), "a_room_is_taken_while_a_program_of_a_killed_build_lives", |place| {
            let number = place.join("number");
            if fake::is_victim() {
                let room = room("room", &mut busy).unwrap();
                let (log, flag, mut objects) = (place.join("log"), AtomicBool::new(false), |_| ());
                let mut watch = fake::watch(&log, &flag, &mut objects);
                let mut command = Command::new("sh");
                // What ignores the signal that make gets when assay dies.
                command.args(["-c", "trap '' TERM; echo $$ > \"$1\"; exec sleep 100", "sh"]).arg(&number);
                make::run(command, &mut watch.holding(&room.lock)).unwrap();
            }
            let module = module_path!();
            let name = "a_room_is_taken_while_a_program_of_a_killed_build_lives";
            let mut victim = fake::victim(module, name, place);
            let left = Pid::from_raw(fake::awaited(&number).parse().unwrap()).unwrap();
            victim.kill().unwrap();
            victim.wait().unwrap();
            let taken = room("room", &mut busy);
            kill_process(left, Signal::KILL).unwrap();
            assert!(taken.is_err(), "something still writes into it");
            let mut waits = 0;
            let free = room("room", &mut || {
                waits += 1;
                if waits < 20 { Ok(()) } else { busy() }
            });
            free.unwrap();
        });
    }
}
