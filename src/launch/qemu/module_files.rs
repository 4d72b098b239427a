//! Which file of a kernel each of its modules is, where several have its name.
//!
//! Enters: the directory of installed modules, or the tree in which a kernel was built. Leaves: a file by the name of each module. A
//! tree has what its last build has listed (`modules.order`), and no copy for a package nor what an earlier build has left; where that list
//! is missing or cut, those of the modules' own directories count. Of installed ones that counts which depmod(8) has chosen, or would choose.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sys::regular_file;

/// Most bytes of a list of modules.
pub(super) const MOST_LIST: u64 = 16 << 20;
/// Ends of the names of modules.
const ENDS: [&str; 4] = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"];
/// Where depmod(8) looks first, as it is set up where nobody has set it up.
const SEARCHED: [&str; 2] = ["updates", "kernel"];

/// `nd_pmem` of `kernel/drivers/nvdimm/nd-pmem.ko.xz`.
pub(super) fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or_default();
    plain(file.split_once(".ko").map_or(file, |(name, _)| name))
}

/// `-` and `_` are the same in names of modules.
pub(super) fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Modules by their names, of the tree that a kernel was built in.
pub(super) fn built(tree: &Path) -> BTreeMap<String, PathBuf> {
    listed_in(tree, Path::new(""))
}

/// A module that the list of a whole tree lacks, and whether the list of its own directory has it. kbuild leaves one in each.
pub(super) struct Unlisted {
    pub(super) file: PathBuf,
    pub(super) is_known: bool,
}

/// All modules in a tree by their names, whatever its list says; of several with one name that which a list has.
pub(super) fn unlisted(tree: &Path) -> BTreeMap<String, Unlisted> {
    let mut lists: BTreeMap<PathBuf, BTreeMap<String, PathBuf>> = BTreeMap::new();
    let mut found: BTreeMap<String, Unlisted> = BTreeMap::new();
    for below in below(tree) {
        let place = below.parent().unwrap_or(Path::new("")).to_owned();
        let (name, file) = (name_of(&below.to_string_lossy()), tree.join(&below));
        let list = lists.entry(place).or_insert_with_key(|place| listed_in(tree, place));
        let is_known = list.get(&name) == Some(&file);
        if is_known || !found.contains_key(&name) {
            found.insert(name, Unlisted { file, is_known });
        }
    }
    found
}

/// Whether there is any module in a tree.
pub(super) fn has_some(tree: &Path) -> bool {
    !below(tree).is_empty()
}

/// Modules by their names, of the list in this directory below a tree.
fn listed_in(tree: &Path, place: &Path) -> BTreeMap<String, PathBuf> {
    let order = tree.join(place).join("modules.order");
    let order = regular_file::read_text(&order, MOST_LIST).unwrap_or_default();
    let file = |line: &str| {
        // `fs/xfs/xfs.o`, `fs/xfs/xfs.ko`, and before Linux 5.3 `kernel/fs/xfs/xfs.ko`.
        let stem = line.trim().strip_suffix(".o").or_else(|| line.trim().strip_suffix(".ko"))?;
        let stems = [Some(stem), stem.strip_prefix("kernel/")];
        let mut files = stems.into_iter().flatten().map(|stem| tree.join(format!("{stem}.ko")));
        files.find(|file| file.is_file())
    };
    order.lines().filter_map(file).map(|file| (name_of(&file.to_string_lossy()), file)).collect()
}

/// Modules by their names, of a directory like `/lib/modules/RELEASE`.
pub(super) fn installed(root: &Path) -> BTreeMap<String, PathBuf> {
    let text = regular_file::read_text(&root.join("modules.dep"), MOST_LIST).unwrap_or_default();
    // Without what it was compressed with: one that was built anew in its place is not.
    let listed: BTreeMap<String, &str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, _)| (name_of(path), uncompressed(path)))
        .collect();
    let mut found: BTreeMap<String, (usize, PathBuf)> = BTreeMap::new();
    for below in below(root) {
        let shown = below.to_string_lossy();
        let name = name_of(&shown);
        let first = below.components().next().map(|part| part.as_os_str().to_owned());
        let searched = SEARCHED.iter().position(|place| first.as_ref().is_some_and(|first| first == place));
        let rank = match listed.get(&name) {
            Some(path) if *path == uncompressed(&shown) => 0,
            _ => 1 + searched.unwrap_or(SEARCHED.len()),
        };
        let better = (rank, below);
        match found.get(&name) {
            Some(known) if *known <= better => {}
            _ => drop(found.insert(name, better)),
        }
    }
    found.into_iter().map(|(name, (_, below))| (name, root.join(below))).collect()
}

