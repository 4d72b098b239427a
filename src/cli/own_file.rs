//! Whether assay wrote a file, and nobody changed it since.
//!
//! Enters: a file. Leaves: why it may not be replaced, or nothing. What is written gets an extended attribute with the digest of its
//! content: it spoils nothing that is pasted, and it no longer fits once somebody has edited the file. Where a filesystem has no
//! attributes, or the file was copied without them, HTML, JSON and CSV are known by what only assay writes.

use std::fs::File;
use std::hash::Hasher;
use std::io::Read;
use std::path::Path;

use twox_hash::XxHash64;

use crate::report::{GENERATOR, JUNIT};
use crate::sys::regular_file;

/// XXH64 of the content, as 16 hexadecimal digits.
const ATTRIBUTE: &str = "user.assay.report";
/// Bytes in which a file must show that it is assay's.
const HEAD: u64 = 4096;

/// Marks a file that holds this; where that cannot be, it is not marked.
pub(super) fn mark(file: &File, content: &[u8]) {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(content);
    let digest = format!("{:016x}", hasher.finish());
    let _ = rustix::fs::fsetxattr(file, ATTRIBUTE, digest.as_bytes(), rustix::fs::XattrFlags::empty());
}

/// Why a regular file is not one that assay wrote; an empty one is anybody's.
pub(super) fn why_not(path: &Path) -> Option<&'static str> {
    const FOREIGN: &str = "assay did not write it";
    let Ok(mut file) = regular_file::open(path) else { return Some("it cannot be read") };
    if file.metadata().is_ok_and(|found| found.len() == 0) {
        return None;
    }
    let mut known = [0_u8; 16];
    match rustix::fs::fgetxattr(&file, ATTRIBUTE, &mut known) {
        Ok(16) => match digest(&mut file) {
            Ok(digest) if digest.as_bytes() == known => None,
            _ => Some("it was changed since assay wrote it"),
        },
        Ok(_) => Some(FOREIGN),
        Err(_) => {
            let mut head = Vec::new();
            let read = file.take(HEAD).read_to_end(&mut head);
            (read.is_err() || !is_known(&String::from_utf8_lossy(&head))).then_some(FOREIGN)
        }
    }
}

fn digest(file: &mut File) -> std::io::Result<String> {
    let (mut hasher, mut chunk) = (XxHash64::with_seed(0), vec![0_u8; 1 << 16]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(format!("{:016x}", hasher.finish())),
            read => hasher.write(&chunk[..read]),
        }
    }
}

/// By a beginning that only assay writes.
fn is_known(head: &str) -> bool {
    let first = head.lines().next().unwrap_or_default();
    head.starts_with("<!DOCTYPE html>") && head.contains(GENERATOR)
        || head.starts_with("<svg ") && head.contains("<!-- made by assay -->")
        || head.starts_with(JUNIT)
        || head.starts_with("{\"format\":\"assay-report\"")
        || head.starts_with("{\n  \"version\": ") && head.contains("\n  \"assay_version\": \"")
        || first.starts_with("trial,round,position,attempt,status,")
            && first.ends_with(",value")
            && first.contains(",job,metric,unit,")
        || first.contains("job,metric,unit,better,role,baseline,candidate,")
            && first.contains(",delta,run,")
            && first.contains(",caveats")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_assays_until_somebody_changes_it() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = place.path().join("report.txt");
        std::fs::write(&path, "").unwrap();
        assert_eq!(why_not(&path), None, "empty");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(why_not(&path), Some("assay did not write it"));
        mark(&File::open(&path).unwrap(), b"text");
        let file = File::open(&path).unwrap();
        if rustix::fs::fgetxattr(&file, ATTRIBUTE, &mut [0_u8; 16]).is_ok() {
            assert_eq!(why_not(&path), None);
            std::fs::write(&path, "text and notes").unwrap();
            assert_eq!(why_not(&path), Some("it was changed since assay wrote it"));
        }
    }

    #[test]
    fn formats_are_known_without_the_attribute() {
        for (head, known) in [
            (format!("<!DOCTYPE html>\n<html>\n{GENERATOR}0.1.0\">"), true),
            ("<!DOCTYPE html>\n<html>".to_owned(), false),
            (format!("{JUNIT} tests=\"1\""), true),
            ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ninja\">".to_owned(), false),
            ("{\"format\":\"assay-report\",".to_owned(), true),
            ("{\n  \"version\": 1,\n  \"id\": 1,\n  \"assay_version\": \"0.1.0\"".to_owned(), true),
            ("{\"jobs\":[".to_owned(), false),
            ("trial,round,position,attempt,status,bs,job,metric,unit,value\n1,".to_owned(), true),
            ("trial,round,position,attempt,status,bs,job,metric,unit,better,value\n1,".to_owned(), true),
            ("bs,job,value\n".to_owned(), false),
        ] {
            assert_eq!(is_known(&head), known, "{head}");
        }
    }
}
