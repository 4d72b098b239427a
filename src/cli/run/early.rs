//! Mistakes that can be seen before the first trial: in the plan, and in what this machine has.
//!
//! Enters: a prepared run. Leaves: a failure that says what would be right, or warnings, which are also notes of the run.
//! Nothing is made, and nothing is written but a file on which mkfs is asked. A guest is another machine, and is not looked at:
//! only the sizes of its devices are known.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::prepare::Prepared;
use super::room::{self, existing, size_of};
use crate::catalog::{KnownProgram, MetricPattern};
use crate::cli::Failure;
use crate::experiment::{Device, DeviceKind, TargetSettings};
use crate::host::{Driver, caches_are_kept, device_under, driver};
use crate::launch::opened_kernel;
use crate::plan::{CellSpec, SameLevels, ignored_depths};
use crate::sys::terminal::tell;
use crate::target::{TargetSpec, mkfs_refusal, mkfs_release};
use crate::workload::deciding_metrics;

/// Levels that compare nothing. Pairs that do so in some rows only are warned of.
///
/// # Errors
/// A [`Failure`] with exit code 2 for the first factor with such levels.
pub(super) fn levels(prepared: &mut Prepared, quiet: bool) -> Result<(), Failure> {
    let hooks = prepared.surroundings.before.is_some() || prepared.surroundings.after.is_some();
    let same = SameLevels::of(&prepared.plan, hooks);
    if let Some(reason) = same.refused.into_iter().next() {
        return Err(Failure::request(reason)
            .hint("vary what the job heeds (iodepth: with ioengine=io_uring or libaio); --aa compares a level with itself"));
    }
    same_kernels(prepared)?;
    // What is the same in all rows is said of each trial, too, and so in no note of the run.
    let ignored = if same.warned.is_empty() { ignored_depths(&prepared.plan) } else { Vec::new() };
    for warning in same.warned.iter().chain(&ignored).filter(|_| !quiet) {
        tell(&format!("warning: {warning}"));
    }
    prepared.run.notes.extend(same.warned.into_iter().map(Into::into));
    Ok(())
}

/// A command works where assay was started, whatever target is made beside it, unless it or a hook says otherwise.
fn works_elsewhere(prepared: &Prepared) -> Option<String> {
    let names_target = |text: &str| text.contains("ASSAY_DIRECTORY") || text.contains("ASSAY_DEVICE");
    let hook = prepared.surroundings.before.as_deref().is_some_and(names_target);
    let is_beside = |cell: &&CellSpec| {
        !cell.command.is_empty() && cell.target.makes() && !cell.command.iter().any(|word| names_target(word))
    };
    let cell = prepared.plan.cells.iter().find(is_beside).filter(|_| !hook)?;
    let how = match cell.target.fs {
        Some(_) => "$ASSAY_DIRECTORY: -- sh -c 'cd $ASSAY_DIRECTORY && …'",
        None => "$ASSAY_DEVICE: -- sh -c '… $ASSAY_DEVICE'",
    };
    Some(format!("the command runs in the current directory; the target made for it is {how}"))
}

/// What is read although nobody wrote a `--metric`.
fn read_of_known(prepared: &Prepared) -> Option<String> {
    let (known, specs) = KnownProgram::of_command(&prepared.plan.cells.first()?.command)?;
    let names: Vec<&str> = specs.iter().map(|spec| MetricPattern::name_in(spec)).collect();
    let patterns = &prepared.surroundings.patterns;
    let is_of_it = patterns.iter().map(|pattern| pattern.metric.name.as_str()).eq(names.iter().copied());
    is_of_it.then(|| {
        format!(
            "{} of {} are read from what it prints; --metric takes their place",
            names.join(", "),
            known.name
        )
    })
}

/// Says what a person who wrote a command and its metrics may not know: where it runs, what is read, and which metrics are taken as better
/// where they are less because nothing says otherwise.
pub(super) fn directions(prepared: &mut Prepared, quiet: bool) {
    let guesses: Vec<String> =
        prepared.surroundings.patterns.iter().filter_map(MetricPattern::guess).collect();
    if let Some(read) = read_of_known(prepared).filter(|_| !quiet) {
        tell(&format!("note: {read}"));
    }
    let notes: Vec<String> = works_elsewhere(prepared).into_iter().chain(guesses).collect();
    notes.iter().filter(|_| !quiet).for_each(|note| tell(&format!("note: {note}")));
    prepared.run.notes.extend(notes.into_iter().map(Into::into));
}

