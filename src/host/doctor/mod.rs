//! What makes a machine unfit to measure on: one rule a finding, a pure function of the facts.
//!
//! Enters: [`HostFacts`]. Leaves: [`Finding`]s, the worst first. It must not look at the machine itself: [`watch`], which
//! does, only makes facts. A rule whose fact is not known finds nothing.

mod kernel;
mod memory;
mod neighbours;
mod processor;
mod storage;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::MOMENTARY;
use super::device::BlockDevice;
use super::disks::Disks;
use super::interference::Interference;
use crate::record::HostFacts;

named! {
    /// How much a finding spoils.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// Results would mislead.
        Bad = "bad",
        /// Results are noisier than they need be, or hold for less than one thinks.
        Warning = "warning",
        /// Worth knowing when reading results.
        Note = "note",
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A short name that does not change between versions, e.g. `governor`.
    pub id: &'static str,
    /// How much it spoils.
    pub severity: Severity,
    /// What was seen, a clause.
    pub fact: String,
    /// What that does to results, a sentence.
    pub effect: &'static str,
    /// The command that mends it.
    pub mend: Option<String>,
    /// Where no command does: the one that shows more.
    pub look: Option<String>,
    /// The command that undoes the mending.
    pub undo: Option<String>,
}

impl Finding {
    fn new(id: &'static str, severity: Severity, fact: impl Into<String>, effect: &'static str) -> Finding {
        Finding { id, severity, fact: fact.into(), effect, mend: None, look: None, undo: None }
    }

    fn mend(mut self, command: impl Into<String>) -> Finding {
        self.mend = Some(command.into());
        self
    }

    fn look(mut self, command: impl Into<String>) -> Finding {
        self.look = Some(command.into());
        self
    }

    fn undo(mut self, command: impl Into<String>) -> Finding {
        self.undo = Some(command.into());
        self
    }

    /// Mended by another value in a file below `/sys` or `/proc`, and undone by the one that is there.
    fn other_value(self, file: &str, other: &str, present: &str) -> Finding {
        let write = |value: &str| {
            let value = if value.contains(' ') { format!("'{value}'") } else { value.to_owned() };
            format!("echo {value} | sudo tee {file}")
        };
        self.mend(write(other)).undo(write(present))
    }
}

/// A rule: finds at most one thing.
type Rule = fn(&HostFacts) -> Option<Finding>;

/// Everything the rules find in these facts (of the machine and of a path together), the worst first.
#[must_use]
pub fn findings(facts: &HostFacts) -> Vec<Finding> {
    let areas: [&[Rule]; 5] =
        [storage::RULES, neighbours::RULES, processor::RULES, memory::RULES, kernel::RULES];
    let mut found: Vec<Finding> =
        areas.iter().flat_map(|rules| rules.iter()).filter_map(|rule| rule(facts)).collect();
    found.sort_by_key(|finding| finding.severity);
    found
}

/// Watches the machine and the device under `path` for a while in which assay itself does nothing. Adds
/// `now.steal_percent`, in place of the one since boot, and `now.device.ios_per_s`.
#[must_use]
pub fn watch(path: &Path, span: Duration) -> HostFacts {
    let devices = Disks::under(path).unwrap_or_default().counted();
    let completed = || {
        let counted = devices.iter().filter_map(BlockDevice::counters);
        counted.map(|c| c.read_ios + c.write_ios + c.discards).reduce(|sum, of_one| sum + of_one)
    };
    let (look, before) = (Interference::look(path), completed());
    std::thread::sleep(span);
    let (seen, after) = (look.since(), completed());
    let mut facts = HostFacts::default();
    facts.set(format!("{MOMENTARY}steal_percent"), format!("{:.2}", seen.steal_share * 100.0));
    if let (Some(before), Some(after)) = (before, after) {
        let rate = after.saturating_sub(before) as f64 / seen.elapsed_s.max(1e-3);
        facts.set(format!("{MOMENTARY}device.ios_per_s"), format!("{rate:.0}"));
    }
    facts
}

/// A fact that is a number.
fn number(facts: &HostFacts, name: &str) -> Option<f64> {
    facts.get(name)?.parse().ok()
}

