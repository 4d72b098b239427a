//! Waits for a lock, by its kind and by the function that wants it.
//!
//! Needs: `--observe locks`. Concludes: the time that operations wait there. Waiters that sleep are a part of the sleep; waiters that spin
//! are processor time already, and go with the difference, as do those for a mutex, who spin first and sleep then. Silent where the waits
//! differ by less than what matters.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, What};
use super::super::names::{LOCK_WAITS_AT, LOCKS_AT, LONGEST_WAIT_AT, only_sleeps, spins};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::Unit;

pub(super) const RULE: Rule = Rule { name: "lock_wait", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let mut causes = pair.places(RULE.name, LOCKS_AT, |place| {
        let (kind, caller) = place.split_once('.')?;
        let what = What::Lock { kind: kind.to_owned(), caller: caller.to_owned(), spins: spins(kind) };
        Some((what, only_sleeps(kind).then_some(BudgetPart::Asleep)))
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
