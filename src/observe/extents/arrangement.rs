//! How files lie beside each other, from their extents alone.
//!
//! Enters: the extents of each file. Leaves: counts. No file is opened here, and the order in which files are given tells nothing.

use std::collections::BTreeSet;

/// A run of bytes of a file that lies in one piece; all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    /// Where it begins on the device.
    pub(super) physical: u64,
    /// Where it begins in the file.
    pub(super) logical: u64,
    /// How long it is in the file.
    pub(super) bytes: u64,
    /// On the device it is of another length (compressed), so that what is next to it cannot be told.
    pub(super) encoded: bool,
}

/// The extents of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileMap {
    /// The filesystem's device: places on different ones are not beside each other.
    pub(super) device: u64,
    /// In any order.
    pub(super) extents: Vec<Extent>,
}

/// What the extents of all files come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// Files with at least one extent.
    pub(super) files: u64,
    /// Extents of all of them.
    pub(super) count: u64,
    /// Extents of the file that has most.
    pub(super) most: u64,
    /// Bytes in all extents.
    pub(super) bytes: u64,
    /// In the order of the device: how often the next extent is another file's.
    pub(super) owner_changes: u64,
}

impl Arrangement {
    /// `None`: no file has an extent.
    pub(super) fn of(files: &[FileMap]) -> Option<Arrangement> {
        let merged: Vec<FileMap> =
            files.iter().map(|file| FileMap { extents: merged(&file.extents), ..*file }).collect();
        let counts = || merged.iter().map(|file| file.extents.len() as u64);
        let count: u64 = counts().sum();
        (count > 0).then(|| Arrangement {
            files: counts().filter(|count| *count > 0).count() as u64,
            count,
            most: counts().max().unwrap_or_default(),
            bytes: merged.iter().flat_map(|file| &file.extents).map(|extent| extent.bytes).sum(),
            owner_changes: owner_changes(&merged),
        })
    }
}

/// Extents that go on where the one before ends, in the file and on the device, are one: kernels cut them where the state
/// changes (written, not yet written) or where their own records are full.
fn merged(extents: &[Extent]) -> Vec<Extent> {
    let mut sorted: Vec<Extent> = extents.iter().copied().filter(|extent| extent.bytes > 0).collect();
    sorted.sort_unstable_by_key(|extent| (extent.logical, extent.physical, extent.bytes, extent.encoded));
    let mut merged: Vec<Extent> = Vec::new();
    for extent in sorted {
        match merged.last_mut() {
            Some(last)
                if !last.encoded
                    && !extent.encoded
                    && last.logical.checked_add(last.bytes) == Some(extent.logical)
                    && last.physical.checked_add(last.bytes) == Some(extent.physical) =>
            {
                last.bytes += extent.bytes;
            }
            _ => merged.push(extent),
        }
    }
    merged
}

