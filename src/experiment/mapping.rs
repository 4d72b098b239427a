//! What the kernel's device mapper puts between a device and what is on it, as written behind `dm=`: `crypt:no_read_workqueue`.
//!
//! Enters: the text. Leaves: a [`Mapping`], and the arguments of its table (Linux's Documentation/admin-guide/device-mapper). Whether
//! the running kernel has the target is not known here.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::workload::nearest;

/// A target of the device mapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MapTarget {
    /// Every sector where it is: what the mapper itself takes.
    Linear,
    /// Encrypted, as LUKS does it.
    Crypt,
    /// Each request held back for a time.
    Delay,
}

/// How a target is written, and what it needs.
struct Row {
    target: MapTarget,
    name: &'static str,
    /// As it is asked for.
    key: &'static str,
    module: &'static str,
    /// Modules that a guest's kernel may need beside it.
    guest_modules: &'static [&'static str],
    /// Options that have a value.
    values: &'static [&'static str],
    /// Options that have none: words of the kernel's own.
    words: &'static [&'static str],
}

const ROWS: [Row; 3] = [
    Row {
        target: MapTarget::Linear,
        name: "linear",
        key: "dm=linear",
        module: "dm_mod",
        guest_modules: &[],
        values: &[],
        words: &[],
    },
    Row {
        target: MapTarget::Crypt,
        name: "crypt",
        key: "dm=crypt",
        module: "dm_crypt",
        guest_modules: &[
            "aesni_intel", "aes_x86_64", "aes_generic", "xts", "cbc", "ecb", "essiv", "sha256_ssse3",
            "sha256_generic",
        ],
        values: &["cipher", "key_bytes", "sector_size"],
        words: &[
            "no_read_workqueue", "no_write_workqueue", "same_cpu_crypt", "submit_from_crypt_cpus",
            "high_priority", "allow_discards",
        ],
    },
    Row {
        target: MapTarget::Delay,
        name: "delay",
        key: "dm=delay",
        module: "dm_delay",
        guest_modules: &[],
        values: &["ms", "write_ms", "flush_ms"],
        words: &[],
    },
];

/// What cryptsetup(8) takes where nothing is said.
const CIPHER: &str = "aes-xts-plain64";
/// Bytes of a key: XTS has two in one.
const KEY_BYTES: [usize; 2] = [64, 32];
/// The longest delay: a trial that waits longer is not what anybody means.
const MOST_MS: u32 = 10_000;

/// One target with its options.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mapping {
    target: MapTarget,
    /// `name=value`, or the name alone, in the order given; each once.
    options: Vec<(String, Option<String>)>,
}

impl Mapping {
    /// Reads `TARGET[:OPTION[=VALUE]…]`; `None`: nothing is put between.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub(super) fn parse(text: &str) -> Result<Option<Mapping>, String> {
        if matches!(text, "none" | "default" | "") {
            return Ok(None);
        }
        let mut parts = text.split(':');
        let first = parts.next().unwrap_or_default();
        let row = ROWS.iter().find(|row| row.name == first).ok_or_else(|| {
            let names = ROWS.map(|row| row.name);
            format!("dm={text}: write none or one of {}, with :OPTION", names.join(", "))
        })?;
        let mut mapping = Mapping { target: row.target, options: Vec::new() };
        for part in parts {
            let (name, value) =
                part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
            mapping.add(row, name, value).map_err(|wrong| format!("dm={text}: {wrong}"))?;
        }
        if mapping.target == MapTarget::Delay && mapping.value("ms").is_none() {
            return Err(format!("dm={text}: say for how long, e.g. delay:ms=2"));
        }
        Ok(Some(mapping))
    }

    fn add(&mut self, row: &Row, name: &str, value: Option<&str>) -> Result<(), String> {
        let known = if value.is_some() { row.values } else { row.words };
        if !known.contains(&name) {
            return Err(unknown_option(row, name, value.is_some()));
        }
        if self.options.iter().any(|(other, _)| other == name) {
            return Err(format!("{name} is given twice"));
        }
        if let Some(value) = value {
            check(name, value)?;
        }
        self.options.push((name.to_owned(), value.map(str::to_owned)));
        Ok(())
    }

    fn cipher(&self) -> &str {
        self.value("cipher").unwrap_or(CIPHER)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name)?.1.as_deref()
    }

    /// One of each target.
    #[must_use]
    pub fn examples() -> [Mapping; 3] {
        ROWS.map(|row| Mapping { target: row.target, options: Vec::new() })
    }

    /// How one of its target is asked for: `dm=crypt`.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.row().key
    }

    /// The kernel's name of the target.
    #[must_use]
    pub fn target(&self) -> &'static str {
        self.row().name
    }

    /// The module that has it.
    #[must_use]
    pub fn module(&self) -> &'static str {
        self.row().module
    }

    /// Modules that a guest's kernel may need beside that.
    #[must_use]
    pub fn guest_modules(&self) -> &'static [&'static str] {
        self.row().guest_modules
    }

    fn row(&self) -> &'static Row {
        ROWS.iter().find(|row| row.target == self.target).unwrap_or(&ROWS[0])
    }

    /// Sectors of the mapped device are as large as this many bytes, or a divisor of it.
    #[must_use]
    pub fn sector_bytes(&self) -> u64 {
        self.value("sector_size").and_then(|bytes| bytes.parse().ok()).unwrap_or(512)
    }

    /// Bytes of the key that it wants; 0: none.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        match self.target {
            MapTarget::Crypt => {
                let usual = KEY_BYTES[usize::from(!self.cipher().contains("-xts-"))];
                self.value("key_bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(usual)
            }
            MapTarget::Linear | MapTarget::Delay => 0,
        }
    }

    /// The arguments of its table, with the device below and the key in them.
    #[must_use]
    pub fn arguments(&self, device: &Path, key: &str) -> String {
        let device = device.display();
        match self.target {
            MapTarget::Linear => format!("{device} 0"),
            MapTarget::Crypt => {
                let cipher = self.cipher();
                // Its initial vectors are encrypted with a hash of the key.
                let hash = if cipher.ends_with("-essiv") { ":sha256" } else { "" };
                let as_passed = |(name, value): &(String, Option<String>)| match (name.as_str(), value) {
                    (_, None) => Some(name.clone()),
                    ("sector_size", Some(bytes)) => Some(format!("sector_size:{bytes}")),
                    _ => None,
                };
                let passed: Vec<String> = self.options.iter().filter_map(as_passed).collect();
                let tail = if passed.is_empty() {
                    String::new()
                } else {
                    format!(" {} {}", passed.len(), passed.join(" "))
                };
                format!("{cipher}{hash} {key} 0 {device} 0{tail}")
            }
            MapTarget::Delay => {
                let ms = self.value("ms").unwrap_or("0");
                let writes = self.value("write_ms").unwrap_or(ms);
                let flushes = self.value("flush_ms").unwrap_or(writes);
                format!("{device} 0 {ms} {device} 0 {writes} {device} 0 {flushes}")
            }
        }
    }
}

