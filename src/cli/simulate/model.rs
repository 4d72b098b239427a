//! Simulated experiments: the order, stopping and verdict of assay over made-up noise.
//!
//! Enters: a kind of noise, CV, effect, rows, seed. Leaves: what one experiment claimed, and when.

use std::path::Path;

use super::noise::{Kind, Noise, OTHER_SEEDS};
use crate::analyse::{self, Caveat, Options, Role, Verdict};
use crate::experiment::{CommandLine, Experiment};
use crate::plan::Plan;
use crate::record::{Cell, Design, Factor, LeadIn, Metric, Order, Run, RunState, Source, StopRule, Trial};
use crate::units::{Better, Unit};

/// δ of the comparison with averages, as a ratio − 1.
const AVERAGES_DIFFER: f64 = 0.02;

/// An experiment to simulate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model<'p> {
    /// The cells; their order, and what leads into a round, is what a real run would have.
    pub plan: &'p Plan,
    /// What the noise is like.
    pub kind: Kind,
    /// Spread of a trial on the log scale.
    pub cv: f64,
    /// Effect of the candidate on its time, as a ratio − 1, in every row.
    pub effect: f64,
    /// When it ends.
    pub stop: StopRule,
}

/// What one simulated experiment of one row came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Replicate {
    /// It claimed a difference.
    pub claimed: bool,
    /// It claimed the true one: slower.
    pub right: bool,
    /// It claimed that there is no difference.
    pub no_difference: bool,
    /// Its interval holds the effect.
    pub covered: bool,
    /// Rounds until it stopped.
    pub rounds: u32,
    /// Of one that claims the true difference and stopped early: its estimate less the true effect.
    pub beyond: Option<f64>,
}

impl Model<'_> {
    /// One experiment of one row with assay's order, stopping and verdict.
    pub(super) fn sequential(&self, seed: u64) -> Replicate {
        let run = self.run(seed, self.stop.rounds.unwrap_or(self.stop.max_rounds));
        let rounds = first_decided(&run);
        let run = upto(&run, rounds);
        let analysis = analyse::analyse(&run, &Options::default());
        let primary = analysis.comparisons.into_iter().find(|c| c.role == Role::Primary);
        let verdict = primary.as_ref().map(|c| &c.verdict);
        let right = matches!(verdict, Some(Verdict::Slower { .. }));
        let claimed = right || matches!(verdict, Some(Verdict::Faster { .. }));
        let no_difference = matches!(verdict, Some(Verdict::NoDifference { .. }));
        let interval = primary.as_ref().and_then(|c| c.effect);
        let covered = interval.is_none_or(|effect| effect.low <= self.effect && self.effect <= effect.high);
        let early = primary.filter(|c| right && c.caveats.contains(&Caveat::StoppedEarly));
        let beyond = early.and_then(|c| Some(c.effect?.estimate - self.effect));
        Replicate { claimed, right, no_difference, covered, rounds, beyond }
    }

    /// The run after `rounds` rounds. All its rows are measured in one order and share one noise.
    pub(super) fn run(&self, seed: u64, rounds: u32) -> Run {
        let mut noise = Noise::new(self.kind, self.cv, seed.wrapping_add(OTHER_SEEDS));
        let mut run = empty_run(self.plan, seed);
        run.design.stop = self.stop;
        let plan = Plan { seed, ..self.plan.clone() };
        for round in 0..rounds {
            if let Some((cell, _)) = plan.lead_in(round) {
                let arm = run.arm_of(cell as u32);
                let log = noise.next_trial(arm == 1, false) + arm as f64 * self.effect.ln_1p();
                run.lead_ins.push(lead_in(cell as u32, round, log.exp()));
            }
            for (position, cell) in (0..).zip(plan.order(round)) {
                let arm = run.arm_of(cell as u32);
                let log = noise.next_trial(arm == 1, position == 0) + arm as f64 * self.effect.ln_1p();
                run.trials.push(trial(cell as u32, round, position, log.exp()));
            }
        }
        run
    }

    /// What people do today: five runs of A, then five of B, and a claim when the averages differ by 2 %.
    pub(super) fn five_and_five_in_blocks(&self, seed: u64) -> bool {
        let mut noise = Noise::new(self.kind, self.cv, seed);
        let mut average = |is_b: bool, effect: f64| {
            (0..5).map(|_| (noise.next_trial(is_b, false) + effect).exp()).sum::<f64>() / 5.0
        };
        let baseline = average(false, 0.0);
        let candidate = average(true, self.effect.ln_1p());
        (candidate / baseline - 1.0).abs() > AVERAGES_DIFFER
    }
}

