//! What the judged latency of a paced job is made of, and what the slowest calls waited for, as lines.
//!
//! Enters: a [`Why`]. Leaves: lines. Nothing is judged here.

use super::budget::{TYPICAL, before_difference, is_of_medians, signed, with_unit};
use super::stages;
use crate::analyse::{BudgetLine, Interval, LatencyPart, SlowPart, Slowest, Why};
use crate::units::{Scale, Unit};

/// One line a part, and one of the slowest calls.
pub(super) fn lines(why: &Why) -> Vec<String> {
    let parts = why.latency.iter().map(|(part, time)| line(why, *part, time));
    parts.chain(why.slowest.as_ref().map(slowest)).collect()
}

/// `slowest 1 % of fdatasync: 1.00 ms → 9.00 ms a call; asleep at jbd2_log_wait_commit 0.80 ms → 8.50 ms`.
fn slowest(of: &Slowest) -> String {
    let scale = scale(&of.whole);
    let change = |time: &BudgetLine| {
        let [baseline, candidate] = [time.baseline_ns, time.candidate_ns].map(|ns| with_unit(ns, &scale));
        let Interval { low, high, .. } = time.difference_ns;
        let sure = if low > 0.0 || high < 0.0 { "" } else { " (not sure)" };
        format!("{baseline} → {candidate}{sure}")
    };
    let part = |(part, time): &(SlowPart, BudgetLine)| {
        let name = match part {
            SlowPart::At(place) => format!("asleep at {place}"),
            SlowPart::Ready => "ready to run, another ran".to_owned(),
            SlowPart::Processor => "CPU".to_owned(),
        };
        format!("{name} {}", change(time))
    };
    let parts: Vec<String> = of.parts.iter().map(part).collect();
    let parts = if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) };
    let of_all = if of.of_all_jobs { " of all jobs" } else { "" };
    format!("slowest 1 % of {} calls{of_all} (watched): {} a call{parts}", of.call, change(&of.whole))
}

/// The service in a few words, for a line about the whole pair; of syncs, and of writes with them, all of it.
pub(super) fn brief(why: &Why) -> Option<String> {
    let is_of_transfers = ["read.", "write."].iter().any(|direction| why.metric.starts_with(direction));
    let service = why.latency.iter().find(|(part, _)| *part == LatencyPart::Service && is_of_transfers);
    let (name, time) = match (service, &why.judged) {
        (Some((_, time)), _) => ("service", time),
        (None, judged) => (why.metric.as_str(), judged.as_ref()?),
    };
    Some(format!("{name} {}", signed(time.difference_ns.estimate, &scale(time))))
}

/// `durable.lat_ns.mean 0.50 ms → 1.00 ms (+0.50 ms)`, where the pace sets the time between operations.
pub(super) fn judged(why: &Why) -> Option<String> {
    let time = why.judged.as_ref()?;
    let scale = scale(time);
    let [baseline, candidate] = [time.baseline_ns, time.candidate_ns].map(|ns| with_unit(ns, &scale));
    let difference = signed(time.difference_ns.estimate, &scale);
    let difference = match is_of_medians(time, &scale) {
        true => difference,
        false => format!("{TYPICAL} {difference}"),
    };
    Some(format!(
        "{} {baseline} → {candidate} ({difference}); the job's pace sets the time between operations, which is not split",
        why.metric
    ))
}

fn line(why: &Why, part: LatencyPart, time: &BudgetLine) -> String {
    let metric = &why.metric;
    let statistic = metric.splitn(3, '.').last().unwrap_or_default();
    let name = match part {
        LatencyPart::Service if metric.starts_with("durable.") => {
            format!("of {metric}, service (write.clat_ns.{statistic})")
        }
        LatencyPart::Service => format!("of {metric}, service (clat_ns.{statistic})"),
        LatencyPart::UntilDurable => format!("of {metric}, until the sync behind it had ended"),
        LatencyPart::BeforeIssue => format!("of {metric}, before its issue (its turn, submission)"),
        LatencyPart::Sync if metric.starts_with("durable.") => {
            format!("within {metric}, a sync by itself (sync.lat_ns.{statistic})")
        }
        LatencyPart::Sync => format!("beside it, a sync (sync.lat_ns.{statistic})"),
        LatencyPart::Requests(stage) => {
            let direction = metric.split('.').next().unwrap_or_default();
            let of_all = if why.requests.of_all_jobs { ", of all jobs" } else { "" };
            let distorted = if why.requests.distorted { " (distorted by watching)" } else { "" };
            format!("beside it, p99 of {direction} requests {}{of_all}{distorted}", stages::name(stage))
        }
    };
    let scale = scale(time);
    let Interval { estimate, low, high } = time.difference_ns;
    let sure = if low > 0.0 || high < 0.0 { "" } else { ", not sure:" };
    let [baseline, candidate] = [time.baseline_ns, time.candidate_ns].map(|ns| with_unit(ns, &scale));
    let [low, high] = [low, high].map(|end| signed(end, &scale));
    let before = before_difference(time, &scale);
    format!("{name}: {baseline} → {candidate}{before}{}{sure} [{low}, {high}]", signed(estimate, &scale))
}

fn scale(time: &BudgetLine) -> Scale {
    Scale::for_column(&Unit::Nanoseconds, [time.baseline_ns, time.candidate_ns])
}
