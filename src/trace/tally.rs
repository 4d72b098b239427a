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
    /// Of these, those that would not have passed if some write had ended unseen.
    if_all_seen: u64,
    pub(super) undecided: BTreeMap<Reason, u64>,
    pub(super) violations: BTreeMap<Reason, u64>,
    /// Of each reason the first.
    first: BTreeMap<Reason, Violation>,
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
                self.if_all_seen += 1;
            }
            Judgement::Undecided(reason) => *self.undecided.entry(reason).or_default() += 1,
            Judgement::Violated(reason, sector) => {
                *self.violations.entry(reason).or_default() += 1;
                self.first.entry(reason).or_insert_with(|| violation(reason, sector));
            }
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.passed + self.undecided.values().sum::<u64>() + self.violations.values().sum::<u64>()
    }

    /// The first violation of all.
    pub(super) fn take_first(&mut self) -> Option<Violation> {
        std::mem::take(&mut self.first).into_values().min_by_key(|violation| violation.returned_ns)
    }

    /// Adds the calls of another tally.
    pub(super) fn join(&mut self, other: Tally) {
        self.passed += other.passed;
        self.if_all_seen += other.if_all_seen;
        for (reason, calls) in other.undecided {
            *self.undecided.entry(reason).or_default() += calls;
        }
        for (reason, calls) in other.violations {
            *self.violations.entry(reason).or_default() += calls;
        }
        for (reason, violation) in other.first {
            let ours = self.first.remove(&reason);
            let first = ours.into_iter().chain([violation]).min_by_key(|violation| violation.returned_ns);
            self.first.extend(first.map(|first| (reason, first)));
        }
    }

    /// Completions are missing, nobody knows where: whatever was judged because one was not seen is a doubt, and so are flushes that seem
    /// to be in flight. What was seen stays; so does, where no flush was ever `issued`, that none completed.
    pub(super) fn doubt_absences(&mut self, reason: Reason, issued: bool) {
        let seen = |violated: &Reason| match violated {
            Reason::WriteFailed => true,
            Reason::DataNotFlushed | Reason::CommitNotFlushed => !issued,
            _ => false,
        };
        let unseen: u64 =
            self.violations.iter().filter(|(violated, _)| !seen(violated)).map(|(_, calls)| calls).sum();
        let flushes = self.undecided.remove(&Reason::SeveralFlushes).unwrap_or(0);
        let doubted = unseen + flushes + self.if_all_seen;
        self.passed -= std::mem::take(&mut self.if_all_seen);
        self.violations.retain(|violated, _| seen(violated));
        self.first.retain(|violated, _| seen(violated));
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
        use Judgement::{Pass, PassIfAllEndsWereSeen, Undecided, Violated};
        let mut all = tally(&[
            (Pass, 1),
            (PassIfAllEndsWereSeen, 2),
            (Violated(Reason::DataNotFlushed, None), 3),
            (Violated(Reason::WriteFailed, None), 4),
            (Undecided(Reason::WhoseWrites), 5),
            (Undecided(Reason::SeveralFlushes), 6),
        ]);
        assert_eq!((all.passed, all.calls()), (2, 6));
        all.doubt_absences(Reason::LostEvents, true);
        assert_eq!((all.passed, all.calls()), (1, 6));
        assert_eq!(all.undecided, [(Reason::LostEvents, 3), (Reason::WhoseWrites, 1)].into());
        assert_eq!(all.violations, [(Reason::WriteFailed, 1)].into());
        assert_eq!(all.take_first(), Some(violation(Reason::WriteFailed, 4)));
    }

    #[test]
    fn that_no_flush_was_ever_issued_needs_no_end() {
        use Judgement::Violated;
        let mut all = tally(&[
            (Violated(Reason::ReturnedBeforeWrite, None), 1),
            (Violated(Reason::DataNotFlushed, None), 3),
        ]);
        all.doubt_absences(Reason::LostEvents, false);
        assert_eq!(all.undecided, [(Reason::LostEvents, 1)].into());
        assert_eq!(all.take_first(), Some(violation(Reason::DataNotFlushed, 3)));
    }

    #[test]
    fn the_first_violation_is_that_which_returned_first() {
        let late = Judgement::Violated(Reason::WriteFailed, None);
        let mut all = tally(&[(late, 9), (Judgement::Violated(Reason::DataNotFlushed, None), 7)]);
        all.join(tally(&[(late, 3), (late, 4)]));
        assert_eq!(all.violations, [(Reason::WriteFailed, 3), (Reason::DataNotFlushed, 1)].into());
        assert_eq!(all.take_first(), Some(violation(Reason::WriteFailed, 3)));
    }
}
