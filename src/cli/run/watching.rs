//! What explaining runs: how many rounds, which observers, and how long that takes.

use std::collections::BTreeMap;

use super::prepare::Prepared;
use crate::catalog::{
    OBSERVERS, OR_A_TRACEPOINT, in_order, is_observer, named_twice, observer_names, observers_listed,
    server_of,
};
use crate::cli::Failure;
use crate::experiment::Experiment;
use crate::plan::{Expected, Plan};
use crate::record::Run;
use crate::report::wrapped;
use crate::sys::terminal::tell;
use crate::units::pretty_duration;

/// Rounds unless others are asked for: one more than the fewest that a paired interval can be made of, as a trial may fail.
pub(in crate::cli) const ROUNDS: u32 = 5;
/// It says how files lie, which is seldom why: it watches where the explained run had it, or where it is named.
const OF_FILES: &str = "extents";

/// Observers of these names, each once, in the usual order; none: those that the run had, and all but the extents of files.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such observer.
pub(in crate::cli) fn observers(only: &[String]) -> Result<Vec<String>, Failure> {
    if let Some(unknown) = only.iter().find(|name| !is_observer(name)) {
        return Err(Failure::request(format!(
            "there is no observer '{unknown}'; write {}, or {OR_A_TRACEPOINT}",
            observers_listed()
        ))
        .hint("`assay help observers` says what each watches"));
    }
    if let Some(server) = only.iter().find(|name| server_of(name).is_some()) {
        return Err(Failure::request(format!(
            "{server} is a matter of the run: what it explains was counted for the command alone"
        ))
        .hint(format!("run it again with --observe {server} --explain")));
    }
    if let Some(name) = named_twice(only.iter().map(String::as_str)) {
        return Err(Failure::request(format!(
            "two tracepoints are called {name}; give them different names"
        )));
    }
    if only.is_empty() {
        return Ok(in_order(observer_names().filter(|name| *name != OF_FILES)));
    }
    Ok(in_order(only.iter().map(String::as_str)))
}

/// What a plan with `--explain` does after the verdict, and how long that takes at most; `None`: it cannot be said.
pub(super) fn foretold(prepared: &Prepared, expected: &Expected) -> Option<(u64, Option<f64>)> {
    let experiment: Experiment = serde_json::from_value(prepared.run.experiment.clone()).ok()?;
    let (explaining, _) = experiment.watched(&observers(&[]).ok()?, ROUNDS).ok()?;
    let here = std::env::current_dir().ok()?;
    let plan = Plan::new(&explaining, prepared.run.seed, &here, "").ok()?;
    Some((plan.trials_at_most(), plan.longest_s(ROUNDS, expected)))
}

/// Seconds that this many trials of a run take, as those of its own rounds did from the begin of one to that of the next; `None`: it has too
/// few.
pub(super) fn as_long_as_its_own(run: &Run, trials: u64) -> Option<f64> {
    let mut rounds: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for trial in &run.trials {
        let (begun, count) = rounds.entry(trial.round).or_insert((u64::MAX, 0));
        *begun = trial.started_unix_ns.min(*begun);
        *count += 1;
    }
    let rounds: Vec<(u64, u64)> = rounds.into_values().collect();
    let each = |two: &[(u64, u64)]| two[1].0.saturating_sub(two[0].0) as f64 / 1e9 / two[0].1 as f64;
    let mut each: Vec<f64> = rounds.windows(2).map(each).collect();
    each.sort_by(f64::total_cmp);
    Some(each.get(each.len() / 2)? * trials as f64)
}

/// Seconds that observers add to all trials of a plan.
pub(super) fn added_s(plan: &Plan) -> f64 {
    let of = |name: &String| OBSERVERS.iter().find(|row| row.name == name).map_or(0.0, |row| row.trial_s);
    let of_round: f64 = plan.cells.iter().flat_map(|cell| &cell.observe).map(of).sum();
    of_round * f64::from(plan.rounds_at_most())
}

