//! Waits for the device to flush its cache.
//!
//! Needs: `--observe waits`. Concludes: the sleep in functions that wait for a flush, a part of the sleep, or of waiting for storage where
//! that is counted. What the block layer saw of flushes stands beside it. Silent where the sleep differs by less than what matters.

use super::super::cause::{Cause, What};
use super::super::names::{FLUSH_TIME, Place};
use super::super::pair::Pair;
use super::rule::Rule;
use super::storage_wait::sleeps_at;

pub(super) const RULE: Rule = Rule { name: "flush_wait", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    sleeps_at(pair, RULE.name, Place::Flush, |at| What::Flush { at }, FLUSH_TIME)
}

#[cfg(test)]
mod tests {
    use super::super::super::super::budget::BudgetPart;
    use super::super::super::cause::Grade;
    use super::super::super::made_pair::{explained, found, ns, run_with};
    use crate::record::{Note, NoteKind};

    const WATCHED: (&str, f64, f64) = ("waits.lost", 0.0, 0.0);
    const AT: &str = "waits.at.blkdev_issue_flush";

    #[test]
    fn the_sleep_for_a_flush_is_a_part_of_the_sleep() {
        let causes = found(&[WATCHED, (AT, 0.1, 0.8), ("blocks.flush_time", 0.09, 0.7)], "flush_wait");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!((cause.grade, cause.part), (Grade::AccountsFor, Some(BudgetPart::Asleep)));
        assert!((ns(cause) - 7000).abs() < 60, "{cause:?}");
        assert_eq!(cause.evidence.len(), 2, "{cause:?}");
    }

    #[test]
    fn the_time_of_flushes_is_distorted_where_watching_them_was_dear() {
        let mut run =
            run_with(&[WATCHED, ("blocks.lost", 0.0, 0.0), (AT, 0.1, 0.8), ("blocks.flush_time", 0.09, 0.7)]);
        for trial in &mut run.trials {
            trial.notes.push(Note { text: "too slow".to_owned(), kind: NoteKind::Distorting });
        }
        let causes = explained(&run).causes;
        let flush = causes.iter().find(|cause| cause.rule == "flush_wait").unwrap();
        assert_eq!(flush.evidence[1].metric, "blocks.flush_time an operation (distorted by watching)");
    }

    #[test]
    fn where_storage_is_counted_it_belongs_there() {
        let causes = found(&[WATCHED, (AT, 0.1, 0.8), ("workers.storage_wait", 0.4, 1.1)], "flush_wait");
        assert_eq!(causes[0].part, Some(BudgetPart::WaitingForStorage));
    }

    #[test]
    fn as_much_sleep_in_both_arms_is_silent() {
        assert_eq!(found(&[WATCHED, (AT, 0.3, 0.3)], "flush_wait"), []);
        assert_eq!(found(&[WATCHED, ("waits.at.__iomap_dio_rw", 0.1, 0.8)], "flush_wait"), []);
    }
}