/// The round after which [`analyse::decided`] ends a run. A claim that was made is kept, so that what is decided stays so, and
/// halving finds the first round at which it is.
fn first_decided(run: &Run) -> u32 {
    let decided = |rounds: u32| analyse::decided(&upto(run, rounds), &Options::default());
    let all = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
    let (mut open, mut end) = (0, all);
    while end - open > 1 {
        let middle = u32::midpoint(open, end);
        if decided(middle) { end = middle } else { open = middle }
    }
    end
}

/// The run as it was after `rounds` rounds.
pub(super) fn upto(run: &Run, rounds: u32) -> Run {
    let mut run = run.clone();
    run.trials.retain(|trial| trial.round < rounds);
    run.lead_ins.retain(|lead_in| lead_in.round < rounds);
    run
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

fn lead_in(cell: u32, round: u32, runtime_s: f64) -> LeadIn {
    LeadIn {
        cell,
        round,
        started_unix_ns: 0,
        elapsed_s: runtime_s,
        failed: None,
        wrong_data: false,
        values: vec![(0, runtime_s)],
    }
}

fn trial(cell: u32, round: u32, position: u32, runtime_s: f64) -> Trial {
    Trial { cell, round, position, elapsed_s: runtime_s, values: vec![(0, runtime_s)], ..Trial::default() }
}

fn empty_run(plan: &Plan, seed: u64) -> Run {
    let runtime = Metric::new("", "runtime", Unit::Seconds, Better::Lower);
    let factor =
        |factor: &crate::plan::PlannedFactor| Factor::new(factor.name.clone(), factor.levels.clone());
    let design = Design {
        compare: plan.compare,
        paired: true,
        primary: Some("runtime".to_owned()),
        order: Order::Independent,
        lead_in: plan.lead_in,
        ..Design::new(plan.factors.iter().map(factor).collect())
    };
    Run {
        seed,
        engine: "simulate".to_owned(),
        metrics: vec![runtime],
        cells: plan.cells.iter().map(|cell| Cell { levels: cell.levels.clone() }).collect(),
        ..Run::new("simulation", Source::Measured, RunState::Running, design)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_effect_is_found_and_averages_in_blocks_mislead() {
        let plan = cells(1).unwrap();
        let model =
            |cv, effect| Model { plan: &plan, kind: Kind::Full, cv, effect, stop: StopRule::default() };
        let found = (0..40).filter(|seed| model(0.01, 0.1).sequential(*seed).right).count();
        assert!(found >= 38, "{found}");
        let misled = (0..200).filter(|seed| model(0.1, 0.0).five_and_five_in_blocks(*seed)).count();
        assert!((140..195).contains(&misled), "{misled} of 200");
    }

    #[test]
    fn halving_finds_the_round_at_which_a_run_ends() {
        let plan = cells(2).unwrap();
        for seed in 0..12 {
            let model =
                Model { plan: &plan, kind: Kind::Full, cv: 0.02, effect: 0.05, stop: StopRule::default() };
            let run = model.run(seed, 30);
            let decided = |rounds: &u32| analyse::decided(&upto(&run, *rounds), &Options::default());
            assert_eq!((1..=30).find(decided), Some(first_decided(&run)), "seed {seed}");
        }
    }
}
