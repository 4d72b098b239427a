//! A zram device (Linux's Documentation/admin-guide/blockdev/zram.rst): added through zram-control where the kernel has
//! that, else one that is there and not in use.
//!
//! Enters: a size and a compression algorithm. Leaves: a block device. One that others have set up is never touched.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::busy::while_busy;
use super::error::TargetError;
use super::journal::Journal;
use super::made::Made;
use super::overwrite::mounted_for_others;

const CONTROL: &str = "/sys/class/zram-control";

/// Whether zram devices can be had here.
pub(super) fn obstacle() -> Option<TargetError> {
    if Path::new(CONTROL).exists() || !numbers().is_empty() {
        return None;
    }
    match crate::host::driver("zram") {
        crate::host::Driver::Loadable => None,
        _ => Some(TargetError::unavailable(
            format!("zram is not offered here: {}", crate::host::missing_driver("zram")),
            "loop:SIZE or fs=tmpfs are other targets without a disk",
        )),
    }
}

/// Makes the device; `stack` is what it is for.
pub(super) fn make(
    journal: &mut Journal,
    stack: &str,
    bytes: u64,
    algorithm: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<PathBuf, TargetError> {
    if !Path::new(CONTROL).exists() && numbers().is_empty() {
        super::module::load(journal, stack, "zram", &["num_devices=0".to_owned()])?;
    }
    let (number, added) = {
        // No other assay takes stock between the adding and the writing down.
        let _alone = alone();
        let before = numbers();
        let can_add = Path::new(CONTROL).join("hot_add").exists();
        journal.begin(
            Some(stack),
            Made::Zram { before: before.clone(), number: None, added: can_add, bytes, sequence: None },
        )?;
        let number = if can_add { add()? } else { unused(&before)? };
        let sequence = sequence(number);
        journal.now_known(Made::Zram { before, number: Some(number), added: can_add, bytes, sequence })?;
        (number, can_add)
    };
    let sys = sys(number);
    if let Some(algorithm) = algorithm {
        set(&sys, "comp_algorithm", algorithm, notes)?;
    }
    set(&sys, "disksize", &bytes.to_string(), notes)?;
    let device = PathBuf::from(format!("/dev/zram{number}"));
    if !device.exists() {
        return Err(TargetError::failed(format!(
            "the kernel has made zram{number}, but there is no {}{}",
            device.display(),
            if added { "; is /dev a devtmpfs?" } else { "" }
        )));
    }
    Ok(device)
}

/// Removes the device of that number, or, where it is not known yet, one that came since and was never set up.
pub(super) fn remove(
    before: &[u32],
    number: Option<u32>,
    added: bool,
    bytes: u64,
    sequence_then: Option<u64>,
) -> Result<(), TargetError> {
    let _alone = alone();
    let candidates = match number {
        // Another disk, or of another size: somebody else has it now.
        Some(number) if is_another(sequence_then, sequence(number)) => Vec::new(),
        Some(number) if is_unused(number) || size(number) == Some(bytes) => vec![number],
        Some(_) => Vec::new(),
        // Killed between adding it and learning its number: it has no size yet.
        None if added => numbers().into_iter().filter(|n| !before.contains(n) && is_unused(*n)).collect(),
        None => Vec::new(),
    };
    for number in candidates.into_iter().filter(|number| sys(*number).exists()) {
        let reset = || std::fs::write(sys(number).join("reset"), "1");
        let device = PathBuf::from(format!("/dev/zram{number}"));
        let failed = |error| match mounted_for_others(&device) {
            Some(by) => TargetError::failed(format!("cannot reset {}: it is {by}", device.display())),
            None => TargetError::io("cannot reset", &device)(error),
        };
        while_busy(reset).map_err(failed)?;
        if added {
            let remove = || std::fs::write(Path::new(CONTROL).join("hot_remove"), number.to_string());
            let failed = |error| TargetError::io("cannot remove", format!("/dev/zram{number}"))(error);
            while_busy(remove).map_err(failed)?;
        }
    }
    Ok(())
}

fn add() -> Result<u32, TargetError> {
    let path = Path::new(CONTROL).join("hot_add");
    let text = std::fs::read_to_string(&path).map_err(TargetError::io("cannot add a device with", &path))?;
    text.trim().parse().map_err(|_| TargetError::failed(format!("hot_add answered '{}'", text.trim())))
}

fn unused(there: &[u32]) -> Result<u32, TargetError> {
    there.iter().copied().find(|number| is_unused(*number)).ok_or_else(|| {
        TargetError::unavailable(
            "all zram devices are in use, and this kernel adds none while it runs",
            "swapoff and reset one, or load zram with a larger num_devices",
        )
    })
}

fn is_unused(number: u32) -> bool {
    size(number) == Some(0)
}

/// The kernel gives no two disks of one start the same number.
fn sequence(number: u32) -> Option<u64> {
    std::fs::read_to_string(sys(number).join("diskseq")).ok()?.trim().parse().ok()
}

fn is_another(then: Option<u64>, now: Option<u64>) -> bool {
    then.zip(now).is_some_and(|(then, now)| then != now)
}

fn size(number: u32) -> Option<u64> {
    std::fs::read_to_string(sys(number).join("disksize")).ok()?.trim().parse().ok()
}

fn set(sys: &Path, name: &str, value: &str, notes: &mut Vec<String>) -> Result<(), TargetError> {
    let now = crate::host::write_knob(&sys.join(name), value).map_err(TargetError::setting)?;
    if now != value {
        notes.push(format!("zram: {name} was set to {value}; the kernel made it {now}"));
    }
    Ok(())
}

fn sys(number: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/zram{number}"))
}

/// Whether there is one, whoever added it.
pub(super) fn any() -> bool {
    !numbers().is_empty()
}

fn numbers() -> Vec<u32> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let number = |name: String| name.strip_prefix("zram")?.parse().ok();
    entries.filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned())).collect()
}

/// Held while devices are added or looked through. Where it cannot be had, others are taken not to be there.
pub(super) fn alone() -> Option<File> {
    let control = File::open(CONTROL).ok()?;
    flock(&control, FlockOperation::LockExclusive).ok()?;
    Some(control)
}
