//! Judgements of calls, counted.
//!
//! Enters: a judgement at a time. Leaves: how many passed, how many did not and why, and the first that returned too early.

use std::collections::BTreeMap;

use super::call::Judgement;
use super::verdict::{Reason, Violation};

/// Judgements of one case of the device's cache.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) undecided: BTreeMap<Reason, u64>,
    pub(super) violations: BTreeMap<Reason, u64>,
    pub(super) first: Option<Violation>,
}

impl Tally {
    pub(super) fn add(
        &mut self,
        judgement: Judgement,
        violation: impl FnOnce(Reason, Option<u64>) -> Violation,
    ) {
        match judgement {
            Judgement::Pass => self.passed += 1,
            Judgement::Undecided(reason) => *self.undecided.entry(reason).or_default() += 1,
            Judgement::Violated(reason, sector) => {
                *self.violations.entry(reason).or_default() += 1;
                self.first.get_or_insert_with(|| violation(reason, sector));
            }
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.passed + self.undecided.values().sum::<u64>() + self.violations.values().sum::<u64>()
    }

    /// Adds the calls of another tally.
    pub(super) fn join(&mut self, other: Tally) {
        self.passed += other.passed;
        other
            .undecided
            .into_iter()
            .for_each(|(reason, calls)| *self.undecided.entry(reason).or_default() += calls);
        other
            .violations
            .into_iter()
            .for_each(|(reason, calls)| *self.violations.entry(reason).or_default() += calls);
        let first = [self.first.take(), other.first].into_iter().flatten();
        self.first = first.min_by_key(|violation| violation.returned_ns);
    }

    /// Nothing can be said of any call.
    pub(super) fn doubt(&mut self, reason: Reason) {
        let calls = self.calls();
        *self = Tally::default();
        if calls > 0 {
            self.undecided.insert(reason, calls);
        }
    }
}

/// The same calls, judged for both cases of the device's cache.
#[derive(Debug, Default)]
pub(super) struct Cases {
    pub(super) back: Tally,
    pub(super) through: Tally,
}
