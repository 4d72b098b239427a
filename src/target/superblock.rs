//! What mkfs has made, by the superblock: how the filesystem is laid out, and whether two are made alike.
//!
//! Enters: a device on which mkfs has just made a filesystem. Leaves: the facts `fs.geometry` and `fs.superblock`. Nothing is written.
//! Sources: fs/xfs/libxfs/xfs_format.h (`struct xfs_dsb`, big endian) and fs/ext4/ext4.h (`struct ext4_super_block`, little endian).

use std::fs::File;
use std::hash::Hasher;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use twox_hash::XxHash64;

use crate::catalog::Filesystem;
use crate::sys::cache::digits;

/// Bits of `sb_features_ro_compat` and of `sb_features_incompat`, as mkfs.xfs prints them.
const XFS_RO_COMPAT: [(u32, &str); 4] = [(1, "finobt"), (2, "rmapbt"), (4, "reflink"), (8, "inobtcount")];
const XFS_INCOMPAT: [(u32, &str); 4] = [(1, "ftype"), (2, "sparse"), (8, "bigtime"), (32, "nrext64")];
/// What is another one in each filesystem: identities, checksums, times.
const XFS_OWN: [Range<usize>; 4] = [32..48, 224..228, 240..248, 248..264];
const EXT4_OWN: [Range<usize>; 9] = [
    0x2c..0x34,
    0x40..0x44,
    0x68..0x78,
    0xd0..0xe0,
    0xe4..0xe8,
    0xec..0xfc,
    0x108..0x10c,
    0x178..0x180,
    0x270..0x27a,
];
/// The checksum of ext4's superblock.
const EXT4_CHECKSUM: Range<usize> = 0x3fc..0x400;

/// The facts; none of a filesystem whose superblock is not read here.
pub(super) fn facts(fs: Filesystem, device: &Path) -> Vec<(String, String)> {
    let Some((geometry, alike)) = read(fs, device) else { return Vec::new() };
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(&alike);
    vec![("fs.geometry".to_owned(), geometry), ("fs.superblock".to_owned(), digits(&hasher))]
}

/// The layout in words, and the superblock without what is another one in each filesystem.
fn read(fs: Filesystem, device: &Path) -> Option<(String, Vec<u8>)> {
    let (at, bytes) = match fs {
        Filesystem::Xfs => (0, 512),
        Filesystem::Ext4 => (1024, 1024),
        _ => return None,
    };
    let mut superblock = vec![0; bytes];
    File::open(device).ok()?.read_exact_at(&mut superblock, at).ok()?;
    let geometry = match fs {
        Filesystem::Xfs => xfs(&superblock)?,
        _ => ext4(&superblock)?,
    };
    let own: Vec<Range<usize>> = match fs {
        Filesystem::Xfs => XFS_OWN.to_vec(),
        _ => EXT4_OWN.into_iter().chain([EXT4_CHECKSUM]).collect(),
    };
    own.into_iter().for_each(|own| superblock[own].fill(0));
    Some((geometry, superblock))
}

fn xfs(head: &[u8]) -> Option<String> {
    let u32_at = |at: usize| Some(u32::from_be_bytes(*head.get(at..)?.first_chunk()?));
    let u16_at = |at: usize| Some(u16::from_be_bytes(*head.get(at..)?.first_chunk()?));
    if !head.starts_with(b"XFSB") {
        return None;
    }
    let features = |bits: u32, known: &[(u32, &str)]| -> String {
        known.iter().map(|(bit, name)| format!(" {name}={}", u32::from(bits & bit != 0))).collect()
    };
    Some(format!(
        "bsize={} isize={} agcount={} agsize={} blocks log={} blocks{}{}",
        u32_at(4)?,
        u16_at(104)?,
        u32_at(88)?,
        u32_at(84)?,
        u32_at(96)?,
        features(u32_at(212)?, &XFS_RO_COMPAT),
        features(u32_at(216)?, &XFS_INCOMPAT),
    ))
}

fn ext4(block: &[u8]) -> Option<String> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(*block.get(at..)?.first_chunk()?));
    let u16_at = |at: usize| Some(u16::from_le_bytes(*block.get(at..)?.first_chunk()?));
    if u16_at(0x38)? != 0xef53 {
        return None;
    }
    // The last of the copied block map is the size of the journal.
    let journal_mib = u32_at(0x10c + 16 * 4)? >> 20;
    Some(format!(
        "bsize={} isize={} inodes={} journal={journal_mib} MiB features={:x},{:x},{:x}",
        1024_u64.checked_shl(u32_at(0x18)?)?,
        u16_at(0x58)?,
        u32_at(0)?,
        u32_at(0x5c)?,
        u32_at(0x60)?,
        u32_at(0x64)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::mkfs;
    use super::*;

    /// What is said of a filesystem made so; `None`: there is no such mkfs here.
    fn made(fs: Filesystem, mib: u64, arguments: &[&str]) -> Option<Vec<(String, String)>> {
        if mkfs::obstacle(fs).is_some() {
            assert!(std::env::var_os("CI").is_none(), "no mkfs of {}, and CI skips nothing", fs.name());
            eprintln!("SKIPPED: no mkfs of {}", fs.name());
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        mkfs::make(fs, &arguments, &image).unwrap();
        Some(facts(fs, &image))
    }

    #[test]
    fn filesystems_that_are_made_alike_are_known_by_their_superblocks() {
        for (fs, mib, other, words) in [
            (Filesystem::Xfs, 320, ["-m", "reflink=0"], ["reflink=1", "reflink=0"]),
            (Filesystem::Ext4, 64, ["-I", "512"], ["isize=256", "isize=512"]),
        ] {
            let same: &[&str] = if fs == Filesystem::Xfs { &["-b", "size=4096"] } else { &["-b", "1024"] };
            let all = [made(fs, mib, &[]), made(fs, mib, same), made(fs, mib, &other)];
            let [Some(first), Some(alike), Some(other)] = all else { return };
            assert_eq!(first, alike, "{}", fs.name());
            assert_ne!(first[1], other[1], "{}", fs.name());
            assert!(first[0].1.contains(words[0]) && other[0].1.contains(words[1]), "{first:?} {other:?}");
        }
    }

    #[test]
    fn what_is_no_superblock_says_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        for fs in [Filesystem::Xfs, Filesystem::Ext4, Filesystem::Btrfs] {
            assert_eq!(facts(fs, file.path()), []);
        }
    }
}
