//! Facts of the processors: model, count, frequency policy, idle states, SMT, virtualisation, power supply.

use std::collections::BTreeSet;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::arm;
use super::roots::{Roots, chosen, names, text};
use super::virtualisation::virtualisation;
use crate::record::HostFacts;

const CPUS: &str = "devices/system/cpu";

pub(super) fn add(roots: &Roots, facts: &mut HostFacts) {
    let info = roots.proc("cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    for (fact, name) in [("cpu.model", "model name"), ("cpu.microcode", "microcode")] {
        facts.set_known(fact, field(name));
    }
    if facts.get("cpu.model").is_none()
        && let Some(model) = arm::model(&info)
    {
        facts.set("cpu.model", model);
    }
    let count =
        info.lines().filter(|line| line.split(':').next().is_some_and(|k| k.trim() == "processor")).count();
    if count > 0 {
        facts.set("cpu.count", count.to_string());
    }
    frequency(roots, facts);
    idle_states(roots, facts);
    if let Some(active) = roots.sys(&format!("{CPUS}/smt/active")) {
        facts.set("cpu.smt", if active == "1" { "on" } else { "off" });
    }
    facts.set_known("numa.nodes", roots.sys("devices/system/node/online"));
    if let Some(balancing) = roots.proc("sys/kernel/numa_balancing") {
        facts.set("numa.balancing", if balancing == "0" { "off" } else { "on" });
    }
    if let Some(flags) = field("flags") {
        let flags: BTreeSet<&str> = flags.split_whitespace().collect();
        let steady = flags.contains("constant_tsc") && flags.contains("nonstop_tsc");
        facts.set("cpu.tsc", if steady { "constant and nonstop" } else { "not constant in all states" });
    }
    let flagged = field("flags").map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    facts.set_known("virt", virtualisation(roots, flagged));
    facts.set_known("power.supply", power_supply(roots));
}

/// The governors in use (all that differ), the driver, and whether frequencies above the nominal one are allowed.
fn frequency(roots: &Roots, facts: &mut HostFacts) {
    let mut governors = BTreeSet::new();
    let mut drivers = BTreeSet::new();
    let is_cpu = |name: &String| {
        name.strip_prefix("cpu")
            .is_some_and(|number| number.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    for cpu in names(&roots.sys.join(CPUS)).into_iter().filter(is_cpu) {
        let policy = format!("{CPUS}/{cpu}/cpufreq");
        governors.extend(roots.sys(&format!("{policy}/scaling_governor")));
        drivers.extend(roots.sys(&format!("{policy}/scaling_driver")));
    }
    let listed = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
    if !governors.is_empty() {
        facts.set("cpu.governor", listed(governors));
    }
    if !drivers.is_empty() {
        facts.set("cpu.frequency_driver", listed(drivers));
    }
    // intel_pstate has its own switch, the other way round.
    if let Some(no_turbo) = roots.sys(&format!("{CPUS}/intel_pstate/no_turbo")) {
        facts.set("cpu.boost", if no_turbo == "0" { "on" } else { "off" });
        facts.set("cpu.boost_switch", "intel_pstate/no_turbo");
    } else if let Some(boost) = roots.sys(&format!("{CPUS}/cpufreq/boost")) {
        facts.set("cpu.boost", if boost == "1" { "on" } else { "off" });
        facts.set("cpu.boost_switch", "cpufreq/boost");
    }
}

/// The longest exit latency of an idle state that is not disabled, on the first processor that has any.
fn idle_states(roots: &Roots, facts: &mut HostFacts) {
    let states = roots.sys.join(CPUS).join("cpu0/cpuidle");
    let longest_us = names(&states)
        .iter()
        .filter(|state| text(&states.join(state).join("disable")).as_deref() != Some("1"))
        .filter_map(|state| text(&states.join(state).join("latency"))?.parse::<u64>().ok())
        .max();
    facts.set_known("cpu.idle_exit_us", longest_us.map(|us| us.to_string()));
}

/// How many processors this process may use, and which: `2 (0-1)`. `None`: the kernel does not say.
pub(super) fn allowed() -> Option<String> {
    let set = sched_getaffinity(None).ok()?;
    let numbers: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    (!numbers.is_empty()).then(|| format!("{} ({})", numbers.len(), ranges(&numbers)))
}

/// `0-3,8` of ascending numbers.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        other => other.iter().map(usize::to_string).collect(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

/// `mains` or `battery`; nothing on machines that have no battery.
fn power_supply(roots: &Roots) -> Option<&'static str> {
    let supplies = roots.sys.join("class/power_supply");
    let read = |name: &str, file: &str| text(&supplies.join(name).join(file)).map(|t| chosen(&t).to_owned());
    let mains = names(&supplies).into_iter().find(|name| read(name, "type").as_deref() == Some("Mains"))?;
    Some(if read(&mains, "online").as_deref() == Some("0") { "battery" } else { "mains" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_by_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        let seen = allowed().unwrap();
        let count: usize = seen.split(' ').next().unwrap().parse().unwrap();
        assert!(count >= std::thread::available_parallelism().unwrap().get(), "{seen}");
    }

    #[test]
    fn a_laptop_is_read() {
        let root = tempfile::tempdir().unwrap();
        for (path, value) in [
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Fast 9\nflags\t\t: fpu constant_tsc nonstop_tsc\n\nprocessor\t: 1\nmodel name\t: Fast 9\n",
            ),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "133\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "890\n"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n"),
            ("sys/devices/system/cpu/smt/active", "1\n"),
            ("sys/class/power_supply/AC/type", "Mains\n"),
            ("sys/class/power_supply/AC/online", "0\n"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value).unwrap();
        }
        let mut facts = HostFacts::default();
        add(&Roots::under(root.path()), &mut facts);
        for (name, value) in [
            ("cpu.model", "Fast 9"),
            ("cpu.count", "2"),
            ("cpu.governor", "performance, powersave"),
            ("cpu.boost", "on"),
            ("cpu.boost_switch", "intel_pstate/no_turbo"),
            ("cpu.idle_exit_us", "133"),
            ("cpu.smt", "on"),
            ("cpu.tsc", "constant and nonstop"),
            ("virt", "none"),
            ("power.supply", "battery"),
        ] {
            assert_eq!(facts.get(name), Some(value), "{name}");
        }
    }
}
