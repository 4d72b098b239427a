//! The block layer of the trial's device: requests, their stages, flushes, and whether each fsync was behind one (tracepoints of the group
//! block, those of fsync(2) and fdatasync(2), and where a filesystem begins to sync a file).
//!
//! Enters: these events of the whole machine, filtered by device. Leaves: counts, times by direction and stage, the verdict of the audit.
//! What events mean, `trace` knows; this file knows which ones are needed. Events are analysed while they happen, so that memory does not
//! grow with the trial.

mod kept;
mod recording;
mod values;

use self::kept::Kept;
use self::recording::{Recording, Seen};
use super::perf::{
    MachineWatch, Read, Refused, Tracefs, Wanted, distortion_note, last_processor, lost_note, unwritten_note,
};
use super::subject::Subject;
use super::unseen::READER_DIED;
use super::{Observer, Place, Unseen};
use crate::record::{KeptFile, Note, NoteKind, Outcome};
use crate::trace::{Decoder, Filesystem, Formats, Reason, Settings, Verdict, WriteCache};

/// Tracepoints of bios and requests, those first without which nothing can be said.
const BLOCK: [&str; 10] = [
    "block_bio_queue", "block_rq_issue", "block_rq_complete", "block_bio_complete", "block_rq_insert",
    "block_rq_requeue", "block_bio_backmerge", "block_bio_frontmerge", "block_split", "block_rq_merge",
];
const NEEDED: usize = 3;
/// Calls that make data durable. Some kernels have no tracepoints of calls.
const CALLS: [&str; 4] = [
    "syscalls/sys_enter_fsync", "syscalls/sys_exit_fsync", "syscalls/sys_enter_fdatasync",
    "syscalls/sys_exit_fdatasync",
];
/// Where filesystems begin to sync a file; of other devices, too, so that a call for a file there is known to be none for this one.
const SYNCS: [&str; 5] = [
    "xfs/xfs_file_fsync", "ext4/ext4_sync_file_enter", "ext4/ext4_sync_file_exit",
    "f2fs/f2fs_sync_file_enter", "f2fs/f2fs_sync_file_exit",
];
/// It does not say its device.
const SYNC_OF_BTRFS: &str = "btrfs/btrfs_sync_file";
/// What is said where calls cannot be watched.
const NO_CALLS: &str = "blocks: flushes are not audited, because this kernel has no tracepoints of fsync(2); boot one with \
                        CONFIG_FTRACE_SYSCALLS";

/// Watches the device of a trial.
pub struct BlocksObserver {
    ready: Result<Ready, String>,
    watch: Result<MachineWatch<Recording>, String>,
    files: Vec<KeptFile>,
}

/// What is needed to begin.
struct Ready {
    subject: Subject,
    wanted: Vec<Wanted>,
    has_calls: bool,
    recording: Option<Recording>,
}

/// Tracepoints with what describes them.
struct Described {
    wanted: Vec<Wanted>,
    texts: Vec<(String, String)>,
    formats: Formats,
    has_calls: bool,
}

impl BlocksObserver {
    /// Looks up the device and the tracepoints, which takes longer than a start may. `keep`: the events are to be kept as files.
    #[must_use]
    pub fn prepared(place: &Place, keep: bool) -> BlocksObserver {
        let not_begun = Err("it was not started".to_owned());
        BlocksObserver { ready: Ready::of(place, keep), watch: not_begun, files: Vec::new() }
    }
}

impl Ready {
    fn of(place: &Place, keep: bool) -> Result<Ready, String> {
        let subject = Subject::under(&place.watched)?;
        let tracefs = Tracefs::open().map_err(|errno| Refused::NoTracefs(errno).words())?;
        let Described { wanted, texts, formats, has_calls } = described(&tracefs, &subject)?;
        let settings = Settings {
            device: Some(subject.disk),
            filesystem: subject.filesystem(),
            journal: subject.journal,
            starts_at: subject.starts_at,
            write_cache: subject.write_cache,
            queues: subject.queues,
            partitions: if subject.part == subject.disk {
                Vec::new()
            } else {
                vec![(subject.part, subject.disk)]
            },
            ..Settings::default()
        };
        let kept = keep.then(|| Kept::new(texts, last_processor().map_or(0, |last| last + 1)));
        let recording = Some(Recording::new(Decoder::new(&formats), settings, kept));
        Ok(Ready { subject, wanted, has_calls, recording })
    }
}

/// The tracepoints that this kernel has of those that are wanted.
fn described(tracefs: &Tracefs, subject: &Subject) -> Result<Described, String> {
    let btrfs = (subject.filesystem() == Some(Filesystem::Btrfs)).then_some(SYNC_OF_BTRFS);
    let blocks = BLOCK.iter().map(|name| (format!("block/{name}"), subject.filter()));
    let calls = CALLS.iter().map(|name| ((*name).to_owned(), String::new()));
    let syncs = SYNCS.iter().copied().chain(btrfs).map(|name| (name.to_owned(), String::new()));
    let (mut wanted, mut texts, mut has_calls) = (Vec::new(), Vec::new(), false);
    for (place, (name, filter)) in blocks.chain(calls).chain(syncs).enumerate() {
        let id = match tracefs.wanted(&name) {
            Ok(found) => found.id,
            Err(Refused::NoTracepoint(_)) if place >= NEEDED => continue,
            Err(refused) => return Err(refused.words()),
        };
        has_calls |= CALLS.contains(&name.as_str());
        let format = tracefs.text(&format!("events/{name}/format"));
        texts.push((name, format.map_err(|errno| Refused::Kernel(errno).words())?));
        wanted.push(Wanted { id, filter, recorded: true });
    }
    let layouts = texts.iter().map(|(name, text)| (name.clone(), text.as_str()));
    // The records come one by one: how pages of a ring buffer are laid out matters only where they are kept.
    let formats = Formats::from_texts(kept::HEADER_PAGE, kept::HEADER_EVENT, layouts);
    let formats = formats.map_err(|error| error.to_string())?;
    Ok(Described { wanted, texts, formats, has_calls })
}

