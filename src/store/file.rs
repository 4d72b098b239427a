//! Whether the file that `--db` names may be opened as a store. Finding out changes no byte.
//!
//! Enters: a path as the user wrote it. Leaves: the real path of a regular file that is a store or empty, held open. It must not know
//! SQL: what is in the store is checked by `schema`.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags, access};

use super::error::StoreError;
use super::held::Held;

/// "assa" in SQLite's application id.
pub(super) const APPLICATION_ID: u32 = 0x6173_7361;
/// How an SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// How a rollback journal begins once it counts, and how it ends when it names a further file.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// How often a file may come or go while it is looked at.
const CHANGES_BEARABLE: u32 = 16;

/// A file that may be opened as a store.
pub(super) struct Vetted {
    /// Without symbolic links.
    pub(super) path: PathBuf,
    /// Keeps the inode from being reused, and SQLite's locks on it from being lost.
    pub(super) held: Held,
    /// Nothing is in it yet.
    pub(super) is_empty: bool,
    /// It belongs to the caller.
    pub(super) is_own: bool,
}

impl Vetted {
    /// Whether the path still leads to the file that was looked at.
    pub(super) fn is_in_place(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|now| self.held.is(&now))
    }

    /// Its length in bytes at present.
    pub(super) fn length(&self) -> u64 {
        self.held.metadata().map_or(0, |found| found.len())
    }
}

/// The file at `path`; `None` when nothing is there.
///
/// # Errors
/// [`StoreError::NotAStore`] with what is there instead, [`StoreError::Io`].
pub(super) fn vet(path: &Path) -> Result<Option<Vetted>, StoreError> {
    for _ in 0..CHANGES_BEARABLE {
        let Some(real) = real_path(path)? else { return Ok(None) };
        match open(path, real)? {
            Opened::Gone => {}
            Opened::File(vetted) => {
                beside(path, &vetted)?;
                return Ok(Some(vetted));
            }
        }
    }
    Err(refused(path, "a file that others keep replacing"))
}

/// The same, made when nothing is there: an empty file.
///
/// # Errors
/// As [`vet`].
pub(super) fn vet_or_make(path: &Path) -> Result<Vetted, StoreError> {
    for _ in 0..CHANGES_BEARABLE {
        if let Some(vetted) = vet(path)? {
            return Ok(vetted);
        }
        let place = place(path)?;
        if let Some(left) =
            ["-journal", "-wal", "-shm"].map(|end| with_ending(&place, end)).iter().find(is_there)
        {
            // Who makes a store makes the file first: then it is there by now.
            if is_there(&&place) {
                continue;
            }
            return Err(refused(left, "it belongs to a store that is gone"));
        }
        let made = File::options()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(&place);
        match made {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(io(path, error)),
            _ => {}
        }
    }
    Err(refused(path, "a file that others keep removing"))
}

/// Whether the file at `path` can be written, and its directory, where journals come beside it; when nothing is there, the directory alone.
///
/// # Errors
/// As [`vet`], and [`StoreError::ReadOnly`].
pub(super) fn can_be_written(path: &Path) -> Result<(), StoreError> {
    let found = vet(path)?;
    let file = found.as_ref().map(|vetted| (&*vetted.path, Access::WRITE_OK));
    let place = found.as_ref().map_or_else(|| place(path), |vetted| Ok(vetted.path.clone()))?;
    let directory = (place.parent().unwrap_or(Path::new("/")), Access::WRITE_OK | Access::EXEC_OK);
    for (needed, wanted) in file.into_iter().chain([directory]) {
        access(needed, wanted).map_err(|_| StoreError::ReadOnly(path.to_owned()))?;
    }
    Ok(())
}

/// Where `path` leads, without symbolic links; `None` when nothing is there.
fn real_path(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let link = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(path, error)),
        Ok(found) => found,
    };
    if link.is_dir() {
        return Err(refused(path, "a directory"));
    }
    if !link.is_symlink() {
        return place(path).map(Some);
    }
    if link.uid() != own_id() && link.uid() != 0 {
        return Err(refused(path, "a symbolic link of another user"));
    }
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(refused(path, "a symbolic link to a file that does not exist"))
        }
        Err(error) => Err(io(path, error)),
        Ok(real) => Ok(Some(real)),
    }
}

/// The directory without symbolic links, and the name in it.
fn place(path: &Path) -> Result<PathBuf, StoreError> {
    let name = path.file_name().ok_or_else(|| refused(path, "a directory"))?;
    let directory = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    Ok(directory.canonicalize().map_err(|error| io(path, error))?.join(name))
}

enum Opened {
    /// It went, or another file came in its place.
    Gone,
    File(Vetted),
}

