//! A room of the cache in which a source's files and what was compiled of them stay from one build to the next: the next patch changes its
//! files there, and make compiles what depends on them.
//!
//! Enters: the room, the source, patched files, how the tree is laid out and made. Leaves: the room as it can be used again. What was left
//! half done by a kill, or by a full disk, is thrown away.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::entries::{self, Entry};
use super::error::BuildError;
use super::make::Watch;
use super::overlay::Overlay;
use super::source::{Kind, Source};
use super::tree;
use crate::sys::cache;

/// The file of a room that says what it was left as, and its first line when all in it can be used.
const STATE: &str = "state";
const WHOLE: &str = "whole";
/// The directory of objects, where they do not lie among the sources.
pub(super) const OBJECTS: &str = "objects";

/// Whether a room has the objects of an earlier build.
pub(super) fn is_filled(key: &str) -> bool {
    source_in(key).is_some()
}

/// The digest of the source whose files a room was left with; `None`: all in it is made anew.
pub(super) fn source_in(key: &str) -> Option<String> {
    let path = cache::place(entries::ROOMS)?.join(key).join(STATE);
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    (lines.next() == Some(WHOLE)).then(|| lines.next().unwrap_or_default().to_owned())
}

/// How many objects of earlier builds a room has that the next one uses, whether or not those came to their end: none where assay was killed,
/// because such a room is emptied.
pub(super) fn objects(key: &str) -> u64 {
    fn below(directory: &Path) -> u64 {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let count = |entry: std::fs::DirEntry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&entry.path()),
            Ok(_) => u64::from(entry.path().extension().is_some_and(|kind| kind == "o")),
            Err(_) => 0,
        };
        entries.map(count).sum()
    }
    let place = cache::place(entries::ROOMS).filter(|_| is_filled(key));
    place.map_or(0, |rooms| below(&rooms.join(key).join(OBJECTS)))
}

/// The part of a room's key that comes from the source: the same for all its patches, and for all revisions of a repository.
pub(super) fn source_key(source: &Source) -> [String; 2] {
    let path = || source.path.to_string_lossy().into_owned();
    match &source.kind {
        Kind::Git(_) => ["git".to_owned(), path()],
        Kind::Tree => ["tree".to_owned(), path()],
        Kind::Tarball | Kind::Package => ["unpacked".to_owned(), source.digest.clone()],
    }
}

/// The room of this name, once no other assay builds there; `waits` is called now and then until then.
///
/// # Errors
/// It cannot be made; interrupted.
pub(super) fn entered(key: &str, watch: &Watch<'_>, waits: &mut dyn FnMut()) -> Result<Entry, BuildError> {
    entries::room(key, &mut || {
        waits();
        if watch.cancelled.load(Ordering::SeqCst) { Err(watch.interrupted()) } else { Ok(()) }
    })
}

/// The tree of a room.
pub(super) fn tree_of(room: &Entry) -> PathBuf {
    room.path.join("tree")
}