impl Observer for BlocksObserver {
    fn start(&mut self) {
        self.watch = match &mut self.ready {
            Ok(ready) => match ready.recording.take() {
                Some(recording) => {
                    MachineWatch::start(&ready.wanted, recording).map_err(|refused| refused.words())
                }
                None => Err("it was started twice".to_owned()),
            },
            Err(reason) => Err(reason.clone()),
        };
    }

    fn end(&mut self) {
        if let Ok(watch) = &self.watch {
            watch.end();
        }
    }

    /// `blocks.*`: docs/observers.md has the list.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let not_begun = Err("it was not started".to_owned());
        let not_watched = |reason: String| Unseen::watched("blocks are", reason);
        let watch = std::mem::replace(&mut self.watch, not_begun).map_err(not_watched)?;
        let elapsed = watch.elapsed();
        let seen = watch.stop().ok_or_else(|| not_watched(READER_DIED.to_owned()))?;
        let of_watching =
            [lost_note("blocks", seen.lost), unwritten_note("blocks", "times and the depth", seen.unwritten)];
        let mut notes: Vec<Note> = of_watching.into_iter().flatten().map(Note::from).collect();
        notes.extend(distortion_note("blocks", Read::plain(seen.met.iter().sum()), elapsed));
        let Seen { summary, damaged, files, note } = seen.recorder.finish();
        // They are kept also where nothing can be said from them.
        self.files = files;
        let summary = summary.map_err(|why| Unseen::new("blocks", why))?;
        notes.extend(note.map(Note::from));
        if damaged > 0 {
            let told =
                format!("blocks: {damaged} events are not as this kernel describes them, and were left out");
            notes.push(told.into());
        }
        let device = summary.as_ref().map(|summary| &summary.device);
        if let Ok(ready) = &self.ready {
            notes.extend((!ready.has_calls).then(|| Note::from(NO_CALLS)));
            let told = device.and_then(|device| audit_words(&device.audit, &ready.subject));
            notes.extend(told.map(|text| Note { text, kind: NoteKind::Audit }));
        }
        let samples = values::samples(device, elapsed, seen.lost + seen.unwritten, seen.met.iter().sum());
        Ok(Outcome { samples, notes, ..Outcome::default() })
    }

    fn files(&mut self) -> Vec<KeptFile> {
        std::mem::take(&mut self.files)
    }
}

/// How the audit's sentences begin.
const AUDIT: &str = "audit of flushes";

/// The audit's verdict in a sentence that is the same for all trials with this verdict; nothing where no file was synced.
fn audit_words(audit: &crate::trace::AuditSummary, subject: &Subject) -> Option<String> {
    if audit.calls == 0 {
        return None;
    }
    // A device has no rules of its own; names of devices and processes would make the note of each trial another one.
    let on = subject.kind.as_deref()?;
    if subject.journal_is_elsewhere {
        return Some(format!(
            "{AUDIT} ({on}): UNDECIDABLE, its journal is on another device, which is not watched"
        ));
    }
    if subject.filesystem().is_none() {
        return Some(format!("{AUDIT} ({on}): UNDECIDABLE, its rules are not known"));
    }
    let because =
        |reason: Option<Reason>| reason.map_or_else(String::new, |reason| format!(": {}", reason.name()));
    Some(match audit.verdict {
        Verdict::Pass if audit.write_cache == Some(WriteCache::Through) => {
            format!(
                "{AUDIT} ({on}): PASS by the word of the device, which says that it has no cache: the writes of each sync were complete"
            )
        }
        Verdict::Pass => {
            format!("{AUDIT} ({on}): PASS, each sync returned behind a flush or FUA of the device")
        }
        Verdict::Undecidable => format!("{AUDIT} ({on}): UNDECIDABLE{}", because(audit.reason)),
        Verdict::Violation => {
            let first = audit.first_violation.as_ref().map_or_else(String::new, |first| {
                let inode = first.inode.map_or_else(String::new, |inode| format!(" of inode {inode}"));
                format!(" (first the {}{inode}; blocks.audit_first_violation is when)", first.call)
            });
            format!("{AUDIT} ({on}): VIOLATION{}{first}", because(audit.reason))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_without_a_device_says_why_it_is_not_watched() {
        let mut observer =
            BlocksObserver::prepared(&Place { watched: "/proc".into(), ..Place::default() }, true);
        observer.start();
        let reason = observer.stop().unwrap_err();
        assert!(reason.to_string().starts_with("blocks are not watched: /proc is on proc"), "{reason}");
    }
}
