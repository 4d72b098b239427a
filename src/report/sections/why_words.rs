//! Why two arms differ, as lines.
//!
//! Enters: a [`Why`] and the budget it belongs to. Leaves: lines. Nothing is ranked or added up here.

use super::budget::{TYPICAL, is_of_medians, name, scale, signed, with_unit};
use super::cause_words::{figure, reads_the_same, what};
use super::why_choice::{chosen, moves_against};
use super::why_latency;
use crate::analyse::{
    Budget, Cause, Evidence, Grade, Interval, Operation, Standing, Unsure, Watching, What, Why,
};
use crate::record::Run;
use crate::report::layout::{one_line, width};
use crate::report::words::{NBSP, Names, count};
use crate::units::{Scale, Unit};

/// Columns that a line of text has for words.
const COLUMNS: usize = 74;
/// Parts of the sum named in one line about a pair.
const NAMED: usize = 2;
const MIB: f64 = (1 << 20) as f64;
/// Beyond this share parts work against each other, and a share of what they leave says nothing.
const CANCELS: f64 = 1.5;

/// What is said where nobody knows how much trials do.
const UNCOUNTED: &str = "trials take as long in both arms and nothing counts what they do, so that times and counts say nothing: count it by \
                         --metric 'operations=…([0-9]+)'";

/// What stands above the causes of a pair: both medians and the difference, which is estimated over rounds and may not be theirs.
pub(super) fn caption(why: &Why, budget: Option<&Budget>, names: &Names<'_>) -> String {
    let Some(budget) = budget else { return format!("why: {}", pair(why, names)) };
    if let Some(judged) = why_latency::judged(why) {
        return format!("why: {}: {judged}{}", pair(why, names), of_size(Some(budget)));
    }
    let total = budget.total;
    let scale = scale(&total);
    let difference = signed(total.difference_ns.estimate, &scale);
    let difference = match is_of_medians(&total, &scale) {
        true => format!(", {difference}"),
        false => format!(" ({TYPICAL} {difference})"),
    };
    format!(
        "why: {}: workers' time {}{} {} → {}{difference}{}{}",
        pair(why, names),
        one(Some(budget)),
        // It is no latency: the time between two operations is asked for.
        if budget.asleep.with_pauses { ", which its pace sets," } else { "" },
        with_unit(total.baseline_ns, &scale),
        with_unit(total.candidate_ns, &scale),
        although(why, Some(budget)) + &of_size(Some(budget)),
        of_mean(why, Some(budget))
    )
}

/// That the time is a mean and what decides is none.
fn of_mean(why: &Why, budget: Option<&Budget>) -> String {
    if !why.of_mean {
        return String::new();
    }
    let statistic = one_line(why.metric.splitn(3, '.').last().unwrap_or_default());
    match budget.is_some_and(|budget| budget.operation == Operation::Counted) {
        true => format!(" (of the mean operation; {statistic} is not split)"),
        false => format!(" ({statistic} is not split)"),
    }
}

/// That the time of an operation moved against the verdict, where it did.
fn although(why: &Why, budget: Option<&Budget>) -> String {
    match (moves_against(why, budget), why.is_better) {
        (false, _) => String::new(),
        (true, true) => " although it is faster".to_owned(),
        (true, false) => " although it is slower".to_owned(),
    }
}

/// That operations of the arms differ in size, and what a MiB of them takes.
fn of_size(budget: Option<&Budget>) -> String {
    let Some((budget, times)) = budget.and_then(|budget| Some((budget, budget.times_as_large()?))) else {
        return String::new();
    };
    let Some([baseline, candidate]) = budget.bytes else { return String::new() };
    let of = [budget.total.baseline_ns / baseline, budget.total.candidate_ns / candidate].map(|ns| ns * MIB);
    let scale = Scale::for_column(&Unit::Nanoseconds, of);
    let [before, after] = of.map(|ns| with_unit(ns, &scale));
    let (how, times) = if times > 1.0 { ("large", times) } else { ("small", 1.0 / times) };
    format!("; an operation is {} times as {how}: a MiB takes {before} → {after}", digits(times))
}

/// `16`, `1.5`.
fn digits(times: f64) -> String {
    let text = format!("{times:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// What the times are for.
pub(super) fn one(budget: Option<&Budget>) -> &'static str {
    match budget.map(|budget| budget.operation) {
        Some(Operation::Trial | Operation::Unknown) => "a trial",
        Some(Operation::Counted) | None => "an operation",
    }
}

/// The arms of a pair, behind its row.
pub(super) fn pair(why: &Why, names: &Names<'_>) -> String {
    format!("{}{} → {}", names.before(&why.row), names.arm(&why.baseline), names.arm(&why.candidate))
}

/// How much of a pair there is room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Parts of the sum, and with them causes of other kinds.
    pub(super) causes: usize,
    /// Lines of text.
    pub(super) lines: usize,
    /// Whether the line about watched trials is among them; a price of watching elsewhere in the report says more.
    pub(super) watching: bool,
    /// Whether there is room for what is known of the sleep besides.
    pub(super) sleep: bool,
    /// Whether --verbose tells more.
    pub(super) hint: bool,
}

