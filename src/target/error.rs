//! Why a target is not ready, with what helps.

use std::path::PathBuf;

use super::overwrite::Refusal;

/// Why the target is not ready.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The directory is not assay's.
    #[error("{path} is not assay's own and is not touched: {why}")]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// What shows it.
        why: String,
    },
    /// Somebody else has mounted something in a directory that is to be emptied or removed.
    #[error("{point} is mounted, and not by assay, which removes nothing that is on it")]
    Mounted {
        /// Where.
        point: PathBuf,
    },
    /// The system's words.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// This machine does not offer it; nothing was touched.
    #[error("{reason}")]
    Unavailable {
        /// One clause that says what is missing.
        reason: String,
        /// What brings it.
        hint: String,
    },
    /// It must not be written to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A tool or the kernel refused what was asked.
    #[error("{reason}")]
    Failed {
        /// One line.
        reason: String,
        /// To repeat it by hand; empty where there is no command.
        command: String,
        /// The tool's or the kernel's own words.
        output: String,
        /// What helps; empty where nothing general does.
        hint: String,
    },
}

impl TargetError {
    /// The system's words about a path.
    pub(super) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> TargetError {
        let path = path.into();
        move |source| TargetError::Io { what, path, source }
    }

    /// A failure without a command.
    pub(super) fn failed(reason: impl Into<String>) -> TargetError {
        TargetError::Failed {
            reason: reason.into(),
            command: String::new(),
            output: String::new(),
            hint: String::new(),
        }
    }

    /// A setting that the kernel did not take.
    pub(super) fn setting(reason: String) -> TargetError {
        TargetError::Failed {
            reason,
            command: String::new(),
            output: String::new(),
            hint: "`assay help targets` says where the kernel documents what each setting takes".to_owned(),
        }
    }

    /// What is missing and what brings it.
    pub(super) fn unavailable(reason: impl Into<String>, hint: impl Into<String>) -> TargetError {
        TargetError::Unavailable { reason: reason.into(), hint: hint.into() }
    }

    /// What to type, or do, instead; empty where nothing general helps.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            TargetError::NotOurs { .. } => "name another --directory".to_owned(),
            TargetError::Mounted { point, .. } => {
                format!("umount {}, then `assay cleanup` removes the rest", point.display())
            }
            TargetError::Io { source, .. } if source.raw_os_error() == Some(libc::ENOSPC) => {
                "--directory names a place with more room".to_owned()
            }
            TargetError::Io { what: "cannot make", source, path }
                if source.kind() == std::io::ErrorKind::NotFound && !path.starts_with("/sys") =>
            {
                let missing =
                    path.parent().filter(|directory| directory.is_absolute() && !directory.exists());
                missing.map(|directory| format!("mkdir -p {} first", directory.display())).unwrap_or_default()
            }
            TargetError::Io { .. } => String::new(),
            TargetError::Unavailable { hint, .. } | TargetError::Failed { hint, .. } => hint.clone(),
            TargetError::Refused(refusal) => refusal.hint(),
        }
    }
}
