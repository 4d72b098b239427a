//! How much an empty filesystem that was made for a trial can hold.
//!
//! Enters: its mount point. Leaves: bytes, as facts of a reply: a filesystem in a guest is asked there.

use std::path::Path;

use crate::host::HostFacts;

/// What a filesystem holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// For everybody.
    pub available_bytes: u64,
    /// For root, too.
    pub free_bytes: u64,
}

const AVAILABLE: &str = "room.available_bytes";
const FREE: &str = "room.free_bytes";

impl Room {
    /// As statvfs(2) says; `None`: it says nothing, or there is no limit.
    pub(super) fn of(mount_point: &Path) -> Option<Room> {
        let found = rustix::fs::statvfs(mount_point).ok().filter(|found| found.f_blocks > 0)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Room { available_bytes: bytes(found.f_bavail), free_bytes: bytes(found.f_bfree) })
    }

    pub(super) fn tell(self, facts: &mut HostFacts) {
        facts.set(AVAILABLE, self.available_bytes.to_string());
        facts.set(FREE, self.free_bytes.to_string());
    }

    /// As told.
    #[must_use]
    pub fn told(facts: &HostFacts) -> Option<Room> {
        let bytes = |name: &str| facts.get(name)?.parse().ok();
        Some(Room { available_bytes: bytes(AVAILABLE)?, free_bytes: bytes(FREE)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_read_again() {
        let room = Room { available_bytes: 900, free_bytes: 1000 };
        let mut facts = HostFacts::default();
        assert_eq!(Room::told(&facts), None);
        room.tell(&mut facts);
        assert_eq!(Room::told(&facts), Some(room));
    }
}
