//! What an arm is faster by and owes to its data not being durable: its syncs flush nothing beside one whose syncs do, or the time of its
//! writes is judged without the syncs behind them.
//!
//! Enters: the flushes of each sync in both arms, and what the facts say of the device's write cache; which arms sync. Leaves: a sentence an
//! arm, behind the verdict.

use super::Material;
use crate::analyse::{ArmSummary, Comparison, Role};
use crate::record::{Metric, Run, Trial};
use crate::report::comparisons::arms_of;
use crate::report::section::{Block, Heading, Section};
use crate::report::words::{NBSP, Names};
use crate::units::{Scale, Unit};

/// Flushes of a sync, below which there are none: a trial has some of its end.
const NONE: f64 = 0.001;
/// From which on syncs flush: several that come together share one.
const SOME: f64 = 0.5;
/// What counts syncs.
const SYNCS: &str = "sync.total_ios";
/// What has a write and the sync behind it.
const DURABLE: &str = "durable.lat_ns.mean";

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, analysis, names, .. } = material;
    let mut told: Vec<String> = Vec::new();
    for c in analysis.comparisons.iter().filter(|c| c.metric.name == "dev.flushes_per_sync") {
        let text = unflushed(c).filter(|[arm, _]| is_volatile(run, names, c, &arm.arm));
        let text = text.map(|arms| sentence(c, arms, names));
        told.extend(text.filter(|text| !told.contains(text)));
    }
    for c in analysis.comparisons.iter().filter(|c| c.role == Role::Primary) {
        let text = unjudged_syncs(run, names, c);
        told.extend(text.filter(|text| !told.contains(text)));
    }
    let remarks = (!told.is_empty()).then_some(Block::Remarks(told));
    Section::new("durability", Heading::None, remarks.into_iter().collect())
}

/// The arm whose syncs flush nothing, and the other one, whose syncs do.
fn unflushed(c: &Comparison) -> Option<[&ArmSummary; 2]> {
    let both = [[&c.baseline, &c.candidate], [&c.candidate, &c.baseline]];
    both.into_iter().find(|[arm, other]| arm.median < NONE && other.median >= SOME)
}

/// `write.lat_ns leaves out the syncs of sync=none; sync=dsync waits for them within its writes …`: where the latency of writes is judged and
/// one arm alone has syncs.
fn unjudged_syncs(run: &Run, names: &Names<'_>, c: &Comparison) -> Option<String> {
    let kind = ["write.lat_ns", "write.clat_ns"].into_iter().find(|kind| c.metric.name.starts_with(kind))?;
    let job = &c.row.job;
    let has = |arm: &ArmSummary, name: &str| {
        let is_it = |metric: &Metric| metric.name == name && (&metric.job == job || metric.job.is_empty());
        let index = run.metrics.iter().position(is_it).map(|at| at as u32);
        let is_done = |(metric, value): &(u32, f64)| Some(*metric) == index && *value > 0.0;
        trials_of(run, names, c, &arm.arm).any(|trial| trial.values.iter().any(is_done))
    };
    let both = [[&c.baseline, &c.candidate], [&c.candidate, &c.baseline]];
    let [with, without] = both.into_iter().find(|[with, other]| has(with, SYNCS) && !has(other, SYNCS))?;
    // sync_file_range(2) is counted with the syncs, and makes nothing durable.
    let is_known = has(with, DURABLE);
    let syncs_ranges = run.job_text.as_ref().is_some_and(|text| text.contains("sync_file_range"))
        || run.design.factors.iter().any(|factor| factor.name.contains("sync_file_range"));
    if !is_known && syncs_ranges {
        return None;
    }
    let does = match (is_known, has(without, DURABLE)) {
        (true, true) => {
            let section = if job.is_empty() { String::new() } else { format!("{job}:") };
            let statistic = c.metric.name.strip_prefix(kind).unwrap_or_default();
            format!(
                "waits for them within its writes (sync=): --primary {section}durable.lat_ns{statistic} compares writes with their syncs"
            )
        }
        (true, false) => "has no sync behind its writes".to_owned(),
        (false, _) => "has none, unless its writes wait for them (sync=)".to_owned(),
    };
    let before = names.before(&c.row);
    let [with, without] = [with, without].map(|arm| names.arm(&arm.arm));
    Some(format!("{before}{kind} leaves out the syncs of {with}; {without} {does}"))
}

/// Trials that count of an arm in the row of a comparison.
fn trials_of<'r>(
    run: &'r Run,
    names: &Names<'_>,
    c: &'r Comparison,
    arm: &'r str,
) -> impl Iterator<Item = &'r Trial> {
    let compared = names.compared(run);
    let level_of = move |at: usize, factor: &str| match at == compared {
        true => Some(arm),
        false => c.row.levels.iter().find(|(name, _)| name == factor).map(|(_, level)| level.as_str()),
    };
    let is_its = move |trial: &&Trial| {
        let levels =
            run.cells.get(trial.cell as usize).map(|cell| cell.levels.as_slice()).unwrap_or_default();
        run.design.factors.iter().zip(levels).enumerate().all(|(at, (factor, level))| {
            let own = factor.levels.get(*level as usize).map(String::as_str);
            level_of(at, &factor.name).is_none_or(|level| own == Some(level))
        })
    };
    run.trials.iter().filter(|trial| trial.counts()).filter(is_its)
}

