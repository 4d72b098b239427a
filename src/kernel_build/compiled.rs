//! Whether anything was compiled of what a patch changes, or of what two revisions differ in: a configuration may leave all of it out, and
//! then both are one kernel, which nothing else would show.
//!
//! Enters: the directories of a kernel's objects, where kbuild keeps beside each object which files it was made of (`.file.o.cmd`); names
//! of files. Leaves: the files of code that a kernel was made of, kept with it; the first of the names, where it was made of none of them;
//! options of a patch's own that are off.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::error::BuildError;
use super::patch::Patch;

/// What is compiled by itself or in another file.
const CODE: [&str; 3] = [".c", ".S", ".h"];
/// What no kernel depends on; of all else that is no code, nothing is known, nor of the programs that take part in a build.
const APART: [&str; 7] =
    ["Documentation/", "LICENSES/", "MAINTAINERS", "CREDITS", ".mailmap", "samples/", "tools/testing/"];
/// Programs that take part in a build, whose commands name files in another way.
const TOOLS: &str = "tools/";
/// What is generated there is made of lists that lie in directories without code (`arch/x86/entry/syscalls/syscall_64.tbl`).
const GENERATED: &str = "arch/x86/";
/// The file of a kernel in the cache that has their names.
const FILE: &str = "compiled";

/// The files of code that a kernel, or the modules that were built for it, were made of, as the commands name them; by their last names.
pub(super) struct Compiled(BTreeMap<String, BTreeSet<String>>);

impl Compiled {
    /// Of the objects below these directories.
    ///
    /// # Errors
    /// They cannot be read.
    fn of(directories: &[PathBuf]) -> Result<Compiled, BuildError> {
        let mut compiled = Compiled(BTreeMap::new());
        for directory in directories {
            let mut add = |text: &str| {
                text.split_ascii_whitespace()
                    .filter(|word| is_code(word))
                    .for_each(|word| compiled.add(word));
            };
            each_command(directory, &mut add).map_err(BuildError::io("cannot read", directory))?;
        }
        Ok(compiled)
    }

    fn add(&mut self, word: &str) {
        let words = self.0.entry(last_name(word).to_owned()).or_default();
        if !words.contains(word) {
            words.insert(word.to_owned());
        }
    }

    /// Keeps them with the kernel.
    ///
    /// # Errors
    /// The file cannot be written.
    fn keep(&self, into: &Path) -> Result<(), BuildError> {
        let path = into.join(FILE);
        let lines: Vec<&str> = self.0.values().flatten().map(String::as_str).collect();
        std::fs::write(&path, lines.join("\n")).map_err(BuildError::io("cannot write", &path))
    }

    /// Those of a kernel in the cache; `None`: an earlier assay has built it.
    pub(super) fn kept(entry: &Path) -> Option<Compiled> {
        let text = std::fs::read_to_string(entry.join(FILE)).ok()?;
        let mut compiled = Compiled(BTreeMap::new());
        text.lines().for_each(|line| compiled.add(line));
        Some(compiled)
    }

    fn has(&self, name: &str) -> bool {
        let words = self.0.get(last_name(name));
        words.is_some_and(|words| words.iter().any(|word| is_file(word, name)))
    }
}

/// What some kernels were made of, so that changes can be told that make no other kernel of either.
pub struct MadeOf {
    kernels: Vec<Compiled>,
    /// Those of their files, with a slash around each.
    directories: BTreeSet<String>,
    /// All that the source of each has; none where that is not known.
    sources: Vec<Names>,
}

/// The files of a source and their directories, with those above.
struct Names {
    files: BTreeSet<String>,
    directories: BTreeSet<String>,
}

impl Names {
    fn of(files: BTreeSet<String>) -> Names {
        let above = |name: &String| {
            let ends = name.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
            ends.into_iter().map(|at| name[..at].to_owned()).collect::<Vec<_>>()
        };
        let directories = files.iter().flat_map(above).collect();
        Names { files, directories }
    }
}

