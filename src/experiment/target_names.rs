//! The names of a target's settings, and what somebody may have meant by another one.
//!
//! Enters: a key as typed. Leaves: the setting it names, or the nearest one. What a value may be is not known here.

use crate::catalog::Filesystem;
use crate::workload::nearest;

/// Keys that are not `sysfs:PATH`.
pub const TARGET_KEYS: [&str; 21] = [
    "device", "dm", "fs", "mkfs", "mount", "log", "extsize", "state", "fresh", "scheduler", "nr_requests",
    "read_ahead", "kernel", "source", "rev", "patch", "config", "cpus", "memory", "kernel_args", "modules",
];

/// Names that other tools have for these settings, or that people say.
const OTHER_NAMES: [(&str, &str); 30] = [
    ("filesystem", "fs"),
    ("filesys", "fs"),
    ("fstype", "fs"),
    ("mkfs_options", "mkfs"),
    ("mount_options", "mount"),
    ("dev", "device"),
    ("disk", "device"),
    ("device_mapper", "dm"),
    ("dmsetup", "dm"),
    ("luks", "dm"),
    ("crypt", "dm"),
    ("dm_crypt", "dm"),
    ("logdev", "log"),
    ("journal_device", "log"),
    ("extent_size", "extsize"),
    ("files", "state"),
    ("elevator", "scheduler"),
    ("iosched", "scheduler"),
    ("ioscheduler", "scheduler"),
    ("sched", "scheduler"),
    ("queue_depth", "nr_requests"),
    ("readahead", "read_ahead"),
    ("mem", "memory"),
    ("cmdline", "kernel_args"),
    ("append", "kernel_args"),
    ("tree", "source"),
    ("git", "source"),
    ("revision", "rev"),
    ("commit", "rev"),
    ("kconfig", "config"),
];

/// What the names of sysctl(8) begin with.
const SYSCTLS: [&str; 4] = ["vm", "fs", "kernel", "dev"];

/// The name under which a key is known, aliases replaced; `None`: no setting of a target.
#[must_use]
pub fn target_key(key: &str) -> Option<String> {
    let known = TARGET_KEYS.iter().find(|known| **known == key).map(|known| (*known).to_owned());
    known
        .or_else(|| match key {
            "read_ahead_kb" => Some("read_ahead".to_owned()),
            _ => key.strip_prefix("sysfs:").map(|path| match path.strip_prefix("queue/") {
                Some("scheduler") => "scheduler".to_owned(),
                Some("nr_requests") => "nr_requests".to_owned(),
                Some("read_ahead_kb") => "read_ahead".to_owned(),
                _ => key.to_owned(),
            }),
        })
        .or_else(|| of_sysctl(key))
        .or_else(|| of_one_filesystem(key).map(|_| key.to_owned()))
}

/// The setting that sysctl(8) calls so: `vm.dirty_ratio` is `sysfs:/proc/sys/vm/dirty_ratio`.
fn of_sysctl(key: &str) -> Option<String> {
    let (first, _) = key.split_once('.')?;
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let is_one = SYSCTLS.contains(&first) && key.split('.').all(plain);
    is_one.then(|| format!("sysfs:/proc/sys/{}", key.replace('.', "/")))
}

/// Keys that there are for one filesystem, too: `mkfs.xfs`.
const FOR_ONE: [&str; 2] = ["mkfs", "mount"];

/// `mount` and XFS of `mount.xfs`; `None`: the key is not for one filesystem alone.
#[must_use]
pub fn of_one_filesystem(key: &str) -> Option<(&'static str, Filesystem)> {
    let (all, fs) = key.split_once('.')?;
    Some((FOR_ONE.into_iter().find(|known| *known == all)?, Filesystem::named(fs)?))
}

/// Says that the filesystem of `mkfs.zfs` is none that assay makes; `None`: that is not what is wrong with the key.
#[must_use]
pub fn of_no_filesystem(key: &str) -> Option<String> {
    let (all, fs) = key.split_once('.').filter(|(all, _)| FOR_ONE.contains(all))?;
    let names =
        || Filesystem::names().iter().map(|name| format!("{all}.{name}")).collect::<Vec<_>>().join(", ");
    Filesystem::named(fs).is_none().then(|| format!("{key}: assay makes no {fs}; write one of {}", names()))
}

/// The setting that was probably meant by a key that names none.
#[must_use]
pub fn nearest_target_key(key: &str) -> Option<&'static str> {
    let all: Vec<(&'static str, &'static str)> =
        TARGET_KEYS.iter().map(|key| (*key, *key)).chain(OTHER_NAMES.iter().copied()).collect();
    let near = *nearest(key, all.iter().map(|(name, _)| *name), 1).first()?;
    all.iter().find(|(name, _)| *name == near).map(|(_, key)| *key)
}

/// Says that `key` is no setting, with the nearest one or all of them.
pub(super) fn unknown_target_key(key: &str) -> String {
    if let Some(said) = of_no_filesystem(key) {
        return said;
    }
    match nearest_target_key(key) {
        Some(near) => format!("no setting of a target is called {key}; did you mean {near}?"),
        None => format!("no setting of a target is called {key}; there are {}", TARGET_KEYS.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_the_kernel_may_be_called_as_by_sysctl() {
        let path = |key: &str| target_key(key);
        assert_eq!(path("vm.dirty_ratio").as_deref(), Some("sysfs:/proc/sys/vm/dirty_ratio"));
        assert_eq!(path("fs.aio-max-nr").as_deref(), Some("sysfs:/proc/sys/fs/aio-max-nr"));
        for other in ["wal.bs", "vm", "vm.", "vm..x", "vm./x", "vm.a/../b", "dbench.clients"] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    #[test]
    fn the_nearest_setting_is_found_also_by_other_names() {
        for (typed, meant) in [
            ("filesystem", "fs"),
            ("schedular", "scheduler"),
            ("Mount", "mount"),
            ("readahead", "read_ahead"),
        ] {
            assert_eq!(nearest_target_key(typed), Some(meant), "{typed}");
        }
        assert_eq!(nearest_target_key("colour_of_the_sky"), None);
        assert!(unknown_target_key("colour_of_the_sky").contains("there are device, dm, fs, mkfs"));
    }
}
