//! `assay show`: one run as it is stored: design, trials, failures, facts.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use super::database::Database;
use super::kept_files;
use super::progress::cell_label;
use crate::record::{Run, Status, Trial};
use crate::units::{Unit, format_number, pretty_duration};

/// Options of `assay show`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Number or name of a stored run, `latest`, or an exported file
    run: String,
    /// Every value of every trial
    #[arg(long)]
    values: bool,
    /// Write the files that hooks left, what they printed, kept stacks and traces to this new directory, a directory a trial
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    #[command(flatten)]
    database: Database,
}

/// Prints the run.
///
/// # Errors
/// No such run.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(directory) = &args.files {
        return kept_files::write_out(&args.database.load_with_files(&args.run)?, directory);
    }
    let run = args.database.load_for_report(&args.run)?;
    let (files, bytes) = args.database.kept_files(&args.run)?;
    let mut out = crate::sys::terminal::out();
    head(&mut out, &run)?;
    for (number, trial) in run.trials.iter().enumerate() {
        show_trial(&mut out, &run, number, trial, args.values)?;
    }
    if files > 0 {
        let size = format_number(&Unit::Bytes, bytes as f64);
        writeln!(out, "\n{files} files of trials ({size}) are kept; --files DIR writes them")?;
    }
    if let Some(facts) = run.facts.first() {
        writeln!(out, "\nfacts of the host at the start")?;
        for (name, value) in &facts.0 {
            writeln!(out, "  {name:<28} {value}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn head(out: &mut impl Write, run: &Run) -> std::io::Result<()> {
    let number = run.id.map_or_else(|| "(file)".to_owned(), |id| id.to_string());
    writeln!(out, "run {number}  {}  engine {}  assay {}", run.name, run.engine, run.assay_version)?;
    writeln!(out, "state: {:?}  seed: {}  command: {}", run.state, run.seed, join(&run.command_line))?;
    for (at, factor) in run.design.factors.iter().enumerate() {
        let role = if at == run.design.compare { "arms" } else { "rows" };
        writeln!(out, "{role}: {} = {}", factor.name, factor.levels.join(" | "))?;
    }
    for note in &run.notes {
        writeln!(out, "note: {note}")?;
    }
    if let Some(job) = &run.job_text {
        writeln!(out, "\njob")?;
        for line in job.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "\n{:>5} {:>5} {:>3} {:>9}  cell", "trial", "round", "try", "took")
}

fn join(command_line: &[String]) -> String {
    shlex::try_join(command_line.iter().map(String::as_str)).unwrap_or_else(|_| command_line.join(" "))
}

fn show_trial(
    out: &mut impl Write,
    run: &Run,
    number: usize,
    trial: &Trial,
    values: bool,
) -> std::io::Result<()> {
    let excluded = trial.excluded.as_ref().map(|rule| format!("  thrown out: {rule}")).unwrap_or_default();
    let first = trial.values.first().map(|(metric, value)| {
        let metric = &run.metrics[*metric as usize];
        format!("  {} {}", metric.name, format_number(&metric.unit, *value))
    });
    writeln!(
        out,
        "{number:>5} {:>5} {:>3} {:>9}  {}{}{excluded}",
        trial.round + 1,
        trial.attempt + 1,
        pretty_duration(trial.elapsed_s),
        cell_label(run, trial.cell),
        first.unwrap_or_default()
    )?;
    match &trial.status {
        Status::Done => {}
        Status::Skipped { reason } => writeln!(out, "        skipped: {reason}")?,
        Status::Failed { reason, command, output, .. } => {
            writeln!(out, "        failed: {reason}")?;
            if !command.is_empty() {
                writeln!(out, "        command: {command}")?;
            }
            for line in output.lines() {
                writeln!(out, "        | {line}")?;
            }
        }
    }
    for note in &trial.notes {
        writeln!(out, "        note: {note}")?;
    }
    if values {
        for (metric, value) in &trial.values {
            let metric = &run.metrics[*metric as usize];
            let job = if metric.job.is_empty() { String::new() } else { format!("{}: ", metric.job) };
            writeln!(out, "        {job}{} = {value} {}", metric.name, metric.unit.symbol())?;
        }
    }
    Ok(())
}
