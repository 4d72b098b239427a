//! One event of a block trace, whatever file it comes from.
//!
//! Enters: numbers that a front end has read. Leaves: [`Event`]. It must not know how any file is laid out.

use std::fmt;
use std::str::FromStr;

use super::flags::Flags;

/// A device number as the kernel keeps it: twelve bits of major, twenty of minor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device(pub u32);

impl Device {
    /// Puts the two numbers together. Returns nothing when one of them is too large.
    #[must_use]
    pub fn new(major: u32, minor: u32) -> Option<Device> {
        (major < 1 << 12 && minor < 1 << 20).then_some(Device(major << 20 | minor))
    }

    /// Whether the event names a device at all: plugs of tracefs and system calls do not.
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0 >> 20, self.0 & 0xf_ffff)
    }
}

impl FromStr for Device {
    type Err = String;

    /// Reads `7:1` and `7,1`.
    fn from_str(text: &str) -> Result<Device, String> {
        let numbers = text
            .split_once([':', ','])
            .and_then(|(major, minor)| Device::new(major.parse().ok()?, minor.parse().ok()?));
        numbers.ok_or_else(|| format!("'{text}' is not a device number such as 259:0"))
    }
}

/// The name of a task, at most 15 bytes, as the kernel keeps it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The bytes up to the first zero, at most 15 of them.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Comm {
        let mut name = [0; 16];
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(15);
        name[..length].copy_from_slice(&bytes[..length]);
        Comm(name)
    }

    /// Whether the trace does not say the name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..length]))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

named! {
    /// A system call that makes data durable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Call {
        /// fsync(2).
        Fsync = "fsync",
        /// fdatasync(2).
        Fdatasync = "fdatasync",
        /// syncfs(2).
        Syncfs = "syncfs",
        /// sync(2).
        Sync = "sync",
        /// umount(2).
        Umount = "umount",
    }
}

impl Call {
    /// The call of this name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Call> {
        Call::ALL.into_iter().find(|call| call.name().as_bytes() == name)
    }
}

named! {
    /// A filesystem whose rules for durable data are known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Filesystem {
        /// XFS: a commit record is a write with FUA in the log, with a flush before it.
        Xfs = "xfs",
        /// ext4 with jbd2: the commit block has a flush before it and FUA.
        Ext4 = "ext4",
        /// btrfs: the superblock at sector 128, with FUA, behind a flush.
        Btrfs = "btrfs",
        /// F2FS: the last block of a checkpoint pack has a flush before it and FUA; an fsync without a checkpoint ends with a flush.
        F2fs = "f2fs",
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// A bio was queued.
    Queue,
    /// A request was allocated for it.
    GetRequest,
    /// A task waits for a free request.
    Sleep,
    /// The request went to the scheduler or to the dispatch list.
    Insert,
    /// The request went to the driver.
    Issue,
    /// The request, a part of it, or a sequence of flushes is complete.
    Complete,
    /// A bio of a device without requests is complete.
    BioComplete,
    /// The driver gave the request back.
    Requeue,
    /// A bio was added behind a request.
    BackMerge,
    /// A bio was added in front of a request.
    FrontMerge,
    /// Two requests became one.
    RequestMerge,
    /// A bio was cut; `sectors` is the first part's length.
    Split,
    /// A bio was sent to another device or place.
    Remap,
    /// A bio was copied to other memory.
    Bounce,
    /// A task begins to collect requests.
    Plug,
    /// A task hands its collected requests on.
    Unplug,
    /// The same, because time had passed.
    UnplugTimer,
    /// The request was given up.
    Abort,
    /// Data of a driver.
    DriverData,
    /// A text of the kernel or a user, in blktrace's stream.
    Message,
    /// A text that was written into `trace_marker`.
    Marker,
    /// A system call begins; `sector` is its file descriptor.
    Enter(Call),
    /// A system call ends; `error` is what it returned.
    Exit(Call),
    /// A filesystem begins to sync a file; `sector` is the inode.
    FileSync(Filesystem),
    /// It has done so; `error` is what it returned.
    FileSyncEnd,
    /// Anything else, by its name in [`Names`].
    Other(u16),
}

