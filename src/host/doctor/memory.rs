//! Rules on memory: swap, huge pages, pressure, limits.

use super::{Finding, Rule, Severity, holds, number};
use crate::record::HostFacts;
use crate::units::{Unit, format_number};

pub(super) const RULES: &[Rule] = &[swap, swap_used, huge_pages, pressure, limit];

fn swap(facts: &HostFacts) -> Option<Finding> {
    let bytes = number(facts, "memory.swap").filter(|bytes| *bytes > 0.0)?;
    let effect = "A trial that fills the page cache may push out a program, which then reads itself back from a disk, \
                  perhaps the one measured.";
    let fact = format!("{} of swap are on", format_number(&Unit::Bytes, bytes));
    Some(Finding::new("swap", Severity::Note, fact, effect).mend("sudo swapoff -a").undo("sudo swapon -a"))
}

fn swap_used(facts: &HostFacts) -> Option<Finding> {
    let bytes = number(facts, "now.memory.swap_used").filter(|bytes| *bytes > 67_108_864.0)?;
    let effect =
        "Memory was short: the page cache is smaller than it looks, and pages come back when trials run.";
    let fact = format!("{} are swapped out", format_number(&Unit::Bytes, bytes));
    Some(
        Finding::new("swap-used", Severity::Warning, fact, effect)
            .mend("sudo swapoff -a")
            .undo("sudo swapon -a"),
    )
}

fn huge_pages(facts: &HostFacts) -> Option<Finding> {
    holds(facts, "memory.thp", "always")?;
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let effect = "Whether a buffer gets a huge page depends on how fragmented memory is just then: CPU time has two \
                  modes.";
    Some(
        Finding::new("huge-pages", Severity::Note, "transparent huge pages are always used", effect)
            .other_value(file, "madvise", "always"),
    )
}

fn pressure(facts: &HostFacts) -> Option<Finding> {
    let percent = number(facts, "now.psi.memory").filter(|percent| *percent > 0.5)?;
    let effect = "The kernel reclaims memory all the time: buffered I/O waits for it, by chance.";
    let fact = format!("tasks waited for memory {percent} % of the last ten seconds");
    Some(
        Finding::new("memory-pressure", Severity::Warning, fact, effect)
            .look("ps -eo rss,comm --sort=-rss | head"),
    )
}

fn limit(facts: &HostFacts) -> Option<Finding> {
    let limits = ["cgroup.memory.max", "cgroup.memory.high"];
    let limit = limits.iter().filter_map(|name| number(facts, name)).reduce(f64::min)?;
    let total = number(facts, "memory.total")?;
    if limit >= total {
        return None;
    }
    let effect = "The page cache counts towards it: buffered jobs larger than the limit measure reclaim.";
    let fact = format!(
        "a control group limits memory to {} of {}",
        format_number(&Unit::Bytes, limit),
        format_number(&Unit::Bytes, total)
    );
    Some(
        Finding::new("memory-limit", Severity::Warning, fact, effect)
            .mend("systemd-run --user --scope assay run …"),
    )
}
