//! `assay cleanup`: removes what a killed run has left behind.
//!
//! What may be undone is known from this user's own records, never from a store: a store only gives names to what is found, and what it
//! names without a record is listed and left alone.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::database::{Database, wrong};
use super::named_run::of_this_store;
use crate::kernel_build::Left;
use crate::launch::{Unpacked, remove_unpacked, unpacked_in_cache};
use crate::record::RunState;
use crate::store::{Store, StoreError};
use crate::sys::terminal::visible_line;

/// Options of `assay cleanup`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only work directories at or below one of these, with all that was made for them [default: all that runs of yours have left]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Also remove directories that the store names and that carry assay's mark, where no record says who made them, as after a restart
    #[arg(long)]
    trust: bool,
    /// Also empty the cache of sources and kernels, built and unpacked, but for what a run is using
    #[arg(long)]
    cache: bool,
    #[command(flatten)]
    database: Database,
}

/// Removes every directory that a killed run of this user made, with the devices, mounts, files and settings made for it,
/// whichever store the run belonged to; with paths, only directories at or below one of them.
///
/// # Errors
/// Something that could not be removed; the rest is removed all the same.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut out = crate::sys::terminal::out();
    if args.cache {
        empty_cache(&mut out, args.dry_run)?;
    }
    let (mut left, unread) = crate::target::abandoned();
    let places: Vec<PathBuf> = args.paths.iter().map(|path| real(path)).collect();
    let is_asked =
        |path: &Path| places.is_empty() || places.iter().any(|place| real(path).starts_with(place));
    left.retain(|one| is_asked(one.work()));
    // Said whatever comes: what is not read is not cleaned up either.
    unread.iter().try_for_each(|reason| writeln!(crate::sys::terminal::err(), "assay: {reason}"))?;
    // Without a store there can still be what a run in another has left.
    let db = &args.database.db;
    let opened = if args.dry_run { Store::read(db) } else { Store::open_existing(db) };
    let store = match opened {
        // Nor does the cache belong to a store.
        Err(_) if !left.is_empty() || args.cache => None,
        Err(StoreError::Missing(path)) => {
            writeln!(crate::sys::terminal::err(), "assay: no store at {}", shown(&path))?;
            None
        }
        other => Some(other.map_err(|error| wrong(&error))?),
    };
    let mut named = store.as_ref().map_or_else(|| Ok(Vec::new()), unrecorded)?;
    named.retain(|(_, path)| is_asked(Path::new(path)));
    if left.is_empty() && named.is_empty() {
        let there = if places.is_empty() { "" } else { " there" };
        writeln!(out, "nothing was left behind{there}")?;
    }
    let mut failed = false;
    for one in &left {
        let of = of_this_store(one.run(), &args.database.db);
        let is_gone = one.is_gone();
        if args.dry_run && !is_gone {
            one.would_do().iter().try_for_each(|line| writeln!(out, "would {line} ({of})"))?;
        }
        let named = |path: &&Path| {
            let what = format!("{} ({of})", shown(path));
            let what = if is_gone { format!("the record of {what}, which is gone") } else { what };
            (path.to_path_buf(), what)
        };
        let paths: Vec<(PathBuf, String)> = one.paths().iter().map(named).collect();
        if args.dry_run {
            paths.iter().try_for_each(|(_, shown)| writeln!(out, "would remove {shown}"))?;
        } else {
            failed |= !told(&mut out, &paths, one.remove())?;
        }
    }
    for (run, path) in named {
        failed |= !without_record(&mut out, args, run, &path)?;
    }
    if let Some(store) = store.filter(|_| !args.dry_run) {
        tidy(&store)?;
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// A path without links, as records have it; what is gone lies in its directory all the same.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let whole = absolute.canonicalize().ok();
    let beside = || Some(absolute.parent()?.canonicalize().ok()?.join(absolute.file_name()?));
    whole.or_else(beside).unwrap_or_else(|| absolute.clone())
}

