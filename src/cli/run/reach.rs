//! What the rounds of a plan can show: refused where it is nothing, told in `--plan`.
//!
//! Enters: a plan with its experiment. Leaves: how many comparisons share the error rate, and the change that the last round
//! will probably show. How a run is judged: docs/METHODOLOGY.md.

use std::collections::BTreeSet;

use crate::cli::Failure;
use crate::experiment::{Experiment, MAX_ROUNDS};
use crate::plan::{CellSpec, MetricNames, Plan};
use crate::record::StopRule;
use crate::stats::sequential::{Boundary, FEWEST_ROUNDS};
use crate::stats::{rounds_needed, signed_rank};
use crate::units::counted;
use crate::workload::deciding_metrics;

/// How much the change scatters from round to round in the example.
const SCATTER: f64 = 0.05;

/// What is judged in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Rows × candidates × the metrics that decide.
    comparisons: u32,
    /// Whether a trial may report more rows than could be foreseen.
    at_least: bool,
}

impl Reach {
    pub(super) fn of(experiment: &Experiment, plan: &Plan) -> Reach {
        let names = MetricNames::of(experiment, &plan.cells).filter(MetricNames::are_all);
        let wishes =
            plan.primary.as_deref().map(|text| deciding_metrics(text, |_| false)).unwrap_or_default();
        let deciding = match &names {
            Some(names) => deciding_in(names, &wishes, plan.asked),
            None => wishes.len().max(1),
        };
        let candidates = plan.cells.iter().filter(|cell| is_judged(plan, cell)).count();
        let candidates = if plan.aa { 1 } else { candidates };
        Reach { comparisons: (deciding * candidates) as u32, at_least: names.is_none() }
    }

    /// The first round after which a run of no fixed length may end.
    pub(super) fn first_look(self, stop: &StopRule) -> Option<u32> {
        if stop.rounds.is_some() || stop.anytime {
            return None;
        }
        let share = stop.alpha / f64::from(self.comparisons.max(1));
        Boundary::new(stop.max_rounds as usize, share, stop.exact).first_look().map(|round| round as u32)
    }

    /// Refuses rounds that can claim nothing whatever they measure.
    ///
    /// # Errors
    /// `--exact` with too few rounds for so many comparisons.
    pub(super) fn check(self, stop: &StopRule) -> Result<(), Failure> {
        let rounds = stop.rounds.unwrap_or(stop.max_rounds);
        if !stop.exact || self.claims(stop, rounds) {
            return Ok(());
        }
        let option = if stop.rounds.is_some() { "--rounds" } else { "--max-rounds" };
        let enough = (rounds..=MAX_ROUNDS as u32)
            .find(|rounds| self.claims(stop, *rounds))
            .map_or_else(String::new, |rounds| format!("{option} {rounds}, "));
        Err(Failure::request(format!(
            "{} can show nothing by ranks in {}, however large a difference is",
            counted(self.comparisons.into(), "comparison"),
            counted(rounds.into(), "round")
        ))
        .hint(format!("{enough}fewer levels, or no --exact: Student's t then judges what ranks cannot")))
    }

    /// Whether ranks can claim anything in so many rounds, looked at once at the end where their number is fixed.
    fn claims(self, stop: &StopRule, rounds: u32) -> bool {
        let (rounds, share) = (rounds as usize, stop.alpha / f64::from(self.comparisons.max(1)));
        match stop.rounds {
            Some(_) => rounds >= FEWEST_ROUNDS && signed_rank::critical(rounds, share).is_some(),
            None => !Boundary::new(rounds, share, true).rank_looks().is_empty(),
        }
    }

