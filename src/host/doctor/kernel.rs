//! Rules on the kernel: clock, mitigations, debugging, delay accounting, io_uring.

use super::{Finding, Rule, Severity, holds};
use crate::record::HostFacts;

pub(super) const RULES: &[Rule] = &[clock, mitigations, debugging, delay_accounting, io_uring];

fn clock(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("clocksource")?;
    let slow = ["hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies"];
    if !slow.contains(&seen) {
        return None;
    }
    let effect = "Reading this clock takes a microsecond or more, and it is read twice for each I/O: latency and CPU \
                  time are too large, those of the fast arm most.";
    let finding = Finding::new("clock", Severity::Bad, format!("the clock source is {seen}"), effect);
    let fast = facts.get("clocksource.available").unwrap_or("");
    let fast = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"]
        .into_iter()
        .find(|name| fast.split_whitespace().any(|available| available == *name));
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Some(match fast {
        Some(fast) => finding.other_value(file, fast, seen),
        None => finding.look("journalctl -k | grep -i -e tsc -e clocksource"),
    })
}

fn mitigations(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("kernel.mitigations").filter(|seen| *seen != "none needed")?;
    let fact = match seen.split_once("vulnerable: ") {
        Some(("", names)) => format!("no mitigation is active against {names}"),
        _ => format!("{} mitigations of processor flaws are active", seen.matches('=').count()),
    };
    let effect = "They make every system call dearer, small I/Os most. Compare only kernels with the same ones: \
                  `mitigations=` on the kernel's command line is a factor, not a detail.";
    Some(
        Finding::new("mitigations", Severity::Note, fact, effect)
            .look("grep -r . /sys/devices/system/cpu/vulnerabilities/"),
    )
}

fn debugging(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("kernel.debugging")?;
    let effect = "Every lock is checked: locks cost many times what they do in production, and code that takes fewer \
                  of them looks better than it is. Build without CONFIG_PROVE_LOCKING and CONFIG_LOCK_STAT.";
    Some(Finding::new("kernel-debugging", Severity::Bad, format!("the kernel was built with {seen}"), effect))
}

fn delay_accounting(facts: &HostFacts) -> Option<Finding> {
    holds(facts, "kernel.delay_accounting", "off")?;
    let effect = "Waiting for storage is counted as sleep, together with waiting for locks and anything else: of where \
                  the time went, the report cannot tell the disk's part.";
    let fact = "delay accounting is off".to_owned();
    Some(
        Finding::new("delay-accounting", Severity::Note, fact, effect)
            .mend("sudo sysctl kernel.task_delayacct=1")
            .undo("sudo sysctl kernel.task_delayacct=0"),
    )
}

fn io_uring(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("io_uring").filter(|seen| *seen != "usable")?;
    let effect = "Jobs with ioengine=io_uring are skipped with this reason; psync jobs run.";
    let finding = Finding::new("io-uring", Severity::Warning, format!("io_uring is {seen}"), effect);
    Some(match seen.split_once("io_uring_disabled=").map(|(_, level)| level.trim_end_matches(')')) {
        Some(level) => finding
            .mend("sudo sysctl kernel.io_uring_disabled=0")
            .undo(format!("sudo sysctl kernel.io_uring_disabled={level}")),
        None => finding,
    })
}
