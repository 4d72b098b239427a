//! More flushes of the device's cache for each operation.
//!
//! Needs: the device's counters, or `--observe blocks`. Concludes: the worse arm flushes more often. The time of all flushes stands beside
//! it. Silent where it does not, or hardly ever.

use super::super::cause::{Cause, Grade, What};
use super::super::names::{FLUSH_TIME, FLUSHES};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::Unit;

/// Fewer than this for each operation are no matter.
const LEAST: f64 = 0.001;

pub(super) const RULE: Rule = Rule { name: "more_flushes", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let seen = || pair.watched.as_ref()?.source.each(FLUSHES, Unit::Count);
    let counted = pair.own.plain("dev.flushes_per_op", Unit::Count);
    let found = counted.or_else(|| pair.own.each("dev.flushes", Unit::Count)).or_else(seen);
    let Some(found) = found.filter(|found| pair.costs(found)) else { return Vec::new() };
    if found.baseline.max(found.candidate) < LEAST {
        return Vec::new();
    }
    let traced = pair.watched.as_ref().and_then(|watched| watched.source.each(FLUSH_TIME, Unit::Seconds));
    let took = traced.or_else(|| pair.own.each("dev.flush_time", Unit::Seconds));
    let evidence = std::iter::once(found).chain(took.filter(|took| pair.costs(took))).collect();
    vec![Cause::new(RULE.name, Grade::GoesWith, What::MoreFlushes, evidence)]
}

#[cfg(test)]
mod tests {
    use super::super::super::made_pair::found;

    #[test]
    fn more_flushes_go_with_the_worse_arm() {
        let causes = found(&[("dev.flushes_per_op", 0.0, 1.0)], "more_flushes");
        assert_eq!((causes.len(), causes[0].evidence[0].metric.as_str()), (1, "dev.flushes_per_op"));
        let causes = found(&[("dev.flushes", 1e4, 1e5)], "more_flushes");
        assert!((causes[0].evidence[0].candidate - 1.0).abs() < 0.01, "{causes:?}");
    }

    #[test]
    fn the_time_of_the_flushes_stands_beside_their_number() {
        let of = |baseline: f64, candidate: f64| {
            let flushes = ("dev.flushes_per_op", 0.5, 2.0);
            found(&[flushes, ("dev.flush_time", baseline, candidate)], "more_flushes").remove(0).evidence
        };
        assert_eq!(of(0.1, 0.9)[1].metric, "dev.flush_time an operation");
        assert!((of(0.1, 0.9)[1].candidate - 9e-6).abs() < 1e-7);
        assert_eq!(of(0.9, 0.1).len(), 1, "less time is no reason");
    }

    #[test]
    fn fewer_flushes_or_as_many_are_silent() {
        assert_eq!(found(&[("dev.flushes_per_op", 1.0, 0.5)], "more_flushes"), []);
        assert_eq!(found(&[("dev.flushes_per_op", 1.0, 1.0)], "more_flushes"), []);
        assert_eq!(found(&[("dev.flushes_per_op", 0.0, 0.0001)], "more_flushes"), []);
    }
}
