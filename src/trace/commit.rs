//! Commit records: whether what they follow was stable when they went to the device, and whether they were durable at their end.
//!
//! Enters: writes of one device, the state of its flushes. Leaves: counts, and for each commit what it means for calls in progress.
//! XFS: fs/xfs/xfs_log_cil.c (the first iclog of a checkpoint carries PREFLUSH, the commit record PREFLUSH and FUA); ext4:
//! fs/jbd2/commit.c, `journal_submit_commit_record`; btrfs: fs/btrfs/disk-io.c, `write_all_supers`; F2FS: fs/f2fs/checkpoint.c,
//! `commit_checkpoint`.

use serde::Serialize;

use super::event::{Event, Filesystem};
use super::in_flight::Bio;
use super::stable::{Answer, Stable};
use super::verdict::JournalRange;

/// The superblock of btrfs.
const BTRFS_SUPERBLOCK: u64 = 128;
/// Its copies, at 64 MiB and 256 GiB, which are written without FUA: nothing depends on them until the first is lost.
const BTRFS_COPIES: [u64; 2] = [1 << 17, 1 << 29];
/// Commits in progress; a journal has one or a few.
const MOST: usize = 4096;

/// Counts of commit records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CommitCounts {
    /// Queued.
    pub queued: u64,
    /// Issued when all that had completed before was stable.
    pub in_order: u64,
    /// Issued too early. Not counted on btrfs, where it cannot be told from a commit beside other tasks' writes.
    pub out_of_order: u64,
    /// Ended behind a flush or FUA.
    pub durable: u64,
    /// Ended behind neither.
    pub not_durable: u64,
}

/// A commit record between its queueing and its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) sector: u64,
    pub(super) queued_ns: u64,
    /// The task that queued it, where its order counts for that task alone: the flush of btrfs is issued before the superblock is
    /// queued, so that data which complete between the two are not what it commits.
    pub(super) only_pid: Option<u32>,
    /// When the last write before it had completed.
    before_ns: u64,
    judged: bool,
    /// It asks for a flush before it.
    preflush: bool,
    /// The device wrote it through its cache.
    fua: bool,
}

/// The commit records of one device.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pending: Vec<Commit>,
    /// Writes that would be commit records, but for the journal that was named.
    outside: u64,
    pub(super) counts: CommitCounts,
}

/// Whether a queued write is a commit record of a filesystem that begins at this sector.
fn is_commit(
    event: &Event,
    starts_at: u64,
    filesystem: Option<Filesystem>,
    journal: Option<JournalRange>,
) -> bool {
    let flags = event.flags;
    if !flags.writes() || event.sectors == 0 {
        return false;
    }
    let in_journal = journal.map_or(flags.meta(), |journal| journal.holds(event.sector));
    match filesystem {
        Some(Filesystem::Btrfs) => {
            (event.sector..event.end()).contains(&starts_at.saturating_add(BTRFS_SUPERBLOCK))
        }
        Some(Filesystem::Xfs) => flags.fua() && in_journal,
        // The journal's first block is its superblock, which orders nothing.
        Some(Filesystem::Ext4) => {
            let superblock = journal.is_some_and(|journal| journal.first() == event.sector);
            flags.fua() && flags.preflush() && in_journal && !superblock
        }
        Some(Filesystem::F2fs) | None => flags.fua() && flags.preflush() && flags.meta(),
    }
}

/// Whether a write is a copy of what is durable without it, on a filesystem that begins at this sector.
pub(super) fn is_copy(filesystem: Option<Filesystem>, sector: u64, starts_at: u64) -> bool {
    filesystem == Some(Filesystem::Btrfs)
        && BTRFS_COPIES.iter().any(|copy| starts_at.saturating_add(*copy) == sector)
}

impl Commits {
    /// A write was queued; the filesystem begins at sector `starts_at`; `before_ns` is when the last write had completed.
    pub(super) fn queue(
        &mut self,
        event: &Event,
        starts_at: u64,
        filesystem: Option<Filesystem>,
        journal: Option<JournalRange>,
        before_ns: u64,
    ) {
        let is_outside = journal.is_some_and(|journal| !journal.holds(event.sector));
        if is_outside && is_commit(event, starts_at, filesystem, None) {
            self.outside += 1;
        }
        if is_commit(event, starts_at, filesystem, journal) {
            // So many are never in flight: the end of the oldest was not seen.
            if self.pending.len() >= MOST {
                self.pending.remove(0);
            }
            self.counts.queued += 1;
            self.pending.push(Commit {
                sector: event.sector,
                queued_ns: event.time_ns,
                only_pid: (filesystem == Some(Filesystem::Btrfs)).then_some(event.pid),
                before_ns,
                judged: false,
                preflush: event.flags.preflush(),
                fua: false,
            });
        }
    }

    /// A write went to the driver. Gives the commit records within it. One that asked for a flush before it has waited for
    /// that.
    pub(super) fn issue(&mut self, event: &Event, stable: &mut Stable) -> Vec<Commit> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let mut issued = Vec::new();
        for commit in &mut self.pending {
            if !commit.judged && (event.sector..event.end()).contains(&commit.sector) {
                commit.judged = true;
                if commit.preflush {
                    stable.waited_for(commit.queued_ns);
                }
                match stable.holds(commit.before_ns) {
                    Answer::Yes => self.counts.in_order += 1,
                    Answer::No if commit.only_pid.is_none() => self.counts.out_of_order += 1,
                    Answer::No | Answer::Unclear => {}
                }
                issued.push(*commit);
            }
        }
        issued
    }

    /// The data of a write are complete; `fua` says that the device wrote them through its cache.
    pub(super) fn data_complete(&mut self, bio: &Bio, fua: bool) {
        let found = self.pending.iter_mut().find(|commit| commit.is(bio));
        if let Some(commit) = found {
            commit.fua |= fua;
        }
    }

    /// A write has ended; `later`: not with its data, but with what follows them, which is a flush where the device did not write
    /// through its cache. Gives the commit and whether it is durable, if it was one.
    pub(super) fn end(&mut self, bio: &Bio, later: bool, stable: &mut Stable) -> Option<(Commit, Answer)> {
        let place = self.pending.iter().position(|commit| commit.is(bio))?;
        let commit = self.pending.remove(place);
        // Each part of a bio that was cut has its own flush.
        if later && bio.flags.fua() && !commit.fua && !bio.cut {
            stable.waited_for(bio.data_ns);
        }
        let answer = if commit.fua { Answer::Yes } else { stable.holds(bio.data_ns) };
        match answer {
            Answer::Yes => self.counts.durable += 1,
            Answer::No => self.counts.not_durable += 1,
            Answer::Unclear => {}
        }
        Some((commit, answer))
    }

    /// Whether the end of one is awaited that was queued at this time or later.
    pub(super) fn awaited_since(&self, time_ns: u64) -> bool {
        self.pending.iter().any(|commit| commit.queued_ns >= time_ns)
    }

    /// Whether there are only such that the journal that was named does not hold.
    pub(super) fn lie_elsewhere(&self) -> bool {
        self.counts.queued == 0 && self.outside > 0
    }

    pub(super) fn forget(&mut self) {
        self.pending.clear();
    }
}

impl Commit {
    fn is(&self, bio: &Bio) -> bool {
        self.sector == bio.sector && self.queued_ns == bio.queued_ns
    }
}
