//! How a document is built.
//!
//! Enters: a [`Run`] and its [`Analysis`]. Leaves: a [`Document`]. Nothing is computed or judged; what a section says is said in its file
//! in `sections/`.

use jiff::Timestamp;

use super::super::comparisons::of_role;
use super::super::format::Options;
use super::super::section::Section;
use super::super::sections::{self, Material};
use super::super::words::{NBSP, Names, count, in_all_rows, plain_percent};
use super::Document;
use crate::analyse::{Analysis, Caveat, Role};
use crate::record::{Run, SoFar, Source, Trial, deltas_in_words};
use crate::units::pretty_duration;

impl<'a> Document<'a> {
    /// Words everything a report says about `run` and its `analysis`.
    #[must_use]
    pub fn build(run: &'a Run, analysis: &'a Analysis, options: &Options) -> Document<'a> {
        Document::explained(run, analysis, None, options)
    }

    /// The same, with what another run saw that watched the same cells.
    #[must_use]
    pub fn explained(
        run: &'a Run,
        analysis: &'a Analysis,
        watched: Option<&'a Run>,
        options: &Options,
    ) -> Document<'a> {
        Document::of(run, analysis, watched, options, sections::all)
    }

    /// Of the same only what explains it.
    #[must_use]
    pub fn explanation(
        run: &'a Run,
        analysis: &'a Analysis,
        watched: &'a Run,
        options: &Options,
    ) -> Document<'a> {
        Document::of(run, analysis, Some(watched), options, sections::explaining)
    }

    fn of(
        run: &'a Run,
        analysis: &'a Analysis,
        watched: Option<&'a Run>,
        options: &Options,
        sections: fn(&mut Material<'_>) -> Vec<Section>,
    ) -> Document<'a> {
        let mut material = Material::new(run, analysis, watched, options);
        let sections = sections(&mut material);
        let title = title(run, analysis, &material.names);
        let footnotes = material.footnotes.into_texts();
        Document {
            run,
            analysis,
            watched,
            options: options.clone(),
            title,
            summary: summary(run, analysis),
            machine: sections::machine(run),
            why: material.why,
            flames: material.flames,
            request_times: material.request_times,
            sections,
            footnotes,
        }
    }
}

fn title(run: &Run, analysis: &Analysis, names: &Names<'_>) -> String {
    let mut arms = analysis.arms.iter().map(|arm| names.arm(arm));
    let baseline = arms.next().unwrap_or_default();
    let candidates: Vec<String> = arms.collect();
    let name = if run.name.is_empty() { String::new() } else { format!("{}: ", run.name) };
    let chosen = chosen_afterwards(analysis);
    let title = match candidates.as_slice() {
        _ if run.aa => format!("{name}A/A, {baseline} against itself"),
        [] => format!("{name}{baseline}"),
        [_] => format!("{name}{}", names.against(&analysis.arms[1], &analysis.arms[0])),
        many if many.len() <= 3 => format!("{name}{} against {baseline}", many.join(", ")),
        many => format!("{name}{} candidates against {baseline}", many.len()),
    };
    title + &chosen
}

/// What the headline adds when the metric that decides is not the run's own.
fn chosen_afterwards(analysis: &Analysis) -> String {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for comparison in of_role(analysis, Role::Primary) {
        for caveat in &comparison.caveats {
            if let Caveat::ChosenAfterwards { instead_of } = caveat {
                let pair = (comparison.metric.name.as_str(), instead_of.as_deref().unwrap_or("none"));
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    let told = pairs
        .iter()
        .map(|(chosen, own)| format!(" (judged by {chosen}, chosen after the run; its own: {own})"));
    told.collect()
}

/// `2026-11-24 21:41`; `None`: unknown.
fn minute(unix_ns: u64) -> Option<String> {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).ok().filter(|_| unix_ns > 0)?;
    Some(time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// When each of two arms began that were measured one after the other: `before: 2026-11-23 02:00`.
fn of_both_arms(run: &Run, analysis: &Analysis) -> Option<[String; 2]> {
    let [one, other] = analysis.arms.as_slice() else { return None };
    let factor = run.design.factors.iter().position(|factor| factor.name == analysis.factor)?;
    let levels = &run.design.factors[factor].levels;
    let of = |arm: &String| {
        let is_its = |trial: &&Trial| {
            let cell = run.cells.get(trial.cell as usize);
            let level = cell.and_then(|cell| levels.get(*cell.levels.get(factor)? as usize));
            level == Some(arm) && trial.started_unix_ns > 0
        };
        let start = run.trials.iter().filter(is_its).map(|trial| trial.started_unix_ns).min()?;
        Some(format!("{arm}: {}", minute(start)?))
    };
    analysis.caveats.contains(&Caveat::Sequential).then_some([of(one)?, of(other)?])
}

fn summary(run: &Run, analysis: &Analysis) -> String {
    let mut parts = Vec::new();
    if let Some(id) = run.id {
        parts.push(format!("run{NBSP}{id}"));
    }
    let of_both = of_both_arms(run, analysis).map(|both| both.join(", "));
    parts.extend(of_both.or_else(|| minute(run.started_unix_ns)).map(|start| format!("{start} UTC")));
    match &run.source {
        Source::Measured => parts.push(match analysis.so_far() {
            Some(SoFar { rounds, of }) => format!("{rounds} of {of} rounds so far").replace(' ', "\u{a0}"),
            None => count(u64::from(analysis.rounds), "round"),
        }),
        Source::Imported(format) => parts.push(format!("imported from {format}")),
    }
    let trials = count(run.trials.len() as u64, "trial");
    let elapsed: f64 = run.trials.iter().map(|trial| trial.elapsed_s).filter(|s| s.is_finite()).sum();
    // The time of the trials, not that of the run: lead-ins, boots and waits come on top.
    parts.push(match elapsed > 0.0 {
        true => format!("{trials} ({})", pretty_duration(elapsed)),
        false => trials,
    });
    if !run.engine.is_empty() {
        parts.push(format!("engine{NBSP}{}", run.engine.replace(' ', "\u{a0}")));
    }
    if !run.assay_version.is_empty() {
        parts.push(format!("assay{NBSP}{}", run.assay_version));
    }
    let deltas = deltas_in_words(analysis.delta, &analysis.deltas, plain_percent);
    parts.push(format!("δ{NBSP}{}", deltas.replace(' ', "\u{a0}")));
    parts.extend(in_all_rows(run, &analysis.factor).map(|levels| format!("all with {levels}")));
    // Of several runs each says it in a note of its own.
    let busy = run.busy_machine().filter(|_| run.source == Source::Measured);
    parts.extend(busy.map(|why| format!("busy machine at the start: {why}")));
    parts.join("\u{a0}· ")
}
