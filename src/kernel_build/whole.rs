//! Building a whole kernel: out of tree, in a room of the cache that has the tree and its objects.
//!
//! Enters: a source, patches, a configuration. Leaves: an entry with image, configuration and modules, if it has some. A room stays: the
//! next patch changes its files there and make compiles what they are in. What was left half done by a kill is thrown away.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::config::{self, Configuration};
use super::entries::{self, Entry};
use super::error::BuildError;
use super::make::{self, Watch};
use super::overlay::Overlay;
use super::patch::Patch;
use super::source::{Kind, Source};
use super::tools::{self, Compiler};
use super::{digests, tree};
use crate::sys::cache;

/// MiB of a room with a small kernel.
pub(super) const NEEDED_MIB: u64 = 1_500;

/// The file of a room that says what it was left as, and its first line when all in it can be used.
const STATE: &str = "state";
const WHOLE: &str = "whole";

/// Whether a room has the objects of an earlier build.
pub(super) fn is_filled(room_key: &str) -> bool {
    let state = cache::place(entries::ROOMS).map(|place| place.join(room_key).join(STATE));
    state.and_then(|path| std::fs::read_to_string(path).ok()).is_some_and(|text| text.starts_with(WHOLE))
}

/// The room of a kernel: the same for all patches of a source, and for all revisions of a repository.
pub(super) fn room_key(source: &Source, configuration: &Configuration, compiler: &Compiler) -> String {
    let path = source.path.to_string_lossy().into_owned();
    let of = match &source.kind {
        Kind::Git(_) => ["git", path.as_str()],
        Kind::Tree => ["tree", path.as_str()],
        Kind::Tarball | Kind::Package => ["unpacked", source.digest.as_str()],
    };
    digests::of_texts(of.into_iter().chain([configuration.digest.as_str(), compiler.version.as_str()]))
}

/// All that a build of a kernel starts from.
pub(super) struct Building<'b> {
    pub(super) source: &'b Source,
    pub(super) patches: &'b [&'b Patch],
    pub(super) configuration: &'b Configuration,
    pub(super) compiler: &'b Compiler,
}

impl Building<'_> {
    /// The room that it is built in, once no other assay builds there.
    ///
    /// # Errors
    /// It cannot be made; interrupted.
    pub(super) fn room(&self, watch: &Watch<'_>) -> Result<Entry, BuildError> {
        entries::room(&room_key(self.source, self.configuration, self.compiler), &mut || {
            if watch.cancelled.load(Ordering::SeqCst) { Err(watch.interrupted()) } else { Ok(()) }
        })
    }

    /// Builds into an empty directory: `boot`, and `lib/modules/RELEASE` where the configuration has modules.
    ///
    /// # Errors
    /// What make said; a configuration that is missing something.
    pub(super) fn build(&self, room: &Entry, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let watch = &mut watch.holding(&room.lock);
        let state = State::of(room)?;
        state.begin()?;
        let overlay = Overlay::of(self.source, self.patches)?;
        let laid = self.make_tree(room, &state, &overlay, watch);
        let is_laid = laid.is_ok();
        let built = laid.and_then(|()| self.make_kernel(room, into, watch));
        match &built {
            // Nobody knows which of its files are whole, and others need the space.
            Err(error) if error.is_of_space() => empty(room)?,
            // All files are looked at again by the next build.
            Err(BuildError::SourceChanged { .. }) => state.end("", &overlay)?,
            // make takes back what it was making when it fails or is ended.
            _ if is_laid => state.end(&self.source.digest, &overlay)?,
            _ => {}
        }
        entries::room_was_used(room);
        built
    }

    fn make_tree(
        &self,
        room: &Entry,
        state: &State,
        overlay: &Overlay,
        watch: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        let tree = room.path.join("tree");
        let is_new = !tree.is_dir();
        std::fs::create_dir_all(&tree).map_err(BuildError::io("cannot make", &tree))?;
        match &self.source.kind {
            Kind::Git(commit) if is_new || state.source != self.source.digest => {
                state.patched.iter().try_for_each(|name| tree::put(&tree, name, None))?;
                commit.check_out(&self.source.path, &tree, &room.path.join("index"), watch)?;
            }
            Kind::Tree if is_new || state.source != self.source.digest => {
                tree::follow(&self.source.path, &tree)?;
            }
            Kind::Tarball | Kind::Package if is_new => {
                let Some(unpacked) = self.source.unpacked(watch)? else { return Ok(()) };
                tree::copy(&unpacked.root, &tree, true)?;
            }
            _ => {}
        }
        for name in state.patched.difference(overlay.touched()) {
            match self.source.file(name)? {
                Some(file) if tree::same(&tree.join(name), &file.bytes, file.executable) => {}
                Some(file) => tree::put(&tree, name, Some((&file.bytes, file.executable)))?,
                None => tree::put(&tree, name, None)?,
            }
        }
        overlay.put(&tree)?;
        if self.source.kind == Kind::Tree { self.source.is_unchanged() } else { Ok(()) }
    }

    fn make_kernel(&self, room: &Entry, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let (tree, objects) = (room.path.join("tree"), room.path.join("objects"));
        std::fs::create_dir_all(&objects).map_err(BuildError::io("cannot make", &objects))?;
        let make = |targets: &[&str]| {
            let mut command = make::make(&tree);
            command
                .arg(format!("O={}", objects.display()))
                .args(tools::compiler_words(self.compiler))
                .args(targets);
            command
        };
        let own = objects.join(if self.configuration.is_whole { ".config" } else { "assay.config" });
        std::fs::write(&own, &self.configuration.text).map_err(BuildError::io("cannot write", &own))?;
        let mut configure = make(&[if self.configuration.is_whole { "olddefconfig" } else { "allnoconfig" }]);
        configure.env("KCONFIG_ALLCONFIG", &own);
        make::run(configure, watch)?;
        let path = objects.join(".config");
        let finished = std::fs::read_to_string(&path).map_err(BuildError::io("cannot read", &path))?;
        self.configuration.check(&finished)?;
        let modules = config::has_modules(&finished);
        make::run(make(if modules { &["bzImage", "modules"] } else { &["bzImage"] }), watch)?;
        let path = objects.join("include/config/kernel.release");
        let release = std::fs::read_to_string(&path).map_err(BuildError::io("cannot read", &path))?;
        let release = release.trim();
        let boot = into.join("boot");
        std::fs::create_dir_all(&boot).map_err(BuildError::io("cannot make", &boot))?;
        for (from, to) in
            [("arch/x86/boot/bzImage", "vmlinuz"), (".config", "config"), ("System.map", "System.map")]
        {
            let from = objects.join(from);
            std::fs::copy(&from, boot.join(format!("{to}-{release}")))
                .map_err(BuildError::io("make has not made", &from))?;
        }
        if modules {
            let mut install = make(&["modules_install"]);
            install
                .arg(format!("INSTALL_MOD_PATH={}", into.display()))
                .arg("INSTALL_MOD_STRIP=1")
                .arg("DEPMOD=true");
            make::run(install, watch)?;
        }
        Ok(())
    }
}

