//! Facts of memory: size, swap, huge pages, and when dirty pages are written back.

use super::roots::{Roots, chosen};
use crate::record::HostFacts;

pub(super) fn add(roots: &Roots, facts: &mut HostFacts) {
    let info = roots.proc("meminfo").unwrap_or_default();
    let bytes = |name: &str| -> Option<u64> {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    };
    facts.set_known("memory.total", bytes("MemTotal").map(|total| total.to_string()));
    if let (Some(total), Some(free)) = (bytes("SwapTotal"), bytes("SwapFree")) {
        facts.set("memory.swap", total.to_string());
        facts.set("now.memory.swap_used", total.saturating_sub(free).to_string());
    }
    for (fact, name) in [("now.memory.available", "MemAvailable"), ("now.memory.dirty", "Dirty")] {
        facts.set_known(fact, bytes(name).map(|value| value.to_string()));
    }
    if let Some(thp) = roots.sys("kernel/mm/transparent_hugepage/enabled") {
        facts.set("memory.thp", chosen(&thp));
    }
    for name in [
        "dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes",
        "dirty_expire_centisecs",
    ] {
        if let Some(value) = roots.proc(&format!("sys/vm/{name}")).filter(|value| value != "0") {
            facts.set(format!("memory.{name}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/sys/vm")).unwrap();
        let meminfo =
            "MemTotal:  1000 kB\nMemAvailable: 500 kB\nSwapTotal: 100 kB\nSwapFree:  40 kB\nDirty: 8 kB\n";
        std::fs::write(root.path().join("proc/meminfo"), meminfo).unwrap();
        std::fs::write(root.path().join("proc/sys/vm/dirty_ratio"), "20\n").unwrap();
        std::fs::write(root.path().join("proc/sys/vm/dirty_bytes"), "0\n").unwrap();
        let mut facts = HostFacts::default();
        add(&Roots::under(root.path()), &mut facts);
        let expected = [
            ("memory.dirty_ratio", "20"),
            ("memory.swap", "102400"),
            ("memory.total", "1024000"),
            ("now.memory.available", "512000"),
            ("now.memory.dirty", "8192"),
            ("now.memory.swap_used", "61440"),
        ];
        let found: Vec<(&str, &str)> = facts.iter().collect();
        assert_eq!(found, expected);
    }
}