/// Processors that assay may use: those of the machine, or fewer where taskset or a control group says so.
fn usable_processors(facts: &HostFacts) -> Option<f64> {
    let count = number(facts, "cpu.count")?;
    let allowed = facts.get("cpu.allowed").and_then(|allowed| allowed.split(' ').next()?.parse().ok());
    Some(allowed.map_or(count, |allowed: f64| allowed.min(count)))
}

/// Goes on where a fact has this value.
fn holds(facts: &HostFacts, name: &str, value: &str) -> Option<()> {
    (facts.get(name)? == value).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> HostFacts {
        let mut facts = HostFacts::default();
        pairs.iter().for_each(|(name, value)| facts.set(*name, *value));
        facts
    }

    /// Every rule: facts that it must find something in, and the nearest facts that are fine.
    type Case = (
        &'static str,
        Severity,
        &'static [(&'static str, &'static str)],
        &'static [(&'static str, &'static str)],
    );

    const CASES: &[Case] = &[
        ("governor", Severity::Bad, &[("cpu.governor", "powersave")], &[("cpu.governor", "performance")]),
        ("governor", Severity::Bad, &[("cpu.governor", "performance, schedutil")], &[]),
        ("boost", Severity::Warning, &[("cpu.boost", "on")], &[("cpu.boost", "off")]),
        ("smt", Severity::Note, &[("cpu.smt", "on")], &[("cpu.smt", "off")]),
        ("idle-states", Severity::Note, &[("cpu.idle_exit_us", "133")], &[("cpu.idle_exit_us", "10")]),
        (
            "tsc",
            Severity::Warning,
            &[("cpu.tsc", "not constant in all states")],
            &[("cpu.tsc", "constant and nonstop")],
        ),
        ("numa", Severity::Note, &[("numa.nodes", "0-1")], &[("numa.nodes", "0")]),
        (
            "numa-balancing",
            Severity::Note,
            &[("numa.balancing", "on"), ("numa.nodes", "0-1")],
            &[("numa.balancing", "on"), ("numa.nodes", "0")],
        ),
        ("battery", Severity::Bad, &[("power.supply", "battery")], &[("power.supply", "mains")]),
        (
            "cpu-limit",
            Severity::Bad,
            &[("cgroup.cpus", "1.5"), ("cpu.count", "8")],
            &[("cgroup.cpus", "8"), ("cpu.count", "8")],
        ),
        (
            "cpu-limit",
            Severity::Bad,
            &[("cgroup.cpus", "1.5"), ("cpu.count", "8"), ("cpu.allowed", "2 (0-1)")],
            &[("cgroup.cpus", "2"), ("cpu.count", "8"), ("cpu.allowed", "2 (0-1)")],
        ),
        (
            "cpu-allowed",
            Severity::Warning,
            &[("cpu.count", "8"), ("cpu.allowed", "3 (0-1,4)")],
            &[("cpu.count", "8"), ("cpu.allowed", "8 (0-7)")],
        ),
        ("virtual-machine", Severity::Warning, &[("virt", "virtual machine (QEMU)")], &[("virt", "none")]),
        (
            "clock",
            Severity::Bad,
            &[("clocksource", "hpet"), ("clocksource.available", "tsc hpet")],
            &[("clocksource", "tsc")],
        ),
        ("clock", Severity::Bad, &[("clocksource", "acpi_pm")], &[("clocksource", "kvm-clock")]),
        (
            "mitigations",
            Severity::Note,
            &[("kernel.mitigations", "meltdown=PTI")],
            &[("kernel.mitigations", "none needed")],
        ),
        ("kernel-debugging", Severity::Bad, &[("kernel.debugging", "lockdep")], &[]),
        (
            "delay-accounting",
            Severity::Note,
            &[("kernel.delay_accounting", "off")],
            &[("kernel.delay_accounting", "on")],
        ),
        (
            "io-uring",
            Severity::Warning,
            &[("io_uring", "disabled (kernel.io_uring_disabled=2)")],
            &[("io_uring", "usable")],
        ),
        (
            "io-uring",
            Severity::Warning,
            &[("io_uring", "refused (Operation not permitted (os error 1))")],
            &[],
        ),
        ("swap", Severity::Note, &[("memory.swap", "1073741824")], &[("memory.swap", "0")]),
        (
            "swap-used",
            Severity::Warning,
            &[("now.memory.swap_used", "268435456")],
            &[("now.memory.swap_used", "1048576")],
        ),
        ("huge-pages", Severity::Note, &[("memory.thp", "always")], &[("memory.thp", "madvise")]),
        ("memory-pressure", Severity::Warning, &[("now.psi.memory", "3")], &[("now.psi.memory", "0")]),
        (
            "memory-limit",
            Severity::Warning,
            &[("cgroup.memory.max", "1e9"), ("memory.total", "8e9")],
            &[("cgroup.memory.max", "8e9"), ("memory.total", "8e9")],
        ),
        (
            "no-device",
            Severity::Bad,
            &[("device.none", "tmpfs, which"), ("fs.type", "tmpfs")],
            &[("fs.type", "ext4")],
        ),
        ("no-device", Severity::Warning, &[("device.none", "overlay, which"), ("fs.type", "overlay")], &[]),
        ("full", Severity::Bad, &[("now.fs.used_percent", "97.0")], &[("now.fs.used_percent", "50.0")]),
        ("full", Severity::Warning, &[("now.fs.used_percent", "85.0")], &[]),
        (
            "direct-io",
            Severity::Warning,
            &[("o_direct", "no")],
            &[("o_direct", "yes (memory 512, offset 512)")],
        ),
        (
            "device-kind",
            Severity::Warning,
            &[("device.kind", "loop"), ("device.loop_file", "/img")],
            &[("device.kind", "nvme")],
        ),
        ("device-kind", Severity::Warning, &[("device.kind", "zram")], &[]),
        ("device-kind", Severity::Warning, &[("device.kind", "network")], &[]),
        ("stacked", Severity::Note, &[("device.on", "sda1, sdb1"), ("device", "dm-0")], &[("device", "sda")]),
        ("array", Severity::Bad, &[("now.rebuilding", "md0 (resync)")], &[]),
        (
            "array",
            Severity::Warning,
            &[("device.md_degraded", "1"), ("device", "md0")],
            &[("device.md_degraded", "0"), ("device", "md0")],
        ),
        ("members", Severity::Note, &[("device.members", "4")], &[]),
        ("rotational", Severity::Note, &[("queue.rotational", "1")], &[("queue.rotational", "0")]),
        (
            "write-cache",
            Severity::Note,
            &[("queue.write_cache", "write back")],
            &[("queue.write_cache", "write through"), ("virt", "none")],
        ),
        (
            "write-cache",
            Severity::Note,
            &[("queue.write_cache", "write through"), ("virt", "virtual machine")],
            &[],
        ),
        (
            "writeback-throttle",
            Severity::Note,
            &[("queue.wbt_lat_usec", "75000"), ("device", "vda")],
            &[("queue.wbt_lat_usec", "0"), ("device", "vda")],
        ),
        (
            "scheduler",
            Severity::Note,
            &[("queue.scheduler", "mq-deadline"), ("device", "vda")],
            &[("queue.scheduler", "none"), ("device", "vda")],
        ),
        (
            "iostats",
            Severity::Warning,
            &[("queue.iostats", "0"), ("device", "vda")],
            &[("queue.iostats", "1"), ("device", "vda")],
        ),
        (
            "mount-options",
            Severity::Note,
            &[("mount.options", "discard,rw"), ("fs.type", "ext4")],
            &[("mount.options", "relatime,rw")],
        ),
        ("mount-options", Severity::Note, &[("mount.options", "rw,sync"), ("fs.type", "ext4")], &[]),
        (
            "io-limit",
            Severity::Bad,
            &[("cgroup.io.max", "8:0 rbps=1048576 wbps=max")],
            &[("cgroup.io.max", "8:0 rbps=max wbps=max riops=max wiops=max")],
        ),
        (
            "io-limit",
            Severity::Bad,
            &[("cgroup.io.max", "8:16 rbps=max; 8:0 rbps=9 wbps=max"), ("now.device.numbers", "253:0 8:0")],
            &[("cgroup.io.max", "8:16 rbps=max; 8:0 rbps=9 wbps=max"), ("now.device.numbers", "8:16")],
        ),
        (
            "io-limit",
            Severity::Bad,
            &[("cgroup.io.max", "read_bps_device 8:0 9, 8:16 8"), ("now.device.numbers", "8:16")],
            &[("cgroup.io.max", "read_bps_device 8:0 9, 8:16 8"), ("now.device.numbers", "8:32")],
        ),
        (
            "load",
            Severity::Warning,
            &[("now.load1", "3.0"), ("cpu.count", "4")],
            &[("now.load1", "0.5"), ("cpu.count", "4")],
        ),
        (
            "load",
            Severity::Warning,
            &[("now.load1", "3.0"), ("cpu.count", "64"), ("cpu.allowed", "2 (0-1)")],
            &[("now.load1", "3.0"), ("cpu.count", "64"), ("cpu.allowed", "64 (0-63)")],
        ),
        ("cpu-pressure", Severity::Warning, &[("now.psi.cpu", "12.5")], &[("now.psi.cpu", "0.5")]),
        ("io-pressure", Severity::Warning, &[("now.psi.io", "7")], &[("now.psi.io", "0.2")]),
        ("steal", Severity::Bad, &[("now.steal_percent", "6.00")], &[("now.steal_percent", "0.10")]),
        ("steal", Severity::Warning, &[("now.steal_percent", "2.00")], &[]),
        (
            "device-in-use",
            Severity::Warning,
            &[("now.device.ios_per_s", "120"), ("device", "sda")],
            &[("now.device.ios_per_s", "2"), ("device", "sda")],
        ),
    ];

    #[test]
    fn every_rule_finds_its_fact_and_only_that() {
        for (id, severity, sick, healthy) in CASES {
            let found = findings(&facts(sick));
            let finding = found.iter().find(|finding| finding.id == *id);
            assert_eq!(finding.map(|f| f.severity), Some(*severity), "{id} in {sick:?}: {found:?}");
            let healthy = findings(&facts(healthy));
            assert!(healthy.iter().all(|finding| finding.id != *id), "{id}: {healthy:?}");
        }
    }

    #[test]
    fn every_rule_has_a_case() {
        let count = [storage::RULES, neighbours::RULES, processor::RULES, memory::RULES, kernel::RULES]
            .iter()
            .map(|rules| rules.len())
            .sum::<usize>();
        let mut ids: Vec<&str> = CASES.iter().map(|case| case.0).collect();
        ids.dedup();
        assert_eq!(ids.len(), count, "{ids:?}");
    }

    #[test]
    fn the_worst_comes_first_and_no_facts_are_no_findings() {
        let found = findings(&facts(&[("cpu.smt", "on"), ("cpu.boost", "on"), ("clocksource", "hpet")]));
        let severities: Vec<Severity> = found.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Bad, Severity::Warning, Severity::Note]);
        assert_eq!(findings(&HostFacts::default()), Vec::new());
    }

    #[test]
    fn commands_name_what_was_found_and_can_be_undone() {
        let find = |pairs: &[(&str, &str)], id: &str| {
            findings(&facts(pairs)).into_iter().find(|finding| finding.id == id).unwrap()
        };
        let scheduler = find(&[("queue.scheduler", "bfq"), ("device", "sdb")], "scheduler");
        assert_eq!(scheduler.mend.as_deref(), Some("echo none | sudo tee /sys/block/sdb/queue/scheduler"));
        assert_eq!(scheduler.undo.as_deref(), Some("echo bfq | sudo tee /sys/block/sdb/queue/scheduler"));
        assert!(
            scheduler.effect.ends_with("assay run --vary scheduler=none,mq-deadline."),
            "{}",
            scheduler.effect
        );
        let boost = find(&[("cpu.boost", "on"), ("cpu.boost_switch", "intel_pstate/no_turbo")], "boost");
        assert_eq!(
            boost.mend.as_deref(),
            Some("echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo")
        );
        let load = find(&[("now.load1", "30"), ("cpu.count", "8")], "load");
        assert!(load.mend.is_none() && load.look.is_some_and(|command| command.starts_with("ps ")));
        let governor = find(&[("cpu.governor", "performance, schedutil")], "governor");
        assert_eq!(governor.undo.as_deref(), Some("sudo cpupower frequency-set -g schedutil"));
    }

    #[test]
    fn watching_makes_facts_of_the_moment() {
        let facts = watch(Path::new("/"), Duration::from_millis(10));
        assert!(facts.get("now.steal_percent").unwrap().parse::<f64>().unwrap() <= 100.0);
        assert!(facts.names().all(|name| name.starts_with(MOMENTARY)));
    }
}
