//! `assay delete`: takes runs out of the store, each with its trials, values and files.
//!
//! Runs are named by number only, so that no name that a new run shares and no `latest` takes another one than was meant. A number is
//! never used again.

use std::io::Write;
use std::process::ExitCode;

use super::Failure;
use super::database::{Database, wrong};
use crate::store::{RunSummary, Store};
use crate::sys::terminal::visible_line;
use crate::units::counted;

/// Options of `assay delete`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Numbers of runs, as `assay list` shows them
    #[arg(value_name = "N", required = true, value_parser = number)]
    runs: Vec<i64>,
    #[command(flatten)]
    database: Database,
}

/// Deletes the runs, or none of them when one cannot be deleted.
///
/// # Errors
/// A run that is not there, that is being executed, or that has left something behind.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = args.database.open_existing()?;
    let known = store.list().map_err(|error| wrong(&error))?;
    let mut doomed: Vec<(&RunSummary, String)> = Vec::new();
    for id in &args.runs {
        let owner = store.owner(*id).map_err(|error| wrong(&error))?;
        may_be_deleted(&store, *id, &owner)?;
        let is_new = !doomed.iter().any(|(run, _)| run.id == *id);
        doomed.extend(known.iter().find(|run| run.id == *id && is_new).map(|run| (run, owner)));
    }
    let mut out = crate::sys::terminal::out();
    for (run, owner) in doomed {
        store.delete_run(run.id, &owner).map_err(|error| wrong(&error))?;
        let name = visible_line(&run.name).into_owned();
        writeln!(out, "deleted run {} ({name}, {})", run.id, counted(run.trials, "trial"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "runs are deleted by number only; `assay list` shows them".to_owned())
}

fn may_be_deleted(store: &Store, id: i64, owner: &str) -> Result<(), Failure> {
    if let Some(pid) = crate::target::session_lives(owner) {
        return Err(Failure::request(format!("process {pid} is executing run {id}"))
            .hint("wait for it, or stop it with Ctrl-C or kill"));
    }
    let leftovers = store.leftovers().map_err(|error| wrong(&error))?;
    if leftovers.iter().any(|(run, _)| *run == id) {
        return Err(Failure::request(format!("run {id} was killed and left something behind"))
            .hint("`assay cleanup` removes it; then the run can be deleted"));
    }
    Ok(())
}
