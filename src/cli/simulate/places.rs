//! Where verdicts once broke, each as a row: results in clusters, an arm that fails when it is slow, values in steps, looks before
//! the end.
//!
//! Enters: how many replicates. Leaves: one table, and what in it breaks a promise. Each row changes runs of [`Model`].

use std::fmt::Write as Text;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::model::{self, Model, upto};
use super::noise::{self, Kind};
use super::{Args, in_parallel};
use crate::analyse::{self, Options, Role, Verdict};
use crate::plan::Plan;
use crate::record::{FailureKind, HostFacts, Run, RunState, Source, Status, StopRule, Trial};

/// Rounds of each run.
const ROUNDS: u32 = 30;
const FIXED: StopRule = StopRule {
    rounds: Some(ROUNDS),
    max_rounds: ROUNDS,
    delta: 0.02,
    alpha: 0.05,
    exact: false,
    anytime: false,
    time_budget_s: None,
};
/// Boots of an arm, and repeats in each.
const BOOTS: u32 = 5;
const REPEATS: u32 = ROUNDS / BOOTS;
/// The share of its slowest trials in which an arm fails.
const FAILS: f64 = 0.3;
/// What values in steps are read with, as a share of their level, and their true effect.
const STEP: f64 = 0.1;
const BELOW_A_STEP: f64 = 0.03;

/// A row of the table.
struct Place {
    what: &'static str,
    /// What is counted.
    wrong: &'static str,
    replicates: u32,
    /// Percent.
    share: f64,
    /// Percent that is promised at most.
    promised: f64,
}

/// All of them.
pub(super) struct Places(Vec<Place>);

impl Places {
    pub(super) fn simulate(args: &Args) -> anyhow::Result<Places> {
        let plan = model::cells(1)?;
        let row = |what, wrong, promised, run: &(dyn Fn(u64) -> bool + Sync)| {
            let args = Args { replicates: (args.replicates / 4).max(100), seed: args.seed };
            let said = in_parallel(&args, run);
            let share = 100.0 * said.iter().filter(|wrong| **wrong).count() as f64 / said.len() as f64;
            Place { what, wrong, replicates: args.replicates, share, promised }
        };
        Ok(Places(vec![
            row("5 boots × 6 repeats an arm, 2 % between boots", "a difference", 6.0, &|seed| {
                claims(&in_boots(&plan, seed))
            }),
            row("B fails in its slowest 30 %, and is tried again", "B faster", 1.0, &|seed| {
                matches!(verdict(&fails_when_slow(&plan, seed)), Some(Verdict::Faster { .. }))
            }),
            row("steps of 10 %, true +3 %", "no difference", 0.0, &|seed| {
                matches!(verdict(&in_steps(&plan, seed)), Some(Verdict::NoDifference { .. }))
            }),
            row("`--rounds 30`, looked at after each round", "any verdict before the end", 0.0, &|seed| {
                early_verdict(&plan, seed)
            }),
        ]))
    }

    /// The table, as METHODOLOGY has it.
    pub(super) fn table(&self) -> String {
        let mut text =
            String::from("| what | counted | of | % | promised at most % |\n|---|---|---|---|---|\n");
        for place in &self.0 {
            let Place { what, wrong, replicates, share, promised } = place;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {what} | {wrong} | {replicates} | {share:.1} | {promised:.0} |");
        }
        text
    }

    /// Broken promises, one line each; what is promised to happen never has no allowance for chance.
    pub(super) fn broken(&self) -> Vec<String> {
        let is_broken = |place: &&Place| {
            let share = place.promised / 100.0;
            let chance = 300.0 * (share * (1.0 - share) / f64::from(place.replicates)).sqrt();
            // NaN breaks it, too.
            let kept = place.share <= place.promised + chance;
            !kept
        };
        let broken = self.0.iter().filter(is_broken);
        broken
            .map(|place| {
                format!("{}, {}: {:.2} %, promised {}", place.what, place.wrong, place.share, place.promised)
            })
            .collect()
    }
}

fn primary(run: &Run) -> Option<analyse::Comparison> {
    analyse::analyse(run, &Options::default()).comparisons.into_iter().find(|c| c.role == Role::Primary)
}

fn verdict(run: &Run) -> Option<Verdict> {
    primary(run).map(|comparison| comparison.verdict)
}

fn claims(run: &Run) -> bool {
    matches!(verdict(run), Some(Verdict::Slower { .. } | Verdict::Faster { .. }))
}

/// A finished run of normal noise.
fn finished(plan: &Plan, effect: f64, cv: f64, seed: u64) -> Run {
    let model = Model { plan, kind: Kind::Normal, cv, effect, stop: FIXED };
    Run { state: RunState::Finished, ..model.run(seed, ROUNDS) }
}

