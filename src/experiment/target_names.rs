//! The names of a target's settings, and what somebody may have meant by another one.
//!
//! Enters: a key as typed. Leaves: the setting it names, or the nearest one. What a value may be is not known here.

use crate::workload::nearest;

/// Keys that are not `sysfs:PATH`.
pub const TARGET_KEYS: [&str; 19] = [
    "device",
    "fs",
    "mkfs",
    "mount",
    "extsize",
    "state",
    "fresh",
    "scheduler",
    "nr_requests",
    "read_ahead",
    "kernel",
    "source",
    "rev",
    "patch",
    "config",
    "cpus",
    "memory",
    "kernel_args",
    "modules",
];

/// Names that other tools have for these settings, or that people say.
const OTHER_NAMES: [(&str, &str); 23] = [
    ("filesystem", "fs"),
    ("filesys", "fs"),
    ("fstype", "fs"),
    ("mkfs_options", "mkfs"),
    ("mount_options", "mount"),
    ("dev", "device"),
    ("disk", "device"),
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

/// The name under which a key is known, aliases replaced; `None`: no setting of a target.
#[must_use]
pub fn target_key(key: &str) -> Option<String> {
    let known = TARGET_KEYS.iter().find(|known| **known == key).map(|known| (*known).to_owned());
    known.or_else(|| match key {
        "read_ahead_kb" => Some("read_ahead".to_owned()),
        _ => key.strip_prefix("sysfs:").map(|path| match path.strip_prefix("queue/") {
            Some("scheduler") => "scheduler".to_owned(),
            Some("nr_requests") => "nr_requests".to_owned(),
            Some("read_ahead_kb") => "read_ahead".to_owned(),
            _ => key.to_owned(),
        }),
    })
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
    match nearest_target_key(key) {
        Some(near) => format!("no setting of a target is called {key}; did you mean {near}?"),
        None => format!("no setting of a target is called {key}; there are {}", TARGET_KEYS.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(unknown_target_key("colour_of_the_sky").contains("there are device, fs, mkfs"));
    }
}
