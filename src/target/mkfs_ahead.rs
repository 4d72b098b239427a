//! What mkfs will say, before anything is made: it is asked on a file with holes of the device's size, in the mode in which it writes
//! nothing where it has one.
//!
//! Enters: settings of a target whose device is made for the run. Leaves: mkfs's refusal. What a file cannot show (sectors, zones) stays
//! the real mkfs's to say, and so does everything where mkfs refuses also what it takes by default.

use std::path::Path;
use std::process::Command;

use super::error::TargetError;
use super::mkfs::{run, telling};
use super::second_device;
use crate::catalog::Mkfs;
use crate::experiment::{Device, TargetSettings};
use crate::sys::find_system_program;

/// Memory, mostly: a disk with large sectors would set limits that the device has not.
const PLACE: &str = "/dev/shm";
/// A mkfs without a mode that writes nothing is asked up to this size, of which it writes a few MiB.
const MOST_WRITTEN: u64 = 16 << 30;
/// Options of devices that change neither sectors nor zones.
const HARMLESS: [&str; 4] = ["direct_io", "algorithm", "cache", "fallocate"];

/// mkfs's refusal to make the filesystem of these settings; `None`: it would make it, or that is not known.
#[must_use]
pub fn mkfs_refusal(settings: &TargetSettings) -> Option<TargetError> {
    let fs = settings.fs?;
    let mkfs = fs.mkfs()?;
    let Some(Device::Made { bytes, options, .. }) = &settings.device else { return None };
    let is_plain = options.iter().all(|(name, _)| HARMLESS.contains(&name.as_str()));
    // Also by a label, as in `-J device=LABEL=log`, and a file of the current directory.
    let is_there =
        |word: &str| word.split(['=', ',']).any(|part| !part.is_empty() && Path::new(part).exists());
    let has_paths =
        settings.mkfs.iter().any(|word| word.contains('/') || word.contains("dev") || is_there(word));
    let is_dear = mkfs.dry_run.is_none() && *bytes > MOST_WRITTEN;
    // What else an argument names would be written to.
    if !is_plain || has_paths || is_dear || !second_device::all(settings).is_empty() {
        return None;
    }
    let said = said(mkfs, &settings.mkfs, *bytes).filter(|said| !said.is_empty())?;
    // Where it does not take its own defaults, it is the file or the place that it does not take.
    if !self::said(mkfs, &[], *bytes)?.is_empty() {
        return None;
    }
    let name = mkfs.program.name;
    let words = std::iter::once(name).chain(settings.mkfs.iter().map(String::as_str));
    let command = shlex::try_join(words).unwrap_or_default();
    Some(TargetError::unavailable(
        format!("{command} would fail: {}", said.join("; ")),
        format!(
            "nothing was made; man {name} lists its arguments; mkfs.{} holds arguments for this filesystem alone",
            fs.name()
        ),
    ))
}

/// What mkfs says of a file of this size where it fails; nothing where it does not. `None`: it cannot be asked.
fn said(mkfs: Mkfs, arguments: &[String], bytes: u64) -> Option<Vec<String>> {
    let program = find_system_program(mkfs.program.name)?;
    let place = match Path::new(PLACE).is_dir() {
        true => tempfile::tempdir_in(PLACE),
        false => tempfile::tempdir(),
    };
    let place = place.ok()?;
    let file = place.path().join("device");
    std::fs::File::create_new(&file).and_then(|file| file.set_len(bytes)).ok()?;
    let mut command = Command::new(program);
    command.current_dir(place.path()).args(mkfs.dry_run).args(arguments).arg("device");
    let output = run(&mut command).ok()?;
    match (output.status.success(), telling(&output)) {
        (true, _) => Some(Vec::new()),
        // It ended without a word, or by a signal.
        (false, said) if said.is_empty() || output.status.code().is_none() => None,
        (false, said) => Some(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Filesystem;

    fn refused(fs: &str, arguments: &str, device: &str) -> Option<String> {
        let mut settings = TargetSettings::default();
        for (key, value) in [("device", device), ("fs", fs), ("mkfs", arguments)] {
            settings.set(key, value, Path::new("/")).unwrap();
        }
        mkfs_refusal(&settings).map(|error| error.to_string())
    }

    #[test]
    fn mkfs_is_asked_before_anything_is_made() {
        if Filesystem::ALL.iter().any(|fs| super::super::mkfs::obstacle(*fs).is_some()) {
            assert!(std::env::var_os("CI").is_none(), "a mkfs is missing, and CI skips nothing");
            eprintln!("SKIPPED: a mkfs is missing");
            return;
        }
        assert_eq!(
            refused("ext4", "-m reflink=0", "loop:1g").as_deref(),
            Some(
                "mkfs.ext4 -m 'reflink=0' would fail: mkfs.ext4: invalid reserved blocks percent - reflink=0"
            )
        );
        let said = refused("xfs", "-m nothing=1", "virtio_blk:1g").unwrap();
        assert!(said.ends_with("unknown option -m nothing=1"), "no list of all options: {said}");
        let said = refused("f2fs", "-O nothing", "ram:1g").unwrap();
        assert!(said.ends_with("Error: Wrong features nothing"), "{said}");
        let said = refused("btrfs", "-O nothing", "zram:1g").unwrap();
        assert!(said.contains("'nothing'"), "{said}");
        for (fs, arguments, device) in [
            ("xfs", "-m reflink=0", "loop:1g"),
            ("xfs", "default", "loop:400m"),
            ("ext4", "default", "loop:8m"),
            ("btrfs", "default", "loop:1g"),
            ("f2fs", "default", "loop:1g"),
            ("tmpfs", "default", "loop:1g"),
            ("ext4", "-m reflink=0", "null_blk:1g:zoned=1"),
            ("xfs", "-l logdev=/dev/absent", "loop:1g"),
        ] {
            assert_eq!(refused(fs, arguments, device), None, "{fs} {arguments} {device}");
        }
    }
}
