//! Rules on processors: frequency, sharing, sleep, place.

use super::{Finding, Rule, Severity, holds, number, usable_processors};
use crate::record::HostFacts;

pub(super) const RULES: &[Rule] = &[
    governor, boost, smt, idle_states, tsc, numa, numa_balancing, battery, cpu_limit, cpu_allowed,
    virtual_machine,
];

fn governor(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("cpu.governor")?;
    let other = seen.split(", ").find(|governor| *governor != "performance")?;
    let effect = "The clock follows the load: a job that waits for I/O runs on a slow processor, so that latency \
                  and CPU time change with how busy the job is, not only with the code.";
    Some(
        Finding::new("governor", Severity::Bad, format!("the frequency governor is {seen}"), effect)
            .mend("sudo cpupower frequency-set -g performance")
            .undo(format!("sudo cpupower frequency-set -g {other}")),
    )
}

fn boost(facts: &HostFacts) -> Option<Finding> {
    holds(facts, "cpu.boost", "on")?;
    let switch = facts.get("cpu.boost_switch").unwrap_or("cpufreq/boost");
    let file = format!("/sys/devices/system/cpu/{switch}");
    let (off, on) = if switch.ends_with("no_turbo") { ("1", "0") } else { ("0", "1") };
    let effect = "Frequency depends on temperature and on what other cores do, so that trials drift as the machine \
                  warms up.";
    Some(
        Finding::new("boost", Severity::Warning, "frequency boost is on", effect).other_value(&file, off, on),
    )
}

fn smt(facts: &HostFacts) -> Option<Finding> {
    holds(facts, "cpu.smt", "on")?;
    let file = "/sys/devices/system/cpu/smt/control";
    let effect =
        "Two threads on one core slow each other down; where the scheduler puts them varies between trials.";
    Some(
        Finding::new("smt", Severity::Note, "simultaneous multithreading is on", effect)
            .other_value(file, "off", "on"),
    )
}

fn idle_states(facts: &HostFacts) -> Option<Finding> {
    // An exit as long as a fast device's whole I/O.
    let us = number(facts, "cpu.idle_exit_us").filter(|us| *us > 50.0)?;
    let effect = "A processor that slept deeply between two I/Os adds the time of its waking to the latency: jobs at \
                  a low queue depth show the idle governor as much as the device.";
    let fact = format!("processors may sleep so deeply that waking takes {us:.0} µs");
    Some(
        Finding::new("idle-states", Severity::Note, fact, effect)
            .mend("sudo cpupower idle-set -D 50")
            .undo("sudo cpupower idle-set -E"),
    )
}

fn tsc(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("cpu.tsc").filter(|seen| seen.starts_with("not"))?;
    let effect = "The kernel may fall back to a slow clock, and times taken on two cores may disagree.";
    Some(Finding::new("tsc", Severity::Warning, format!("the time stamp counter is {seen}"), effect))
}

fn several_nodes(facts: &HostFacts) -> Option<&str> {
    facts.get("numa.nodes").filter(|nodes| nodes.contains(['-', ',']))
}

fn numa(facts: &HostFacts) -> Option<Finding> {
    let nodes = several_nodes(facts)?;
    let device = number(facts, "device.numa_node").filter(|node| *node >= 0.0);
    let node = device.unwrap_or(0.0);
    let fact = match device {
        Some(node) => format!("memory has nodes {nodes}; the device is on node {node}"),
        None => format!("memory has nodes {nodes}"),
    };
    let effect =
        "A trial that happens to run far from its memory or device is slower; which one does is chance.";
    Some(
        Finding::new("numa", Severity::Note, fact, effect)
            .mend(format!("numactl --cpunodebind={node} --membind={node} assay run …")),
    )
}

fn numa_balancing(facts: &HostFacts) -> Option<Finding> {
    several_nodes(facts)?;
    holds(facts, "numa.balancing", "on")?;
    let effect = "The kernel moves pages between nodes while a trial runs and takes faults to learn where.";
    Some(
        Finding::new("numa-balancing", Severity::Note, "automatic NUMA balancing is on", effect)
            .mend("sudo sysctl kernel.numa_balancing=0")
            .undo("sudo sysctl kernel.numa_balancing=1"),
    )
}

fn battery(facts: &HostFacts) -> Option<Finding> {
    holds(facts, "power.supply", "battery")?;
    let effect = "Firmware and kernel save power in ways that change while the battery empties; plug it in.";
    Some(Finding::new("battery", Severity::Bad, "the machine runs on its battery", effect))
}

fn cpu_limit(facts: &HostFacts) -> Option<Finding> {
    let (limit, count) = (number(facts, "cgroup.cpus")?, usable_processors(facts)?);
    if limit >= count {
        return None;
    }
    let effect = "When the share is used up, all threads stop until the next period (100 ms): tails of latency show \
                  the limit, not the storage path.";
    let fact = format!("a control group limits assay to {limit} of {count} processors");
    Some(
        Finding::new("cpu-limit", Severity::Bad, fact, effect).mend("systemd-run --user --scope assay run …"),
    )
}

fn cpu_allowed(facts: &HostFacts) -> Option<Finding> {
    let (allowed, count) = (usable_processors(facts)?, number(facts, "cpu.count")?);
    if allowed >= count {
        return None;
    }
    let (_, list) = facts.get("cpu.allowed")?.split_once(' ')?;
    let effect = "Workers, and what completes their I/O, share these: a job with more workers than that measures the \
                  scheduler, and other runs compare only where they had the same.";
    let fact = format!("assay may use {allowed} of {count} processors {list}");
    let look = "taskset -pc $$; cat /sys/fs/cgroup/cpuset.cpus.effective";
    Some(Finding::new("cpu-allowed", Severity::Warning, fact, effect).look(look))
}

fn virtual_machine(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("virt").filter(|seen| *seen != "none")?;
    let effect = "Neighbours on the same host take processor time, cache and the disk, and the disk may be a file \
                  behind a cache. Effects below a few percent need many rounds; what holds here may not hold on \
                  the metal.";
    Some(Finding::new("virtual-machine", Severity::Warning, format!("this is a {seen}"), effect))
}
