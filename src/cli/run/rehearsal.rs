//! Every target made once before the first trial.
//!
//! Enters: a prepared run. Leaves: how long each target took, a note where direct I/O is none, or what is refused: by the kernel, by
//! mkfs, or because the files have no room there. What was made is put back by the agent that made it.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::buffered::Buffered;
use super::prepare::Prepared;
use super::room::missing_there;
use crate::cli::Failure;
use crate::experiment::TargetSettings;
use crate::launch::{Answer, LaunchError, Launcher, Request};
use crate::plan::CellSpec;
use crate::record::Note;
use crate::target::{self, Room};

/// Makes every target once before the first trial, so that what mkfs or the kernel refuses is said once, and at once.
/// Leaves the seconds that took for the target of each cell, where it is made here; `None`: interrupted.
pub(super) fn rehearsed(
    launcher: &mut dyn Launcher,
    prepared: &mut Prepared,
    quiet: bool,
    cancelled: &AtomicBool,
) -> anyhow::Result<Option<Vec<Option<f64>>>> {
    // Targets that were made.
    let mut seen: Vec<(Option<target::Setup>, Found)> = Vec::new();
    let mut took_s = vec![None; prepared.plan.cells.len()];
    let mut buffered = Buffered::default();
    for (cell, spec) in prepared.plan.cells.iter().enumerate() {
        let asked = crate::run::request(&prepared.plan, &prepared.surroundings, cell, 0);
        if asked.target.setup.is_none() {
            buffered.look(spec, &asked.target.watched());
            continue;
        }
        if let Some((_, found)) = seen.iter().find(|(setup, _)| *setup == asked.target.setup) {
            buffered.told(spec, &found.o_direct);
            took_s[cell] = found.took_s;
            has_room(prepared, spec, found.room)?;
            continue;
        }
        let setup = asked.target.setup.clone();
        let asked = Request { rehearsal: true, before: None, after: None, ..asked };
        let begun = Instant::now();
        let reply = match launcher.launch(&asked, cancelled) {
            Err(LaunchError::Cancelled { .. }) => return Ok(None),
            other => other.map_err(Failure::tool)?,
        };
        let failed = not_made(&reply.answer);
        let (reason, output) = match reply.answer {
            Answer::Done(_) => {
                let found = Found {
                    o_direct: reply.facts.get("o_direct").unwrap_or_default().to_owned(),
                    room: Room::told(&reply.facts),
                    superblock: reply.facts.get("fs.superblock").map(str::to_owned),
                    label: spec.label.clone(),
                    // In a guest that has its boot in it.
                    took_s: (!spec.target.is_elsewhere()).then(|| begun.elapsed().as_secs_f64()),
                };
                buffered.told(spec, &found.o_direct);
                took_s[cell] = found.took_s;
                has_room(prepared, spec, found.room)?;
                seen.push((setup, found));
                continue;
            }
            Answer::Failed { reason, output, .. } => (reason, output),
            Answer::Unsupported { reason } => (reason, String::new()),
        };
        let mut message = match reply.why.of_place {
            true => format!("{}: {reason}", spec.label),
            false => format!("the target of {} cannot be made: {reason}", spec.label),
        };
        // What is said already is not said twice, and a program's list of its options says nothing.
        let said = output.lines().take_while(|line| !target::begins_usage(line));
        for line in said.filter(|line| !line.trim().is_empty() && !reason.contains(line.trim())).take(24) {
            message.push_str(&format!("\n  | {line}"));
        }
        return Err(failed(message).hint(reply.why.hint).into());
    }
    let notes = buffered.notes().into_iter().chain(made_alike(&seen)).map(Note::from);
    let notes: Vec<Note> = notes.filter(|note| !prepared.run.notes.contains(note)).collect();
    for note in notes.iter().filter(|_| !quiet) {
        crate::sys::terminal::tell(&format!("warning: {note}"));
    }
    prepared.run.notes.extend(notes);
    Ok(Some(took_s))
}

/// What is known of a target that was made.
struct Found {
    /// What direct I/O is there.
    o_direct: String,
    /// What its filesystem holds, where it has one.
    room: Option<Room>,
    /// What tells whether mkfs has made the same of another one.
    superblock: Option<String>,
    /// The cell that it was made for.
    label: String,
    took_s: Option<f64>,
}

/// What sets something that is not in the superblock: how mkfs works (discards, tables that are written later), what files inherit.
const NOT_IN_SUPERBLOCKS: [&str; 5] =
    ["lazy_itable_init", "lazy_journal_init", "discard", "extszinherit", "cowextsize"];

fn sets_what_is_elsewhere(words: &[String]) -> bool {
    words.iter().any(|word| word == "-K" || NOT_IN_SUPERBLOCKS.iter().any(|name| word.contains(name)))
}

/// That different arguments of mkfs come to the same superblock, the first pair: then they are probably one level twice.
fn made_alike(seen: &[(Option<target::Setup>, Found)]) -> Option<String> {
    let plain = |setup: &target::Setup| TargetSettings { mkfs: Vec::new(), ..setup.settings.clone() };
    let mut pairs =
        seen.iter().enumerate().flat_map(|(at, second)| seen[..at].iter().map(move |first| (first, second)));
    let ((_, first), (setup, second)) = pairs.find(|((one, first), (other, second))| {
        let [Some(one), Some(other)] = [one, other] else { return false };
        first.superblock.is_some()
            && first.superblock == second.superblock
            && one.settings.mkfs != other.settings.mkfs
            && plain(one) == plain(other)
            && ![one, other].into_iter().any(|setup| sets_what_is_elsewhere(&setup.settings.mkfs))
    })?;
    let fs = setup.as_ref()?.settings.fs?;
    Some(format!(
        "{} and {}: mkfs makes {} with the same superblock of both here (fact fs.geometry); unless they differ in something else, a level \
         is compared with itself",
        first.label,
        second.label,
        fs.name()
    ))
}

/// Refuses files that the filesystem cannot hold; a hook may make room.
fn has_room(prepared: &Prepared, cell: &CellSpec, room: Option<Room>) -> Result<(), Failure> {
    let missing = room.filter(|_| prepared.surroundings.before.is_none());
    missing.and_then(|room| missing_there(cell, room)).map_or(Ok(()), Err)
}

/// What this machine does not have is no failure of a tool: the request is wrong.
fn not_made(answer: &Answer) -> fn(String) -> Failure {
    match answer {
        Answer::Unsupported { .. } => |message| Failure::request(message),
        _ => |message| Failure::tool(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_here_is_a_wrong_request() {
        let answer = Answer::Unsupported { reason: "there is no /sys/block/loop0/queue/nope".to_owned() };
        assert_eq!(not_made(&answer)("x".to_owned()).code(), 2);
        let (reason, output) = ("the kernel refuses it".to_owned(), String::new());
        let kind = crate::record::FailureKind::Lasting;
        let answer = Answer::Failed { kind, reason, command: String::new(), output, so_far: Vec::new() };
        assert_eq!(not_made(&answer)("x".to_owned()).code(), 1);
    }
}
