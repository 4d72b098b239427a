//! JSON: everything a program could want of a report, versioned (docs/FORMAT.md, "report json").
//!
//! Enters: a document. Leaves: its head, then the values for programs of all sections in their order, then the analysis. It must not
//! know which section has which value.

use serde::Serialize;

use super::document::Document;
use super::layout::printable;
use super::section::Block;
use crate::record::{Cell, Design, HostFacts, Metric, RunState, Source};

/// Version of this form. Fields may be added under the same number; a change of meaning raises it.
const VERSION: u32 = 2;

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

/// Writes the whole document; numbers that are not finite become null.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut fields = vec![
        ("format", written("assay-report")),
        ("version", written(&VERSION)),
        ("title", written(&document.title)),
        ("run", written(&run_part(document))),
    ];
    fields.extend(document.blocks().into_iter().filter_map(|block| match block {
        Block::Raw { name, json } => Some((*name, json(document))),
        _ => None,
    }));
    fields.push(("analysis", written(document.analysis)));
    let fields: Vec<String> =
        fields.into_iter().map(|(name, json)| format!("{}:{json}", written(name))).collect();
    printable(&format!("{{{}}}\n", fields.join(",")))
}

/// A value as JSON.
pub(super) fn written(value: &(impl Serialize + ?Sized)) -> String {
    // These types have string keys only and no serializer of their own that fails.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
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
        // Of imported results assay chose nothing.
        seed: (run.source == Source::Measured).then_some(run.seed),
        job_text: run.job_text.as_deref(),
        design: &run.design,
        cells: &run.cells,
        metrics: &run.metrics,
        trials: run.trials.len(),
        facts: &run.facts,
    }
}
