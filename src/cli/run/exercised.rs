//! Whether the trials of a run exercise what patches of its kernels change.
//!
//! Enters: a plan, the kernels that are built for it and which of them each cell boots. Leaves: a refusal where modules are built that no trial loads; a warning where
//! a filesystem was patched that no target has.

use std::collections::BTreeSet;

use super::kernels::{failure, unready};
use crate::cli::Failure;
use crate::experiment::Filesystem;
use crate::kernel_build::Builds;
use crate::launch::{Request, loaded_modules};
use crate::plan::Plan;
use crate::run::Surroundings;

/// What helps where modules are built that no trial loads.
const UNLOADED_HINT: &str = "take a device or filesystem that loads what was changed (-t fs=f2fs), or name the module: -t modules=NAME";

/// Refuses modules that are built for kernels whose trials load none of them: nothing of the change would be measured.
///
/// # Errors
/// A [`Failure`] with exit code 2.
pub(super) fn are_loaded(
    plan: &Plan,
    surroundings: &Surroundings,
    (builds, cells): (&Builds, &[Option<usize>]),
) -> Result<(), Failure> {
    for kernel in cells.iter().flatten().collect::<BTreeSet<_>>() {
        let of_kernel = (0..cells.len()).filter(|cell| cells[*cell] == Some(*kernel));
        let Some(built) = builds.modules_to_build(*kernel).map_err(|error| failure(&error))? else {
            // A filesystem that no target has is known before its modules are.
            let targets = of_kernel.map(|cell| &plan.cells[cell].target);
            let named = targets.flat_map(|target| {
                let modules = target.guest.modules.iter().map(String::as_str);
                target.fs.map(Filesystem::name).into_iter().chain(modules)
            });
            match unused_filesystem(&builds.files_of_modules(*kernel), &named.collect()) {
                Some(name) => return Err(unloaded(name)),
                None => continue,
            }
        };
        let request = |cell| crate::run::request(plan, surroundings, cell, 0);
        let requests: Vec<Request> = of_kernel.map(request).collect();
        let loaded = loaded_modules(&requests).map_err(unready)?;
        if !built.iter().any(|name| loaded.contains(&name.replace('-', "_"))) {
            return Err(unloaded(&built.join(" or ")));
        }
    }
    Ok(())
}

fn unloaded(modules: &str) -> Failure {
    Failure::request(format!("no trial loads {modules}, which is all that would be built"))
        .hint(UNLOADED_HINT)
}

/// That patches of a whole kernel change filesystems alone that no target has, a sentence each.
pub(super) fn unused_filesystems(plan: &Plan, (builds, kernels): (&Builds, &[Option<usize>])) -> Vec<String> {
    let mut said = Vec::new();
    for kernel in kernels.iter().flatten().collect::<BTreeSet<_>>() {
        let of_kernel = plan.cells.iter().zip(kernels).filter(|(_, of)| of.as_ref() == Some(kernel));
        let used: BTreeSet<&str> = of_kernel.filter_map(|(cell, _)| Some(cell.target.fs?.name())).collect();
        if let Some(name) = unused_filesystem(&builds.patched_files(*kernel), &used) {
            said.push(format!(
                "a patch changes {name} alone, and no target of its kernel has {name}: trials may exercise nothing of it"
            ));
        }
    }
    said.dedup();
    said
}

/// The first of the filesystems that these files are of, if all of them are of such as are not used.
fn unused_filesystem(files: &BTreeSet<&str>, used: &BTreeSet<&str>) -> Option<&'static str> {
    let of = |file: &&str| {
        let directory = file.strip_prefix("fs/")?.split_once('/')?.0;
        Filesystem::named(directory).map(Filesystem::name).filter(|name| !used.contains(name))
    };
    files.iter().map(of).collect::<Option<Vec<_>>>()?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_of_a_filesystem_that_no_target_has_is_found() {
        let of = |files: &[&'static str], used: &[&'static str]| {
            unused_filesystem(&files.iter().copied().collect(), &used.iter().copied().collect())
        };
        assert_eq!(of(&["fs/ext4/file.c", "fs/ext4/ext4.h"], &["xfs"]), Some("ext4"));
        assert_eq!(of(&["fs/ext4/file.c"], &[]), Some("ext4"));
        for (files, used) in [
            (&["fs/ext4/file.c"][..], &["ext4"][..]),
            (&["fs/ext4/file.c", "fs/iomap/direct-io.c"], &["xfs"]),
            (&["fs/inode.c"], &["xfs"]),
            (&["fs/jbd2/journal.c"], &["xfs"]),
            (&[], &["xfs"]),
        ] {
            assert_eq!(of(files, used), None, "{files:?}");
        }
    }
}
