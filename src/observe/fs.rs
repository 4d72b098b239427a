//! What the trial's filesystem does: commits of its journal, syncs of files, write-back, waits for room in the log (tracepoints of ext4 and
//! jbd2, xfs, btrfs, f2fs).
//!
//! Enters: the tracepoints of the filesystem that the trial is on. Leaves: how often each was met, and the times between those that begin
//! and end something. Counting is the kernel's own (a counter a tracepoint), so that counts are exact even where records were lost.
//!
//! Not among them are tracepoints that a write or read meets several times (`ext4_es_*`, `xfs_bmap*`): they would cost more than they tell.
//! Sources: include/trace/events/{jbd2,ext4,f2fs,btrfs}.h, fs/xfs/xfs_trace.h.

use std::collections::HashMap;

use rustix::io::Errno;

use super::perf::{
    MachineWatch, Place as Field, Read, Recorder, Refused, Tracefs, Wanted, distortion_note, lost_note,
    unwritten_note,
};
use super::subject::Subject;
use super::unseen::READER_DIED;
use super::waited::{Waited, count, seconds};
use super::{Observer, Place, Unseen};
use crate::record::{Note, Outcome};

/// What belongs together: the begin and the end of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    /// What the time is called.
    name: &'static str,
    begin: &'static str,
    end: &'static str,
    /// The field of both that says which of several it is; empty: the thread.
    key: &'static str,
}

/// One filesystem's tracepoints.
#[derive(Clone, Copy, Debug)]
struct Family {
    /// As mount tables call it.
    kind: &'static str,
    /// All, with their groups.
    events: &'static [&'static str],
    pairs: &'static [Pair],
}

const fn pair(name: &'static str, begin: &'static str, end: &'static str, key: &'static str) -> Pair {
    Pair { name, begin, end, key }
}

const FAMILIES: [Family; 4] = [
    Family {
        kind: "ext4",
        events: &[
            "jbd2/jbd2_start_commit",
            "jbd2/jbd2_commit_locking",
            "jbd2/jbd2_commit_flushing",
            "jbd2/jbd2_commit_logging",
            "jbd2/jbd2_end_commit",
            "jbd2/jbd2_run_stats",
            "jbd2/jbd2_checkpoint",
            "jbd2/jbd2_checkpoint_stats",
            "jbd2/jbd2_lock_buffer_stall",
            "jbd2/jbd2_submit_inode_data",
            "jbd2/jbd2_update_log_tail",
            "jbd2/jbd2_write_superblock",
            "ext4/ext4_sync_file_enter",
            "ext4/ext4_sync_file_exit",
            "ext4/ext4_sync_fs",
            "ext4/ext4_writepages",
            "ext4/ext4_writepages_result",
            "ext4/ext4_da_reserve_space",
            "ext4/ext4_da_release_space",
            "ext4/ext4_da_update_reserve_space",
            "ext4/ext4_da_write_pages",
            "ext4/ext4_da_write_folios_start",
            "ext4/ext4_allocate_blocks",
            "ext4/ext4_free_blocks",
            "ext4/ext4_mballoc_alloc",
            "ext4/ext4_fc_commit_start",
            "ext4/ext4_fc_commit_stop",
        ],
        pairs: &[
            pair("commit", "jbd2/jbd2_start_commit", "jbd2/jbd2_end_commit", "transaction"),
            pair("commit_locking", "jbd2/jbd2_commit_locking", "jbd2/jbd2_commit_flushing", "transaction"),
            pair("commit_flushing", "jbd2/jbd2_commit_flushing", "jbd2/jbd2_commit_logging", "transaction"),
            pair("commit_logging", "jbd2/jbd2_commit_logging", "jbd2/jbd2_end_commit", "transaction"),
            pair("sync", "ext4/ext4_sync_file_enter", "ext4/ext4_sync_file_exit", ""),
            pair("writeback", "ext4/ext4_writepages", "ext4/ext4_writepages_result", ""),
            pair("fast_commit", "ext4/ext4_fc_commit_start", "ext4/ext4_fc_commit_stop", ""),
        ],
    },
    Family {
        kind: "xfs",
        events: &[
            "xfs/xfs_file_fsync", "xfs/xfs_dir_fsync", "xfs/xfs_log_force", "xfs/xfs_log_cil_wait",
            "xfs/xlog_iclog_switch", "xfs/xlog_iclog_syncing", "xfs/xlog_iclog_sync_done",
            "xfs/xlog_iclog_wait_on", "xfs/xfs_log_grant_sleep", "xfs/xfs_log_grant_wake",
            "xfs/xfs_ail_push", "xfs/xfs_ail_flushing", "xfs/xfs_ail_pinned", "xfs/xfs_alloc_file_space",
        ],
        pairs: &[
            pair("log_write", "xfs/xlog_iclog_syncing", "xfs/xlog_iclog_sync_done", "lsn"),
            // Both in the thread that sleeps (xlog_grant_head_wait()); the field `tic` is there from Linux 6.11 on only.
            pair("log_space_wait", "xfs/xfs_log_grant_sleep", "xfs/xfs_log_grant_wake", ""),
        ],
    },
    Family {
        kind: "btrfs",
        events: &[
            "btrfs/btrfs_sync_file",
            "btrfs/btrfs_sync_fs",
            "btrfs/btrfs_transaction_commit",
            "btrfs/btrfs_ordered_extent_add",
            "btrfs/btrfs_ordered_extent_remove",
            "btrfs/btrfs_cow_block",
            "btrfs/btrfs_chunk_alloc",
            "btrfs/btrfs_reserve_extent",
            "btrfs/btrfs_flush_space",
        ],
        pairs: &[],
    },
    Family {
        kind: "f2fs",
        events: &[
            "f2fs/f2fs_sync_file_enter", "f2fs/f2fs_sync_file_exit", "f2fs/f2fs_sync_fs",
            "f2fs/f2fs_write_checkpoint", "f2fs/f2fs_issue_flush", "f2fs/f2fs_submit_write_bio",
            "f2fs/f2fs_submit_read_bio", "f2fs/f2fs_submit_page_write", "f2fs/f2fs_submit_folio_write",
            "f2fs/f2fs_writepages", "f2fs/f2fs_gc_begin", "f2fs/f2fs_gc_end", "f2fs/f2fs_issue_discard",
        ],
        pairs: &[
            pair("sync", "f2fs/f2fs_sync_file_enter", "f2fs/f2fs_sync_file_exit", ""),
            pair("gc", "f2fs/f2fs_gc_begin", "f2fs/f2fs_gc_end", ""),
        ],
    },
];

