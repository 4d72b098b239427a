//! What the audit of flushes is asked and says.
//!
//! Enters: nothing. Leaves: the types of settings and findings.

use std::collections::BTreeMap;

use serde::Serialize;

use super::commit::CommitCounts;
use super::event::Filesystem;

/// What the queue said of its device's cache while the trace was taken (`queue/write_cache`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteCache {
    /// Completed writes may be lost without a flush.
    Back,
    /// Completed writes are durable. The block layer takes flush and FUA off before anything is traced.
    Through,
}

/// Where the journal lies: sectors from the first up to the end, which is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JournalRange {
    first: u64,
    end: u64,
}

impl JournalRange {
    /// These sectors. Nothing when there are none.
    #[must_use]
    pub fn new(first: u64, end: u64) -> Option<JournalRange> {
        (first < end).then_some(JournalRange { first, end })
    }

    pub(super) fn first(self) -> u64 {
        self.first
    }

    pub(super) fn holds(self, sector: u64) -> bool {
        (self.first..self.end).contains(&sector)
    }
}

/// Whether data were durable when it was said that they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Every audited call had its data and commit behind a flush or FUA, in order.
    Pass,
    /// It cannot be said of some.
    Undecidable,
    /// A call returned too early.
    Violation,
}

named! {
    /// Why a call is a violation, or why nothing can be said of it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// A write of the call failed, and the call returned success.
        WriteFailed = "a write of the call failed, and the call returned success",
        /// A write or flush of the call was not complete.
        ReturnedBeforeWrite = "the call returned before its own write or flush was complete",
        /// A commit record went to the device before the data it follows were behind a flush.
        CommitBeforeData = "the commit record was issued before the data were behind a flush",
        /// A commit record was complete and behind neither flush nor FUA.
        CommitNotDurable = "the commit record is behind neither a flush nor FUA",
        /// Data were complete and behind no flush.
        DataNotFlushed = "the data are behind no flush",
        /// Journal writes ended within the call, and no flush did.
        CommitNotFlushed = "journal writes ended within the call, and no flush did",
        /// The trace has no fsync or fdatasync.
        NoCalls = "the trace has no fsync or fdatasync of this device",
        /// The filesystem is not known.
        UnknownFilesystem = "the filesystem is not known (--fs)",
        /// Whether the device has a write cache is not known.
        UnknownWriteCache = "the device's write cache is not known (--write-cache)",
        /// The cache was said to be write-through, and flushes reached the device.
        WriteCacheContradicted = "flushes reached the device, which write-through excludes",
        /// Another filesystem was named than the one whose events this device has.
        FilesystemContradicted = "events of another filesystem than --fs are of this device",
        /// All commit records lie outside of the journal that was named.
        JournalContradicted = "all commit records lie outside of --journal",
        /// Events are missing within the call, or nobody knows where.
        LostEvents = "events are missing, perhaps of the call",
        /// The call began before the trace.
        BeganBefore = "the call began before the trace",
        /// Several flushes were in flight, and which one completed is not in the trace.
        SeveralFlushes = "several flushes were in flight at once",
        /// Writes of other tasks are behind no flush, and whose data they are is not in the trace.
        WhoseWrites = "whose data the unflushed writes of other tasks are is not in the trace",
    }
}

/// A call that returned too early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// `fsync`, `fdatasync`, or `file sync` for a write that is durable by itself.
    pub call: &'static str,
    /// Why.
    pub reason: Reason,
    /// The inode, where the filesystem's events say it.
    pub inode: Option<u64>,
    /// The file descriptor, where the system call says it.
    pub descriptor: Option<u64>,
    /// The task.
    pub pid: u32,
    /// Its name; empty where the trace does not say it.
    pub comm: String,
    /// When the call began, from the trace's first event on.
    pub entered_ns: u64,
    /// When it returned.
    pub returned_ns: u64,
    /// The sector of the commit record, where that is the reason.
    pub sector: Option<u64>,
}

/// What the audit says of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditSummary {
    /// Of all audited calls the worst.
    pub verdict: Verdict,
    /// Why it is undecidable or a violation.
    pub reason: Option<Reason>,
    /// The filesystem, as given or as its events say.
    pub filesystem: Option<Filesystem>,
    /// The cache, as given or as the flushes in the trace say.
    pub write_cache: Option<WriteCache>,
    /// Whether the trace said it.
    pub write_cache_from_trace: bool,
    /// fsync and fdatasync, and writes durable by themselves, that returned success on this device.
    pub calls: u64,
    /// Those whose data were durable.
    pub passed: u64,
    /// Those of which nothing can be said, by reason.
    pub undecided: BTreeMap<Reason, u64>,
    /// Those that returned too early, by reason.
    pub violations: BTreeMap<Reason, u64>,
    /// The first of them.
    pub first_violation: Option<Violation>,
    /// Calls that returned an error: they promise nothing.
    pub failed_calls: u64,
    /// Calls for files of other devices.
    pub calls_elsewhere: u64,
    /// syncfs, sync and umount: their data are written by other tasks, so they are counted only.
    pub calls_not_audited: u64,
    /// Calls that had not returned when the trace ended.
    pub calls_unfinished: u64,
    /// Commit records, whoever waited for them.
    pub commits: CommitCounts,
}
