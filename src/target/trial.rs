//! Before and after one trial: the target made or emptied, settings set, the machine at rest; then all put back that was
//! for this trial alone.
//!
//! Enters: a [`TargetSpec`]. Leaves: a [`Ready`] target, facts about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::claim::claim;
use super::directory::empty;
use super::error::TargetError;
use super::files_watch::FilesWatch;
use super::journal::Journal;
use super::ledger::Standing;
use super::obstacles::obstacle;
use super::overwrite::{Refusal, unused};
use super::room::Room;
use super::spec::{Setup, TargetSpec};
use super::stack::{Builder, Built};
use super::{extent_size, knobs, mkfs, second_device};
use crate::catalog::Filesystem;
use crate::experiment::{Device, DeviceKind, Fresh, LOG_LINK, Mapping};
use crate::host::HostFacts;

/// Longest wait in milliseconds for a device to be idle, for tests, which share theirs. Only debug builds read it.
const SETTLE_VARIABLE: &str = "ASSAY_TEST_SETTLE_MS";

/// A target that a trial can work on. As long as it lives, nobody else undoes what was made for it.
#[derive(Debug, Default)]
pub struct Ready {
    /// What could not be done, and what the kernel rounded.
    pub notes: Vec<String>,
    facts: BTreeMap<String, String>,
    journal: Option<Journal>,
    /// The work directory, where files were made for a job that names them elsewhere.
    files: Option<PathBuf>,
    watch: Option<FilesWatch>,
}

/// Brings the target to the same state before each trial: made or empty, settings set, synced, page cache dropped, device
/// idle.
///
/// # Errors
/// [`TargetError`]; what was made until then is in the journal.
pub fn prepare(spec: &TargetSpec) -> Result<Ready, TargetError> {
    spec.claimed.iter().try_for_each(|device| device.check().map_err(Refusal::Exchanged))?;
    let mut ready = match &spec.setup {
        Some(setup) => set_up(spec, setup)?,
        None => {
            let mut journal = Journal::open(&spec.directory)?;
            // Another arm's agent may have been killed with its settings set.
            journal.undo_unfinished()?;
            unused(&spec.written)?;
            journal.check_files()?;
            empty(&spec.directory, false)?;
            // The lock is let go of: a worker that hangs in the kernel would hold it, too, and nothing is made that it guards.
            Ready { files: journal.with_files(), ..Ready::default() }
        }
    };
    let patience = spec.settle_ms.or_else(asked_by_a_test).map(Duration::from_millis);
    ready.notes.extend(crate::host::quiesce(&spec.watched(), spec.drop_caches, patience).notes());
    Ok(ready)
}

/// What a test asks for where the run does not say.
fn asked_by_a_test() -> Option<u64> {
    std::env::var(SETTLE_VARIABLE).ok().filter(|_| cfg!(debug_assertions))?.parse().ok()
}

/// Looks once more whether the files that were made for a job that names them are those, as a hook may have put others in their place,
/// and whether the devices that it names are still nobody's.
///
/// # Errors
/// [`TargetError::Refused`]: something else is there, or a device is in use.
pub fn check_files(spec: &TargetSpec, ready: &mut Ready) -> Result<(), TargetError> {
    // A hook may have taken a node away, in whose place the job would make a file.
    spec.claimed.iter().try_for_each(|device| device.check().map_err(Refusal::Exchanged))?;
    unused(&spec.written)?;
    match (&mut ready.journal, &ready.files) {
        (Some(journal), _) => journal.check_files(),
        (None, Some(work)) => Journal::open(work)?.check_files(),
        (None, None) => Ok(()),
    }
}

/// Before an engine runs that may put other files in the place of those made for it (fio does).
pub fn engine_begins(ready: &mut Ready) {
    // Without the watch such a file is somebody else's, which is said when it is met.
    ready.watch = ready.files.as_ref().and_then(|work| FilesWatch::start(work).ok().flatten());
}

/// After it has ended, and before anything else could.
///
/// # Errors
/// The record cannot be read.
pub fn engine_ended(ready: &mut Ready) -> Result<(), TargetError> {
    let Some(watch) = ready.watch.take() else { return Ok(()) };
    watch.end();
    ready.journal.as_mut().map_or(Ok(()), Journal::read_again)
}

