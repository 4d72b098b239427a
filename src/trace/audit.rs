//! The audit of flushes: did each fsync that returned success have its data and its commit behind a flush or FUA, in order.
//!
//! Enters: block events, calls and filesystems' events of one device, in order. Leaves: an [`AuditSummary`]. Data belong to a call if
//! the calling task queued them within it; a trace does not say for which file another task writes. Whether the device has a write
//! cache may be known only later in the trace, so each call is judged for both cases.

use std::collections::{BTreeMap, HashMap};

use super::call::{Circumstances, Judgement, RunningCall};
use super::commit::{Commits, is_copy};
use super::event::{Action, Call, Comm, Device, Event, Filesystem};
use super::flags::Operation;
use super::in_flight::Bio;
use super::sector_table::Multiply;
use super::source::Lost;
use super::stable::{Answer, Stable};
use super::summary::Settings;
use super::tally::Cases;
use super::unwritten::Unwritten;
use super::verdict::{AuditSummary, JournalRange, Reason, Verdict, Violation, WriteCache};

/// Tasks whose last write is remembered.
const MOST_TASKS: usize = 1 << 14;

/// The audit of one device while the trace is read.
#[derive(Debug, Default)]
pub(super) struct Audit {
    device: Device,
    filesystem: Option<Filesystem>,
    journal: Option<JournalRange>,
    /// The sector of the disk at which the filesystem begins.
    starts_at: u64,
    write_cache: Option<WriteCache>,
    running: HashMap<u32, RunningCall>,
    number: u64,
    /// By task: when its last write was complete that is not durable by itself.
    tasks: HashMap<u32, u64, Multiply>,
    /// The same of all tasks.
    all_ns: u64,
    /// Writes of all tasks that are in flight, as far as their ends are seen.
    in_flight: u64,
    stable: Stable,
    commits: Commits,
    /// Of calls that surely were for this device.
    here: Cases,
    /// Of calls that may have been for another one: they count only if no filesystem's event ever says which device it is.
    perhaps: Cases,
    failed_calls: u64,
    elsewhere: u64,
    not_audited: u64,
    /// Flushes or FUA reached this device: it has a write cache.
    seen_flush: bool,
    /// When a flush was last asked for.
    asked_ns: u64,
    /// The trace has filesystems' events, so that a call without one was for another filesystem.
    seen_file_sync: bool,
    /// An event of another filesystem than the one that was named said that it is of this device.
    of_another_filesystem: bool,
    /// Until when events are missing.
    hole_ns: Option<u64>,
    /// Events are missing at a place that is not known.
    hole_somewhere: bool,
    /// Completions are missing at a place that is not known.
    ends_missing: bool,
}

impl Audit {
    /// Begins for a device.
    pub(super) fn new(device: Device, settings: &Settings) -> Audit {
        let Settings { filesystem, journal, starts_at, write_cache, queues, .. } = *settings;
        Audit {
            device,
            filesystem,
            journal,
            starts_at,
            write_cache,
            stable: Stable::of_queues(queues),
            ..Audit::default()
        }
    }

    /// A bio was queued. Returns the number of the call it belongs to, or 0.
    pub(super) fn queue(&mut self, event: &Event) -> u64 {
        if !event.flags.writes() {
            return 0;
        }
        self.seen_flush |= event.flags.preflush() || event.flags.fua();
        if event.flags.preflush() {
            self.asked_ns = event.time_ns;
        }
        self.in_flight += u64::from(event.sectors > 0);
        self.commits.queue(event, self.starts_at, self.filesystem, self.journal, self.all_ns);
        if is_copy(self.filesystem, event.sector, self.starts_at) {
            return 0;
        }
        let Some(call) = self.running.get_mut(&event.pid) else { return 0 };
        if event.sectors > 0 {
            call.writes += 1;
            call.open += 1;
            if !event.flags.fua() {
                call.queued_ns = event.time_ns;
            }
        } else {
            call.awaits_flush = true;
        }
        call.id
    }

    /// The call of this task wrote data that others may be in flight for: their ends may be taken for one another's.
    pub(super) fn beside_another(&mut self, pid: u32) {
        if let Some(call) = self.running.get_mut(&pid) {
            call.beside_another = true;
        }
    }

