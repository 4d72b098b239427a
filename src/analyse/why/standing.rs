//! Which pairs of a run are explained: those of the rows that decide, with how each stands.

use super::super::comparison::{Analysis, Comparison, Role, Verdict};
use super::cause::Standing;
use crate::record::Run;

/// The comparisons that decide with the first arm, those of one row and candidate together, with how they stand together.
pub(super) fn pairs<'a>(run: &Run, analysis: &'a Analysis) -> Vec<(Vec<&'a Comparison>, Standing)> {
    let mut pairs: Vec<Vec<&Comparison>> = Vec::new();
    let with_first =
        |c: &&Comparison| c.role == Role::Primary && Some(&c.baseline.arm) == analysis.arms.first();
    for comparison in analysis.comparisons.iter().filter(with_first) {
        let same = |other: &Vec<&Comparison>| {
            other[0].row == comparison.row && other[0].candidate.arm == comparison.candidate.arm
        };
        match pairs.iter_mut().find(|pair| same(pair)) {
            Some(pair) => pair.push(comparison),
            None => pairs.push(vec![comparison]),
        }
    }
    let together = |pair: Vec<&'a Comparison>| {
        let all = pair.iter().map(|c| standing(run, c));
        let standing = all.min().unwrap_or(Standing::NotJudged);
        (pair, standing)
    };
    pairs.into_iter().map(together).collect()
}

/// Whether there is anything to explain.
pub(super) fn standing(run: &Run, comparison: &Comparison) -> Standing {
    match comparison.verdict {
        Verdict::TooFew { .. } | Verdict::NotMeasured(_) | Verdict::NotComparable => Standing::NotJudged,
        // An arm against itself differs by chance where it does.
        _ if run.aa => Standing::NothingDiffers,
        Verdict::Faster { .. } | Verdict::Slower { .. } => Standing::Differs,
        Verdict::NoDifference { .. } => Standing::NothingDiffers,
        Verdict::Undecided { .. } | Verdict::SoFar { .. } => Standing::NotDecided,
    }
}
