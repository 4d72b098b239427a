//! fio's iologs of both versions as data, and jobs that write them.

use std::collections::BTreeMap;

/// One line of an iolog that moves data or syncs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Note {
    pub(crate) file: String,
    pub(crate) action: String,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// What one clone noted.
pub(crate) type Part = Vec<Note>;

/// The clones' parts of a log of version 2 (native) or 3 (fio: a time in front).
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut timed = false;
    for line in text.lines() {
        if let Some(version) = line.strip_prefix("fio version ") {
            timed = version.starts_with('3');
            parts.push(Part::new());
            continue;
        }
        let words: Vec<&str> = line.split(' ').skip(usize::from(timed)).collect();
        if let [file, action, offset, length] = words[..] {
            let part = parts.last_mut().expect("the version comes first");
            let number =
                |word: &str| word.parse().unwrap_or_else(|_| panic!("'{line}' is no line of an iolog"));
            let (offset, length) = (number(offset), number(length));
            part.push(Note { file: file.to_owned(), action: action.to_owned(), offset, length });
        } else {
            assert!(matches!(words[..], [_, "add" | "open" | "close"]), "'{line}' is no line of an iolog");
        }
    }
    // Clones end in any order.
    parts.sort_by_key(|part| {
        part.iter().filter(|note| note.length > 0).map(|note| (note.file.clone(), note.offset)).min()
    });
    parts
}

/// The job with a log for each section.
pub(crate) fn with_logs(text: &str) -> String {
    let mut sections = 0;
    let mut logged = String::new();
    for line in text.lines() {
        logged.push_str(line);
        logged.push('\n');
        if line.starts_with('[') && line.trim() != "[global]" {
            logged.push_str(&format!("write_iolog={sections}.iolog\n"));
            sections += 1;
        }
    }
    logged
}

/// Without the syncs.
pub(crate) fn transfers(part: &Part) -> Vec<&Note> {
    part.iter().filter(|note| ["read", "write", "trim"].contains(&note.action.as_str())).collect()
}

/// How often each is there.
pub(crate) fn counts<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// How often each byte was hit, as (first, behind the last, times).
pub(crate) fn coverage(notes: &[&Note]) -> BTreeMap<String, Vec<(u64, u64, i64)>> {
    let mut edges = BTreeMap::<String, BTreeMap<u64, i64>>::new();
    for note in notes {
        let file = edges.entry(note.file.clone()).or_default();
        *file.entry(note.offset).or_default() += 1;
        *file.entry(note.offset + note.length).or_default() -= 1;
    }
    let ranges = edges.into_iter().map(|(file, edges)| {
        let mut ranges: Vec<(u64, u64, i64)> = Vec::new();
        let (mut from, mut times) = (0, 0);
        for (at, change) in edges.into_iter().filter(|(_, change)| *change != 0) {
            if times > 0 {
                ranges.push((from, at, times));
            }
            (from, times) = (at, times + change);
        }
        (file, ranges)
    });
    ranges.collect()
}
