//! What a trial writes to, as written behind `--target` or `device=`: a path, or `loop:1g` and its like.
//!
//! Enters: the text. Leaves: a [`Device`]. Only what kind of thing a named path is gets looked up; whether the kernel
//! offers a device and whether it may be written to is `target`'s to say.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::units::parse_bytes;
use crate::workload::nearest;

/// A kind of block device that assay makes, or takes from those the kernel was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A loop device on a file in the work directory.
    Loop,
    /// Compressed memory.
    Zram,
    /// brd, the kernel's ramdisk.
    Ram,
    /// Persistent memory, or memory set aside as such with `memmap=`.
    Pmem,
    /// null_blk.
    NullBlk,
    /// scsi_debug.
    ScsiDebug,
    /// A guest's disk, a file of the host behind virtio-blk.
    VirtioBlk,
    /// The same behind an emulated NVMe controller.
    Nvme,
}

/// Kinds with their names, the size when none is given, and the options each has; an empty list: any name, which the
/// driver judges.
const KINDS: [(DeviceKind, &str, Option<u64>, &[&str]); 8] = [
    (DeviceKind::Loop, "loop", None, &["direct_io", "block_size", "fallocate"]),
    (DeviceKind::Zram, "zram", None, &["algorithm"]),
    (DeviceKind::Ram, "ram", None, &["none"]),
    (DeviceKind::Pmem, "pmem", None, &["none"]),
    (DeviceKind::NullBlk, "null_blk", Some(4 << 30), &[]),
    (DeviceKind::ScsiDebug, "scsi_debug", Some(256 << 20), &[]),
    (DeviceKind::VirtioBlk, "virtio_blk", None, &["cache"]),
    (DeviceKind::Nvme, "nvme", None, &["cache"]),
];
/// What the emulator does with what is written to a guest's disk: `cache=` of qemu's `-drive`; the first where nothing is said.
pub const CACHES: [&str; 5] = ["none", "writeback", "writethrough", "directsync", "unsafe"];
/// Smaller than this holds no filesystem and no job.
const SMALLEST: u64 = 64 << 10;

impl DeviceKind {
    /// All.
    pub const ALL: [DeviceKind; 8] = [
        DeviceKind::Loop,
        DeviceKind::Zram,
        DeviceKind::Ram,
        DeviceKind::Pmem,
        DeviceKind::NullBlk,
        DeviceKind::ScsiDebug,
        DeviceKind::VirtioBlk,
        DeviceKind::Nvme,
    ];

    /// Whether it is part of the machine a guest is given, so that it is nowhere else.
    #[must_use]
    pub fn only_in_guests(self) -> bool {
        matches!(self, DeviceKind::VirtioBlk | DeviceKind::Nvme)
    }

    /// Whether its driver takes requests from a queue, which a scheduler can put in another order; the others take bios as they
    /// come.
    #[must_use]
    pub fn has_queue(self) -> bool {
        !matches!(self, DeviceKind::Zram | DeviceKind::Ram | DeviceKind::Pmem)
    }

    /// Whether it is made of memory alone: no I/O to a disk is in its way.
    #[must_use]
    pub fn is_in_memory(self) -> bool {
        !matches!(self, DeviceKind::Loop) && !self.only_in_guests()
    }

    /// The name as written.
    #[must_use]
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, ..)| name)
    }
}

/// What a trial writes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// Below this directory.
    Directory(PathBuf),
    /// This file.
    File(PathBuf),
    /// This block device; it must be named with `--destroy`, too.
    Block(PathBuf),
    /// One of assay's making.
    Made {
        /// Which.
        kind: DeviceKind,
        /// Its size.
        bytes: u64,
        /// `name=value` options of the kind, in the order given.
        options: Vec<(String, String)>,
    },
}

