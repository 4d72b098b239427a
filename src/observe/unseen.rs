//! Why an observer saw nothing.
//!
//! Enters: what is missing, and the reason. Leaves: an [`Unseen`], whose words are both. The reason is a value of its own, so that what
//! several observers have in common is said once.

use std::fmt;

/// The reason of observers whose reader ended before them.
pub(super) const READER_DIED: &str = "the reader died";

/// Why an observer saw nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// What its reader misses, e.g. `cpu is not watched`.
    what: String,
    /// One clause, with what helps.
    pub why: String,
}

impl Unseen {
    /// This is missing, for this reason.
    #[must_use]
    pub fn new(what: impl Into<String>, why: impl Into<String>) -> Unseen {
        Unseen { what: what.into(), why: why.into() }
    }

    /// The subject (with its verb) is not watched.
    pub(super) fn watched(subject: &str, why: impl Into<String>) -> Unseen {
        Unseen::new(format!("{subject} not watched"), why)
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}
