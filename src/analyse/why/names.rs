//! What observers call what the rules look at, in one table.
//!
//! Enters: names of metrics and of the kernel's functions. Leaves: what they mean to a rule. It must not know values.

use super::super::budget::BudgetPart;

/// Processor time by part of the kernel (`--observe cpu`).
pub(super) const CPU_AT: &str = "cpu.at.";
/// Processor time by function of a program (`--observe cpu`).
pub(super) const USER_AT: &str = "cpu.user_at.";
/// Waits by lock and caller (`--observe locks`).
pub(super) const LOCKS_AT: &str = "locks.at.";
/// How many of these waits.
pub(super) const LOCK_WAITS_AT: &str = "locks.waits_at.";
/// The longest of them.
pub(super) const LONGEST_WAIT_AT: &str = "locks.longest_at.";
/// Reported by every trial whose locks were watched.
pub(super) const LOCKS_WATCHED: &str = "locks.lost";
/// Sleeps by function (`--observe waits`).
pub(super) const WAITS_AT: &str = "waits.at.";
/// Sleep at a function until a waker ended it, the two names behind one another (`--observe waits`).
pub(super) const WOKEN_AT: &str = "waits.woken_at.";
/// The waker of sleeps of which no waking was seen.
pub(super) const UNSEEN: &str = "unseen";
/// How much of it was waiting for storage.
pub(super) const STORAGE_WATCHED: &str = "waits.storage_time";
/// What workers waited for a processor: counted in every trial.
pub(super) const RUN_WAIT: &str = "workers.run_wait";
/// What they waited in the middle of their work (`--observe waits`).
pub(super) const PREEMPTED: &str = "waits.preempted_time";
/// Events of sleeps that were not read (`--observe waits`).
pub(super) const WAITS_LOST: &str = "waits.lost";
/// The part of the kernel that copies.
pub(super) const COPY: &str = "copy";
/// What observers count: a trial that has one of these was watched.
pub(super) const WATCHED: [&str; 6] =
    ["cpu.samples", "locks.lost", "waits.lost", "calls.lost", "blocks.lost", "fs.lost"];
/// Means of a request's time at the device (`--observe blocks`), beside the device's own counters.
pub(super) const DEVICE_TIMES: [&str; 2] = ["blocks.read.d2c.mean", "blocks.write.d2c.mean"];
/// Mean size of a request (`--observe blocks`).
pub(super) const REQUEST_SIZES: [&str; 2] = ["blocks.read_request_size", "blocks.write_request_size"];
/// Flushes as the block layer saw them, and their time (`--observe blocks`).
pub(super) const FLUSHES: &str = "blocks.flushes";
/// Writes with data, as bios (`--observe blocks`).
pub(super) const WRITE_BIOS: &str = "blocks.write_bios";
/// Bios that ask for one, also where a device has no requests (`--observe blocks`).
pub(super) const FLUSH_BIOS: &str = "blocks.flush_bios";
/// The time of all flushes (`--observe blocks`).
pub(super) const FLUSH_TIME: &str = "blocks.flush_time";
/// What was written to the journal (`--observe blocks`).
pub(super) const JOURNAL_BYTES: &str = "blocks.journal_bytes";
/// How long commits took (`--observe fs`).
pub(super) const COMMIT_TIME: &str = "fs.time.commit";

/// What a place is at which threads sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A flush of the device's cache.
    Flush,
    /// A commit of a journal.
    Commit,
    /// The way into a lock.
    Lock,
    /// Anything else.
    Other,
}

/// How the names of functions begin that wait for a flush.
const FLUSH: [&str; 7] = [
    "blkdev_issue_flush", "blkdev_fsync", "blkdev_flush", "md_flush_request", "f2fs_issue_flush",
    "barrier_all_devices", "wait_dev_flush",
];
/// How the names of functions begin that wait for a commit. `__jbd2_log_wait_for_space` waits for a checkpoint: the journal is full.
const COMMIT: [&str; 13] = [
    "jbd2_log_wait_commit", "jbd2_complete_transaction", "jbd2_", "wait_transaction_", "xlog_cil_",
    "xlog_wait", "xlog_force", "xfs_log_force", "xlog_state_", "btrfs_wait_for_commit",
    "btrfs_commit_transaction", "wait_log_commit", "f2fs_issue_checkpoint",
];
/// How the names of functions begin in which a thread waits for a lock.
const LOCK: [&str; 8] =
    ["__mutex_lock", "mutex_", "rwsem_", "down_", "__down", "percpu_", "__percpu_", "rt_mutex"];
