//! Sleep of the workers: waiting for storage where the kernel counts it, and the rest.
//!
//! Needs: the budget. Concludes: what causes that name places leave of waiting for storage and of the other sleep. The time of the device's
//! requests, and how often workers went to sleep, stand beside it. Silent where that is less than what matters.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, Evidence, What};
use super::super::names::{LOCKS_AT, Place, STORAGE_WATCHED, WAITS_AT, only_sleeps, part_of_sleep, place};
use super::super::pair::Pair;
use super::rule::{Rule, add_waker, agrees, is_noise, rest};
use crate::record::Unit;

/// This share of a sleep is most of it.
const MOST: f64 = 0.5;

pub(super) const RULE: Rule = Rule { name: "storage_wait", find };

fn find(pair: &Pair<'_>, causes: &[Cause]) -> Vec<Cause> {
    let Some(with) = pair.budget.map(|budget| budget.asleep) else { return Vec::new() };
    let of = |part: BudgetPart, what: &dyn Fn(bool) -> What| {
        let (left, is_rest) = rest(part, pair.part(part)?, causes);
        let is_time = !(is_rest && is_noise(&left));
        (is_time && pair.matters(&left)).then(|| pair.part_cause(RULE.name, what(is_rest), part, left))
    };
    let storage = of(BudgetPart::WaitingForStorage, &|rest| What::Storage { rest });
    let asleep = of(BudgetPart::Asleep, &|rest| What::Asleep { rest, with });
    let device = device_time(pair);
    let mut found: Vec<Cause> = storage.into_iter().chain(asleep).collect();
    for cause in &mut found {
        let may_be = cause.part == Some(BudgetPart::WaitingForStorage) || with.with_waiting_for_storage;
        let same_way = device.clone().filter(|device| may_be && agrees(cause, device));
        cause.evidence.extend(same_way);
        let slept = pair.own.each("ctx.voluntary", Unit::Count);
        cause.evidence.extend(slept.filter(|slept| pair.differs(slept) && agrees(cause, slept)));
    }
    found
}

/// How long the device worked on requests, for each operation, where that differs. Flushes are writes of no bytes to the kernel: their
/// time is in that of writes, and `dev.flush_time` would be counted twice.
fn device_time(pair: &Pair<'_>) -> Option<Evidence> {
    let times = ["dev.read_time", "dev.write_time"];
    let found = pair.own.each_of(&times, "time of the device's requests", Unit::Seconds)?;
    pair.differs(&found).then_some(found)
}

/// How much of the sleep was waiting for storage, where only watched trials know.
pub(in super::super) fn storage(pair: &Pair<'_>) -> Option<Evidence> {
    let is_counted = pair.budget.is_some_and(|budget| !budget.asleep.with_waiting_for_storage);
    let watched = pair.watched.as_ref().filter(|_| !is_counted)?;
    watched.source.each(STORAGE_WATCHED, Unit::Seconds)
}

/// Sleep in functions of one kind, with the time beside it that its events took, where they were watched as well.
pub(super) fn sleeps_at(
    pair: &Pair<'_>,
    rule: &'static str,
    of: Place,
    what: fn(String) -> What,
    took: &str,
) -> Vec<Cause> {
    let mut causes = pair.places(rule, WAITS_AT, |function| {
        (place(function) == of && !is_told_by_a_lock(pair, function))
            .then(|| (what(function.to_owned()), Some(part_here(pair, function))))
    });
    let seen = watched_time(pair, took);
    for cause in &mut causes {
        let same_way = seen.clone().filter(|seen| agrees(cause, seen));
        cause.evidence.extend(same_way);
        add_waker(pair, cause);
    }
    causes
}

/// A time that observers saw, with a word where watching the block layer was too dear for it.
pub(super) fn watched_time(pair: &Pair<'_>, name: &str) -> Option<Evidence> {
    let watched = pair.watched.as_ref()?;
    let seen = watched.source.each(name, Unit::Seconds)?;
    let is_distorted = watched.requests_distorted && name.starts_with("blocks.");
    let distorted = if is_distorted { " (distorted by watching)" } else { "" };
    Some(Evidence { metric: format!("{}{distorted}", seen.metric), ..seen })
}

/// Whether the sleep in a function is mostly that for locks whose waiters only sleep, in both arms: the same sleep, seen by two observers.
/// Then the lock has it, else the function: never both.
pub(super) fn is_told_by_a_lock(pair: &Pair<'_>, function: &str) -> bool {
    let Some(source) = pair.watched.as_ref().map(|watched| watched.source) else { return false };
    let is_here = |place: &&String| {
        place.split_once('.').is_some_and(|(kind, caller)| only_sleeps(kind) && caller == function)
    };
    let places = source.below(LOCKS_AT);
    let locks: Vec<String> =
        places.iter().filter(is_here).map(|place| format!("{LOCKS_AT}{place}")).collect();
    if locks.is_empty() {
        return false;
    }
    let locks: Vec<&str> = locks.iter().map(String::as_str).collect();
    // Where nobody saw the sleep, the lock alone tells of it.
    let Some(slept) = source.plain(&format!("{WAITS_AT}{function}"), Unit::Seconds) else { return true };
    let is_most = |locked: Evidence| {
        locked.baseline >= MOST * slept.baseline && locked.candidate >= MOST * slept.candidate
    };
    source.ratio(&locks, &[], function, Unit::Seconds).is_some_and(is_most)
}