/// Removes what builds of kernels and guests left in the cache, and says how much that was.
fn empty_cache(out: &mut impl Write, dry_run: bool) -> std::io::Result<()> {
    let with = |built: Left, unpacked: Unpacked| Left {
        entries: built.entries + unpacked.entries,
        bytes: built.bytes + unpacked.bytes,
    };
    let found = with(crate::kernel_build::in_the_cache(), unpacked_in_cache());
    let said = |left: &Left| format!("{} of sources and kernels ({} MiB)", left.entries, left.bytes >> 20);
    if dry_run {
        return writeln!(out, "would remove {} from the cache", said(&found));
    }
    let gone = with(crate::kernel_build::empty_the_cache(), remove_unpacked());
    writeln!(out, "removed {} from the cache", said(&gone))?;
    match found.entries.saturating_sub(gone.entries) {
        0 => Ok(()),
        used => writeln!(out, "left alone: {used}, which runs are using"),
    }
}

/// Says what came of a removal; false: it failed.
fn told(
    out: &mut impl Write,
    paths: &[(PathBuf, String)],
    removed: std::io::Result<Vec<String>>,
) -> std::io::Result<bool> {
    let mut told = crate::sys::terminal::err();
    match removed {
        Ok(notes) => {
            let gone = paths.iter().filter(|(path, _)| std::fs::symlink_metadata(path).is_err());
            gone.map(|(_, shown)| shown).try_for_each(|shown| writeln!(out, "removed {shown}"))?;
            notes.iter().try_for_each(|note| writeln!(told, "assay: {note}"))?;
            Ok(true)
        }
        Err(error) => {
            writeln!(told, "assay: cannot remove {}: {error}", paths.last().map_or("", |(_, shown)| shown))?;
            if let Some(hint) = crate::target::hint_of(&error) {
                writeln!(told, "hint: {hint}")?;
            }
            Ok(false)
        }
    }
}

/// A name on one line, in which nothing acts.
fn shown(path: &Path) -> String {
    visible_line(&path.to_string_lossy()).into_owned()
}

/// A path that only the store names. False: it was to be removed and could not be.
fn without_record(out: &mut impl Write, args: &Args, run: i64, path: &str) -> std::io::Result<bool> {
    let marked = crate::target::is_marked(Path::new(path));
    if args.trust && marked {
        if args.dry_run {
            writeln!(out, "would remove {} (run {run}; only the store names it)", shown(Path::new(path)))?;
            return Ok(true);
        }
        let removed = crate::target::remove_marked(Path::new(path)).map(|()| Vec::new());
        let named = format!("{} (run {run}; only the store names it)", shown(Path::new(path)));
        return told(out, &[(PathBuf::from(path), named)], removed);
    }
    writeln!(out, "left alone: {}", shown(Path::new(path)))?;
    writeln!(out, "  run {run} of the store names it as to be removed, but no record of yours says that")?;
    writeln!(out, "  assay made it since this machine was started; look at it, then remove it yourself")?;
    if marked {
        writeln!(out, "  (`assay cleanup --trust` removes it: it carries assay's mark)")?;
    }
    Ok(true)
}

/// (run, path) of what the store names as left by runs that live no more, that is there, and that none of these records is about.
pub(super) fn unrecorded(store: &Store) -> anyhow::Result<Vec<(i64, String)>> {
    let mut found = Vec::new();
    for (run, path) in store.leftovers().map_err(|error| wrong(&error))? {
        let there = std::fs::symlink_metadata(&path).is_ok();
        // A run that begins has a record before the store knows who executes it.
        let recorded = crate::target::is_recorded(Path::new(&path));
        if there && !recorded && !lives(store, run)? {
            found.push((run, path));
        }
    }
    Ok(found)
}

/// Whether a run that the store names is being executed. A row of a run that is not there is nobody's.
fn lives(store: &Store, run: i64) -> anyhow::Result<bool> {
    let known = store.list().map_err(|error| wrong(&error))?.iter().any(|known| known.id == run);
    if !known {
        return Ok(false);
    }
    let owner = store.owner(run).map_err(|error| wrong(&error))?;
    Ok(crate::target::session_lives(&owner).is_some())
}

/// Takes what is gone out of the store; a run that is still marked as running but whose session is gone was interrupted.
fn tidy(store: &Store) -> anyhow::Result<()> {
    let failed = |error| wrong(&error);
    for (run, path) in store.leftovers().map_err(failed)? {
        if std::fs::symlink_metadata(&path).is_ok() || lives(store, run)? {
            continue;
        }
        store.remove_leftover(run, &path).map_err(failed)?;
        let heads = store.list().map_err(failed)?;
        if heads.iter().any(|head| head.id == run && head.state == RunState::Running) {
            store.set_state(run, RunState::Interrupted).map_err(failed)?;
        }
    }
    Ok(())
}
