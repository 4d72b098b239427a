//! Which metrics that accompany need no line of their own, and why.
//!
//! Enters: a row and its values. Leaves: a reason for each metric that has one. Every metric is compared all the same, and
//! `--all-metrics` lists it. Which arm a value belongs to must not be asked: a reason that depends on the difference would make the
//! rest look better than it is.

use super::comparison::{Comparison, Role, Unlisted};
use super::draft::Case;
use super::per_operation::names_of_forms;
use super::table::Table;
use crate::stats::descriptive;

/// What one job and direction did, told in four ways.
const AMOUNTS: [&str; 4] = ["bw", "iops", "total_ios", "io_bytes"];
/// What programs do by themselves: a few of them tell nothing of the load.
const BY_THE_WAY: [&str; 5] = ["ctx", "ctx.voluntary", "ctx.involuntary", "majf", "minf"];
/// Fewer than so many a trial are a few.
const FEW: f64 = 100.0;
/// Two metrics say the same where their ratio varies by no more than this share of δ over all trials.
const SHARE_OF_DELTA: f64 = 0.25;

/// Says it of each comparison that accompanies; comparisons are in the order of their cases.
pub(super) fn mark(comparisons: &mut [Comparison], cases: &[Case], table: &Table) {
    let accompany = comparisons.iter_mut().zip(cases).filter(|(_, case)| case.role == Role::Exploratory);
    for (comparison, case) in accompany {
        comparison.unlisted = reason(case, table, comparison.delta);
    }
}

/// The reason for one, with the row's other metrics in mind.
fn reason(case: &Case, table: &Table, delta: f64) -> Option<Unlisted> {
    let names = Names { case, table, delta };
    names.few().or_else(|| names.form()).or_else(|| names.same())
}

struct Names<'a> {
    case: &'a Case<'a>,
    table: &'a Table<'a>,
    delta: f64,
}

impl Names<'_> {
    fn name(&self, metric: u32) -> &str {
        &self.table.metrics()[metric as usize].name
    }

    fn named(&self, name: &str) -> Option<u32> {
        self.case.row.metrics.iter().copied().find(|metric| self.name(*metric) == name)
    }

    fn few(&self) -> Option<Unlisted> {
        // A few for each operation are a few.
        let metric = self.counted(self.case.metric).unwrap_or(self.case.metric);
        let few = |cell: &u32| {
            let values: Vec<f64> = self.table.column(*cell, metric).iter().map(|point| point.value).collect();
            values.is_empty() || descriptive::median(&values) < FEW
        };
        let by_the_way = BY_THE_WAY.contains(&self.name(metric));
        (by_the_way && self.case.row.cells.iter().flatten().all(few)).then_some(Unlisted::Few)
    }

    /// What a form is made of.
    fn counted(&self, form: u32) -> Option<u32> {
        let name = self.name(form);
        let plain = ["_per_op", "_per_byte", "_per_sync"].iter().find_map(|end| name.strip_suffix(end));
        let plain = plain.map(str::to_owned);
        self.named(
            &plain.or_else(|| Some(name.replacen("at_per_op.", "at.", 1)).filter(|plain| plain != name))?,
        )
    }

    /// Of a metric and its form, one is listed: the form where the amounts of work differ.
    fn form(&self) -> Option<Unlisted> {
        let own = self.case.metric;
        let form = names_of_forms(self.name(own)).iter().find_map(|name| self.named(name));
        if let Some(form) = form {
            return (!self.are_proportional(own, form))
                .then(|| Unlisted::Form { metric: self.name(form).to_owned() });
        }
        // Where the arms have as many operations for each fsync, one of the two says it.
        let per_operation =
            self.name(own).strip_suffix("_per_sync").map(|counted| format!("{counted}_per_op"));
        let per_operation = per_operation.and_then(|name| self.named(&name));
        if let Some(same) = per_operation.filter(|of| self.are_proportional(*of, own)) {
            return Some(Unlisted::SameAs { metric: self.name(same).to_owned() });
        }
        let counted = self.counted(own).filter(|counted| self.are_proportional(*counted, own))?;
        Some(Unlisted::SameAs { metric: self.name(counted).to_owned() })
    }

    /// Of the four amounts the one that decides is listed, else the first of those that say the same. The run time of all
    /// processes of a job together says the same as the job's where they end at once.
    fn same(&self) -> Option<Unlisted> {
        if self.name(self.case.metric) == "job_runtime" {
            let runtime = self.named("runtime").filter(|of| self.are_proportional(*of, self.case.metric))?;
            return Some(Unlisted::SameAs { metric: self.name(runtime).to_owned() });
        }
        // With `sync=` a write is durable when it has ended.
        if let Some(statistic) = self.name(self.case.metric).strip_prefix("durable.lat_ns.") {
            let of_writes =
                ["write.lat_ns", "write.clat_ns"].map(|kind| self.named(&format!("{kind}.{statistic}")));
            let same =
                of_writes.into_iter().flatten().find(|of| self.are_proportional(*of, self.case.metric))?;
            return Some(Unlisted::SameAs { metric: self.name(same).to_owned() });
        }
        let (direction, _) = amount(self.name(self.case.metric))?;
        let alike = |metric: &u32| amount(self.name(*metric)).is_some_and(|(other, _)| other == direction);
        let before = self.case.row.metrics.iter().copied().take_while(|metric| *metric != self.case.metric);
        let mut earlier = self.case.row.primaries.iter().copied().chain(before).filter(alike);
        let other = earlier.find(|metric| self.are_proportional(*metric, self.case.metric))?;
        Some(Unlisted::SameAs { metric: self.name(other).to_owned() })
    }

    /// Whether two metrics have one ratio in all trials of the row.
    fn are_proportional(&self, one: u32, other: u32) -> bool {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for cell in self.case.row.cells.iter().flatten() {
            for (a, b) in super::table::pairs(self.table.column(*cell, one), self.table.column(*cell, other))
            {
                if a.value == 0.0 && b.value == 0.0 {
                    continue;
                }
                let ratio = a.value / b.value;
                // Not a number where both are infinite, which no trial reports.
                (least, most) = (least.min(ratio), most.max(ratio));
            }
        }
        least > 0.0 && most.is_finite() && most <= least * (1.0 + SHARE_OF_DELTA * self.delta)
    }
}

/// Direction and kind of what one job did: `write.bw` is (`write`, `bw`), `bw` of both directions is (``, `bw`).
fn amount(name: &str) -> Option<(&str, &str)> {
    let (direction, kind) = name.rsplit_once('.').unwrap_or(("", name));
    (AMOUNTS.contains(&kind) && ["", "read", "write", "trim"].contains(&direction))
        .then_some((direction, kind))
}
