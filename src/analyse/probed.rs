//! What a machine can do at most, as `assay probe` has stored it.
//!
//! Enters: runs that are probes. Leaves: a [`Ceiling`] a probe: the median over its rounds and where half of them lie; the few that speak
//! for all; whether a probe was made on the machine and the device of a run. It must not know how a probe measures.

use serde::Serialize;

use crate::record::{HostFacts, Run};
use crate::stats::descriptive::quantile_of_sorted;
use crate::stats::saturation::saturation;
use crate::units::Unit;

/// A depth from which on more brings less than this is where a device saturates.
const SATURATED: f64 = 0.05;
/// Facts that make a machine the same one. A fact that neither has is the same.
const MACHINE: [&str; 5] = ["machine.id", "cpu.model", "cpu.count", "kernel.release", "virt"];
/// Facts that make a device the same one where it has no number of its own, the first of which both must have.
const DEVICE: [&str; 4] = ["device", "device.kind", "device.size", "device.model"];

/// One figure of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// Its group: `copies`, `locks`, `calls`, `device`.
    pub group: String,
    /// Its name within the group, e.g. `read.4k.d16`.
    pub name: String,
    /// Base unit of the figures.
    #[serde(skip)]
    pub unit: Unit,
    /// The median over the rounds.
    pub median: f64,
    /// A quarter of the rounds lie below.
    pub low: f64,
    /// A quarter of the rounds lie above.
    pub high: f64,
    /// Rounds.
    pub n: usize,
    /// The rounds.
    pub values: Vec<f64>,
}

impl Ceiling {
    /// The number behind the last `.` and its letter: threads (`t2`) or depth (`d16`).
    #[must_use]
    pub fn level(&self) -> Option<u32> {
        let last = self.name.rsplit('.').next()?;
        last.strip_prefix(['t', 'd'])?.parse().ok()
    }

    /// The name without its level.
    fn kind(&self) -> &str {
        match self.level() {
            Some(_) => self.name.rsplit_once('.').map_or("", |(kind, _)| kind),
            None => &self.name,
        }
    }
}

/// The figures of a probe, in its order.
#[must_use]
pub fn ceilings(probe: &Run) -> Vec<Ceiling> {
    let of = |(index, metric): (usize, &crate::record::Metric)| {
        let counted = probe.trials.iter().filter(|trial| trial.counts());
        let values: Vec<f64> = counted.filter_map(|trial| trial.value(index as u32)).collect();
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |q: f64| quantile_of_sorted(&sorted, q);
        (!sorted.is_empty()).then(|| Ceiling {
            group: metric.job.clone(),
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            median: at(0.5),
            low: at(0.25),
            high: at(0.75),
            n: sorted.len(),
            values,
        })
    };
    probe.metrics.iter().enumerate().filter_map(of).collect()
}

/// From which level on more brings next to nothing, as far as was measured.
#[derive(Clone, Copy, Debug)]
pub struct Saturation<'c> {
    /// The figure there.
    pub ceiling: &'c Ceiling,
    /// A larger level was measured and brought no more; false: the figures still rise at the largest, and nobody knows where they end.
    pub is_reached: bool,
}

/// Where the figures of one kind (`read.4k`) saturate by level.
#[must_use]
pub fn saturated<'c>(ceilings: &'c [Ceiling], group: &str, kind: &str) -> Option<Saturation<'c>> {
    let mut of_kind: Vec<&Ceiling> =
        ceilings.iter().filter(|ceiling| ceiling.group == group && ceiling.kind() == kind).collect();
    of_kind.sort_by_key(|ceiling| ceiling.level());
    let medians: Vec<f64> = of_kind.iter().map(|ceiling| ceiling.median).collect();
    let at = saturation(&medians, SATURATED)?;
    Some(Saturation { ceiling: of_kind[at], is_reached: at + 1 < of_kind.len() })
}

/// The largest figure of a kind (`read`), whatever comes behind it. With `workers` only of those measured by so many threads: by the
/// next larger number that was measured, or by the largest.
#[must_use]
pub fn best<'c>(
    ceilings: &'c [Ceiling],
    group: &str,
    kind: &str,
    workers: Option<f64>,
) -> Option<&'c Ceiling> {
    let of_kind = |ceiling: &&Ceiling| {
        ceiling.group == group && ceiling.name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.'))
    };
    let levels = || ceilings.iter().filter(of_kind).filter_map(Ceiling::level);
    let enough = workers.and_then(|workers| levels().filter(|level| f64::from(*level) >= workers).min());
    let wanted = workers.and_then(|_| enough.or(levels().max()));
    let fits = |ceiling: &&Ceiling| wanted.is_none_or(|wanted| ceiling.level() == Some(wanted));
    ceilings.iter().filter(of_kind).filter(fits).max_by(|a, b| a.median.total_cmp(&b.median))
}

/// Whether a probe with these facts was made on the machine and kernel of the others.
#[must_use]
pub fn is_same_machine(probe: &HostFacts, of_run: &HostFacts) -> bool {
    MACHINE.iter().all(|name| probe.get(name) == of_run.get(name)) && probe.get("kernel.release").is_some()
}