/// Makes what is to be made, sets what is to be set, and puts back what is for a trial alone. Leaves whether files there are
/// written past the page cache (the fact `o_direct`), and what an empty filesystem holds (see [`Room`]).
///
/// # Errors
/// As [`prepare`], and what could not be put back.
pub fn rehearse(spec: &TargetSpec) -> Result<HostFacts, TargetError> {
    let mut spec = spec.clone();
    let mut facts = HostFacts::default();
    let Some(setup) = &mut spec.setup else { return Ok(facts) };
    // Filling a whole device shows nothing and takes long.
    if setup.settings.fresh.unwrap_or_default() == Fresh::Trial {
        setup.settings.state = None;
    }
    let ready = match &spec.setup {
        // Its trials are skipped; that is no reason to end the others' run.
        Some(setup) if setup.settings.impossible().is_some() => return Ok(facts),
        Some(setup) => set_up(&spec, setup)?,
        None => Ready::default(),
    };
    for fact in ["fs.superblock", "fs.geometry"] {
        if let Some(made) = ready.facts.get(fact) {
            facts.set(fact, made.clone());
        }
    }
    facts.set("o_direct", crate::host::direct_io_tried(&spec.watched()));
    let has_filesystem = spec.setup.as_ref().is_some_and(|setup| setup.settings.fs.is_some());
    if let Some(room) = has_filesystem.then(|| Room::of(&spec.directory)).flatten() {
        room.tell(&mut facts);
    }
    put_back(&spec, ready).0.into_iter().next().map_or(Ok(facts), Err)
}

fn set_up(spec: &TargetSpec, setup: &Setup) -> Result<Ready, TargetError> {
    if let Some(reason) = setup.settings.impossible() {
        return Err(TargetError::unavailable(reason, ""));
    }
    let mut journal = Journal::open(&setup.work)?;
    // The kernel names mounts and backing files without links.
    let work = journal.directory().to_owned();
    journal.undo_unfinished()?;
    unused(&spec.written)?;
    journal.check_files()?;
    let stays = journal.notes();
    let mut built = Built::default();
    match setup.stack.as_ref().and_then(|stack| stack.file_name()).map(|name| name.to_string_lossy()) {
        Some(name) => built = stand(&mut journal, spec, setup, &work, &name)?,
        None => empty(&work, false)?,
    }
    if let Some(device) = ramdisk_of(spec, setup) {
        journal.keep(claim(&[device])?);
    }
    let Built { mut facts, mut notes } = built;
    if let Some(bytes) = setup.settings.extsize {
        // For each trial: whoever emptied the directory may have changed it, too.
        let kept = extent_size::hint(&spec.directory, bytes)?;
        facts.insert("target.extsize".to_owned(), kept.to_string());
    }
    let (rounded, set) =
        knobs::turn(&mut journal, &setup.settings.knobs, (&spec.watched(), setup.below().as_deref()))?;
    facts.extend(set);
    notes.extend(rounded);
    notes.extend(stays);
    Ok(Ready { notes, facts, files: journal.with_files(), journal: Some(journal), watch: None })
}

/// A ramdisk made for this run: others see it, and could be told to overwrite it. One that was named is the run's already.
fn ramdisk_of(spec: &TargetSpec, setup: &Setup) -> Option<PathBuf> {
    let made = matches!(setup.settings.device, Some(Device::Made { kind: DeviceKind::Ram, .. }));
    let device = spec.device().filter(|_| made)?.canonicalize().ok()?;
    let named = setup.named.iter().any(|named| named.canonicalize().is_ok_and(|named| named == device));
    (!named).then_some(device)
}