/// Watches the filesystem of a trial.
pub struct FsObserver {
    ready: Result<Ready, String>,
    watch: Result<MachineWatch<Times>, String>,
}

/// What is needed to begin.
struct Ready {
    names: Vec<String>,
    wanted: Vec<Wanted>,
    times: Option<Times>,
}

impl FsObserver {
    /// Looks up the filesystem and its tracepoints, which takes longer than a start may.
    #[must_use]
    pub fn prepared(place: &Place) -> FsObserver {
        let ready = Subject::under(&place.watched).and_then(|subject| Ready::of(&subject));
        FsObserver { ready, watch: Err("it was not started".to_owned()) }
    }
}

impl Ready {
    fn of(subject: &Subject) -> Result<Ready, String> {
        let kind = subject
            .kind
            .as_deref()
            .ok_or_else(|| format!("{} is used without a filesystem", subject.name))?;
        let family = FAMILIES.iter().find(|family| family.kind == kind);
        let family = family.ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().map(|family| family.kind).collect();
            format!("assay knows the tracepoints of {}, not those of {kind}", known.join(", "))
        })?;
        let tracefs = Tracefs::open().map_err(|errno| Refused::NoTracefs(errno).words())?;
        let mut ready = Ready { names: Vec::new(), wanted: Vec::new(), times: None };
        let mut times = Times::default();
        for event in family.events {
            let point = match tracefs.tracepoint(event) {
                Ok(point) => point,
                // Each kernel has its own.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(Refused::Kernel(errno).words()),
            };
            let filter = point.field("dev").map(|_| format!("dev == {}", subject.part.0)).unwrap_or_default();
            for (number, pair) in family.pairs.iter().enumerate() {
                let key = if pair.key.is_empty() { "common_pid" } else { pair.key };
                let Ok(field) = point.field(key) else { continue };
                for (name, is_end) in [(pair.begin, false), (pair.end, true)] {
                    if name == *event {
                        times.edges.entry(point.id).or_default().push(Edge { pair: number, is_end, field });
                    }
                }
            }
            let recorded = times.edges.contains_key(&point.id);
            ready.wanted.push(Wanted { id: point.id, filter, recorded });
            ready.names.push(event.rsplit('/').next().unwrap_or(event).to_owned());
        }
        if ready.wanted.is_empty() {
            return Err(format!("this kernel has no tracepoints of {kind}; boot one with CONFIG_FTRACE"));
        }
        times.pairs = family.pairs.iter().map(|pair| (pair.name, Waited::default())).collect();
        ready.times = Some(times);
        Ok(ready)
    }
}