    /// A request went to the driver.
    pub(super) fn issue(&mut self, event: &Event) {
        if event.flags.operation == Operation::Flush {
            self.seen_flush = true;
            self.asked_ns = event.time_ns;
            self.stable.issued(event.time_ns);
            return;
        }
        if !event.flags.writes() {
            return;
        }
        for commit in self.commits.issue(event, &mut self.stable) {
            // The commit that a call waits for is queued after the call's data are complete.
            for (pid, call) in &mut self.running {
                if call.data_ns == 0 || call.data_ns > commit.queued_ns {
                    continue;
                }
                match self.stable.holds(call.data_ns) {
                    Answer::Yes => call.commit_in_order = true,
                    _ if commit.only_pid.is_some_and(|only| only != *pid) => {}
                    Answer::Unclear => call.unclear_commit = true,
                    Answer::No => call.early_commit = call.early_commit.or(Some(commit.sector)),
                }
            }
        }
    }

    /// The driver gave a request back.
    pub(super) fn requeue(&mut self, event: &Event) {
        if event.flags.operation == Operation::Flush {
            self.stable.requeued();
        }
    }

    /// A flush command completed. Returns how long it took, as far as [`Stable::completed`] knows.
    pub(super) fn flush_complete(&mut self, event: &Event) -> Option<u64> {
        self.stable.completed(event.time_ns, event.error == 0)
    }

    /// A bio's data are complete, or it has ended, or both.
    pub(super) fn bio(&mut self, bio: &Bio, event: &Event, data: bool, ended: bool, is_bio_device: bool) {
        if !bio.flags.writes() {
            return;
        }
        let success = event.error == 0;
        if data && bio.sectors > 0 {
            // The flag of the completion says what the device did, not what was asked.
            let fua = event.flags.fua() && success;
            self.commits.data_complete(bio, fua);
            if bio.flags.preflush() && success {
                // Of a device without requests no flush command is seen.
                match is_bio_device {
                    true => self.stable.bio_flushed(bio.queued_ns, bio.latest_ns),
                    false => self.stable.waited_for(bio.queued_ns),
                }
            }
            if !fua && !is_copy(self.filesystem, bio.sector, self.starts_at) {
                self.all_ns = self.all_ns.max(event.time_ns);
                self.remember(bio.pid, event.time_ns);
            }
            self.data_of_call(bio, event.time_ns, fua, success);
        } else if is_bio_device && bio.flags.preflush() && success {
            self.stable.bio_flushed(bio.queued_ns, bio.latest_ns);
        }
        if ended {
            if let Some((commit, answer)) = self.commits.end(bio, !data && success, &mut self.stable)
                && answer != Answer::Yes
            {
                for call in self.running.values_mut().filter(|call| call.entered_ns <= commit.queued_ns) {
                    match answer {
                        Answer::No => call.weak_commit = call.weak_commit.or(Some(commit.sector)),
                        _ => call.unclear_commit = true,
                    }
                }
            }
            self.in_flight = self.in_flight.saturating_sub(u64::from(bio.sectors > 0));
            if bio.sectors == 0 {
                self.running.values_mut().for_each(|call| call.awaits_flush = false);
            } else if bio.call != 0
                && let Some(call) = self.running.get_mut(&bio.pid)
                && call.id == bio.call
            {
                call.open = call.open.saturating_sub(1);
            }
        }
    }

    fn data_of_call(&mut self, bio: &Bio, time_ns: u64, fua: bool, success: bool) {
        if bio.call != 0
            && let Some(call) = self.running.get_mut(&bio.pid)
            && call.id == bio.call
        {
            call.failed_write |= !success;
            if !fua {
                call.data_ns = call.data_ns.max(time_ns);
            }
        }
        // Where the journal's place is not known metadata may be of it: enough for a doubt, and for no violation.
        let is_known = self.journal.is_some();
        if self.journal.map_or(bio.flags.meta(), |journal| journal.holds(bio.sector)) {
            for call in self.running.values_mut() {
                call.journal_ended |= is_known;
                call.journal_ns = if fua { call.journal_ns } else { time_ns };
            }
        }
    }