/// What stands from an earlier trial of the same epoch is emptied; anything else is made anew.
fn stand(
    journal: &mut Journal,
    spec: &TargetSpec,
    setup: &Setup,
    work: &Path,
    name: &str,
) -> Result<Built, TargetError> {
    let lasts = setup.settings.fresh.unwrap_or_default() != Fresh::Trial;
    if let Some(standing) = journal.standing(name).filter(|standing| lasts && standing.epoch == setup.epoch) {
        let built = Built { facts: standing.facts.clone(), notes: standing.notes.clone() };
        match spec.device() {
            Some(link) => unused([&link])?,
            None => empty(&spec.directory, true)?,
        }
        return Ok(built);
    }
    if journal.standing(name).is_some() && setup.settings.fs.is_none() {
        // The run's own trials wrote what is on it.
        clear_foreign(spec, setup)?;
    }
    journal.undo_stack(name)?;
    let mut named = setup.named.clone();
    if let Some(Device::Block(path)) = &setup.settings.device {
        named.push(path.clone());
    }
    if setup.settings.launcher().descriptor().made_for_the_run {
        // All that it has was made for it.
        named.extend(second_device::all(&setup.settings));
    }
    obstacle(&setup.settings, &named, work, spec.elsewhere.as_deref())?;
    let directory = work.join(name);
    let built = Builder {
        journal: &mut *journal,
        settings: &setup.settings,
        named: &named,
        directory: &directory,
        name,
    }
    .build()?;
    if lasts {
        let Built { facts, notes } = &built;
        let epoch = setup.epoch.clone();
        journal.stands(name, Standing { epoch, facts: facts.clone(), notes: notes.clone() })?;
    }
    Ok(built)
}

/// Facts of the host and of the filesystem and device the target lies on.
#[must_use]
pub fn facts(spec: &TargetSpec, ready: &Ready) -> HostFacts {
    let mut facts = crate::host::facts();
    facts.extend(crate::host::path_facts(&spec.watched()));
    // Of its direct writes the kernel does not say that they are none: one is tried.
    if facts.get("fs.type") == Some(Filesystem::Btrfs.name()) {
        facts.set("o_direct", crate::host::direct_io_tried(&spec.watched()));
    }
    facts.extend(ready.facts.iter().map(|(name, value)| (name.clone(), value.clone())));
    let made = spec.setup.as_ref().and_then(|setup| match &setup.settings.device {
        Some(Device::Made { kind, .. }) if setup.stack.is_some() => Some(*kind),
        _ => None,
    });
    if let Some(options) = facts.get("mount.options")
        && let Some(log) = log_that_was_made(spec)
    {
        let plain = options.replace(&*log.to_string_lossy(), "LOG");
        facts.set("mount.options", plain);
    }
    let mapped = spec.setup.as_ref().filter(|setup| setup.stack.is_some());
    let mapped = mapped.and_then(|setup| setup.settings.dm.as_ref()).map(Mapping::target);
    let made = made.map(DeviceKind::name);
    if let Some(name) = mapped.or(made).filter(|_| facts.get("device").is_some()) {
        without_numbers(&mut facts, name);
    }
    if let Some(below) = made.filter(|_| mapped.is_some() && facts.get("device.on").is_some()) {
        facts.set("device.on", below);
    }
    facts
}

/// The device of the filesystem's log, where it was made for this run.
fn log_that_was_made(spec: &TargetSpec) -> Option<PathBuf> {
    let setup =
        spec.setup.as_ref().filter(|setup| matches!(setup.settings.log, Some(Device::Made { .. })))?;
    setup.stack.as_ref()?.join(LOG_LINK).canonicalize().ok()
}

/// Which number the kernel gave a device it made is chance, and no difference between arms.
fn without_numbers(facts: &mut HostFacts, kind: &str) {
    let device = facts.get("device").unwrap_or_default().to_owned();
    facts.set("now.device", device);
    for name in ["device", "mount.source"] {
        if facts.get(name).is_some() {
            facts.set(name, kind);
        }
    }
    for name in ["device.loop_file", "device.dm_name", "device.id"] {
        facts.remove(name);
    }
}

/// What came of putting back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// What could not be put back, and what stays.
    pub notes: Vec<String>,
    /// How long the filesystem that was made for the trial took to be unmounted; `None`: none was.
    pub unmounting: Option<Duration>,
    /// The same with its device undone; `None`: nothing was made for this trial alone.
    pub teardown: Option<Duration>,
}