/// A path without the end of a compressed file.
fn uncompressed(path: &str) -> &str {
    path.split_once(".ko").map_or(path, |(stem, _)| stem)
}

/// All modules below a directory, from there.
fn below(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(root.join(&directory)).into_iter().flatten().flatten() {
            let below = directory.join(entry.file_name());
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(below),
                Ok(kind) if kind.is_file() && ENDS.iter().any(|end| name.ends_with(end)) => found.push(below),
                // `build` and `source` are links out of the tree.
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn of_a_tree_the_modules_count_that_its_build_has_listed() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        for name in [
            "fs/xfs/xfs.ko",
            "fs/ext4/ext4.ko",
            "fs/nls/nls-utf8.ko",
            "kernel/trace/ring.ko",
            // A copy for a package, one that was installed here, and one of an option that is off by now.
            "debian/linux-image-6.12/lib/modules/6.12/kernel/fs/xfs/xfs.ko",
            "zzz/xfs.ko",
            "aaa/lib/modules/6.12/kernel/fs/xfs/xfs.ko",
            "fs/f2fs/f2fs.ko",
        ] {
            put(root, name, name);
        }
        let names = |order: &str| {
            put(root, "modules.order", order);
            let files = built(root).into_iter();
            let below = |path: PathBuf| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.map(|(name, path)| format!("{name} {}", below(path))).collect::<Vec<_>>()
        };
        let wanted = [
            "ext4 fs/ext4/ext4.ko", "nls_utf8 fs/nls/nls-utf8.ko", "ring kernel/trace/ring.ko",
            "xfs fs/xfs/xfs.ko",
        ];
        for order in [
            "fs/xfs/xfs.o\nfs/ext4/ext4.o\nfs/nls/nls-utf8.o\nkernel/trace/ring.o\nfs/gone/gone.o\n",
            "fs/xfs/xfs.ko\nfs/ext4/ext4.ko\nfs/nls/nls-utf8.ko\nkernel/trace/ring.ko\n",
            "kernel/fs/xfs/xfs.ko\nkernel/fs/ext4/ext4.ko\nkernel/fs/nls/nls-utf8.ko\nkernel/kernel/trace/ring.ko\n",
        ] {
            assert_eq!(names(order), wanted, "{order}");
        }
    }

    #[test]
    fn where_the_trees_list_is_missing_those_of_the_directories_count() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        assert!(!has_some(root));
        for name in ["fs/xfs/xfs.ko", "fs/ext4/ext4.ko", "debian/x/lib/modules/6.12/kernel/fs/xfs/xfs.ko"] {
            put(root, name, name);
        }
        put(root, "fs/xfs/modules.order", "fs/xfs/xfs.o\n");
        let found = unlisted(root);
        assert!(has_some(root) && built(root).is_empty());
        assert!(found["xfs"].is_known && found["xfs"].file == root.join("fs/xfs/xfs.ko"));
        assert!(!found["ext4"].is_known && found["ext4"].file == root.join("fs/ext4/ext4.ko"));
    }

    #[test]
    fn of_installed_modules_those_count_that_depmod_takes() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for name in [
            "kernel/fs/xfs/xfs.ko.xz",
            "updates/dkms/xfs.ko",
            "weak-updates/xfs.ko",
            "extra/brd.ko.zst",
            "kernel/drivers/block/brd.ko",
            "kernel/drivers/block/loop.ko.debug",
        ] {
            put(root, name, name);
        }
        let of = |name: &str| {
            let found = installed(root).remove(name);
            found.map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned())
        };
        assert_eq!(of("xfs").as_deref(), Some("updates/dkms/xfs.ko"));
        assert_eq!(of("brd").as_deref(), Some("kernel/drivers/block/brd.ko"));
        assert_eq!(of("loop"), None);
        put(root, "modules.dep", "kernel/fs/xfs/xfs.ko.xz: kernel/lib/a.ko.xz\nextra/brd.ko.zst:\n");
        assert_eq!(of("xfs").as_deref(), Some("kernel/fs/xfs/xfs.ko.xz"));
        assert_eq!(of("brd").as_deref(), Some("extra/brd.ko.zst"));
        // assay builds a module in its place, which it leaves as it is.
        std::fs::remove_file(root.join("kernel/fs/xfs/xfs.ko.xz")).unwrap();
        put(root, "kernel/fs/xfs/xfs.ko", "built");
        assert_eq!(of("xfs").as_deref(), Some("kernel/fs/xfs/xfs.ko"));
    }
}
