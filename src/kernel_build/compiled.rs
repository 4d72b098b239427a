//! Whether anything was compiled of what a patch changes, or of what two revisions differ in: a configuration may leave all of it out, and
//! then both are one kernel, which nothing else would show.
//!
//! Enters: a patch or names of files, and the directory of a kernel's objects, where kbuild keeps beside each object which files it was made
//! of (`.file.o.cmd`). Leaves: the first file, where nothing was made of any; options of the patch's own that are off.

use std::collections::BTreeSet;
use std::path::Path;

use super::error::BuildError;
use super::patch::Patch;

/// What is compiled by itself or in another file.
const CODE: [&str; 3] = [".c", ".S", ".h"];
/// What no kernel depends on; of all else that is no code, nothing is known.
const FOR_PEOPLE: [&str; 5] = ["Documentation/", "LICENSES/", "MAINTAINERS", "CREDITS", ".mailmap"];

/// The first file of code that a patch changes, if no object was made of any of them. Without objects nothing is known.
///
/// # Errors
/// The objects cannot be read.
pub(super) fn left_out<'p>(patch: &'p Patch, objects: &Path) -> Result<Option<&'p str>, BuildError> {
    let code: Vec<&str> = patch.touched.iter().map(String::as_str).filter(|name| is_code(name)).collect();
    let Some(first) = code.first().copied() else { return Ok(None) };
    Ok((made_of(&code, objects)? == Some(false)).then_some(first))
}

/// The first of the files in which two revisions differ, if neither kernel is made of any. Without objects nothing is known, nor where
/// something differs that says how a kernel is made, or where a file `is_in_both` not: objects of it may be gone.
///
/// # Errors
/// The objects cannot be read.
pub(super) fn all_left_out<'n>(
    differing: &'n BTreeSet<String>,
    objects: &Path,
    is_in_both: &dyn Fn(&str) -> Result<bool, BuildError>,
) -> Result<Option<&'n str>, BuildError> {
    let for_people = |name: &str| FOR_PEOPLE.iter().any(|front| name.starts_with(front));
    let (code, others): (Vec<&str>, Vec<&str>) =
        differing.iter().map(String::as_str).partition(|name| is_code(name) && !for_people(name));
    if !others.iter().all(|name| for_people(name)) || made_of(&code, objects)? != Some(false) {
        return Ok(None);
    }
    for name in &code {
        if !is_in_both(name)? {
            return Ok(None);
        }
    }
    Ok(code.first().or(others.first()).copied())
}

fn is_code(name: &str) -> bool {
    CODE.iter().any(|end| name.ends_with(end))
}

/// Whether an object was made of any of these files; `None`: there are no objects.
fn made_of(code: &[&str], objects: &Path) -> Result<Option<bool>, BuildError> {
    let mut seen = false;
    let mut made_of_one = |text: &str| {
        seen = true;
        text.split_ascii_whitespace().any(|word| code.iter().any(|name| is_file(word, name)))
    };
    let found = any_command(objects, &mut made_of_one).map_err(BuildError::io("cannot read", objects))?;
    Ok(seen.then_some(found))
}

/// Whether a word of a command is this file of the source, however the source is named in front of it.
fn is_file(word: &str, name: &str) -> bool {
    word.strip_suffix(name).is_some_and(|front| front.is_empty() || front.ends_with('/'))
}

/// Whether `fits` of any of the commands below a directory.
fn any_command(directory: &Path, fits: &mut impl FnMut(&str) -> bool) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_command = kind.is_file()
            && entry.file_name().to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(".cmd"));
        if is_command && fits(&String::from_utf8_lossy(&std::fs::read(entry.path())?)) {
            return Ok(true);
        }
        if kind.is_dir() && any_command(&entry.path(), fits)? {
            return Ok(true);
        }
    }
    Ok(false)
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

    fn patch(name: &str) -> Patch {
        let text = format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1,2 @@\n one\n+two\n");
        Patch::of(Path::new("a.patch"), text.into_bytes()).unwrap()
    }

    /// Puts the command of one object there.
    fn made(objects: &Path) {
        std::fs::create_dir_all(objects.join("fs/xfs")).unwrap();
        let command = "savedcmd_fs/xfs/xfs_file.o := gcc -c -o fs/xfs/xfs_file.o /r/tree/fs/xfs/xfs_file.c\n\
                       deps_fs/xfs/xfs_file.o := \\\n  /r/tree/fs/xfs/xfs_inode.h \\\n  /r/tree/kernel/sched/rt.c \\\n";
        std::fs::write(objects.join("fs/xfs/.xfs_file.o.cmd"), command).unwrap();
    }

    #[test]
    fn revisions_that_differ_in_nothing_compiled_are_one_kernel() {
        let place = tempfile::tempdir().unwrap();
        let objects = place.path();
        let found = |names: &[&str], missing: &str| {
            let names: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
            all_left_out(&names, objects, &|name| Ok(name != missing)).unwrap().map(str::to_owned)
        };
        assert_eq!(found(&["block/blk-wbt.c"], ""), None, "no kernel is built yet");
        made(objects);
        let wbt = Some("block/blk-wbt.c".to_owned());
        assert_eq!(found(&["block/blk-wbt.c"], ""), wbt);
        assert_eq!(found(&["MAINTAINERS", "block/blk-wbt.c"], ""), wbt);
        assert_eq!(found(&["Documentation/x.h"], "").as_deref(), Some("Documentation/x.h"));
        assert_eq!(found(&["block/blk-wbt.c", "fs/xfs/xfs_inode.h"], ""), None);
        assert_eq!(found(&["block/blk-wbt.c", "block/Makefile"], ""), None, "it may say how all is made");
        assert_eq!(found(&["block/blk-wbt.c"], "block/blk-wbt.c"), None, "its object may be gone");
    }

    #[test]
    fn a_change_of_what_nothing_was_made_of_is_found() {
        let place = tempfile::tempdir().unwrap();
        let objects = place.path();
        assert_eq!(left_out(&patch("block/blk-wbt.c"), objects).unwrap(), None, "no kernel is built yet");
        made(objects);
        std::fs::write(objects.join("fs/xfs/file.txt"), "block/blk-wbt.c").unwrap();
        for compiled in ["fs/xfs/xfs_file.c", "fs/xfs/xfs_inode.h", "kernel/sched/rt.c", "fs/xfs/Kconfig"] {
            assert_eq!(left_out(&patch(compiled), objects).unwrap(), None, "{compiled}");
        }
        for not in ["block/blk-wbt.c", "xfs/xfs_file.h", "fs/xfs/xfs_inode.c"] {
            assert_eq!(left_out(&patch(not), objects).unwrap(), Some(not));
        }
    }

    #[test]
    fn options_that_a_patch_brings_are_found() {
        let text = "--- a/fs/xfs/Kconfig\n+++ b/fs/xfs/Kconfig\n@@ -1,3 +1,5 @@\n config XFS_FS\n+config XFS_FOO\n+\tdefault y\n \ttristate\n-config XFS_RT\n+config XFS_RT\n";
        let patch = Patch::of(Path::new("a.patch"), text.as_bytes().to_vec()).unwrap();
        assert_eq!(new_options(&patch), ["XFS_FOO"]);
    }
}
