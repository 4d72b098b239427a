//! `assay import`: exported runs into the store, to be listed, named and compared as those that were measured here.
//!
//! Enters: files of `assay export --format json`. Leaves: stored runs without a seal. What is in such a file is data of somebody else:
//! nothing in it is executed, and what goes on with a run asks for `--trust` (docs/SAFETY.md).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::Failure;
use super::database::{Database, wrong};
use crate::experiment::check_name;
use crate::import::load_json_export;
use crate::record::{Run, RunState};
use crate::store::{RunSummary, Store, StoreError};
use crate::sys::terminal::visible_line;
use crate::units::counted;

/// Options of `assay import`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  assay export 7 -o run.json          on one machine
  assay import run.json               on another: it has a number there
  assay compare 3 latest

Results of other tools are read by `assay compare`, which needs no store.")]
pub struct Args {
    /// Files that `assay export` wrote as JSON
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// What the run is called, instead of the name it has
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    database: Database,
}

/// Stores the runs; none of them when a file cannot be read.
///
/// # Errors
/// A [`Failure`]: exit code 2 for a file that is no export, 1 where the store cannot take it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut read = Vec::with_capacity(args.files.len());
    for file in &args.files {
        let run = load_json_export(file).map_err(|error| {
            Failure::request(error).hint("`assay export RUN -o run.json` writes such a file")
        })?;
        read.push((file, run));
    }
    for (_, run) in &mut read {
        run.name = args.name.as_ref().unwrap_or(&run.name).clone();
        check_name(&run.name)
            .map_err(|why| Failure::request(why).hint("--name NAME says what it is called"))?;
    }
    let mut store = args.database.open()?;
    let mut out = crate::sys::terminal::out();
    for (file, run) in read {
        let line = match already_stored(&store, &run)? {
            Some(known) if known.trials < run.trials.len() as u64 => {
                let earlier = format!("run {} is an earlier state of {}", known.id, file.display());
                return Err(Failure::request(earlier)
                    .hint(format!("`assay delete {}`, then import it", known.id))
                    .into());
            }
            Some(known) => {
                let is_renamed = args.name.as_ref().is_some_and(|name| *name != known.name);
                let kept =
                    if is_renamed { format!(", and keeps its name, {}", known.name) } else { String::new() };
                format!("{} is run {} already{kept}", file.display(), known.id)
            }
            None => stored(&mut store, file, run)?,
        };
        writeln!(out, "{}", visible_line(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Stores one; says its number.
fn stored(store: &mut Store, file: &Path, mut run: Run) -> Result<String, Failure> {
    let was = run.id.map_or_else(|| "a run".to_owned(), |id| format!("run {id}"));
    // Nobody executes it here.
    if run.state == RunState::Running {
        run.state = RunState::Interrupted;
    }
    if let Some(explains) = &mut run.design.explains {
        let same = |known: &RunSummary| {
            (known.started_unix_ns, known.seed) == (explains.started_unix_ns, explains.seed)
        };
        if let Some(known) = store.list().map_err(|error| wrong(&error))?.into_iter().find(same) {
            explains.run = known.id;
        }
    }
    run.notes.push(format!("imported from {}, where it was {was}", file.display()).into());
    let id = store.insert_run(&run).map_err(|error| refused(file, &error))?;
    Ok(format!(
        "run {id} ({}, {}) from {}",
        run.name,
        counted(run.trials.len() as u64, "trial"),
        file.display()
    ))
}

/// The run of the store that began at the same nanosecond with the same seed.
fn already_stored(store: &Store, run: &Run) -> Result<Option<RunSummary>, Failure> {
    let known = store.list().map_err(|error| wrong(&error))?;
    let same = |known: &RunSummary| {
        (known.started_unix_ns, known.seed) == (run.started_unix_ns, run.seed) && run.started_unix_ns > 0
    };
    Ok(known.into_iter().find(same))
}

fn refused(file: &Path, error: &StoreError) -> Failure {
    match error {
        StoreError::Sqlite { source, .. }
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
        {
            Failure::request(format!("{} has two trials at one place of the run", file.display()))
                .hint("`assay export RUN -o run.json` writes such a file")
        }
        _ => wrong(error),
    }
}
