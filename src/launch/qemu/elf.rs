//! The little of ELF that guests need: what a module says of itself, and where a program's loaded part ends.
//!
//! Enters: the bytes of a 64-bit little-endian file. Leaves: `.modinfo` entries; the file without what is never loaded.
//! Layout: elf(5).

/// Bytes `at..at+length` as a number.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn is_elf64(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x02\x01")
}

/// The `key=value` entries of a module's `.modinfo`.
pub(super) fn modinfo(bytes: &[u8]) -> Vec<(String, String)> {
    let entries = section(bytes, ".modinfo").unwrap_or_default();
    let texts = entries.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    texts
        .filter_map(|text| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect()
}

fn section<'b>(bytes: &'b [u8], name: &str) -> Option<&'b [u8]> {
    if !is_elf64(bytes) {
        return None;
    }
    let table = number(bytes, 0x28, 8)? as usize;
    let (size, count) = (number(bytes, 0x3a, 2)? as usize, number(bytes, 0x3c, 2)? as usize);
    let names_at = number(bytes, 0x3e, 2)? as usize;
    let header = |at: usize| table.checked_add(at.checked_mul(size)?);
    let place = |at: usize| -> Option<&'b [u8]> {
        let header = header(at)?;
        let start = number(bytes, header + 0x18, 8)? as usize;
        bytes.get(start..start.checked_add(number(bytes, header + 0x20, 8)? as usize)?)
    };
    let names = place(names_at)?;
    let called = |at: &usize| {
        let start = header(*at).and_then(|header| number(bytes, header, 4)).unwrap_or_default() as usize;
        names.get(start..).is_some_and(|rest| rest.split(|byte| *byte == 0).next() == Some(name.as_bytes()))
    };
    (0..count).find(called).and_then(place)
}

/// Whether a program header leads to a note of this owner and kind.
pub(super) fn has_note(bytes: &[u8], owner: &[u8], kind: u64) -> bool {
    /// PT_NOTE.
    const NOTE: u64 = 4;
    let notes = |at: usize| -> Option<&[u8]> {
        let header = (number(bytes, 0x20, 8)? as usize).checked_add(at * number(bytes, 0x36, 2)? as usize)?;
        bytes.get(header..)?;
        let start = number(bytes, header + 0x08, 8)? as usize;
        let end = start.checked_add(number(bytes, header + 0x20, 8)? as usize)?;
        (number(bytes, header, 4)? == NOTE).then(|| bytes.get(start..end))?
    };
    let here = |mut rest: &[u8]| -> Option<bool> {
        loop {
            let (name, size) = (number(rest, 0, 4)? as usize, number(rest, 4, 4)? as usize);
            if number(rest, 8, 4)? == kind && rest.get(12..12 + name)? == owner {
                return Some(true);
            }
            rest = rest.get(12 + name.next_multiple_of(4) + size.next_multiple_of(4)..)?;
        }
    };
    let count = if is_elf64(bytes) { number(bytes, 0x38, 2).unwrap_or_default() } else { 0 };
    (0..count as usize).filter_map(notes).any(|notes| here(notes).unwrap_or_default())
}

/// The program without sections, of which debug information is most; anything but ELF as it is.
pub(super) fn loaded_part(mut bytes: Vec<u8>) -> Vec<u8> {
    if !is_elf64(&bytes) {
        return bytes;
    }
    let end = || -> Option<usize> {
        let table = number(&bytes, 0x20, 8)? as usize;
        let (size, count) = (number(&bytes, 0x36, 2)? as usize, number(&bytes, 0x38, 2)? as usize);
        let mut end = table.checked_add(size.checked_mul(count)?)?;
        for at in 0..count {
            let header = table + at * size;
            let stop = number(&bytes, header + 0x08, 8)?.checked_add(number(&bytes, header + 0x20, 8)?)?;
            end = end.max(usize::try_from(stop).ok()?);
        }
        (end <= bytes.len() && bytes.len() >= 0x40).then_some(end)
    };
    if let Some(end) = end() {
        bytes.truncate(end);
        // No section headers: their offset, number and the index of names.
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_its_sections_still_runs() {
        let program = std::fs::read("/bin/true").unwrap();
        let short = loaded_part(program.clone());
        assert!(short.len() <= program.len());
        assert_eq!(number(&short, 0x3c, 2), Some(0));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("true");
        std::fs::write(&path, &short).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(std::process::Command::new(&path).status().unwrap().success());
        assert_eq!(loaded_part(b"#!/bin/sh\n".to_vec()), b"#!/bin/sh\n");
    }

    #[test]
    fn notes_are_told_by_owner_and_kind() {
        let program = std::fs::read("/bin/true").unwrap();
        // Every program of a distribution has its build's identity (NT_GNU_BUILD_ID is 3).
        assert!(has_note(&program, b"GNU\0", 3));
        assert!(!has_note(&program, b"Xen\0", 3) && !has_note(&program, b"GNU\0", 99));
        assert!(!has_note(&program[..0x60], b"GNU\0", 3) && !has_note(b"text", b"GNU\0", 3));
    }

    #[test]
    fn broken_files_have_no_modinfo() {
        let mut bytes = std::fs::read("/bin/true").unwrap();
        assert_eq!(modinfo(&bytes), Vec::new());
        assert_eq!(section(&bytes, ".interp"), Some(&b"/lib64/ld-linux-x86-64.so.2\0"[..]));
        bytes.truncate(100);
        assert_eq!(modinfo(&bytes), Vec::new());
        assert_eq!(modinfo(b"text"), Vec::new());
    }
}
