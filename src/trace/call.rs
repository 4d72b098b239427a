//! A call that makes data durable, while it runs, and how it is judged when it returns.
//!
//! Enters: what happened on the device since the call began. Leaves: pass, a violation or a doubt, for a device with a write-back
//! cache and for one without.

use super::event::{Call, Comm, Filesystem};
use super::stable::{Answer, Stable};
use super::verdict::Reason;

/// A call in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningCall {
    /// Its number, which bios queued within it carry; never 0.
    pub(super) id: u64,
    /// The system call; nothing for a filesystem's event without one.
    pub(super) call: Option<Call>,
    pub(super) comm: Comm,
    pub(super) entered_ns: u64,
    pub(super) descriptor: Option<u64>,
    pub(super) inode: Option<u64>,
    /// A filesystem's event said that it is for this device.
    pub(super) here: bool,
    /// The same, for another one.
    pub(super) elsewhere: bool,
    /// Writes with data that the calling task queued within it.
    pub(super) writes: u64,
    /// Of these, those that have not ended.
    pub(super) open: u64,
    /// It queued a bio that only asks for a flush, and no such bio of anybody has ended since: they carry no number, and a device with
    /// several queues ends them in any order.
    pub(super) awaits_flush: bool,
    /// When the last of its writes was complete that the device did not write through its cache.
    pub(super) data_ns: u64,
    /// When the last of its writes was queued that does not ask to be written through the cache.
    pub(super) queued_ns: u64,
    /// One of its writes was queued where others were in flight.
    pub(super) beside_another: bool,
    pub(super) failed_write: bool,
    /// A write of the journal ended within it.
    pub(super) journal_ended: bool,
    /// When the last such write was complete that the device did not write through its cache.
    pub(super) journal_ns: u64,
    /// A commit record that was issued before the call's data were stable.
    pub(super) early_commit: Option<u64>,
    /// A commit record that was issued when they were: an earlier one was of other tasks.
    pub(super) commit_in_order: bool,
    /// A commit record that ended and was not durable.
    pub(super) weak_commit: Option<u64>,
    /// One of the two, perhaps.
    pub(super) unclear_commit: bool,
    /// Events are missing within it.
    pub(super) hole: bool,
}

/// What is known beside the call.
pub(super) struct Circumstances<'a> {
    pub(super) filesystem: Filesystem,
    pub(super) stable: &'a Stable,
    /// When a flush was last asked for: as a command, or with a bio.
    pub(super) asked_ns: u64,
    /// When the last write of the calling task had completed that it queued before the call.
    pub(super) earlier_ns: Option<u64>,
    /// When the last write of anybody had completed; nothing if events are missing, or writes are in flight.
    pub(super) all_ns: Option<u64>,
    /// The trace has commit records, which are judged as such.
    pub(super) has_commits: bool,
}

/// How a call is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Pass,
    /// If every write that ended was seen to end.
    PassIfAllEndsWereSeen,
    Undecided(Reason),
    Violated(Reason, Option<u64>),
    /// If every end was seen.
    ViolatedIfAllEndsWereSeen(Reason, Option<u64>),
}

impl Judgement {
    /// The same where what it rests on needs no end to be seen.
    fn surely_if(self, sure: bool) -> Judgement {
        match self {
            ViolatedIfAllEndsWereSeen(reason, sector) if sure => Violated(reason, sector),
            other => other,
        }
    }
}

use Judgement::{Pass, PassIfAllEndsWereSeen, Undecided, Violated, ViolatedIfAllEndsWereSeen};

impl RunningCall {
    /// On a device without a volatile cache: its own writes must be complete.
    pub(super) fn judge_write_through(&self) -> Judgement {
        if self.failed_write {
            Violated(Reason::WriteFailed, None)
        } else if self.open > 0 && self.beside_another {
            Undecided(Reason::WhoseWrites)
        } else if self.open > 0 || self.awaits_flush {
            ViolatedIfAllEndsWereSeen(Reason::ReturnedBeforeWrite, None)
        } else {
            Pass
        }
    }

    /// On a device with a volatile cache: its data, and the commit behind them, must be stable, in this order.
    pub(super) fn judge_write_back(&self, around: &Circumstances<'_>) -> Judgement {
        let written = self.judge_write_through();
        if written != Pass {
            return written;
        }
        if let Some(sector) = self.early_commit.filter(|_| !self.commit_in_order) {
            return ViolatedIfAllEndsWereSeen(Reason::CommitBeforeData, Some(sector));
        }
        if let Some(sector) = self.weak_commit {
            return ViolatedIfAllEndsWereSeen(Reason::CommitNotDurable, Some(sector));
        }
        // Where no commit asks for a flush any write of the journal may be one.
        let is_open = self.journal_ns > 0 && around.stable.holds(self.journal_ns) != Answer::Yes;
        let always = matches!(around.filesystem, Filesystem::Xfs | Filesystem::Ext4);
        if self.writes > 0 {
            return match around.stable.holds(self.data_ns) {
                Answer::No => ViolatedIfAllEndsWereSeen(Reason::DataNotFlushed, None)
                    .surely_if(around.asked_ns < self.queued_ns),
                Answer::Yes if always && !around.has_commits && is_open => Undecided(Reason::WhoseWrites),
                Answer::Yes if !self.unclear_commit => Pass,
                Answer::Yes | Answer::Unclear => Undecided(Reason::SeveralFlushes),
            };
        }
        self.judge_without_writes(around)
    }

    /// The calling task wrote nothing within the call: its data were written before, or by others.
    fn judge_without_writes(&self, around: &Circumstances<'_>) -> Judgement {
        // A flush that began after the call covers all that had been written, by whomever.
        match around.stable.holds(self.entered_ns) {
            Answer::Yes if !self.unclear_commit => return Pass,
            Answer::Yes | Answer::Unclear => return Undecided(Reason::SeveralFlushes),
            Answer::No => {}
        }
        // XFS and ext4 end every fsync with a flush, unless nothing was written since the last one (xfs_file_fsync,
        // ext4_fsync_journal); btrfs and F2FS skip files that they know to be clean.
        let always = matches!(around.filesystem, Filesystem::Xfs | Filesystem::Ext4);
        if let Some(time_ns) = around.earlier_ns.filter(|time_ns| around.stable.holds(*time_ns) == Answer::No)
        {
            return if self.here && always {
                ViolatedIfAllEndsWereSeen(Reason::DataNotFlushed, None)
                    .surely_if(around.asked_ns < time_ns.min(self.entered_ns))
            } else {
                Undecided(Reason::WhoseWrites)
            };
        }
        if self.here && always && self.journal_ended && !around.stable.flushed_since(self.entered_ns) {
            return ViolatedIfAllEndsWereSeen(Reason::CommitNotFlushed, None)
                .surely_if(around.asked_ns < self.entered_ns);
        }
        match around.all_ns.map(|time_ns| around.stable.holds(time_ns)) {
            Some(Answer::Yes) => PassIfAllEndsWereSeen,
            _ => Undecided(Reason::WhoseWrites),
        }
    }
}
