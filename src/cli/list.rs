//! `assay list`: the runs in the store, a line each.

use std::io::Write;
use std::process::ExitCode;

use super::database::{Database, wrong};
use super::local_time;
use super::other_user::{self, UNFINISHED, UNKNOWN, assay_of};
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
    /// The last N only
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Runs whose name has TEXT in it
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Runs in this state; a run that was killed is unfinished
    #[arg(long, value_name = "STATE", value_parser = ["finished", "running", UNFINISHED, "interrupted", "failed"])]
    state: Option<String>,
}

/// Prints the list.
///
/// # Errors
/// A store that cannot be read.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = args.database.read()?;
    let all = store.list().map_err(|error| wrong(&error))?;
    let mut runs = all.clone();
    runs.retain(|run| args.name.as_ref().is_none_or(|text| run.name.contains(text)));
    let is_in = |run: &RunSummary, wanted: &str| {
        let state = other_user::state(&store, run.id, run.state);
        state == wanted || (state == UNKNOWN && ["running", UNFINISHED].contains(&wanted))
    };
    runs.retain(|run| args.state.as_ref().is_none_or(|wanted| is_in(run, wanted)));
    runs.drain(..runs.len().saturating_sub(args.last.unwrap_or(usize::MAX)));
    if args.json {
        let mut out = terminal::out_as(Form::Json);
        for run in &runs {
            let line = serde_json::json!({
                "run": run.id, "name": run.name, "state": other_user::state(&store, run.id, run.state), "started_unix_ns": run.started_unix_ns,
                "engine": run.engine, "trials": run.trials, "rounds": run.rounds, "factor": run.factor,
                "arms": run.arms, "aa": run.aa, "probe": run.is_probe(), "explains": explained(run, &all),
                "bisects": run.bisects,
            });
            writeln!(out, "{line}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = terminal::out();
    writeln!(
        out,
        "{:>4}  {:<16} {:<11} {:>6} {:>6}  what",
        "run", "local time", "state", "rounds", "trials"
    )?;
    let mut unknown = None;
    for run in &runs {
        let mut state = other_user::state(&store, run.id, run.state);
        if state == UNKNOWN {
            (state, unknown) = ("running?", other_user::executor(&store, run.id));
        }
        writeln!(
            out,
            "{:>4}  {:<16} {:<11} {:>6} {:>6}  {}",
            run.id,
            local_time::minute(run.started_unix_ns).unwrap_or_default(),
            state,
            run.rounds,
            run.trials,
            what(run, &all, terminal::columns())
        )?;
    }
    if let Some(user) = unknown {
        writeln!(out, "running?: {UNKNOWN}; `{} list` knows", assay_of(user))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of the run that this one explains; `None`: none, or none of this store.
fn explained(run: &RunSummary, all: &[RunSummary]) -> Option<i64> {
    let explains = run.explains.as_ref()?;
    let identity = |other: &RunSummary| (other.id, other.started_unix_ns, other.seed);
    let known = (explains.run, explains.started_unix_ns, explains.seed);
    all.iter().find(|other| identity(other) == known).map(|other| other.id)
}

/// Columns before the last.
const BEFORE: usize = 54;
/// Columns in which the engine has room, too.
const WITH_ENGINE: usize = 100;

/// Name and arms, shortened so that the line fits; of a run that watches another one, which.
fn what(run: &RunSummary, all: &[RunSummary], columns: usize) -> String {
    let kind = if run.aa { " (A/A)" } else { "" };
    let text = match (&run.explains, explained(run, all)) {
        (Some(_), Some(id)) => format!("explains {id}: {}", run.name),
        (Some(_), None) => format!("explains a run elsewhere: {}", run.name),
        (None, _) if run.bisects => {
            format!("bisect of {} steps: {}", run.arms.len().saturating_sub(1), run.name)
        }
        (None, _) if run.is_probe() => format!("probe of {}", run.arms.join(" | ")),
        (None, _) => format!("{}: {} {}{kind}", run.name, run.factor, run.arms.join(" | ")),
    };
    let with_engine = columns >= WITH_ENGINE && !run.is_probe();
    let end = if with_engine { format!(" · {}", run.engine) } else { String::new() };
    let (text, end) = (terminal::visible_line(&text), terminal::visible_line(&end));
    let room = columns.saturating_sub(BEFORE + end.chars().count()).max(10);
    let shown = if text.chars().count() <= room {
        text.into_owned()
    } else {
        format!("{}…", text.chars().take(room - 1).collect::<String>())
    };
    shown + &end
}
