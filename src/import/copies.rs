//! Files that are byte for byte the same: copies of a result are no further trials.
//!
//! Enters: what all files hold, each with its number, side and hash. Leaves: the files that are left out, and sentences about them. Files
//! of plain numbers may well be equal. So may tables, Go's text and what tools print, which have no time of their own: they are told and count.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::recognise::Format;
use super::source::Side;

/// Names in a sentence.
const SHOWN: usize = 3;

/// A file that was read.
pub(super) struct Read {
    /// Its number among all.
    pub(super) file: usize,
    pub(super) side: usize,
    pub(super) hash: (usize, u64),
    pub(super) format: Format,
}

/// Whether equal bytes are a copy: a result of this kind has times, and too many digits to be the same twice.
fn proves_copy(format: Format) -> bool {
    matches!(format, Format::FioJson | Format::Hyperfine | Format::AssayJson | Format::AssayCsv)
}

/// Length and hash of a file's bytes.
pub(super) fn hash(bytes: &[u8]) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    (bytes.len(), hasher.finish())
}

/// The numbers of the files that are left out, and what is said. `read` are in the order of the files.
pub(super) fn find(read: &[Read], sides: &[Side]) -> (BTreeSet<usize>, Vec<String>) {
    let names: Vec<&Path> = sides.iter().flat_map(|side| &side.files).map(|file| file.as_path()).collect();
    let name = |file: usize| names.get(file).map_or_else(String::new, |path| path.display().to_string());
    let (mut here, mut elsewhere) = (HashMap::new(), HashMap::new());
    let mut out = BTreeSet::new();
    let (mut left_out, mut kept, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for one in read.iter().filter(|one| one.format != Format::Numbers) {
        let pair = |first: usize| format!("{} is {}", name(one.file), name(first));
        match here.get(&(one.side, one.hash)) {
            Some(first) if !proves_copy(one.format) => kept.push(pair(*first)),
            Some(first) => {
                left_out.push(pair(*first));
                out.insert(one.file);
                continue;
            }
            None => _ = here.insert((one.side, one.hash), one.file),
        }
        let (side, first) = *elsewhere.entry(one.hash).or_insert((one.side, one.file));
        if side != one.side {
            shared.push(pair(first));
        }
    }
    let told = [
        (left_out, "byte for byte the same as another of its side, and left out"),
        (kept, "byte for byte the same as another of its side, and counts all the same"),
        (shared, "byte for byte the same as one of another side"),
    ];
    let sentence = |(pairs, what): &(Vec<String>, &str)| {
        let more = pairs.len().saturating_sub(SHOWN);
        let files =
            if pairs.len() == 1 { "1 file is".to_owned() } else { format!("{} files are", pairs.len()) };
        let shown = pairs.iter().take(SHOWN).cloned().collect::<Vec<String>>().join(", ");
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("{files} {what}: {shown}{more}")
    };
    (out, told.iter().filter(|(pairs, _)| !pairs.is_empty()).map(sentence).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(formats: &[(usize, u8, Format)]) -> (Vec<usize>, Vec<String>) {
        let read: Vec<Read> = formats
            .iter()
            .enumerate()
            .map(|(file, (side, byte, format))| Read {
                file,
                side: *side,
                hash: hash(&[*byte]),
                format: *format,
            })
            .collect();
        let side = |wanted: usize| Side {
            label: wanted.to_string(),
            files: (0..read.len())
                .filter(|file| read[*file].side == wanted)
                .map(|f| f.to_string().into())
                .collect(),
            several: true,
            notes: Vec::new(),
        };
        let (out, notes) = find(&read, &[side(0), side(1)]);
        (out.into_iter().collect(), notes)
    }

    #[test]
    fn a_copy_on_its_own_side_is_left_out_and_told() {
        let json = Format::FioJson;
        let (out, notes) = found(&[(0, 1, json), (0, 2, json), (0, 1, json), (1, 3, json), (1, 2, json)]);
        assert_eq!(out, [2]);
        assert_eq!(
            notes,
            [
                "1 file is byte for byte the same as another of its side, and left out: 2 is 0",
                "1 file is byte for byte the same as one of another side: 4 is 1",
            ]
        );
        let many: Vec<(usize, u8, Format)> = (0..8).map(|_| (0, 1, json)).collect();
        let (out, notes) = found(&many);
        assert!(
            out.len() == 7 && notes[0].starts_with("7 files are") && notes[0].ends_with("and 4 more"),
            "{notes:?}"
        );
    }

    #[test]
    fn what_may_well_be_equal_counts() {
        let numbers = Format::Numbers;
        assert_eq!(found(&[(0, 1, numbers), (0, 1, numbers)]), (Vec::new(), Vec::new()));
        for text in [Format::Printed(""), Format::Printed("x"), Format::Csv, Format::GoBenchmark] {
            let (out, notes) = found(&[(0, 1, text), (0, 1, text)]);
            assert!(out.is_empty() && notes[0].contains("counts all the same"), "{notes:?}");
        }
        for copied in [Format::FioJson, Format::Hyperfine, Format::AssayJson, Format::AssayCsv] {
            assert_eq!(found(&[(0, 1, copied), (0, 1, copied)]).0, [1], "{copied:?}");
        }
    }
}
