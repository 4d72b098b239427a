//! A/A runs: the baseline against itself through the same path.
//!
//! Enters: stored A/A runs. Leaves: the [`NoiseFloor`] of one, or of several of the same experiment, and the count of claims among many with its test
//! against 5 %.

use super::comparison::{NoiseFloor, Role, Verdict};
use super::draft::{Case, Setting};
use super::layout::Layout;
use super::options::Options;
use super::paired::log_ratios;
use super::table::{Table, pairs};
use super::{Comparison, analyse};
use crate::record::Run;
use crate::stats::{binomial, chi_square, descriptive};

/// Smallest effect N_max rounds would show, in units of s_D/√N_max.
const VISIBLE: f64 = 3.8;

/// What one A/A run found on its first primary metric (or the one `options` names); `None` when it holds fewer
/// than four pairs, or not yet all its rounds. `aa_runs`, `aa_claims` and `aa_p` count this run only; see
/// [`NoiseFloor::count_all`].
#[must_use]
pub fn noise_floor(aa_run: &Run, options: &Options) -> Option<NoiseFloor> {
    pooled_noise_floor([aa_run], options)
}

/// The first of `aa_runs` that has a noise floor (give the latest first), with s_D pooled over all of them that have
/// its metric: one run of ten rounds knows s_D within a factor of two only.
#[must_use]
pub fn pooled_noise_floor<'a>(
    aa_runs: impl IntoIterator<Item = &'a Run>,
    options: &Options,
) -> Option<NoiseFloor> {
    let mut found: Option<NoiseFloor> = None;
    let (mut squares, mut df, mut pooled_runs, mut max_rounds) = (0.0, 0.0, 0, 0);
    for run in aa_runs {
        let Some((floor, own_df)) = of_one(run, options) else { continue };
        let first = found.get_or_insert_with(|| {
            max_rounds = options.stop(run).max_rounds;
            floor.clone()
        });
        if first.metric == floor.metric {
            squares += own_df * floor.s_d * floor.s_d;
            df += own_df;
            pooled_runs += 1;
        }
    }
    let floor = found?;
    let spread = chi_square::stddev_interval((squares / df).sqrt(), df, 0.05);
    let pooled =
        NoiseFloor { s_d: spread.estimate, s_d_low: spread.low, s_d_high: spread.high, pooled_runs, ..floor };
    Some(pooled.of_rounds(max_rounds))
}

/// The floor of one run with the spread of its own, and its degrees of freedom.
fn of_one(aa_run: &Run, options: &Options) -> Option<(NoiseFloor, f64)> {
    if aa_run.so_far().is_some() {
        return None;
    }
    let table = Table::with(aa_run, &options.named_metrics());
    let layout = Layout::new(aa_run, options, &table);
    let setting = Setting::deciding(aa_run, options, &table, &layout);
    let row = layout.rows.iter().find(|row| row.primary().is_some())?;
    let case = Case::deciding(row, row.primary()?, (0, 1));
    if layout.arms.len() < 2 {
        return None;
    }
    let (baseline, candidate) = setting.columns(&case);
    let differences = log_ratios(&pairs(&baseline, &candidate)).filter(|d| d.len() >= 4)?;
    let s_d = descriptive::stddev(&differences);
    let df = differences.len() as f64 - 1.0;
    let analysis = analyse(aa_run, options);
    let comparison = analysis.comparisons.iter().find(|c| c.role == Role::Primary)?;
    // Half the width on the log scale, as a ratio.
    let half_width = comparison.effect.map(|e| ((e.high.ln_1p() - e.low.ln_1p()) / 2.0).exp_m1())?;
    let alone = AaClaims::of(1, u32::from(any_claim(&analysis.comparisons)));
    let floor = NoiseFloor {
        run: aa_run.id,
        metric: comparison.metric.clone(),
        s_d,
        s_d_low: f64::NAN,
        s_d_high: f64::NAN,
        pooled_runs: 0,
        half_width,
        rounds: 0,
        smallest_effect: f64::NAN,
        aa_runs: alone.runs,
        aa_claims: alone.claims,
        aa_p: alone.p,
    };
    Some((floor, df))
}

impl NoiseFloor {
    /// With what a comparison of so many rounds would show.
    #[must_use]
    pub fn of_rounds(self, rounds: u32) -> NoiseFloor {
        let smallest_effect = (VISIBLE * self.s_d / f64::from(rounds).sqrt()).exp_m1();
        NoiseFloor { rounds, smallest_effect, ..self }
    }

    /// Takes the counts of all A/A runs there are in the place of this one's.
    pub fn count_all(&mut self, claims: AaClaims) {
        (self.aa_runs, self.aa_claims, self.aa_p) = (claims.runs, claims.claims, claims.p);
    }
}

/// Claims among A/A runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AaClaims {
    /// Runs counted.
    pub runs: u32,
    /// Runs that claimed a difference on any primary comparison.
    pub claims: u32,
    /// P(as many claims or more) at 5 % a run: small when the laboratory claims too much.
    pub p: f64,
}

/// Counts the claims of A/A runs and tests them against 5 %. Runs that are not A/A, or lack rounds, are left out.
#[must_use]
pub fn aa_claims<'a>(runs: impl IntoIterator<Item = &'a Run>) -> AaClaims {
    let (mut counted, mut claims) = (0, 0);
    for run in runs.into_iter().filter(|run| run.aa && run.so_far().is_none()) {
        counted += 1;
        claims += u32::from(claims_a_difference(run));
    }
    AaClaims::of(counted, claims)
}

impl AaClaims {
    fn of(runs: u32, claims: u32) -> AaClaims {
        AaClaims { runs, claims, p: binomial::at_least(runs, claims, 0.05) }
    }
}

/// Whether a run claims a difference on any primary comparison.
#[must_use]
pub fn claims_a_difference(run: &Run) -> bool {
    any_claim(&analyse(run, &Options::default()).comparisons)
}

fn any_claim(comparisons: &[Comparison]) -> bool {
    // One below δ is a claim like any other: the interval leaves out 0.
    let claims = |c: &&Comparison| {
        matches!(
            c.verdict,
            Verdict::Faster { .. }
                | Verdict::Slower { .. }
                | Verdict::NoDifference { real_but_below_delta: true }
        )
    };
    comparisons.iter().filter(|c| c.role == Role::Primary).any(|c| claims(&c))
}