impl MadeOf {
    pub(super) fn of(kernels: Vec<Compiled>) -> MadeOf {
        let words = kernels.iter().flat_map(|kernel| kernel.0.values().flatten());
        let directory = |word: &String| Some(format!("/{}/", word.rsplit_once('/')?.0));
        let directories = words.filter_map(directory).collect();
        MadeOf { kernels, directories, sources: Vec::new() }
    }

    /// The same with the names of all files that the sources of these kernels have. What came after the one and went before the other is in
    /// no source and in no kernel, and may have been in those between.
    #[must_use]
    pub fn in_sources(self, sources: impl IntoIterator<Item = BTreeSet<String>>) -> MadeOf {
        MadeOf { sources: sources.into_iter().map(Names::of).collect(), ..self }
    }

    /// Whether a change of these files may make another kernel of one of them.
    #[must_use]
    pub fn may_change_with(&self, files: &[String]) -> bool {
        let kernels: Vec<&Compiled> = self.kernels.iter().collect();
        let names = files.iter().map(String::as_str).filter(|name| !self.is_of_nothing(name));
        let mut names = names.peekable();
        let comes_or_goes = files.iter().any(|name| self.comes_or_goes(name));
        comes_or_goes || (names.peek().is_some() && left_out(names, &kernels).is_none())
    }

    /// Whether a file says how things are made (a Makefile, a Kconfig) in a directory of which nothing was.
    fn is_of_nothing(&self, name: &str) -> bool {
        let is_known = !is_code(name) && !name.starts_with(TOOLS) && !name.starts_with(GENERATED);
        is_known && self.is_below_nothing(name)
    }

    /// Whether a file of code is not in each of the sources: others may have been made of it. Where the directory is in each, and nothing was
    /// made of it, nothing was meanwhile either.
    fn comes_or_goes(&self, name: &str) -> bool {
        let is_missing = self.sources.iter().any(|source| !source.files.contains(name));
        is_missing && is_code(name) && !is_apart(name) && !self.is_below_nothing(name)
    }

    /// Whether a file is in a directory that all the sources have and no kernel was made of.
    fn is_below_nothing(&self, name: &str) -> bool {
        let Some((directory, _)) = name.rsplit_once('/') else { return false };
        let below = format!("/{directory}/");
        let is_everywhere = self.sources.iter().all(|source| source.directories.contains(directory));
        let is_made = || self.directories.iter().any(|made| made.contains(&below));
        !self.directories.is_empty() && is_everywhere && !is_made()
    }
}

/// Keeps with a kernel what it was made of, once something of its patches was: of a series, one patch is enough.
///
/// # Errors
/// [`BuildError::LeftOut`]; the objects cannot be read.
pub(super) fn keep(patches: &[&Patch], directories: &[PathBuf], into: &Path) -> Result<(), BuildError> {
    let compiled = Compiled::of(directories)?;
    let changed = patches.iter().flat_map(|patch| patch.touched.iter().map(String::as_str));
    if let (Some(file), Some(patch)) = (left_out(changed, &[&compiled]), patches.first()) {
        return Err(BuildError::LeftOut { patch: patch.path.clone(), file: file.to_owned() });
    }
    compiled.keep(into)
}

/// The first of these changed files, if none of the kernels depends on any. Where something changed that says how a kernel is made, or
/// where nothing is known of a kernel, that is not known.
pub(super) fn left_out<'n>(
    changed: impl IntoIterator<Item = &'n str>,
    kernels: &[&Compiled],
) -> Option<&'n str> {
    let (apart, others): (Vec<&str>, Vec<&str>) = changed.into_iter().partition(|name| is_apart(name));
    let is_known = others.iter().all(|name| is_code(name) && !name.starts_with(TOOLS));
    let is_made_of = |kernel: &&Compiled| kernel.0.is_empty() || others.iter().any(|name| kernel.has(name));
    if !is_known || kernels.iter().any(is_made_of) {
        return None;
    }
    others.first().or(apart.first()).copied()
}

