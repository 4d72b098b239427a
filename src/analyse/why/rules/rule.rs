//! What a rule is, and what several rules need: what is left of a part of the budget.

use super::super::super::budget::{BudgetLine, BudgetPart};
use super::super::cause::{Cause, Evidence, Grade, What};
use super::super::names::{UNSEEN, WOKEN_AT};
use super::super::pair::Pair;
use crate::record::Unit;

/// One rule.
pub(in super::super) struct Rule {
    /// Its name in the records.
    pub(in super::super) name: &'static str,
    /// What it finds.
    pub(in super::super) find: fn(&Pair<'_>, &[Cause]) -> Vec<Cause>,
}

/// What the causes that name parts of a part of the budget leave of it, and whether there are any.
pub(in super::super) fn rest(part: BudgetPart, whole: BudgetLine, causes: &[Cause]) -> (BudgetLine, bool) {
    let named: Vec<BudgetLine> = causes
        .iter()
        .filter(|cause| cause.grade == Grade::AccountsFor && cause.part == Some(part))
        .filter_map(|cause| cause.time)
        .collect();
    (named.iter().fold(whole, |left, line| left.minus(line)), !named.is_empty())
}

/// Whether what shows a cause moves as its time does, in figures that differ: what moves the other way shows nothing.
pub(super) fn agrees(cause: &Cause, shown: &Evidence) -> bool {
    let moved = shown.candidate - shown.baseline;
    cause.estimate_ns().is_some_and(|ns| moved * ns > 0.0)
}

/// Who ended most of the sleep at a function, as evidence behind that of the sleep itself; nothing where nobody ended half of it, or what it
/// ended moves the other way.
pub(super) fn add_waker(pair: &Pair<'_>, cause: &mut Cause) {
    let (What::Flush { at } | What::Commit { at } | What::Sleep { at }) = &cause.what else { return };
    let Some(watched) = &pair.watched else { return };
    let beginning = format!("{WOKEN_AT}{at}.");
    let woken_by = |waker: &String| {
        let called = format!("ended by {waker},");
        let shown = watched.source.each_of(&[&format!("{beginning}{waker}")], &called, Unit::Seconds)?;
        Some((waker != UNSEEN, shown))
    };
    let longest = |shown: &Evidence| shown.baseline.max(shown.candidate);
    let wakers = watched.source.below(&beginning);
    let all: Vec<(bool, Evidence)> = wakers.iter().filter_map(woken_by).collect();
    let half = all.iter().map(|(_, shown)| longest(shown)).sum::<f64>() / 2.0;
    let most = all.into_iter().find(|(is_seen, shown)| *is_seen && longest(shown) >= half);
    cause.evidence.extend(most.map(|(_, shown)| shown).filter(|shown| agrees(cause, shown)));
}

/// Whether what is left of a part is no time: in one arm the causes have more than the part, by half of the difference or more. The part was
/// counted in unwatched trials and the causes in watched ones, so that what is left is within their noise.
pub(super) fn is_noise(left: &BudgetLine) -> bool {
    let least = left.baseline_ns.min(left.candidate_ns);
    least < 0.0 && -least >= left.difference_ns.estimate.abs() / 2.0
}

#[cfg(test)]
mod tests {
    use super::super::super::super::comparison::Interval;
    use super::*;

    #[test]
    fn the_rest_is_noise_where_causes_have_more_than_the_part() {
        let left = |baseline_ns: f64, candidate_ns: f64| {
            let estimate = candidate_ns - baseline_ns;
            let difference_ns = Interval { estimate, low: estimate - 1.0, high: estimate + 1.0 };
            BudgetLine { baseline_ns, candidate_ns, difference_ns }
        };
        assert!(is_noise(&left(100.0, -900.0)) && is_noise(&left(-900.0, 100.0)));
        assert!(!is_noise(&left(-10.0, 900.0)), "nearly all of it is a time");
        assert!(!is_noise(&left(900.0, 100.0)) && !is_noise(&left(0.0, 100.0)));
    }
}
