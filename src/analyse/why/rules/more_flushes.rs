//! More flushes of the device's cache for each operation.
//!
//! Needs: the device's counters, or `--observe blocks`. Concludes: the worse arm flushes more often. Silent where it does not, or hardly
//! ever.

use super::super::cause::{Cause, Grade, What};
use super::super::names::FLUSHES;
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
    vec![Cause::new(RULE.name, Grade::GoesWith, What::MoreFlushes, vec![found])]
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
    fn fewer_flushes_or_as_many_are_silent() {
        assert_eq!(found(&[("dev.flushes_per_op", 1.0, 0.5)], "more_flushes"), []);
        assert_eq!(found(&[("dev.flushes_per_op", 1.0, 1.0)], "more_flushes"), []);
        assert_eq!(found(&[("dev.flushes_per_op", 0.0, 0.0001)], "more_flushes"), []);
    }
}