/// The first of these changed files, if no kernel whatsoever depends on any.
pub(super) fn all_apart<'n>(changed: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let mut changed = changed.into_iter().peekable();
    let first = changed.peek().copied();
    changed.all(is_apart).then_some(first).flatten()
}

fn is_apart(name: &str) -> bool {
    APART.iter().any(|front| name.starts_with(front))
}

fn last_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn is_code(name: &str) -> bool {
    CODE.iter().any(|end| name.ends_with(end))
}

/// Whether a word of a command is this file of the source, however the source is named in front of it.
fn is_file(word: &str, name: &str) -> bool {
    word.strip_suffix(name).is_some_and(|front| front.is_empty() || front.ends_with('/'))
}

/// Reads each of the commands below a directory.
fn each_command(directory: &Path, read: &mut impl FnMut(&str)) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_command = kind.is_file()
            && entry.file_name().to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(".cmd"));
        if is_command {
            read(&String::from_utf8_lossy(&std::fs::read(entry.path())?));
        }
        if kind.is_dir() {
            each_command(&entry.path(), read)?;
        }
    }
    Ok(())
}

/// The options that a patch adds to the kernel's; those that it moves are there already.
pub(super) fn new_options(patch: &Patch) -> Vec<String> {
    let text = patch.text();
    let named = |sign: char| {
        let name = move |line: &'_ str| -> Option<String> {
            let line = line.strip_prefix(sign)?;
            let name = line.strip_prefix("config ").or_else(|| line.strip_prefix("menuconfig "))?.trim();
            (!name.is_empty()).then(|| name.to_owned())
        };
        text.lines().filter_map(name).collect::<Vec<String>>()
    };
    let taken_out = named('-');
    named('+').into_iter().filter(|name| !taken_out.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_what_nothing_was_made_of_is_found() {
        let place = tempfile::tempdir().unwrap();
        let objects = place.path().join("objects");
        std::fs::create_dir_all(objects.join("fs/xfs")).unwrap();
        let read = || Compiled::of(std::slice::from_ref(&objects)).unwrap();
        assert_eq!(left_out(["block/blk-wbt.c"], &[&read()]), None, "no kernel is built yet");
        let command = "savedcmd_fs/xfs/xfs_file.o := gcc -c -o fs/xfs/xfs_file.o /r/tree/fs/xfs/xfs_file.c\n\
                       deps_fs/xfs/xfs_file.o := \\\n  /r/tree/fs/xfs/xfs_inode.h \\\n  /r/tree/kernel/sched/rt.c \\\n";
        std::fs::write(objects.join("fs/xfs/.xfs_file.o.cmd"), command).unwrap();
        std::fs::write(objects.join("fs/xfs/file.txt"), "block/blk-wbt.c").unwrap();
        read().keep(place.path()).unwrap();
        let kernel = Compiled::kept(place.path()).unwrap();
        assert!(Compiled::kept(&objects).is_none());
        for compiled in ["fs/xfs/xfs_file.c", "fs/xfs/xfs_inode.h", "kernel/sched/rt.c"] {
            assert_eq!(left_out([compiled, "block/blk-wbt.c"], &[&kernel]), None, "{compiled}");
        }
        for unknown in ["fs/xfs/Kconfig", "block/Makefile", "tools/objtool/check.c"] {
            assert_eq!(left_out(["block/blk-wbt.c", unknown], &[&kernel]), None, "{unknown}");
        }
        for not in ["block/blk-wbt.c", "xfs/xfs_file.h", "fs/xfs/xfs_inode.c"] {
            assert_eq!(left_out(["MAINTAINERS", not], &[&kernel]), Some(not));
        }
        let apart = ["Documentation/x.h", "tools/testing/selftests/a.c"];
        assert_eq!(left_out(apart, &[&kernel]), Some("Documentation/x.h"));
        assert_eq!(
            (all_apart(apart), all_apart(["MAINTAINERS", "fs/a.c"]), all_apart([])),
            (Some(apart[0]), None, None)
        );
        let mut other = Compiled(BTreeMap::new());
        other.add("/r/tree/block/blk-wbt.c");
        assert_eq!(left_out(["block/blk-wbt.c"], &[&kernel, &other]), None, "one of both is made of it");
    }

    #[test]
    fn changes_that_make_no_other_kernel_are_told() {
        let compiled = |words: &[&str]| {
            let mut compiled = Compiled(BTreeMap::new());
            words.iter().for_each(|word| compiled.add(word));
            compiled
        };
        let ends = [compiled(&["/r/tree/fs/xfs/a.c", "block/bio.c"]), compiled(&["/r/tree/lib/new.c"])];
        let ends = MadeOf::of(ends.into());
        let may = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            ends.may_change_with(&files)
        };
        for changing in [
            "fs/xfs/a.c", "fs/Makefile", "fs/xfs/Kconfig", "lib/new.c", "block/Kconfig", "Makefile",
            "tools/x",
        ] {
            assert!(may(&["drivers/gpu/a.c", changing]), "{changing}");
        }
        for not in
            ["fs/xfs/b.c", "drivers/gpu/Makefile", "arch/arm/boot/a.dts", "MAINTAINERS", "fs/xfs2/Kconfig"]
        {
            assert!(!may(&["drivers/gpu/a.c", not]), "{not}");
        }
        assert!(!may(&[]));
        assert!(
            MadeOf::of(vec![compiled(&[])]).may_change_with(&["fs/Makefile".to_owned()]),
            "nothing is known"
        );
    }

    #[test]
    fn what_comes_and_goes_between_the_ends_may_have_made_another_kernel() {
        let compiled = |words: &[&str]| {
            let mut compiled = Compiled(BTreeMap::new());
            words.iter().for_each(|word| compiled.add(word));
            compiled
        };
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let good = [
            "fs/xfs/a.c", "fs/xfs/off.c", "drivers/gpu/drm/a.c", "drivers/old/Makefile", "Documentation/x/a",
        ];
        let bad =
            ["fs/xfs/a.c", "fs/xfs/off.c", "fs/xfs/moved.c", "drivers/gpu/drm/b.c", "drivers/gpu/drm/a.c"];
        let ends = [compiled(&["fs/xfs/a.c"]), compiled(&["fs/xfs/a.c", "fs/xfs/moved.c"])];
        let ends = MadeOf::of(ends.into()).in_sources([names(&good), names(&bad)]);
        let may = |file: &str| ends.may_change_with(&[file.to_owned()]);
        for changing in [
            // It was called so before it was moved, and is in neither end.
            "fs/xfs/new.c",
            "fs/xfs/new.h",
            "fs/new/new.c",
            "fs/new/Makefile",
            "drivers/old/Makefile",
            "arch/x86/entry/syscalls/syscall_64.tbl",
            "arch/x86/Kconfig.debug",
        ] {
            assert!(may(changing), "{changing}");
        }
        for not in [
            "fs/xfs/off.c", "drivers/gpu/drm/b.c", "drivers/gpu/drm/new.c", "drivers/gpu/drm/Makefile",
            "Documentation/new.h",
        ] {
            assert!(!may(not), "{not}");
        }
    }

    #[test]
    fn options_that_a_patch_brings_are_found() {
        let text = "--- a/fs/xfs/Kconfig\n+++ b/fs/xfs/Kconfig\n@@ -1,3 +1,5 @@\n config XFS_FS\n+config XFS_FOO\n+\tdefault y\n \ttristate\n-config XFS_RT\n+config XFS_RT\n";
        let patch = Patch::of(Path::new("a.patch"), text.as_bytes().to_vec()).unwrap();
        assert_eq!(new_options(&patch), ["XFS_FOO"]);
    }
}