impl Observer for FsObserver {
    fn start(&mut self) {
        self.watch = match &mut self.ready {
            Ok(ready) => match ready.times.take() {
                Some(times) => MachineWatch::start(&ready.wanted, times).map_err(|refused| refused.words()),
                None => Err("it was started twice".to_owned()),
            },
            Err(reason) => Err(reason.clone()),
        };
    }

    fn end(&mut self) {
        if let Ok(watch) = &self.watch {
            watch.end();
        }
    }

    /// `fs.count.EVENT`; of each pair that this kernel has `fs.time.NAME`, `fs.longest.NAME` (s) and `fs.times.NAME` (how many); `fs.lost`.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let not_begun = Err("it was not started".to_owned());
        let not_watched = |reason: String| Unseen::watched("fs is", reason);
        let watch = std::mem::replace(&mut self.watch, not_begun).map_err(not_watched)?;
        let elapsed = watch.elapsed();
        let seen = watch.stop().ok_or_else(|| not_watched(READER_DIED.to_owned()))?;
        let names = self.ready.as_ref().map(|ready| ready.names.as_slice()).unwrap_or_default();
        let counted = names.iter().zip(&seen.met);
        let mut outcome = Outcome::default();
        outcome.samples.extend(counted.map(|(name, met)| count(&format!("fs.count.{name}"), *met)));
        for (name, times) in seen.recorder.whole() {
            outcome.samples.push(seconds(&format!("fs.time.{name}"), times.sum_ns));
            outcome.samples.push(seconds(&format!("fs.longest.{name}"), times.longest_ns));
            outcome.samples.push(count(&format!("fs.times.{name}"), times.count));
        }
        if seen.recorder.unknown > 0 {
            outcome.samples.push(count("fs.unknown", seen.recorder.unknown));
        }
        outcome.samples.push(count("fs.lost", seen.lost + seen.unwritten));
        let of_watching = [lost_note("fs", seen.lost), unwritten_note("fs", "times", seen.unwritten)];
        outcome.notes.extend(of_watching.into_iter().flatten().map(Note::from));
        outcome.notes.extend(distortion_note("fs", Read::plain(seen.met.iter().sum()), elapsed));
        Ok(outcome)
    }
}

/// A record that begins or ends a pair.
#[derive(Clone, Copy, Debug)]
struct Edge {
    pair: usize,
    is_end: bool,
    field: Field,
}

/// Adds up the times of pairs.
#[derive(Debug, Default)]
struct Times {
    /// By the tracepoint's number. One tracepoint may end one thing and begin another.
    edges: HashMap<u64, Vec<Edge>>,
    pairs: Vec<(&'static str, Waited)>,
    /// What has begun, by pair and key.
    begun: HashMap<(usize, u64), u64>,
    /// Records that may have to wait for others: time, pair, whether it is the end, key.
    waiting: Vec<(u64, usize, bool, u64)>,
    /// Records of no tracepoint that was asked for.
    unknown: u64,
}

impl Times {
    /// Pairs of which this kernel has both ends.
    fn whole(&self) -> impl Iterator<Item = (&'static str, Waited)> {
        let has = |pair: usize, end: bool| {
            self.edges.values().flatten().any(|edge| edge.pair == pair && edge.is_end == end)
        };
        let whole = move |(pair, _): &(usize, _)| has(*pair, false) && has(*pair, true);
        self.pairs.iter().copied().enumerate().filter(whole).map(|(_, pair)| pair)
    }
}

impl Recorder for Times {
    fn record(&mut self, _processor: u32, time_ns: u64, raw: &[u8]) {
        let id = raw.first_chunk().map(|number| u64::from(u16::from_ne_bytes(*number)));
        let Some(edges) = id.and_then(|id| self.edges.get(&id)) else {
            self.unknown += 1;
            return;
        };
        for edge in edges {
            if let Some(key) = edge.field.of(raw) {
                self.waiting.push((time_ns, edge.pair, edge.is_end, key));
            }
        }
    }