/// An extent that several files share has all of them as its owner.
fn owner_changes(files: &[FileMap]) -> u64 {
    let mut places: Vec<(u64, u64, u64, usize)> = Vec::new();
    for (owner, file) in files.iter().enumerate() {
        places.extend(file.extents.iter().map(|extent| (file.device, extent.physical, extent.bytes, owner)));
    }
    places.sort_unstable();
    let mut changes = 0;
    let mut before: Option<(u64, BTreeSet<usize>)> = None;
    for same in places.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)) {
        let owners: BTreeSet<usize> = same.iter().map(|place| place.3).collect();
        let here = (same[0].0, owners);
        changes += u64::from(before.is_some_and(|(device, owners)| device == here.0 && owners != here.1));
        before = Some(here);
    }
    changes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(extents: &[(u64, u64, u64)]) -> FileMap {
        let extent = |(logical, physical, bytes): &(u64, u64, u64)| Extent {
            logical: *logical,
            physical: *physical,
            bytes: *bytes,
            encoded: false,
        };
        FileMap { device: 1, extents: extents.iter().map(extent).collect() }
    }

    fn of(files: &[FileMap]) -> (u64, u64, u64, u64) {
        let seen = Arrangement::of(files).unwrap();
        (seen.files, seen.count, seen.most, seen.owner_changes)
    }

    #[test]
    fn files_one_behind_the_other_change_owners_once() {
        let files = [file(&[(0, 100, 50)]), file(&[(0, 150, 50)])];
        assert_eq!(of(&files), (2, 2, 1, 1));
        assert_eq!(Arrangement::of(&files).unwrap().bytes, 100);
    }

    #[test]
    fn interleaved_files_change_owners_at_every_step() {
        // On the device: a b a b a, then a hole, then b.
        let a = file(&[(0, 0, 4), (4, 8, 4), (8, 16, 4)]);
        let b = file(&[(0, 4, 4), (4, 12, 4), (8, 900, 4)]);
        assert_eq!(of(&[a, b]), (2, 6, 3, 5));
    }

    #[test]
    fn what_goes_on_in_file_and_device_is_one_extent() {
        // Cut by the kernel where written becomes unwritten.
        assert_eq!(of(&[file(&[(8, 108, 8), (0, 100, 8)])]), (1, 1, 1, 0));
        // Beside each other on the device only, or in the file only.
        assert_eq!(of(&[file(&[(0, 100, 8), (16, 108, 8)])]), (1, 2, 2, 0));
        assert_eq!(of(&[file(&[(0, 108, 8), (8, 100, 8)])]), (1, 2, 2, 0));
    }

    #[test]
    fn compressed_extents_stay_apart() {
        let mut file = file(&[(0, 100, 8), (8, 108, 8)]);
        file.extents[0].encoded = true;
        assert_eq!(of(&[file]), (1, 2, 2, 0));
    }

    #[test]
    fn shared_extents_belong_to_all_who_share_them() {
        // A copy that shares everything changes nothing; one that was rewritten in the middle does.
        let original = file(&[(0, 100, 8), (8, 200, 8), (16, 300, 8)]);
        assert_eq!(of(&[original.clone(), original.clone()]), (2, 6, 3, 0));
        let rewritten = file(&[(0, 100, 8), (8, 250, 8), (16, 300, 8)]);
        // 100 both, 200 the original, 250 the copy, 300 both.
        assert_eq!(of(&[original, rewritten]), (2, 6, 3, 3));
    }

    #[test]
    fn devices_have_no_neighbours_on_each_other() {
        let files = [file(&[(0, 0, 8)]), FileMap { device: 2, ..file(&[(0, 8, 8)]) }];
        assert_eq!(of(&files), (2, 2, 1, 0));
    }

    #[test]
    fn files_without_extents_do_not_count() {
        assert_eq!(Arrangement::of(&[]), None);
        assert_eq!(Arrangement::of(&[file(&[])]), None);
        assert_eq!(of(&[file(&[]), file(&[(0, 8, 8)])]), (1, 1, 1, 0));
    }

    /// Files that share a small device, so that neighbours and shared extents are frequent.
    fn files() -> impl Strategy<Value = Vec<FileMap>> {
        let extent = (0_u64..24, 0_u64..24, 1_u64..5, prop::bool::weighted(0.1))
            .prop_map(|(logical, physical, bytes, encoded)| Extent { physical, logical, bytes, encoded });
        let file = (1_u64..3, prop::collection::vec(extent, 0..8))
            .prop_map(|(device, extents)| FileMap { device, extents });
        prop::collection::vec(file, 0..6)
    }

    proptest! {
        #[test]
        fn the_order_of_files_and_extents_tells_nothing(
            (files, shuffled) in files().prop_flat_map(|files| (Just(files.clone()), Just(files).prop_shuffle())),
        ) {
            let mut turned = shuffled;
            turned.iter_mut().for_each(|file| file.extents.reverse());
            prop_assert_eq!(Arrangement::of(&files), Arrangement::of(&turned));
        }

        #[test]
        fn counts_fit_together(files in files()) {
            if let Some(seen) = Arrangement::of(&files) {
                prop_assert!(seen.owner_changes < seen.count);
                prop_assert!(seen.most <= seen.count && seen.files <= seen.count);
                prop_assert!(seen.count <= seen.files * seen.most);
                let bytes: u64 = files.iter().flat_map(|file| &file.extents).map(|extent| extent.bytes).sum();
                prop_assert_eq!(seen.bytes, bytes);
            }
        }

        /// A file cut anywhere is the same file: what the kernel cut is put together first.
        #[test]
        fn cuts_that_move_nothing_are_not_seen(pieces in prop::collection::vec((1_u64..9, any::<bool>()), 1..12)) {
            let (mut cut, mut whole) = (Vec::new(), Vec::new());
            let (mut logical, mut physical) = (0, 1000);
            for (bytes, moves) in pieces {
                physical += u64::from(moves) * 100;
                let piece = Extent { physical, logical, bytes, encoded: false };
                cut.push(piece);
                match whole.last_mut() {
                    Some(Extent { bytes: length, .. }) if !moves => *length += bytes,
                    _ => whole.push(piece),
                }
                logical += bytes;
                physical += bytes;
            }
            let pieces = |extents: Vec<Extent>| Arrangement::of(&[FileMap { device: 1, extents }]);
            prop_assert_eq!(pieces(cut).unwrap().count, whole.len() as u64);
        }

        /// Files that lie one behind the other in whole have one owner change less than there are files.
        #[test]
        fn files_in_whole_change_owners_between_them(lengths in prop::collection::vec(1_u64..99, 1..9)) {
            let mut physical = 0;
            let files: Vec<FileMap> = lengths.iter().map(|bytes| {
                physical += bytes;
                file(&[(0, physical - bytes, *bytes)])
            }).collect();
            prop_assert_eq!(Arrangement::of(&files).unwrap().owner_changes, lengths.len() as u64 - 1);
        }
    }
}
