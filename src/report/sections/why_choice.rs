//! Which causes of a pair are told where there is room for some, and in which order.
//!
//! Enters: a [`Why`] and the budget it belongs to. Leaves: causes. Nothing is worded here.

use super::cause_words::is_seen;
use crate::analyse::{Budget, Cause, Grade, Standing, What, Why};

/// The causes that are told.
#[derive(Debug, Default)]
pub(super) struct Chosen<'a> {
    /// What answers the question by itself: it is the device, or the machine.
    pub(super) answers: Vec<&'a Cause>,
    /// Parts of the sum.
    pub(super) of_sum: Vec<&'a Cause>,
    /// What goes with the difference, or may be.
    pub(super) beside: Vec<&'a Cause>,
}

impl<'a> Chosen<'a> {
    /// The first of them.
    pub(super) fn first(&self) -> Option<&'a Cause> {
        self.answers.iter().chain(&self.of_sum).chain(&self.beside).next().copied()
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.answers.len() + self.of_sum.len() + self.beside.len()
    }
}

/// The causes that are told where there are places for so many: answers, then parts of the sum, then what goes with it. That has one place
/// of its own, unless there is an answer.
pub(super) fn chosen(why: &Why, most: usize) -> Chosen<'_> {
    let mut all = Chosen::default();
    for cause in why.causes.iter().filter(|cause| is_seen(cause)) {
        match cause.grade {
            Grade::AccountsFor => all.of_sum.push(cause),
            _ if is_answer(cause) => all.answers.push(cause),
            _ => all.beside.push(cause),
        }
    }
    // A count stays what it is where watching makes times too long.
    all.beside.sort_by_key(|cause| (cause.grade, cause.distorted));
    all.of_sum.truncate(most);
    let left = most - all.of_sum.len();
    all.beside.truncate(match all.answers.len() {
        0 => left.max(1),
        answers => left.saturating_sub(answers),
    });
    all
}

fn is_answer(cause: &Cause) -> bool {
    matches!(cause.what, What::SlowerDevice { .. } | What::MachineSetting { .. } | What::StolenTime)
}

/// Whether there is anything to say of it: a pair whose workers nobody counted, and of which nothing was found, has its verdict.
pub(super) fn is_told(why: &Why) -> bool {
    why.standing == Standing::Differs
        && (why.uncounted
            || !why.latency.is_empty()
            || why.judged.is_some()
            || !(why.causes.is_empty() && why.unexplained_ns.is_none()))
}

/// Whether the time of an operation clearly moved against the verdict: its parts do not say why the arms differ.
pub(super) fn moves_against(why: &Why, budget: Option<&Budget>) -> bool {
    let Some(budget) = budget.filter(|_| why.judged.is_none()) else { return false };
    let of = budget.total.difference_ns;
    let (longer, shorter) = (of.low > 0.0, of.high < 0.0);
    let matters = of.estimate.abs() >= budget.least_ns;
    matters && if why.is_better { longer } else { shorter }
}
