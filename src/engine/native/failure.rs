//! Everything that can go wrong with a native job, worded once.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::record::FailureKind;

/// Why a job ended early. It crosses a process boundary, hence plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(super) enum Failure {
    #[error("no space for {path}: {missing_bytes} bytes are missing")]
    NoSpace { path: PathBuf, missing_bytes: u64 },
    #[error("{path} is a directory; name a file")]
    IsDirectory { path: PathBuf },
    #[error("{path} has {have} bytes, and the job goes up to {needed}: it is too small")]
    TooSmall { path: PathBuf, have: u64, needed: u64 },
    #[error("{path} is a {kind}; name a file or a block device")]
    Special { path: PathBuf, kind: String },
    #[error(
        "{path} cannot be opened with direct=1: its filesystem has no O_DIRECT; use direct=0 or another directory"
    )]
    NoDirect { path: PathBuf },
    #[error("{what} {path}: {error}")]
    File { what: String, path: PathBuf, errno: i32, error: String },
    #[error("{operation} of {length} bytes at offset {offset} of {path}: {error}")]
    Transfer { operation: String, path: PathBuf, offset: u64, length: u64, errno: i32, error: String },
    #[error("short {operation} at offset {offset} of {path}: {moved} of {length} bytes")]
    Short { operation: String, path: PathBuf, offset: u64, length: u64, moved: u64 },
    #[error(
        "verify: {length} bytes at offset {offset} of {path} are wrong: {what}{} (EILSEQ)",
        others(*.more)
    )]
    Verify { path: PathBuf, offset: u64, length: u64, what: String, more: u64 },
    #[error("{method}: {error}")]
    Method { method: String, errno: i32, error: String },
    /// A failure that may pass: another attempt may succeed.
    #[error("job '{job}': {what}")]
    Job { job: String, what: String },
    /// The job asks for something that this machine cannot do. Another attempt does not help.
    #[error("job '{job}': {what}")]
    Setting { job: String, what: String },
}

impl Failure {
    /// Whether it would come again.
    pub(super) fn kind(&self) -> FailureKind {
        match self {
            Failure::Verify { .. } => FailureKind::WrongData,
            Failure::NoSpace { .. }
            | Failure::IsDirectory { .. }
            | Failure::TooSmall { .. }
            | Failure::Special { .. }
            | Failure::NoDirect { .. }
            | Failure::Setting { .. } => FailureKind::Lasting,
            // The machine's limit of aio contexts, or of processes, is not lifted by a moment's wait.
            Failure::Method { errno: libc::EAGAIN, .. } => FailureKind::Lasting,
            Failure::File { errno, .. } | Failure::Transfer { errno, .. } | Failure::Method { errno, .. } => {
                FailureKind::of_errno(*errno)
            }
            Failure::Short { .. } | Failure::Job { .. } => FailureKind::Passing,
        }
    }

    /// A failed call on a file.
    pub(super) fn file(what: &str, path: &Path, error: &std::io::Error) -> Failure {
        let (errno, error) = match Errno::from_io_error(error) {
            Some(errno @ (Errno::MFILE | Errno::NFILE)) => (
                errno.raw_os_error(),
                format!("{}; raise the limit of open files (ulimit -n)", errno_text(errno)),
            ),
            Some(errno) => (errno.raw_os_error(), errno_text(errno)),
            None => (0, error.to_string()),
        };
        Failure::File { what: what.to_owned(), path: path.to_owned(), errno, error }
    }

    /// What is neither a file nor a block device: opening a FIFO would wait for ever for its other end.
    pub(super) fn special(path: &Path, kind: FileType) -> Failure {
        let kind = match kind {
            kind if kind.is_fifo() => "FIFO",
            kind if kind.is_socket() => "socket",
            _ => "character device",
        };
        Failure::Special { path: path.to_owned(), kind: kind.to_owned() }
    }

    /// A method that could not be set up or driven.
    pub(super) fn method(method: &str, errno: Errno) -> Failure {
        let hint = match (method, errno) {
            ("io_uring", Errno::PERM) => "; see /proc/sys/kernel/io_uring_disabled",
            ("io_uring", Errno::NOSYS) => "; this kernel has no io_uring: use ioengine=psync or libaio",
            ("io_uring", Errno::NOMEM) => "; raise the locked-memory limit (ulimit -l) or lower iodepth",
            ("io_uring", Errno::INVAL) => {
                "; iodepth is above 32768, sqthread_poll_cpu is not online, or this kernel lacks an option that the job asks for"
            }
            ("libaio", Errno::AGAIN) => "; raise /proc/sys/fs/aio-max-nr or lower iodepth",
            _ => "",
        };
        let (errno, text) = (errno.raw_os_error(), errno_text(errno));
        Failure::Method { method: method.to_owned(), errno, error: format!("{text}{hint}") }
    }
}

/// How many more blocks are wrong.
fn others(more: u64) -> String {
    if more == 0 { String::new() } else { format!("; {} blocks are wrong in all", more + 1) }
}

/// The errno's name and words, e.g. `EIO (Input/output error)`.
pub(super) fn errno_text(errno: Errno) -> String {
    let number = errno.raw_os_error();
    let words = std::io::Error::from_raw_os_error(number).to_string();
    let words = words.split(" (os error").next().unwrap_or_default().to_owned();
    match errno_name(number) {
        Some(name) => format!("{name} ({words})"),
        None => format!("errno {number} ({words})"),
    }
}

/// Names of the errnos that storage gives.
fn errno_name(number: i32) -> Option<&'static str> {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EMFILE, "EMFILE"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::EDQUOT, "EDQUOT"),
        (libc::EREMOTEIO, "EREMOTEIO"),
        (libc::ENAMETOOLONG, "ENAMETOOLONG"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::ENFILE, "ENFILE"),
        (libc::ENOTBLK, "ENOTBLK"),
        (libc::EOVERFLOW, "EOVERFLOW"),
        (libc::ESPIPE, "ESPIPE"),
        (libc::ESTALE, "ESTALE"),
        (libc::ENODATA, "ENODATA"),
        (libc::EILSEQ, "EILSEQ"),
        (libc::ENOLINK, "ENOLINK"),
    ];
    known.iter().find(|(value, _)| *value == number).map(|(_, name)| *name)
}
