//! Facts in which the arms differ although no factor declares it.
//!
//! Enters: the facts each trial points at. Leaves: [`FactDifference`]s. A fact that takes a new value in nearly
//! every trial (free memory, load) is a measurement, not a setting, and is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::FactDifference;
use super::layout::Layout;
use super::table::Table;
use crate::record::{HostFacts, Run};

/// Facts of the moment (load, free space) differ between any two looks; `host` gives them this prefix.
const MOMENTARY: &str = "now.";

/// Share of a number by which the kernel's own rounding moves it.
const ROUNDED: f64 = 0.001;

/// Share of an arm's trials, below which a value is a moment's: somebody set it and put it back.
const A_MOMENT: f64 = 0.1;

pub(super) fn differences(run: &Run, layout: &Layout, table: &Table) -> Vec<FactDifference> {
    let mut seen: Vec<BTreeMap<u32, usize>> = vec![BTreeMap::new(); layout.arms.len()];
    let mut trials = vec![0_usize; layout.arms.len()];
    let arms = arm_of_cells(run, layout);
    for trial in table.latest().iter().filter(|trial| trial.counts()) {
        let arm = arms.get(trial.cell as usize).copied().flatten();
        if let (Some(arm), Some(facts)) = (arm, trial.facts.filter(|at| (*at as usize) < run.facts.len())) {
            *seen[arm].entry(facts).or_default() += 1;
            trials[arm] += 1;
        }
    }
    // An arm without a counted trial has no facts to differ in.
    let there: Vec<usize> = (0..trials.len()).filter(|arm| trials[*arm] > 0).collect();
    if there.len() < 2 || there.windows(2).all(|pair| seen[pair[0]].keys().eq(seen[pair[1]].keys())) {
        return Vec::new();
    }
    trials.retain(|n| *n > 0);
    let by_arm: Vec<Counts<'_>> = there.iter().map(|arm| counts(run, &seen[*arm])).collect();
    let names: BTreeSet<&str> = by_arm.iter().flat_map(|facts| facts.keys().copied()).collect();
    let none = BTreeMap::new();
    let mut found = Vec::new();
    for name in names.into_iter().filter(|name| {
        !name.starts_with(MOMENTARY) && !HostFacts::names_cluster(name) && !declared(run, name)
    }) {
        let of_arms: Vec<&BTreeMap<&str, usize>> =
            by_arm.iter().map(|facts| facts.get(name).unwrap_or(&none)).collect();
        let volatile = of_arms.iter().zip(&trials).any(|(values, n)| values.len() > 2.max(n / 3));
        let values: Vec<BTreeSet<&str>> =
            of_arms.iter().zip(&trials).map(|(values, n)| more_than_a_moment(values, *n)).collect();
        let all = values.iter().flat_map(|values| values.iter().copied());
        // What an arm does not have at all is no rounding of what the others have.
        let flickers = values.iter().all(|values| !values.is_empty()) && flicker(all);
        if volatile || flickers || values.windows(2).all(|pair| pair[0] == pair[1]) {
            continue;
        }
        let joined = |values: BTreeSet<&str>| values.iter().copied().collect::<Vec<_>>().join(" | ");
        let arms = there.iter().map(|arm| layout.arms[*arm].clone());
        let values = arms.zip(values.into_iter().map(joined)).collect();
        found.push(FactDifference { fact: name.to_owned(), values });
    }
    found
}

/// Whether whole numbers differ by so little that the kernel has rounded them: `dirty_expire_centisecs` reads 2999 or 3000.
fn flicker<'v>(values: impl Iterator<Item = &'v str>) -> bool {
    let Ok(numbers) = values.map(str::parse::<u64>).collect::<Result<Vec<u64>, _>>() else { return false };
    let (Some(least), Some(most)) = (numbers.iter().min(), numbers.iter().max()) else { return false };
    (most - least) as f64 <= ROUNDED * *most as f64
}

