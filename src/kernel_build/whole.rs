//! Building a whole kernel: out of tree, in a room of the cache that has the tree and its objects.
//!
//! Enters: a source, patches, a configuration. Leaves: an entry with image, configuration and modules, if it has some.

use std::path::Path;
use std::process::Command;

use super::compiled;
use super::config::{self, Configuration};
use super::entries::Entry;
use super::error::BuildError;
use super::make::{self, Watch};
use super::overlay::Overlay;
use super::patch::Patch;
use super::room::{self, State};
use super::source::{Kind, Source};
use super::tools::{self, Compiler};
use super::{digests, tree};

/// The room of a kernel: the same for all patches of a source, and for all revisions of a repository.
pub(super) fn room_key(source: &Source, configuration: &Configuration, compiler: &Compiler) -> String {
    let [kind, of] = room::source_key(source);
    digests::of_texts([&*kind, &*of, &*configuration.digest, &*compiler.version])
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
    pub(super) fn room(&self, watch: &Watch<'_>, waits: &mut dyn FnMut()) -> Result<Entry, BuildError> {
        room::entered(&room_key(self.source, self.configuration, self.compiler), watch, waits)
    }

    /// Builds into an empty directory: `boot`, and `lib/modules/RELEASE` where the configuration has modules.
    ///
    /// # Errors
    /// What make said; a configuration that is missing something.
    pub(super) fn build(&self, room: &Entry, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let overlay = Overlay::of(self.source, self.patches)?;
        let lay = |state: &State, watch: &mut Watch<'_>| self.lay(room, state, watch);
        room::build(room, self.source, &overlay, watch, lay, |watch| self.make_kernel(room, into, watch))
    }

    /// Only makes the configuration, and looks at it.
    ///
    /// # Errors
    /// What make said; a configuration that is missing something.
    pub(super) fn configure(&self, room: &Entry, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let overlay = Overlay::of(self.source, self.patches)?;
        let lay = |state: &State, watch: &mut Watch<'_>| self.lay(room, state, watch);
        room::build(room, self.source, &overlay, watch, lay, |watch| self.configured(room, watch).map(drop))
    }

    /// Brings the tree to what the source has, without objects of what it had.
    fn lay(&self, room: &Entry, state: &State, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let tree = room::tree_of(room);
        let is_new = !tree.is_dir();
        std::fs::create_dir_all(&tree).map_err(BuildError::io("cannot make", &tree))?;
        let before = if is_new || state.is_of(self.source) { None } else { Some(room::names(&tree)?) };
        self.bring(room, state, is_new, watch)?;
        before.map_or(Ok(()), |before| room::forget_between(room, &before))
    }

    /// Puts the source's files there.
    fn bring(
        &self,
        room: &Entry,
        state: &State,
        is_new: bool,
        watch: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        let tree = room::tree_of(room);
        match &self.source.kind {
            Kind::Git(commit) if is_new || !state.is_of(self.source) => {
                state.patched.iter().try_for_each(|name| tree::put(&tree, name, None))?;
                commit.check_out(&self.source.path, &tree, &room.path.join("index"), watch)
            }
            Kind::Tree if is_new || !state.is_of(self.source) => tree::follow(&self.source.path, &tree),
            Kind::Tarball | Kind::Package if is_new => match self.source.unpacked(watch)? {
                Some(unpacked) => tree::copy(&unpacked.root, &tree, true),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// make in the room, for these targets.
    fn make(&self, room: &Entry, targets: &[&str]) -> Command {
        let mut command = make::make(&room::tree_of(room));
        command
            .arg(format!("O={}", room.path.join(room::OBJECTS).display()))
            .args(tools::compiler_words(self.compiler))
            .args(targets);
        command
    }

    /// Makes the configuration and looks at it; leaves its text.
    fn configured(&self, room: &Entry, watch: &mut Watch<'_>) -> Result<String, BuildError> {
        let objects = room.path.join(room::OBJECTS);
        std::fs::create_dir_all(&objects).map_err(BuildError::io("cannot make", &objects))?;
        let own = objects.join(if self.configuration.is_whole { ".config" } else { "assay.config" });
        std::fs::write(&own, &self.configuration.text).map_err(BuildError::io("cannot write", &own))?;
        let target = if self.configuration.is_whole { "olddefconfig" } else { "allnoconfig" };
        let mut configure = self.make(room, &[target]);
        configure.env("KCONFIG_ALLCONFIG", &own);
        make::run(configure, watch)?;
        let path = objects.join(".config");
        let finished = std::fs::read_to_string(&path).map_err(BuildError::io("cannot read", &path))?;
        self.configuration.check(&finished)?;
        self.patches.iter().try_for_each(|patch| self.configuration.has_options_of(patch, &finished))?;
        Ok(finished)
    }

    fn make_kernel(&self, room: &Entry, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let modules = config::has_modules(&self.configured(room, watch)?);
        let objects = room.path.join(room::OBJECTS);
        let make = |targets: &[&str]| self.make(room, targets);
        make::run(make(if modules { &["bzImage", "modules"] } else { &["bzImage"] }), watch)?;
        let path = objects.join("include/config/kernel.release");
        let release = std::fs::read_to_string(&path).map_err(BuildError::io("cannot read", &path))?;
        let release = release.trim();
        let boot = into.join("boot");
        std::fs::create_dir_all(&boot).map_err(BuildError::io("cannot make", &boot))?;
        compiled::keep(self.patches, std::slice::from_ref(&objects), into)?;
        for (from, to) in
            [("arch/x86/boot/bzImage", "vmlinuz"), (".config", "config"), ("System.map", "System.map")]
        {
            let from = objects.join(from);
            if !from.is_file() {
                return Err(BuildError::NotMade { path: from });
            }
            std::fs::copy(&from, boot.join(format!("{to}-{release}")))
                .map_err(BuildError::io("cannot copy", &from))?;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    use super::super::{entries, fake};
    use super::*;
    use crate::sys::cache;

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
        let room = building.room(&watch, &mut || ())?;
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
    fn the_object_of_a_source_that_is_gone_is_not_linked_again() {
        fake::alone(module_path!(), "the_object_of_a_source_that_is_gone_is_not_linked_again", |place| {
            let source = place.join("source");
            fake::kernel(&source, "exit 0\n");
            std::fs::write(source.join("fs/two.c"), "two\n").unwrap();
            built(place, "a").unwrap();
            let rooms = std::fs::read_dir(cache::place(entries::ROOMS).unwrap()).unwrap();
            let objects = rooms.flatten().next().unwrap().path().join("objects/fs");
            std::fs::create_dir_all(&objects).unwrap();
            for name in ["one.o", "two.o"] {
                std::fs::write(objects.join(name), "").unwrap();
            }
            std::fs::remove_file(source.join("fs/two.c")).unwrap();
            built(place, "b").unwrap();
            assert_eq!(["one.o", "two.o"].map(|name| objects.join(name).exists()), [true, false]);
        });
    }

    #[test]
    fn a_room_outlives_a_mistake_but_not_missing_space() {
        let name = "a_room_outlives_a_mistake_but_not_missing_space";
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