    /// What the last round will probably show, for `--plan`.
    pub(super) fn words(self, plan: &Plan, stop: &StopRule) -> Option<String> {
        let StopRule { alpha, anytime, .. } = *stop;
        let rounds = plan.rounds_at_most();
        let too_few = too_few(plan);
        if too_few.is_some() {
            return too_few;
        }
        if anytime || plan.aa {
            return None;
        }
        let spreads =
            rounds_needed::smallest_shown(rounds as usize, alpha / f64::from(self.comparisons.max(1)));
        let least = if self.at_least { "at least " } else { "" };
        Some(format!(
            "{least}{}: where a change scatters by {} from round to round, {rounds} rounds probably show one of {}",
            counted(self.comparisons.into(), "comparison"),
            percent(SCATTER),
            percent((spreads * SCATTER.ln_1p()).exp_m1())
        ))
    }
}

/// Whether a cell is compared with the baseline of its row: not where one of them asks for what no machine can do, whose trials are
/// skipped.
fn is_judged(plan: &Plan, cell: &CellSpec) -> bool {
    let is_possible = |cell: &CellSpec| cell.target.impossible().is_none();
    let mut levels = cell.levels.clone();
    levels[plan.compare] = 0;
    let baseline = plan.cells.iter().find(|other| other.levels == levels);
    cell.levels[plan.compare] > 0 && is_possible(cell) && baseline.is_none_or(is_possible)
}

/// Why no verdict can come of a plan, where its rounds are too few.
pub(super) fn too_few(plan: &Plan) -> Option<String> {
    let rounds = plan.rounds_at_most();
    ((rounds as usize) < FEWEST_ROUNDS).then(|| {
        format!("{} can show nothing: a verdict takes {FEWEST_ROUNDS}", counted(rounds.into(), "round"))
    })
}

/// Two digits are all that such a forecast knows.
fn percent(ratio: f64) -> String {
    let digits = usize::from(ratio < 0.0995);
    let number = format!("{:.digits$}", ratio * 100.0);
    format!("{} %", number.strip_suffix(".0").unwrap_or(&number))
}