/// Whether so much time is too little for the fewest rounds that tell anything, of these seconds for all.
pub(super) fn is_too_short(left_s: f64, all_s: f64) -> bool {
    left_s < all_s * f64::from(ROUNDS - 1) / f64::from(ROUNDS)
}

/// Keeps for explaining what it takes of the time budget, half of it at most: the trials of the run itself end that much sooner. What
/// does not come to an end in half of it is not begun. Of an A/A run there should be nothing to explain.
pub(super) fn keep_time(prepared: &mut Prepared) {
    if prepared.run.aa {
        return;
    }
    let foretold = foretold(prepared, &prepared.expected).and_then(|(_, seconds)| seconds);
    let Some(budget_s) = prepared.plan.stop.time_budget_s else { return };
    let own_s = of_the_run(budget_s, foretold);
    prepared.plan.stop.time_budget_s = Some(own_s);
    let said = match foretold {
        Some(all_s) if own_s >= budget_s => format!(
            "not enough time for --explain: it needs about {}, and half of the time budget is {}; the run has the whole \
             budget, and assay explain watches it afterwards",
            pretty_duration(all_s),
            pretty_duration(budget_s / 2.0)
        ),
        _ => format!("--explain keeps {} of the time budget", pretty_duration(budget_s - own_s)),
    };
    tell(&wrapped(&said, "  "));
}

/// Seconds of a budget for the trials of the run itself.
fn of_the_run(budget_s: f64, explaining_s: Option<f64>) -> f64 {
    let half = budget_s / 2.0;
    match explaining_s {
        Some(all_s) if is_too_short(half, all_s) => budget_s,
        Some(all_s) => budget_s - all_s.min(half),
        None => half,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explaining_has_its_part_of_the_time_and_half_at_most() {
        let kept = [Some(60.0), Some(370.0), Some(500.0), None].map(|all_s| of_the_run(600.0, all_s));
        assert_eq!(kept, [540.0, 300.0, 600.0, 300.0], "500 s do not fit into half of it");
    }

    #[test]
    fn further_trials_take_as_long_as_those_of_the_run() {
        let mut run: Run = serde_json::from_value(serde_json::json!({
            "version": crate::record::RECORD_VERSION, "id": 3, "name": "r", "source": "measured", "state": "finished",
            "assay_version": "0", "started_unix_ns": 0, "command_line": [], "seed": 1, "engine": "", "job_text": null,
            "experiment": null, "aa": false, "facts": [], "metrics": [], "cells": [], "trials": [], "notes": [],
            "design": { "factors": [], "compare": 0, "paired": true, "primary": null, "stop": crate::record::StopRule::default() },
        }))
        .unwrap();
        assert_eq!(as_long_as_its_own(&run, 10), None);
        let trial = |(round, seconds): (u64, u64)| {
            serde_json::from_value(serde_json::json!({"cell": 0, "round": round, "position": 0, "attempt": 0,
            "started_unix_ns": seconds * 1_000_000_000, "elapsed_s": 1.0, "facts": null, "status": "done",
            "excluded": null, "values": [], "histograms": [], "series": [], "notes": []}))
            .unwrap()
        };
        // Cells of one second and of three; it went on after an hour.
        let begun = [(0, 0), (0, 1), (1, 4), (1, 7), (2, 8), (2, 9), (3, 3612)].map(trial);
        run.trials = begun.to_vec();
        assert_eq!(as_long_as_its_own(&run, 10), Some(20.0));
    }

    #[test]
    fn all_observers_watch_unless_some_are_named() {
        let all = observers(&[]).unwrap();
        assert!(all.contains(&"locks".to_owned()) && !all.contains(&"extents".to_owned()), "{all:?}");
        let some = ["waits", "cpu"].map(str::to_owned);
        assert_eq!(observers(&some).unwrap(), ["cpu", "waits"]);
        let failure = observers(&["server=postgres".to_owned()]).unwrap_err();
        assert_eq!(failure.code(), 2, "{failure}");
        let failure = observers(&["lock".to_owned()]).unwrap_err();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("no observer 'lock'"), "{failure}");
    }
}
