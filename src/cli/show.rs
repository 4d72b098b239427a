//! `assay show`: one run as it is stored: design, trials, failures, facts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use super::database::Database;
use super::progress::{cell_label, headline_of};
use super::{Failure, kept_files, local_time, other_user};
use crate::analyse::deciding;
use crate::record::{Metric, Run, RunState, Status, Trial};
use crate::report::{wrapped, wrapped_behind};
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
    head(&mut out, &run, state(args, &run)?)?;
    let deciding = deciding(&run);
    let mut notes = Notes::default();
    for (number, trial) in run.trials.iter().enumerate() {
        show_trial(&mut out, &run, number, trial, &deciding)?;
        for note in notes.lines(number, trial) {
            writeln!(out, "{}", wrapped_behind("        note: ", &note))?;
        }
        if args.values {
            show_values(&mut out, &run, trial)?;
        }
    }
    if files > 0 {
        let size = format_number(&Unit::Bytes, bytes as f64);
        writeln!(out, "\n{files} files of trials ({size}) are kept; --files DIR writes them")?;
    }
    if let Some(facts) = run.facts.first() {
        writeln!(out, "\nfacts of the host at the start")?;
        for (name, value) in facts.iter() {
            writeln!(out, "{}", wrapped_behind(&format!("  {name:<28} "), value))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn head(out: &mut impl Write, run: &Run, state: &str) -> std::io::Result<()> {
    let number = run.id.map_or_else(|| "(file)".to_owned(), |id| id.to_string());
    writeln!(out, "run {number}  {}  engine {}  assay {}", run.name, run.engine, run.assay_version)?;
    if let Some(began) = local_time::second(run.started_unix_ns) {
        let ends = run.trials.iter().map(|trial| trial.started_unix_ns as f64 / 1e9 + trial.elapsed_s);
        let took = ends.fold(0.0, f64::max) - run.started_unix_ns as f64 / 1e9;
        let ended = Some(took).filter(|took| *took > 0.0);
        let ended = ended.map(|s| format!("; its last trial ended {} later", pretty_duration(s)));
        writeln!(out, "began: {began}{}", ended.unwrap_or_default())?;
    }
    writeln!(out, "state: {state}  seed: {}", run.seed)?;
    // As it is, to be pasted.
    writeln!(out, "command: {}", join(&run.command_line))?;
    for (at, factor) in run.design.factors.iter().enumerate() {
        let role = if at == run.design.compare { "arms" } else { "rows" };
        let levels = format!("{role}: {} = {}", factor.name, factor.levels.join(" | "));
        writeln!(out, "{}", wrapped(&levels, "  "))?;
    }
    for note in &run.notes {
        writeln!(out, "{}", wrapped(&format!("note: {note}"), "  "))?;
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

/// How far it came; of a file nobody knows whether its process lives.
fn state(args: &Args, run: &Run) -> Result<&'static str, Failure> {
    match (run.state, run.id.filter(|_| args.database.is_stored(&args.run))) {
        (state, Some(id)) => Ok(other_user::state(&args.database.read()?, id, state)),
        (RunState::Running, None) => Ok("unfinished when it was exported"),
        (RunState::Finished, None) => Ok("finished"),
        (RunState::Interrupted, None) => Ok("interrupted"),
        (RunState::Failed, None) => Ok("failed"),
    }
}

/// `wal: ` before a metric of a section.
fn section(metric: &Metric) -> String {
    if metric.job.is_empty() { String::new() } else { format!("{}: ", metric.job) }
}

fn show_trial(
    out: &mut impl Write,
    run: &Run,
    number: usize,
    trial: &Trial,
    deciding: &BTreeSet<u32>,
) -> std::io::Result<()> {
    let excluded = trial.excluded.as_ref().map(|rule| format!("  thrown out: {rule}")).unwrap_or_default();
    let shown = headline_of(run, trial, deciding).map(|shown| format!("  {shown}"));
    writeln!(
        out,
        "{number:>5} {:>5} {:>3} {:>9}  {}{}{excluded}",
        trial.round + 1,
        trial.attempt + 1,
        pretty_duration(trial.elapsed_s),
        cell_label(run, trial.cell),
        shown.unwrap_or_default()
    )?;
    match &trial.status {
        Status::Done => {}
        Status::Skipped { reason } => writeln!(out, "{}", wrapped_behind("        skipped: ", reason))?,
        Status::Failed { reason, command, output, .. } => {
            writeln!(out, "{}", wrapped_behind("        failed: ", reason))?;
            if !command.is_empty() {
                writeln!(out, "        command: {command}")?;
            }
            for line in output.lines() {
                writeln!(out, "        | {line}")?;
            }
        }
    }
    Ok(())
}

/// Every value of a trial.
fn show_values(out: &mut impl Write, run: &Run, trial: &Trial) -> std::io::Result<()> {
    for (metric, value) in &trial.values {
        let metric = &run.metrics[*metric as usize];
        writeln!(out, "        {}{} = {value} {}", section(metric), metric.name, metric.unit.symbol())?;
    }
    Ok(())
}

/// Notes of trials that were printed.
#[derive(Default)]
struct Notes<'r> {
    /// Where each text was printed first.
    first: BTreeMap<&'r str, String>,
}

impl<'r> Notes<'r> {
    /// The notes of a trial: in full, or where the same one was printed before.
    fn lines(&mut self, number: usize, trial: &'r Trial) -> Vec<String> {
        let mut lines = Vec::new();
        for (at, note) in trial.notes.iter().enumerate() {
            if let Some(first) = self.first.get(note.text.as_str()) {
                lines.push(format!("as {first}"));
                continue;
            }
            let first = match trial.notes.len() {
                1 => format!("trial {number}"),
                _ => format!("note {} of trial {number}", at + 1),
            };
            self.first.insert(&note.text, first);
            lines.push(note.to_string());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_printed_in_full_once() {
        let trial = |notes: &[&str]| Trial {
            notes: notes.iter().map(|note| (*note).into()).collect(),
            ..Trial::default()
        };
        let trials = [trial(&["warm"]), trial(&["warm", "late"]), trial(&[]), trial(&["late", "warm"])];
        let mut notes = Notes::default();
        let lines: Vec<String> =
            trials.iter().enumerate().flat_map(|(number, trial)| notes.lines(number, trial)).collect();
        assert_eq!(lines, ["warm", "as trial 0", "late", "as note 2 of trial 1", "as trial 0"]);
    }
}
