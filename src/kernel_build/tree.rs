//! Directories with a kernel in them: what belongs to the source and what an earlier build has left there.
//!
//! Enters: a directory. Leaves: its files, its digest, a copy made of hard links or reflinks in which no file that is changed later is
//! shared: whoever changes one puts a new file in its place.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::digests;
use super::error::BuildError;

/// Ends of names that builds leave.
const LEFT: [&str; 12] =
    [".o", ".ko", ".a", ".cmd", ".mod", ".mod.c", ".order", ".symvers", ".o.d", ".dwo", ".gcno", ".lzma"];
/// Files and directories that builds leave, below the top.
const LEFT_AT: [&str; 10] = [
    ".config", ".config.old", ".git", "vmlinux", "vmlinux-gdb.py", "System.map", "include/config",
    "include/generated", "arch/x86/include/generated", ".tmp_versions",
];

/// Whether a kernel's source lies in a directory.
pub(super) fn is_kernel(directory: &Path) -> bool {
    ["Makefile", "Kconfig", "init/main.c"].iter().all(|name| directory.join(name).is_file())
}

/// A file or link of a source.
pub(super) struct Found {
    /// Below the top.
    pub(super) name: PathBuf,
    pub(super) is_link: bool,
}

/// All files and links of a source, without what builds leave; in the order of their names.
pub(super) fn files(root: &Path) -> Result<Vec<Found>, BuildError> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = open.pop() {
        let path = root.join(&directory);
        for entry in std::fs::read_dir(&path).map_err(BuildError::io("cannot read", &path))? {
            let entry = entry.map_err(BuildError::io("cannot read", &path))?;
            let kind = entry.file_type().map_err(BuildError::io("cannot read", entry.path()))?;
            let name = directory.join(entry.file_name());
            if is_left(&name) {
                continue;
            }
            match () {
                () if kind.is_dir() => open.push(name),
                () if kind.is_file() || kind.is_symlink() => {
                    found.push(Found { name, is_link: kind.is_symlink() });
                }
                () => {}
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Refuses a link that leads out of the source: what lies there is no part of its digest, and is not copied with it.
fn stays(root: &Path, name: &Path, target: &Path) -> Result<(), BuildError> {
    let above = name.components().count().saturating_sub(1);
    // What is behind a name may be a link itself: from there on, nobody knows where up leads.
    let leads = target.components().try_fold((above, false), |(depth, named), part| match part {
        Component::Normal(_) => Some((depth, true)),
        Component::CurDir => Some((depth, named)),
        Component::ParentDir if !named => Some((depth.checked_sub(1)?, false)),
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let path = root.join(name);
    leads.map(drop).ok_or(BuildError::Elsewhere { path, found: "leads out of the source" })
}

/// Refuses a name below a directory that is a link: it is a file of another place.
pub(super) fn lies_inside(root: &Path, name: &str) -> Result<(), BuildError> {
    let above = Path::new(name).ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
    let is_link = |part: &&Path| root.join(part).symlink_metadata().is_ok_and(|found| found.is_symlink());
    match above.into_iter().any(|part| is_link(&part)) {
        true => {
            Err(BuildError::Elsewhere { path: root.join(name), found: "lies behind a link to a directory" })
        }
        false => Ok(()),
    }
}

fn is_left(name: &Path) -> bool {
    let text = name.to_string_lossy();
    LEFT_AT.contains(&text.as_ref())
        || LEFT.iter().any(|end| text.ends_with(end) && !text.starts_with("Documentation"))
}

/// Of names, contents and rights of all files.
///
/// # Errors
/// [`BuildError::Elsewhere`]: a link leads out of it.
pub(super) fn digest(root: &Path) -> Result<String, BuildError> {
    let mut pieces = Vec::new();
    for Found { name, is_link } in files(root)? {
        let path = root.join(&name);
        let content = if is_link {
            let to = std::fs::read_link(&path).map_err(BuildError::io("cannot read", &path))?;
            stays(root, &name, &to)?;
            format!("-> {}", to.display())
        } else {
            let rights = if is_executable(&path) { " x" } else { "" };
            format!("{}{rights}", digests::of_file(&path)?)
        };
        pieces.push(format!("{} {content}", name.display()));
    }
    Ok(digests::of_texts(pieces.iter().map(String::as_str)))
}

/// Copies a source into an empty directory. `share`: as hard links where that is possible, which only files of the cache may be.
pub(super) fn copy(from: &Path, to: &Path, share: bool) -> Result<(), BuildError> {
    for Found { name, is_link } in files(from)? {
        let (source, copy) = (from.join(&name), to.join(&name));
        if let Some(directory) = copy.parent() {
            std::fs::create_dir_all(directory).map_err(BuildError::io("cannot make", directory))?;
        }
        if is_link {
            let to = std::fs::read_link(&source).map_err(BuildError::io("cannot read", &source))?;
            std::os::unix::fs::symlink(to, &copy).map_err(BuildError::io("cannot make", &copy))?;
        } else if !share || std::fs::hard_link(&source, &copy).is_err() {
            copied(&source, &copy)?;
        }
    }
    Ok(())
}

/// Makes a copy follow its original: what differs is put anew, with the time of now, and what the original is without is removed.
pub(super) fn follow(from: &Path, to: &Path) -> Result<(), BuildError> {
    let wanted = files(from)?;
    let names: std::collections::BTreeSet<&PathBuf> = wanted.iter().map(|found| &found.name).collect();
    for surplus in files(to)?.into_iter().filter(|found| !names.contains(&found.name)) {
        let path = to.join(&surplus.name);
        std::fs::remove_file(&path).map_err(BuildError::io("cannot remove", &path))?;
    }
    for Found { name, is_link } in &wanted {
        let (source, copy) = (from.join(name), to.join(name));
        if *is_link {
            let target = std::fs::read_link(&source).map_err(BuildError::io("cannot read", &source))?;
            if std::fs::read_link(&copy).ok().as_ref() != Some(&target) {
                put(to, &name.to_string_lossy(), None)?;
                let directory = copy.parent().unwrap_or(to);
                std::fs::create_dir_all(directory).map_err(BuildError::io("cannot make", directory))?;
                std::os::unix::fs::symlink(target, &copy).map_err(BuildError::io("cannot make", &copy))?;
            }
            continue;
        }
        let bytes = std::fs::read(&source).map_err(BuildError::io("cannot read", &source))?;
        let executable = is_executable(&source);
        if !same(&copy, &bytes, executable) {
            put(to, &name.to_string_lossy(), Some((&bytes, executable)))?;
        }
    }
    Ok(())
}

/// A digest of the modules below a directory as they lie there, and of the contents of all else, which depmod writes anew.
///
/// # Errors
/// Something cannot be read.
pub(super) fn listing(root: &Path) -> Result<String, BuildError> {
    listed(root, &|path, found| {
        let is_module = path.file_name().is_some_and(|name| name.to_string_lossy().contains(".ko"));
        if is_module { Ok(stamp(found)) } else { digests::of_file(path) }
    })
}

/// A digest of all files below a directory as they lie there.
///
/// # Errors
/// Something cannot be read.
pub(super) fn stamps(root: &Path) -> Result<String, BuildError> {
    listed(root, &|_, found| Ok(stamp(found)))
}

/// What another file of the same name and size differs in: it was written at another time, or put there in the place of the one before.
fn stamp(found: &Metadata) -> String {
    format!("{} {}.{:09} {}", found.len(), found.mtime(), found.mtime_nsec(), found.ino())
}

fn listed(
    root: &Path,
    of: &dyn Fn(&Path, &Metadata) -> Result<String, BuildError>,
) -> Result<String, BuildError> {
    let (mut pieces, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = open.pop() {
        let path = root.join(&directory);
        for entry in std::fs::read_dir(&path).map_err(BuildError::io("cannot read", &path))? {
            let entry = entry.map_err(BuildError::io("cannot read", &path))?;
            let found = entry.metadata().map_err(BuildError::io("cannot read", entry.path()))?;
            let name = directory.join(entry.file_name());
            if found.is_dir() {
                open.push(name);
            } else if found.is_file() {
                pieces.push(format!("{} {}", name.display(), of(&entry.path(), &found)?));
            }
        }
    }
    pieces.sort();
    Ok(digests::of_texts(pieces.iter().map(String::as_str)))
}

/// One file of the cache in another place of it: a hard link, else a copy.
pub(super) fn share(from: &Path, to: &Path) -> Result<(), BuildError> {
    if std::fs::hard_link(from, to).is_ok() { Ok(()) } else { copied(from, to) }
}

/// All files below a directory, shared; links, which lead out of a kernel's modules, are left out.
pub(super) fn share_all(from: &Path, to: &Path) -> Result<(), BuildError> {
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        let (here, there) = (from.join(&directory), to.join(&directory));
        std::fs::create_dir_all(&there).map_err(BuildError::io("cannot make", &there))?;
        for entry in std::fs::read_dir(&here).map_err(BuildError::io("cannot read", &here))?.flatten() {
            let name = directory.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(name),
                Ok(kind) if kind.is_file() => share(&entry.path(), &to.join(&name))?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// A file with the time of the original, so that make sees no change. The kernel shares blocks where the filesystem can
/// (copy_file_range).
fn copied(source: &Path, copy: &Path) -> Result<(), BuildError> {
    std::fs::copy(source, copy).map_err(BuildError::io("cannot copy", source))?;
    let times = source.metadata().and_then(|found| found.modified());
    let set = times.and_then(|time| std::fs::File::options().write(true).open(copy)?.set_modified(time));
    // Rights without writing keep the time as it is now: make only does more.
    let _ = set;
    Ok(())
}

/// Puts new content in the place of a file that may be shared: the file is a new one, with the time of now.
pub(super) fn put(root: &Path, name: &str, content: Option<(&[u8], bool)>) -> Result<(), BuildError> {
    use std::os::unix::fs::PermissionsExt;
    lies_inside(root, name)?;
    let path = root.join(name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(BuildError::io("cannot replace", &path)(error));
        }
        _ => {}
    }
    let Some((bytes, executable)) = content else { return Ok(()) };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(BuildError::io("cannot make", directory))?;
    }
    std::fs::write(&path, bytes).map_err(BuildError::io("cannot write", &path))?;
    let mode = std::fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 });
    std::fs::set_permissions(&path, mode).map_err(BuildError::io("cannot write", &path))
}

/// Removes all files below a directory whose names end like this.
pub(super) fn remove_all(root: &Path, extension: &str) -> Result<(), BuildError> {
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in
            std::fs::read_dir(&directory).map_err(BuildError::io("cannot read", &directory))?.flatten()
        {
            let (path, kind) = (entry.path(), entry.file_type());
            match kind {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(_) if path.extension().is_some_and(|found| found == extension) => {
                    std::fs::remove_file(&path).map_err(BuildError::io("cannot remove", &path))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a file can be executed.
pub(super) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

/// Whether a file has these bytes and rights.
pub(super) fn same(path: &Path, bytes: &[u8], executable: bool) -> bool {
    let mut there = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(bytes.len() as u64 + 1).read_to_end(&mut there));
    read.is_ok() && there == bytes && is_executable(path) == executable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(root: &Path) {
        for (name, text) in
            [("Makefile", "VERSION = 6\n"), ("Kconfig", "x"), ("init/main.c", "main"), ("fs/a.c", "a")]
        {
            put(root, name, Some((text.as_bytes(), false))).unwrap();
        }
    }

    #[test]
    fn a_changed_file_of_a_copy_leaves_the_original_alone() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        kernel(from.path());
        copy(from.path(), to.path(), true).unwrap();
        let inode = |root: &Path| root.join("fs/a.c").metadata().unwrap().ino();
        assert_eq!(inode(from.path()), inode(to.path()), "shared");
        put(to.path(), "fs/a.c", Some((b"changed", false))).unwrap();
        assert_eq!(std::fs::read_to_string(from.path().join("fs/a.c")).unwrap(), "a");
        assert_ne!(inode(from.path()), inode(to.path()));
        put(to.path(), "fs/a.c", None).unwrap();
        assert!(from.path().join("fs/a.c").is_file() && !to.path().join("fs/a.c").exists());
    }

    #[test]
    fn a_copy_that_is_not_shared_keeps_times() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        kernel(from.path());
        let file = std::fs::File::options().write(true).open(from.path().join("fs/a.c")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
        copy(from.path(), to.path(), false).unwrap();
        let times = [from.path(), to.path()].map(|root| root.join("fs/a.c").metadata().unwrap());
        assert_eq!(times[0].modified().unwrap(), times[1].modified().unwrap());
        assert_ne!(times[0].ino(), times[1].ino());
    }

    #[test]
    fn a_copy_follows_its_original_and_touches_nothing_else() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        kernel(from.path());
        std::os::unix::fs::symlink("a.c", from.path().join("fs/link.c")).unwrap();
        follow(from.path(), to.path()).unwrap();
        let inode = |name: &str| to.path().join(name).metadata().unwrap().ino();
        let before = inode("init/main.c");
        put(from.path(), "fs/a.c", Some((b"new", false))).unwrap();
        put(from.path(), "Kconfig", None).unwrap();
        put(to.path(), "fs/mine.c", Some((b"mine", false))).unwrap();
        follow(from.path(), to.path()).unwrap();
        assert_eq!(std::fs::read_to_string(to.path().join("fs/link.c")).unwrap(), "new");
        assert!(!to.path().join("Kconfig").exists() && !to.path().join("fs/mine.c").exists());
        assert_eq!(inode("init/main.c"), before, "not written again");
    }

    #[test]
    fn a_listing_sees_another_file_of_the_same_name() {
        let root = tempfile::tempdir().unwrap();
        kernel(root.path());
        let first = listing(root.path()).unwrap();
        assert_eq!(listing(root.path()).unwrap(), first);
        put(root.path(), "fs/a.c", Some((b"longer", false))).unwrap();
        assert_ne!(listing(root.path()).unwrap(), first);
        // Of the same size, and of the same time.
        put(root.path(), "fs/a.ko", Some((b"one", false))).unwrap();
        let path = root.path().join("fs/a.ko");
        let second = listing(root.path()).unwrap();
        let then = path.metadata().unwrap().modified().unwrap();
        std::fs::write(root.path().join("new"), "two").unwrap();
        std::fs::File::options()
            .write(true)
            .open(root.path().join("new"))
            .unwrap()
            .set_modified(then)
            .unwrap();
        std::fs::rename(root.path().join("new"), &path).unwrap();
        let third = listing(root.path()).unwrap();
        assert_ne!(third, second);
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
        assert_ne!(listing(root.path()).unwrap(), third);
        // depmod writes the same again.
        put(root.path(), "modules.dep", Some((b"fs/a.ko:", false))).unwrap();
        let fourth = listing(root.path()).unwrap();
        put(root.path(), "modules.dep", Some((b"fs/a.ko:", false))).unwrap();
        assert_eq!(listing(root.path()).unwrap(), fourth);
    }

    #[test]
    fn nothing_is_written_or_taken_behind_a_link() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        kernel(root.path());
        std::fs::write(elsewhere.path().join("x.c"), "the user's").unwrap();
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, root.path().join(name)).unwrap();
        };
        link(Path::new("../init"), "fs/inside");
        assert!(files(root.path()).is_ok() && digest(root.path()).is_ok());
        let error = put(root.path(), "fs/inside/main.c", Some((b"changed", false))).unwrap_err();
        assert!(error.to_string().ends_with("fs/inside/main.c lies behind a link to a directory"), "{error}");
        assert_eq!(std::fs::read_to_string(root.path().join("init/main.c")).unwrap(), "main");
        for (name, to) in [
            ("fs/absolute", elsewhere.path()),
            ("up", Path::new("../x")),
            ("fs/far", Path::new("../../x")),
            ("fs/odd", Path::new("inside/../..")),
        ] {
            link(to, name);
            let error = digest(root.path()).unwrap_err();
            assert!(error.to_string().ends_with(&format!("{name} leads out of the source")), "{error}");
            assert!(put(root.path(), &format!("{name}/x.c"), None).is_err());
            std::fs::remove_file(root.path().join(name)).unwrap();
        }
        assert_eq!(std::fs::read_to_string(elsewhere.path().join("x.c")).unwrap(), "the user's");
    }

    #[test]
    fn a_digest_sees_contents_and_not_what_builds_leave() {
        let root = tempfile::tempdir().unwrap();
        kernel(root.path());
        assert!(is_kernel(root.path()));
        let first = digest(root.path()).unwrap();
        for left in ["fs/a.o", ".config", "include/generated/x.h", "vmlinux", ".git/HEAD"] {
            put(root.path(), left, Some((b"left", false))).unwrap();
        }
        assert_eq!(digest(root.path()).unwrap(), first);
        put(root.path(), "fs/a.c", Some((b"b", false))).unwrap();
        assert_ne!(digest(root.path()).unwrap(), first);
    }
}