/// Puts back what was for this trial alone.
#[must_use]
pub fn release(spec: &TargetSpec, ready: Ready) -> Released {
    let (failed, mut released) = put_back(spec, ready);
    released.notes.splice(0..0, failed.iter().map(|error| format!("not put back: {error}")));
    released
}

/// What could not be put back, and what came of the rest.
fn put_back(spec: &TargetSpec, ready: Ready) -> (Vec<TargetError>, Released) {
    let (Some(setup), Some(mut journal)) = (&spec.setup, ready.journal) else {
        return (Vec::new(), Released::default());
    };
    let (mut tried, mut teardown) = (vec![journal.undo_trial()], None);
    let name = setup.stack.as_ref().and_then(|stack| stack.file_name()).map(|name| name.to_string_lossy());
    if let Some(name) = name.filter(|_| setup.settings.fresh.unwrap_or_default() == Fresh::Trial) {
        // What an earlier trial left was unmounted before this one.
        let (_, begun) = (journal.take_unmounting(), Instant::now());
        tried.push(clear_foreign(spec, setup));
        tried.push(journal.undo_stack(&name));
        teardown = Some(begun.elapsed());
    }
    let failed: Vec<TargetError> = tried.into_iter().filter_map(Result::err).collect();
    // A mount that stays took no time that means anything.
    let teardown = teardown.filter(|_| failed.is_empty());
    let unmounting = journal.take_unmounting().filter(|_| teardown.is_some());
    (failed, Released { notes: journal.notes(), unmounting, teardown })
}

/// What a job wrote to a device that stays is no filesystem, but could look like one to the next who asks.
fn clear_foreign(spec: &TargetSpec, setup: &Setup) -> Result<(), TargetError> {
    let stays = matches!(
        setup.settings.device,
        Some(
            Device::Block(_)
                | Device::Made {
                    kind: DeviceKind::Ram | DeviceKind::Pmem | DeviceKind::VirtioBlk | DeviceKind::Nvme,
                    ..
                }
        )
    );
    match spec.device().filter(|_| stays) {
        Some(link) => {
            unused([&link])?;
            mkfs::clear_ends(&link).map_err(TargetError::io("cannot clear", link))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::WorkDirectory;
    use super::*;

    #[test]
    fn only_marked_directories_are_emptied() {
        let base = tempfile::tempdir().unwrap();
        let foreign = base.path().join("precious");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("data"), "x").unwrap();
        let spec = TargetSpec { directory: foreign.clone(), ..TargetSpec::default() };
        assert!(matches!(prepare(&spec), Err(TargetError::NotOurs { .. })));
        let setup = Setup { work: foreign.clone(), ..Setup::default() };
        let spec = TargetSpec { setup: Some(setup), ..spec };
        assert!(matches!(prepare(&spec), Err(TargetError::NotOurs { .. })));
        assert!(foreign.join("data").exists());
    }

    #[test]
    fn settings_hold_for_one_trial() {
        let base = tempfile::tempdir().unwrap();
        let work = WorkDirectory::create(&base.path().join("assay-1")).unwrap();
        std::fs::write(work.path().join("old"), "x").unwrap();
        let mut setup = Setup { work: work.path().to_owned(), ..Setup::default() };
        // A sysctl that every machine has and that says the same when it is set to what it is.
        let knob = "/proc/sys/vm/dirty_ratio";
        let value = std::fs::read_to_string(knob).unwrap().trim().to_owned();
        setup.settings.set(&format!("sysfs:{knob}"), &value, Path::new("/")).unwrap();
        let directory = work.path().to_owned();
        let spec = TargetSpec { directory, setup: Some(setup), ..TargetSpec::default() };
        if !crate::host::may_administer() {
            assert!(std::env::var_os("CI").is_none(), "not root, and CI skips nothing");
            eprintln!("SKIPPED: not root");
            return;
        }
        let ready = prepare(&spec).unwrap();
        assert!(!work.path().join("old").exists());
        assert_eq!(facts(&spec, &ready).get("sysfs./proc/sys/vm/dirty_ratio"), Some(value.as_str()));
        assert_eq!(release(&spec, ready), Released::default());
    }
}
