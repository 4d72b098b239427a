//! Building nothing but modules: of a kernel that is there, with its headers, from the source of the same version.
//!
//! Enters: the source, patches, the kernel. Leaves: which modules the patches change, and an entry of the cache that is the kernel as it
//! was unpacked with these modules in their place. Levels that change nothing have them built, too: otherwise they would be compared
//! with what another compiler made at another time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::entries::Entry;
use super::error::BuildError;
use super::headers::{self, Headers};
use super::kbuild::Lists;
use super::make::{self, Watch};
use super::overlay::Overlay;
use super::patch::Patch;
use super::room::{self, State};
use super::source::{Source, SourceFile};
use super::tools::{self, Compiler};
use super::wanted::Base;
use super::{compiled, digests, tree};
use crate::sys::clean_command;

/// A module of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Module {
    /// The directory of its source: `fs/f2fs`.
    pub(super) directory: String,
    /// `f2fs`.
    pub(super) name: String,
    /// Its file in the kernel, below `lib/modules/RELEASE`.
    pub(super) file: PathBuf,
}

impl Module {
    /// The file that make makes of it.
    fn built(&self, tree: &Path) -> PathBuf {
        tree.join(&self.directory).join(format!("{}.ko", self.name))
    }
}

/// What a patch may touch that is in no module and in no kernel.
const NO_CODE: [&str; 6] = ["Documentation/", "MAINTAINERS", "CREDITS", "tools/", "samples/", ".mailmap"];

/// How single files are read: of a source, or as patches have changed it.
pub(super) type Files<'f> = &'f dyn Fn(&str) -> Result<Option<SourceFile>, BuildError>;

/// The modules that patches of one kernel change, and what is not committed: with the Makefiles of the source, and those that both make
/// of them.
///
/// # Errors
/// [`BuildError::NotAModule`]: one changes something else.
pub(super) fn changed(
    patches: &[&Patch],
    source: &Source,
    base: &Base,
) -> Result<BTreeSet<Module>, BuildError> {
    // Whether they apply is asked later; what does not is told by the source's own Makefiles.
    let overlay = Overlay::of(source, patches).ok();
    let before: Files<'_> = &|name| source.file(name);
    let after: Files<'_> = &|name| overlay.as_ref().map_or(Ok(None), |overlay| overlay.file(source, name));
    let mut modules = BTreeSet::new();
    for patch in source.uncommitted.iter().chain(patches.iter().copied()) {
        let touched = patch.touched.iter().map(String::as_str);
        modules.extend(of_files(touched, &[before, after], base, &patch.path)?);
    }
    Ok(modules)
}

/// The modules in which files are that `by` changes, in any of these states of a source.
///
/// # Errors
/// [`BuildError::NotAModule`]: one of them is somewhere else.
pub(super) fn of_files<'f>(
    touched: impl IntoIterator<Item = &'f str>,
    states: &[Files<'_>],
    base: &Base,
    by: &Path,
) -> Result<BTreeSet<Module>, BuildError> {
    let mut modules = BTreeSet::new();
    for touched in touched.into_iter().filter(|name| !NO_CODE.iter().any(|start| name.starts_with(start))) {
        let mut found = BTreeSet::new();
        for files in states {
            found.extend(of_file(touched, files, base)?);
        }
        if found.is_empty() {
            return Err(BuildError::NotAModule {
                patch: by.to_owned(),
                touched: touched.to_owned(),
                release: base.release.clone(),
            });
        }
        modules.extend(found);
    }
    Ok(modules)
}

