//! The look of a run with `--anytime`: each primary comparison has an interval that holds at any number of looks.
//!
//! Enters: the differences of one comparison and what it shares α with. Leaves: interval and method in its draft. It
//! must not know when a run ends.

use super::comparison::Method;
use super::draft::{Draft, Setting};
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::stats::walsh::Walsh;
use crate::stats::{Estimate, anytime};

/// The interval on the log scale, at the comparison's share of α; too few differences have none.
pub(super) fn interval(setting: &Setting, differences: &[f64]) -> Option<Estimate> {
    if differences.len() < FEWEST_ROUNDS {
        return None;
    }
    anytime::interval(differences, setting.stop.alpha / setting.family.max(1) as f64)
}

/// Fills a draft in.
pub(super) fn look(draft: &mut Draft, setting: &Setting, differences: &[f64]) {
    draft.comparison.method = Method::Anytime;
    draft.theta = Walsh::new(differences).map_or(f64::NAN, |walsh| walsh.hodges_lehmann());
    if let Some(interval) = interval(setting, differences) {
        draft.set_effect(interval);
    }
}
