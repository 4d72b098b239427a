//! Rules on what else runs: load, pressure, stolen time, others' I/O on the device.

use super::{Finding, Rule, Severity, number, usable_processors};
use crate::record::HostFacts;

pub(super) const RULES: &[Rule] = &[steal, device_in_use, load, cpu_pressure, io_pressure];

fn steal(facts: &HostFacts) -> Option<Finding> {
    let percent = number(facts, "now.steal_percent").filter(|percent| *percent > 0.5)?;
    let severity = if percent > 5.0 { Severity::Bad } else { Severity::Warning };
    let effect = "The hypervisor runs others while a trial wants to run. Rounds with more than 5 % are thrown out; use \
                  a dedicated host or a machine type without shared processors.";
    Some(Finding::new("steal", severity, format!("{percent} % of the processor time is stolen"), effect))
}

fn device_in_use(facts: &HostFacts) -> Option<Finding> {
    let rate = number(facts, "now.device.ios_per_s").filter(|rate| *rate > 20.0)?;
    let device = facts.get("device").unwrap_or("the device");
    let effect =
        "Others use the device: their I/O is queued among the trial's, in one arm more than in the other.";
    let fact = format!("{device} did {rate} I/Os a second while assay did none");
    Some(Finding::new("device-in-use", Severity::Warning, fact, effect).look("pidstat -d 1"))
}

fn load(facts: &HostFacts) -> Option<Finding> {
    let (load, count) = (number(facts, "now.load1")?, usable_processors(facts).unwrap_or(1.0));
    if load <= 1.0_f64.max(count / 4.0) {
        return None;
    }
    let effect = "Other programs take processors, caches and frequency from the trials.";
    let all = number(facts, "cpu.count").filter(|all| *all > count);
    let of = all.map_or_else(String::new, |all| format!(" of {all} that assay may use"));
    let fact = format!("the load is {load} on {count} processors{of}");
    Some(Finding::new("load", Severity::Warning, fact, effect).look("ps -eo pcpu,comm --sort=-pcpu | head"))
}

fn cpu_pressure(facts: &HostFacts) -> Option<Finding> {
    let percent = number(facts, "now.psi.cpu").filter(|percent| *percent > 2.0)?;
    let effect = "There is more to run than processors: completions wait for their turn.";
    let fact = format!("tasks waited for a processor {percent} % of the last ten seconds");
    Some(
        Finding::new("cpu-pressure", Severity::Warning, fact, effect)
            .look("ps -eo pcpu,comm --sort=-pcpu | head"),
    )
}

fn io_pressure(facts: &HostFacts) -> Option<Finding> {
    let percent = number(facts, "now.psi.io").filter(|percent| *percent > 1.0)?;
    let effect =
        "Others wait for I/O already; when it is this device, they and the trials slow each other down.";
    let fact = format!("tasks waited for I/O {percent} % of the last ten seconds");
    Some(Finding::new("io-pressure", Severity::Warning, fact, effect).look("pidstat -d 1"))
}
