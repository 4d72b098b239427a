//! Refuses processor times that are too short for the clock that divides them into user and kernel time.
//!
//! Enters: a metric's name and the trials behind it. Leaves: a caveat, when it is refused. Kernels divide the time of a process by the
//! state in which ticks found it, of up to 10 ms each: a program that sleeps between ticks may have hundreds of calls and no kernel time.
//! Their sum is exact, but nobody compares it.

use super::comparison::Caveat;
use super::draft::{Case, Setting};
use super::table::{Point, pairs};
use crate::stats::descriptive::median;
use crate::units::Unit;

/// The longest tick of Linux: 100 a second.
const TICK_S: f64 = 0.01;
/// Of fewer ticks a trial the division is one or two ticks' luck.
const FEWEST_TICKS: f64 = 5.0;
/// With more ticks a trial none of one kind is a finding.
const MANY_TICKS: f64 = 50.0;
/// The two that are divided, and the same of a command that a server works for.
const DIVIDED: [[&str; 2]; 2] = [["usr_cpu", "sys_cpu"], ["client.usr_cpu", "client.sys_cpu"]];

/// The caveat when a typical trial of either arm had only a few ticks, or no time of this kind in most of its trials.
pub(super) fn refusal(setting: &Setting, case: &Case) -> Option<Caveat> {
    let metrics = setting.table.metrics();
    let metric = &metrics[case.metric as usize];
    let plain = ["_per_op", "_per_byte"].iter().find_map(|end| metric.name.strip_suffix(end));
    let name = plain.unwrap_or(&metric.name);
    let named = |name: &str| {
        let is_its = |at: &u32| metrics[*at as usize].name == name && metrics[*at as usize].job == metric.job;
        case.row.metrics.iter().copied().find(is_its)
    };
    let both = DIVIDED.into_iter().find(|both| both.contains(&name) && metric.unit == Unit::Seconds)?;
    let [usr, sys] = both.map(named);
    let column = |cell: u32, metric: Option<u32>| metric.map(|metric| setting.table.column(cell, metric));
    let is_too_short = |cell: u32| {
        let own = column(cell, named(name)).unwrap_or_default();
        let both = column(cell, usr).zip(column(cell, sys));
        let has_fewer = |ticks: f64| both.is_some_and(|(usr, sys)| has_fewer_ticks(usr, sys, ticks));
        has_fewer(FEWEST_TICKS) || (own.len() < 2 * zeros(own) && has_fewer(MANY_TICKS))
    };
    let refused = case.cells().into_iter().flatten().any(is_too_short);
    refused.then(|| Caveat::ProcessorTimeRefused { metric: metric.name.clone() })
}

fn zeros(points: &[Point]) -> usize {
    points.iter().filter(|point| point.value == 0.0).count()
}

/// Whether a typical trial has fewer ticks than so many of both together.
fn has_fewer_ticks(usr: &[Point], sys: &[Point], ticks: f64) -> bool {
    let sums: Vec<f64> = pairs(usr, sys).iter().map(|(usr, sys)| usr.value + sys.value).collect();
    !sums.is_empty() && median(&sums) < ticks * TICK_S
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::{Options, Verdict, analyse};
    use super::*;
    use crate::record::Metric;
    use crate::units::Better;

    /// Whether sys_cpu is refused where a trial of the candidate has these seconds.
    fn is_refused(of_candidate: impl Fn(u32) -> [f64; 2]) -> bool {
        let mut run = run_of(&Made::default(), 6);
        let metric = |name: &str| Metric::new("", name, Unit::Seconds, Better::Lower);
        let at = DIVIDED[0].map(|name| run.metric_index(&metric(name)));
        for trial in &mut run.trials {
            let more = f64::from(trial.round) * 1e-3;
            let [usr, sys] =
                if trial.cell == 0 { [0.3 + more, 0.0431 + more] } else { of_candidate(trial.round) };
            trial.values.extend([(at[0], usr), (at[1], sys)]);
        }
        let options = Options { metrics: vec!["sys_cpu".to_owned()], ..Options::default() };
        let found =
            analyse(&run, &options).comparisons.into_iter().find(|c| c.metric.name == "sys_cpu").unwrap();
        let refused = matches!(&found.verdict, Verdict::NotMeasured(reason) if reason.ends_with("ticks of up to 10 ms"));
        assert_eq!(refused, found.mean_change.estimate.is_nan(), "{found:?}");
        refused
    }

    #[test]
    fn processor_time_of_a_few_ticks_is_refused() {
        assert!(is_refused(|round| [0.3, if round == 0 { 0.01 } else { 0.0 }]), "none in most trials");
        assert!(is_refused(|round| [0.02, 0.02 + f64::from(round) * 1e-3]), "some 40 ms together");
        assert!(!is_refused(|_| [0.9, 0.0]), "none, and much of the other");
        assert!(!is_refused(|round| [0.2, 0.02 + f64::from(round) * 1e-3]));
    }
}
