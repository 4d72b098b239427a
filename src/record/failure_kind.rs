//! Whether a trial that failed may be tried again.
//!
//! Enters: the errno of what failed, where there is one. Leaves: a kind. It must not know which engine failed.

use serde::{Deserialize, Serialize};

/// What a failure says about another attempt at the same trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Certainly not the trial's own: its agent was killed, its emulator lost the guest before anything was measured. The trial is
    /// tried once more, and this does not count when the failures of the arms are compared.
    Outside,
    /// It may pass (EIO, a program that ended with 1): the trial is tried once more.
    #[default]
    Passing,
    /// It would come again: a limit, a missing file, a setting that this machine cannot do. Not tried again.
    Lasting,
    /// Data were not what was written. No good attempt may hide that, so none is made.
    WrongData,
}

/// Errnos whose cause is still there a moment later.
const LASTING: [i32; 25] = [
    libc::EPERM,
    libc::ENOENT,
    libc::ENXIO,
    libc::EBADF,
    libc::EACCES,
    libc::ENOTBLK,
    libc::ENODEV,
    libc::ENOTDIR,
    libc::EISDIR,
    libc::EINVAL,
    libc::ENFILE,
    libc::EMFILE,
    libc::ENOTTY,
    libc::ETXTBSY,
    libc::EFBIG,
    libc::ENOSPC,
    libc::ESPIPE,
    libc::EROFS,
    libc::ENAMETOOLONG,
    libc::ENOSYS,
    libc::ELOOP,
    libc::EOVERFLOW,
    libc::EOPNOTSUPP,
    libc::EDQUOT,
    libc::ENOMEM,
];

impl FailureKind {
    /// The kind of a call that failed with `errno`; EILSEQ is what fio and the native engine call a wrong block.
    #[must_use]
    pub fn of_errno(errno: i32) -> FailureKind {
        match errno {
            libc::EILSEQ => FailureKind::WrongData,
            errno if LASTING.contains(&errno) => FailureKind::Lasting,
            _ => FailureKind::Passing,
        }
    }

    /// Whether the same trial is tried again after it.
    #[must_use]
    pub fn is_tried_again(self) -> bool {
        matches!(self, FailureKind::Outside | FailureKind::Passing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_moment_are_told_from_those_that_come_again() {
        for errno in [libc::EIO, libc::EAGAIN, libc::EINTR, libc::ETIMEDOUT, libc::EREMOTEIO] {
            assert!(FailureKind::of_errno(errno).is_tried_again(), "{errno}");
        }
        for errno in [libc::EMFILE, libc::EACCES, libc::EINVAL, libc::ENOSPC, libc::EPERM] {
            assert_eq!(FailureKind::of_errno(errno), FailureKind::Lasting, "{errno}");
        }
        assert_eq!(FailureKind::of_errno(libc::EILSEQ), FailureKind::WrongData);
    }

    #[test]
    fn the_worst_of_several_is_the_largest() {
        assert!(FailureKind::WrongData > FailureKind::Lasting && FailureKind::Lasting > FailureKind::Passing);
        assert!(FailureKind::Passing > FailureKind::Outside);
    }
}
