//! What several runs say, as one report.
//!
//! Enters: runs, and why one of them ended otherwise than by its own rule. Leaves: an overview, judged as each run by itself is.

use super::judge::{judge, watched_run_of};
use super::output::Output;
use crate::analyse::{self, Analysis};
use crate::record::Run;
use crate::report::{self, Document, Format, Overview, OverviewPart, RenderOptions};
use crate::store::Store;
use crate::sys::terminal::{self, Form};

/// One run among several.
pub(super) struct Reported {
    /// What it is called among the others.
    pub(super) name: String,
    /// The run; `None`: it was not begun.
    pub(super) run: Option<Run>,
    /// Why it failed.
    pub(super) failure: Option<String>,
}

/// Judges the runs again and writes what they say; returns their analyses.
///
/// # Errors
/// An output that cannot be written.
pub(super) fn write(
    all: &[Reported],
    wishes: &analyse::Options,
    options: &report::Options,
    format: Format,
    output: &Output,
    store: Option<&Store>,
    raw_cells: bool,
) -> anyhow::Result<Vec<Analysis>> {
    let judged = judged(all, wishes, store);
    let colour = output.file.is_none() && terminal::colours();
    let form = match format {
        Format::Json => Form::Json,
        Format::Csv if raw_cells => Form::Raw,
        Format::Text if colour => Form::Styled,
        _ => Form::Plain,
    };
    let text =
        overview(all, &judged, options).render(format, RenderOptions { colour, raw_cells, width: None });
    output.write(&text, form)?;
    Ok(judged.into_iter().filter_map(|(analysis, _)| analysis).collect())
}

/// Writes what all of them say together, where each has been told already.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn write_head(
    all: &[Reported],
    wishes: &analyse::Options,
    options: &report::Options,
    store: Option<&Store>,
) -> anyhow::Result<()> {
    let judged = judged(all, wishes, store);
    let text = overview(all, &judged, options).head(RenderOptions::default());
    Output::default().write(&format!("\n{text}"), Form::Plain)
}

/// What was found in each run, and the run that watched its cells.
type Judged = (Option<Analysis>, Option<Run>);

fn judged(all: &[Reported], wishes: &analyse::Options, store: Option<&Store>) -> Vec<Judged> {
    let of = |one: &Reported| {
        let analysis = one.run.as_ref().map(|run| judge(run, wishes, store));
        let watched = one.run.as_ref().zip(store).and_then(|(run, store)| watched_run_of(store, run));
        (analysis, watched)
    };
    all.iter().map(of).collect()
}

fn overview<'a>(all: &'a [Reported], judged: &'a [Judged], options: &report::Options) -> Overview<'a> {
    let part = |(one, (analysis, watched)): (&'a Reported, &'a Judged)| OverviewPart {
        name: &one.name,
        document: one
            .run
            .as_ref()
            .zip(analysis.as_ref())
            .map(|(run, analysis)| Document::explained(run, analysis, watched.as_ref(), options)),
        failure: one.failure.as_deref(),
    };
    Overview { parts: all.iter().zip(judged).map(part).collect() }
}
