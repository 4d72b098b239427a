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
    first: Option<Violation>,
    /// Of these, those that would be judged otherwise if something had ended unseen.
    passed_if_seen: u64,
    violations_if_seen: u64,
    /// The others.
    sure_violations: BTreeMap<Reason, u64>,
    first_sure: Option<Violation>,
}

impl Tally {
    pub(super) fn add(
        &mut self,
        judgement: Judgement,
        violation: impl FnOnce(Reason, Option<u64>) -> Violation,
    ) {
        match judgement {
            Judgement::Pass => self.passed += 1,
            Judgement::PassIfAllEndsWereSeen => {
                self.passed += 1;
                self.passed_if_seen += 1;
            }
            Judgement::Undecided(reason) => *self.undecided.entry(reason).or_default() += 1,
            Judgement::Violated(reason, sector) => {
                *self.violations.entry(reason).or_default() += 1;
                *self.sure_violations.entry(reason).or_default() += 1;
                if self.first.is_none() || self.first_sure.is_none() {
                    let violation = violation(reason, sector);
                    self.first_sure.get_or_insert_with(|| violation.clone());
                    self.first.get_or_insert(violation);
                }
            }
            Judgement::ViolatedIfAllEndsWereSeen(reason, sector) => {
                *self.violations.entry(reason).or_default() += 1;
                self.violations_if_seen += 1;
                self.first.get_or_insert_with(|| violation(reason, sector));
            }
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.passed + sum(&self.undecided) + sum(&self.violations)
    }

    /// The first violation of all.
    pub(super) fn take_first(&mut self) -> Option<Violation> {
        self.first.take()
    }

    /// Adds the calls of another tally.
    pub(super) fn join(&mut self, other: Tally) {
        self.passed += other.passed;
        self.passed_if_seen += other.passed_if_seen;
        self.violations_if_seen += other.violations_if_seen;
        add(&mut self.undecided, other.undecided);
        add(&mut self.violations, other.violations);
        add(&mut self.sure_violations, other.sure_violations);
        self.first = earlier(self.first.take(), other.first);
        self.first_sure = earlier(self.first_sure.take(), other.first_sure);
    }

    /// Completions are missing, nobody knows where: whatever was judged because one was not seen is a doubt, and so are flushes that seem
    /// to be in flight. What needs no end to be seen stays.
    pub(super) fn doubt_absences(&mut self, reason: Reason) {
        let flushes = self.undecided.remove(&Reason::SeveralFlushes).unwrap_or(0);
        let doubted = flushes + self.violations_if_seen + self.passed_if_seen;
        self.passed -= std::mem::take(&mut self.passed_if_seen);
        self.violations_if_seen = 0;
        self.violations.clone_from(&self.sure_violations);
        self.first.clone_from(&self.first_sure);
        if doubted > 0 {
            *self.undecided.entry(reason).or_default() += doubted;
        }
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

fn sum(calls: &BTreeMap<Reason, u64>) -> u64 {
    calls.values().sum()
}

fn add(calls: &mut BTreeMap<Reason, u64>, others: BTreeMap<Reason, u64>) {
    others.into_iter().for_each(|(reason, number)| *calls.entry(reason).or_default() += number);
}

fn earlier(one: Option<Violation>, other: Option<Violation>) -> Option<Violation> {
    one.into_iter().chain(other).min_by_key(|violation| violation.returned_ns)
}

/// The same calls, judged for both cases of the device's cache.
#[derive(Debug, Default)]
pub(super) struct Cases {
    pub(super) back: Tally,
    pub(super) through: Tally,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(reason: Reason, returned_ns: u64) -> Violation {
        Violation {
            call: "fsync",
            reason,
            inode: None,
            descriptor: None,
            pid: 1,
            comm: String::new(),
            entered_ns: 0,
            returned_ns,
            sector: None,
        }
    }

    fn tally(judgements: &[(Judgement, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (judgement, returned_ns) in judgements {
            tally.add(*judgement, |reason, _| violation(reason, *returned_ns));
        }
        tally
    }

    #[test]
    fn what_was_judged_by_an_end_that_was_not_seen_is_doubted() {
        use Judgement::{Pass, PassIfAllEndsWereSeen, Undecided, Violated, ViolatedIfAllEndsWereSeen};
        let mut all = tally(&[
            (Pass, 1),
            (PassIfAllEndsWereSeen, 2),
            (ViolatedIfAllEndsWereSeen(Reason::DataNotFlushed, None), 3),
            (Violated(Reason::DataNotFlushed, None), 4),
            (Undecided(Reason::WhoseWrites), 5),
            (Undecided(Reason::SeveralFlushes), 6),
        ]);
        assert_eq!((all.passed, all.calls()), (2, 6));
        assert_eq!(all.violations, [(Reason::DataNotFlushed, 2)].into());
        all.doubt_absences(Reason::LostEvents);
        assert_eq!((all.passed, all.calls()), (1, 6));
        assert_eq!(all.undecided, [(Reason::LostEvents, 3), (Reason::WhoseWrites, 1)].into());
        assert_eq!(all.violations, [(Reason::DataNotFlushed, 1)].into());
        assert_eq!(all.take_first(), Some(violation(Reason::DataNotFlushed, 4)));
    }

    #[test]
    fn the_first_violation_is_that_which_returned_first() {
        let late = Judgement::Violated(Reason::WriteFailed, None);
        let mut all =
            tally(&[(Judgement::ViolatedIfAllEndsWereSeen(Reason::DataNotFlushed, None), 7), (late, 9)]);
        all.join(tally(&[(late, 3), (late, 4)]));
        assert_eq!(all.violations, [(Reason::WriteFailed, 3), (Reason::DataNotFlushed, 1)].into());
        assert_eq!(all.take_first(), Some(violation(Reason::WriteFailed, 3)));
    }
}