/// Filesystems that the mkfs of this machine, which guests use too, does not make on so small a device, or with such arguments.
///
/// # Errors
/// A [`Failure`] with exit code 2 for the first.
pub(super) fn filesystems(prepared: &Prepared) -> Result<(), Failure> {
    let refused = |cell: &CellSpec| {
        let (reason, limit) = cell.target.too_small(size_of)?;
        let has_the_limit = mkfs_release(cell.target.fs?).is_some_and(|release| release >= limit.since);
        has_the_limit.then(|| Failure::request(reason).hint("`assay help targets` says what fits together"))
    };
    let cells = &prepared.plan.cells;
    // Asking a program takes its time: each target is asked of once.
    let is_new =
        |(at, cell): &(usize, &CellSpec)| !cells[..*at].iter().any(|before| before.target == cell.target);
    let by_mkfs = |(_, cell): (usize, &CellSpec)| {
        let error = mkfs_refusal(&cell.target)?;
        let what = format!("the target of {} cannot be made: {error}", cell.label);
        Some(Failure::request(what).hint(error.hint()))
    };
    let mut asked = cells.iter().enumerate().filter(is_new);
    cells.iter().find_map(refused).or_else(|| asked.find_map(by_mkfs)).map_or(Ok(()), Err)
}

/// What this machine does not have: the right to drop its caches, schedulers, room for the files, and a device whose counters shall
/// decide.
///
/// # Errors
/// A [`Failure`] with exit code 2 for the first that is missing.
pub(super) fn machine(prepared: &Prepared) -> Result<(), Failure> {
    if let Some(refused) = caches(prepared) {
        return Err(refused);
    }
    // A hook may mount something, or make room.
    let hook = prepared.surroundings.before.is_some();
    let missing = prepared.plan.cells.iter().find_map(|cell| {
        let is_here = !cell.target.is_elsewhere();
        // What a guest has besides the devices that are made for it is not known here.
        let is_known = is_here || matches!(cell.target.device, Some(Device::Made { .. }));
        let scheduler = || scheduler(cell).filter(|_| is_here);
        scheduler().or_else(|| room::missing(cell).filter(|_| is_known && !hook))
    });
    let missing =
        unscheduled(prepared).or(missing).or_else(|| room::missing_for_images(&prepared.plan.cells));
    missing.or_else(|| counters(prepared).filter(|_| !hook)).map_or(Ok(()), Err)
}

/// `--drop-caches` where this user may not: a run of cold reads would measure warm ones. In a guest the agent is root.
fn caches(prepared: &Prepared) -> Option<Failure> {
    let mut cells = prepared.plan.cells.iter().zip(&prepared.surroundings.targets);
    cells.find(|(cell, target)| target.drop_caches && !cell.target.is_elsewhere())?;
    let why = caches_are_kept()?;
    Some(
        Failure::request(format!("--drop-caches: the caches of this machine cannot be dropped: {why}"))
            .hint("run as root; or leave --drop-caches out: a job's direct=1, or invalidate=1 (the default), reads its own files cold"),
    )
}

/// A deciding metric that a device counts, where no cell works on a device.
fn counters(prepared: &Prepared) -> Option<Failure> {
    let primary = prepared.plan.primary.as_deref()?;
    let printed = |name: &str| prepared.surroundings.patterns.iter().any(|known| known.metric.name == name);
    let mut wished = deciding_metrics(primary, printed).into_iter().map(|(_, name)| name);
    let name = wished.find(|name| name.starts_with("dev.") && !printed(name))?;
    let targets = prepared.plan.cells.iter().zip(&prepared.surroundings.targets);
    let reasons: Vec<String> =
        targets.map(|(cell, target)| no_device(cell, target)).collect::<Option<_>>()?;
    let reason = reasons.first()?;
    Some(
        Failure::request(format!("primary {primary}: no trial will have {name}: {reason}"))
            .hint("dev.* is what a block device counts: -t loop:1g makes one, --directory names a place on another; or take another metric"),
    )
}

/// Why nothing is counted where a cell works; `None`: there is a device, or it is another machine's to say.
fn no_device(cell: &CellSpec, target: &TargetSpec) -> Option<String> {
    match &cell.target {
        settings if settings.is_elsewhere() => None,
        settings if settings.is_in_memory() => Some(format!("{}: the filesystem lies in memory", cell.label)),
        settings if settings.makes() => None,
        _ => device_under(existing(&target.watched())).err(),
    }
}

