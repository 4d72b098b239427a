//! What a trial leaves behind for the one after it: estimated in every paired run, and taken out where nothing else does.
//!
//! Enters: the order in which the trials ran. Leaves: the effect of coming after a candidate's trial rather than after a
//! baseline's, and, for runs without lead-ins in which it shows, the difference adjusted for it.
//!
//! A round with a lead-in runs its first cell twice: once after the last trial of the round before, once after itself. The
//! difference of the two is the effect of the position plus λ([first is the candidate] − [before was the candidate]), λ being the
//! carry-over. Without lead-ins D = θ + λz + noise, z = [before the candidate's trial was the candidate] − [before the
//! baseline's was it]: −1 or 0, so that a carry-over biases D by −λ/2, and the line through (z, D) has θ where z is 0.
//! Source: Jones & Kenward, *Design and Analysis of Cross-Over Trials* (2015) ch. 1–3; simulated in `assay simulate`.

use std::collections::BTreeMap;

use super::comparison::Caveat;
use super::draft::{Case, Setting};
use super::layout::Row;
use super::summary::as_ratio;
use super::table::{Point, pairs};
use crate::record::{LeadIn, Source};
use crate::stats::line::{self, Line};

/// p below which a carry-over shows.
const SHOWS: f64 = 0.05;
/// Rounds below which there is no telling; half of them must be of either kind.
const FEWEST: usize = 6;

/// D's line over z: its intercept is the difference without carry-over, its slope the carry-over. `None`: too few rounds, or z does
/// not vary.
fn over_z(
    setting: &Setting,
    pairs: &[(Point, Point)],
    differences: &[f64],
    arm: usize,
    level: f64,
) -> Option<Line> {
    let order = setting.table.order();
    let after_candidate = |point: &Point| {
        let before = order.before(point.round, point.position);
        f64::from(u8::from(before.and_then(|cell| setting.layout.arm_of(cell)) == Some(arm)))
    };
    let z: Vec<f64> =
        pairs.iter().map(|(base, cand)| after_candidate(cand) - after_candidate(base)).collect();
    // A line through one point and the rest would be that point's.
    let biased = z.iter().filter(|z| **z < 0.0).count();
    let told = biased >= FEWEST / 2 && z.len() - biased >= FEWEST / 2;
    told.then(|| line::through(&z, differences, level)).flatten()
}

/// Whether what trials leave behind can be told of a run: assay ran it, in rounds.
fn is_told(setting: &Setting) -> bool {
    setting.run.design.paired && setting.run.source == Source::Measured
}

/// The difference of a comparison in a run without lead-ins in which a carry-over shows, adjusted for it.
pub(super) fn adjusted(
    setting: &Setting,
    case: &Case,
    pairs: &[(Point, Point)],
    differences: &[f64],
    level: f64,
) -> Option<Line> {
    if setting.run.design.lead_in || !is_told(setting) {
        return None;
    }
    over_z(setting, pairs, differences, case.arm, level).filter(|line| line.slope_p <= SHOWS)
}

/// The carry-over of each candidate, where there are rounds enough to tell: one caveat a candidate.
pub(super) fn caveats(setting: &Setting) -> Vec<Caveat> {
    if !is_told(setting) {
        return Vec::new();
    }
    let arms = 1..setting.layout.arms.len();
    arms.filter_map(|arm| {
        let line = if setting.run.design.lead_in {
            from_lead_ins(setting, arm)?
        } else {
            from_differences(setting, arm)?
        };
        let effect = as_ratio(line.slope);
        // Values that never vary leave nothing behind, and that is no news.
        if line.slope_p >= 1.0 {
            return None;
        }
        let (arm, lead_in) = (setting.layout.arms[arm].clone(), setting.run.design.lead_in);
        Some(Caveat::CarryOver { arm, effect, p: line.slope_p, lead_in })
    })
    .collect()
}

/// What lead-ins show, of all rows together: each cell's first measured trial against its lead-in.
fn from_lead_ins(setting: &Setting, arm: usize) -> Option<Line> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let is_candidate = |other: usize| f64::from(u8::from(other == arm));
    // A session that was killed before its first trial leaves one more: what ran last is what led into the round.
    let latest: BTreeMap<u32, &LeadIn> =
        setting.run.lead_ins.iter().map(|lead_in| (lead_in.round, lead_in)).collect();
    for lead_in in latest.into_values().filter(|lead_in| lead_in.failed.is_none()) {
        let before = setting.table.order().before_round(lead_in.round);
        let before = before.and_then(|cell| setting.layout.arm_of(cell));
        let (Some(first), Some(before)) = (setting.layout.arm_of(lead_in.cell), before) else { continue };
        if [first, before].iter().any(|other| *other != 0 && *other != arm) {
            continue;
        }
        let Some(change) = setting.layout.rows.iter().find_map(|row| change(setting, row, lead_in)) else {
            continue;
        };
        x.push(is_candidate(first) - is_candidate(before));
        y.push(change);
    }
    (x.len() >= FEWEST).then(|| line::through(&x, &y, 0.05)).flatten()
}

