//! `assay export`: a run with every trial, for other tools and other machines.

use std::process::ExitCode;

use super::Failure;
use super::database::Database;
use super::output::Output;
use crate::record::{Run, Status, Trial};
use crate::sys::{csv_cell, terminal::Form};

/// Options of `assay export`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Number or name of a stored run, `latest`, or an exported file
    run: String,
    /// json keeps everything and can be read back; csv has one line a value [default: by the name behind -o, else json]
    #[arg(long, value_parser = ["json", "csv"])]
    format: Option<String>,
    /// csv: cells as they are, also those that a spreadsheet would take for a formula
    #[arg(long)]
    raw_cells: bool,
    /// json: without the files that hooks and observers left
    #[arg(long)]
    no_files: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    database: Database,
}

/// Writes the run.
///
/// # Errors
/// No such run, or an output that cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let format = format(args)?;
    // A table has no files.
    let run = if args.no_files || format == "csv" {
        let mut run = args.database.load(&args.run)?;
        run.trials.iter_mut().for_each(|trial| trial.files.clear());
        run
    } else {
        args.database.load_with_files(&args.run)?
    };
    match format {
        "csv" if args.raw_cells => args.output.write(&csv_text(&run, true)?, Form::Raw)?,
        "csv" => args.output.write(&csv_text(&run, false)?, Form::Plain)?,
        _ => args.output.write(&(serde_json::to_string_pretty(&run)? + "\n"), Form::Json)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// As asked for, by the file's ending, else JSON.
fn format(args: &Args) -> Result<&str, Failure> {
    if let Some(format) = &args.format {
        return Ok(format);
    }
    let ending = args.output.file.as_ref().and_then(|file| file.extension());
    match ending.map(|ending| ending.to_string_lossy().into_owned()).as_deref() {
        None | Some("json") => Ok("json"),
        Some("csv") => Ok("csv"),
        Some(other) => Err(Failure::request(format!("no export has the ending .{other}; write .json or .csv"))
            .hint("--format json or --format csv says it whatever the file is called; `assay report` writes reports")),
    }
}

/// One line a value: the levels, the place in the run, the metric, its unit, its good direction and the number.
fn csv_text(run: &Run, raw: bool) -> anyhow::Result<String> {
    let cell = |text: &str| if raw { text.to_owned() } else { csv_cell::written(text).into_owned() };
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = ["trial", "round", "position", "attempt", "status"].map(str::to_owned).to_vec();
    header.extend(run.design.factors.iter().map(|f| cell(&f.name)));
    header.extend(["job", "metric", "unit", "better", "value"].map(str::to_owned));
    writer.write_record(&header)?;
    // By cell, so that whoever reads it finds the levels in their order, the baseline first.
    let mut trials: Vec<(usize, &Trial)> = run.trials.iter().enumerate().collect();
    trials.sort_by_key(|(_, trial)| trial.cell);
    for (number, trial) in trials {
        let status = match (&trial.status, &trial.excluded) {
            (Status::Done, None) => "done",
            (Status::Done, Some(_)) => "excluded",
            (Status::Failed { .. }, _) => "failed",
            (Status::Skipped { .. }, _) => "skipped",
        };
        let mut place: Vec<String> = [number as u32, trial.round, trial.position, trial.attempt]
            .iter()
            .map(ToString::to_string)
            .collect();
        place.push(status.to_owned());
        let levels = &run.cells[trial.cell as usize].levels;
        place
            .extend(run.design.factors.iter().zip(levels).map(|(f, level)| cell(&f.levels[*level as usize])));
        for (metric, value) in &trial.values {
            let metric = &run.metrics[*metric as usize];
            let mut line = place.clone();
            line.extend([
                cell(&metric.job),
                cell(&metric.name),
                cell(metric.unit.symbol()),
                metric.better.word().to_owned(),
                value.to_string(),
            ]);
            writer.write_record(&line)?;
        }
        if trial.values.is_empty() {
            place.extend(["", "", "", "", ""].map(str::to_owned));
            writer.write_record(&place)?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