/// The arm of every cell.
fn arm_of_cells(run: &Run, layout: &Layout) -> Vec<Option<usize>> {
    let mut arms = vec![None; run.cells.len()];
    for row in &layout.rows {
        for (arm, cell) in row.cells.iter().enumerate() {
            if let Some(cell) = cell {
                arms[*cell as usize] = Some(arm);
            }
        }
    }
    arms
}

/// By the fact's name and value: how many trials had it.
type Counts<'r> = BTreeMap<&'r str, BTreeMap<&'r str, usize>>;

/// All values of all facts; that a fact was not there is no value.
fn counts<'r>(run: &'r Run, seen: &BTreeMap<u32, usize>) -> Counts<'r> {
    let mut found = Counts::new();
    for (at, trials) in seen {
        for (name, value) in run.facts[*at as usize].iter() {
            *found.entry(name).or_default().entry(value).or_default() += trials;
        }
    }
    found
}

/// The values that more than a moment's share of an arm's trials had.
fn more_than_a_moment<'r>(values: &BTreeMap<&'r str, usize>, trials: usize) -> BTreeSet<&'r str> {
    let share = |(_, n): &(&&str, &usize)| **n as f64 > A_MOMENT * trials as f64;
    values.iter().filter(share).map(|(value, _)| *value).collect()
}

/// Whether a factor varies what the fact tells: its name, or a key that its levels set, is one of the fact's dotted parts (`kernel` explains
/// `kernel.release`, `scheduler` explains `queue.scheduler`), or its last part is (`sysfs:/sys/…/scheduler`).
fn declared(run: &Run, fact: &str) -> bool {
    let names =
        run.design.factors.iter().flat_map(|factor| std::iter::once(&factor.name).chain(&factor.sets));
    names.into_iter().any(|name| {
        let name = for_any_filesystem(name);
        let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
        fact.split('.').any(|part| part == last || part == name) || follows(last, fact)
    })
}

/// The key without the filesystem that it is for alone: `mkfs` of `mkfs.xfs`.
pub(super) fn for_any_filesystem(key: &str) -> &str {
    match key.rsplit_once('.') {
        Some((all, _)) if matches!(all.strip_prefix("target.").unwrap_or(all), "mkfs" | "mount") => all,
        _ => key,
    }
}