/// An imported run: each boot moves all its trials.
fn in_boots(plan: &Plan, seed: u64) -> Run {
    let mut run = finished(plan, 0.0, 0.01, seed);
    run.source = Source::Imported("simulation".to_owned());
    run.design.paired = false;
    let mut rng = ChaCha8Rng::seed_from_u64(!seed);
    let boots: Vec<f64> = (0..2 * BOOTS).map(|_| 0.02 * noise::normal(&mut rng)).collect();
    run.facts = (0..boots.len())
        .map(|boot| {
            let mut facts = HostFacts::default();
            facts.set_cluster("boot", &boot.to_string());
            facts
        })
        .collect();
    for trial in &mut run.trials {
        let boot = trial.cell * BOOTS + trial.round / REPEATS;
        trial.facts = Some(boot);
        for (_, value) in &mut trial.values {
            *value *= boots[boot as usize].exp();
        }
    }
    run
}

/// Arms that do not differ; B fails instead of being slow, and what it gives when it is tried again counts unless that is slow, too.
fn fails_when_slow(plan: &Plan, seed: u64) -> Run {
    let mut run = finished(plan, 0.0, 0.0, seed);
    let mut rng = ChaCha8Rng::seed_from_u64(!seed);
    let mut trials = Vec::new();
    for mut trial in std::mem::take(&mut run.trials) {
        let mut draw: f64 = rng.random();
        if trial.cell == 1 && draw > 1.0 - FAILS {
            trials.push(failed(&trial));
            (draw, trial.attempt) = (rng.random(), 1);
            if draw > 1.0 - FAILS {
                trial = failed(&trial);
            }
        }
        for (_, value) in &mut trial.values {
            *value = (0.1 * draw).exp();
        }
        trials.push(trial);
    }
    Run { trials, ..run }
}

fn failed(trial: &Trial) -> Trial {
    let [reason, command, output] = ["exit status: 1", "", ""].map(str::to_owned);
    let kind = FailureKind::Passing;
    Trial { status: Status::Failed { kind, reason, command, output }, values: Vec::new(), ..trial.clone() }
}

/// Values read with a coarse clock; where its steps begin is drawn.
fn in_steps(plan: &Plan, seed: u64) -> Run {
    let cv = [0.002, 0.01, 0.03, 0.08][(seed % 4) as usize];
    let mut run = finished(plan, BELOW_A_STEP, cv, seed);
    let phase = ChaCha8Rng::seed_from_u64(!seed).random_range(-0.5..0.5);
    for (_, value) in run.trials.iter_mut().flat_map(|trial| &mut trial.values) {
        *value = (*value / STEP + phase).round() * STEP;
    }
    run
}

/// Whether anybody who looks after each round but the last is given a verdict.
fn early_verdict(plan: &Plan, seed: u64) -> bool {
    let run = Model { plan, kind: Kind::Full, cv: 0.02, effect: 0.02, stop: FIXED }.run(seed, ROUNDS - 1);
    (1..ROUNDS).any(|rounds| is_judged(&upto(&run, rounds)))
}

fn is_judged(run: &Run) -> bool {
    claims(run) || matches!(verdict(run), Some(Verdict::NoDifference { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_keeps_its_promise() {
        let places = Places::simulate(&Args { replicates: 400, seed: 5 }).unwrap();
        assert_eq!(places.broken(), Vec::<String>::new(), "{}", places.table());
        assert_eq!(places.0.len(), 4);
    }

    #[test]
    fn without_the_rules_they_are_broken() {
        let plan = model::cells(1).unwrap();
        let of = |wrong: fn(&Plan, u64) -> bool| (0..60).filter(|seed| wrong(&plan, *seed)).count();
        // Taken as 30 values each, boots are certainties; without its failures, B has lost its slowest trials.
        let as_trials = of(|plan, seed| {
            let run = in_boots(plan, seed);
            claims(&Run { facts: vec![HostFacts::default(); run.facts.len()], ..run })
        });
        let first_attempts = of(|plan, seed| {
            let mut run = fails_when_slow(plan, seed);
            for trial in &mut run.trials {
                if let Status::Failed { kind, .. } = &mut trial.status {
                    *kind = FailureKind::Outside;
                }
            }
            claims(&run)
        });
        let as_if_the_last = of(|plan, seed| {
            let mut run = finished(plan, 0.02, 0.02, seed);
            (1..ROUNDS).any(|rounds| {
                run.design.stop.rounds = Some(rounds);
                is_judged(&upto(&run, rounds))
            })
        });
        let counts = [as_trials, first_attempts, as_if_the_last];
        assert!(counts.iter().zip([12, 20, 20]).all(|(count, least)| *count >= least), "{counts:?}");
    }
}
