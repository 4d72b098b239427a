//! The little of ELF that guests need: what a module says of itself, and where a program's loaded part ends.
//!
//! Enters: the bytes of a 64-bit little-endian file. Leaves: `.modinfo` entries; the file without what is never loaded.
//! Layout: elf(5).

use object::LittleEndian;
use object::elf::{FileHeader64, SHN_UNDEF};
use object::pod::from_bytes_mut;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

type Header = FileHeader64<LittleEndian>;

/// `None`: it is no such file.
fn header(bytes: &[u8]) -> Option<(&Header, LittleEndian)> {
    let header = Header::parse(bytes).ok()?;
    Some((header, header.endian().ok()?))
}

/// The `key=value` entries of a module's `.modinfo`.
pub(super) fn modinfo(bytes: &[u8]) -> Vec<(String, String)> {
    let entries = section(bytes, b".modinfo").unwrap_or_default();
    let texts = entries.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    texts
        .filter_map(|text| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect()
}

fn section<'b>(bytes: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    let (header, endian) = header(bytes)?;
    let (_, section) = header.sections(endian, bytes).ok()?.section_by_name(endian, name)?;
    section.data(endian, bytes).ok()
}

/// Whether a program header leads to a note of this owner and kind.
pub(super) fn has_note(bytes: &[u8], owner: &[u8], kind: u32) -> bool {
    let Some((header, endian)) = header(bytes) else { return false };
    let segments = header.program_headers(endian, bytes).unwrap_or_default();
    let notes = segments.iter().filter_map(|segment| segment.notes(endian, bytes).ok().flatten());
    // One that is broken ends its list.
    notes
        .flat_map(|mut notes| std::iter::from_fn(move || notes.next().ok().flatten()))
        .any(|note| note.n_type(endian).0 == kind && note.name_bytes() == owner)
}

/// The program without sections, of which debug information is most; anything but ELF as it is.
pub(super) fn loaded_part(mut bytes: Vec<u8>) -> Vec<u8> {
    let Some(end) = end_of_loaded_part(&bytes) else { return bytes };
    bytes.truncate(end);
    if let Ok((header, _)) = from_bytes_mut::<Header>(&mut bytes) {
        header.e_shoff.set(LittleEndian, 0);
        header.e_shnum.set(LittleEndian, 0);
        header.e_shstrndx.set(LittleEndian, SHN_UNDEF);
    }
    bytes
}

fn end_of_loaded_part(bytes: &[u8]) -> Option<usize> {
    let (header, endian) = header(bytes)?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let table = header.e_phoff(endian).checked_add(size_of_val(segments) as u64)?;
    let end = segments.iter().try_fold(table, |end, segment| {
        let (start, size) = segment.file_range(endian);
        Some(end.max(start.checked_add(size)?))
    })?;
    // A file without program headers, such as a module, is nothing that is loaded like a program.
    usize::try_from(end).ok().filter(|end| (size_of::<Header>()..=bytes.len()).contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_its_sections_still_runs() {
        let program = std::fs::read("/bin/true").unwrap();
        let short = loaded_part(program.clone());
        assert!(short.len() <= program.len());
        assert_eq!(header(&short).unwrap().0.e_shnum.get(LittleEndian), 0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("true");
        std::fs::write(&path, &short).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(std::process::Command::new(&path).status().unwrap().success());
        assert_eq!(loaded_part(b"#!/bin/sh\n".to_vec()), b"#!/bin/sh\n");
        // No program headers.
        let mut module = program;
        module[0x20..0x28].fill(0);
        module[0x38..0x3a].fill(0);
        assert_eq!(loaded_part(module.clone()), module);
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
        assert_eq!(section(&bytes, b".interp"), Some(&b"/lib64/ld-linux-x86-64.so.2\0"[..]));
        bytes.truncate(100);
        assert_eq!(modinfo(&bytes), Vec::new());
        assert_eq!(modinfo(b"text"), Vec::new());
    }
}
