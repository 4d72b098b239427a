//! Waits for a lock, by its kind and by the function that wants it.
//!
//! Needs: `--observe locks`. Concludes: the time that operations wait there. Waiters that sleep are a part of the sleep; waiters that spin
//! are processor time already, and go with the difference, as do those for a mutex, who spin first and sleep then, and those that are less
//! than half of the sleep in that function, which is told as such. Silent where the waits
//! differ by less than what matters.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, What};
use super::super::names::{LOCK_WAITS_AT, LOCKS_AT, LONGEST_WAIT_AT, only_sleeps, spins};
use super::super::pair::Pair;
use super::rule::Rule;
use super::storage_wait::is_told_by_a_lock;
use crate::record::Unit;

pub(super) const RULE: Rule = Rule { name: "lock_wait", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let mut causes = pair.places(RULE.name, LOCKS_AT, |place| {
        let (kind, caller) = place.split_once('.')?;
        let what = What::Lock { kind: kind.to_owned(), caller: caller.to_owned(), spins: spins(kind) };
        // Of a longer sleep in the function it has a part that nobody counts apart.
        let is_asleep = only_sleeps(kind) && is_told_by_a_lock(pair, caller);
        Some((what, is_asleep.then_some(BudgetPart::Asleep)))
    });
    let Some(watched) = &pair.watched else { return causes };
    for cause in &mut causes {
        let What::Lock { kind, caller, .. } = &cause.what else { continue };
        let waits = watched.source.each(&format!("{LOCK_WAITS_AT}{kind}.{caller}"), Unit::Count);
        let longest = watched.source.plain(&format!("{LONGEST_WAIT_AT}{kind}.{caller}"), Unit::Seconds);
        cause.evidence.extend([waits, longest].into_iter().flatten());
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::{Grade, What};
    use super::super::super::made_pair::{explained, found, ns, run_with};

    const WATCHED: (&str, f64, f64) = ("locks.lost", 0.0, 0.0);
    const AT: &str = "locks.at.rwsem_W.ext4_buffered_write_iter";

    #[test]
    fn a_lock_that_many_want_is_the_largest_part() {
        let run = run_with(&[WATCHED, (AT, 0.0, 0.75), ("locks.at.mutex.f", 0.01, 0.01)]);
        let why = explained(&run);
        let first = &why.causes[0];
        let What::Lock { kind, caller, spins: false } = &first.what else { panic!("{first:?}") };
        assert_eq!((kind.as_str(), caller.as_str()), ("rwsem_W", "ext4_buffered_write_iter"));
        assert_eq!(first.grade, Grade::AccountsFor);
        assert!((ns(first) - 7500).abs() < 60, "{first:?}");
        assert!(first.share.is_some_and(|share| (share - 0.75).abs() < 0.01), "{first:?}");
        assert_eq!(why.causes.iter().filter(|cause| cause.rule == "lock_wait").count(), 1, "{why:?}");
    }

    #[test]
    fn a_woken_waiter_without_a_processor_still_waits() {
        let counted = [("workers.run_wait", 0.05, 0.65), WATCHED, (AT, 0.0, 0.75)];
        let left = |metrics: &[(&str, f64, f64)]| {
            let why = explained(&run_with(metrics));
            let rules: Vec<(&str, i64)> =
                why.causes.iter().map(|cause| (cause.rule, (ns(cause) + 50) / 100)).collect();
            (rules, why.woken.map(|woken| (woken.difference_ns.estimate / 100.0).round()))
        };
        // Of 6 µs of waiting to run none was in the middle of the work.
        let seen = ("waits.lost", 0.0, 0.0);
        let watched = [&counted[..], &[seen, ("waits.preempted_time", 0.05, 0.05)]].concat();
        let parts = vec![("lock_wait", 75), ("processor_time", 20), ("storage_wait", 5)];
        assert_eq!(left(&watched), (parts, Some(60.0)));
        let alone =
            vec![("lock_wait", 75), ("waiting_to_run", 60), ("storage_wait", -54), ("processor_time", 20)];
        assert_eq!(left(&counted), (alone, None), "nobody watched sleeps");
        let lost = [&watched[..], &[("waits.lost", 0.0, 9.0)]].concat();
        assert_eq!(left(&lost).1, None, "some of what was in the middle of the work was not seen");
        let busy = [&counted[..], &[seen, ("waits.preempted_time", 0.05, 0.65)]].concat();
        assert_eq!(left(&busy).1, None, "all of it was in the middle of the work");
    }

    #[test]
    fn who_spins_uses_the_processor_already() {
        for lock in ["locks.at.spinlock.f", "locks.at.mutex.f"] {
            let causes = found(&[WATCHED, (lock, 0.0, 0.2)], "lock_wait");
            assert_eq!((causes.len(), causes[0].grade, causes[0].part), (1, Grade::GoesWith, None), "{lock}");
        }
    }

    #[test]
    fn waits_that_do_not_differ_are_silent() {
        assert_eq!(found(&[WATCHED, (AT, 0.5, 0.5)], "lock_wait"), []);
        assert_eq!(found(&[], "lock_wait"), []);
    }
}