/// Two levels whose kernels have the same bytes, whatever their files are called.
fn same_kernels(prepared: &Prepared) -> Result<(), Failure> {
    let plan = &prepared.plan;
    for (factor, levels, [one, other]) in plan.neighbours().filter(|_| !plan.aa) {
        let machine = |cell: &CellSpec| {
            let mut target = cell.target.clone();
            target.guest.kernel = None;
            target
        };
        let (Some(first), Some(second)) = (&one.target.guest.kernel, &other.target.guest.kernel) else {
            continue;
        };
        let alike =
            machine(one) == machine(other) && one.job_text == other.job_text && one.command == other.command;
        let alike = alike && one.settings == other.settings && one.observe == other.observe;
        if alike && one.engine == other.engine && same_file(first, second) && same_modules(first, second) {
            let factor = &plan.factors[factor];
            let [one, other] = levels.map(|level| &factor.levels[level as usize]);
            return Err(Failure::request(format!(
                "{0}={one} and {0}={other} are the same kernel: {1} and {2} have the same contents",
                factor.name,
                first.display(),
                second.display()
            ))
            .hint("name two kernels that differ; --aa compares a level with itself"));
        }
    }
    Ok(())
}

/// Of equal images the modules may be those of two trees; a package has its own.
fn same_modules(one: &Path, other: &Path) -> bool {
    let is_package = |path: &Path| path.extension().is_some_and(|end| end == "deb");
    if is_package(one) || is_package(other) {
        return true;
    }
    let of = |path: &Path| opened_kernel(path).ok().and_then(|kernel| kernel.modules);
    of(one) == of(other)
}

fn same_file(one: &Path, other: &Path) -> bool {
    let facts = |path: &Path| path.metadata().ok().filter(std::fs::Metadata::is_file);
    let (Some(first), Some(second)) = (facts(one), facts(other)) else { return false };
    if (first.dev(), first.ino()) == (second.dev(), second.ino()) {
        return true;
    }
    first.len() == second.len() && same_contents(one, other).unwrap_or(false)
}

fn same_contents(one: &Path, other: &Path) -> std::io::Result<bool> {
    let open = |path: &Path| std::fs::File::open(path).map(std::io::BufReader::new);
    let (mut one, mut other) = (open(one)?, open(other)?);
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let length = one.read(&mut left)?;
        if length == 0 {
            return Ok(true);
        }
        other.read_exact(&mut right[..length])?;
        if left[..length] != right[..length] {
            return Ok(false);
        }
    }
}

/// A scheduler where no device of the run has a queue for one; beside a device that has one, such trials are skipped.
fn unscheduled(prepared: &Prepared) -> Option<Failure> {
    let targets = || prepared.plan.cells.iter().map(|cell| &cell.target);
    let has_queue = |target: &TargetSettings| match target.device {
        Some(Device::Made { kind, .. }) => kind.has_queue(),
        _ => true,
    };
    let reason = targets().find_map(TargetSettings::unscheduled).filter(|_| !targets().any(has_queue))?;
    Some(Failure::request(reason).hint("leave the scheduler out, or take another device: -t loop:1g"))
}

/// A scheduler that the queue does not list and that no module offers.
fn scheduler(cell: &CellSpec) -> Option<Failure> {
    let wanted = &cell.target.knobs.iter().find(|knob| knob.path == "queue/scheduler")?.value;
    let listed = match &cell.target.device {
        Some(Device::Made { kind, .. }) => listed_for(*kind),
        Some(Device::Block(path) | Device::Directory(path) | Device::File(path)) => listed_at(path),
        None => listed_at(&cell.directory),
    }?;
    let module = |name: &str| driver(name) != Driver::Missing;
    if listed.contains(wanted) || module(wanted) || module(&format!("{wanted}-iosched")) {
        return None;
    }
    let near = crate::workload::nearest(wanted, listed.iter().map(String::as_str), 1);
    let near = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Some(
        Failure::request(format!(
            "scheduler={wanted}: this kernel has {} here and no module of that name{near}",
            listed.join(", ")
        ))
        .hint("cat /sys/block/*/queue/scheduler shows what each device can have"),
    )
}

/// What a queue that is there can have.
fn listed_at(path: &Path) -> Option<Vec<String>> {
    schedulers(&device_under(existing(path)).ok()?.sys)
}

/// What queues of that kind can have; devices without requests have none to schedule.
fn listed_for(kind: DeviceKind) -> Option<Vec<String>> {
    if !kind.has_queue() || kind.only_in_guests() {
        return None;
    }
    let devices = std::fs::read_dir("/sys/block").ok()?.flatten();
    let lists = devices.filter_map(|device| schedulers(&device.path()));
    lists.max_by_key(Vec::len).filter(|list| list.len() > 1)
}

fn schedulers(sys: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(sys.join("queue/scheduler")).ok()?;
    let names = text.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned());
    Some(names.collect::<Vec<_>>()).filter(|names| !names.is_empty())
}
