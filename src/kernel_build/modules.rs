//! Building nothing but modules: of a kernel that is there, with its headers, from the source of the same version.
//!
//! Enters: the source, patches, the kernel, the modules that any of its levels changes. Leaves: an entry of the cache that is the kernel as
//! it was unpacked with these modules in their place. Levels that change nothing have them built, too: otherwise they would be compared
//! with what another compiler made at another time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::entries::Entry;
use super::error::BuildError;
use super::headers::{self, Headers};
use super::make::{self, Watch};
use super::overlay::Overlay;
use super::patch::Patch;
use super::room::{self, State};
use super::source::Source;
use super::tools::{self, Compiler};
use super::touched::Module;
use super::wanted::Base;
use super::{compiled, digests, tree};
use crate::sys::clean_command;

/// All that a build of modules starts from.
pub(super) struct Building<'b> {
    pub(super) source: &'b Source,
    pub(super) patches: &'b [&'b Patch],
    pub(super) base: &'b Base,
    pub(super) headers: &'b Headers,
    pub(super) compiler: &'b Compiler,
    pub(super) modules: &'b BTreeSet<Module>,
}

impl Building<'_> {
    /// The room that they are built in, once no other assay builds there: the same for all patches of a source that change these modules.
    ///
    /// # Errors
    /// It cannot be made; interrupted.
    pub(super) fn room(&self, watch: &Watch<'_>, waits: &mut dyn FnMut()) -> Result<Entry, BuildError> {
        room::entered(&self.room_key()?, watch, waits)
    }

    /// The directories of that room in which their sources lie.
    pub(super) fn directories_in(&self, room: &Entry) -> Vec<PathBuf> {
        let tree = room::tree_of(room);
        self.directories().into_iter().map(|directory| tree.join(directory)).collect()
    }

    /// Builds into an empty directory: `boot`, `lib/modules/RELEASE`.
    ///
    /// # Errors
    /// What make said; source and headers of other versions.
    pub(super) fn build(&self, room: &Entry, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let kept = self.headers.unpacked(&self.base.release, watch)?;
        let headers = &kept.root;
        self.same_version(headers)?;
        self.copy_kernel(into)?;
        let overlay = Overlay::of(self.source, self.patches)?;
        let tree = room::tree_of(room);
        let lay = |state: &State, watch: &mut Watch<'_>| self.lay(room, state, watch);
        room::build(room, self.source, &overlay, watch, lay, |watch| {
            // make leaves what it does not make any more, and that would be of another patch.
            self.modules.iter().try_for_each(|module| room::removed(&module.built(&tree)))?;
            for directory in self.directories() {
                let mut command = make::make(headers);
                command.arg(format!("M={}", tree.join(directory).display()));
                // As in the kernel itself, a BUG() names its file below the tree and not where it was built.
                command.arg(format!("KCFLAGS=-fmacro-prefix-map={}/=", tree.display()));
                command.args(tools::compiler_words(self.compiler));
                // These alone: a directory may have a hundred others.
                let here = self.modules.iter().filter(|module| module.directory == directory);
                command.args(here.map(|module| format!("{}.ko", module.name)));
                make::run(command, watch)?;
            }
            compiled::keep(self.patches, &self.directories_in(room), into)?;
            self.modules.iter().try_for_each(|module| self.replace(module, &tree, into, watch))
        })
    }

    /// The name of that room.
    fn room_key(&self) -> Result<String, BuildError> {
        let [kind, of] = room::source_key(self.source);
        let headers = self.headers.digest()?;
        let fixed = ["modules", &kind, &of, &self.base.release, &headers, &self.compiler.version];
        Ok(digests::of_texts(fixed.into_iter().chain(self.directories())))
    }

    /// The directories of the modules' sources.
    fn directories(&self) -> BTreeSet<&str> {
        self.modules.iter().map(|module| module.directory.as_str()).collect()
    }

    /// Brings the tree to what the source has. Objects lie among the files there: of another state of the source all is copied anew.
    fn lay(&self, room: &Entry, state: &State, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let tree = room::tree_of(room);
        if tree.is_dir() && state.is_of(self.source) {
            return Ok(());
        }
        room::empty(room)?;
        self.directories().into_iter().try_for_each(|directory| self.copy_directory(directory, &tree, watch))
    }

    fn same_version(&self, headers: &Path) -> Result<(), BuildError> {
        let (source_version, headers_version) = (self.source.version()?, headers::version_of(headers));
        if source_version == headers_version || headers_version.is_empty() {
            return Ok(());
        }
        Err(BuildError::OtherVersion { source_version, release: self.base.release.clone(), headers_version })
    }

    /// The kernel as it is, its files shared where the filesystem allows.
    fn copy_kernel(&self, into: &Path) -> Result<(), BuildError> {
        let Base { release, image, modules, config, .. } = self.base;
        let boot = into.join("boot");
        std::fs::create_dir_all(&boot).map_err(BuildError::io("cannot make", &boot))?;
        tree::share(image, &boot.join(format!("vmlinuz-{release}")))?;
        if let Some(config) = config {
            tree::share(config, &boot.join(format!("config-{release}")))?;
        }
        tree::share_all(modules, &into.join("lib/modules").join(release))
    }

    /// Copies one directory of the source, with everything below it.
    fn copy_directory(&self, directory: &str, tree: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let to = tree.join(directory);
        std::fs::create_dir_all(&to).map_err(BuildError::io("cannot make", &to))?;
        match self.source.unpacked(watch)? {
            Some(kept) => tree::copy(&kept.root.join(directory), &to, false),
            None => self.source.directory(directory, tree, watch),
        }
    }

    /// Without what debuggers want, as in Debian's kernels: it is nine tenths of the file, which every guest unpacks and loads.
    fn replace(
        &self,
        module: &Module,
        tree: &Path,
        into: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        let built = module.built(tree);
        let old = into.join("lib/modules").join(&self.base.release).join(&module.file);
        let new = old.with_file_name(format!("{}.ko", module.name));
        // A link of the kernel's own file: the file there stays.
        std::fs::remove_file(&old).map_err(BuildError::io("cannot replace", &old))?;
        if !built.is_file() {
            return Err(BuildError::NotMade { path: built });
        }
        let mut strip = clean_command("strip");
        strip.arg("--strip-debug").arg("-o").arg(&new).arg(&built);
        make::run(strip, watch)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::fake;
    use super::*;

    /// Compiles what is newer than its object, says what, and links all objects that lie there.
    fn headers(place: &Path) -> Headers {
        let root = place.join("headers");
        let makefile = format!(
            "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\none.ko:\n\t@cd $(M) && grep -q obj-m Makefile || exit 0; \
             cd $(M) && for c in *.c; do o=$${{c%.c}}.o; [ $$o -nt $$c ] || {{ cc -c $$c -o $$o && echo $$c >> {}; }}; done; \
             ld -r -o one.ko *.o\n",
            place.join("compiled").display()
        );
        tree::put(&root, "Makefile", Some((makefile.as_bytes(), false))).unwrap();
        tree::put(&root, "Module.symvers", Some((b"", false))).unwrap();
        Headers::Installed(root)
    }

    #[test]
    fn a_patch_compiles_what_it_changes_and_leaves_nothing() {
        let name = "a_patch_compiles_what_it_changes_and_leaves_nothing";
        fake::alone(module_path!(), name, |place| {
            let (root, kernel) = (place.join("source"), place.join("kernel"));
            fake::kernel(&root, "exit 0\n");
            for (name, text) in
                [("Makefile", "obj-m += one.o\n"), ("a.c", "int first = 1;\n"), ("b.c", "int second = 1;\n")]
            {
                tree::put(&root, &format!("fs/one/{name}"), Some((text.as_bytes(), false))).unwrap();
            }
            tree::put(&kernel, "modules/kernel/fs/one/one.ko", Some((b"the kernel's own", false))).unwrap();
            tree::put(&kernel, "vmlinuz", Some((b"image", false))).unwrap();
            let base = Base {
                release: "6.12".to_owned(),
                image: kernel.join("vmlinuz"),
                modules: kernel.join("modules"),
                config: None,
                places: Vec::new(),
            };
            let modules = BTreeSet::from([Module {
                directory: "fs/one".to_owned(),
                name: "one".to_owned(),
                file: PathBuf::from("kernel/fs/one/one.ko"),
            }]);
            let source = Source::open(&root, None).unwrap();
            let (headers, compiled) = (headers(place), place.join("compiled"));
            let compiler = Compiler { program: "gcc".to_owned(), version: "fake".to_owned() };
            let mut builds = 0;
            // The module, and what was compiled for it.
            let mut built = |text: &str| {
                builds += 1;
                let patch = Patch::of(Path::new("x.patch"), text.as_bytes().to_vec());
                let patches: Vec<&Patch> = patch.as_ref().into_iter().filter(|_| !text.is_empty()).collect();
                let building = Building {
                    source: &source,
                    patches: &patches,
                    base: &base,
                    headers: &headers,
                    compiler: &compiler,
                    modules: &modules,
                };
                let (log, flag, mut objects) = (place.join("log"), AtomicBool::new(false), |_| ());
                let mut watch = fake::watch(&log, &flag, &mut objects);
                let into = place.join(format!("build-{builds}"));
                std::fs::create_dir(&into).unwrap();
                let _ = std::fs::remove_file(&compiled);
                let room = building.room(&watch, &mut || ()).unwrap();
                building.build(&room, &into, &mut watch).map(|()| {
                    let module = std::fs::read(into.join("lib/modules/6.12/kernel/fs/one/one.ko")).unwrap();
                    (module, std::fs::read_to_string(&compiled).unwrap_or_default())
                })
            };
            let changed =
                "--- a/fs/one/a.c\n+++ b/fs/one/a.c\n@@ -1 +1 @@\n-int first = 1;\n+int first = 2;\n";
            let removed = "--- a/fs/one/a.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-int first = 1;\n";
            let header = "--- /dev/null\n+++ b/fs/one/x.h\n@@ -0,0 +1 @@\n+int x;\n";
            let none = "--- a/fs/one/Makefile\n+++ b/fs/one/Makefile\n@@ -1 +1 @@\n-obj-m += one.o\n+obj-y += one.o\n";
            let has =
                |module: &[u8], name: &str| module.windows(name.len()).any(|part| part == name.as_bytes());
            let (first, all) = built("").unwrap();
            assert_eq!(all, "a.c\nb.c\n");
            let (second, some) = built(changed).unwrap();
            assert!(some == "a.c\n" && second != first, "{some}");
            let (third, some) = built("").unwrap();
            assert!(some == "a.c\n" && third == first, "{some}");
            let (fourth, some) = built(removed).unwrap();
            assert!(some.is_empty() && has(&third, "first") && !has(&fourth, "first"), "{some}");
            let (fifth, some) = built(header).unwrap();
            assert!(
                some == "a.c\nb.c\n" && fifth == first,
                "{some}: a new header may be found before another one"
            );
            // make has nothing to make: the module of the patch before is not taken for it.
            let error = built(none).unwrap_err();
            assert!(matches!(error, BuildError::NotMade { .. }) && error.is_of_the_revision(), "{error}");
            assert_eq!(built("").unwrap().0, first);
        });
    }
}
