//! Patched files: what a source's files become with patches, one after the other.
//!
//! Enters: a source, patches, a tree of assay's. Leaves: the tree with the patched files in it, each a new file with the time of now. The
//! patches are applied to copies of the touched files alone, so that whether they apply is known before anything else is done.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use super::entries;
use super::error::BuildError;
use super::patch::Patch;
use super::source::{Source, SourceFile};
use super::tree;

/// The touched files as they are with the patches.
pub(super) struct Overlay {
    place: tempfile::TempDir,
    /// For as long as it is held, nobody removes the directory.
    _lock: File,
    touched: BTreeSet<String>,
    /// Hunks that went in where lines around them differ, in words.
    fuzzy: Vec<String>,
}

impl Overlay {
    /// Applies patches to copies of what they touch.
    ///
    /// # Errors
    /// [`BuildError::DoesNotApply`] with the hunk.
    pub(super) fn of(source: &Source, patches: &[&Patch]) -> Result<Overlay, BuildError> {
        let (place, lock) = entries::scratch()?;
        let all = source.uncommitted.iter().chain(patches.iter().copied());
        let touched: BTreeSet<String> = all.clone().flat_map(|patch| patch.touched.iter().cloned()).collect();
        for name in &touched {
            if let Some(file) = source.file(name)? {
                tree::put(place.path(), name, Some((&file.bytes, file.executable)))?;
            }
        }
        let mut fuzzy = Vec::new();
        for patch in all {
            let hunks = patch.apply(place.path(), &source.name())?.into_iter();
            fuzzy.extend(hunks.map(|hunk| format!("{}: {hunk}", patch.name())));
        }
        Ok(Overlay { place, _lock: lock, touched, fuzzy })
    }

    /// Puts them into a tree; what is as it should be is left alone, so that make sees no change.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn put(&self, into: &Path) -> Result<(), BuildError> {
        for name in &self.touched {
            let path = self.place.path().join(name);
            let bytes = path.is_file().then(|| std::fs::read(&path)).transpose();
            let bytes = bytes.map_err(BuildError::io("cannot read", &path))?;
            let executable = tree::is_executable(&path);
            match bytes {
                Some(bytes) if tree::same(&into.join(name), &bytes, executable) => {}
                Some(bytes) => tree::put(into, name, Some((&bytes, executable)))?,
                None => tree::put(into, name, None)?,
            }
        }
        Ok(())
    }

    /// One file of the source as it is with the patches.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn file(&self, source: &Source, name: &str) -> Result<Option<SourceFile>, BuildError> {
        let path = self.place.path().join(name);
        match (self.touched.contains(name), path.is_file()) {
            (false, _) => source.file(name),
            (true, false) => Ok(None),
            (true, true) => {
                let bytes = std::fs::read(&path).map_err(BuildError::io("cannot read", &path))?;
                Ok(Some(SourceFile { bytes, executable: tree::is_executable(&path) }))
            }
        }
    }

    /// What a reader should look at, if anything.
    pub(super) fn note(&self) -> Option<String> {
        let first = self.fuzzy.first()?;
        let more = match self.fuzzy.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more like it)"),
        };
        Some(format!(
            "{first} was applied although lines around it differ{more}; look whether that is where it belongs"
        ))
    }

    /// The names of the files.
    pub(super) fn touched(&self) -> &BTreeSet<String> {
        &self.touched
    }
}
