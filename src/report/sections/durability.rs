//! An arm whose syncs flush nothing, beside one whose syncs do: what it is faster by, it owes to data that a power cut takes.
//!
//! Enters: the flushes of each sync in both arms, and what the facts say of the device's write cache. Leaves: a sentence an arm, behind the
//! verdict.

use super::Material;
use crate::analyse::{ArmSummary, Comparison};
use crate::record::{Run, Trial};
use crate::report::comparisons::arms_of;
use crate::report::section::{Block, Heading, Section};
use crate::report::words::{NBSP, Names};
use crate::units::{Scale, Unit};

/// Flushes of a sync, below which there are none: a trial has some of its end.
const NONE: f64 = 0.001;
/// From which on syncs flush: several that come together share one.
const SOME: f64 = 0.5;

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, analysis, names, .. } = material;
    let mut told: Vec<String> = Vec::new();
    for c in analysis.comparisons.iter().filter(|c| c.metric.name == "dev.flushes_per_sync") {
        let text = unflushed(c).filter(|[arm, _]| is_volatile(run, names, c, &arm.arm));
        let text = text.map(|arms| sentence(c, arms, names));
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

/// Whether every trial of an arm in this row worked on a device with a volatile write cache, as far as its facts say.
fn is_volatile(run: &Run, names: &Names<'_>, c: &Comparison, arm: &str) -> bool {
    let compared = names.compared(run);
    let level_of = |at: usize, factor: &str| match at == compared {
        true => Some(arm),
        false => c.row.levels.iter().find(|(name, _)| name == factor).map(|(_, level)| level.as_str()),
    };
    let is_its = |trial: &&Trial| {
        let levels =
            run.cells.get(trial.cell as usize).map(|cell| cell.levels.as_slice()).unwrap_or_default();
        run.design.factors.iter().zip(levels).enumerate().all(|(at, (factor, level))| {
            let own = factor.levels.get(*level as usize).map(String::as_str);
            level_of(at, &factor.name).is_none_or(|level| own == Some(level))
        })
    };
    let cache = |trial: &Trial| run.facts.get(trial.facts? as usize)?.get("queue.write_cache");
    let mut trials = run.trials.iter().filter(|trial| trial.counts()).filter(is_its).peekable();
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
    use crate::report::section_tests::made_up;

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
        let section = section(&mut Material::new(&run, &analysis, None, &Options::default()));
        match section.blocks.first() {
            Some(Block::Remarks(all)) => all.join("\n").replace(NBSP, " "),
            _ => String::new(),
        }
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
