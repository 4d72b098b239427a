//! The rules, one a file.
//!
//! Enters: a compared pair, and the causes that rules before it have found. Leaves: causes. A rule looks at values only through the pair,
//! and says nothing where what it needs was not measured. Rules that name places and parts of the kernel stand before those that tell what
//! is left of a part.

mod commit_wait;
mod copying;
mod device_bytes;
mod flush_wait;
mod lock_wait;
mod machine;
mod more_flushes;
mod owner_changes;
mod page_cache;
mod processor_time;
mod queue_depth;
mod sleep_place;
mod slower_device;
mod smaller_requests;
mod storage_wait;
mod subsystem;
mod waiting_to_run;
mod worker_threads;

use super::super::budget::{BudgetLine, BudgetPart};
use super::super::comparison::Interval;
use super::cause::{Cause, Grade};
use super::pair::Pair;

/// One rule.
pub(super) struct Rule {
    /// Its name in the records.
    pub(super) name: &'static str,
    /// What it finds.
    pub(super) find: fn(&Pair<'_>, &[Cause]) -> Vec<Cause>,
}

/// All rules in the order in which they are asked.
pub(super) const ALL: &[Rule] = &[
    copying::RULE,
    subsystem::RULE,
    lock_wait::RULE,
    flush_wait::RULE,
    commit_wait::RULE,
    sleep_place::RULE,
    processor_time::RULE,
    waiting_to_run::RULE,
    storage_wait::RULE,
    page_cache::RULE,
    more_flushes::RULE,
    device_bytes::RULE,
    smaller_requests::RULE,
    owner_changes::RULE,
    queue_depth::RULE,
    worker_threads::RULE,
    slower_device::RULE,
    machine::RULE,
];

/// What the causes that name parts of a part of the budget leave of it, and whether there are any. The interval holds wherever those
/// of the part and of the causes hold: ends are added up as if all were off at once.
fn rest(part: BudgetPart, whole: BudgetLine, causes: &[Cause]) -> (BudgetLine, bool) {
    let named: Vec<BudgetLine> = causes
        .iter()
        .filter(|cause| cause.grade == Grade::AccountsFor && cause.part == Some(part))
        .filter_map(|cause| cause.time)
        .collect();
    let sum = |of: fn(&BudgetLine) -> f64| named.iter().map(of).sum::<f64>();
    let all = whole.difference_ns;
    let difference_ns = Interval {
        estimate: all.estimate - sum(|line| line.difference_ns.estimate),
        low: all.low - sum(|line| line.difference_ns.high),
        high: all.high - sum(|line| line.difference_ns.low),
    };
    let left = BudgetLine {
        baseline_ns: whole.baseline_ns - sum(|line| line.baseline_ns),
        candidate_ns: whole.candidate_ns - sum(|line| line.candidate_ns),
        difference_ns,
    };
    (left, !named.is_empty())
}

/// Whether what is left of a part is no time: in one arm the causes have more than the part, by half of the difference or more. The part was
/// counted in unwatched trials and the causes in watched ones, so that what is left is within their noise.
fn is_noise(left: &BudgetLine) -> bool {
    let least = left.baseline_ns.min(left.candidate_ns);
    least < 0.0 && -least >= left.difference_ns.estimate.abs() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_noise_where_the_causes_have_more_than_the_part() {
        let left = |baseline_ns: f64, candidate_ns: f64| {
            let estimate = candidate_ns - baseline_ns;
            let difference_ns = Interval { estimate, low: estimate - 1.0, high: estimate + 1.0 };
            BudgetLine { baseline_ns, candidate_ns, difference_ns }
        };
        assert!(is_noise(&left(100.0, -900.0)) && is_noise(&left(-900.0, 100.0)));
        assert!(!is_noise(&left(-10.0, 900.0)), "nearly all of it is a time");
        assert!(!is_noise(&left(900.0, 100.0)) && !is_noise(&left(0.0, 100.0)));
    }

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let mut names: Vec<&str> = ALL.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        let page = include_str!("../../../../docs/why.md");
        for rule in ALL {
            assert!(
                page.contains(&format!("`{}`", rule.name)),
                "docs/why.md has no line about {}",
                rule.name
            );
        }
    }
}