/// The part of the budget that a sleep in a function belongs to: where waiting for storage is not counted, it is in the other sleep.
pub(super) fn part_here(pair: &Pair<'_>, function: &str) -> BudgetPart {
    let part = part_of_sleep(function);
    if pair.part(part).is_some() { part } else { BudgetPart::Asleep }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::budget::Asleep;
    use super::super::super::cause::What;
    use super::super::super::made_pair::{explained, found, ns, run_with};

    #[test]
    fn the_time_of_the_device_stands_beside_the_sleep() {
        let device = [("dev.write_time", 0.5, 1.2), ("dev.read_time", 0.0, 0.0)];
        let causes = found(&device, "storage_wait");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        let with = Asleep { with_waiting_to_run: false, with_waiting_for_storage: true, with_pauses: false };
        assert_eq!(cause.what, What::Asleep { rest: false, with });
        assert!((ns(cause) - 8000).abs() < 60, "{cause:?}");
        assert!((cause.evidence[0].candidate - 12e-6).abs() < 1e-7, "{cause:?}");
        assert_eq!(found(&[("dev.write_time", 1.2, 0.5)], "storage_wait")[0].evidence, [], "the other way");
    }

    #[test]
    fn how_often_workers_slept_stands_beside_it_where_that_grew_too() {
        let beside = |baseline, candidate| {
            let causes = found(&[("ctx.voluntary", baseline, candidate)], "storage_wait");
            causes[0].evidence.iter().map(|shown| shown.metric.clone()).collect::<Vec<_>>()
        };
        assert_eq!(beside(1000.0, 9000.0), ["ctx.voluntary an operation"]);
        assert!(beside(9000.0, 1000.0).is_empty() && beside(1000.0, 1000.0).is_empty());
    }

    #[test]
    fn waiting_for_storage_is_told_apart_where_it_is_counted() {
        let causes = found(&[("workers.storage_wait", 0.4, 1.0)], "storage_wait");
        let named: Vec<(&What, i64)> =
            causes.iter().map(|cause| (&cause.what, (ns(cause) + 50) / 100)).collect();
        let with = Asleep { with_waiting_to_run: false, with_waiting_for_storage: false, with_pauses: false };
        assert_eq!(named, [(&What::Storage { rest: false }, 60), (&What::Asleep { rest: false, with }, 20)]);
    }

    #[test]
    fn watched_trials_tell_storage_waits_the_kernel_does_not_count() {
        let watched = [("waits.lost", 0.0, 0.0), ("waits.storage_time", 0.2, 0.7)];
        let storage = explained(&run_with(&watched)).storage.unwrap();
        assert_eq!(storage.metric, "waits.storage_time an operation");
        assert!((storage.candidate - 7e-6).abs() < 1e-7 && (storage.baseline - 2e-6).abs() < 1e-7);
        let counted = [&watched[..], &[("workers.storage_wait", 0.4, 1.0)]].concat();
        assert_eq!(explained(&run_with(&counted)).storage, None);
        assert_eq!(explained(&run_with(&[])).storage, None);
    }

    #[test]
    fn what_a_lock_accounts_for_is_not_told_again() {
        let lock = ("locks.at.rwsem_W.f", 0.0, 0.8);
        let why = explained(&run_with(&[("locks.lost", 0.0, 0.0), lock]));
        assert!(why.causes.iter().all(|cause| cause.rule != "storage_wait"), "{why:?}");
        let half = found(&[("locks.lost", 0.0, 0.0), ("locks.at.rwsem_W.f", 0.0, 0.4)], "storage_wait");
        assert!(matches!(half[0].what, What::Asleep { rest: true, .. }), "{half:?}");
        assert!((ns(&half[0]) - 4000).abs() < 60, "{half:?}");
    }

    #[test]
    fn sleep_that_causes_have_more_of_than_there_was_is_no_time() {
        let more = found(&[("locks.lost", 0.0, 0.0), ("locks.at.rwsem_W.f", 0.0, 2.0)], "storage_wait");
        assert_eq!(more, [], "a part of a time is never below 0");
    }

    #[test]
    fn as_much_sleep_in_both_arms_is_silent() {
        assert_eq!(found(&[("sys_cpu", 0.3, 1.3)], "storage_wait"), []);
    }
}