/// How many metrics decide at one combination of levels, chosen as `analyse` does it: of each section those wished for it, else those
/// wished for all; of the whole trial those that no section has; where nothing is wished, or nobody asked for it, the bandwidth of each
/// other section.
fn deciding_in(names: &MetricNames, wishes: &[(Option<&str>, &str)], is_asked: bool) -> usize {
    let sections: Vec<&str> = names.sections().into_iter().collect();
    // What a single section reports is the trial's.
    let several = sections.len() > 1;
    let rows: Vec<Vec<&str>> = match several {
        true => [""].iter().chain(&sections).map(|section| vec![*section]).collect(),
        false => vec![[""].iter().chain(&sections).copied().collect()],
    };
    let is_own = |row: &[&str], section: &Option<&str>| section.is_some_and(|section| row.contains(&section));
    let a_section_has = |name: &str| sections.iter().any(|section| names.decides(&[section], name).is_some());
    let wished = |row: &Vec<&str>| -> BTreeSet<String> {
        let own = wishes.iter().any(|(section, _)| is_own(row, section));
        let meant = wishes.iter().filter(|(section, _)| match own {
            true => is_own(row, section),
            false => section.is_none(),
        });
        let left = meant.filter(|(_, name)| !(several && row[..] == [""] && a_section_has(name)));
        left.filter_map(|(_, name)| names.decides(row, name)).collect()
    };
    let found: Vec<usize> = rows.iter().map(|row| wished(row).len()).collect();
    let alone = is_asked || wishes.iter().any(|(section, _)| section.is_none());
    let usual = !alone || found.iter().all(|count| *count == 0);
    let of_row = |(row, count): (&Vec<&str>, &usize)| match *count {
        0 => usize::from(usual && !(several && row[..] == [""])),
        count => count,
    };
    rows.iter().zip(&found).map(of_row).sum::<usize>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::CommandLine;
    use std::path::Path;

    const TWO: &str = "[global]\nsize=1m\n[wal]\nrw=write\nfsync=1\n[scan]\nrw=randread\n";
    const ONE: &str = "[w]\nrw=write\nsize=1m\n";

    fn reach(job: &str, primary: Option<&str>, levels: &str) -> Reach {
        let line = CommandLine {
            vary: vec![levels.to_owned()],
            primary: primary.map(str::to_owned),
            ..CommandLine::default()
        };
        let experiment = Experiment::from_job(job, "j.fio", Path::new("/"), &line).unwrap();
        Reach::of(&experiment, &Plan::new(&experiment, 1, Path::new("/"), "own").unwrap())
    }

    #[test]
    fn each_wish_is_counted_where_it_decides() {
        let of = |job: &str, primary| reach(job, primary, "bs=4k,8k").comparisons;
        assert_eq!(of(ONE, None), 1);
        assert_eq!(of(TWO, None), 2);
        // Only the whole trial has flushes; reads have bandwidth in the place of writes.
        assert_eq!(of(TWO, Some("write.bw,dev.flushes")), 3);
        assert_eq!(of(TWO, Some("dev.flushes")), 1);
        assert_eq!(of(TWO, Some("dev.flushes_per_op,usr_cpu_per_op")), 3);
        assert_eq!(of(TWO, Some("sync.lat_ns.p99")), 1, "one section syncs");
        assert_eq!(of(TWO, Some("wal:sync.lat_ns.p99")), 1, "it alone");
        assert_eq!(of(TWO, Some("wal:sync.lat_ns.p99,write.bw")), 2);
        assert_eq!(of(TWO, Some("write.bw,read.bw")), 2, "the same in each section");
        assert_eq!(of(ONE, Some("write.bw,dev.flushes,write.bw")), 2);
        assert_eq!(reach(TWO, Some("dev.flushes"), "bs=4k,8k,16k").comparisons, 2);
    }

    #[test]
    fn what_no_machine_can_do_is_no_comparison() {
        let of = |vary: [&str; 2], compare: &str| {
            let line = CommandLine {
                vary: vary.map(str::to_owned).to_vec(),
                target: vec!["loop:400m".to_owned()],
                compare: Some(compare.to_owned()),
                ..CommandLine::default()
            };
            let experiment = Experiment::from_job(ONE, "j.fio", Path::new("/"), &line).unwrap();
            Reach::of(&experiment, &Plan::new(&experiment, 1, Path::new("/"), "own").unwrap()).comparisons
        };
        let vary = ["extsize=default,1m", "fs=xfs,ext4"];
        assert_eq!(of(vary, "extsize"), 1, "ext4 has no such hint");
        assert_eq!(of(vary, "fs"), 1);
        assert_eq!(of(["direct=0,1", "fs=xfs,ext4"], "direct"), 2);
    }

    #[test]
    fn the_first_look_comes_later_with_more_comparisons() {
        let first = |levels: &str, stop: &StopRule| reach(ONE, None, levels).first_look(stop);
        let usual = StopRule::default();
        assert_eq!((first("bs=4k,8k", &usual), first("bs=4k,8k,16k", &usual)), (Some(4), Some(5)));
        assert_eq!(first("bs=4k,8k", &StopRule { exact: true, ..usual }), Some(8));
        assert_eq!(first("bs=4k,8k", &StopRule { rounds: Some(6), ..usual }), None);
    }

    #[test]
    fn exact_is_refused_where_ranks_can_show_nothing() {
        let one = reach(ONE, None, "bs=4k,8k");
        let fixed = |rounds| StopRule { rounds: Some(rounds), exact: true, ..StopRule::default() };
        // 2^(1−n) ≤ α/m: p of five rounds is 0.0625 at least.
        let refused = one.check(&fixed(5)).unwrap_err();
        assert_eq!(refused.code(), 2);
        assert!(
            refused.to_string().starts_with("1 comparison can show nothing by ranks in 5 rounds"),
            "{refused}"
        );
        assert!(refused.hinted().is_some_and(|hint| hint.to_string().starts_with("--rounds 6, ")));
        assert!(one.check(&fixed(6)).is_ok());
        assert!(reach(ONE, None, "bs=4k,8k,16k").check(&fixed(6)).is_err());
        assert!(one.check(&StopRule { exact: false, ..fixed(5) }).is_ok());
        assert!(one.check(&StopRule { rounds: None, max_rounds: 5, ..fixed(5) }).is_err());
    }
}