/// ln(first measured trial/lead-in) of the row's primary metric.
fn change(setting: &Setting, row: &Row, lead_in: &LeadIn) -> Option<f64> {
    let metric = row.primary()?;
    row.cells.iter().flatten().find(|cell| **cell == lead_in.cell)?;
    let (_, led) = lead_in.values.iter().find(|(index, _)| *index == metric)?;
    let column = setting.table.column(lead_in.cell, metric);
    let at = column.binary_search_by_key(&lead_in.round, |point| point.round).ok()?;
    let measured = column[at].value;
    let change = (measured / led).ln();
    (*led > 0.0 && measured > 0.0 && change.is_finite()).then_some(change)
}

/// What the differences of the row show that shows most, where no trial leads into a round; its p is for one of so many.
fn from_differences(setting: &Setting, arm: usize) -> Option<Line> {
    let lines = setting.layout.rows.iter().filter_map(|row| {
        let case = Case::deciding(row, row.primary()?, (0, arm));
        let (baseline, candidate) = setting.columns(&case);
        let pairs = pairs(&baseline, &candidate);
        over_z(setting, &pairs, &super::paired::log_ratios(&pairs)?, arm, 0.05)
    });
    let lines: Vec<Line> = lines.collect();
    let rows = lines.len() as f64;
    let most = lines.into_iter().min_by(|a, b| a.slope_p.total_cmp(&b.slope_p))?;
    Some(Line { slope_p: (rows * most.slope_p).min(1.0), ..most })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::comparison::{Comparison, Method, Verdict};
    use super::super::made_up::{Made, run_of};
    use super::super::{Options, Role, analyse};
    use super::*;
    use crate::record::{Order as Design, Run, StopRule};

    /// Noise of a trial, log scale.
    const CV: f64 = 0.01;

    /// A run in which a trial after one of the candidate reads `carried` more.
    fn run(effect: f64, carried: f64, lead_in: bool, rounds: u32, stop: StopRule) -> Run {
        let mut run = run_of(&Made { stop, ..Made::default() }, rounds);
        (run.design.order, run.design.lead_in) = (Design::Independent, lead_in);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut before = 0_u32;
        for round in 0..rounds {
            let first = u32::from(rng.random::<bool>());
            let mut trial = |cell: u32| {
                let noise = CV * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
                let log = f64::from(cell) * effect.ln_1p() + f64::from(before) * carried.ln_1p() + noise;
                before = cell;
                1e8 * log.exp()
            };
            if lead_in {
                run.lead_ins.push(LeadIn {
                    cell: first,
                    round,
                    started_unix_ns: 0,
                    elapsed_s: 1.0,
                    failed: None,
                    wrong_data: false,
                    values: vec![(0, trial(first))],
                });
            }
            for position in 0..2 {
                let at = &mut run.trials[(2 * round + position) as usize];
                at.cell = if position == 0 { first } else { 1 - first };
                at.values = vec![(0, trial(at.cell))];
            }
        }
        run
    }

    fn fixed(rounds: u32) -> StopRule {
        StopRule { rounds: Some(rounds), ..StopRule::default() }
    }

    /// The deciding comparison and (effect, p) of the carry-over.
    fn judged(run: &Run) -> (Comparison, Option<(super::super::Interval, f64)>) {
        let analysis = analyse(run, &Options::default());
        let carried = analysis.caveats.iter().find_map(|caveat| match caveat {
            Caveat::CarryOver { effect, p, lead_in, .. } => {
                assert_eq!(*lead_in, run.design.lead_in);
                Some((*effect, *p))
            }
            _ => None,
        });
        let mut comparisons = analysis.comparisons.into_iter();
        (comparisons.find(|comparison| comparison.role == Role::Primary).unwrap(), carried)
    }

    #[test]
    fn lead_ins_show_a_carry_over_and_keep_it_out_of_the_verdict() {
        let (comparison, carried) = judged(&run(0.0, 0.05, true, 24, fixed(24)));
        let (effect, p) = carried.unwrap();
        assert!(effect.low < 0.05 && 0.05 < effect.high && effect.low > 0.02, "{effect:?}");
        assert!(p < 0.001, "{p}");
        assert!(matches!(comparison.verdict, Verdict::NoDifference { .. }), "{comparison:?}");
        assert_eq!(comparison.method, Method::FixedSignedRank);
        let (comparison, _) = judged(&run(0.04, 0.05, true, 24, fixed(24)));
        let effect = comparison.effect.unwrap();
        assert!(
            comparison.is_better() == Some(true) && effect.low < 0.04 && 0.04 < effect.high,
            "{effect:?}"
        );
    }

    #[test]
    fn without_lead_ins_the_difference_is_adjusted() {
        for (true_effect, better) in [(0.04, true), (-0.04, false)] {
            let (comparison, carried) = judged(&run(true_effect, 0.05, false, 24, fixed(24)));
            let (carried, effect) = (carried.unwrap(), comparison.effect.unwrap());
            assert!(carried.0.low < 0.05 && 0.05 < carried.0.high && carried.1 < 0.05, "{carried:?}");
            assert_eq!(
                (comparison.method, comparison.is_better()),
                (Method::CarryOverAdjusted, Some(better))
            );
            assert!(effect.low < true_effect && true_effect < effect.high, "{effect:?}");
        }
        // What is 2.5 % to the eye is the carry-over alone, and is not claimed.
        let (comparison, _) = judged(&run(0.0, 0.05, false, 24, fixed(24)));
        assert_eq!(comparison.method, Method::CarryOverAdjusted);
        assert!(
            !matches!(comparison.verdict, Verdict::Faster { .. } | Verdict::Slower { .. }),
            "{comparison:?}"
        );
    }

    #[test]
    fn an_adjusted_difference_is_judged_once_at_the_end() {
        let stop = StopRule { max_rounds: 24, rounds: None, ..StopRule::default() };
        let half = judged(&run(0.1, 0.05, false, 16, stop)).0;
        assert!(matches!(half.verdict, Verdict::Undecided { .. }) && half.p.is_none(), "{half:?}");
        assert_eq!(judged(&run(0.1, 0.05, false, 24, stop)).0.is_better(), Some(true));
    }

    #[test]
    fn among_other_rows_an_adjusted_difference_shares_alpha() {
        let stop = StopRule { max_rounds: 24, rounds: None, ..StopRule::default() };
        let between_shares = (0..40).filter(|step| {
            let mut run = run(f64::from(*step) * 5e-4, 0.05, false, 24, stop);
            // A second job without carry-over, whose looks have no p.
            run.metrics.truncate(1);
            run.metrics[0].job = "first".to_owned();
            run.metrics.push(crate::record::Metric { job: "second".to_owned(), ..run.metrics[0].clone() });
            for trial in &mut run.trials {
                trial.values.truncate(1);
                trial
                    .values
                    .push((1, 1e8 * (1.0 + 1e-3 * f64::from((trial.round * 7 + trial.cell * 5) % 11))));
            }
            let comparison = judged(&run).0;
            assert_eq!(comparison.method, Method::CarryOverAdjusted);
            let p = comparison.p.unwrap();
            assert_eq!(comparison.is_better().is_some(), p <= 0.025, "{comparison:?}");
            (0.025..0.05).contains(&p)
        });
        assert!(between_shares.count() > 0, "p of a half to a whole α is what would go wrong");
    }

    #[test]
    fn without_a_carry_over_nothing_is_adjusted() {
        for lead_in in [true, false] {
            let (comparison, carried) = judged(&run(0.04, 0.0, lead_in, 24, fixed(24)));
            let (effect, p) = carried.unwrap();
            assert!(effect.low < 0.0 && 0.0 < effect.high && p > 0.05, "{lead_in} {effect:?} {p}");
            assert_eq!((comparison.method, comparison.is_better()), (Method::FixedSignedRank, Some(true)));
        }
    }

    #[test]
    fn few_rounds_tell_nothing_of_a_carry_over() {
        assert!(judged(&run(0.0, 0.05, true, 5, fixed(5))).1.is_none());
        assert!(judged(&run(0.0, 0.05, false, 5, fixed(5))).1.is_none());
        // The lead-in that was killed and run again counts once.
        let mut twice = run(0.0, 0.05, true, 24, fixed(24));
        let once = judged(&twice).1;
        twice.lead_ins.insert(3, LeadIn { values: vec![(0, 1.0)], ..twice.lead_ins[3].clone() });
        assert_eq!(judged(&twice).1, once);
    }
}
