//! Which stored run somebody means: by its number, by `latest`, or by the name of its experiment.
//!
//! Enters: a store and the word. Leaves: the run's number. A name that several runs have is refused with all of them.

use std::path::Path;

use super::Failure;
use super::database::{Database, wrong};
use super::other_user;
use crate::store::{RunSummary, Store};
use crate::units::counted;
use crate::workload::nearest;

/// The run that began last. Probes, and runs that watch another one, are meant by their numbers only.
pub(super) const LATEST: &str = "latest";
/// Runs listed in a message.
const MOST_LISTED: usize = 10;

/// The number of the run that `name` means. That it exists is known unless it was given by its number.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such run, or several.
pub(super) fn number(store: &Store, name: &str) -> Result<i64, Failure> {
    if let Ok(id) = name.parse::<i64>() {
        return Ok(id);
    }
    let mut runs = store.list().map_err(|error| wrong(&error))?;
    runs.retain(|run| run.explains.is_none());
    let mut named: Vec<&RunSummary> = runs.iter().filter(|run| run.name == name).collect();
    // What was stopped before it had a value is no run that anybody means, where another of its name is.
    if named.len() > 1 {
        let newest = named.iter().copied().max_by_key(|run| run.id);
        named.retain(|run| counts(store, run));
        named.extend(newest.filter(|_| named.is_empty()));
    }
    match named[..] {
        [one] => Ok(one.id),
        [] if name == LATEST => match runs.iter().filter(|run| !run.is_probe()).map(|run| run.id).max() {
            Some(id) => Ok(id),
            None => Err(Failure::request("there is no run in the store yet, so none is the latest")
                .hint("`assay run` makes one; --db FILE names another store")),
        },
        [] => {
            let near = nearest(name, runs.iter().map(|run| run.name.as_str()), 1);
            let near = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            Err(Failure::request(format!("no run is called '{name}'{near}")).hint(
                "`assay list` shows the runs; RUN is a number, a name, latest, or a file of `assay export`",
            ))
        }
        _ => {
            let listed = |run: &&RunSummary| {
                let state = other_user::state(store, run.id, run.state);
                format!("{} ({state}, {})", run.id, counted(u64::from(run.rounds), "round"))
            };
            let listed: Vec<String> = named.iter().rev().take(MOST_LISTED).map(listed).collect();
            let more = named.len().saturating_sub(MOST_LISTED);
            let more = if more > 0 { format!(" and {more} older ones") } else { String::new() };
            Err(Failure::request(format!(
                "{} runs are called '{name}': {}{more}",
                named.len(),
                listed.join(", ")
            ))
            .hint("give the number of one of them; `assay list` shows when each began, `assay delete N` takes one out"))
        }
    }
}

/// The same words, with `night/` as the newest run of each name below it; a directory or file of that name is itself.
///
/// # Errors
/// A [`Failure`] with exit code 2: no run has such a name.
pub(super) fn with_those_below(database: &Database, words: &[String]) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for word in words {
        if !is_prefix(word) {
            all.push(word.clone());
            continue;
        }
        let store = database.read()?;
        let mut runs = store.list().map_err(|error| wrong(&error))?;
        runs.retain(|run| run.explains.is_none() && run.name.starts_with(word) && !run.is_probe());
        let is_newest =
            |run: &&RunSummary| !runs.iter().any(|other| other.name == run.name && other.id > run.id);
        let newest: Vec<String> = runs.iter().filter(is_newest).map(|run| run.id.to_string()).collect();
        if newest.is_empty() {
            return Err(no_name_below(word));
        }
        all.extend(newest);
    }
    Ok(all)
}

/// What may be meant by a name that no run has.
pub(super) fn meant_below(name: &str, runs: &[RunSummary]) -> Option<String> {
    let below = format!("{name}/");
    let is_there = runs.iter().any(|run| run.name.starts_with(&below));
    is_there.then(|| format!("did you mean {below}, which means all names below it?"))
}

/// Whether a word means all names below it.
pub(super) fn is_prefix(word: &str) -> bool {
    word.len() > 1 && word.ends_with('/') && !Path::new(word).exists()
}

/// That no run has a name that begins so.
pub(super) fn no_name_below(word: &str) -> Failure {
    Failure::request(format!("no run has a name that begins with '{word}'"))
        .hint("assay run FILE FILE --name NAME gives runs such names; assay list shows the runs")
}

/// Whether a run has values that may be judged.
fn counts(store: &Store, run: &RunSummary) -> bool {
    store.has_counted(run.id).unwrap_or(true)
}

/// Whether the store has a run of that name, `latest` being one of any store.
pub(super) fn is_name(store: &Store, name: &str) -> bool {
    name == LATEST
        || store.list().is_ok_and(|runs| runs.iter().any(|run| run.name == name && run.explains.is_none()))
}

/// That the store has runs of a name which a new one is to get, in a line; `None`: it has none with values.
pub(super) fn already_there(store: &Store, name: &str) -> Option<String> {
    let runs = store.list().unwrap_or_default();
    let has_it = |run: &&RunSummary| run.explains.is_none() && run.name == name && counts(store, run);
    let of_name: Vec<&RunSummary> = runs.iter().rev().filter(has_it).collect();
    let which = match of_name[..] {
        [] => return None,
        [one] => format!("run {} is called '{name}' already", one.id),
        [newest, ..] => {
            format!("{} runs are called '{name}' already, the newest is {}", of_name.len(), newest.id)
        }
    };
    Some(format!("{which}; other commands will want the number of the one you mean"))
}

/// What people call a run of this store.
pub(super) fn name_of(id: i64, db: &Path) -> String {
    let real = db.canonicalize().unwrap_or_else(|_| db.to_owned());
    format!("run {id} of {}", real.display())
}

/// `run 3` of `run 3 of /this/assay.db`; of another store the whole.
pub(super) fn of_this_store<'r>(run: &'r str, db: &Path) -> &'r str {
    let real = db.canonicalize().unwrap_or_else(|_| db.to_owned());
    run.strip_suffix(&format!(" of {}", real.display())).unwrap_or(run)
}
