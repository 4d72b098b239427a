//! The facts of the machine, and of what the trials worked on.
//!
//! Enters: the facts of a run. Leaves: names and values, with units where people want them.

use super::Material;
use super::host_facts::host_facts;
use crate::analyse::FactDifference;
use crate::record::Run;
use crate::report::layout::{one_line, shorten};
use crate::report::section::{Block, Fact, Facts, Heading, Section, Weight};
use crate::report::words::{Names, count};
use crate::units::{Unit, format_number};

/// The facts that are told where there is no room for all.
const TOLD: [&str; 22] = [
    "cpu.model", "cpu.count", "cpu.governor", "cpu.boost", "cpu.smt", "memory.total", "virt",
    "guest.accelerator", "kernel.release", "target.device", "device", "device.kind", "device.model",
    "device.size", "queue.scheduler", "queue.write_cache", "fs.type", "mkfs.command", "mkfs.version",
    "mount.options", "io_uring", "o_direct",
];

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, analysis, names, .. } = material;
    let all: Vec<Fact> = of_run(run)
        .into_iter()
        .map(|(name, value)| {
            let differs = analysis.differences.iter().find(|difference| difference.fact == name);
            Fact {
                name: name.to_owned(),
                value: fact_text(name, &value),
                differs: differs.map(|difference| by_arm(difference, names)).unwrap_or_default(),
            }
        })
        .collect();
    if all.is_empty() {
        return Section::new("host", Heading::shown("host"), Vec::new());
    }
    let told = TOLD.iter().filter_map(|told| all.iter().position(|fact| fact.name == *told)).collect();
    let summary = count(all.len() as u64, "fact");
    let facts = Block::Facts(Facts { all, told, called: "the host's facts" });
    let blocks = vec![Block::Folded { summary, open: false, blocks: vec![facts] }];
    Section::new("host", Heading::shown("host"), blocks).of_weight(Weight::Reference)
}

fn of_run(run: &Run) -> Vec<(&str, String)> {
    // In the order of the cells, so that values stand as the levels do.
    let mut used: Vec<(u32, u32)> =
        run.trials.iter().filter_map(|trial| Some((trial.cell, trial.facts?))).collect();
    used.sort_unstable();
    let mut seen = std::collections::BTreeSet::new();
    let used: Vec<u32> =
        used.into_iter().map(|(_, facts)| facts).filter(|facts| seen.insert(*facts)).collect();
    host_facts(&run.facts, &used)
}

/// Columns of one value in the line of the machine.
const MOST_VALUE: usize = 32;

/// The machine in one line, `Linux 6.12.9 · 2 CPUs · virtio · ext4 · scheduler none`; empty where nothing is known of it.
pub(in crate::report) fn machine(run: &Run) -> String {
    let all = of_run(run);
    let value = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    let cpus = |n: &str| n.parse().map_or_else(|_| format!("{n} CPUs"), |n| count(n, "CPU"));
    let device: Vec<&str> = ["device.kind", "device.model"].into_iter().filter_map(value).collect();
    let device = (!device.is_empty()).then(|| device.join(" "));
    let parts = [
        value("kernel.release").map(|release| format!("Linux {release}")),
        value("cpu.count").map(cpus),
        device,
        value("fs.type").map(str::to_owned),
        value("queue.scheduler").map(|scheduler| format!("scheduler {scheduler}")),
    ];
    let parts = parts.into_iter().flatten().map(|part| each_shortened(&part));
    parts.collect::<Vec<_>>().join("\u{a0}· ")
}

/// The values of a part of that line, each shortened by itself, so that none is left out.
fn each_shortened(part: &str) -> String {
    let values = part.split(" | ").map(|value| shorten(&one_line(value), MOST_VALUE).replace(' ', "\u{a0}"));
    values.collect::<Vec<_>>().join("\u{a0}| ")
}

fn by_arm(difference: &FactDifference, names: &Names<'_>) -> Vec<(String, String)> {
    difference.values.iter().map(|(arm, value)| (names.arm(arm), value.clone())).collect()
}

/// A fact's value as people read it: sizes with their unit.
fn fact_text(name: &str, value: &str) -> String {
    let size = matches!(name, "memory.total" | "device.size" | "fs.size_bytes" | "now.memory.available");
    match value.parse::<f64>() {
        Ok(bytes) if size || name.ends_with("_bytes") => format_number(&Unit::Bytes, bytes),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_several_is_left_out_of_the_line() {
        let (mut run, _) = crate::report::section_tests::made_up();
        let schedulers = ["none", "mq-deadline", "bfq", "kyber"];
        run.facts = schedulers
            .map(|scheduler| {
                let mut facts = crate::record::HostFacts::default();
                facts.set("queue.scheduler", scheduler);
                facts.set("device.model", "a disk of which the name has no end whatever");
                facts
            })
            .to_vec();
        for (at, trial) in run.trials.iter_mut().enumerate() {
            trial.cell = at as u32;
            trial.facts = Some(at as u32 % 4);
        }
        assert_eq!(
            machine(&run).replace('\u{a0}', " "),
            "a disk of which… no end whatever · scheduler none | mq-deadline | bfq | kyber"
        );
    }
}
