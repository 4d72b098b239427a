//! The generating model of the simulation table: what a storage benchmark's trials look like in time order.
//!
//! Enters: CV, effect, seed. Leaves: one simulated experiment's claim and rounds. On the log scale a trial is
//! N(0, CV) + AR(1) drift (ρ 0.95, stationary sd CV) + a linear trend U(−3, 3)·CV per 20 trials + in 5 % of the
//! trials a stall of U(0.1, 0.5); the candidate adds its effect.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::analyse::{self, Caveat, Options, Role, Verdict};
use crate::experiment::{CommandLine, Experiment};
use crate::plan::Plan;
use crate::record::{
    Cell, Design, Factor, FailureRule, Metric, RECORD_VERSION, Run, RunState, Source, Status, StopRule, Trial,
};
use crate::units::{Better, Unit};

const RHO: f64 = 0.95;
const STALL_CHANCE: f64 = 0.05;
/// δ of the comparison with averages, as a ratio − 1.
const AVERAGES_DIFFER: f64 = 0.02;

/// One cell of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model<'p> {
    /// The two cells; its order is the one a real run would have.
    pub plan: &'p Plan,
    /// Spread of a trial on the log scale.
    pub cv: f64,
    /// Effect of the candidate on its time, as a ratio − 1.
    pub effect: f64,
    /// When it ends.
    pub stop: StopRule,
}

/// What one simulated experiment came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Replicate {
    /// It claimed a difference.
    pub claimed: bool,
    /// It claimed the true one: slower.
    pub right: bool,
    /// Rounds until it stopped.
    pub rounds: u32,
    /// Of one that claims the true difference and stopped early: its estimate less the true effect.
    pub beyond: Option<f64>,
}

impl Model<'_> {
    /// One experiment with assay's order, stopping and verdict.
    pub(super) fn sequential(&self, seed: u64) -> Replicate {
        let mut noise = Noise::new(self.cv, seed);
        let mut run = empty_run(seed);
        run.design.stop = self.stop;
        let options = Options::default();
        let plan = Plan { seed, ..self.plan.clone() };
        let mut round = 0;
        loop {
            for (position, cell) in plan.order(round).into_iter().enumerate() {
                let log = noise.next_trial() + cell as f64 * self.effect.ln_1p();
                run.trials.push(trial(cell as u32, round, position as u32, log.exp()));
            }
            round += 1;
            if analyse::decided(&run, &options) {
                break;
            }
        }
        let analysis = analyse::analyse(&run, &options);
        let primary = analysis.comparisons.into_iter().find(|c| c.role == Role::Primary);
        let verdict = primary.as_ref().map(|c| &c.verdict);
        let right = matches!(verdict, Some(Verdict::Slower { .. }));
        let claimed = right || matches!(verdict, Some(Verdict::Faster { .. }));
        let early = primary.filter(|c| right && c.caveats.contains(&Caveat::StoppedEarly));
        let beyond = early.and_then(|c| Some(c.effect?.estimate - self.effect));
        Replicate { claimed, right, rounds: round, beyond }
    }

    /// What people do today: five runs of A, then five of B, and a claim when the averages differ by 2 %.
    pub(super) fn five_and_five_in_blocks(&self, seed: u64) -> bool {
        let mut noise = Noise::new(self.cv, seed);
        let mut average =
            |effect: f64| (0..5).map(|_| (noise.next_trial() + effect).exp()).sum::<f64>() / 5.0;
        let baseline = average(0.0);
        let candidate = average(self.effect.ln_1p());
        (candidate / baseline - 1.0).abs() > AVERAGES_DIFFER
    }
}

/// A plan of two cells, A and B, in each of `rows` rows.
pub(super) fn cells(rows: u32) -> anyhow::Result<Plan> {
    let sizes: Vec<String> = (1..=rows).map(|row| format!("{row}m")).collect();
    let mut vary = vec!["direct=0,1".to_owned()];
    vary.extend((rows > 1).then(|| format!("size={}", sizes.join(","))));
    let line = CommandLine { vary, ..CommandLine::default() };
    let text = "job_text = \"[job]\\nrw=write\\nsize=1m\\n\"\n";
    let experiment = Experiment::from_toml(text, "simulate", Path::new("/"), &line)?;
    Ok(Plan::new(&experiment, 0, Path::new("/"), "")?)
}