/// What a room was left as.
struct State {
    file: std::path::PathBuf,
    /// The digest of the source whose files are in the tree.
    source: String,
    /// Files that differ from those of the source.
    patched: BTreeSet<String>,
}

impl State {
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
        let text = format!("{WHOLE}\n{}\n{names}", source);
        std::fs::write(&self.file, text).map_err(BuildError::io("cannot write", &self.file))
    }
}

/// Removes all that a build has left in a room.
fn empty(room: &Entry) -> Result<(), BuildError> {
    ["tree", "objects", "index", "index.lock"].iter().try_for_each(|name| removed(&room.path.join(name)))
}

/// Removes a file or directory that may be there; what is left of it would go into the next kernel.
fn removed(path: &Path) -> Result<(), BuildError> {
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
    use std::sync::atomic::AtomicBool;

    use super::super::fake;
    use super::*;

    /// Builds the kernel in `place/source` into `place/NAME`.
    fn built(place: &Path, name: &str) -> Result<String, BuildError> {
        built_of(&Source::open(&place.join("source"), None).unwrap(), place, name)
    }

    fn built_of(source: &Source, place: &Path, name: &str) -> Result<String, BuildError> {
        let configuration = Configuration::read(None, &BTreeSet::new()).unwrap();
        let compiler = Compiler { program: "gcc".to_owned(), version: "fake".to_owned() };
        let building = Building { source, patches: &[], configuration: &configuration, compiler: &compiler };
        let (log, flag, mut objects) = (place.join("log"), AtomicBool::new(false), |_| ());
        let mut watch = fake::watch(&log, &flag, &mut objects);
        let room = building.room(&watch)?;
        building.build(&room, &place.join(name), &mut watch)?;
        Ok(std::fs::read_to_string(place.join(name).join("boot/vmlinuz-6.12.117")).unwrap())
    }

    /// What is in the only room.
    fn in_the_room() -> Vec<String> {
        let room = std::fs::read_dir(cache::place(entries::ROOMS).unwrap()).unwrap().next().unwrap().unwrap();
        let entries = std::fs::read_dir(room.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_tree_that_changes_while_it_is_built_is_refused() {
        fake::alone(module_path!(), "a_tree_that_changes_while_it_is_built_is_refused", |place| {
            let root = place.join("source");
            fake::kernel(&root, "exit 0\n");
            let source = Source::open(&root, None).unwrap();
            std::fs::write(root.join("fs/one.c"), "edited\n").unwrap();
            let error = built_of(&source, place, "a").unwrap_err();
            assert!(error.to_string().ends_with("changed while it was built"), "{error}");
            assert_eq!(built(place, "b").unwrap(), "edited\n");
            let source = Source::open(&root, None).unwrap();
            std::fs::write(root.join("fs/one.c"), "again\n").unwrap();
            assert!(built_of(&source, place, "c").is_err(), "the room has the files of before");
            assert_eq!(built(place, "d").unwrap(), "again\n");
        });
    }

    #[test]
    fn a_room_is_kept_after_a_mistake_and_thrown_away_when_space_was_missing() {
        let name = "a_room_is_kept_after_a_mistake_and_thrown_away_when_space_was_missing";
        fake::alone(module_path!(), name, |place| {
            let source = place.join("source");
            fake::kernel(&source, "echo 'one.c:1: error: x'; exit 1\n");
            assert!(matches!(built(place, "a"), Err(BuildError::DoesNotCompile { .. })));
            assert_eq!(in_the_room(), [".assay-entry", "objects", "state", "tree"]);
            fake::kernel(&source, "echo \"cp: error writing '$1/x': No space left on device\"; exit 1\n");
            let error = built(place, "b").unwrap_err();
            assert!(error.is_of_space() && !error.is_of_the_revision(), "{error}");
            assert_eq!(in_the_room(), [".assay-entry", "state"]);
            fake::kernel(&source, "exit 0\n");
            assert_eq!(built(place, "c").unwrap(), "one\n");
        });
    }
}