/// Opens `real` for reading when it is a regular file, an SQLite file and assay's.
fn open(path: &Path, real: PathBuf) -> Result<Opened, StoreError> {
    // Opening a device can do something already; a path descriptor does nothing.
    let Some(seen) = look(path, &real)? else { return Ok(Opened::Gone) };
    if let Some(kind) = not_regular(&seen) {
        return Err(refused(path, kind));
    }
    let file = match open_to_read(&real) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Opened::Gone),
        Err(error) => return Err(io(path, error)),
        Ok(file) => file,
    };
    let held = Held::new(file).map_err(|error| io(path, error))?;
    if !held.is(&seen) {
        return Ok(Opened::Gone);
    }
    let now = held.metadata().map_err(|error| io(path, error))?;
    let vetted = Vetted { path: real, is_empty: now.len() == 0, is_own: now.uid() == own_id(), held };
    if vetted.is_empty && !vetted.is_own {
        return Err(refused(path, "an empty file of another user"));
    }
    if !vetted.is_empty {
        let mut header = [0; 100];
        let whole = vetted.held.read(&mut header);
        if let Some(why) = whole.err().map_or_else(|| wrong_header(&header), |_| Some("no SQLite file")) {
            return Err(refused(path, why));
        }
    }
    Ok(Opened::File(vetted))
}

/// What the first 100 bytes say against it. <https://www.sqlite.org/fileformat.html#the_database_header>
fn wrong_header(header: &[u8; 100]) -> Option<&'static str> {
    if !header.starts_with(MAGIC) {
        Some("no SQLite file")
    } else if header[68..72] != APPLICATION_ID.to_be_bytes() {
        Some("another program's database")
    } else if header[18] != 1 || header[19] != 1 {
        Some(
            "its journal mode is WAL, which assay never sets; sqlite3 changes it by PRAGMA journal_mode=DELETE",
        )
    } else {
        None
    }
}

/// SQLite takes over whatever has the names of its side files: they must be what it makes itself.
fn beside(path: &Path, store: &Vetted) -> Result<(), StoreError> {
    for ending in ["-wal", "-shm"] {
        let name = with_ending(&store.path, ending);
        if is_there(&&name) {
            return Err(refused(path, &format!("{} is beside it, which assay never makes", name.display())));
        }
    }
    let journal = with_ending(&store.path, "-journal");
    let Some(seen) = look(path, &journal)? else { return Ok(()) };
    let owner = store.held.metadata().map_err(|error| io(path, error))?.uid();
    let why = if let Some(kind) = not_regular(&seen) {
        Some(kind)
    } else if seen.nlink() > 1 {
        Some("a file with a second name")
    } else if seen.uid() != owner && seen.uid() != own_id() {
        Some("a file of another user")
    } else {
        match open_to_read(&journal) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(io(&journal, error)),
            Ok(file) => wrong_journal(&file),
        }
    };
    match why {
        None => Ok(()),
        Some(why) => Err(refused(path, &format!("{} beside it is {why}", journal.display()))),
    }
}

/// A journal begins with its magic number, or with zeros until it counts. One that ends with the name of a further file is of a
/// transaction over several databases, which assay never makes, and would have SQLite read and delete that file.
fn wrong_journal(file: &File) -> Option<&'static str> {
    let length = file.metadata().map_or(0, |found| found.len());
    let mut word = [0; 8];
    let mut read = |at: u64| file.read_exact_at(&mut word, at).ok().map(|()| word);
    let begins_well = |word: [u8; 8]| word == JOURNAL_MAGIC || word == [0; 8];
    if length > 0 && !read(0).is_none_or(begins_well) {
        return Some("no journal of SQLite");
    }
    if length > 0 && length < 8 {
        return Some("no journal of SQLite");
    }
    let ends_so = length >= 16 && read(length - 8) == Some(JOURNAL_MAGIC);
    ends_so.then_some("a journal that names another file")
}

/// What is at a path, not followed and not opened; `None` for nothing.
fn look(path: &Path, real: &Path) -> Result<Option<std::fs::Metadata>, StoreError> {
    match std::fs::symlink_metadata(real) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(path, error)),
        Ok(found) => Ok(Some(found)),
    }
}

fn open_to_read(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    File::options().read(true).custom_flags(flags.bits() as i32).open(path)
}

fn not_regular(found: &std::fs::Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else if kind.is_block_device() {
        Some("a block device")
    } else if kind.is_char_device() {
        Some("a character device")
    } else if kind.is_fifo() {
        Some("a FIFO")
    } else {
        Some("a socket")
    }
}

fn is_there(path: &&PathBuf) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn own_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn refused(path: &Path, why: &str) -> StoreError {
    StoreError::NotAStore { path: path.to_owned(), why: why.to_owned() }
}

fn io(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), source }
}