/// What is counted by [`Action::index`], in its order.
const KINDS: [&str; 33] = [
    "queue", "get_request", "sleep", "insert", "issue", "complete", "bio_complete", "requeue", "back_merge",
    "front_merge", "request_merge", "split", "remap", "bounce", "plug", "unplug", "unplug_timer", "abort",
    "driver_data", "message", "marker", "file_sync", "file_sync_end", "enter_fsync", "enter_fdatasync",
    "enter_syncfs", "enter_sync", "enter_umount", "exit_fsync", "exit_fdatasync", "exit_syncfs", "exit_sync",
    "exit_umount",
];

impl Action {
    /// How many kinds of events there are besides those that only have a name.
    pub const KINDS: usize = KINDS.len();

    /// The place of its count, below [`Action::KINDS`]; nothing for [`Action::Other`].
    #[must_use]
    #[inline(always)]
    pub fn index(self) -> Option<usize> {
        // Constants alone become a table rather than a jump for each event.
        let first = match self {
            Action::Queue => 0,
            Action::GetRequest => 1,
            Action::Sleep => 2,
            Action::Insert => 3,
            Action::Issue => 4,
            Action::Complete => 5,
            Action::BioComplete => 6,
            Action::Requeue => 7,
            Action::BackMerge => 8,
            Action::FrontMerge => 9,
            Action::RequestMerge => 10,
            Action::Split => 11,
            Action::Remap => 12,
            Action::Bounce => 13,
            Action::Plug => 14,
            Action::Unplug => 15,
            Action::UnplugTimer => 16,
            Action::Abort => 17,
            Action::DriverData => 18,
            Action::Message => 19,
            Action::Marker => 20,
            Action::FileSync(_) => 21,
            Action::FileSyncEnd => 22,
            Action::Enter(_) => 23,
            Action::Exit(_) => 28,
            Action::Other(_) => KINDS.len(),
        };
        match self {
            Action::Enter(call) | Action::Exit(call) => Some(first + call as usize),
            Action::Other(_) => None,
            _ => Some(first),
        }
    }

    /// The name of what is counted at this place, which is below [`Action::KINDS`].
    #[must_use]
    pub fn name_at(index: usize) -> &'static str {
        KINDS[index]
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds of the trace's clock; of text, as exact as the text.
    pub time_ns: u64,
    /// The processor it happened on.
    pub cpu: u32,
    /// The device, where the event names one.
    pub device: Device,
    /// What happened.
    pub action: Action,
    /// Operation and flags of the bio or request.
    pub flags: Flags,
    /// First sector of 512 bytes; of calls and files see [`Action`].
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// The task that ran, as the kernel's thread number.
    pub pid: u32,
    /// That task's name, where the trace says it.
    pub comm: Comm,
    /// An error number, negative; or what a call returned.
    pub error: i32,
}

impl Event {
    /// An event with nothing but a time, a processor and a task.
    #[must_use]
    pub fn at(time_ns: u64, cpu: u32, pid: u32, action: Action) -> Event {
        Event {
            time_ns,
            cpu,
            device: Device::default(),
            action,
            flags: Flags::default(),
            sector: 0,
            sectors: 0,
            pid,
            comm: Comm::default(),
            error: 0,
        }
    }

    /// The first sector behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_read_and_printed() {
        let device: Device = "7:1".parse().unwrap();
        assert_eq!((device, device.to_string()), (Device(7 << 20 | 1), "7:1".to_owned()));
        assert_eq!("259,3".parse::<Device>().unwrap().to_string(), "259:3");
        for wrong in ["", "7", "7:", "a:b", "4096:0", "0:1048576", "-1:2"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_kind_of_event_has_a_place_and_a_name() {
        for (action, name) in [
            (Action::Queue, "queue"),
            (Action::Split, "split"),
            (Action::Marker, "marker"),
            (Action::FileSyncEnd, "file_sync_end"),
            (Action::Enter(Call::Fdatasync), "enter_fdatasync"),
            (Action::Exit(Call::Umount), "exit_umount"),
        ] {
            assert_eq!(Action::name_at(action.index().unwrap()), name);
        }
        assert_eq!(Action::Exit(Call::Umount).index(), Some(Action::KINDS - 1));
        assert_eq!(Action::Other(3).index(), None);
    }

    #[test]
    fn a_comm_ends_at_its_first_zero() {
        assert_eq!(Comm::new(b"mount\0rest").to_string(), "mount");
        assert_eq!(Comm::new(b"0123456789abcdefgh").to_string(), "0123456789abcde");
        assert!(Comm::new(b"").is_empty());
    }
}
