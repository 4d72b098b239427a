//! Whether what decides can decide: a metric that trials report, enough operations for a quantile, one meaning to all engines, a
//! direction that arms have in common.
//!
//! Enters: an experiment with its plan. Leaves: nothing, or the refusal.

use crate::cli::Failure;
use crate::experiment::Experiment;
use crate::plan::{MetricNames, Plan};
use crate::sys::terminal::tell;

/// Looks before the first trial.
///
/// # Errors
/// A [`Failure`] with exit code 2: nothing could be judged.
pub(super) fn check(experiment: &Experiment, plan: &Plan, among_others: bool) -> Result<(), Failure> {
    known_metric(experiment, plan)?;
    match known_deltas(experiment, plan) {
        // Of several jobs one may have the metric and another one not.
        Err(unknown) if among_others => tell(&format!("note: {}: {unknown}", experiment.name)),
        known => known?,
    }
    enough_operations(plan)?;
    one_meaning(plan)?;
    common_direction(plan)
}

/// Refuses a deciding metric that no trial will report.
fn known_metric(experiment: &Experiment, plan: &Plan) -> Result<(), Failure> {
    let (Some(primary), Some(names)) = (&experiment.primary, MetricNames::of(experiment, &plan.cells)) else {
        return Ok(());
    };
    names.check(primary).map_err(|reason| {
        Failure::request(format!("primary {primary}: {reason}")).hint(
            "`assay metrics JOB.fio` lists what a job reports, `assay metrics RUN` what a run has; SECTION:METRIC is one section's",
        )
    })
}

/// Refuses a smallest difference of metrics that no trial will report.
fn known_deltas(experiment: &Experiment, plan: &Plan) -> Result<(), Failure> {
    let Some(names) = MetricNames::of(experiment, &plan.cells) else { return Ok(()) };
    let unknown = experiment.deltas.iter().find(|own| !names.may_have(own));
    let Some(unknown) = unknown else { return Ok(()) };
    Err(Failure::request(format!("delta {}=…: no trial reports such a metric", unknown.metric)).hint(
        "a metric's name or a part of it: p99, clat_ns, write.bw, SECTION:p99; `assay metrics JOB.fio` lists what a job reports",
    ))
}

/// Refuses a deciding quantile that no comparison could judge, however many rounds there are.
fn enough_operations(plan: &Plan) -> Result<(), Failure> {
    let Some(few) = plan.too_few_operations() else { return Ok(()) };
    if few.most == 0 {
        let said = format!("primary {}: no comparison has such operations in both of its arms", few.metric);
        return Err(Failure::request(said)
            .hint("choose a metric that both arms have, such as runtime or a bandwidth"));
    }
    let said = format!(
        "primary {}: it needs {} operations a trial, and a trial has at most {}",
        few.metric, few.needed, few.most
    );
    Err(Failure::request(said)
        .hint("a larger size or more loops, time_based=1 with a runtime, a longer runtime where a rate sets the pace, or a lower quantile"))
}

/// Refuses a latency that the engines of two arms begin to count at different moments.
fn one_meaning(plan: &Plan) -> Result<(), Failure> {
    if let Some(metric) = plan.latency_that_fio_lacks() {
        let said = format!("primary {metric}: fio does not tell how long writes take until they are durable");
        return Err(Failure::request(said)
            .hint("--engine native does; write.clat_ns.mean and sync.lat_ns.mean are told by both"));
    }
    let Some(metric) = plan.latency_of_two_meanings() else { return Ok(()) };
    let said = format!(
        "primary {metric}: with a rate, native counts it from the time an I/O was due, fio from its issue: engines cannot \
         be compared by it"
    );
    let hint = format!("{}, which both count from the issue", metric.replace("lat_ns", "clat_ns"));
    Err(Failure::request(said).hint(hint))
}

/// Refuses arms of which one only reads and the other only writes, where nothing else was asked for.
fn common_direction(plan: &Plan) -> Result<(), Failure> {
    let Some([baseline, candidate]) = plan.no_common_direction() else { return Ok(()) };
    let factor = &plan.factors[plan.compare].name;
    Err(Failure::request(format!(
        "{factor}={candidate} does no I/O in a direction of {factor}={baseline}: they have no bandwidth to compare"
    ))
    .hint("--primary names a metric that both have, such as usr_cpu_per_op or runtime"))
}
