//! Many runs in time, as a screen of text and as JSON.
//!
//! Enters: a [`History`]. Leaves: text. It must not judge.

use std::fmt::Write;

use serde_json::{Value, json};

use super::layout::one_line;
use super::manner::manner;
use super::words::{NBSP, Names, p_equals, percent, plain_percent};
use super::{wrapped, wrapped_behind};
use crate::analyse::{Interval, Verdict};
use crate::history::{Change, ChangedFacts, FEWEST_BEFORE, History, Newest, Point, Series};
use crate::record::Run;
use crate::units::{Scale, counted};

/// Runs of a series that a table shows, the newest.
const MOST_RUNS: usize = 20;
/// Columns in which medians are drawn.
const DRAWN: usize = 20;
/// Facts that are named beside a change.
const MOST_FACTS: usize = 4;
/// Runs whose changed facts are listed, the newest.
const MOST_CHANGED: usize = 5;

/// What all of it is about: the name of the runs, and how a time is written.
pub struct HistoryOf<'a> {
    /// What the runs are called.
    pub name: &'a str,
    /// The run that they are arms of.
    pub run: &'a Run,
    /// Local time of nanoseconds since the epoch.
    pub time: fn(u64) -> Option<String>,
    /// A table of every series, not only of those in which something changed.
    pub verbose: bool,
    /// There are others beside it, so that a calm one is a line.
    pub among_others: bool,
}

/// The history on a screen.
#[must_use]
pub fn history_text(of: &HistoryOf<'_>, history: &History) -> String {
    let names = Names::new(of.run, "");
    let mut text = String::new();
    let runs = history.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}",
        wrapped(
            &format!(
                "{}: {} in time; a run is the median of its trials",
                of.name,
                counted(runs as u64, "run")
            ),
            "  "
        )
    );
    let is_shown =
        |series: &Series| of.verbose || (history.series.len() == 1 && !of.among_others) || !is_calm(series);
    for series in &history.series {
        let called = called(&names, series);
        let _ = writeln!(text);
        let is_shown = is_shown(series);
        if is_shown {
            table(&mut text, of, &called, series);
        }
        let lead = if is_shown { "  ".to_owned() } else { format!("{called}: ") };
        if series.changes.is_empty() && !is_shown {
            let level =
                Scale::for_column(&series.metric.unit, series.points.iter().map(|point| point.median));
            let last = series.points.last().map_or(0.0, |point| point.median);
            let _ = writeln!(
                text,
                "{}",
                wrapped(
                    &format!(
                        "{lead}no change found in {}, the newest {}",
                        counted(series.points.len() as u64, "run"),
                        level.with_unit(last)
                    ),
                    "  "
                )
            );
        }
        for change in &series.changes {
            let _ = writeln!(text, "{}", wrapped(&format!("  {}", change_words(series, change)), "    "));
        }
        let _ = writeln!(text, "{}", wrapped(&format!("  {}", newest_words(series)), "    "));
    }
    if history.series.iter().any(is_shown) {
        changed_facts(&mut text, &history.facts);
    }
    text
}

/// The newest runs that have other facts than the run before them, a line each.
pub(super) fn changed_facts(text: &mut String, all: &[ChangedFacts]) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nother facts of the host or the job than in the run before");
    for ChangedFacts { run, facts } in all.iter().rev().take(MOST_CHANGED) {
        let facts = facts_words(facts).unwrap_or_default();
        let _ = writeln!(text, "{}", wrapped_behind(&format!("  {run}: "), &facts));
    }
    let more = all.len().saturating_sub(MOST_CHANGED);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more (--json)");
    }
}

/// `wal: write.bw`.
pub(super) fn called(names: &Names<'_>, series: &Series) -> String {
    let row = names.row(&series.row);
    if row.is_empty() { series.metric.name.clone() } else { format!("{row}: {}", series.metric.name) }
}

/// The same for programs.
#[must_use]
pub fn history_json(of: &HistoryOf<'_>, history: &History) -> Value {
    let series: Vec<Value> = history.series.iter().map(series_json).collect();
    let facts: Vec<Value> =
        history.facts.iter().map(|one| json!({ "run": one.run, "facts": facts_json(&one.facts) })).collect();
    json!({ "name": of.name, "delta": history.delta, "series": series, "facts": facts })
}

fn series_json(series: &Series) -> Value {
    let change = |change: &Change| {
        json!({
            "run": series.points[change.at].run, "effect": change.effect, "p": change.p, "verdict": change.verdict,
            "facts": facts_json(&change.facts),
        })
    };
    let point = |point: &Point| json!({ "run": point.run, "started_unix_ns": point.started_unix_ns, "n": point.n, "median": point.median });
    let Newest { before, set_aside, effect, verdict, facts } = &series.newest;
    json!({
        "row": series.row, "metric": series.metric,
        "points": series.points.iter().map(point).collect::<Vec<_>>(),
        "changes": series.changes.iter().map(change).collect::<Vec<_>>(),
        "newest": { "before": before, "set_aside": set_aside, "effect": effect, "verdict": verdict, "facts": facts_json(facts) },
    })
}

fn facts_json(facts: &[(String, String, String)]) -> Vec<Value> {
    let one = |(fact, before, after): &(String, String, String)| json!({ "fact": fact, "before": before, "after": after });
    facts.iter().map(one).collect()
}

/// Nothing changed, and the newest run is no reason to look.
fn is_calm(series: &Series) -> bool {
    let is_outside = |effect: Interval| series.is_better(effect).is_some();
    let is_judged = !matches!(series.newest.verdict, Verdict::NotMeasured(_));
    is_judged && series.changes.is_empty() && !series.newest.effect.is_some_and(is_outside)
}