impl Device {
    /// Reads `DIRECTORY`, `FILE`, `/dev/X` or `KIND:SIZE[:OPTION=VALUE…]`; relative paths are below `base`.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub fn parse(text: &str, base: &Path) -> Result<Device, String> {
        let mut parts = text.split(':');
        let first = parts.next().unwrap_or_default();
        if let Some((kind, name, usual, known)) = KINDS.iter().find(|(_, name, ..)| *name == first) {
            return made(*kind, name, *usual, known, parts);
        }
        let path = base.join(text);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Device::Directory(path)),
            Ok(found) if std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type()) => {
                Ok(Device::Block(path))
            }
            Ok(_) => Ok(Device::File(path)),
            // A device that is not there (yet) is refused where it is looked for, by its name.
            Err(_) if path.starts_with("/dev") => Ok(Device::Block(path)),
            Err(_) if path.parent().is_some_and(Path::is_dir) && !looks_like_kind(text) => {
                Ok(Device::File(path))
            }
            Err(error) => Err(no_such(text, first, &error)),
        }
    }

    /// Reads what a filesystem's log is on: a device that is made by itself, or one that is there; `None`: where the filesystem is.
    ///
    /// # Errors
    /// As [`Device::parse`], and what is no such device.
    pub(super) fn parse_log(text: &str, base: &Path) -> Result<Option<Device>, String> {
        if matches!(text, "internal" | "none" | "default" | "") {
            return Ok(None);
        }
        let device = Device::parse(text, base).map_err(|error| format!("log: {error}"))?;
        match device {
            Device::Block(_) | Device::Made { kind: DeviceKind::Loop | DeviceKind::Zram, .. } => {
                Ok(Some(device))
            }
            // The others are taken by their size, or made by a module that is loaded once.
            _ => Err(format!("log={text}: write loop:SIZE, zram:SIZE, /dev/X with --destroy, or internal")),
        }
    }

    /// Bytes that are allocated when it is made; 0: as they are written.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        match self {
            Device::Made { kind: DeviceKind::Loop, bytes, options } => {
                let asked = options.iter().rfind(|(name, _)| name == "fallocate");
                asked.filter(|(_, value)| value == "1").map_or(0, |_| *bytes)
            }
            _ => 0,
        }
    }

    /// One of [`CACHES`], of a guest's disk.
    #[must_use]
    pub fn cache(&self) -> Option<&str> {
        match self {
            Device::Made { kind, options, .. } if kind.only_in_guests() => {
                let given = options.iter().find(|(name, _)| name == "cache");
                Some(given.map_or(CACHES[0], |(_, value)| value.as_str()))
            }
            _ => None,
        }
    }
}

/// `lop:1g` is a misspelt kind, not a file of that name.
fn looks_like_kind(text: &str) -> bool {
    text.contains(':') && !text.contains('/')
}

fn no_such(text: &str, first: &str, error: &std::io::Error) -> String {
    let names = KINDS.map(|(_, name, ..)| name);
    match nearest(first, names, 1).first().filter(|_| looks_like_kind(text)) {
        Some(near) => format!("no device '{text}'; did you mean {near}:SIZE?"),
        None if looks_like_kind(text) => {
            format!("no device '{text}'; write a path, or one of {} with :SIZE", names.join(", "))
        }
        None => format!("{text}: {error}"),
    }
}

fn made<'t>(
    kind: DeviceKind,
    name: &str,
    usual: Option<u64>,
    known: &[&str],
    parts: impl Iterator<Item = &'t str>,
) -> Result<Device, String> {
    let mut bytes = usual;
    let mut options = Vec::new();
    for (at, part) in parts.enumerate() {
        match part.split_once('=') {
            Some((option, value)) => {
                let option = option.trim();
                let fits = option.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if option.is_empty() || !fits || value.is_empty() {
                    return Err(format!("'{part}' is not an option of {name}; write OPTION=VALUE"));
                }
                if !known.is_empty() && !known.contains(&option) {
                    return Err(match known {
                        ["none"] => format!("{name} has no options, so no {option}"),
                        _ => format!("{name} has no option '{option}'; it has {}", known.join(", ")),
                    });
                }
                if kind.only_in_guests() && option == "cache" && !CACHES.contains(&value) {
                    return Err(format!("{name} has no cache={value}; write one of {}", CACHES.join(", ")));
                }
                options.push((option.to_owned(), value.to_owned()));
            }
            None if at == 0 => {
                bytes = Some(parse_bytes(part, 1024).map_err(|error| format!("{name}: {error}"))?);
            }
            None => return Err(format!("'{part}' behind {name} is not an option; write OPTION=VALUE")),
        }
    }
    let Some(bytes) = bytes else { return Err(format!("{name} needs a size; write e.g. {name}:1g")) };
    // Both are told their size in MiB, and would be of another one.
    if matches!(kind, DeviceKind::NullBlk | DeviceKind::ScsiDebug) && !bytes.is_multiple_of(1 << 20) {
        return Err(format!("{name}: {bytes} bytes; write a multiple of 1m"));
    }
    if bytes < SMALLEST || !bytes.is_multiple_of(4096) {
        return Err(format!("{name}: {bytes} bytes; write a multiple of 4k from 64k on"));
    }
    Ok(Device::Made { kind, bytes, options })
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Directory(path) | Device::File(path) | Device::Block(path) => {
                write!(f, "{}", path.display())
            }
            Device::Made { kind, bytes, options } => {
                write!(f, "{}:{}", kind.name(), short_size(*bytes))?;
                options.iter().try_for_each(|(name, value)| write!(f, ":{name}={value}"))
            }
        }
    }
}

