//! Which settings change when another one is written, on Linux up to 6.18.
//!
//! Enters: the path of a setting. Leaves: the others', in what order they are set and put back, and which two cannot be two runs'.
//! Sources: block/elevator.c (a scheduler begins with its own values, and with the queue's), block/blk-sysfs.c and
//! block/blk-settings.c (`queue_limits_commit_update` works out the read-ahead anew since 6.9, whatever limit is written),
//! block/mq-deadline.c (`dd_depth_updated` works out `async_depth`).

use std::path::{Path, PathBuf};

const READ_AHEAD: &str = "queue/read_ahead_kb";
const SCHEDULER: &str = "queue/scheduler";
const REQUESTS: &str = "queue/nr_requests";
const ASYNC_DEPTH: &str = "queue/iosched/async_depth";

/// The settings of this machine that writing this one may change, itself left out.
pub(super) fn changed_with(path: &Path) -> Vec<PathBuf> {
    let Some(queue) = queue_of(path) else { return Vec::new() };
    let mut found = Vec::new();
    if path.ends_with(SCHEDULER) {
        let own = std::fs::read_dir(queue.join("iosched")).into_iter().flatten().flatten();
        // Where the kernel has switched throttling of writes off, writing that 0 would switch it off for good.
        let throttles = crate::host::read_knob(&queue.join("wbt_lat_usec")).is_ok_and(|value| value != "0");
        found.push(queue.join("nr_requests"));
        found.extend(throttles.then(|| queue.join("wbt_lat_usec")));
        found.extend(own.map(|entry| entry.path()));
    }
    if path.ends_with(REQUESTS) {
        found.push(queue.join("iosched/async_depth"));
    }
    if may_change_read_ahead(path) {
        found.push(queue.join("read_ahead_kb"));
    }
    found.retain(|other| other.is_file() && other != path);
    found.sort_by(|one, other| rank(one).cmp(&rank(other)).then_with(|| one.cmp(other)));
    found
}

/// When a setting is set and put back: what others change comes after them.
pub(super) fn rank(path: &Path) -> u8 {
    match path {
        _ if path.ends_with(SCHEDULER) => 0,
        _ if path.ends_with(READ_AHEAD) => 3,
        _ if is_of_scheduler(path) => 2,
        _ => 1,
    }
}

/// Whether this is the read-ahead, which the kernel works out anew when anything else of the queue is written.
pub(super) fn is_read_ahead(path: &Path) -> bool {
    path.ends_with(READ_AHEAD)
}

/// Whether setting one changes the other.
pub(super) fn clash(one: &Path, other: &Path) -> bool {
    let changes = |path: &Path, other: &Path| {
        path.ends_with(SCHEDULER)
            || (path.ends_with(REQUESTS) && other.ends_with(ASYNC_DEPTH))
            || (may_change_read_ahead(path) && is_read_ahead(other))
    };
    let queue = queue_of(one);
    one == other
        || (queue.is_some() && queue == queue_of(other) && (changes(one, other) || changes(other, one)))
}

fn may_change_read_ahead(path: &Path) -> bool {
    !is_of_scheduler(path) && !is_read_ahead(path)
}

fn is_of_scheduler(path: &Path) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with("queue/iosched"))
}

/// The directory of the queue; the scheduler's own settings are a directory further down.
fn queue_of(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    let queue = if is_of_scheduler(path) { parent.parent()? } else { parent };
    queue.ends_with("queue").then_some(queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_setting_resets_is_known() {
        let sys = tempfile::tempdir().unwrap();
        let queue = sys.path().join("queue");
        std::fs::create_dir_all(queue.join("iosched")).unwrap();
        for name in [
            "scheduler", "nr_requests", "read_ahead_kb", "iostats", "iosched/async_depth",
            "iosched/fifo_batch",
        ] {
            std::fs::write(queue.join(name), "1\n").unwrap();
        }
        let found = |of: &str, with: &[&str]| {
            let expected: Vec<PathBuf> = with.iter().map(|name| queue.join(name)).collect();
            assert_eq!(changed_with(&queue.join(of)), expected, "{of}");
        };
        found("scheduler", &["nr_requests", "iosched/async_depth", "iosched/fifo_batch", "read_ahead_kb"]);
        std::fs::write(queue.join("wbt_lat_usec"), "0\n").unwrap();
        found("scheduler", &["nr_requests", "iosched/async_depth", "iosched/fifo_batch", "read_ahead_kb"]);
        std::fs::write(queue.join("wbt_lat_usec"), "2000\n").unwrap();
        found(
            "scheduler",
            &["nr_requests", "wbt_lat_usec", "iosched/async_depth", "iosched/fifo_batch", "read_ahead_kb"],
        );
        found("nr_requests", &["iosched/async_depth", "read_ahead_kb"]);
        found("iostats", &["read_ahead_kb"]);
        found("iosched/fifo_batch", &[]);
        found("read_ahead_kb", &[]);
        assert!(changed_with(Path::new("/proc/sys/vm/dirty_ratio")).is_empty());
    }

    #[test]
    fn what_one_setting_changes_in_another_cannot_be_two_runs() {
        let queue = |name: &str| Path::new("/sys/block/x/queue").join(name);
        assert!(clash(&queue("scheduler"), &queue("nr_requests")));
        assert!(clash(&queue("iosched/read_expire"), &queue("scheduler")));
        assert!(clash(&queue("read_ahead_kb"), &queue("iostats")));
        assert!(clash(&queue("nr_requests"), &queue("iosched/async_depth")));
        assert!(!clash(&queue("iosched/fifo_batch"), &queue("read_ahead_kb")));
        assert!(!clash(&queue("nr_requests"), &queue("iostats")));
        assert!(!clash(&queue("scheduler"), Path::new("/sys/block/y/queue/scheduler")));
    }
}
