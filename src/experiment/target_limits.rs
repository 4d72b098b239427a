//! What settings of a target cannot be: levels that no machine can have, and keys that contradict each other.
//!
//! Enters: [`TargetSettings`]. Leaves: sentences. A level that is impossible is skipped beside others; what contradicts itself is refused.

use std::path::Path;

use super::device_spec::Device;
use super::target_settings::{FileState, TargetSettings};
use crate::catalog::{Filesystem, Smallest};

impl TargetSettings {
    /// What no machine can do, so that trials of it are skipped with this reason; other levels may go on.
    #[must_use]
    pub fn impossible(&self) -> Option<String> {
        let unhinted = self.fs.filter(|fs| self.extsize.is_some() && !fs.descriptor().has_extent_size_hint);
        let hint = unhinted.map(|fs| {
            let others = Filesystem::with_extent_size_hints().join(" and ");
            format!("{} has no extent-size hint, only {others} has one", fs.name())
        });
        hint.or_else(|| self.unscheduled())
    }

    /// A scheduler where there is nothing to schedule.
    #[must_use]
    pub fn unscheduled(&self) -> Option<String> {
        let Some(Device::Made { kind, .. }) = &self.device else { return None };
        let scheduler = self.knobs.iter().find(|knob| knob.path == "queue/scheduler")?;
        let name = kind.name();
        (!kind.has_queue() && scheduler.value != "none")
            .then(|| format!("scheduler={}: {name} has no queue of requests to schedule", scheduler.value))
    }

    /// A guest has none of the host's files and devices; the host has none of a guest's.
    fn guest_and_device(&self) -> Option<String> {
        self.devices().find_map(|device| self.guest_and(device))
    }

    fn guest_and(&self, device: &Device) -> Option<String> {
        match (self.is_elsewhere(), device) {
            (true, Device::File(path) | Device::Block(path) | Device::Directory(path)) => Some(format!(
                "{} is this machine's, and a guest does not have it; write e.g. --target virtio_blk:1g",
                path.display()
            )),
            (false, Device::Made { kind, .. }) if kind.only_in_guests() => Some(format!(
                "{} is a disk of guests; give a kernel to boot one: --target kernel=FILE",
                kind.name()
            )),
            _ => None,
        }
    }

    /// A device on which mkfs would not make this filesystem, unless it is told to: why, and the limit. Whether the mkfs that is
    /// here has this limit yet is not known here, nor is the size of a named device: `size_of` tells its bytes.
    #[must_use]
    pub fn too_small(&self, size_of: impl Fn(&Path) -> Option<u64>) -> Option<(String, Smallest)> {
        let fs = self.fs?;
        let smallest = fs.mkfs()?.smallest?;
        let least = smallest.bytes >> 20;
        let (bytes, place, instead) = match self.device.as_ref()? {
            Device::Made { kind, bytes, .. } => {
                (*bytes, kind.name().to_owned(), format!("write {}:{least}m or more", kind.name()))
            }
            Device::Block(path) => {
                (size_of(path)?, path.display().to_string(), "name a larger one".to_owned())
            }
            Device::Directory(_) | Device::File(_) => return None,
        };
        let lifts = |word: &String| smallest.unless.is_empty() || smallest.unless.contains(&word.as_str());
        let lifted = self.mkfs.iter().any(lifts);
        (bytes < smallest.bytes && !lifted).then(|| {
            let (row, mebibytes) = (fs.descriptor(), bytes >> 20);
            let reason = format!(
                "fs={} on {place} of {mebibytes} MiB: {} needs {least} MiB at least; {instead}",
                row.name, row.title
            );
            (reason, smallest)
        })
    }

    /// A log on a device, where the filesystem has none or where that is its own.
    fn log_nowhere(&self) -> Option<String> {
        let log = self.log.as_ref()?;
        let Some(fs) = self.fs else { return Some("log is given, but no fs".to_owned()) };
        if fs.descriptor().log_device.is_none() {
            let others = Filesystem::with_log_devices().join(" and ");
            return Some(format!(
                "log={log}: {} has no log on another device, only {others} have one",
                fs.name()
            ));
        }
        let is_same = matches!(log, Device::Block(_)) && self.device.as_ref() == Some(log);
        is_same.then(|| format!("log={log} is the device of the filesystem itself; write log=internal"))
    }

