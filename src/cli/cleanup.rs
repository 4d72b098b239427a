//! `assay cleanup`: removes what a killed run has left behind.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
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

/// Removes every path that a run made, did not remove, and no living process uses; with a work directory go the devices,
/// mounts and settings made for it, also those of runs in other stores.
///
/// # Errors
/// Something that could not be removed; the rest is removed all the same.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let targets = crate::target::abandoned_targets();
    // Without a store there can still be devices of a run in another.
    let opened = if args.dry_run { args.database.read() } else { args.database.open_existing() };
    let store = match opened {
        Err(_) if !targets.is_empty() => None,
        other => Some(other?),
    };
    let of_store = store.as_ref().map_or_else(|| Ok(Vec::new()), abandoned)?;
    let mut left: Vec<(Option<i64>, PathBuf)> =
        of_store.into_iter().map(|(run, path)| (Some(run), PathBuf::from(path))).collect();
    let known: BTreeSet<PathBuf> = left.iter().filter_map(|(_, path)| path.canonicalize().ok()).collect();
    left.extend(targets.into_iter().filter(|path| !known.contains(path)).map(|path| (None, path)));
    let mut out = std::io::stdout().lock();
    let mut failed = false;
    if left.is_empty() {
        writeln!(out, "nothing was left behind")?;
    }
    for (run, path) in left {
        let of = run.map_or_else(|| "a run of another store".to_owned(), |run| format!("run {run}"));
        let path = path.display();
        if args.dry_run {
            writeln!(out, "would remove {path} ({of})")?;
            continue;
        }
        match crate::target::remove(Path::new(&path.to_string())) {
            Ok(notes) => {
                if let (Some(run), Some(store)) = (run, &store) {
                    store.remove_leftover(run, &path.to_string()).map_err(|error| wrong(&error))?;
                    mark_interrupted(store, run)?;
                }
                writeln!(out, "removed {path} ({of})")?;
                notes.iter().try_for_each(|note| writeln!(std::io::stderr(), "assay: {note}"))?;
            }
            Err(error) => {
                failed = true;
                let mut told = std::io::stderr();
                writeln!(told, "assay: cannot remove {path} ({of}): {error}")?;
                if let Some(hint) = crate::target::hint_of(&error) {
                    writeln!(told, "hint: {hint}")?;
                }
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
