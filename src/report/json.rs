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
        ("title", written(&printable(&document.title))),
        ("run", written(&run_part(document))),
    ];
    fields.extend(document.blocks().into_iter().filter_map(|block| match block {
        Block::Raw { name, json } => Some((*name, json(document))),
        _ => None,
    }));
    fields.push(("analysis", written(document.analysis)));
    let fields: Vec<String> =
        fields.into_iter().map(|(name, json)| format!("{}:{json}", written(name))).collect();
    format!("{{{}}}\n", fields.join(","))
}

/// Sentences of assay's own as JSON, with plain blanks. Texts of others stay as they are.
pub(super) fn sentences<'t>(texts: impl IntoIterator<Item = &'t String>) -> String {
    written(&texts.into_iter().map(|text| printable(text)).collect::<Vec<_>>())
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

#[cfg(test)]
mod tests {
    use super::super::format::Options;
    use super::super::section_tests::made_up;
    use super::*;

    #[test]
    fn only_sentences_of_assay_lose_their_no_break_spaces() {
        let (mut run, analysis) = made_up();
        run.job_text = Some("[a\u{a0}b]".to_owned());
        let document = Document::build(&run, &analysis, &Options::default());
        let json: serde_json::Value = serde_json::from_str(&render(&document)).unwrap();
        assert_eq!(json["run"]["job_text"], "[a\u{a0}b]");
        let words = format!("{}{}{}{}", json["title"], json["verdicts"], json["notes"], json["noise_floor"]);
        assert!(words.contains(" %") && !words.contains('\u{a0}'), "{words}");
    }
}
