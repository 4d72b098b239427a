//! Waits for a commit of the filesystem's journal.
//!
//! Needs: `--observe waits`. Concludes: the sleep in functions that wait for jbd2, for a log buffer of XFS, for a commit of btrfs or a
//! checkpoint of f2fs, a part of the sleep. How long commits took stands beside it where `--observe fs` saw them. Silent where the sleep
//! differs by less than what matters.

use super::super::cause::{Cause, What};
use super::super::names::{COMMIT_TIME, Place};
use super::super::pair::Pair;
use super::rule::Rule;
use super::storage_wait::sleeps_at;

pub(super) const RULE: Rule = Rule { name: "commit_wait", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    sleeps_at(pair, RULE.name, Place::Commit, |at| What::Commit { at }, COMMIT_TIME)
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::{Grade, What};
    use super::super::super::made_pair::{found, ns};

    const WATCHED: (&str, f64, f64) = ("waits.lost", 0.0, 0.0);

    #[test]
    fn the_sleep_for_a_commit_is_a_part_of_the_sleep() {
        let functions =
            ["jbd2_log_wait_commit", "xlog_wait_on_iclog", "wait_log_commit", "f2fs_issue_checkpoint"];
        for function in functions {
            let at = format!("waits.at.{function}");
            let causes = found(&[WATCHED, (&at, 0.2, 0.9)], "commit_wait");
            let [cause] = causes.as_slice() else { panic!("{causes:?}") };
            assert_eq!(cause.what, What::Commit { at: function.to_owned() });
            assert_eq!(cause.grade, Grade::AccountsFor);
            assert!((ns(cause) - 7000).abs() < 60, "{cause:?}");
        }
    }

    #[test]
    fn a_lock_of_the_journal_that_was_watched_is_not_counted_twice() {
        let lock = ("locks.at.rwsem_R.xlog_cil_commit", 0.0, 0.7);
        let sleep = ("waits.at.xlog_cil_commit", 0.0, 0.7);
        assert_eq!(found(&[WATCHED, ("locks.lost", 0.0, 0.0), lock, sleep], "commit_wait"), []);
        assert_eq!(found(&[WATCHED, sleep], "commit_wait").len(), 1);
    }

    #[test]
    fn as_much_sleep_in_both_arms_is_silent() {
        assert_eq!(found(&[WATCHED, ("waits.at.jbd2_log_wait_commit", 0.3, 0.3)], "commit_wait"), []);
        assert_eq!(found(&[WATCHED, ("waits.at.blkdev_issue_flush", 0.1, 0.8)], "commit_wait"), []);
    }
}
