//! Where the journal of a filesystem lies on its device, by the superblock.
//!
//! Enters: the first page of a device. Leaves: a range of sectors, or nothing where the journal is on another device, in several pieces, or
//! is none. Sources: fs/xfs/libxfs/xfs_format.h (`struct xfs_dsb`, big endian) and fs/ext4/ext4.h (`struct ext4_super_block`, little
//! endian; its `s_jnl_blocks` is a copy of the journal inode's block map).

use crate::trace::JournalRange;

const SECTOR: u64 = 512;
/// Where ext4's superblock begins.
const EXT4_AT: usize = 1024;
const EXT4_MAGIC: u16 = 0xef53;
/// Of the header of an extent map.
const EXTENTS_MAGIC: u16 = 0xf30a;
/// An extent that is longer is one of unwritten blocks, so much shorter.
const UNWRITTEN: u16 = 1 << 15;

/// The journal of a filesystem of this kind, in sectors of the disk; its device begins at sector `starts_at` of that.
pub(super) fn read(kind: &str, head: &[u8], starts_at: u64) -> Option<JournalRange> {
    let (first, end) = match kind {
        "xfs" => xfs(head)?,
        "ext4" => ext4(head)?,
        _ => return None,
    };
    JournalRange::new(first.checked_add(starts_at)?, end.checked_add(starts_at)?)
}

/// Whether the journal of a filesystem of this kind lies on another device.
pub(super) fn is_elsewhere(kind: &str, head: &[u8]) -> bool {
    let number = |at: usize| head.get(at..).and_then(|rest| rest.first_chunk()).copied();
    match kind {
        "xfs" => head.starts_with(b"XFSB") && head.get(48..56) == Some(&[0; 8]),
        // No inode here has it, and `s_journal_dev` says which device.
        "ext4" => {
            let device = number(EXT4_AT + 0xe4).map(u32::from_le_bytes);
            number(EXT4_AT + 0xe0) == Some([0; 4]) && device.is_some_and(|device| device != 0)
        }
        _ => false,
    }
}

fn xfs(head: &[u8]) -> Option<(u64, u64)> {
    let u32_at = |at: usize| Some(u64::from(u32::from_be_bytes(*head.get(at..)?.first_chunk()?)));
    let u64_at = |at: usize| Some(u64::from_be_bytes(*head.get(at..)?.first_chunk()?));
    if head.get(..4)? != b"XFSB" {
        return None;
    }
    let (block_bytes, log_start, log_blocks) = (u32_at(4)?, u64_at(48)?, u32_at(96)?);
    // An external log has no place here.
    if log_start == 0 {
        return None;
    }
    // A block's number is that of its allocation group, then the block within it.
    let (group_blocks, shift) = (u32_at(84)?, u32::from(*head.get(124)?));
    let group = log_start.checked_shr(shift)?;
    let within = log_start & 1_u64.checked_shl(shift)?.wrapping_sub(1);
    let block = group.checked_mul(group_blocks)?.checked_add(within)?;
    let sectors = block_bytes / SECTOR;
    let first = block.checked_mul(sectors)?;
    Some((first, first.checked_add(log_blocks.checked_mul(sectors)?)?))
}

fn ext4(head: &[u8]) -> Option<(u64, u64)> {
    let block = head.get(EXT4_AT..)?;
    let byte = |at: usize| block.get(at).copied();
    let u16_at = |at: usize| Some(u16::from_le_bytes(*block.get(at..)?.first_chunk()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(*block.get(at..)?.first_chunk()?));
    let (journal_inode, copy_kind, map) = (u32_at(0xe0)?, byte(0xfd)?, 0x10c);
    if u16_at(0x38)? != EXT4_MAGIC || journal_inode == 0 || copy_kind != 1 {
        return None;
    }
    let sectors = 1024_u64.checked_shl(u32_at(0x18)?)? / SECTOR;
    let (entries, depth) = (usize::from(u16_at(map + 2)?), u16_at(map + 6)?);
    // Four extents find room in the inode; a deeper map has many pieces.
    if u16_at(map)? != EXTENTS_MAGIC || depth != 0 || !(1..=4).contains(&entries) {
        return None;
    }
    let mut range: Option<(u64, u64)> = None;
    for entry in 0..entries {
        let at = map + 12 + entry * 12;
        let length = u16_at(at + 4)?;
        let length = u64::from(if length > UNWRITTEN { length - UNWRITTEN } else { length });
        let first = u64::from(u16_at(at + 6)?) << 32 | u64::from(u32_at(at + 8)?);
        range = match range {
            None => Some((first, first + length)),
            // What lies between two pieces is no journal.
            Some((begin, end)) if end == first => Some((begin, end + length)),
            Some(_) => return None,
        };
    }
    range.and_then(|(first, end)| Some((first.checked_mul(sectors)?, end.checked_mul(sectors)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads of filesystems that mkfs has made; tests/data/superblocks/README.md says how, and what other tools read in them.
    const XFS: &[u8] = include_bytes!("../../tests/data/superblocks/xfs.bin");
    const EXT4: &[u8] = include_bytes!("../../tests/data/superblocks/ext4.bin");
    const EXT4_PIECES: &[u8] = include_bytes!("../../tests/data/superblocks/ext4-pieces.bin");

    #[test]
    fn the_journal_lies_where_the_filesystems_own_tools_say() {
        assert_eq!(read("xfs", XFS, 0), JournalRange::new(512_048, 643_120));
        assert_eq!(read("xfs", XFS, 2048), JournalRange::new(512_048 + 2048, 643_120 + 2048));
        assert_eq!(read("ext4", EXT4, 0), JournalRange::new(524_288, 557_056));
        assert_eq!(read("ext4", EXT4_PIECES, 0), None);
    }

    #[test]
    fn what_is_no_such_superblock_has_no_journal() {
        assert_eq!((read("btrfs", XFS, 0), read("xfs", EXT4, 0), read("ext4", XFS, 0)), (None, None, None));
        for length in 0..EXT4.len() {
            assert_eq!(read("ext4", &EXT4[..length.min(1024 + 0x10c + 20)], 0), None);
        }
        assert!((0..125).all(|length| read("xfs", &XFS[..length], 0).is_none()));
        // Numbers that no filesystem has.
        let mut forged = XFS.to_vec();
        forged[48..56].fill(0xff);
        forged[124] = 255;
        assert_eq!(read("xfs", &forged, 0), None);
    }
}