/// `256m`: the largest unit in which the size is whole.
fn short_size(bytes: u64) -> String {
    let units = [(1 << 40, "t"), (1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
    let fits = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fits.map_or_else(|| bytes.to_string(), |(unit, letter)| format!("{}{letter}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Device, String> {
        Device::parse(text, Path::new("/"))
    }

    #[test]
    fn kinds_are_written_with_size_and_options() {
        let options = vec![("direct_io".to_owned(), "0".to_owned())];
        let device = Device::Made { kind: DeviceKind::Loop, bytes: 256 << 20, options };
        assert_eq!(parse("loop:256m:direct_io=0").unwrap(), device);
        assert_eq!(device.to_string(), "loop:256m:direct_io=0");
        let allocated = |text: &str| parse(text).unwrap().allocated_bytes();
        assert_eq!(["loop:1m:fallocate=1", "loop:1m:fallocate=0", "loop:1m"].map(allocated), [1 << 20, 0, 0]);
        assert_eq!(parse("null_blk").unwrap().to_string(), "null_blk:4g");
        assert_eq!(parse("null_blk:irqmode=2").unwrap().to_string(), "null_blk:4g:irqmode=2");
    }

    #[test]
    fn a_log_is_on_a_device_or_with_the_filesystem() {
        let log = |text: &str| Device::parse_log(text, Path::new("/"));
        assert_eq!(log("loop:128m").unwrap(), Some(parse("loop:128m").unwrap()));
        assert_eq!(log("/dev/nowhere").unwrap(), Some(Device::Block("/dev/nowhere".into())));
        assert_eq!((log("internal").unwrap(), log("default").unwrap()), (None, None));
        for (text, words) in [
            ("external", "log=external: write loop:SIZE, zram:SIZE, /dev/X with --destroy, or internal"),
            ("ram:64m", "log=ram:64m: write loop:SIZE"),
            ("/tmp", "log=/tmp: write loop:SIZE"),
            ("loop", "log: loop needs a size"),
        ] {
            let message = log(text).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn paths_are_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| Device::parse(name, directory.path());
        assert_eq!(at(".").unwrap(), Device::Directory(directory.path().join(".")));
        assert_eq!(at("new").unwrap(), Device::File(directory.path().join("new")));
        assert_eq!(at("/dev/nowhere").unwrap(), Device::Block("/dev/nowhere".into()));
        assert!(at("a/b/c").unwrap_err().contains("No such file"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("loop", "loop needs a size; write e.g. loop:1g"),
            ("lop:1g", "did you mean loop:SIZE?"),
            ("tape:1g", "write a path, or one of loop, zram"),
            ("loop:1q", "'q' in '1q' is not a size unit"),
            ("loop:1g:dio=1", "loop has no option 'dio'; it has direct_io, block_size"),
            ("ram:1g:x=1", "ram has no options, so no x"),
            ("nvme:1g:cache=bogus", "nvme has no cache=bogus; write one of none, writeback, writethrough,"),
            ("zram:5000", "a multiple of 4k"),
            ("null_blk:64k", "null_blk: 65536 bytes; write a multiple of 1m"),
            ("null_blk:1500k", "a multiple of 1m"),
            ("scsi_debug:1500k", "a multiple of 1m"),
            ("zram:1g:fast", "'fast' behind zram is not an option"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