    /// What the device mapper would make, with nothing below it.
    fn mapped_nowhere(&self) -> Option<String> {
        let dm = self.dm.as_ref()?;
        match self.device {
            Some(Device::Block(_) | Device::Made { .. }) => None,
            Some(Device::Directory(_) | Device::File(_)) => Some(format!(
                "dm={dm} is put on a device, not on a file or directory; write e.g. --target loop:1g"
            )),
            None => Some(format!("dm={dm} needs a device: --target loop:1g, or /dev/X with --destroy")),
        }
    }

    /// What does not fit together.
    #[must_use]
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = self.guest.contradictions();
        found.extend(self.guest_and_device());
        found.extend(self.log_nowhere());
        found.extend(self.mapped_nowhere());
        let fs = self.fs.map_or("", Filesystem::name);
        let path_only = matches!(self.device, Some(Device::Directory(_) | Device::File(_)));
        match self.fs {
            None if !self.mkfs.is_empty() => found.push("mkfs is given, but no fs".to_owned()),
            None if !self.mount.is_empty() => found.push("mount is given, but no fs".to_owned()),
            None if self.extsize.is_some() => found.push(
                "extsize is given, but no fs; files in a directory of your own inherit the hint that \
                 `xfs_io -c 'extsize 1m' DIR` sets on it"
                    .to_owned(),
            ),
            None => {}
            Some(_) if self.is_in_memory() && !self.mkfs.is_empty() => {
                found.push(format!("{fs} has no mkfs; its size and the like are mount options"));
            }
            Some(_) if self.is_in_memory() && matches!(self.device, Some(Device::Block(_))) => {
                found.push(format!("{fs} lies in memory and would not use the device; name no device"));
            }
            Some(_) if path_only => found.push(format!(
                "fs={fs} is made on a device, not in a file or directory; write e.g. --target loop:1g"
            )),
            Some(_) if self.is_in_memory() || self.device.is_some() => {}
            Some(_) => {
                found.push(format!("fs={fs} needs a device: --target loop:1g, or /dev/X with --destroy"));
            }
        }
        if self.fresh.is_some() && !self.makes() {
            found.push("fresh is given, but no device and no filesystem is made".to_owned());
        }
        if self.state == Some(FileState::Allocate) && self.makes() && self.fs.is_none() {
            found
                .push("state=allocate is a file's; a device has no unwritten blocks of that kind".to_owned());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::target_settings::of_pairs as of;

    #[test]
    fn a_hint_is_xfss_alone() {
        let settings =
            |fs: &str, hint: &str| of(&[("fs", fs), ("device", "loop:1g"), ("extsize", hint)]).unwrap();
        assert_eq!(settings("xfs", "1m").impossible(), None);
        assert_eq!(settings("ext4", "default").impossible(), None);
        assert_eq!((settings("xfs", "64k").extsize, settings("xfs", "0").extsize), (Some(65536), None));
        let f2fs = settings("f2fs", "1m");
        assert_eq!(f2fs.impossible().unwrap(), "f2fs has no extent-size hint, only XFS has one");
        assert_eq!(f2fs.contradictions(), Vec::<String>::new(), "a level beside others that have it");
        assert!(
            f2fs.described().contains(&"skipped: f2fs has no extent-size hint, only XFS has one".to_owned())
        );
    }

    #[test]
    fn a_device_without_requests_has_no_scheduler() {
        let said = |device: &str, name: &str| {
            of(&[("device", device), ("scheduler", name)]).unwrap().impossible().unwrap_or_default()
        };
        assert_eq!(said("zram:64m", "bfq"), "scheduler=bfq: zram has no queue of requests to schedule");
        assert_eq!(
            [said("zram:64m", "none"), said("loop:64m", "bfq"), said("null_blk:1g", "kyber")],
            ["", "", ""]
        );
        assert!(
            said("ram:64m", "kyber").contains("ram has no queue") && said("pmem:64m", "bfq").contains("pmem")
        );
    }

    #[test]
    fn devices_below_the_smallest_size_are_found() {
        let found = |pairs: &[(&str, &str)]| of(pairs).unwrap().too_small(|_| Some(64 << 20));
        let (reason, limit) = found(&[("fs", "xfs"), ("device", "loop:299m")]).unwrap();
        assert!(reason.contains("XFS needs 300 MiB at least"), "{reason}");
        assert_eq!(limit.since, (5, 19));
        assert!(found(&[("fs", "xfs"), ("device", "loop:300m")]).is_none());
        assert!(found(&[("fs", "xfs"), ("device", "loop:64m"), ("mkfs", "--unsupported")]).is_none());
        assert!(found(&[("fs", "ext4"), ("device", "loop:64m")]).is_none());
        assert!(found(&[("device", "loop:64m")]).is_none());
        let (reason, _) = found(&[("fs", "btrfs"), ("device", "loop:108m")]).unwrap();
        assert!(reason.contains("btrfs needs 109 MiB at least"), "{reason}");
        assert!(found(&[("fs", "btrfs"), ("device", "loop:109m")]).is_none());
        assert!(found(&[("fs", "btrfs"), ("device", "loop:64m"), ("mkfs", "--mixed")]).is_none());
        let (reason, _) = found(&[("fs", "xfs"), ("device", "/dev/nowhere")]).unwrap();
        assert_eq!(reason, "fs=xfs on /dev/nowhere of 64 MiB: XFS needs 300 MiB at least; name a larger one");
    }

    #[test]
    fn a_log_is_of_a_filesystem_that_can_have_it() {
        let said = |pairs: &[(&str, &str)]| of(pairs).unwrap().contradictions().join("; ");
        for fs in ["xfs", "ext4"] {
            assert_eq!(said(&[("fs", fs), ("device", "loop:1g"), ("log", "zram:128m")]), "");
        }
        let btrfs = said(&[("fs", "btrfs"), ("device", "loop:1g"), ("log", "loop:128m")]);
        assert_eq!(btrfs, "log=loop:128m: btrfs has no log on another device, only XFS and ext4 have one");
        assert_eq!(said(&[("fs", "btrfs"), ("device", "loop:1g"), ("log", "internal")]), "");
        assert_eq!(said(&[("log", "loop:1g")]), "log is given, but no fs");
        let same = said(&[("fs", "xfs"), ("device", "/dev/no"), ("log", "/dev/no")]);
        assert!(same.starts_with("log=/dev/no is the device of the filesystem itself"), "{same}");
        let mut guest = of(&[("fs", "xfs"), ("device", "loop:1g"), ("log", "/dev/no")]).unwrap();
        guest.guest.kernel = Some("/boot/vmlinuz".into());
        assert!(guest.contradictions()[0].starts_with("/dev/no is this machine's"));
    }

    #[test]
    fn a_mapping_needs_a_device_below() {
        let said = |pairs: &[(&str, &str)]| of(pairs).unwrap().contradictions().join("; ");
        assert_eq!(said(&[("dm", "crypt"), ("device", "loop:1g")]), "");
        assert_eq!(said(&[("dm", "none")]), "");
        assert_eq!(
            said(&[("dm", "crypt"), ("device", "loop:1g"), ("fs", "tmpfs")]),
            "",
            "a level beside xfs"
        );
        assert!(said(&[("dm", "crypt")]).starts_with("dm=crypt needs a device"));
        assert!(
            said(&[("dm", "delay:ms=1"), ("device", "/")]).starts_with("dm=delay:ms=1 is put on a device")
        );
        assert!(of(&[("dm", "luks")]).unwrap_err().contains("linear, crypt, delay"));
        assert_ne!(of(&[("dm", "crypt")]).unwrap().stack(), of(&[]).unwrap().stack(), "made anew for each");
    }

    #[test]
    fn contradictions_are_found() {
        let said = |pairs: &[(&str, &str)]| of(pairs).unwrap().contradictions().join("; ");
        assert_eq!(said(&[("fs", "xfs"), ("device", "loop:1g"), ("fresh", "run")]), "");
        assert_eq!(said(&[("fs", "tmpfs"), ("device", "loop:1g")]), "", "a level beside xfs");
        assert!(said(&[("fs", "xfs")]).contains("needs a device"));
        assert!(said(&[("fs", "xfs"), ("device", "/")]).contains("made on a device"));
        assert!(said(&[("mkfs", "-K")]).contains("no fs"));
        assert!(said(&[("fresh", "run")]).contains("no device"));
        assert!(said(&[("extsize", "1m")]).contains("but no fs"));
        assert!(said(&[("device", "loop:1g"), ("state", "allocate")]).contains("a device has no"));
    }
}
