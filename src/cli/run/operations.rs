//! Quantiles that no trial will have: of fewer operations than it needs none is judged, however many rounds there are.
//!
//! Enters: a run with its first round. Leaves: a failure that says how much longer its trials would have to be. What single trials lack is
//! told as they end.

use crate::analyse::deciding;
use crate::cli::Failure;
use crate::record::{Run, Status, Trial, operations_for, quantile_of};

/// Later trials may have somewhat more operations than those of the first round.
const MORE: f64 = 1.25;

/// A quantile that decides, with the operations it needs and has.
pub(in crate::cli) struct Operations<'r> {
    pub(in crate::cli) metric: &'r str,
    pub(in crate::cli) needed: u64,
    pub(in crate::cli) had: u64,
}

/// Of a metric in a trial; `None`: it is no quantile, or nothing counts what it is of.
pub(in crate::cli) fn operations<'r>(run: &'r Run, trial: &Trial, index: u32) -> Option<Operations<'r>> {
    // Forms for an operation or a byte are only in analyses.
    let metric = run.metrics.get(index as usize)?;
    let needed = operations_for(quantile_of(&metric.name)?);
    let counted = format!("{}.total_ios", metric.name.split('.').next()?);
    let value = |(at, value): &(u32, f64)| {
        let of = &run.metrics[*at as usize];
        (of.job == metric.job && of.name == counted).then_some(*value)
    };
    let had = trial.values.iter().find_map(value)? as u64;
    Some(Operations { metric: &metric.name, needed, had })
}

/// Whether there will be a verdict: not where each metric that decides is a quantile of which every cell had far too few operations.
///
/// # Errors
/// A [`Failure`] with exit code 1: how much longer trials have to be.
pub(super) fn are_enough(run: &Run) -> Result<(), Failure> {
    if run.cells.len() < 2 {
        return Ok(());
    }
    let done: Vec<&Trial> = run.trials.iter().filter(|trial| trial.status == Status::Done).collect();
    if !(0..run.cells.len()).all(|cell| done.iter().any(|trial| trial.cell as usize == cell)) {
        return Ok(());
    }
    let most = |index: u32| -> Option<Operations<'_>> {
        let of_trials: Vec<Operations<'_>> =
            done.iter().map(|trial| operations(run, trial, index)).collect::<Option<_>>()?;
        of_trials.into_iter().max_by_key(|found| found.had)
    };
    let found: Option<Vec<Operations<'_>>> = deciding(run).into_iter().map(most).collect();
    let found = found.unwrap_or_default();
    let lacks = |found: &Operations<'_>| found.had as f64 * MORE < found.needed as f64;
    let Some(first) = found.first().filter(|_| found.iter().all(lacks)) else { return Ok(()) };
    let Operations { metric, needed, had } = first;
    let id = run.id.unwrap_or_default();
    Err(Failure::tool(format!(
        "{metric} decides and needs {needed} operations a trial; the most that one of run {id} had are {had}: nothing can be judged"
    ))
    .hint(format!(
        "trials {} times as long (runtime=, or size=) have as many; {} needs no least number",
        needed.div_ceil((*had).max(1)) + 1,
        mean_of(metric)
    )))
}

/// `sync.lat_ns.mean` of `sync.lat_ns.p99.9`.
fn mean_of(quantile: &str) -> String {
    let kind: Vec<&str> = quantile.split('.').take(2).collect();
    format!("{}.mean", kind.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(had: [f64; 2], primary: &str) -> Run {
        let metric = |name: &str| serde_json::json!({"job": "", "name": name, "unit": "nanoseconds", "better": "lower", "kind": "derived"});
        let trial = |(cell, had): (usize, f64)| {
            serde_json::json!({"cell": cell, "round": 0, "position": 0, "attempt": 0, "started_unix_ns": 0,
                "elapsed_s": 1.0, "facts": null, "status": "done", "excluded": null,
                "values": [[0, 1e6], [1, had], [2, 5e5]], "histograms": [], "series": [], "notes": []})
        };
        let trials: Vec<_> = had.into_iter().enumerate().map(trial).collect();
        let stop = serde_json::json!({"max_rounds": 30, "rounds": null, "delta": 0.02, "alpha": 0.05, "exact": false,
            "time_budget_s": null});
        let design = serde_json::json!({"factors": [{"name": "fs", "levels": ["xfs", "ext4"]}], "compare": 0,
            "paired": true, "primary": primary, "asked": true, "stop": stop});
        serde_json::from_value(serde_json::json!({"version": 1, "id": 7, "name": "r", "source": "measured",
            "state": "running", "assay_version": "0", "started_unix_ns": 0, "command_line": [], "seed": 1, "engine": "e",
            "job_text": null, "experiment": null, "design": design, "aa": false, "facts": [],
            "metrics": [metric("sync.lat_ns.p99"), metric("sync.total_ios"), metric("sync.lat_ns.mean")],
            "cells": [{"levels": [0]}, {"levels": [1]}], "trials": trials, "notes": []}))
        .unwrap()
    }

    #[test]
    fn a_quantile_of_too_few_operations_ends_a_run_after_its_first_round() {
        let of = |had, primary| are_enough(&run(had, primary)).map_err(|failure| failure.to_string());
        let said = of([300.0, 357.0], "sync.lat_ns.p99").unwrap_err();
        assert_eq!(
            said,
            "sync.lat_ns.p99 decides and needs 1000 operations a trial; the most that one of run 7 had are 357: nothing can be judged"
        );
        assert_eq!(of([300.0, 900.0], "sync.lat_ns.p99"), Ok(()), "a later round may have them");
        assert_eq!(of([300.0, 357.0], "sync.lat_ns.mean"), Ok(()));
        assert_eq!(of([300.0, 357.0], "sync.lat_ns.p99,sync.lat_ns.mean"), Ok(()), "the mean is judged");
        let mut first = run([300.0, 300.0], "sync.lat_ns.p99");
        first.trials.truncate(1);
        assert!(are_enough(&first).is_ok(), "the round is not whole");
    }
}