fn unknown_option(row: &Row, name: &str, has_value: bool) -> String {
    let shown: Vec<String> = row
        .values
        .iter()
        .map(|name| format!("{name}=…"))
        .chain(row.words.iter().map(|name| (*name).to_owned()))
        .collect();
    let all = row.values.iter().chain(row.words).copied();
    match nearest(name, all, 1).first() {
        _ if shown.is_empty() => format!("{} has no options", row.name),
        Some(near) if *near == name && has_value => format!("{name} has no value"),
        Some(near) if *near == name => format!("{name} needs a value: {name}=…"),
        Some(near) => format!("{} has no option {name}; did you mean {near}?", row.name),
        None => format!("{} has no option {name}; there are {}", row.name, shown.join(", ")),
    }
}

/// What would be another word of the table, or another table, is none of these.
fn check(name: &str, value: &str) -> Result<(), String> {
    let number = value.parse::<u32>().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let right = match name {
        "cipher" => !value.is_empty() && value.chars().all(plain),
        "key_bytes" => number.is_some_and(|bytes| [16, 24, 32, 48, 64].contains(&bytes)),
        "sector_size" => number.is_some_and(|bytes| bytes.is_power_of_two() && (512..=4096).contains(&bytes)),
        _ => number.is_some_and(|ms| ms <= MOST_MS),
    };
    let wanted = match name {
        "cipher" => "a name like aes-xts-plain64",
        "key_bytes" => "16, 24, 32, 48 or 64",
        "sector_size" => "512, 1024, 2048 or 4096",
        _ => "whole milliseconds, 10000 at most",
    };
    if right { Ok(()) } else { Err(format!("{name}={value} is not {wanted}")) }
}

impl std::fmt::Display for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.target())?;
        self.options.iter().try_for_each(|(name, value)| match value {
            Some(value) => write!(f, ":{name}={value}"),
            None => write!(f, ":{name}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> String {
        let mapping = Mapping::parse(text).unwrap().unwrap();
        assert_eq!(mapping.to_string(), text);
        format!("{} {}", mapping.target(), mapping.arguments(Path::new("/dev/loop1"), "KEY"))
    }

    #[test]
    fn tables_are_those_of_the_kernels_documentation() {
        assert_eq!(table("linear"), "linear /dev/loop1 0");
        assert_eq!(table("crypt"), "crypt aes-xts-plain64 KEY 0 /dev/loop1 0");
        assert_eq!(
            table("crypt:no_read_workqueue:cipher=aes-cbc-essiv:key_bytes=32:sector_size=4096"),
            "crypt aes-cbc-essiv:sha256 KEY 0 /dev/loop1 0 2 no_read_workqueue sector_size:4096"
        );
        assert_eq!(table("delay:ms=2"), "delay /dev/loop1 0 2 /dev/loop1 0 2 /dev/loop1 0 2");
        assert_eq!(
            table("delay:ms=0:write_ms=5:flush_ms=9"),
            "delay /dev/loop1 0 0 /dev/loop1 0 5 /dev/loop1 0 9"
        );
        assert_eq!(Mapping::parse("none"), Ok(None));
        let of = |text: &str| Mapping::parse(text).unwrap().unwrap();
        assert_eq!(
            (
                of("crypt").key_bytes(),
                of("crypt:cipher=aes-cbc-plain64").key_bytes(),
                of("linear").key_bytes()
            ),
            (64, 32, 0)
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("luks", "write none or one of linear, crypt, delay"),
            ("delay", "say for how long, e.g. delay:ms=2"),
            ("delay:ms=2.5", "ms=2.5 is not whole milliseconds"),
            ("delay:ms=+2", "ms=+2 is not whole milliseconds"),
            ("linear:x", "linear has no options"),
            ("crypt:no_read_workqueu", "did you mean no_read_workqueue?"),
            ("crypt:no_read_workqueue=1", "no_read_workqueue has no value"),
            ("crypt:sector_size", "sector_size needs a value"),
            ("crypt:sector_size=1000", "not 512, 1024, 2048 or 4096"),
            ("crypt:cipher=aes 8:0", "is not a name like aes-xts-plain64"),
            ("crypt:same_cpu_crypt:same_cpu_crypt", "given twice"),
            ("crypt:colour", "there are cipher=…, key_bytes=…, sector_size=…, no_read_workqueue"),
        ] {
            let message = Mapping::parse(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