/// The noise of successive trials.
pub(super) struct Noise {
    rng: ChaCha8Rng,
    cv: f64,
    drift: f64,
    trend_per_trial: f64,
    trials: u32,
}

impl Noise {
    pub(super) fn new(cv: f64, seed: u64) -> Noise {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let trend_per_trial = rng.random_range(-3.0..3.0) * cv / 20.0;
        let drift = cv * normal(&mut rng);
        Noise { rng, cv, drift, trend_per_trial, trials: 0 }
    }

    pub(super) fn next_trial(&mut self) -> f64 {
        self.drift = RHO * self.drift + (1.0 - RHO * RHO).sqrt() * self.cv * normal(&mut self.rng);
        let trend = self.trend_per_trial * f64::from(self.trials);
        self.trials += 1;
        let stalled = self.rng.random::<f64>() < STALL_CHANCE;
        let stall = if stalled { self.rng.random_range(0.1..0.5) } else { 0.0 };
        self.cv * normal(&mut self.rng) + self.drift + trend + stall
    }
}

/// Box & Muller (1958).
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

pub(super) fn trial(cell: u32, round: u32, position: u32, runtime_s: f64) -> Trial {
    Trial {
        cell,
        round,
        position,
        attempt: 0,
        started_unix_ns: 0,
        elapsed_s: runtime_s,
        facts: None,
        status: Status::Done,
        excluded: None,
        values: vec![(0, runtime_s)],
        histograms: Vec::new(),
        series: Vec::new(),
        notes: Vec::new(),
    }
}

pub(super) fn empty_run(seed: u64) -> Run {
    let runtime =
        Metric { job: String::new(), name: "runtime".to_owned(), unit: Unit::Seconds, better: Better::Lower };
    let arms = Factor { name: "arm".to_owned(), levels: vec!["A".to_owned(), "B".to_owned()] };
    Run {
        version: RECORD_VERSION,
        id: None,
        name: "simulation".to_owned(),
        source: Source::Measured,
        state: RunState::Running,
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: 0,
        command_line: Vec::new(),
        seed,
        engine: "simulate".to_owned(),
        job_text: None,
        experiment: serde_json::Value::Null,
        design: Design {
            factors: vec![arms],
            compare: 0,
            paired: true,
            primary: Some("runtime".to_owned()),
            show: Vec::new(),
            stop: StopRule::default(),
            failures: FailureRule::default(),
        },
        aa: false,
        facts: Vec::new(),
        metrics: vec![runtime],
        cells: vec![Cell { levels: vec![0] }, Cell { levels: vec![1] }],
        trials: Vec::new(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::descriptive::{mean, stddev};

    #[test]
    fn noise_has_the_stated_spread() {
        // A trial 10 into a run: N, AR(1), the trend (uniform: 3·CV/20·10/√3) and stalls.
        let cv = 0.1;
        let values: Vec<f64> = (0..20_000)
            .map(|seed| {
                let mut noise = Noise::new(cv, seed);
                (0..11).map(|_| noise.next_trial()).last().unwrap()
            })
            .collect();
        let stall_variance = 0.05 * (0.3 * 0.3 + 0.4 * 0.4 / 12.0) - (0.05 * 0.3_f64).powi(2);
        let trend = 3.0 * cv / 20.0 * 10.0 / 3_f64.sqrt();
        let expected = (2.0 * cv * cv + trend * trend + stall_variance).sqrt();
        assert!((stddev(&values) / expected - 1.0).abs() < 0.03, "{} {expected}", stddev(&values));
        assert!((mean(&values) - 0.015).abs() < 0.004);
    }

    #[test]
    fn a_large_effect_is_found_and_averages_in_blocks_mislead() {
        let plan = cells(1).unwrap();
        let found = (0..40)
            .filter(|seed| {
                Model { plan: &plan, cv: 0.01, effect: 0.1, stop: StopRule::default() }
                    .sequential(*seed)
                    .right
            })
            .count();
        assert!(found >= 38, "{found}");
        let null = Model { plan: &plan, cv: 0.1, effect: 0.0, stop: StopRule::default() };
        let misled = (0..200).filter(|seed| null.five_and_five_in_blocks(*seed)).count();
        assert!((140..195).contains(&misled), "{misled}");
    }
}