/// The causes that there is room for: what answers by itself, parts of the sum with what is left of it, then what goes with it and what was
/// watched; and how many causes are left out.
pub(super) fn causes(
    why: &Why,
    budget: Option<&Budget>,
    names: &Names<'_>,
    room: Room,
) -> (Vec<String>, usize) {
    let chosen = chosen(why, room.causes);
    let watching = why.watching.as_ref().filter(|_| room.watching).map(watched);
    let after = |told: usize| -> Vec<String> {
        let unsure = why.unsure.iter().filter_map(|part| Some(unsure(part, budget?)));
        unsure.chain(left(why, budget, told, room.hint, names)).collect()
    };
    // What is left takes the most lines where nothing is told.
    let needed = after(0).iter().chain(&watching).map(|line| lines_of(line)).sum();
    let free = room.lines.saturating_sub(needed);
    let said = |cause: &Cause| line(cause, share(why, cause), budget, names);
    // As many as fit, and what room they leave.
    let fitting = |of: &[&Cause], mut free: usize| -> (Vec<String>, usize) {
        let mut lines = Vec::new();
        for line in of.iter().map(|cause| said(cause)) {
            let needs = lines_of(&line);
            if needs > free {
                return (lines, 0);
            }
            free -= needs;
            lines.push(line);
        }
        (lines, free)
    };
    let (mut lines, free) = fitting(&chosen.answers, free);
    // The first of what goes with it has a place of its own.
    let kept = chosen.beside.first().map_or(0, |cause| lines_of(&said(cause))).min(free.saturating_sub(1));
    let (of_sum, free) = fitting(&chosen.of_sum, free - kept);
    let (beside, free) = fitting(&chosen.beside, free + kept);
    let all = super::why_choice::chosen(why, usize::MAX).count();
    let hidden = all - lines.len() - of_sum.len() - beside.len();
    // A cause has the line rather than these.
    let mut free = if room.sleep { free } else { 0 };
    let sleep = budget.map_or([None, None], |budget| [until_run(why, budget), for_storage(why)]);
    let sleep = sleep.into_iter().flatten().filter(|line| {
        let fits = lines_of(line) <= free;
        free -= if fits { lines_of(line) } else { 0 };
        fits
    });
    if why.uncounted {
        lines.push(UNCOUNTED.to_owned());
    } else if all == 0 && why.unsure.is_empty() {
        lines.push("no part of it differs so that it could be named".to_owned());
    }
    let after = after(of_sum.len());
    lines.extend(of_sum.into_iter().chain(after).chain(sleep).chain(beside).chain(watching));
    (lines, hidden)
}

/// Lines of text that words take.
pub(super) fn lines_of(words: &str) -> usize {
    width(words).div_ceil(COLUMNS).max(1)
}

/// A cause's share of the difference, where parts do not cancel each other.
fn share(why: &Why, cause: &Cause) -> Option<String> {
    let cancel = why.causes.iter().filter_map(|cause| cause.share).any(|share| share.abs() > CANCELS);
    cause.share.filter(|_| !cancel).map(whole_percent)
}

/// One cause.
fn line(cause: &Cause, share: Option<String>, budget: Option<&Budget>, names: &Names<'_>) -> String {
    let scale = budget.map_or_else(
        || Scale::for_column(&Unit::Nanoseconds, cause.time.map(|time| time.difference_ns.estimate)),
        |budget| scale(&budget.total),
    );
    let time = cause.time.map(|time| signed(time.difference_ns.estimate, &scale));
    let what = what(cause, names);
    let shown = evidence(cause);
    let distorted = if cause.distorted { ", distorted" } else { "" };
    let renamed = if cause.renamed { " (the other kernel may name it otherwise, or inline it)" } else { "" };
    match (cause.grade, time) {
        (Grade::AccountsFor, Some(time)) => {
            let share = share.map_or_else(String::new, |share| format!(" ({share})"));
            let shown = if shown.is_empty() { shown } else { format!("; {shown}") };
            format!("{time}{share}: {what}{shown}")
        }
        (_, Some(time)) => {
            let of_all = if cause.of_all_jobs { " of all jobs" } else { "" };
            format!("goes with: {what}, {time} {}{of_all}{distorted}{renamed}", one(budget))
        }
        (grade, None) => {
            let word = if grade == Grade::May { "may be" } else { "goes with" };
            let shown = if shown.is_empty() { shown } else { format!(" ({shown})") };
            format!("{word}: {what}{shown}")
        }
    }
}

