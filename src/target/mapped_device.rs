//! Which device of the device mapper has a uuid.
//!
//! Enters: a uuid. Leaves: its directory in sysfs. Numbers and names are given out again, a uuid of assay's own is not.

use std::path::PathBuf;

/// Where sysfs has the device of this uuid; `None`: there is none.
pub(super) fn device_of(uuid: &str) -> Option<PathBuf> {
    let mut all = std::fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.path());
    all.find(|sys| crate::host::read_knob(&sys.join("dm/uuid")).is_ok_and(|now| now == uuid))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_nobody_made_is_not_there() {
        assert_eq!(super::device_of("assay-nowhere"), None);
    }
}