/// Whether another device or filesystem brings the fact with it: its mount options and tools, its queue.
fn follows(factor: &str, fact: &str) -> bool {
    let part = fact.split('.').next().unwrap_or(fact);
    // `sysfs.queue/scheduler` is `scheduler`, as it was set.
    if part == "sysfs" && fact.ends_with(&format!("/{factor}")) {
        return true;
    }
    // Which modules a guest is given depends on what it is to work on.
    if fact == "kernel.modules.digest" && matches!(factor, "fs" | "device" | "scheduler") {
        return true;
    }
    match factor {
        "fs" => {
            matches!(
                part,
                "mount" | "mkfs" | "o_direct" | "device" | "below" | "queue" | "target" | "loop" | "zram"
            )
        }
        "device" => {
            matches!(part, "mount" | "fs" | "o_direct" | "below" | "queue" | "target" | "loop" | "zram")
        }
        // How much of the memory a kernel leaves, and what it makes of a filesystem, is its own.
        "kernel" => matches!(part, "memory" | "fs" | "mount" | "o_direct" | "io_uring"),
        // What a kernel is built from makes it another one.
        "patch" | "source" | "rev" | "config" => follows("kernel", fact) || part == "kernel",
        // So is what a machine has of both.
        "cpus" | "memory" => matches!(part, "cpu" | "memory" | "fs" | "mount"),
        "kernel_args" => matches!(part, "kernel" | "cpu" | "memory" | "fs" | "mount" | "clocksource"),
        "dm" => matches!(part, "mount" | "fs" | "mkfs" | "o_direct" | "device" | "below" | "queue"),
        "log" => matches!(part, "mount" | "mkfs" | "fs" | "below") || fact == "device.members",
        "mkfs" | "mount" => matches!(part, "mount" | "fs" | "o_direct"),
        // A scheduler brings settings of its own.
        "scheduler" => part == "queue",
        // Named without its unit.
        "read_ahead" => matches!(fact, "queue.read_ahead_kb" | "sysfs.queue/read_ahead_kb"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::options::Options;
    use super::*;

    #[test]
    fn a_setting_declares_its_fact_and_what_follows_from_it() {
        for (factor, fact) in [
            ("scheduler", "sysfs.queue/scheduler"),
            ("scheduler", "queue.nr_requests"),
            ("read_ahead", "queue.read_ahead_kb"),
            ("read_ahead", "sysfs.queue/read_ahead_kb"),
            ("nr_requests", "sysfs.queue/nr_requests"),
            ("device", "queue.scheduler"),
            ("patch", "kernel.patch_digest"),
            ("rev", "kernel.release"),
            ("config", "io_uring.available"),
            ("log", "mount.options"),
            ("log", "device.members"),
            ("dm", "device.on"),
            ("dm", "queue.scheduler"),
        ] {
            assert!(follows(factor, fact), "{factor}: {fact}");
        }
        for (factor, fact) in [("requests", "sysfs.queue/nr_requests"), ("scheduler", "device.size")] {
            assert!(!follows(factor, fact), "{factor}: {fact}");
        }
    }

    #[test]
    fn what_the_kernel_rounds_is_no_difference() {
        assert!(flicker(["2999", "3000"].into_iter()), "dirty_expire_centisecs");
        for values in [["2", "3"], ["128", "256"], ["6.12", "6.121"], ["none", "3000"]] {
            assert!(!flicker(values.into_iter()), "{values:?}");
        }
    }

    #[test]
    fn what_levels_set_is_declared_whatever_the_factors_name() {
        let mut run = run_of(&Made::default(), 4);
        run.design.factors[0].name = "cache".to_owned();
        assert!(!declared(&run, "sysfs.queue/write_cache"));
        run.design.factors[0].sets = vec!["sysfs:queue/write_cache".to_owned()];
        assert!(declared(&run, "sysfs.queue/write_cache") && !declared(&run, "sysfs.queue/nr_requests"));
        for (name, facts) in [
            ("mkfs.xfs", ["mkfs.command", "fs.superblock"]),
            ("target.mount.ext4", ["mount.options", "o_direct"]),
        ] {
            run.design.factors[0].name = name.to_owned();
            assert!(
                facts.iter().all(|fact| declared(&run, fact)) && !declared(&run, "queue.scheduler"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_differs_undeclared_is_named() {
        let mut run = run_of(&Made::default(), 6);
        run.facts.clear();
        for (at, trial) in run.trials.iter_mut().enumerate() {
            let mut facts = HostFacts::default();
            facts.set("cpu.governor", if trial.cell == 0 { "performance" } else { "powersave" });
            facts.set("mount.direct", trial.cell.to_string());
            facts.set("memory.free", at.to_string());
            facts.set("kernel.release", "6.12");
            if trial.cell == 1 {
                facts.set("fio.fdatasync", "1");
            }
            run.facts.push(facts);
            trial.facts = Some(at as u32);
        }
        let table = Table::new(&run);
        let layout = Layout::new(&run, &Options::default(), &table);
        let found = differences(&run, &layout, &table);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].fact.as_str(), found[1].fact.as_str()), ("cpu.governor", "fio.fdatasync"));
        let expected = [("0", "performance"), ("1", "powersave")].map(|(a, v)| (a.to_owned(), v.to_owned()));
        assert_eq!(found[0].values, expected);
        let expected = [("0", ""), ("1", "1")].map(|(a, v)| (a.to_owned(), v.to_owned()));
        assert_eq!(found[1].values, expected, "one arm has none");
    }
}
