//! Mistakes that can be seen before the first trial: in the plan, and in what this machine has.
//!
//! Enters: a prepared run. Leaves: a failure that says what would be right, or warnings, which are also notes of the run.
//! Nothing is made and nothing is written. A guest is another machine, and is not looked at: only the sizes of its devices
//! are known.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::prepare::Prepared;
use crate::catalog::Reaches;
use crate::cli::Failure;
use crate::experiment::{Device, DeviceKind, FileState, TargetSettings};
use crate::host::{Driver, device_under, driver};
use crate::plan::{CellSpec, SameLevels, ignored_depths};
use crate::sys::terminal::tell;
use crate::target::{TargetSpec, mkfs_release};
use crate::units::{Unit, format_number, parse_bytes};
use crate::workload::{IoMethod, Job, deciding_metrics};

/// Kept back for what a filesystem needs besides the files: at most this, and not more than a share of the filesystem.
const KEPT_BACK_BYTES: u64 = 16 << 20;
/// That share, and what is kept back of the files' own size, as a divisor.
const KEPT_BACK_SHARE: u64 = 50;

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

/// Filesystems that the mkfs of this machine, which guests use too, does not make on so small a device.
///
/// # Errors
/// A [`Failure`] with exit code 2 for the first.
pub(super) fn filesystems(prepared: &Prepared) -> Result<(), Failure> {
    let refused = |cell: &CellSpec| {
        let (reason, limit) = cell.target.too_small(size_of)?;
        let has_the_limit = mkfs_release(cell.target.fs?).is_some_and(|release| release >= limit.since);
        has_the_limit.then(|| Failure::request(reason).hint("`assay help targets` says what fits together"))
    };
    prepared.plan.cells.iter().find_map(refused).map_or(Ok(()), Err)
}

