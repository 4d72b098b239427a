//! Which modules of a kernel a change is in.
//!
//! Enters: names of files that patches or revisions change, the states of the source, the kernel. Leaves: the modules that are made of
//! them. A change of anything that the kernel itself is made of is refused: only modules are built.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::error::BuildError;
use super::includes::Includes;
use super::kbuild::Lists;
use super::overlay::Overlay;
use super::patch::Patch;
use super::source::{Files, Source};
use super::wanted::Base;
use crate::sys::regular_file;

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
    pub(super) fn built(&self, tree: &Path) -> PathBuf {
        tree.join(&self.directory).join(format!("{}.ko", self.name))
    }
}

/// A larger file is no configuration and no list of modules.
const MOST_TEXT: u64 = 16 << 20;

/// What a patch may touch that is in no module and in no kernel.
const NO_CODE: [&str; 6] = ["Documentation/", "MAINTAINERS", "CREDITS", "tools/", "samples/", ".mailmap"];

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
    let states: Vec<Includes<'_>> = states.iter().map(|files| Includes::of(files)).collect();
    for touched in touched.into_iter().filter(|name| !NO_CODE.iter().any(|start| name.starts_with(start))) {
        let (mut found, mut is_beside) = (BTreeSet::new(), false);
        for state in &states {
            let of_state = of_file(touched, state, base)?;
            is_beside |= of_state.is_none();
            found.extend(of_state.unwrap_or_default());
        }
        if found.is_empty() || is_beside {
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

/// The modules that a file is in; `None`: the kernel itself is made of it, too.
fn of_file(
    touched: &str,
    includes: &Includes<'_>,
    base: &Base,
) -> Result<Option<BTreeSet<Module>>, BuildError> {
    let last = Path::new(touched).file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The kernel's options are chosen already.
    if last.starts_with("Kconfig") {
        return Ok(Some(BTreeSet::new()));
    }
    let mut modules = BTreeSet::new();
    for (at, (below, lists)) in makefiles(touched, includes.files)?.into_iter().enumerate() {
        let inside = touched.strip_prefix(&format!("{below}/")).unwrap_or(touched);
        let object = inside.strip_suffix(".c").or_else(|| inside.strip_suffix(".S"));
        if let Some(object) = object {
            let names = lists.modules_of(object);
            return Ok(Some(names.iter().filter_map(|name| in_kernel(&below, name, base)).collect()));
        }
        let all = || lists.modules().iter().filter_map(|name| in_kernel(&below, name, base));
        if ["Makefile", "Kbuild"].contains(&last.as_str()) {
            let is_listed = |_: &str, object: &str| base.has_built_in(&below, object);
            return Ok(lists.built_in(&is_listed).is_empty().then(|| all().collect()));
        }
        // A header may change all that lies with it, and what includes it from above.
        let reached = |object: &str| -> Result<bool, BuildError> {
            let sources = lists.parts_of(object).into_iter();
            let mut sources = sources.flat_map(|part| [".c", ".S"].map(|end| format!("{below}/{part}{end}")));
            sources.try_fold(false, |found, source| Ok(found || includes.reach(&source, touched)?))
        };
        let is_on = |option: &str, object: &str| base.is_on(option) || base.has_built_in(&below, object);
        for object in lists.built_in(&is_on) {
            if reached(object)? {
                return Ok(None);
            }
        }
        for module in all() {
            if at == 0 || reached(&module.name)? {
                modules.insert(module);
            }
        }
    }
    Ok(Some(modules))
}

/// The Makefile that says what becomes of a file, and those above it, each with its directory.
fn makefiles(name: &str, files: Files<'_>) -> Result<Vec<(String, Lists)>, BuildError> {
    let mut found = Vec::new();
    for here in Path::new(name).ancestors().skip(1).filter(|here| !here.as_os_str().is_empty()) {
        let below = here.to_string_lossy().into_owned();
        for name in ["Makefile", "Kbuild"] {
            if let Some(makefile) = files(&format!("{below}/{name}"))? {
                found.push((below, Lists::of(&String::from_utf8_lossy(&makefile.bytes))));
                break;
            }
        }
    }
    Ok(found)
}

impl Base {
    /// Whether an option is part of the kernel itself, as far as its configuration is known.
    fn is_on(&self, option: &str) -> bool {
        let text = self.config.as_deref().and_then(|config| regular_file::read_text(config, MOST_TEXT).ok());
        let line = format!("CONFIG_{option}=y");
        text.is_some_and(|text| text.lines().any(|known| known == line))
    }

    /// Whether something that can be a module is part of the kernel itself.
    fn has_built_in(&self, directory: &str, object: &str) -> bool {
        let text = regular_file::read_text(&self.modules.join("modules.builtin"), MOST_TEXT);
        let line = format!("kernel/{directory}/{object}.ko");
        text.is_ok_and(|text| text.lines().any(|known| known == line))
    }
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

#[cfg(test)]
mod tests {
    use super::super::{fake, tree};
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

    #[test]
    fn a_header_that_the_kernel_itself_is_made_of_is_in_no_module() {
        let place = tempfile::tempdir().unwrap();
        let (root, kernel) = (place.path().join("source"), place.path().join("kernel"));
        fake::kernel(&root, "exit 0\n");
        let put = |root: &Path, name: &str, text: &str| {
            tree::put(root, name, Some((text.as_bytes(), false))).unwrap();
        };
        for (name, text) in [
            ("block/Makefile", "obj-y := bio.o\nobj-$(CONFIG_BFQ) += bfq.o\n"),
            ("block/bio.c", "#include \"blk.h\"\n"),
            ("block/blk.h", "#include \"deep.h\"\n"),
            ("block/bfq.c", "#include \"bfq.h\"\n"),
            (
                "md/Makefile",
                "obj-$(CONFIG_THIN) += thin.o\nobj-$(CONFIG_RAID) += raid.o\nobj-$(CONFIG_DM) += dm.o\n",
            ),
            ("md/thin.c", "#include \"data/btree.h\"\n"),
            ("md/dm.c", "#include \"dm.h\"\n"),
            ("md/data/Makefile", "obj-$(CONFIG_DATA) += data.o\n"),
        ] {
            put(&root, name, text);
        }
        for name in ["block/bfq", "md/thin", "md/raid", "md/data/data"] {
            put(&kernel, &format!("kernel/{name}.ko"), "module");
        }
        put(&kernel, "config", "CONFIG_DM=y\n");
        let mut base = Base {
            release: "6.12".to_owned(),
            image: PathBuf::new(),
            modules: kernel.clone(),
            config: None,
            places: Vec::new(),
        };
        let source = Source::open(&root, None).unwrap();
        let files: Files<'_> = &|name| source.file(name);
        let of = |touched: &str, base: &Base| {
            let found = of_files([touched], &[files, files], base, Path::new("x"));
            found.ok().map(|all| all.into_iter().map(|one| one.name).collect::<Vec<_>>())
        };
        for refused in ["block/blk.h", "block/deep.h", "block/Makefile"] {
            assert_eq!(of(refused, &base), None, "{refused}");
        }
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of("block/bfq.h", &base), names(&["bfq"]));
        // A module of the directory above includes it, another one does not.
        assert_eq!(of("md/data/btree.h", &base), names(&["thin", "data"]));
        assert_eq!(of("md/dm.h", &base), names(&["raid", "thin"]), "nobody knows that dm is built in");
        put(&kernel, "modules.builtin", "kernel/md/dm.ko\n");
        assert_eq!((of("md/dm.h", &base), of("md/Makefile", &base)), (None, None));
        assert_eq!(of("md/raid.h", &base), names(&["raid", "thin"]));
        put(&kernel, "modules.builtin", "");
        base.config = Some(kernel.join("config"));
        assert_eq!(of("md/dm.h", &base), None);
        assert_eq!(of("md/Makefile", &base), names(&["raid", "thin"]));
    }
}
