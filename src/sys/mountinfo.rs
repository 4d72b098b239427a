//! Mounts, from `/proc/self/mountinfo` (proc(5)).
//!
//! Enters: the text of that file. Leaves: the mounts in it, or the one that holds a path.

use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number for it.
    pub id: u64,
    /// The device it shows, as `major:minor`.
    pub device: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of the mount and of the filesystem, each once, sorted.
    pub options: String,
    /// Type, e.g. `ext4`.
    pub kind: String,
    /// Source, e.g. `/dev/sda1`.
    pub source: String,
}

/// The table of this process's mounts. Names in it need not be UTF-8, and one such name hides no other mount.
#[must_use]
pub fn table() -> String {
    let bytes = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All mounts in the table, in the order they were made.
#[must_use]
pub fn mounts(table: &str) -> Vec<Mount> {
    table.lines().filter_map(parse).collect()
}

/// The mount that holds an absolute path: the longest mount point that contains it, the last of several.
#[must_use]
pub fn mount_of(table: &str, path: &Path) -> Option<Mount> {
    let mut best: Option<Mount> = None;
    for mount in mounts(table) {
        let deeper = best.as_ref().is_none_or(|b| mount.point.as_os_str().len() >= b.point.as_os_str().len());
        if path.starts_with(&mount.point) && deeper {
            best = Some(mount);
        }
    }
    best
}

fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let id = left.next()?.parse().ok()?;
    let device = left.nth(1)?.to_owned();
    let mut left = left.skip(1);
    let (point, own) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (kind, source) = (right.next()?.to_owned(), unescape(right.next()?));
    let mut options: Vec<&str> = own.split(',').chain(right.next().unwrap_or("").split(',')).collect();
    options.retain(|option| !option.is_empty());
    options.sort_unstable();
    options.dedup();
    let point = PathBuf::from(unescape(point));
    Some(Mount { id, device, point, options: options.join(","), kind, source })
}

/// A name with `\040` and other octal escapes for blanks, as it is.
pub fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_last_mount_counts() {
        let table = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard\n\
                     23 22 8:2 / /mnt/my\\040disk rw,noatime - xfs /dev/sdb rw,noquota\n\
                     24 22 8:3 / /mnt/my\\040disk rw - btrfs /dev/sdc rw\n\
                     25 22 8:4 / /mnt/m rw - vfat /dev/sdd rw\n";
        let at = |path: &str| mount_of(table, Path::new(path)).unwrap();
        assert_eq!(at("/mnt/my disk/file").kind, "btrfs");
        assert_eq!(at("/mnt/my").source, "/dev/sda1");
        assert_eq!(at("/x").options, "discard,relatime,rw");
        assert_eq!(at("/x").device, "8:1");
        assert_eq!((at("/mnt/my disk").id, at("/mnt/my disk").device.as_str()), (24, "8:3"));
    }
}