fn of_file(touched: &str, files: Files<'_>, base: &Base) -> Result<BTreeSet<Module>, BuildError> {
    // The kernel's options are chosen already.
    if Path::new(touched).file_name().is_some_and(|name| name.to_string_lossy().starts_with("Kconfig")) {
        return Ok(BTreeSet::new());
    }
    let mut directory = Path::new(touched).parent();
    while let Some(here) = directory.filter(|here| !here.as_os_str().is_empty()) {
        let below = here.to_string_lossy().into_owned();
        for name in ["Makefile", "Kbuild"] {
            let Some(makefile) = files(&format!("{below}/{name}"))? else { continue };
            let lists = Lists::of(&String::from_utf8_lossy(&makefile.bytes));
            let inside = touched.strip_prefix(&format!("{below}/")).unwrap_or(touched);
            let object = inside.strip_suffix(".c").or_else(|| inside.strip_suffix(".S"));
            // A header, and the Makefile itself, may change any of them.
            let names = object.map_or_else(|| lists.modules().clone(), |object| lists.modules_of(object));
            return Ok(names.iter().filter_map(|name| in_kernel(&below, name, base)).collect());
        }
        directory = here.parent();
    }
    Ok(BTreeSet::new())
}

/// The module of a kernel that is built in a directory; `None`: it is built in, or the kernel is without it.
fn in_kernel(directory: &str, name: &str, base: &Base) -> Option<Module> {
    let place = Path::new("kernel").join(directory);
    let alike = |text: &str| text.replace('-', "_");
    let entries = std::fs::read_dir(base.modules.join(&place)).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let file = files
        .filter(|file| file.contains(".ko"))
        .find(|file| file.split_once(".ko").is_some_and(|(stem, _)| alike(stem) == alike(name)))?;
    Some(Module { directory: directory.to_owned(), name: name.to_owned(), file: place.join(file) })
}

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

    #[test]
    fn a_file_that_a_patch_adds_to_a_module_is_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (root, kernel) = (place.path().join("source"), place.path().join("kernel"));
        fake::kernel(&root, "exit 0\n");
        let makefile = "obj-m += one.o\none-y := a.o\n";
        tree::put(&root, "fs/one/Makefile", Some((makefile.as_bytes(), false))).unwrap();
        tree::put(&root, "fs/one/a.c", Some((b"a\n", false))).unwrap();
        tree::put(&kernel, "kernel/fs/one/one.ko", Some((b"module", false))).unwrap();
        let base = Base {
            release: "6.12".to_owned(),
            image: PathBuf::new(),
            modules: kernel,
            config: None,
            places: Vec::new(),
        };
        let mut source = Source::open(&root, None).unwrap();
        let patch = |text: &str| Patch::of(Path::new("x.patch"), text.as_bytes().to_vec()).unwrap();
        let names = |source: &Source, patches: &[&Patch]| {
            let modules = changed(patches, source, &base);
            modules.map(|all| all.into_iter().map(|one| one.name).collect::<Vec<_>>())
        };
        let modules = |text: &str| names(&source, &[&patch(text)]);
        let added = "--- /dev/null\n+++ b/fs/one/b.c\n@@ -0,0 +1 @@\n+b\n";
        let named = "--- a/fs/one/Makefile\n+++ b/fs/one/Makefile\n@@ -1,2 +1,2 @@\n obj-m += one.o\n-one-y := a.o\n+one-y := a.o b.o\n";
        let removed = "--- a/fs/one/a.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        assert_eq!(modules(&format!("{added}{named}")).unwrap(), ["one"]);
        assert_eq!(modules(removed).unwrap(), ["one"]);
        assert!(matches!(modules(added), Err(BuildError::NotAModule { .. })));
        // What is not committed counts like a patch, and a patch comes on top of it.
        source.uncommitted = Some(patch(named));
        assert_eq!(names(&source, &[]).unwrap(), ["one"]);
        assert_eq!(names(&source, &[&patch(added)]).unwrap(), ["one"]);
        source.uncommitted = Some(patch("--- /dev/null\n+++ b/mm/c.c\n@@ -0,0 +1 @@\n+c\n"));
        assert!(matches!(names(&source, &[&patch(removed)]), Err(BuildError::NotAModule { .. })));
    }

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
