//! What is asked for: a kernel by its source, revision, patches and configuration, or by another kernel whose modules are replaced.
//!
//! Enters: nothing. Leaves: plain data.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// A kernel that is there, and whose modules are built anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Base {
    /// As `uname -r` says.
    pub release: String,
    /// Its image.
    pub image: PathBuf,
    /// `…/lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// Its `config-RELEASE`, where there is one.
    pub config: Option<PathBuf>,
    /// Where packages of its headers may lie.
    pub places: Vec<PathBuf>,
}

/// A kernel to be built.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// A tree, a repository, a tarball or a package.
    pub source: PathBuf,
    /// Of a repository; `None`: what is checked out, with what is not committed.
    pub revision: Option<String>,
    /// In the order they are applied.
    pub patches: Vec<PathBuf>,
    /// A fragment, or a whole `.config`; `None`: assay's small one.
    pub config: Option<PathBuf>,
    /// The kernel whose modules are replaced; `None`: a whole kernel is built.
    pub base: Option<Base>,
    /// What a whole kernel must have for what is done with it: `XFS_FS`.
    pub options: BTreeSet<String>,
}