/// Whether it was made on their device.
#[must_use]
pub fn is_same_device(probe: &HostFacts, of_run: &HostFacts) -> bool {
    // What the kernel calls a disk or a volume may be another one after a restart.
    if let (Some(probed), Some(run)) = (probe.get("device.id"), of_run.get("device.id")) {
        return probed == run;
    }
    DEVICE.iter().all(|name| probe.get(name) == of_run.get(name)) && probe.get(DEVICE[0]).is_some()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;
    use crate::record::Sample;

    /// A probe with three rounds of each figure: a tenth less, the figure, a fifth more.
    pub(crate) fn probe_of(figures: &[(&str, &str, Unit, f64)]) -> Run {
        let mut run = run_of(&Made::default(), 3);
        run.engine = "probe 0.1.0".to_owned();
        run.trials.retain(|trial| trial.position == 0);
        run.trials.iter_mut().for_each(|trial| trial.cell = 0);
        run.metrics.clear();
        for (round, trial) in run.trials.iter_mut().enumerate() {
            let factor = [0.9, 1.0, 1.2][round];
            trial.values = (0..).zip(figures).map(|(at, figure)| (at, figure.3 * factor)).collect();
        }
        let metric = |(group, name, unit, _): &(&str, &str, Unit, f64)| {
            Sample::new(group, name, unit.clone(), 0.0).metric
        };
        run.metrics = figures.iter().map(metric).collect();
        run
    }

    #[test]
    fn a_figure_is_its_median_and_its_quartiles() {
        let found = ceilings(&probe_of(&[("calls", "system_call", Unit::Nanoseconds, 100.0)]));
        assert_eq!(found.len(), 1);
        let Ceiling { median, low, high, n, .. } = found[0];
        // Type 7 of three values: half way between the neighbours.
        assert!((median - 100.0).abs() < 1e-9 && (low - 95.0).abs() < 1e-9 && (high - 110.0).abs() < 1e-9);
        assert_eq!((n, found[0].level(), found[0].kind()), (3, None, "system_call"));
    }

    #[test]
    fn the_depth_of_saturation_is_found_whatever_the_order() {
        let rate = |name, value| ("device", name, Unit::PerSecond, value);
        let probe = probe_of(&[
            rate("read.4k.d16", 400.0),
            rate("read.4k.d1", 100.0),
            rate("read.4k.d4", 390.0),
            rate("read.4k.d2", 200.0),
            rate("write.4k.d1", 9000.0),
            ("device", "write.4k.stable", Unit::Nanoseconds, 1e6),
        ]);
        let all = ceilings(&probe);
        let found = saturated(&all, "device", "read.4k").unwrap();
        assert_eq!((found.ceiling.level(), found.ceiling.median), (Some(4), 390.0));
        assert!(found.is_reached);
        let alone = saturated(&all, "device", "write.4k").unwrap();
        assert_eq!((alone.ceiling.median, alone.is_reached), (9000.0, false));
        let rising = probe_of(&[rate("read.4k.d32", 300.0), rate("read.4k.d64", 400.0)]);
        let all = ceilings(&rising);
        let found = saturated(&all, "device", "read.4k").unwrap();
        assert_eq!((found.ceiling.level(), found.is_reached), (Some(64), false));
        assert!(saturated(&all, "copies", "read.4k").is_none());
    }

    #[test]
    fn the_best_of_a_kind_does_not_mix_kinds() {
        let copies = |name, value| ("copies", name, Unit::BytesPerSecond, value);
        let probe =
            probe_of(&[copies("read.4k.t1", 5.0), copies("read.16m.t2", 7.0), copies("readahead.t1", 99.0)]);
        let all = ceilings(&probe);
        let of = |workers| best(&all, "copies", "read", workers).map(|ceiling| &*ceiling.name);
        assert_eq!((of(None), of(Some(2.0)), of(Some(9.0))), (Some("read.16m.t2"), of(None), of(None)));
        assert_eq!(of(Some(1.0)), Some("read.4k.t1"));
        assert!(best(&all, "copies", "cached", None).is_none());
    }

    #[test]
    fn another_kernel_or_device_is_another_one() {
        let facts = |device: &str, kernel: &str| {
            let mut facts = HostFacts::default();
            facts.set("kernel.release", kernel);
            facts.set("cpu.model", "A");
            facts.set("device", device);
            facts
        };
        let here = facts("vda", "6.12");
        assert!(
            is_same_machine(&here, &facts("vdb", "6.12")) && !is_same_machine(&here, &facts("vda", "6.13"))
        );
        assert!(
            is_same_device(&here, &facts("vda", "6.13")) && !is_same_device(&here, &facts("vdb", "6.12"))
        );
        let nothing = HostFacts::default();
        assert!(!is_same_machine(&nothing, &nothing) && !is_same_device(&nothing, &nothing));
    }
}
