//! Trials that must fail are not begun: what this machine does not have is said at once, for all cells.

use std::collections::BTreeSet;

use super::left_out;
use super::prepare::Prepared;
use crate::catalog::{CountedEvent, server_of};
use crate::cli::Failure;
use crate::engine::{self, EngineError};
use crate::observe::{Uncountable, uncountable};
use crate::sys::server::processes_of;
use crate::workload::nearest;

/// Reasons told; the rest is counted.
const MOST_REASONS: usize = 5;

/// That this kernel cannot count a tracepoint, with the name that was probably meant, or what it can be filtered by.
fn not_counted(name: &str) -> Option<String> {
    let counted = CountedEvent::of(name)?;
    let tracepoint = counted.tracepoint();
    Some(match uncountable(name)? {
        Uncountable::NoTracepoint(beside) => {
            let near = nearest(&tracepoint, beside.iter().map(String::as_str), 1);
            let advice = near.first().map_or_else(
                || "`perf list tracepoint` lists them".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            format!("this kernel does not have the tracepoint {tracepoint}; {advice}")
        }
        Uncountable::Filter(fields) => format!(
            "the kernel does not take the filter '{}' of {tracepoint}; its numbers are {}",
            counted.filter.unwrap_or_default(),
            fields.join(", ")
        ),
    })
}

/// Looks ahead at each cell's trial.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names each reason once, with the first cell it holds for.
pub(super) fn check(prepared: &Prepared) -> Result<(), Failure> {
    events(prepared)?;
    server(prepared)?;
    // (reason, the first cell, how many others)
    let mut found: Vec<(String, &str, u32)> = Vec::new();
    let mut add = |reason: String, cell| match found.iter_mut().find(|(known, ..)| *known == reason) {
        Some((.., others)) => *others += 1,
        None => found.push((reason, cell, 0)),
    };
    for (number, cell) in prepared.plan.cells.iter().enumerate() {
        if cell.target.is_elsewhere() {
            continue;
        }
        let request = crate::run::request(&prepared.plan, &prepared.surroundings, number, 0);
        let files_are_there = !cell.target.makes() && prepared.surroundings.before.is_none();
        match engine::of(request.engine).look_ahead(&request.task, files_are_there) {
            Err(EngineError::Failed { reason, .. }) => add(reason, cell.label.as_str()),
            // What cannot be read before its target is made is the trial's to say.
            Ok(()) | Err(EngineError::Unsupported { .. }) => {}
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let told = found.iter().take(MOST_REASONS).map(|(reason, cell, others)| match others {
        0 => format!("{cell}: {reason}"),
        1 => format!("{cell} and one other: {reason}"),
        _ => format!("{cell} and {others} others: {reason}"),
    });
    let mut message = told.collect::<Vec<_>>().join("\n  ");
    if found.len() > MOST_REASONS {
        message.push_str(&format!("\n  and {} more reasons", found.len() - MOST_REASONS));
    }
    Err(Failure::request(message)
        .hint("nothing was touched; change the job, or leave out the level that asks for it"))
}

/// Refuses events that this machine's kernel does not count.
///
/// # Errors
/// A [`Failure`] with exit code 2.
pub(super) fn events(prepared: &Prepared) -> Result<(), Failure> {
    match local_observers(prepared).iter().find_map(|name| not_counted(name)) {
        Some(reason) => Err(Failure::request(reason).hint("nothing was touched; change it, or leave it out")),
        None => Ok(()),
    }
}

/// Refuses a server that does not run and that no hook starts.
fn server(prepared: &Prepared) -> Result<(), Failure> {
    let is_started = prepared.surroundings.before.is_some();
    let names = local_observers(prepared);
    let named = names.iter().find_map(|name| server_of(name)).filter(|_| !is_started);
    match named.map(processes_of) {
        Some(Err(reason)) => Err(Failure::request(reason)
            .hint("start it; or have a hook do it before each trial: --before 'systemctl restart …'")),
        _ => Ok(()),
    }
}

/// What was asked to watch and cannot, a sentence a reason: who waits for the last trial to read it has waited in vain.
pub(super) fn unwatched(prepared: &Prepared) -> Vec<String> {
    // Mostly it is a right that is missing; what else the kernel lacks is a note of the trials.
    if crate::host::may_administer() {
        return Vec::new();
    }
    let names = local_observers(prepared);
    let cannot = |name: &&str| Some(((*name).to_owned(), crate::observe::tried(name).err()?));
    left_out::sentences(&names.iter().filter_map(cannot).collect::<Vec<_>>())
}

/// Observers of trials on this machine; a guest has a kernel and rights of its own.
fn local_observers(prepared: &Prepared) -> BTreeSet<&str> {
    let here = prepared.plan.cells.iter().filter(|cell| !cell.target.is_elsewhere());
    here.flat_map(|cell| &cell.observe).map(String::as_str).collect()
}
