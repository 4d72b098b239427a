//! More flushes of the device's cache for each operation.
//!
//! Needs: the device's counters, or `--observe blocks`, without which nobody counts those of dm and md devices. Concludes: the worse arm flushes more often. The time of all flushes stands beside
//! it. Silent where it does not, or hardly ever, and where operations of different sizes have as many flushes for each byte: a larger
//! operation stands for more of them.

use super::super::cause::{Cause, Evidence, Grade, What};
use super::super::names::{FLUSH_BIOS, FLUSH_TIME, FLUSHES};
use super::super::pair::Pair;
use super::super::source::Source;
use super::rule::Rule;
use super::storage_wait::watched_time;
use crate::record::Unit;

/// Fewer than this for each operation are no matter.
const LEAST: f64 = 0.001;
/// What operations moved.
const MOVED: [&str; 3] = ["read.io_bytes", "write.io_bytes", "trim.io_bytes"];

pub(super) const RULE: Rule = Rule { name: "more_flushes", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let counted = pair.own.plain("dev.flushes_per_op", Unit::Count).filter(is_some_flush);
    let Some(found) = counted.or_else(|| flushes_of(pair)).filter(|found| pair.costs(found)) else {
        return Vec::new();
    };
    if found.baseline.max(found.candidate) < LEAST {
        return Vec::new();
    }
    if is_of_larger_operations(pair) {
        return Vec::new();
    }
    let took = watched_time(pair, FLUSH_TIME).or_else(|| pair.own.each("dev.flush_time", Unit::Seconds));
    let evidence = std::iter::once(found).chain(took.filter(|took| pair.costs(took))).collect();
    vec![Cause::new(RULE.name, Grade::GoesWith, What::MoreFlushes, evidence)]
}

/// Flushes for each operation by the device's counters, or else as the block layer saw them: commands, and where a device has no requests, as
/// dm and md, bios that ask for a flush. `None`: nobody knows.
pub(super) fn flushes_of(pair: &Pair<'_>) -> Option<Evidence> {
    let counted = pair.own.each("dev.flushes", Unit::Count);
    let watched = pair.watched.as_ref().map(|watched| watched.source);
    let seen = [FLUSHES, FLUSH_BIOS].into_iter().filter_map(|name| watched?.each(name, Unit::Count));
    let mut all = counted.into_iter().chain(seen);
    let first = all.next()?;
    if is_some_flush(&first) { Some(first) } else { all.find(is_some_flush).or(Some(first)) }
}

/// Counters of a device without requests stay at 0, whatever it is asked for.
fn is_some_flush(found: &Evidence) -> bool {
    found.baseline.max(found.candidate) > 0.0
}

/// Whether the arms' operations differ in size, and the worse arm flushes no more often for each byte.
fn is_of_larger_operations(pair: &Pair<'_>) -> bool {
    let of = |source: &Source<'_>, flushes: &str| source.ratio(&[flushes], &MOVED, flushes, Unit::Count);
    let watched = || {
        let source = &pair.watched.as_ref()?.source;
        [FLUSHES, FLUSH_BIOS].iter().find_map(|flushes| of(source, flushes).filter(is_some_flush))
    };
    let size = pair.own.each_of(&MOVED, "bytes", Unit::Bytes);
    size.is_some_and(|size| pair.differs(&size))
        && of(&pair.own, "dev.flushes")
            .filter(is_some_flush)
            .or_else(watched)
            .is_some_and(|each_byte| !pair.costs(&each_byte))
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
    fn of_a_device_without_requests_bios_tell_of_flushes() {
        let seen = [("blocks.lost", 0.0, 0.0), ("blocks.flushes", 0.0, 0.0), ("blocks.flush_bios", 1e4, 1e5)];
        for counted in [&[][..], &[("dev.flushes", 0.0, 0.0), ("dev.flushes_per_op", 0.0, 0.0)]] {
            let causes = found(&[&seen[..], counted].concat(), "more_flushes");
            let [cause] = causes.as_slice() else { panic!("{causes:?}") };
            assert_eq!(cause.evidence[0].metric, "blocks.flush_bios an operation");
        }
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
    fn as_many_flushes_for_each_byte_of_larger_operations_are_silent() {
        let of = |flushes: f64, bytes: f64| {
            let counted = [("dev.flushes", 1e4, flushes), ("write.io_bytes", 4e8, bytes)];
            found(&counted, "more_flushes").len()
        };
        assert_eq!(of(2e4, 8e8), 0, "one for each MiB, in blocks of 4 and of 8 KiB");
        assert_eq!(of(4e4, 8e8), 1);
        assert_eq!(of(2e4, 4e8), 1, "operations of one size");
    }

    #[test]
    fn fewer_flushes_or_as_many_are_silent() {
        assert_eq!(found(&[("dev.flushes_per_op", 1.0, 0.5)], "more_flushes"), []);
        assert_eq!(found(&[("dev.flushes_per_op", 1.0, 1.0)], "more_flushes"), []);
        assert_eq!(found(&[("dev.flushes_per_op", 0.0, 0.0001)], "more_flushes"), []);
    }
}