/// Whether every trial of an arm in this row worked on a device with a volatile write cache, as far as its facts say.
fn is_volatile(run: &Run, names: &Names<'_>, c: &Comparison, arm: &str) -> bool {
    let cache = |trial: &Trial| run.facts.get(trial.facts? as usize)?.get("queue.write_cache");
    let mut trials = trials_of(run, names, c, arm).peekable();
    trials.peek().is_some() && trials.all(|trial| cache(trial) == Some("write back"))
}

/// `syncs of mount=nobarrier reached the device without a flush …`.
fn sentence(c: &Comparison, [arm, other]: [&ArmSummary; 2], names: &Names<'_>) -> String {
    let of = |summary: &ArmSummary| {
        let scale = Scale::for_column(&Unit::Count, [other.median]);
        format!("{} with {}", scale.number(summary.median), names.arm(&summary.arm))
    };
    let [base, cand] = arms_of(c).map(|name| if name == arm.arm { of(arm) } else { of(other) });
    format!(
        "{}syncs of {} reached the device without a flush, and its write cache is volatile: not the same durability (flushes a \
         sync: {base},{NBSP}{cand})",
        names.before(&c.row),
        names.arm(&arm.arm)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::HostFacts;
    use crate::report::format::Options;
    use crate::report::operation_times::tests::observed;
    use crate::report::section_tests::{made_up, remarks};
    use crate::units::Better;

    /// What is told of these flushes of a sync, on a device with this cache.
    fn told(flushes: [f64; 2], cache: Option<&str>) -> String {
        let (mut run, mut analysis) = made_up();
        let mut c = observed("dev.flushes_per_sync", flushes);
        c.metric.unit = Unit::Count;
        analysis.comparisons.push(c);
        let mut facts = HostFacts::default();
        cache.into_iter().for_each(|cache| facts.set("queue.write_cache", cache));
        run.facts = vec![facts];
        run.trials.iter_mut().for_each(|trial| trial.facts = Some(0));
        remarks(&section(&mut Material::new(&run, &analysis, None, &Options::default())))
    }

    /// What is told where the latency of writes decides and `arms` have these metrics.
    fn judged(job: &str, metric: &str, arms: [&[&str]; 2]) -> String {
        let (mut run, mut analysis) = made_up();
        run.job_text = Some(job.to_owned());
        analysis.comparisons[0].metric.name = metric.to_owned();
        for (at, name) in (1..).zip([SYNCS, DURABLE]) {
            run.metrics.push(Metric::new("", name, Unit::Count, Better::Lower));
            for trial in &mut run.trials {
                let has = arms[trial.cell as usize].contains(&name);
                trial.values.extend(has.then_some((at, 5.0)));
            }
        }
        remarks(&section(&mut Material::new(&run, &analysis, None, &Options::default())))
    }

    #[test]
    fn syncs_that_are_no_part_of_what_is_judged_are_told() {
        assert_eq!(
            judged("", "write.lat_ns.p99", [&[SYNCS, DURABLE], &[DURABLE]]),
            "write.lat_ns leaves out the syncs of cache=on; cache=off waits for them within its writes (sync=): --primary \
             durable.lat_ns.p99 compares writes with their syncs"
        );
        assert_eq!(
            judged("", "write.lat_ns.mean", [&[], &[SYNCS, DURABLE]]),
            "write.lat_ns leaves out the syncs of cache=off; cache=on has no sync behind its writes"
        );
        assert_eq!(
            judged("", "write.clat_ns.mean", [&[], &[SYNCS]]),
            "write.clat_ns leaves out the syncs of cache=off; cache=on has none, unless its writes wait for them (sync=)"
        );
        assert_eq!(
            judged("nrfiles=2", "write.lat_ns.mean", [&[SYNCS], &[]]),
            "write.lat_ns leaves out the syncs of cache=on; cache=off has none, unless its writes wait for them (sync=)",
            "nobody knows of several files"
        );
        assert_eq!(
            judged("sync_file_range=write:1", "write.lat_ns.mean", [&[SYNCS], &[]]),
            "",
            "it makes nothing durable"
        );
        assert_eq!(judged("", "write.clat_ns.mean", [&[SYNCS], &[SYNCS]]), "", "it stands beside it");
        assert_eq!(judged("", DURABLE, [&[SYNCS, DURABLE], &[DURABLE]]), "");
        assert_eq!(judged("", "write.bw", [&[SYNCS], &[]]), "");
    }

    #[test]
    fn an_arm_whose_syncs_flush_nothing_is_not_as_durable() {
        assert_eq!(
            told([2.0, 0.0003], Some("write back")),
            "syncs of cache=off reached the device without a flush, and its write cache is volatile: not the same durability \
             (flushes a sync: 2.00 with cache=on, 0.00 with cache=off)"
        );
        assert!(told([0.0, 1.0], Some("write back")).starts_with("syncs of cache=on "));
        assert_eq!(told([2.0, 0.003], Some("write through")), "", "it needs no flush");
        assert_eq!(told([2.0, 0.003], None), "", "nobody knows");
        assert_eq!(told([2.0, 0.06], Some("write back")), "");
        assert_eq!(told([0.4, 0.0], Some("write back")), "", "both hardly flush");
    }
}
