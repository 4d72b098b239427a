//! Lost queue depth: fewer requests are under way at the device while it works.
//!
//! Needs: the device's counters. Concludes: the time of reads and writes by the time the device was busy is less in the worse arm. Silent
//! where it is not, and where hardly any request reaches the device.

use super::super::cause::{Cause, Evidence, Grade, What};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::Unit;

/// Fewer requests for each operation than this are not the load's own.
const REACHES: f64 = 0.01;
/// A fall by less than this share is the noise of counters that have ticks.
const LEAST_FALL: f64 = 0.15;

pub(super) const RULE: Rule = Rule { name: "queue_depth", find };

/// Requests under way at the device while it works.
pub(super) const DEPTH: &str = "requests under way at the device";
/// The time of requests. `dev.queue_time` also has that of flush commands (Linux, block/genhd.c: part_stat_show()), which are no depth.
pub(super) const TIMES: [&str; 2] = ["dev.read_time", "dev.write_time"];

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let requests = pair.own.each("dev.read_ios", Unit::Count).into_iter();
    let requests: Vec<_> = requests.chain(pair.own.each("dev.write_ios", Unit::Count)).collect();
    let sum = |arm: usize| requests.iter().map(|each| [each.baseline, each.candidate][arm]).sum::<f64>();
    let depth = pair.own.ratio(&TIMES, &["dev.busy"], DEPTH, Unit::Count);
    let fell = |depth: &Evidence| {
        let values = [depth.baseline, depth.candidate];
        pair.lacks(depth) && values[pair.worse] < (1.0 - LEAST_FALL) * values[1 - pair.worse]
    };
    let depth = depth.map(at_least_one);
    match depth.filter(fell).filter(|_| sum(0).min(sum(1)) >= REACHES) {
        Some(depth) => vec![Cause::new(RULE.name, Grade::GoesWith, What::QueueDepth, vec![depth])],
        None => Vec::new(),
    }
}

/// While it works at least one is: before Linux 6.10 a tick counts as busy in which a request begins, and the ratio is less where the
/// device is mostly at rest.
pub(super) fn at_least_one(depth: Evidence) -> Evidence {
    Evidence { baseline: depth.baseline.max(1.0), candidate: depth.candidate.max(1.0), ..depth }
}

#[cfg(test)]
mod tests {
    use super::super::super::made_pair::found;

    const IOS: (&str, f64, f64) = ("dev.write_ios", 1e5, 1e5);

    #[test]
    fn fewer_requests_at_once_go_with_the_worse_arm() {
        let causes = found(&[IOS, ("dev.write_time", 4.0, 1.0), ("dev.busy", 0.5, 1.0)], "queue_depth");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        assert!(
            (cause.evidence[0].baseline - 8.0).abs() < 0.01
                && (cause.evidence[0].candidate - 1.0).abs() < 0.01
        );
    }

    #[test]
    fn a_device_at_rest_has_no_depth_below_one() {
        let one_at_a_time = [IOS, ("dev.write_time", 0.9, 0.14), ("dev.busy", 1.0, 1.0)];
        assert_eq!(found(&one_at_a_time, "queue_depth"), []);
    }

    #[test]
    fn the_time_of_flushes_is_no_depth() {
        let flushing =
            [IOS, ("dev.queue_time", 8.0, 1.0), ("dev.write_time", 1.0, 1.0), ("dev.busy", 1.0, 1.0)];
        assert_eq!(found(&flushing, "queue_depth"), []);
    }

    #[test]
    fn as_many_more_and_none_of_the_loads_own_are_silent() {
        assert_eq!(found(&[IOS, ("dev.write_time", 1.0, 1.0), ("dev.busy", 1.0, 1.0)], "queue_depth"), []);
        assert_eq!(found(&[IOS, ("dev.write_time", 1.0, 4.0), ("dev.busy", 1.0, 1.0)], "queue_depth"), []);
        assert_eq!(found(&[("dev.write_time", 4.0, 1.0), ("dev.busy", 1.0, 1.0)], "queue_depth"), []);
    }
}
