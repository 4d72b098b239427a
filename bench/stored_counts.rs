//! The counts of instructions that are stored in bench/instructions.txt, and what is too many.
//!
//! Enters: the name of a loop. Leaves: its stored count for this architecture, this kernel's clock and this build, which is
//! that of the program this file is part of. It must not know how instructions are counted.

use std::process::Command;

/// One line a loop.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/instructions.txt");
/// A loop may take so many times its stored count.
const GROWTH: f64 = 1.1;
/// Set to store what is counted instead of judging it.
const UPDATE: &str = "UPDATE_INSTRUCTIONS";

/// What is stored of a loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredCount {
    /// Instructions an I/O.
    pub(crate) per_io: f64,
    /// The compiler that made the program it was counted of.
    pub(crate) compiler: String,
}

impl StoredCount {
    /// The most instructions that the loop may take.
    pub(crate) fn most(&self) -> f64 {
        self.per_io * GROWTH
    }
}

/// The stored count of a loop; `None`: there is none for this machine and build. Where the user asks for it `per_io` is
/// stored first.
pub(crate) fn stored(name: &str, per_io: f64) -> Result<Option<StoredCount>, String> {
    let failed = |error: std::io::Error| format!("{FILE}: {error}");
    let mut text = std::fs::read_to_string(FILE).map_err(failed)?;
    if std::env::var_os(UPDATE).is_some() {
        text = with(&text, &key(name), per_io, &compiler());
        std::fs::write(FILE, &text).map_err(failed)?;
    }
    Ok(find(&text, &key(name)))
}

/// How a line begins: architecture, clock, build, loop. Every latency takes a reading of the clock, which is the processor's
/// counter only where the kernel's is that, too.
fn key(name: &str) -> String {
    let clock = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let clock = clock.as_deref().map_or("unknown", str::trim);
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{} {clock} {build} {name}", std::env::consts::ARCH)
}

/// The compiler of now, e.g. `1.91.0`.
pub(crate) fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().nth(1).unwrap_or("unknown").to_owned()
}

fn find(text: &str, key: &str) -> Option<StoredCount> {
    text.lines().find_map(|line| {
        let mut words = line.strip_prefix(key)?.strip_prefix(' ')?.split_whitespace();
        let per_io = words.next()?.parse().ok()?;
        Some(StoredCount { per_io, compiler: words.next().unwrap_or("unknown").to_owned() })
    })
}

/// The text with the line of one loop replaced, or added at the end.
fn with(text: &str, key: &str, per_io: f64, compiler: &str) -> String {
    let new = format!("{key} {per_io:.1} {compiler}");
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter_mut().find(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(' '))) {
        Some(line) => *line = &new,
        None => lines.push(&new),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_replaced_and_added() {
        let text = "# a comment\nx86_64 tsc debug null 700.0 1.90.0\nx86_64 tsc debug null-more 9.0 1.90.0\n";
        let stored = find(text, "x86_64 tsc debug null").unwrap();
        assert_eq!(stored, StoredCount { per_io: 700.0, compiler: "1.90.0".to_owned() });
        assert!((stored.most() - 770.0).abs() < 1e-9);
        assert_eq!(find(text, "x86_64 tsc release null"), None);
        let replaced = with(text, "x86_64 tsc debug null", 650.04, "1.91.0");
        assert_eq!(replaced, text.replace("null 700.0 1.90.0", "null 650.0 1.91.0"));
        let added = with(text, "x86_64 tsc release null", 70.0, "1.91.0");
        assert_eq!(added, format!("{text}x86_64 tsc release null 70.0 1.91.0\n"));
    }
}
