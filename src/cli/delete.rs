//! `assay delete`: takes runs out of the store, each with its trials, values and files.
//!
//! Runs are named by number only, so that no name that a new run shares and no `latest` takes another one than was meant; or by their age,
//! for a store that grows every night. A number is never used again.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Failure;
use super::database::{Database, wrong};
use super::named_run::meant_below;
use super::other_user::{self, UNFINISHED};
use crate::record::RunState;
use crate::run::now_unix_ns;
use crate::store::{RunSummary, Shrunk, Store};
use crate::sys::terminal::{tell, visible_line};
use crate::units::counted;

/// Options of `assay delete`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Numbers of runs, as `assay list` shows them; 3-10 are those from 3 to 10 that there are
    #[arg(value_name = "N|N-N", required_unless_present = "older_than", conflicts_with = "older_than", value_parser = numbers)]
    runs: Vec<Numbers>,
    /// All runs begun longer ago, e.g. 90d, 52w or 2y, but probes; what cannot be deleted stays and is named
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Age>,
    /// With --older-than: only runs of this name, or of all below one: nightly/
    #[arg(long, value_name = "NAME|NAME/", requires = "older_than", conflicts_with = "runs")]
    name: Option<String>,
    /// Only say which runs would be deleted
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    database: Database,
}

/// Deletes the runs; of those that were named none when one cannot be deleted, of old ones those that can.
///
/// # Errors
/// A run that is not there, that is being executed, or that has left something behind.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = if args.dry_run { args.database.read()? } else { args.database.open_existing()? };
    let known = store.list().map_err(|error| wrong(&error))?;
    let mut out = crate::sys::terminal::out();
    let doomed = match args.older_than {
        Some(age) => {
            let old = old(age, args.name.as_deref(), &known)?;
            if old.is_empty() {
                writeln!(out, "no such run is older than {age}")?;
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
        match store.delete_run(run.id, &owner) {
            Ok(()) => writeln!(out, "deleted {about}")?,
            Err(error) if args.older_than.is_some() => tell(&format!("run {} stays: {error}", run.id)),
            Err(error) => return Err(wrong(&error).into()),
        }
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
            Err(stays) => {
                let hint = stays.hinted().map_or_else(String::new, |hint| format!(" ({hint})"));
                tell(&format!("run {} stays: {stays}{hint}", run.id));
            }
        }
    }
    Ok(doomed)
}

/// Runs that were begun longer ago, as far as it is known when. Later reports take their limits from a probe, which has no name of its
/// own.
///
/// # Errors
/// No run has the name.
fn old<'k>(age: Age, name: Option<&str>, known: &'k [RunSummary]) -> Result<Vec<&'k RunSummary>, Failure> {
    let is_called = |run: &RunSummary| match name {
        Some(prefix) if prefix.ends_with('/') => run.name.starts_with(prefix),
        Some(name) => run.name == name,
        None => !run.is_probe(),
    };
    if let Some(name) = name.filter(|_| !known.iter().any(is_called)) {
        let hint = meant_below(name, known).unwrap_or_else(|| "`assay list` shows the names".to_owned());
        return Err(Failure::request(format!("no run is called '{name}'")).hint(hint));
    }
    let end = now_unix_ns().saturating_sub(age.seconds().saturating_mul(1_000_000_000));
    let is_old = |run: &&RunSummary| run.started_unix_ns > 0 && run.started_unix_ns < end;
    Ok(known.iter().filter(is_old).filter(|run| is_called(run)).collect())
}

/// How long ago a run was begun, in whole days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Age(u64);

impl Age {
    fn seconds(self) -> u64 {
        self.0.saturating_mul(86_400)
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.0, "day"))
    }
}

/// Days, weeks or years: an `m` would be minutes to one reader and months to another.
fn age(text: &str) -> Result<Age, String> {
    let wrong = || format!("'{text}' is no age; write e.g. 90d, 52w or 2y");
    let number = text.strip_suffix(['d', 'w', 'y']).ok_or_else(wrong)?;
    let days = match text.chars().last() {
        Some('w') => 7,
        Some('y') => 365,
        _ => 1,
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    if number == 0 { Err(wrong()) } else { Ok(Age(number.saturating_mul(days))) }
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
