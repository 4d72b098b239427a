//! The kernel inside a compressed image, for an interpreter that would take longer to decompress it than to boot it.
//!
//! Enters: a bzImage. Leaves: the path of its vmlinux in the cache, where it can be booted at all: it must carry the entry point that
//! loaders without real mode use (Xen's PVH, note 18: xen/include/public/elfnote.h). Payload: Documentation/arch/x86/boot.rst.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use super::decompressed::{self, MOST_BYTES};
use super::elf;
use crate::sys::cache;
use crate::sys::regular_file;

/// XEN_ELFNOTE_PHYS32_ENTRY.
const PVH_ENTRY: u32 = 18;
/// This many are kept at least, those that were used last; each is tens of MiB.
const KEPT: usize = 4;

/// Beginnings of compressed data, and what reads them from standard input.
const PROGRAMS: [(&[u8], &[&str]); 3] = [
    (b"\xfd7zXZ\0", &["xz", "-dcq", "--single-stream"]),
    (b"\x28\xb5\x2f\xfd", &["zstd", "-dcq"]),
    (b"\x1f\x8b", &["gzip", "-dcq"]),
];

/// The decompressed kernel, of which `kept` are wanted at a time; `None`: it cannot be had here, or cannot be booted by itself.
pub(super) fn unpacked(image: &Path, kept: usize) -> Option<PathBuf> {
    let place = cache::directory("vmlinux").ok()?;
    let path = place.join(format!("{}.vmlinux", cache::digest_of(image).ok()?));
    if was_used(&path) {
        return Some(path);
    }
    let kernel = decompressed(payload(&regular_file::read(image, MOST_BYTES).ok()?)?)?;
    if !elf::has_note(&kernel, b"Xen\0", PVH_ENTRY) {
        return None;
    }
    let mut file = tempfile::NamedTempFile::new_in(&place).ok()?;
    // It has its name when all of it is on the disk: after a power loss the name alone is believed.
    file.write_all(&kernel).and_then(|()| file.as_file().sync_all()).ok()?;
    file.persist(&path).ok()?;
    cache::prune(&place, KEPT.max(kept));
    Some(path)
}

/// Whether it is there; what is used now is removed last.
fn was_used(path: &Path) -> bool {
    if !path.metadata().is_ok_and(|found| found.len() > 0) {
        return false;
    }
    let Ok(file) = std::fs::File::options().append(true).open(path) else { return true };
    let _ = file.set_modified(SystemTime::now());
    true
}

/// The compressed part of an image.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    // The payload's fields came with version 2.08 of the protocol.
    let version = u16::from_le_bytes(image.get(0x206..0x208)?.try_into().ok()?);
    if image.get(0x202..0x206)? != b"HdrS" || version < 0x208 {
        return None;
    }
    let sectors = match image.get(0x1f1)? {
        0 => 4,
        count => usize::from(*count),
    };
    let start = ((sectors + 1) * 512).checked_add(number(0x248)?)?;
    image.get(start..start.checked_add(number(0x24c)?)?)
}

fn decompressed(payload: &[u8]) -> Option<Vec<u8>> {
    let (_, words) = PROGRAMS.iter().find(|(start, _)| payload.starts_with(start))?;
    // The build appends the size, which zstd takes for another frame.
    let payload = if words[0] == "zstd" { payload.get(..payload.len().checked_sub(4)?)? } else { payload };
    let mut file = tempfile::tempfile().ok()?;
    file.write_all(payload).ok()?;
    file.seek(SeekFrom::Start(0)).ok()?;
    let mut command = Command::new(words[0]);
    let (bytes, _, status) = decompressed::output(command.args(&words[1..]).stdin(Stdio::from(file))).ok()?;
    // gzip warns (2) of what follows its data.
    (status.success() || words[0] == "gzip" && status.code() == Some(2)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_where_the_header_says() {
        let mut image = vec![0_u8; 0x800];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&[0x0f, 2]);
        image[0x248..0x24c].copy_from_slice(&0x10_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&3_u32.to_le_bytes());
        image[0x410..0x413].copy_from_slice(b"abc");
        assert_eq!(payload(&image), Some(&b"abc"[..]));
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(payload(&image), None, "longer than the file");
        image[0x206] = 7;
        assert_eq!(payload(&image), None, "a protocol without payload");
        assert_eq!(payload(b"short"), None);
    }

    #[test]
    fn what_was_used_last_stays() {
        let place = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c"].map(|name| place.path().join(name));
        for (path, ago) in paths.iter().zip([30, 20, 10]) {
            std::fs::write(path, "kernel").unwrap();
            let file = std::fs::File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(ago)).unwrap();
        }
        assert!(was_used(&paths[0]) && !was_used(&place.path().join("none")));
        cache::prune(place.path(), 2);
        assert_eq!(paths.each_ref().map(|path| path.exists()), [true, false, true]);
        std::fs::write(&paths[0], "").unwrap();
        assert!(!was_used(&paths[0]), "a power loss has cut it off");
    }

    #[test]
    fn what_is_compressed_is_read_whatever_follows() {
        for (program, tail) in [("gzip", &b""[..]), ("xz", b"\x05\0\0\0"), ("zstd", b"\x05\0\0\0")] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"hello").unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            let packed = Command::new(program).arg("-cq").stdin(Stdio::from(file)).output();
            let Ok(packed) = packed else { continue };
            let payload = [&packed.stdout, tail].concat();
            assert_eq!(decompressed(&payload).as_deref(), Some(&b"hello"[..]), "{program}");
        }
        assert_eq!(decompressed(b"plain"), None);
    }
}
