//! The kernel's log from a moment on (Documentation/ABI/testing/dev-kmsg).
//!
//! Enters: `/dev/kmsg`, which only root may read where `kernel.dmesg_restrict` is set. Leaves: its records, and of them what tells that
//! something is wrong with the kernel.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Levels of the kernel's log (syslog(2)): this and lower ones are failures.
const ERROR: u32 = 3;
/// Of one fault the first line is told. The others, its call trace among them, come at once.
const ONE_FAULT_US: u64 = 100_000;
/// Faults that are told of one look.
const MOST_FAULTS: usize = 3;
/// What the kernel's own checks begin with.
const CHECKS: [&str; 3] = ["WARNING:", "BUG:", "INFO: task "];
/// What a block device answers to a request that it does not know, such as one to write zeroes; the caller does without.
const NOT_SUPPORTED: &str = "operation not supported error, dev ";
/// Records that are read of one look: more have overwritten the log.
const MOST_RECORDS: usize = 100_000;

/// What the kernel says from when it was opened on.
pub struct KernelLog(File);

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// 0 (it cannot go on) to 7 (debugging).
    pub level: u32,
    /// Microseconds since the kernel started.
    pub at_us: u64,
    /// Its first line.
    pub text: String,
}

impl KernelLog {
    /// From now on; `None`: it cannot be read.
    #[must_use]
    pub fn from_now() -> Option<KernelLog> {
        let mut options = File::options();
        let mut log = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok()?;
        log.seek(SeekFrom::End(0)).ok()?;
        Some(KernelLog(log))
    }

    /// What was said since the last look.
    pub fn records(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        // One record a read; EAGAIN when there is none, EPIPE where the next ones were overwritten.
        let mut buffer = [0_u8; 8192];
        for _ in 0..MOST_RECORDS {
            match self.0.read(&mut buffer) {
                Ok(length @ 1..) => records.extend(parsed(&String::from_utf8_lossy(&buffer[..length]))),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Ok(_) | Err(_) => break,
            }
        }
        records
    }

    /// The first lines of what tells of a fault since the last look: words of the kernel's own checks (`WARNING:`, `BUG:`), and all that has
    /// the level of an error and names this device. What else has that level is usually somebody else's.
    pub fn faults(&mut self, device: Option<&str>) -> Vec<String> {
        faults(&self.records(), device)
    }
}

/// `4,1234,5678,-;text`: level and facility, a number, microseconds, flags; further lines are not part of the text.
fn parsed(record: &str) -> Option<Record> {
    let (head, text) = record.split_once(';')?;
    let mut numbers = head.split(',').map(str::parse::<u64>);
    let priority = numbers.next()?.ok()?;
    let at_us = numbers.nth(1)?.ok()?;
    Some(Record {
        level: (priority & 7) as u32,
        at_us,
        text: text.lines().next().unwrap_or_default().to_owned(),
    })
}

fn faults(records: &[Record], device: Option<&str>) -> Vec<String> {
    let mut told: Vec<(u64, String)> = Vec::new();
    for record in records {
        // `======`, which frames some reports, says nothing.
        let says = record.text.contains(char::is_alphanumeric) && !record.text.contains("[ cut here ]");
        let is_check = CHECKS.iter().any(|start| record.text.starts_with(start));
        let is_error = record.level <= ERROR
            && !record.text.starts_with(NOT_SUPPORTED)
            && device.is_some_and(|device| names(&record.text, device));
        let is_new = told.last().is_none_or(|(at, _)| record.at_us > at + ONE_FAULT_US);
        if says && (is_error || is_check) && is_new && told.len() < MOST_FAULTS {
            told.push((record.at_us, without_place(&record.text)));
        }
    }
    told.into_iter().map(|(_, text)| text).collect()
}

/// Whether a text has the name of a device or of a partition of it in it.
fn names(text: &str, device: &str) -> bool {
    // `sda1`, but `loop1p1`.
    let between = if device.ends_with(|c: char| c.is_ascii_digit()) { "p" } else { "" };
    let is_its = |word: &str| match word.strip_prefix(device) {
        None => false,
        Some("") => true,
        Some(rest) => rest.strip_prefix(between).is_some_and(|number| number.parse::<u32>().is_ok()),
    };
    // `-` is in names (`dm-0`), and elsewhere too.
    let words = |apart: fn(char) -> bool| text.split(apart);
    words(|c| !c.is_alphanumeric()).any(is_its) || words(|c| !c.is_alphanumeric() && c != '-').any(is_its)
}

/// The text without the processor and process that it met, which are others each time.
fn without_place(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_place = |at: usize| {
        let of = |at: Option<usize>| {
            at.and_then(|at| words.get(at)).is_some_and(|word| ["CPU:", "PID:"].contains(word))
        };
        of(Some(at)) || of(at.checked_sub(1))
    };
    let kept = words.iter().enumerate().filter(|(at, _)| !is_place(*at)).map(|(_, word)| *word);
    kept.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(log: &[&str]) -> Vec<String> {
        faults(&log.iter().filter_map(|line| parsed(line)).collect::<Vec<_>>(), Some("vda"))
    }

    #[test]
    fn a_warning_is_told_once_by_its_first_line() {
        let warning = [
            "4,900,10000000,-;------------[ cut here ]------------",
            "4,901,10000010,-;WARNING: CPU: 1 PID: 412 at fs/ext4/inode.c:123 ext4_writepages+0x10/0x20 [ext4]",
            "4,902,10000020,-;Modules linked in: ext4",
            "4,903,10000030,-;Call Trace:\n SUBSYSTEM=block",
        ];
        assert_eq!(told(&warning), ["WARNING: at fs/ext4/inode.c:123 ext4_writepages+0x10/0x20 [ext4]"]);
    }

    #[test]
    fn errors_are_faults_and_what_is_usual_is_none() {
        let log = [
            "6,1,1000000,-;EXT4-fs (vda): mounted filesystem",
            "4,2,1100000,-;EXT4-fs (vda): warning: mounting unchecked fs",
            "3,3,2000000,-;==================================================================",
            "3,4,2000001,-;BUG: KASAN: slab-out-of-bounds in f2fs_write+0x1/0x2",
            "3,5,2000002,-;Write of size 8 at addr ffff888 by task fio/412",
            "1,6,3000000,-;XFS (vda): Corruption detected. Unmount and run xfs_repair",
            "3,7,3500000,-;operation not supported error, dev vda, sector 8 op 0x9:(WRITE_ZEROES)",
            "3,7,3600000,-;EXT4-fs error (device loop3): of another device",
            "3,7,4000000,-;blk_update_request: I/O error, dev vda1, sector 8",
            "3,8,5000000,-;INFO: task fio:12 blocked for more than 120 seconds.",
        ];
        let expected = [
            "BUG: KASAN: slab-out-of-bounds in f2fs_write+0x1/0x2",
            "XFS (vda): Corruption detected. Unmount and run xfs_repair",
            "blk_update_request: I/O error, dev vda1, sector 8",
        ];
        assert_eq!(told(&log), expected);
        assert_eq!(told(&log[9..]), ["INFO: task fio:12 blocked for more than 120 seconds."]);
        assert!(names("XFS (loop1p2): x", "loop1") && !names("XFS (loop10): x", "loop1"));
        assert!(names("EXT4-fs error (device dm-0): x", "dm-0") && !names("error on dm-01", "dm-0"));
        assert!(told(&["", "x", "1;y", "a,b,c;z"]).is_empty());
    }
}
