//! What an interval for any number of looks costs (METHODOLOGY, *Anytime*).
//!
//! Enters: replicates and a seed. Leaves: two tables, and the promises they break. False claims come from
//! [`crate::stats::anytime`] on differences alone; rounds and claims from whole runs with and without `--anytime`, on the
//! same noise.

use std::fmt::Write as Text;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::model::{Model, cells};
use super::noise::{Kind, normal};
use super::{Args, in_parallel};
use crate::record::StopRule;
use crate::stats::anytime;
use crate::stats::descriptive::mean;

/// Looks of one experiment, one after each round.
const LOOKS: usize = 200;
const ALPHA: f64 = 0.05;
/// Runs need an interval after every round: more of them would take minutes.
const MOST_RUNS: u32 = 500;
const CVS: [f64; 2] = [0.01, 0.03];
const EFFECTS: [f64; 4] = [0.0, 0.02, 0.05, 0.10];
/// Noise of D, in the order of the first table.
const SHAPES: [&str; 3] = ["normal", "Cauchy", "difference of two lognormal times"];

/// Both tables.
pub(super) struct Anytime {
    /// Experiments in percent that claim falsely at any look, by shape.
    wrong: [f64; 3],
    replicates: u32,
    /// With and without `--anytime`, by CV and effect.
    runs: Vec<[Figure; 2]>,
}

/// Runs of one CV, effect and way to stop.
#[derive(Clone, Copy)]
struct Figure {
    /// Claims in percent: false where there is no effect, else right.
    claims: f64,
    /// Mean rounds until the run ended.
    rounds: f64,
}

impl Anytime {
    /// Simulates.
    ///
    /// # Errors
    /// The plan of two cells cannot be made.
    pub(super) fn simulate(args: &Args) -> anyhow::Result<Anytime> {
        let wrong = std::array::from_fn(|shape| {
            let ever = in_parallel(args, move |seed| claims_falsely(shape, seed));
            100.0 * ever.iter().filter(|claimed| **claimed).count() as f64 / ever.len() as f64
        });
        let plan = cells(1)?;
        let few = Args { replicates: args.replicates.min(MOST_RUNS), seed: args.seed };
        let mut runs = Vec::new();
        for (cv, effect) in CVS.into_iter().flat_map(|cv| EFFECTS.map(|effect| (cv, effect))) {
            runs.push([true, false].map(|anytime| {
                let stop = StopRule { anytime, ..StopRule::default() };
                let model = Model { plan: &plan, kind: Kind::Full, cv, effect, stop };
                let ended = in_parallel(&few, |seed| model.sequential(seed));
                let claims = ended.iter().filter(|run| if effect == 0.0 { run.claimed } else { run.right });
                Figure {
                    claims: 100.0 * claims.count() as f64 / ended.len() as f64,
                    rounds: mean(&ended.iter().map(|run| f64::from(run.rounds)).collect::<Vec<_>>()),
                }
            }));
        }
        Ok(Anytime { wrong, replicates: args.replicates, runs })
    }

    /// The tables in Markdown.
    pub(super) fn tables(&self) -> String {
        let mut text = format!("| D | `--anytime`: false claims % over {LOOKS} looks |\n|---|---|\n");
        for (shape, wrong) in SHAPES.iter().zip(self.wrong) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {shape} | {wrong:.1} |");
        }
        text.push_str("\n| at most 30 rounds, effect 0/2/5/10 % | CV 1 % | CV 3 % |\n|---|---|---|\n");
        let ways = [(0, "`--anytime`"), (1, "default")];
        for (way, title) in ways {
            self.row(&mut text, &format!("{title}: claims %, false and right"), |runs| runs[way].claims, 0);
        }
        for (way, title) in ways {
            self.row(&mut text, &format!("{title}: mean rounds"), |runs| runs[way].rounds, 1);
        }
        text
    }

    fn row(&self, text: &mut String, title: &str, figure: impl Fn(&[Figure; 2]) -> f64, decimals: usize) {
        let of_cv = |runs: &[[Figure; 2]]| {
            runs.iter().map(|runs| format!("{:.decimals$}", figure(runs))).collect::<Vec<_>>().join("/")
        };
        let cells: Vec<String> = self.runs.chunks(EFFECTS.len()).map(of_cv).collect();
        let _ = writeln!(text, "| {title} | {} |", cells.join(" | "));
    }

    /// False claims above α by more than three standard errors, in words.
    pub(super) fn broken(&self) -> Vec<String> {
        let error = 100.0 * (ALPHA * (1.0 - ALPHA) / f64::from(self.replicates)).sqrt();
        let most = 100.0 * ALPHA + 3.0 * error;
        let shapes = SHAPES.iter().zip(self.wrong).filter(|(_, wrong)| *wrong > most);
        shapes.map(|(shape, wrong)| format!("anytime, {shape} D: {wrong:.1} % false claims")).collect()
    }
}

/// Whether any of [`LOOKS`] looks claims that D, symmetric about 0, is not.
fn claims_falsely(shape: usize, seed: u64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut difference = || match shape {
        0 => normal(&mut rng),
        1 => (std::f64::consts::PI * (rng.random::<f64>() - 0.5)).tan(),
        _ => normal(&mut rng).exp() - normal(&mut rng).exp(),
    };
    let differences: Vec<f64> = (0..LOOKS).map(|_| difference()).collect();
    anytime::evidence(&differences, 0.0) >= ALPHA.recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_claims_above_alpha_are_named() {
        let figures = |wrong| Anytime { wrong, replicates: 1_900, runs: Vec::new() };
        // Three standard errors of 5 % at 1,900 replicates are 1.5 points.
        assert!(figures([6.4, 3.0, 4.0]).broken().is_empty());
        assert_eq!(figures([3.0, 6.6, 4.0]).broken(), ["anytime, Cauchy D: 6.6 % false claims"]);
    }
}
