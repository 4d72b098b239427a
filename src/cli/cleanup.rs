//! `assay cleanup`: removes what a killed run has left behind.

use std::io::Write;
use std::process::ExitCode;

use super::database::{Database, wrong};
use crate::record::RunState;
use crate::store::Store;

/// Options of `assay cleanup`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    database: Database,
}

/// Removes every path that a run made, did not remove, and no living process uses.
///
/// # Errors
/// Something that could not be removed; the rest is removed all the same.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = args.database.open_existing()?;
    let mut out = std::io::stdout().lock();
    let mut failed = false;
    let left = abandoned(&store)?;
    if left.is_empty() {
        writeln!(out, "nothing was left behind")?;
    }
    for (run, path) in left {
        if args.dry_run {
            writeln!(out, "would remove {path} (run {run})")?;
            continue;
        }
        match crate::target::remove(std::path::Path::new(&path)) {
            Ok(()) => {
                store.remove_leftover(run, &path).map_err(|error| wrong(&error))?;
                mark_interrupted(&store, run)?;
                writeln!(out, "removed {path} (run {run})")?;
            }
            Err(error) => {
                failed = true;
                writeln!(std::io::stderr(), "assay: cannot remove {path} (run {run}): {error}")?;
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// A run that is still marked as running but whose process is gone was interrupted.
fn mark_interrupted(store: &Store, run: i64) -> anyhow::Result<()> {
    let head = store.list().map_err(|error| wrong(&error))?;
    if head.iter().any(|r| r.id == run && r.state == RunState::Running) {
        store.set_state(run, RunState::Interrupted).map_err(|error| wrong(&error))?;
    }
    Ok(())
}

/// (run, path) of what runs without a living process have left.
pub(super) fn abandoned(store: &Store) -> anyhow::Result<Vec<(i64, String)>> {
    let mut left = Vec::new();
    for (run, path) in store.leftovers().map_err(|error| wrong(&error))? {
        let owner = store.owner(run).map_err(|error| wrong(&error))?;
        if !crate::host::process_lives(&owner) {
            left.push((run, path));
        }
    }
    Ok(left)
}
