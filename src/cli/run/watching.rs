//! What explaining runs: how many rounds, which observers, and how long that takes.

use super::prepare::Prepared;
use crate::catalog::{
    OR_A_TRACEPOINT, in_order, is_observer, named_twice, observer_names, observers_listed, server_of,
};
use crate::cli::Failure;
use crate::experiment::Experiment;
use crate::plan::{Expected, Plan};

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

/// Keeps for explaining what it takes of the time budget, half of it at most: the trials of the run itself end that much sooner.
/// Of an A/A run there should be nothing to explain.
pub(super) fn keep_time(prepared: &mut Prepared) {
    if prepared.run.aa {
        return;
    }
    let foretold = foretold(prepared, &prepared.expected).and_then(|(_, seconds)| seconds);
    let stop = &mut prepared.plan.stop;
    stop.time_budget_s = stop.time_budget_s.map(|budget_s| of_the_run(budget_s, foretold));
}

/// Seconds of a budget for the trials of the run itself.
fn of_the_run(budget_s: f64, explaining_s: Option<f64>) -> f64 {
    budget_s - explaining_s.unwrap_or(f64::INFINITY).min(budget_s / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explaining_has_its_part_of_the_time_and_half_at_most() {
        let kept = [Some(60.0), Some(500.0), None].map(|explaining_s| of_the_run(600.0, explaining_s));
        assert_eq!(kept, [540.0, 300.0, 300.0]);
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