/// One line about a pair.
pub(super) fn brief(why: &Why, budget: Option<&Budget>, names: &Names<'_>) -> String {
    let time = budget.map(|budget| {
        let time = signed(budget.total.difference_ns.estimate, &scale(&budget.total));
        format!(": time {} {time}", one(Some(budget)))
    });
    // What a pace sets says nothing of the latency.
    let time = why_latency::brief(why)
        .map(|part| format!(": {part}"))
        .or(time.map(|time| time + &of_mean(why, budget)));
    let head = format!("{}{}{}", names.before(&why.row), names.arm(&why.candidate), time.unwrap_or_default());
    if moves_against(why, budget) {
        // What made the time longer does not say why the arm is better.
        return head + &although(why, budget) + &of_size(budget);
    }
    let chosen = chosen(why, NAMED);
    let all = chosen.answers.iter().chain(&chosen.of_sum).chain(&chosen.beside);
    let mut told: Vec<String> = all
        .map(|cause| {
            let share = share(why, cause).map_or_else(String::new, |share| format!("{share} "));
            let word = match cause.grade {
                Grade::AccountsFor => "",
                Grade::GoesWith => "goes with ",
                Grade::May => "may be ",
            };
            format!("{word}{share}{}", what(cause, names))
        })
        .collect();
    if told.is_empty() && why.uncounted {
        told.push("nothing counts operations".to_owned());
    } else if told.is_empty() {
        told.push("no part of it could be named".to_owned());
    }
    let left = why.unexplained_ns.zip(budget).filter(|(left, of)| left.estimate.abs() > of.least_ns);
    told.extend(left.map(|(left, of)| format!("unexplained {}", signed(left.estimate, &scale(&of.total)))));
    format!("{head}: {}", told.join("; "))
}