/// What this machine does not have: schedulers, room for the files, and a device whose counters shall decide.
///
/// # Errors
/// A [`Failure`] with exit code 2 for the first that is missing.
pub(super) fn machine(prepared: &Prepared) -> Result<(), Failure> {
    // A hook may mount something, or make room.
    let hook = prepared.surroundings.before.is_some();
    let missing = prepared.plan.cells.iter().find_map(|cell| {
        let is_here = !cell.target.is_elsewhere();
        // What a guest has besides the devices that are made for it is not known here.
        let is_known = is_here || matches!(cell.target.device, Some(Device::Made { .. }));
        let scheduler = || scheduler(cell).filter(|_| is_here);
        scheduler().or_else(|| room(cell).filter(|_| is_known && !hook))
    });
    let missing = unscheduled(prepared).or(missing);
    missing.or_else(|| counters(prepared).filter(|_| !hook)).map_or(Ok(()), Err)
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
        if alike && one.engine == other.engine && same_file(first, second) {
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

/// Files of one cell that do not fit: those that are laid out or written in full, and those whose size assay's own engines reserve.
fn room(cell: &CellSpec) -> Option<Failure> {
    let files = match cell.engine.descriptor().reaches {
        Reaches::JobFiles => files_of(cell)?,
        Reaches::OwnDirectory => files_of_tool(cell)?,
        Reaches::Nothing | Reaches::Anything => return None,
    };
    let all: u64 = files.values().map(|file| file.bytes).sum();
    let (needed, kept_back, free, place) = match &cell.target.device {
        _ if cell.target.is_in_memory() && !cell.target.is_elsewhere() => {
            (all, 0, memory_of(&cell.target)?, "tmpfs".to_owned())
        }
        Some(device @ Device::Made { bytes, .. }) if cell.target.fs.is_some() => {
            (all, 0, *bytes, device.to_string())
        }
        Some(device @ Device::Block(path)) if cell.target.fs.is_some() => {
            (all, 0, size_of(path)?, device.to_string())
        }
        Some(Device::Made { .. } | Device::Block(_)) => return None,
        _ if cell.target.fs.is_some() => return None,
        _ => {
            let place = existing(&cell.directory);
            let below = || files.iter().filter(|(path, _)| on_same_filesystem(path, place));
            let needed: u64 = below().map(|(path, file)| file.missing(path)).sum();
            let filled: u64 =
                below().filter(|(_, file)| file.filled).map(|(path, file)| file.missing(path)).sum();
            // ramfs and the like know no limit.
            let found = rustix::fs::statvfs(place).ok().filter(|found| found.f_blocks > 0)?;
            let free = found.f_bavail * found.f_frsize;
            let own = KEPT_BACK_BYTES.min(found.f_blocks * found.f_frsize / KEPT_BACK_SHARE);
            let kept_back = if filled > 0 { filled / KEPT_BACK_SHARE + own } else { 0 };
            (needed, kept_back, free, place.display().to_string())
        }
    };
    if needed == 0 || needed.saturating_add(kept_back) <= free {
        return None;
    }
    let is_tool = cell.engine.descriptor().settings.is_some();
    let whose = if is_tool { format!("{}'s", cell.engine.name()) } else { "the job's".to_owned() };
    let less = if is_tool { "let it write less" } else { "lower size= or numjobs=" };
    let [needed, free] = [needed, free].map(|bytes| format_number(&Unit::Bytes, bytes as f64));
    Some(
        Failure::request(format!(
            "{}: {whose} files take {needed}, and {place} has room for {free}",
            cell.label
        ))
        .hint(if cell.target.is_in_memory() {
            format!("{less}, or give it more: -t mount=size=8g")
        } else {
            format!("{less}, take a larger device, or name another place with --directory")
        }),
    )
}

/// Bytes of a block device.
fn size_of(path: &Path) -> Option<u64> {
    let number = path.metadata().ok().filter(|found| found.file_type().is_block_device())?.rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let sectors = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/size")).ok()?;
    Some(sectors.trim().parse::<u64>().ok()? * 512)
}

/// Bytes that a filesystem in memory holds: what its options say, what a device would, or half of the memory.
fn memory_of(target: &TargetSettings) -> Option<u64> {
    let names = target.fs?.descriptor().sized_by;
    let mut said = target.mount.iter().rev().filter_map(|option| option.split_once('='));
    match (said.find(|(name, _)| names.contains(name)), &target.device) {
        // Shares and numbers of blocks are left to the kernel; 0 is no limit.
        (Some(("size", text)), _) => parse_bytes(text, 1024).ok().filter(|bytes| *bytes > 0),
        (Some(_), _) => None,
        (None, Some(Device::Made { bytes, .. })) => Some(*bytes),
        (None, _) => {
            let found = rustix::system::sysinfo();
            Some(found.totalram.saturating_mul(u64::from(found.mem_unit.max(1))) / 2)
        }
    }
}

/// What a file takes.
#[derive(Clone, Copy, Default)]
struct Takes {
    bytes: u64,
    /// Whether it holds all of them in the end. Of the others the native family reserves the whole size beforehand.
    filled: bool,
}

impl Takes {
    /// What is not there of it yet.
    fn missing(self, path: &Path) -> u64 {
        let there = |found: std::fs::Metadata| if self.filled { found.blocks() * 512 } else { found.len() };
        self.bytes.saturating_sub(path.metadata().map_or(0, there))
    }
}

/// Files that need room, each with how much.
fn files_of(cell: &CellSpec) -> Option<BTreeMap<PathBuf, Takes>> {
    let workload = cell.workload.as_ref()?;
    let written_before = matches!(cell.target.state, Some(FileState::Overwrite | FileState::Allocate));
    let fills = |job: &Job| {
        let endless = job.runtime.is_some() || job.time_based || job.io_size.is_some();
        written_before || job.needs_layout() || (job.pattern.mix.writes() && !endless)
    };
    let reserves = |job: &Job| {
        cell.engine.descriptor().in_process && job.method != IoMethod::Null && !job.create_on_open
    };
    let mut files: BTreeMap<PathBuf, Takes> = BTreeMap::new();
    for instance in workload.instances(&cell.directory) {
        let job = &workload.jobs[instance.job];
        let filled = fills(job);
        if filled || reserves(job) {
            for region in instance.files {
                let bytes = region.file_size().unwrap_or(0);
                let known = files.entry(region.path).or_default();
                *known = Takes { bytes: bytes.max(known.bytes), filled: filled || known.filled };
            }
        }
    }
    Some(files)
}

/// The same of a tool that says what it takes, whatever its files are called.
fn files_of_tool(cell: &CellSpec) -> Option<BTreeMap<PathBuf, Takes>> {
    let bytes = (cell.engine.descriptor().settings?.takes)(&cell.settings)?;
    Some(BTreeMap::from([(cell.directory.join(cell.engine.name()), Takes { bytes, filled: true })]))
}

fn on_same_filesystem(path: &Path, place: &Path) -> bool {
    let device =
        |path: &Path| existing(path).metadata().ok().filter(|found| found.is_file() || found.is_dir());
    match (device(path), device(place)) {
        (Some(one), Some(other)) => one.dev() == other.dev(),
        _ => false,
    }
}

/// The path, or the nearest directory above it that is there.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{CommandLine, Experiment};
    use crate::plan::Plan;

    /// Which cells are refused for their files.
    fn too_large(job: &str, vary: &str, target: &[&str], engine: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let line = CommandLine {
            vary: vec![vary.to_owned()],
            target: target.iter().map(|text| (*text).to_owned()).collect(),
            engine: Some(engine.to_owned()),
            ..CommandLine::default()
        };
        let experiment = Experiment::from_job(job, "j.fio", directory.path(), &line).unwrap();
        let plan = Plan::new(&experiment, 1, directory.path(), "own").unwrap();
        plan.cells.iter().filter_map(room).map(|refused| refused.to_string()).collect()
    }

    #[test]
    fn each_cell_is_refused_by_its_own_size() {
        let write = "[w]\nrw=write\nsize=1m\n";
        let timed = "[w]\nrw=randwrite\nsize=1m\nruntime=1\ntime_based\n";
        for job in [write, timed] {
            let refused = too_large(job, "size=1m,4096t", &[], "native");
            assert_eq!(refused.len(), 1, "{job}: {refused:?}");
            assert!(refused[0].starts_with("size=4096t: the job's files take "), "{refused:?}");
            let refused = too_large(job, "size=10m,400m", &["loop:300m", "fs=ext4"], "native");
            assert_eq!(refused.len(), 1, "{job}: {refused:?}");
            assert!(refused[0].starts_with("size=400m: ") && refused[0].contains("loop:300m has room for"));
        }
        let refused = too_large(write, "size=1m,16t", &["fs=tmpfs"], "native");
        assert!(refused.len() == 1 && refused[0].contains("tmpfs has room for"), "{refused:?}");
        for target in [&["fs=tmpfs", "mount=size=2m"][..], &["fs=tmpfs", "device=loop:2m"]] {
            let refused = too_large(write, "size=1m,3m", target, "native");
            assert!(refused.len() == 1 && refused[0].starts_with("size=3m: "), "{refused:?}");
        }
        // No limit, and one that the kernel reads.
        for option in ["mount=size=0", "mount=nr_blocks=1", "mount=size=1%"] {
            assert!(too_large(write, "size=1m,3m", &["fs=tmpfs", option], "native").is_empty(), "{option}");
        }
        // fio goes on where it cannot reserve what its job does not reach, and nothing is ever in a file of the null method.
        assert!(too_large(timed, "size=1m,4096t", &[], "fio").is_empty());
        assert!(too_large(timed, "size=1m,4096t", &[], "null").is_empty());
    }
}
