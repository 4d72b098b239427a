//! JSON: everything a program could want of a report, versioned (docs/FORMAT.md, "report json").

use serde::Serialize;

use super::document::Document;
use super::failures::Failure;
use super::footnotes::caveat_text;
use super::words::Names;
use crate::analyse::Analysis;
use crate::record::{Cell, Design, HostFacts, Metric, RunState, Source};

/// Version of this form. Fields may be added under the same number; a change of meaning raises it.
const VERSION: u32 = 2;

#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    title: &'a str,
    run: RunPart<'a>,
    verdicts: Vec<VerdictPart<'a>>,
    notes: &'a [String],
    noise_floor: Option<&'a str>,
    failures: Vec<FailurePart<'a>>,
    analysis: &'a Analysis,
}

#[derive(Serialize)]
struct RunPart<'a> {
    id: Option<i64>,
    name: &'a str,
    source: &'a Source,
    state: RunState,
    aa: bool,
    assay_version: &'a str,
    engine: &'a str,
    started_unix_ns: u64,
    command_line: &'a [String],
    seed: Option<u64>,
    job_text: Option<&'a str>,
    design: &'a Design,
    cells: &'a [Cell],
    metrics: &'a [Metric],
    trials: usize,
    facts: &'a [HostFacts],
}

/// The words that belong to one primary comparison of `analysis.comparisons`.
#[derive(Serialize)]
struct VerdictPart<'a> {
    comparison: usize,
    sentence: &'a str,
    tone: &'static str,
    caveats: Vec<String>,
}

#[derive(Serialize)]
struct FailurePart<'a> {
    what: &'a str,
    then: Option<&'a str>,
    cell: &'a str,
    trials: usize,
    rounds: &'a [u32],
    reason: &'a str,
    command: &'a str,
    output: &'a str,
}

/// Writes the whole document; numbers that are not finite become null.
pub(super) fn render(document: &Document<'_>) -> String {
    let report = Report {
        format: "assay-report",
        version: VERSION,
        title: &document.title,
        run: run_part(document),
        verdicts: verdicts(document),
        notes: &document.notes,
        noise_floor: document.noise.as_deref(),
        failures: document.failures.iter().map(failure_part).collect(),
        analysis: document.analysis,
    };
    // These types have string keys only and no serializer of their own that fails.
    let mut text = super::layout::printable(&serde_json::to_string(&report).unwrap_or_default());
    text.push('\n');
    text
}

fn run_part<'a>(document: &Document<'a>) -> RunPart<'a> {
    let run = document.run;
    RunPart {
        id: run.id,
        name: &run.name,
        source: &run.source,
        state: run.state,
        aa: run.aa,
        assay_version: &run.assay_version,
        engine: &run.engine,
        started_unix_ns: run.started_unix_ns,
        command_line: &run.command_line,
        seed: document.repeat.seed,
        job_text: run.job_text.as_deref(),
        design: &run.design,
        cells: &run.cells,
        metrics: &run.metrics,
        trials: run.trials.len(),
        facts: &run.facts,
    }
}

fn verdicts<'a>(document: &'a Document<'_>) -> Vec<VerdictPart<'a>> {
    let names = Names::new(document.run, &document.analysis.factor);
    let primary = document
        .analysis
        .comparisons
        .iter()
        .enumerate()
        .filter(|(_, c)| c.role == crate::analyse::Role::Primary);
    primary
        .zip(&document.verdicts)
        .map(|((comparison, c), sentence)| VerdictPart {
            comparison,
            sentence: &sentence.text,
            tone: sentence.tone.name(),
            caveats: c.caveats.iter().map(|caveat| caveat_text(caveat, Some(c), &names)).collect(),
        })
        .collect()
}

fn failure_part(failure: &Failure) -> FailurePart<'_> {
    FailurePart {
        what: failure.what,
        then: failure.then,
        cell: &failure.cell,
        trials: failure.count,
        rounds: &failure.rounds,
        reason: &failure.reason,
        command: &failure.command,
        output: &failure.output,
    }
}