pub(super) fn table(text: &mut String, of: &HistoryOf<'_>, called: &str, series: &Series) {
    let points = &series.points;
    let medians = || points.iter().map(|point| point.median);
    let scale = Scale::for_column(&series.metric.unit, medians());
    let unit = if scale.symbol.is_empty() { String::new() } else { format!(" in {}", scale.symbol) };
    let _ = writeln!(
        text,
        "{}",
        wrapped(&format!("{called}{unit}; {} is better", series.metric.better.word()), "  ")
    );
    let first = points.len().saturating_sub(MOST_RUNS);
    if first > 0 {
        let _ = writeln!(text, "  ({} before these)", counted(first as u64, "run"));
    }
    let shown: Vec<String> = points.iter().map(|point| scale.number(point.median)).collect();
    let width = shown.iter().map(|number| number.chars().count()).max().unwrap_or(0).max(6);
    let run_width = points.iter().map(|point| point.label().chars().count()).max().unwrap_or(0).max(3);
    let _ = writeln!(
        text,
        "  {:>run_width$}  {:<16} {:>4}  {:>width$}  {:>8}",
        "run", "local time", "n", "median", "change %"
    );
    let [low, high] = [medians().fold(f64::INFINITY, f64::min), medians().fold(f64::NEG_INFINITY, f64::max)];
    for at in first..points.len() {
        let point = &points[at];
        let before = at.checked_sub(1).map(|before| points[before].median);
        let change = before.map_or(String::new(), |before| percent(point.median / before - 1.0, 1));
        let is_change = series.changes.iter().any(|change| change.at == at);
        let time = (of.time)(point.started_unix_ns).unwrap_or_default();
        let line = format!(
            "  {:>run_width$}  {time:<16} {:>4}  {:>width$}  {change:>8}  {}{}",
            point.label(),
            point.n,
            shown[at],
            drawn(point.median, low, high),
            if is_change { " changed" } else { "" },
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Where a median lies between the smallest and the largest.
fn drawn(median: f64, low: f64, high: f64) -> String {
    let share = if high > low { (median - low) / (high - low) } else { 0.5 };
    let place = (share * (DRAWN - 1) as f64).round() as usize;
    (0..DRAWN).map(|at| if at == place { '●' } else { '·' }).collect()
}

/// `job.bs 8k → 2k, kernel.release 6.1 → 6.12, 3 more (--json)`; `None`: nothing changed.
fn facts_words(facts: &[(String, String, String)]) -> Option<String> {
    let one = |(fact, before, after): &(String, String, String)| {
        one_line(&format!("{fact} {} → {}", or_none(before), or_none(after)))
    };
    let shown: Vec<String> = facts.iter().take(MOST_FACTS).map(one).collect();
    let more = facts.len().saturating_sub(MOST_FACTS);
    let more = if more > 0 { format!(", {more} more (--json)") } else { String::new() };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

pub(super) fn change_words(series: &Series, change: &Change) -> String {
    let run = &series.points[change.at].run;
    let with = facts_words(&change.facts).map_or_else(
        || "; no fact of the host or the job changed with it".to_owned(),
        |facts| format!("; with it: {facts}"),
    );
    format!(
        "changed at {run}: {}, {}, {}{with}",
        effect_words(change.effect),
        verdict_words(series, &change.verdict),
        p_equals(change.p)
    )
}

pub(super) fn newest_words(series: &Series) -> String {
    let Newest { before, set_aside, effect, verdict, facts } = &series.newest;
    let run = series.points.last().map_or("", |point| point.run.as_str());
    let since = series
        .changes
        .last()
        .map(|change| format!(" since {}", series.points[change.at].run))
        .unwrap_or_default();
    if let Verdict::NotMeasured(why) = verdict {
        return format!("not judged: {why}");
    }
    let Some(effect) = effect else {
        return format!(
            "newest, {run}: {} before it{since}; {FEWEST_BEFORE} say how much runs differ",
            counted(*before as u64, "run")
        );
    };
    format!(
        "newest, {run}: {} against {} before it{since}: {}{}",
        effect_words(*effect),
        match set_aside {
            0 => format!("the {}", counted(*before as u64, "run")),
            _ => format!(
                "{before} of the {} (the others stood apart)",
                counted((before + set_aside) as u64, "run")
            ),
        },
        verdict_words(series, verdict),
        facts_words(facts).map(|facts| format!("; new with it: {facts}")).unwrap_or_default()
    )
}

/// A fact that a run does not have.
fn or_none(value: &str) -> &str {
    if value.is_empty() { "(none)" } else { value }
}

/// `slower by more than 2 %`.
fn verdict_words(series: &Series, verdict: &Verdict) -> String {
    let delta = series.delta;
    let by = |good: bool, beyond: bool| {
        let word = manner(&series.metric, good).word;
        let more = if beyond { " by more than" } else { ", maybe by less than" };
        format!("{word}{more} {}", plain_percent(delta))
    };
    match verdict {
        Verdict::Faster { beyond_delta } => by(true, *beyond_delta),
        Verdict::Slower { beyond_delta } => by(false, *beyond_delta),
        Verdict::NoDifference { .. } => format!("no difference of {} or more", plain_percent(delta)),
        _ => format!("undecided, as runs of one level differ by more than {}", plain_percent(delta)),
    }
}

fn effect_words(effect: Interval) -> String {
    let end = |ratio: f64| percent(ratio, 1);
    format!("{}{NBSP}% [{}, {}]", end(effect.estimate), end(effect.low), end(effect.high))
}
