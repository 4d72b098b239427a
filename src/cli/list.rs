//! `assay list`: the runs in the store, a line each.

use std::io::Write;
use std::process::ExitCode;

use super::database::{Database, wrong};
use crate::record::RunState;
use crate::store::RunSummary;
use crate::sys::terminal::{self, Form};

/// Options of `assay list`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    database: Database,
    /// One JSON object a run instead of a table
    #[arg(long)]
    json: bool,
}

/// Prints the list.
///
/// # Errors
/// A store that cannot be read.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runs = args.database.read()?.list().map_err(|error| wrong(&error))?;
    if args.json {
        let mut out = terminal::out_as(Form::Json);
        for run in &runs {
            let line = serde_json::json!({
                "run": run.id, "name": run.name, "state": run.state, "started_unix_ns": run.started_unix_ns,
                "engine": run.engine, "trials": run.trials, "rounds": run.rounds, "factor": run.factor,
                "arms": run.arms, "aa": run.aa, "probe": run.is_probe(),
            });
            writeln!(out, "{line}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = terminal::out();
    writeln!(out, "{:>4}  {:<16} {:<11} {:>6} {:>6}  what", "run", "started", "state", "rounds", "trials")?;
    for run in &runs {
        writeln!(
            out,
            "{:>4}  {:<16} {:<11} {:>6} {:>6}  {}",
            run.id,
            started(run),
            state(run.state),
            run.rounds,
            run.trials,
            what(run)
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn started(run: &RunSummary) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map(|time| time.strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default()
}

fn state(state: RunState) -> &'static str {
    match state {
        RunState::Running => "unfinished",
        RunState::Finished => "finished",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

/// Name and arms, shortened so that the line fits 80 columns.
fn what(run: &RunSummary) -> String {
    let kind = if run.aa { " (A/A)" } else { "" };
    let text = match run.is_probe() {
        true => format!("probe of {}", run.arms.join(" | ")),
        false => format!("{}: {} {}{kind}", run.name, run.factor, run.arms.join(" | ")),
    };
    let text = terminal::visible_line(&text);
    const ROOM: usize = 26;
    if text.chars().count() <= ROOM {
        text.into_owned()
    } else {
        format!("{}…", text.chars().take(ROOM - 1).collect::<String>())
    }
}