/// What is left of the difference behind so many parts of the sum: all of it, so that the lines add up.
fn left(why: &Why, budget: Option<&Budget>, told: usize, hint: bool, names: &Names<'_>) -> Option<String> {
    let of_sum = why.causes.iter().filter(|cause| cause.grade == Grade::AccountsFor);
    let others: Vec<f64> =
        of_sum.skip(told).filter_map(|cause| Some(cause.time?.difference_ns.estimate)).collect();
    let sum = others.iter().sum::<f64>();
    let scale = budget.map_or_else(|| Scale::for_column(&Unit::Nanoseconds, [sum]), |of| scale(&of.total));
    let more = (!others.is_empty()).then(|| {
        let hint = if hint { " (--verbose)" } else { "" };
        format!("{}: {}{hint}", count(others.len() as u64, "more cause"), signed(sum, &scale))
    });
    let unexplained = why.unexplained_ns.zip(budget).map(|(left, budget)| {
        let unsure: f64 = why.unsure.iter().map(|part| part.difference_ns.estimate).sum();
        let beside = match why.unnamed_ns - unsure {
            small if small.abs() < budget.least_ns / 10.0 => String::new(),
            unnamed => {
                format!("; too small or unclear to name, or within the noise: {}", signed(unnamed, &scale))
            }
        };
        let beside = beside + &smaller(why, &scale, names);
        format!("unexplained: {}{beside}", signed(left.estimate, &scale))
    });
    let said: Vec<String> = more.into_iter().chain(unexplained).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What surely differs and is no cause: copying, which everybody asks for, and the largest.
fn smaller(why: &Why, scale: &Scale, names: &Names<'_>) -> String {
    let is_copying = |cause: &&Cause| cause.what == What::Copying;
    let copying = why.smaller.iter().filter(is_copying);
    let others = why.smaller.iter().filter(|cause| !is_copying(cause));
    let told: Vec<String> = copying
        .chain(others)
        .take(NAMED)
        .filter_map(|cause| {
            let estimate = cause.time?.difference_ns.estimate;
            Some(format!("{} {}", what(cause, names), signed(estimate, scale)))
        })
        .collect();
    if told.is_empty() {
        return String::new();
    }
    // What was watched in a slower run, or not of the counted work alone, is no piece of the sum.
    let of = if why.smaller.iter().any(|cause| cause.distorted) {
        "distorted by watching"
    } else if why.smaller.iter().any(|cause| cause.grade == Grade::GoesWith) {
        "seen beside the sum"
    } else {
        "of the rest, small"
    };
    format!("; {of}: {}", told.join(", "))
}

/// A large part of the sum that no cause names.
fn unsure(of: &Unsure, budget: &Budget) -> String {
    let Interval { estimate, low, high } = of.difference_ns;
    let scale = scale(&budget.total);
    let [low, high] = [low, high].map(|end| signed(end, &scale));
    format!("{}: {}: [{low}, {high}]", signed(estimate, &scale), unsure_part(of, budget))
}

/// Which part it is, and whether its difference is proven: one that is may still be too small for a cause.
pub(super) fn unsure_part(of: &Unsure, budget: &Budget) -> String {
    let Interval { low, high, .. } = of.difference_ns;
    let rest = if of.rest { "the rest of " } else { "" };
    let sure = if low > 0.0 || high < 0.0 { "" } else { ", not sure" };
    format!("{rest}{}{sure}", name(of.part, budget))
}

/// How much of the sleep was for storage, as watched trials saw it.
fn for_storage(why: &Why) -> Option<String> {
    let shown = why.storage.as_ref()?;
    let [baseline, candidate] = [shown.baseline, shown.candidate].map(|value| figure(shown, value));
    // Of a trial of several jobs it is known of all of them together.
    let of = if why.row.job.is_empty() { "" } else { ", an operation of all jobs" };
    let distorted = if why.watching.as_ref()?.distorted { ", distorted" } else { "" };
    if shown.baseline == 0.0 && shown.candidate == 0.0 {
        let served = match why.perhaps_served {
            true => ": where a server works for the command, --observe server=NAME watches that one",
            false => "",
        };
        return Some(format!("none of the sleep was waiting for storage (watched{of}){distorted}{served}"));
    }
    Some(format!("of the sleep, waiting for storage (watched{of}): {baseline} → {candidate}{distorted}"))
}

/// Where the causes have another border between two parts than the budget.
fn until_run(why: &Why, budget: &Budget) -> Option<String> {
    let scale = scale(&budget.total);
    let moved = signed(why.woken?.difference_ns.estimate, &scale);
    Some(format!(
        "woken threads waited {moved} for a processor (watched): part of the sleep here, not of waiting to run"
    ))
}

/// That the trials themselves were watched, so that nothing is there to tell what that cost.
fn watched(watching: &Watching) -> String {
    if !watching.can_tell() {
        return format!(
            "watched in {}, {} are needed: nothing that was seen is told",
            count(watching.rounds as u64, "round"),
            Watching::FEWEST
        );
    }
    format!("watched in {}; what that cost is not known", count(watching.rounds as u64, "round"))
}

/// What is said where no pair differs.
pub(super) fn nothing_words(all: &[Why]) -> Option<String> {
    let has = |standing: Standing| all.iter().any(|why| why.standing == standing);
    if has(Standing::Differs) {
        None
    } else if has(Standing::NotDecided) {
        Some("no difference of what decides is shown, so there is none to explain".to_owned())
    } else {
        has(Standing::NothingDiffers).then(|| "nothing differs, so there is nothing to explain".to_owned())
    }
}

/// Why a run that was to be explained was not watched, and what watches it all the same; `None`: nobody asked, or an arm differs.
pub(super) fn unwatched_words(run: &Run, all: &[Why]) -> Option<String> {
    let asked = run.command_line.iter().any(|word| word == "--explain");
    let why = match all.iter().map(|why| why.standing).min()? {
        Standing::NotDecided => "no arm is shown to differ",
        Standing::NothingDiffers => "nothing differs",
        Standing::Differs | Standing::NotJudged => return None,
    };
    let id = run.id.map_or_else(|| "RUN".to_owned(), |id| id.to_string());
    asked.then(|| {
        format!("nothing was watched, because {why}: `assay explain {id} --only waits,blocks` watches it all the same")
    })
}

/// The first of what shows a cause, but for the cause's own time; of flushes their number and their time, of processor time that of the
/// program and that of the kernel.
fn evidence(cause: &Cause) -> String {
    let is_own = |shown: &&Evidence| !(shown.metric.contains(".at.") || shown.metric.contains("_at."));
    let most = if matches!(cause.what, What::MoreFlushes | What::ProcessorTime { .. }) { 2 } else { 1 };
    let shown = cause.evidence.iter().filter(|shown| is_own(shown) && !reads_the_same(shown)).take(most);
    let words = shown.map(|shown| {
        let metric = one_line(&shown.metric);
        format!("{metric} {} → {}", figure(shown, shown.baseline), figure(shown, shown.candidate))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A share without digits behind the point.
fn whole_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "" };
    format!("{sign}{:.0}{NBSP}%", (share * 100.0).abs())
}