/// Builds in a room: `lay` brings its tree to what the source has, the patched files go on top, and `make` makes what is wanted.
///
/// # Errors
/// Theirs; a source that changes meanwhile.
pub(super) fn build(
    room: &Entry,
    source: &Source,
    overlay: &Overlay,
    watch: &mut Watch<'_>,
    lay: impl FnOnce(&State, &mut Watch<'_>) -> Result<(), BuildError>,
    make: impl FnOnce(&mut Watch<'_>) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let watch = &mut watch.holding(&room.lock);
    let state = State::of(room)?;
    state.begin()?;
    let laid = lay(&state, watch).and_then(|()| patched(room, source, overlay, &state));
    let is_laid = laid.is_ok();
    let built = laid.and_then(|()| make(watch));
    match &built {
        // Nobody knows which of its files are whole, and others may need the space: it is full, or make was killed.
        Err(BuildError::Machine { .. }) => empty(room)?,
        Err(error) if error.is_of_space() => empty(room)?,
        // All files are looked at again by the next build.
        Err(BuildError::SourceChanged { .. }) => state.end("", overlay)?,
        // make takes back what it was making when it fails or is ended.
        _ if is_laid => state.end(&source.digest, overlay)?,
        _ => {}
    }
    entries::room_was_used(room);
    built
}

/// Takes back what an earlier patch changed, and puts the patched files there.
fn patched(room: &Entry, source: &Source, overlay: &Overlay, state: &State) -> Result<(), BuildError> {
    let tree = tree_of(room);
    let names = || state.patched.union(overlay.touched());
    let there: BTreeSet<&String> = names().filter(|name| tree.join(name).is_file()).collect();
    for name in state.patched.difference(overlay.touched()) {
        match source.file(name)? {
            Some(file) if tree::same(&tree.join(name), &file.bytes, file.executable) => {}
            Some(file) => tree::put(&tree, name, Some((&file.bytes, file.executable)))?,
            None => tree::put(&tree, name, None)?,
        }
    }
    overlay.put(&tree)?;
    for name in names() {
        forget(room, name, there.contains(name), tree.join(name).is_file())?;
    }
    if source.kind == Kind::Tree { source.is_unchanged() } else { Ok(()) }
}

/// Removes what make would go on using although it cannot be made any more, or not so: the object of a source that is gone, and all
/// objects where a header is new, which may be found before the one that they were compiled with.
fn forget(room: &Entry, name: &str, was_there: bool, is_there: bool) -> Result<(), BuildError> {
    let path = Path::new(name);
    let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    let (tree, objects) = (tree_of(room), room.path.join(OBJECTS));
    match kind {
        "c" | "S" | "rs" if was_there && !is_there => {
            [&tree, &objects].into_iter().try_for_each(|place| removed(&place.join(path.with_extension("o"))))
        }
        // Modules are small; of a whole kernel it must have the name of another header.
        "h" if !was_there && is_there && !objects.is_dir() => tree::remove_all(&tree, "o"),
        "h" if !was_there && is_there && has_namesake(&tree, path)? => removed(&objects),
        _ => Ok(()),
    }
}

/// The names of all files of a tree.
pub(super) fn names(tree: &Path) -> Result<BTreeSet<PathBuf>, BuildError> {
    Ok(tree::files(tree)?.into_iter().map(|found| found.name).collect())
}

/// The same of what came and went with another revision: `before` is what the tree had.
pub(super) fn forget_between(room: &Entry, before: &BTreeSet<PathBuf>) -> Result<(), BuildError> {
    let after = names(&tree_of(room))?;
    if shadows(before, &after) {
        return removed(&room.path.join(OBJECTS));
    }
    before.difference(&after).try_for_each(|name| forget(room, &name.to_string_lossy(), true, false))
}

/// Whether a new header may be found in the place of one that was there: beside sources of before, or in another directory of headers.
fn shadows(before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> bool {
    let is_header = |name: &&PathBuf| name.extension().is_some_and(|kind| kind == "h");
    let mut new = after.difference(before).filter(is_header).peekable();
    if new.peek().is_none() {
        return false;
    }
    let included = |name: &Path| {
        let at = name.iter().position(|part| part == "include")?;
        Some(name.iter().skip(at + 1).collect::<PathBuf>())
    };
    let old = || before.iter().filter(is_header);
    let directories: BTreeSet<&Path> = before.iter().filter_map(|name| name.parent()).collect();
    let called: BTreeSet<&OsStr> = old().filter_map(|name| name.file_name()).collect();
    let below: BTreeSet<PathBuf> = old().filter_map(|name| included(name)).collect();
    new.any(|name| {
        let beside = name.parent().is_some_and(|directory| directories.contains(directory));
        let has_namesake = name.file_name().is_some_and(|file| called.contains(file));
        included(name).map_or(beside && has_namesake, |name| below.contains(&name))
    })
}

/// Whether another file of a tree has the same name, in another directory.
fn has_namesake(tree: &Path, path: &Path) -> Result<bool, BuildError> {
    let all = tree::files(tree)?;
    Ok(all.iter().any(|found| found.name != path && found.name.file_name() == path.file_name()))
}

/// What a room was left as.
pub(super) struct State {
    file: PathBuf,
    /// The digest of the source whose files are in the tree.
    source: String,
    /// Files that differ from those of the source.
    pub(super) patched: BTreeSet<String>,
}

impl State {
    /// Whether the tree has this source's files, but for patched ones.
    pub(super) fn is_of(&self, source: &Source) -> bool {
        self.source == source.digest
    }

    /// A room that somebody was in when assay was killed is emptied: what is in it may be half written.
    ///
    /// # Errors
    /// Something of it cannot be removed.
    fn of(room: &Entry) -> Result<State, BuildError> {
        let file = room.path.join(STATE);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let mut lines = text.lines();
        if lines.next() != Some(WHOLE) {
            empty(room)?;
            return Ok(State { file, source: String::new(), patched: BTreeSet::new() });
        }
        let source = lines.next().unwrap_or_default().to_owned();
        Ok(State { file, source, patched: lines.map(str::to_owned).collect() })
    }

    fn begin(&self) -> Result<(), BuildError> {
        std::fs::write(&self.file, "in use\n").map_err(BuildError::io("cannot write", &self.file))
    }

    fn end(&self, source: &str, overlay: &Overlay) -> Result<(), BuildError> {
        let names: String = overlay.touched().iter().map(|name| format!("{name}\n")).collect();
        // Whole or not there: half of the names would leave patched files in the tree.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{WHOLE}\n{source}\n{names}"))
            .and_then(|()| std::fs::rename(&new, &self.file))
            .map_err(BuildError::io("cannot write", &self.file))
    }
}

/// Removes all that a build has left in a room.
///
/// # Errors
/// Something of it cannot be removed.
pub(super) fn empty(room: &Entry) -> Result<(), BuildError> {
    ["tree", OBJECTS, "index", "index.lock"].iter().try_for_each(|name| removed(&room.path.join(name)))
}

/// Removes a file or directory that may be there; what is left of it would go into the next kernel.
///
/// # Errors
/// It cannot be removed.
pub(super) fn removed(path: &Path) -> Result<(), BuildError> {
    let done = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::io("cannot remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_header_shadows_one_that_was_found_before() {
        let tree = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<PathBuf>>();
        let before = ["fs/one.c", "net/trace.h", "include/linux/list.h", "include/asm-generic/io.h"];
        let shadowing = |new: &str| shadows(&tree(&before), &tree(&[&before[..], &[new]].concat()));
        assert!(shadowing("fs/trace.h"), "fs/one.c may include it");
        assert!(shadowing("arch/x86/include/linux/list.h"));
        for harmless in ["fs/other.h", "drivers/new/trace.h", "arch/x86/include/asm/io.h", "fs/two.c"] {
            assert!(!shadowing(harmless), "{harmless}");
        }
        assert!(!shadows(&tree(&before), &tree(&before[..2])), "what went shadows nothing");
    }
}
