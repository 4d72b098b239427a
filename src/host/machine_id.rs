//! Which machine or disk this is, without saying it to anybody else.
//!
//! Enters: `/etc/machine-id`. Leaves: digits that are the same on this machine and no other, from which that file cannot be found again:
//! HMAC-SHA-256 with it as the key, as machine-id(5) asks of programs.

use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What the digits are for: those of another program differ.
const PURPOSE: &[u8] = b"assay machine 1";
/// Bytes kept of the 32.
const KEPT: usize = 8;

/// The same for a disk, from its serial number.
const OF_A_DISK: &[u8] = b"assay disk 1";

/// 16 digits; `None` where the machine has no such file, as in most containers and in guests of assay.
pub(super) fn machine_id() -> Option<String> {
    digits(&std::fs::read_to_string(Path::new("/etc/machine-id")).ok()?, PURPOSE)
}

/// 16 digits of a disk that has this number.
pub(super) fn disk_digits(serial: &str) -> Option<String> {
    digits(serial, OF_A_DISK)
}

fn digits(id: &str, purpose: &[u8]) -> Option<String> {
    let id = id.trim();
    if id.is_empty() {
        return None;
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(id.as_bytes()).ok()?;
    mac.update(purpose);
    Some(mac.finalize().into_bytes().iter().take(KEPT).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_one_machines_and_do_not_show_its_id() {
        let id = "0123456789abcdef0123456789abcdef";
        let found = digits(id, PURPOSE).unwrap();
        assert_eq!((found.len(), digits(&format!("{id}\n"), PURPOSE)), (16, Some(found.clone())));
        assert!(
            !id.contains(&found)
                && digits("1123456789abcdef0123456789abcdef", PURPOSE) != Some(found.clone())
        );
        assert_ne!(disk_digits(id), Some(found), "a disk with that number is no machine");
        // Of an image that was never started.
        assert_eq!((digits("", PURPOSE), digits("\n", PURPOSE)), (None, None));
    }
}
