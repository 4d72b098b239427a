//! Reading a file that somebody named: only a regular file, only up to a limit, never a wait for a writer that does not come.
//!
//! Enters: a path. Leaves: an open file or its bytes, or why it is not read. A pipe without a name (`<(command)`, `/dev/stdin`
//! behind `|`) has its writer already and is read up to the same limit.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Filesystem of pipes without a name (`PIPEFS_MAGIC`, include/uapi/linux/magic.h).
const PIPEFS: i64 = 0x5049_5045;

/// Why a file is not read. As a clause behind the path it says what the file is.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Something else than a regular file.
    #[error("is {0}, not a regular file")]
    Kind(Kind),
    /// Over the limit.
    #[error("is larger than {}, the most that is read", size(*limit_bytes))]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// Not UTF-8.
    #[error("is not a text file")]
    NotText,
}

impl From<Unfit> for std::io::Error {
    fn from(unfit: Unfit) -> std::io::Error {
        match unfit {
            Unfit::Io(error) => error,
            other => std::io::Error::other(other.to_string()),
        }
    }
}

/// What there is instead of a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// `/dev/sda`.
    BlockDevice,
    /// `/dev/zero`, a terminal.
    CharacterDevice,
    /// A pipe with a name.
    Fifo,
    /// A socket.
    Socket,
}

impl Kind {
    /// What a file is, if not a regular file; a link that is not followed has no kind of its own here.
    #[must_use]
    pub fn of(found: &Metadata) -> Option<Kind> {
        let kind = found.file_type();
        match () {
            () if kind.is_dir() => Some(Kind::Directory),
            () if kind.is_block_device() => Some(Kind::BlockDevice),
            () if kind.is_char_device() => Some(Kind::CharacterDevice),
            () if kind.is_fifo() => Some(Kind::Fifo),
            () if kind.is_socket() => Some(Kind::Socket),
            () => None,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Directory => "a directory",
            Kind::BlockDevice => "a block device",
            Kind::CharacterDevice => "a character device",
            Kind::Fifo => "a FIFO",
            Kind::Socket => "a socket",
        })
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Opens a regular file, or a pipe that has no name, for reading. Links are followed.
///
/// # Errors
/// [`Unfit`]; nothing was read, and no device was opened.
pub fn open(path: &Path) -> Result<File, Unfit> {
    // Opening some devices does something, so the kind is looked at first; and again afterwards, for what has changed meanwhile.
    fit(&std::fs::metadata(path)?, || true)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    fit(&found, || is_unnamed_pipe(&file))?;
    if Kind::of(&found) == Some(Kind::Fifo) {
        // Its reader may wait for its writer. Files keep the flag: some of /proc and /sys wait for events.
        rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::empty()).map_err(std::io::Error::from)?;
    }
    Ok(file)
}

/// Whether a file may be read: `pipe` is asked of a FIFO.
fn fit(found: &Metadata, pipe: impl FnOnce() -> bool) -> Result<(), Unfit> {
    match Kind::of(found) {
        None => Ok(()),
        Some(Kind::Fifo) if pipe() => Ok(()),
        Some(kind) => Err(Unfit::Kind(kind)),
    }
}

/// Whether a FIFO is a pipe between two processes and lies in no directory.
pub fn is_unnamed_pipe(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == PIPEFS)
}

/// Reads the whole of a regular file of at most `limit_bytes`.
///
/// # Errors
/// [`Unfit`]; of a file that is too large nothing is read.
pub fn read(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, Unfit> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    if size > limit_bytes {
        return Err(Unfit::TooLarge { limit_bytes });
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(limit_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(Unfit::TooLarge { limit_bytes });
    }
    Ok(bytes)
}

/// Reads the whole of a text file of at most `limit_bytes`.
///
/// # Errors
/// As [`read`]; [`Unfit::NotText`] when it is not UTF-8.
pub fn read_text(path: &Path, limit_bytes: u64) -> Result<String, Unfit> {
    String::from_utf8(read(path, limit_bytes)?).map_err(|_| Unfit::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: impl AsRef<Path>) -> String {
        read(path.as_ref(), 1 << 20).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_waits() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(refused(&fifo), "is a FIFO, not a regular file");
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        assert_eq!(refused(&link), "is a FIFO, not a regular file");
        assert_eq!(refused("/dev/zero"), "is a character device, not a regular file");
        assert_eq!(refused(place.path()), "is a directory, not a regular file");
        let _socket = std::os::unix::net::UnixListener::bind(place.path().join("socket")).unwrap();
        assert_eq!(refused(place.path().join("socket")), "is a socket, not a regular file");
        assert!(refused(place.path().join("none")).starts_with("No such file"));
    }

    #[test]
    fn the_limit_holds_for_files_and_pipes() {
        let place = tempfile::tempdir().unwrap();
        let sparse = place.path().join("sparse");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(refused(&sparse), "is larger than 1 MiB, the most that is read");
        std::fs::write(&sparse, "text").unwrap();
        assert_eq!(read(&sparse, 4).unwrap(), b"text");
        assert!(matches!(read(&sparse, 3), Err(Unfit::TooLarge { limit_bytes: 3 })));
        let words = |limit_bytes| Unfit::TooLarge { limit_bytes }.to_string();
        assert_eq!(words(3), "is larger than 3 bytes, the most that is read");
        assert_eq!(words(64 << 10), "is larger than 64 KiB, the most that is read");
        std::fs::write(&sparse, b"\xff").unwrap();
        assert!(matches!(read_text(&sparse, 4), Err(Unfit::NotText)));
        let (reader, writer) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        std::io::Write::write_all(&mut &writer, b"12345").unwrap();
        drop(writer);
        assert!(matches!(read(Path::new(&path), 4), Err(Unfit::TooLarge { .. })));
    }
}
