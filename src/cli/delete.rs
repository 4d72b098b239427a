//! `assay delete`: takes runs out of the store, each with its trials, values and files.
//!
//! Runs are named by number only, so that no name that a new run shares and no `latest` takes another one than was meant. A number is
//! never used again.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Failure;
use super::database::{Database, wrong};
use super::other_user::{self, UNFINISHED};
use crate::record::RunState;
use crate::store::{RunSummary, Shrunk, Store};
use crate::sys::terminal::visible_line;
use crate::units::counted;

/// Options of `assay delete`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Numbers of runs, as `assay list` shows them; 3-10 are those from 3 to 10 that there are
    #[arg(value_name = "N|N-N", required = true, value_parser = numbers)]
    runs: Vec<Numbers>,
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
    for id in named(&args.runs, &known)? {
        let owner = store.owner(id).map_err(|error| wrong(&error))?;
        may_be_deleted(&store, id, &owner)?;
        let is_new = !doomed.iter().any(|(run, _)| run.id == id);
        doomed.extend(known.iter().find(|run| run.id == id && is_new).map(|run| (run, owner)));
    }
    let mut out = crate::sys::terminal::out();
    for (run, owner) in doomed {
        store.delete_run(run.id, &owner).map_err(|error| wrong(&error))?;
        let name = visible_line(&run.name).into_owned();
        writeln!(out, "deleted run {} ({name}, {})", run.id, counted(run.trials, "trial"))?;
    }
    if let Some(line) = shrunk(&store)? {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of the room that the deleted runs had, where it is much.
fn shrunk(store: &Store) -> Result<Option<String>, Failure> {
    let is_executed = |run: &RunSummary| {
        let state = other_user::state(store, run.id, run.state);
        run.state == RunState::Running && state != UNFINISHED
    };
    let runs = store.list().map_err(|error| wrong(&error))?;
    if let Some(run) = runs.iter().find(|run| is_executed(run)) {
        let free = store.worth_freeing().map_err(|error| wrong(&error))?;
        return Ok(free.map(|bytes| stays(bytes, &format!("run {} is being executed", run.id))));
    }
    Ok(match store.shrink().map_err(|error| wrong(&error))? {
        Shrunk::NotWorth => None,
        Shrunk::Freed(bytes) => Some(format!("freed {} MiB", bytes >> 20)),
        Shrunk::Stays { bytes, why } => Some(stays(bytes, &why)),
    })
}

fn stays(bytes: u64, why: &str) -> String {
    format!("{} MiB stay free inside the file for the next runs: {why}", bytes >> 20)
}

/// One run, or those of a range that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    One(i64),
    Range(i64, i64),
}

fn numbers(text: &str) -> Result<Numbers, String> {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    if let Some(one) = number(text) {
        return Ok(Numbers::One(one));
    }
    let range = text.split_once('-').and_then(|(first, last)| Some((number(first)?, number(last)?)));
    match range {
        Some((first, last)) if first <= last => Ok(Numbers::Range(first, last)),
        _ => Err("runs are deleted by number only, 7 or 3-10; `assay list` shows them".to_owned()),
    }
}

/// The numbers that are meant. One that is not there is told later.
fn named(asked: &[Numbers], known: &[RunSummary]) -> Result<Vec<i64>, Failure> {
    let mut all = Vec::new();
    for numbers in asked {
        match *numbers {
            Numbers::One(id) => all.push(id),
            Numbers::Range(first, last) => {
                let before = all.len();
                all.extend(known.iter().map(|run| run.id).filter(|id| (first..=last).contains(id)));
                if all.len() == before {
                    let none = format!("there is no run from {first} to {last}");
                    return Err(Failure::request(none).hint("`assay list` shows the runs"));
                }
            }
        }
    }
    Ok(all)
}

fn may_be_deleted(store: &Store, id: i64, owner: &str) -> Result<(), Failure> {
    if let Some(pid) = crate::target::session_lives(owner) {
        return Err(Failure::request(format!("process {pid} is executing run {id}"))
            .hint("wait for it, or stop it with Ctrl-C or kill"));
    }
    let leftovers = store.leftovers().map_err(|error| wrong(&error))?;
    // What somebody else removed is none; what cannot be looked at may be there.
    let is_nothing = |path: &Path| {
        std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let is_there = |path: &str| !is_nothing(Path::new(path)) || crate::target::is_left(Path::new(path));
    if leftovers.iter().any(|(run, path)| *run == id && is_there(path)) {
        return Err(Failure::request(format!("run {id} was killed and left something behind"))
            .hint("`assay cleanup` removes it; then the run can be deleted"));
    }
    Ok(())
}