/// What is in the names of functions whose sleep the kernel counts as waiting for block I/O (io_schedule()).
const FOR_STORAGE: [&str; 14] = [
    "dio", "folio_", "wait_on_page", "writeback", "rq_qos", "balance_dirty", "blkdev_", "blk_", "bio_",
    "filemap_", "iomap_", "io_cqring", "wait_on_buffer", "do_get_write_access",
];

/// What a place is, by the function's name.
pub(super) fn place(function: &str) -> Place {
    let begins = |names: &[&str]| names.iter().any(|name| function.starts_with(name));
    if begins(&FLUSH) {
        Place::Flush
    } else if begins(&COMMIT) {
        Place::Commit
    } else if begins(&LOCK) {
        Place::Lock
    } else {
        Place::Other
    }
}

/// The part of the budget that a sleep belongs to, where waiting for storage was counted apart.
pub(super) fn part_of_sleep(function: &str) -> BudgetPart {
    let for_storage =
        place(function) != Place::Commit && FOR_STORAGE.iter().any(|name| function.contains(name));
    if for_storage { BudgetPart::WaitingForStorage } else { BudgetPart::Asleep }
}

/// What an rwlock is with PREEMPT_RT: its waiters sleep.
const SLEEPING_RWLOCK: &str = "rwlock-rt";

/// Whether waiters for a lock of this kind do nothing but sleep. For a mutex they may spin first, and the wait is both (`--observe locks`
/// counts it as one).
pub(super) fn only_sleeps(kind: &str) -> bool {
    ["rwsem", "pcpu-rwsem", "percpu-rwsem", "rtmutex", SLEEPING_RWLOCK, "semaphore"]
        .iter()
        .any(|name| kind.starts_with(name))
}

/// Whether a place is the way into a mutex.
pub(super) fn is_mutex(function: &str) -> bool {
    ["__mutex_lock", "mutex_"].iter().any(|name| function.starts_with(name))
}

/// Whether waiters for a lock of this kind spin on a processor.
pub(super) fn spins(kind: &str) -> bool {
    ["spinlock", "rwlock"].iter().any(|name| kind.starts_with(name)) && !kind.starts_with(SLEEPING_RWLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_what_their_functions_do() {
        for (function, expected) in [
            ("blkdev_issue_flush", Place::Flush),
            ("jbd2_log_wait_commit", Place::Commit),
            ("xlog_wait_on_iclog", Place::Commit),
            ("__mutex_lock.constprop.0", Place::Lock),
            ("__iomap_dio_rw", Place::Other),
        ] {
            assert_eq!(place(function), expected, "{function}");
        }
    }

    #[test]
    fn a_sleep_for_the_device_is_waiting_for_storage() {
        for function in ["__iomap_dio_rw", "blkdev_issue_flush", "folio_wait_writeback", "rq_qos_wait"] {
            assert_eq!(part_of_sleep(function), BudgetPart::WaitingForStorage, "{function}");
        }
        for function in ["jbd2_log_wait_commit", "xlog_wait_on_iclog", "ext4_buffered_write_iter"] {
            assert_eq!(part_of_sleep(function), BudgetPart::Asleep, "{function}");
        }
        assert!(spins("spinlock") && spins("rwlock_W") && !spins("rwsem_W") && !spins("mutex"));
        assert!(only_sleeps("semaphore"));
        assert!(only_sleeps("rwsem_W") && only_sleeps("pcpu-rwsem_R") && only_sleeps("rtmutex"));
        assert!(!only_sleeps("mutex") && !only_sleeps("rwlock_R") && !only_sleeps("unknown"));
        assert!(only_sleeps("rwlock-rt_W") && !spins("rwlock-rt_W") && !spins("rwlock-rt_R"));
        assert!(is_mutex("__mutex_lock.constprop.0") && !is_mutex("rt_mutex_slowlock"));
    }
}
