//! The metrics that observers report whatever they see; places and parts, which only a run tells, are not here.
//!
//! Enters: an observer's name. Leaves: names of metrics. A test of the whole program compares them with a run's.

/// What an observer adds; `None`: not known.
pub(super) fn observed(observer: &str) -> Option<&'static [&'static str]> {
    Some(match observer {
        "extents" => &OF_EXTENTS,
        "cpu" => &OF_CPU,
        "locks" => &OF_LOCKS,
        "waits" => &OF_WAITS,
        "calls" => &OF_CALLS,
        "blocks" => &OF_BLOCKS,
        "fs" => &OF_FS,
        _ => return None,
    })
}

/// What `--observe extents` adds.
const OF_EXTENTS: [&str; 7] = [
    "extents.per_file",
    "extents.max",
    "extents.owner_changes",
    "extents.owner_changes_per_mib",
    "extents.mean_bytes",
    "extents.count",
    "extents.files",
];
/// What `--observe cpu` adds, besides parts of the kernel.
const OF_CPU: [&str; 4] = ["cpu.samples", "cpu.lost", "cpu.user_time", "cpu.kernel_time"];
/// What `--observe locks` adds, besides kinds and places.
const OF_LOCKS: [&str; 5] =
    ["locks.wait_time", "locks.waits", "locks.longest", "locks.lost", "locks.lost_time"];
/// What `--observe waits` adds, besides places.
const OF_WAITS: [&str; 9] = [
    "waits.sleep_time", "waits.storage_time", "waits.sleeps", "waits.longest", "waits.idle_time",
    "waits.preempted_time", "waits.wakeup_time", "waits.lost", "waits.lost_time",
];
/// What `--observe calls` adds, besides kinds of calls and places.
const OF_CALLS: [&str; 1] = ["calls.lost"];
/// What `--observe blocks` adds; the second half only where the device had such requests.
const OF_BLOCKS: [&str; 47] = [
    "blocks.read_bios", "blocks.write_bios", "blocks.read_requests", "blocks.write_requests",
    "blocks.discards", "blocks.merges", "blocks.splits", "blocks.flushes", "blocks.flush_bios",
    "blocks.flush_time", "blocks.fua_writes", "blocks.metadata_bytes", "blocks.journal_bytes",
    "blocks.errors", "blocks.depth", "blocks.audit_passed", "blocks.audit_violations",
    "blocks.audit_undecided", "blocks.events", "blocks.lost", "blocks.audit_first_violation",
    "blocks.read_request_size", "blocks.write_request_size", "blocks.merge_ratio", "blocks.sequential_share",
    "blocks.read.q2i.mean", "blocks.read.q2i.p99", "blocks.read.i2d.mean", "blocks.read.i2d.p99",
    "blocks.read.inserted_share", "blocks.read.q2d.mean", "blocks.read.q2d.p99", "blocks.read.d2c.mean",
    "blocks.read.d2c.p99", "blocks.read.q2c.mean", "blocks.read.q2c.p99", "blocks.write.q2i.mean",
    "blocks.write.q2i.p99", "blocks.write.i2d.mean", "blocks.write.i2d.p99", "blocks.write.inserted_share",
    "blocks.write.q2d.mean", "blocks.write.q2d.p99", "blocks.write.d2c.mean", "blocks.write.d2c.p99",
    "blocks.write.q2c.mean", "blocks.write.q2c.p99",
];
/// What `--observe fs` adds, besides what each filesystem has.
const OF_FS: [&str; 1] = ["fs.lost"];
