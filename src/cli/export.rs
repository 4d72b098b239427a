//! `assay export`: a run with every trial, for other tools and other machines.

use std::path::PathBuf;
use std::process::ExitCode;

use super::database::Database;
use super::output::write_output;
use crate::record::{Run, Status};

/// Options of `assay export`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Number of a stored run, or an exported file
    run: String,
    /// json keeps everything and can be read back; csv has one line a value
    #[arg(long, default_value = "json", value_parser = ["json", "csv"])]
    format: String,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    database: Database,
}

/// Writes the run.
///
/// # Errors
/// No such run, or an output that cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.database.load(&args.run)?;
    let text =
        if args.format == "csv" { csv_text(&run)? } else { serde_json::to_string_pretty(&run)? + "\n" };
    write_output(args.output.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// One line a value: the levels, the place in the run, the metric, its unit and the number.
fn csv_text(run: &Run) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header: Vec<&str> = vec!["trial", "round", "position", "attempt", "status"];
    header.extend(run.design.factors.iter().map(|f| f.name.as_str()));
    header.extend(["job", "metric", "unit", "value"]);
    writer.write_record(&header)?;
    for (number, trial) in run.trials.iter().enumerate() {
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
        place.extend(
            run.design.factors.iter().zip(levels).map(|(f, level)| f.levels[*level as usize].clone()),
        );
        for (metric, value) in &trial.values {
            let metric = &run.metrics[*metric as usize];
            let mut line = place.clone();
            line.extend([
                metric.job.clone(),
                metric.name.clone(),
                metric.unit.symbol().to_owned(),
                value.to_string(),
            ]);
            writer.write_record(&line)?;
        }
        if trial.values.is_empty() {
            place.extend(["", "", "", ""].map(str::to_owned));
            writer.write_record(&place)?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