    fn remember(&mut self, pid: u32, time_ns: u64) {
        if self.tasks.len() >= MOST_TASKS {
            let stable = &self.stable;
            self.tasks.retain(|_, latest| stable.holds(*latest) != Answer::Yes);
            if self.tasks.len() >= MOST_TASKS {
                self.tasks.clear();
            }
        }
        self.tasks.insert(pid, time_ns);
    }

    /// A system call or a filesystem's sync of a file begins or ends.
    pub(super) fn call(&mut self, event: &Event) {
        match event.action {
            Action::Enter(call) if is_audited(call) => self.begin(event, Some(call)),
            Action::Exit(call) if is_audited(call) => self.returned(event, Some(call)),
            Action::Exit(_) => self.not_audited += 1,
            Action::FileSync(filesystem) => self.file_sync(event, filesystem),
            Action::FileSyncEnd if self.running.get(&event.pid).is_some_and(|call| call.call.is_none()) => {
                self.returned(event, None);
            }
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, call: Option<Call>) {
        self.number += 1;
        let running = RunningCall {
            id: self.number,
            call,
            comm: event.comm,
            entered_ns: event.time_ns,
            descriptor: call.map(|_| event.sector),
            hole: self.hole_ns.is_some_and(|until| event.time_ns < until),
            ..RunningCall::default()
        };
        self.running.insert(event.pid, running);
    }

    /// A filesystem begins to sync a file: within a system call, or for a write that is durable by itself.
    fn file_sync(&mut self, event: &Event, filesystem: Filesystem) {
        self.seen_file_sync = true;
        let here = event.device == self.device || !event.device.is_some();
        if here {
            let known = *self.filesystem.get_or_insert(filesystem);
            self.of_another_filesystem |= event.device.is_some() && known != filesystem;
        }
        if !self.running.contains_key(&event.pid) {
            // XFS and btrfs say only that it begins, so that its end would not be seen.
            if !matches!(filesystem, Filesystem::Ext4 | Filesystem::F2fs) {
                return;
            }
            self.begin(event, None);
        }
        if let Some(call) = self.running.get_mut(&event.pid) {
            call.here |= here;
            call.elsewhere |= !here;
            if here {
                call.inode = Some(event.sector);
            }
        }
    }

    fn returned(&mut self, event: &Event, call: Option<Call>) {
        let Some(running) = self.running.remove(&event.pid) else {
            for tally in [&mut self.perhaps.back, &mut self.perhaps.through] {
                *tally.undecided.entry(Reason::BeganBefore).or_default() += 1;
            }
            return;
        };
        if event.error != 0 {
            self.failed_calls += 1;
            return;
        }
        if running.elsewhere && running.writes == 0 {
            self.elsewhere += 1;
            return;
        }
        let hole = running.hole || self.hole_ns.is_some_and(|until| running.entered_ns < until);
        let (back, through) = match (hole, self.filesystem) {
            (true, _) => undecided(Reason::LostEvents),
            (false, None) => undecided(Reason::UnknownFilesystem),
            (false, Some(filesystem)) => {
                let around = Circumstances {
                    filesystem,
                    stable: &self.stable,
                    asked_ns: self.asked_ns,
                    earlier_ns: self.tasks.get(&event.pid).copied(),
                    all_ns: (self.hole_ns.is_none() && self.in_flight == 0).then_some(self.all_ns),
                    has_commits: self.commits.counts.queued > 0,
                };
                let back = match running.judge_write_back(&around) {
                    // A commit that is not known to have ended is not known to be durable.
                    Judgement::Pass if self.commits.awaited_since(running.entered_ns) => {
                        Judgement::PassIfAllEndsWereSeen
                    }
                    other => other,
                };
                (back, running.judge_write_through())
            }
        };
        let violation = |reason: Reason, sector: Option<u64>| Violation {
            call: call.map_or("file sync", Call::name),
            reason,
            inode: running.inode,
            descriptor: running.descriptor,
            pid: event.pid,
            comm: name_of(running.comm, event.comm),
            entered_ns: running.entered_ns,
            returned_ns: event.time_ns,
            sector,
        };
        let cases = if running.here || running.writes > 0 { &mut self.here } else { &mut self.perhaps };
        cases.back.add(back, violation);
        cases.through.add(through, violation);
    }

    /// Events are missing.
    pub(super) fn lost(&mut self, lost: &Lost) {
        self.hole_somewhere |= lost.until_ns == 0;
        self.hole_ns = self.hole_ns.max(Some(lost.until_ns));
        self.running.values_mut().for_each(|call| call.hole = true);
        self.forget();
    }

    /// What is known of writes and flushes may not be true any more.
    pub(super) fn forget(&mut self) {
        self.tasks.clear();
        self.in_flight = 0;
        self.stable.forget();
        self.commits.forget();
    }

    /// Events are missing, nobody knows where.
    pub(super) fn unwritten(&mut self, unwritten: Unwritten) {
        self.ends_missing |= unwritten.ends > 0;
        self.hole_somewhere |= unwritten.others > 0;
    }

    /// What the audit says at the end; `begin_ns` is the time of the trace's first event, and data may have been
    /// queued for sectors where other data were in flight.
    pub(super) fn finish(mut self, begin_ns: u64, write_beside_another: bool) -> AuditSummary {
        let cache = match (self.write_cache, self.seen_flush) {
            (Some(WriteCache::Through), true) => Err(Reason::WriteCacheContradicted),
            (Some(cache), _) => Ok(cache),
            (None, true) => Ok(WriteCache::Back),
            (None, false) => Err(Reason::UnknownWriteCache),
        };
        let (mut tally, perhaps) = match cache {
            Ok(WriteCache::Through) => (self.here.through, self.perhaps.through),
            _ => (self.here.back, self.perhaps.back),
        };
        if self.seen_file_sync {
            self.elsewhere += perhaps.calls();
        } else {
            tally.join(perhaps);
        }
        if let Err(reason) = cache {
            tally.doubt(reason);
        }
        if self.of_another_filesystem {
            tally.doubt(Reason::FilesystemContradicted);
        } else if self.commits.lie_elsewhere() {
            tally.doubt(Reason::JournalContradicted);
        }
        if self.hole_somewhere || self.ends_missing && write_beside_another {
            tally.doubt(Reason::LostEvents);
        } else if self.ends_missing {
            tally.doubt_absences(Reason::LostEvents);
        }
        let first = |reasons: &BTreeMap<Reason, u64>| {
            reasons.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| *reason)
        };
        let mut first_violation = tally.take_first();
        let (verdict, reason) = if let Some(violation) = &first_violation {
            (Verdict::Violation, Some(violation.reason))
        } else if let Some(reason) = first(&tally.undecided) {
            (Verdict::Undecidable, Some(reason))
        } else if tally.passed > 0 {
            (Verdict::Pass, None)
        } else {
            (Verdict::Undecidable, Some(Reason::NoCalls))
        };
        if let Some(violation) = &mut first_violation {
            violation.entered_ns = violation.entered_ns.saturating_sub(begin_ns);
            violation.returned_ns = violation.returned_ns.saturating_sub(begin_ns);
        }
        AuditSummary {
            verdict,
            reason,
            filesystem: self.filesystem,
            write_cache: cache.ok(),
            write_cache_from_trace: self.write_cache.is_none() && self.seen_flush,
            calls: tally.calls(),
            passed: tally.passed,
            undecided: tally.undecided,
            violations: tally.violations,
            first_violation,
            failed_calls: self.failed_calls,
            calls_elsewhere: self.elsewhere,
            calls_not_audited: self.not_audited,
            calls_unfinished: self.running.drain().filter(|(_, call)| !call.elsewhere).count() as u64,
            commits: self.commits.counts,
        }
    }
}

/// Calls whose data the calling task writes.
fn is_audited(call: Call) -> bool {
    matches!(call, Call::Fsync | Call::Fdatasync)
}

/// The same doubt in both cases.
fn undecided(reason: Reason) -> (Judgement, Judgement) {
    (Judgement::Undecided(reason), Judgement::Undecided(reason))
}

/// The task's name, from whichever event says it.
fn name_of(first: Comm, second: Comm) -> String {
    if first.is_empty() { second.to_string() } else { first.to_string() }
}
