//! `assay export --format csv` read back: one line a value, cell by cell. The first factor makes the arms, its first level is the
//! baseline, and trials have the order of their numbers; what the table does not
//! say (seed, facts, histograms, which metric decides) is lost, and a note says so.

use std::collections::HashMap;

use crate::record::{
    Cell, Design, Factor, FailureKind, Metric, Run, RunState, Sample, Source, Status, Trial,
};
use crate::sys::csv_cell;
use crate::units::{Better, Unit};

use super::error::{ImportError, Problem};
use super::observation::MOST_TRIALS;

/// Whether the first line of a table is the header of such a one; tables of earlier versions have no column `better`.
pub(super) fn begins(header: &str) -> bool {
    header.starts_with("trial,round,position,attempt,status,")
        && [",job,metric,unit,better,value", ",job,metric,unit,value"].iter().any(|end| header.ends_with(end))
}

/// Where names were met first, so that a long table is read in one pass.
#[derive(Default)]
struct Known {
    levels: Vec<HashMap<String, u32>>,
    cells: HashMap<Vec<u32>, u32>,
    metrics: HashMap<Metric, u32>,
}

/// Columns before the factors.
const PLACE: usize = 5;
/// Columns behind them, without and with the good direction.
const VALUE: [usize; 2] = [4, 5];

pub(super) fn read(text: &str, origin: &str) -> Result<Run, ImportError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wrong = |error: &csv::Error| {
        let line = error.position().map_or(1, |at| at.line() as usize);
        let message = error.to_string();
        ImportError::at(origin, line, Problem::Json { format: "assay csv export", message })
    };
    let headers = reader.headers().map_err(|error| wrong(&error))?.clone();
    let has_better = headers.iter().rev().nth(1) == Some("better");
    let behind = PLACE + VALUE[usize::from(has_better)];
    let names: Vec<&str> = headers.iter().skip(PLACE).take(headers.len().saturating_sub(behind)).collect();
    if names.is_empty() {
        let message = "its header names no factor".to_owned();
        return Err(ImportError::new(origin, Problem::Json { format: "assay csv export", message }));
    }
    let mut run = empty(&names, origin);
    let mut known = Known { levels: vec![HashMap::new(); names.len()], ..Known::default() };
    let mut open: Option<String> = None;
    let mut numbers: Vec<u64> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(&error))?;
        let line = record.position().map_or(0, |at| at.line() as usize);
        let number = record.get(0).unwrap_or("");
        if open.as_deref() != Some(number) {
            open = Some(number.to_owned());
            let trial = trial(&mut run, &mut known, &record)
                .map_err(|problem| ImportError::at(origin, line, problem))?;
            if run.trials.len() == MOST_TRIALS {
                return Err(ImportError::new(origin, Problem::TooMany { limit: MOST_TRIALS }));
            }
            numbers.push(number.parse().unwrap_or(u64::MAX));
            run.trials.push(trial);
        }
        let value = value(&mut run, &mut known, &record, (PLACE + names.len(), has_better))
            .map_err(|problem| ImportError::at(origin, line, problem))?;
        if let (Some(value), Some(trial)) = (value, run.trials.last_mut()) {
            trial.values.push(value);
        }
    }
    let mut numbered: Vec<(u64, Trial)> = numbers.into_iter().zip(std::mem::take(&mut run.trials)).collect();
    numbered.sort_by_key(|(number, _)| *number);
    run.trials = numbered.into_iter().map(|(_, trial)| trial).collect();
    // Only a run in rounds has places in them: its rounds are pairs.
    run.design.paired = run.trials.iter().any(|trial| trial.position > 0);
    if run.trials.is_empty() {
        return Err(ImportError::new(
            origin,
            Problem::NoResults("the table has a header and no rows".to_owned()),
        ));
    }
    Ok(run)
}

fn empty(names: &[&str], origin: &str) -> Run {
    let factors = names.iter().map(|name| Factor::new(csv_cell::read(name), Vec::new())).collect();
    let source = Source::Imported("assay csv export".to_owned());
    let notes = vec![
        "read from a CSV export: facts, histograms, which metric decided and the rule that ended the run are not in it; \
         `assay export --format json` keeps everything"
            .into(),
    ];
    Run { notes, ..Run::new(origin, source, RunState::Finished, Design::new(factors)) }
}

fn count(record: &csv::StringRecord, at: usize, what: &str) -> Result<u32, Problem> {
    let text = record.get(at).unwrap_or("");
    text.parse().map_err(|_| Problem::Value {
        what: what.to_owned(),
        text: text.to_owned(),
        reason: "which is not a whole number",
    })
}

fn trial(run: &mut Run, known: &mut Known, record: &csv::StringRecord) -> Result<Trial, Problem> {
    let mut levels = Vec::new();
    for (at, factor) in run.design.factors.iter_mut().enumerate() {
        let level = csv_cell::read(record.get(PLACE + at).unwrap_or(""));
        let index = *known.levels[at].entry(level.clone().into_owned()).or_insert_with(|| {
            factor.levels.push(level.into_owned());
            (factor.levels.len() - 1) as u32
        });
        levels.push(index);
    }
    let cell = *known.cells.entry(levels).or_insert_with_key(|levels| {
        run.cells.push(Cell { levels: levels.clone() });
        (run.cells.len() - 1) as u32
    });
    let status = record.get(PLACE - 1).unwrap_or("");
    let reason = || "the export does not say why".to_owned();
    Ok(Trial {
        cell,
        round: count(record, 1, "round")?,
        position: count(record, 2, "position")?,
        attempt: count(record, 3, "attempt")?,
        status: match status {
            "done" | "excluded" => Status::Done,
            "failed" => Status::failed(FailureKind::Passing, reason()),
            "skipped" => Status::Skipped { reason: reason() },
            other => {
                let reason = "which is not done, excluded, failed or skipped";
                return Err(Problem::Value { what: "status".to_owned(), text: other.to_owned(), reason });
            }
        },
        excluded: (status == "excluded").then(reason),
        ..Trial::default()
    })
}

/// (metric, value); `None` for the line of a trial without values.
fn value(
    run: &mut Run,
    known: &mut Known,
    record: &csv::StringRecord,
    (at, has_better): (usize, bool),
) -> Result<Option<(u32, f64)>, Problem> {
    let field = |offset: usize| record.get(at + offset).unwrap_or("");
    let printed = field(if has_better { 4 } else { 3 });
    if field(1).is_empty() && printed.is_empty() {
        return Ok(None);
    }
    let bad = |reason| Problem::Value { what: "value".to_owned(), text: printed.to_owned(), reason };
    let number: f64 = printed.parse().map_err(|_| bad("which is not a number"))?;
    if !number.is_finite() {
        return Err(bad("which is not a number that can be compared"));
    }
    // The symbols written are those of base units: their factor is 1.
    let (unit, _) = Unit::parse(&csv_cell::read(field(2)));
    let mut metric = Sample::new(&csv_cell::read(field(0)), &csv_cell::read(field(1)), unit, number).metric;
    if has_better {
        let unknown = "which is neither higher nor lower";
        metric.better = Better::parse(field(3)).ok_or_else(|| Problem::Value {
            what: "better".to_owned(),
            text: field(3).to_owned(),
            reason: unknown,
        })?;
    }
    let index = *known.metrics.entry(metric).or_insert_with_key(|metric| {
        run.metrics.push(metric.clone());
        (run.metrics.len() - 1) as u32
    });
    Ok(Some((index, number)))
}
