//! A filesystem's log on a device of its own: what mkfs and mount are told of it, and the log made first where it has to be.
//!
//! Enters: the way of the filesystem, its device, the log's. Leaves: settings that name the log; on its device an empty one.

use std::fs::File;
use std::path::Path;

use super::error::TargetError;
use super::mkfs;
use crate::catalog::{Filesystem, LogDevice};
use crate::experiment::TargetSettings;

/// The settings with mkfs and mount told where the log is.
pub(super) fn named(settings: &TargetSettings, way: LogDevice, log: &Path) -> TargetSettings {
    let mut settings = settings.clone();
    let [option, begins] = way.mkfs;
    settings.mkfs.extend([option.to_owned(), format!("{begins}{}", log.display())]);
    settings.mount.extend(way.mount.map(|begins| format!("{begins}{}", log.display())));
    settings
}

/// Makes an empty log on its device, with blocks as large as those that mkfs will give the filesystem on `device`; larger ones where the
/// log's device has larger sectors, which mkfs then takes for the filesystem, too, unless it is given a size.
pub(super) fn make_first(
    fs: Filesystem,
    way: LogDevice,
    arguments: &[String],
    [device, log]: [&Path; 2],
) -> Result<(), TargetError> {
    let bytes = block_bytes(fs, arguments, device)?.max(sector_bytes(log));
    let words: Vec<String> =
        way.made_first.iter().map(|word| (*word).to_owned()).chain([bytes.to_string()]).collect();
    mkfs::make(fs, &words, log).map(drop)
}

/// Nothing is known of a device that cannot be opened: mkfs will say why.
fn sector_bytes(device: &Path) -> u64 {
    let size = File::open(device).and_then(|device| Ok(rustix::fs::ioctl_blksszget(device)?));
    size.map_or(0, u64::from)
}

/// mkfs is asked in the mode in which it writes nothing.
fn block_bytes(fs: Filesystem, arguments: &[String], device: &Path) -> Result<u64, TargetError> {
    let unknown = || {
        let name = fs.name();
        TargetError::failed(format!(
            "mkfs.{name} does not say how large its blocks would be; name a size: mkfs.{name}=-b 4096"
        ))
    };
    let way = fs.mkfs().ok_or_else(unknown)?;
    // Quiet, it would not say it.
    let loud = arguments.iter().filter(|word| *word != "-q").cloned();
    let words: Vec<String> = way.dry_run.map(str::to_owned).into_iter().chain(loud).collect();
    let (_, said) = mkfs::said(way, &words, device)?;
    blocks_in(&said).ok_or_else(unknown)
}

/// 1024 of `Creating filesystem with 317440 1k blocks and 79248 inodes`.
fn blocks_in(said: &str) -> Option<u64> {
    let size = |before: &str| {
        let kibibytes: u64 = before.rsplit(char::is_whitespace).next()?.strip_suffix('k')?.parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    said.split(" blocks").find_map(size)
}

/// mkfs's command without the numbers that the kernel gave the devices.
pub(super) fn without_names(command: &str, device: &Path, log: Option<&Path>) -> String {
    let Some(log) = log.and_then(Path::to_str) else {
        return command.replace(&*device.to_string_lossy(), "DEVICE");
    };
    // One name may be the beginning of the other.
    let plain = |word: String| match word.strip_suffix(log).filter(|begins| begins.ends_with('=')) {
        Some(begins) => format!("{begins}LOG"),
        None if Path::new(&word) == device => "DEVICE".to_owned(),
        None => word,
    };
    let words: Vec<String> = shlex::split(command).unwrap_or_default().into_iter().map(plain).collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mkfs_and_mount_are_told_where_the_log_is() {
        let of = |fs: Filesystem| {
            let mut settings = TargetSettings::default();
            settings.set("mkfs", "-K", Path::new("/")).unwrap();
            let settings = named(&settings, fs.descriptor().log_device.unwrap(), Path::new("/dev/loop1"));
            format!("{}; {}", settings.mkfs.join(" "), settings.mount.join(","))
        };
        assert_eq!(of(Filesystem::Xfs), "-K -l logdev=/dev/loop1; logdev=/dev/loop1");
        assert_eq!(of(Filesystem::Ext4), "-K -J device=/dev/loop1; ");
    }

    #[test]
    fn commands_have_no_numbers_of_devices() {
        let shown = |command: &str, device: &str, log: Option<&str>| {
            without_names(command, Path::new(device), log.map(Path::new))
        };
        let command = "mkfs.xfs -l 'logdev=/dev/loop1' /dev/loop10";
        assert_eq!(shown(command, "/dev/loop10", Some("/dev/loop1")), "mkfs.xfs -l 'logdev=LOG' DEVICE");
        let command = "mkfs.ext4 -J 'device=/dev/loop10' /dev/loop1";
        assert_eq!(shown(command, "/dev/loop1", Some("/dev/loop10")), "mkfs.ext4 -J 'device=LOG' DEVICE");
        assert_eq!(shown("mkfs.ext4 /dev/loop1", "/dev/loop1", None), "mkfs.ext4 DEVICE");
    }

    #[test]
    fn blocks_are_as_large_as_mkfs_makes_them() {
        assert_eq!(blocks_in("Creating filesystem with 317440 1k blocks and 79248 inodes\n"), Some(1024));
        assert_eq!(blocks_in("x\nSuperblock backups stored on blocks: \n with 9 64k blocks"), Some(65536));
        assert_eq!((blocks_in(""), blocks_in("Superblock backups stored on blocks: ")), (None, None));
        if mkfs::obstacle(Filesystem::Ext4).is_some() {
            assert!(std::env::var_os("CI").is_none(), "no mkfs.ext4, and CI skips nothing");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let asked = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            block_bytes(Filesystem::Ext4, &words, &image)
        };
        assert_eq!(asked(&["-q", "-b", "2048"]).unwrap(), 2048);
        assert!(asked(&["-Z"]).unwrap_err().to_string().contains("invalid option"));
    }
}
