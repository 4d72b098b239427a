//! Whether the files of a cell have room where they go.
//!
//! Enters: a cell, and what its place has. Leaves: a failure that says how much is missing. Nothing is made and nothing is written:
//! what a filesystem that is made for a trial leaves of its device is told by whoever made it once.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::catalog::Reaches;
use crate::cli::Failure;
use crate::experiment::{Device, FileState, Fresh, TargetSettings};
use crate::plan::CellSpec;
use crate::target::Room;
use crate::units::{Unit, format_number, parse_bytes};
use crate::workload::{IoMethod, Job};

/// Kept back for what a filesystem needs besides the files: at most this, and not more than a share of the filesystem.
const KEPT_BACK_BYTES: u64 = 16 << 20;
/// That share, and what is kept back of the files' own size, as a divisor.
const KEPT_BACK_SHARE: u64 = 50;

/// Files of one cell that do not fit: those that are laid out or written in full, and those whose size assay's own engines reserve.
pub(super) fn missing(cell: &CellSpec) -> Option<Failure> {
    let files = files(cell)?;
    let all: u64 = files.values().map(|file| file.bytes).sum();
    let (needed, kept_back, free, place) = match &cell.target.device {
        _ if cell.target.is_in_memory() && !cell.target.is_elsewhere() => {
            (all, 0, memory_of(&cell.target)?, "tmpfs".to_owned())
        }
        // More than the device is certain; what the filesystem leaves of it is known once it was made: see `missing_there`.
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
    (needed.saturating_add(kept_back) > free).then(|| too_little(cell, needed, free, &place)).flatten()
}

/// The same of the empty filesystem that was made for a trial of the cell, here or in a guest.
pub(super) fn missing_there(cell: &CellSpec, room: Room) -> Option<Failure> {
    let device = cell.target.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    let place = format!("{}{device}", cell.target.fs?.name());
    let needed: u64 = files(cell)?.values().map(|file| file.bytes).sum();
    // The native engine leaves alone what is kept for root; other programs run as root and use it.
    let is_own = cell.engine.descriptor().in_process;
    let free = if is_own { room.available_bytes } else { room.free_bytes };
    (needed > free).then(|| too_little(cell, needed, free, &place)).flatten()
}

/// Files behind loop devices that are allocated in full: those that last longer than a trial are there at the same time.
pub(super) fn missing_for_images(cells: &[CellSpec]) -> Option<Failure> {
    let mut lasting: BTreeMap<&Path, BTreeMap<&Path, u64>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| !cell.target.is_elsewhere()) {
        let bytes = cell.target.devices().map(Device::allocated_bytes).fold(0, u64::saturating_add);
        let stack = cell.stack.as_deref().filter(|_| bytes > 0 && !cell.target.is_in_memory());
        if let (Some(stack), Some(base)) = (stack, cell.work.parent()) {
            // Of those that are made for a trial one is there at a time, the largest at some time.
            let of_trial = cell.target.fresh.unwrap_or_default() == Fresh::Trial;
            let name = if of_trial { Path::new("") } else { stack };
            let largest = lasting.entry(base).or_default().entry(name).or_default();
            *largest = bytes.max(*largest);
        }
    }
    lasting.into_iter().find_map(|(base, images)| {
        let needed: u64 = images.values().sum();
        let found = rustix::fs::statvfs(existing(base)).ok().filter(|found| found.f_blocks > 0)?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let [wanted, has] = [needed, free].map(|bytes| format_number(&Unit::Bytes, bytes as f64));
        (needed > free).then(|| {
            let place = existing(base).display();
            Failure::request(format!("loop: fallocate=1 takes {wanted} at once, and {place} has room for {has}"))
                .hint("make the devices smaller, let fresh=trial make one at a time, or name another place with --directory")
        })
    })
}

fn too_little(cell: &CellSpec, needed: u64, free: u64, place: &str) -> Option<Failure> {
    if needed == 0 {
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

/// What takes room; `None`: that is not known beforehand.
fn files(cell: &CellSpec) -> Option<BTreeMap<PathBuf, Takes>> {
    match cell.engine.descriptor().reaches {
        Reaches::JobFiles => files_of(cell),
        Reaches::OwnDirectory => files_of_tool(cell),
        Reaches::Nothing | Reaches::Anything => None,
    }
}

/// Bytes of a block device.
pub(super) fn size_of(path: &Path) -> Option<u64> {
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
pub(super) fn existing(path: &Path) -> &Path {
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
        plan.cells.iter().filter_map(missing).map(|refused| refused.to_string()).collect()
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