    fn lost(&mut self, _processor: u32, _count: u64, _until_ns: u64) {
        // What has begun may have ended in the hole, and begun again.
        self.begun.clear();
        self.waiting.clear();
    }

    fn unwritten(&mut self, _id: u64, _count: u64) {
        // What seems not to have ended is not in the sums.
    }

    fn settled(&mut self, time_ns: u64) {
        self.waiting.sort_by_key(|(time_ns, ..)| *time_ns);
        let ready = self.waiting.partition_point(|(at_ns, ..)| *at_ns < time_ns);
        for (at_ns, pair, is_end, key) in self.waiting.drain(..ready) {
            if !is_end {
                self.begun.insert((pair, key), at_ns);
            } else if let (Some(begun_ns), Some((_, times))) =
                (self.begun.remove(&(pair, key)), self.pairs.get_mut(pair))
            {
                times.add(Waited::once(at_ns.saturating_sub(begun_ns)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_of_events_that_are_watched_and_names_are_single() {
        for family in FAMILIES {
            for pair in family.pairs {
                assert!(family.events.contains(&pair.begin) && family.events.contains(&pair.end), "{pair:?}");
            }
            let mut names: Vec<&str> = family.events.to_vec();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), family.events.len(), "{}", family.kind);
        }
    }

    #[test]
    fn waits_for_log_space_need_no_field_that_only_new_kernels_have() {
        let xfs = FAMILIES.iter().find(|family| family.kind == "xfs").unwrap();
        let wait = xfs.pairs.iter().find(|pair| pair.name == "log_space_wait").unwrap();
        assert_eq!(wait.key, "", "by the thread");
    }

    /// Tracepoint 7 begins pair 0; 8 ends it and begins pair 1; 9 ends pair 1.
    fn times() -> Times {
        let edge = |pair, is_end| Edge { pair, is_end, field: Field::at(8, 4) };
        let edges =
            [(7, vec![edge(0, false)]), (8, vec![edge(0, true), edge(1, false)]), (9, vec![edge(1, true)])];
        let pairs = vec![("first", Waited::default()), ("second", Waited::default())];
        Times { edges: edges.into_iter().collect(), pairs, ..Times::default() }
    }

    fn record(id: u16, key: u32) -> Vec<u8> {
        let mut raw = id.to_ne_bytes().to_vec();
        raw.resize(8, 0);
        raw.extend(key.to_ne_bytes());
        raw
    }

    #[test]
    fn one_end_may_be_another_begin_and_keys_are_kept_apart() {
        let mut times = times();
        // Of another processor the end of transaction 5 is read first.
        for (time_ns, id, key) in
            [(300, 8, 5), (100, 7, 5), (120, 7, 6), (420, 8, 6), (450, 9, 6), (460, 77, 1)]
        {
            times.record(0, time_ns, &record(id, key));
        }
        times.settled(u64::MAX);
        let whole: Vec<_> = times.whole().collect();
        let waited = |count, sum_ns, longest_ns| Waited { count, sum_ns, longest_ns };
        assert_eq!(whole, [("first", waited(2, 500, 300)), ("second", waited(1, 30, 30))]);
        assert_eq!(times.unknown, 1);
    }

    #[test]
    fn a_time_never_spans_a_hole_and_a_pair_without_an_end_is_none() {
        let mut times = times();
        times.record(0, 100, &record(7, 5));
        times.settled(200);
        times.lost(0, 3, 250);
        times.record(0, 300, &record(8, 5));
        times.settled(u64::MAX);
        assert_eq!(times.pairs[0].1, Waited::default());
        times.edges.remove(&9);
        assert_eq!(times.whole().map(|(name, _)| name).collect::<Vec<_>>(), ["first"]);
    }

    #[test]
    fn a_filesystem_that_is_not_known_is_named() {
        let mut observer = FsObserver::prepared(&Place { watched: "/proc".into(), ..Place::default() });
        observer.start();
        assert!(observer.stop().unwrap_err().to_string().starts_with("fs is not watched: /proc is on proc"));
    }
}
