//! `assay delete`: takes runs out of the store, each with its trials, values and files.
//!
//! Runs are named by number only, so that no name that a new run shares and no `latest` takes another one than was meant; or by their age,
//! for a store that grows every night. A number is never used again.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Failure;
use super::database::{Database, wrong};
use super::other_user::{self, UNFINISHED};
use crate::record::RunState;
use crate::run::now_unix_ns;
use crate::store::{RunSummary, Shrunk, Store};
use crate::sys::terminal::{tell, visible_line};
use crate::units::{counted, parse_duration_s, pretty_duration};

/// Options of `assay delete`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Numbers of runs, as `assay list` shows them; 3-10 are those from 3 to 10 that there are
    #[arg(value_name = "N|N-N", required_unless_present = "older_than", conflicts_with = "older_than", value_parser = numbers)]
    runs: Vec<Numbers>,
    /// All runs begun longer ago, e.g. 90d; what cannot be deleted stays and is named
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Age>,
    /// With --older-than: only runs of this name
    #[arg(long, value_name = "NAME", requires = "older_than", conflicts_with = "runs")]
    name: Option<String>,
    /// Only say which runs would be deleted
    #[arg(long)]
    dry_run: bool,
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
    let mut out = crate::sys::terminal::out();
    let doomed = match args.older_than {
        Some(age) => {
            let old = old(age, args.name.as_deref(), &known);
            if old.is_empty() {
                let of = args.name.as_ref().map_or_else(String::new, |name| format!(" called '{name}'"));
                writeln!(out, "no run{of} is older than {}", pretty_duration(age.0))?;
            }
            those_that_may(&store, old)?
        }
        None => all_named(&store, &args.runs, &known)?,
    };
    for (run, owner) in doomed {
        let about = format!("run {} ({}, {})", run.id, visible_line(&run.name), counted(run.trials, "trial"));
        if args.dry_run {
            writeln!(out, "would delete {about}")?;
            continue;
        }
        store.delete_run(run.id, &owner).map_err(|error| wrong(&error))?;
        writeln!(out, "deleted {about}")?;
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(line) = shrunk(&store)? {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A run that goes, and whose it is.
type Doomed<'k> = (&'k RunSummary, String);

/// Those that were named, each once; none of them where one may not be deleted.
fn all_named<'k>(
    store: &Store,
    asked: &[Numbers],
    known: &'k [RunSummary],
) -> Result<Vec<Doomed<'k>>, Failure> {
    let mut doomed: Vec<Doomed<'k>> = Vec::new();
    for id in named(asked, known)? {
        let owner = store.owner(id).map_err(|error| wrong(&error))?;
        may_be_deleted(store, id, &owner)?;
        let is_new = !doomed.iter().any(|(run, _)| run.id == id);
        doomed.extend(known.iter().find(|run| run.id == id && is_new).map(|run| (run, owner)));
    }
    Ok(doomed)
}

/// Of these the ones that may be deleted; the others are told.
fn those_that_may<'k>(store: &Store, old: Vec<&'k RunSummary>) -> Result<Vec<Doomed<'k>>, Failure> {
    let mut doomed = Vec::new();
    for run in old {
        let owner = store.owner(run.id).map_err(|error| wrong(&error))?;
        match may_be_deleted(store, run.id, &owner) {
            Ok(()) => doomed.push((run, owner)),
            Err(stays) => tell(&format!("run {} stays: {stays}", run.id)),
        }
    }
    Ok(doomed)
}

/// Runs that were begun longer ago.
fn old<'k>(age: Age, name: Option<&str>, known: &'k [RunSummary]) -> Vec<&'k RunSummary> {
    let age_ns = (age.0 * 1e9) as u64;
    let end = now_unix_ns().saturating_sub(age_ns);
    let is_meant = |run: &&RunSummary| run.started_unix_ns < end && name.is_none_or(|name| run.name == name);
    known.iter().filter(is_meant).collect()
}

/// Seconds since a run was begun.
#[derive(Clone, Copy, Debug)]
struct Age(f64);

/// A bare number would be of hours to one reader and of days to another.
fn age(text: &str) -> Result<Age, String> {
    if text.trim().parse::<f64>().is_ok() {
        return Err(format!("'{text}' has no unit; write e.g. 90d"));
    }
    parse_duration_s(text, 1.0).map(Age)
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
