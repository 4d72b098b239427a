//! What the filesystem under a trial does, watched while the trial runs.
//!
//! These need root; where that is missing they say so, and fail in CI.

use crate::blocks::{SYNCED, each, notes, watched};
use crate::sandbox::Sandbox;
use crate::target_bench::can_make;

/// fio syncs between writes, and not behind the last one.
const SYNCS: f64 = 63.0;

#[test]
fn each_fsync_of_ext4_commits_its_journal() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let run = watched(&sandbox, SYNCED, "fs", &["-t", "loop:400m", "-t", "fs=ext4"]);
    assert!(!notes(&run).contains("not watched"), "{}", notes(&run));
    for (trial, syncs) in each(&run, "fs.count.ext4_sync_file_enter").iter().enumerate() {
        assert_eq!(*syncs, SYNCS);
        let value = |metric: &str| each(&run, metric)[trial];
        let commits = value("fs.count.jbd2_end_commit");
        assert!((SYNCS / 2.0..=3.0 * SYNCS).contains(&commits), "{commits} commits");
        // A commit at either end may be cut.
        assert!((value("fs.times.commit") - commits).abs() <= 2.0);
        let (commit, parts) = (
            value("fs.time.commit"),
            value("fs.time.commit_locking")
                + value("fs.time.commit_flushing")
                + value("fs.time.commit_logging"),
        );
        assert!(0.0 < parts && parts <= 1.05 * commit && commit < 100.0, "{parts} of {commit} s");
        assert!(value("fs.longest.commit") <= commit && value("fs.time.sync") > 0.5 * commit);
        assert_eq!((value("fs.times.sync"), value("fs.lost")), (SYNCS, 0.0));
    }
    let report = sandbox.succeed(&["report", "latest"]);
    assert!(report.contains("fs.time_per_op.commit"), "{report}");
}

#[test]
fn each_fsync_of_xfs_writes_its_log() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let run = watched(&sandbox, SYNCED, "fs", &["-t", "loop:400m", "-t", "fs=xfs"]);
    assert_eq!(each(&run, "fs.count.xfs_file_fsync"), [SYNCS, SYNCS], "{}", notes(&run));
    for (trial, writes) in each(&run, "fs.count.xlog_iclog_syncing").iter().enumerate() {
        assert!((SYNCS / 2.0..=3.0 * SYNCS).contains(writes), "{writes} writes of the log");
        let value = |metric: &str| each(&run, metric)[trial];
        assert!((value("fs.times.log_write") - writes).abs() <= 2.0);
        assert!((0.0..100.0).contains(&value("fs.time.log_write")) && value("fs.lost") == 0.0);
    }
}
