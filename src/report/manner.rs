//! What a change of a metric is called: a time or a rate is faster or slower, of what is counted there is fewer or more.
//!
//! Enters: a metric and whether its value went up. Leaves: words. Whether that is good is not said here.

use crate::record::Metric;
use crate::units::{Better, Unit};

/// The words of one direction, for a sentence and for the last column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// `faster`, `fewer`.
    pub(super) word: &'static str,
    /// Beyond δ.
    pub(super) beyond: &'static str,
    /// Maybe not beyond δ.
    pub(super) maybe: &'static str,
    /// What an arm does with an amount, `has` or `uses`; `None`: it is faster or slower.
    pub(super) amount: Option<&'static str>,
}

const FASTER: Manner =
    Manner { word: "faster", beyond: "faster by > δ", maybe: "faster, > δ?", amount: None };
const SLOWER: Manner =
    Manner { word: "slower", beyond: "slower by > δ", maybe: "slower, > δ?", amount: None };
const FEWER: Manner =
    Manner { word: "fewer", beyond: "fewer by > δ", maybe: "fewer, > δ?", amount: Some("has") };
const LESS: Manner =
    Manner { word: "less", beyond: "less by > δ", maybe: "less, > δ?", amount: Some("has") };
const MORE: Manner =
    Manner { word: "more", beyond: "more by > δ", maybe: "more, > δ?", amount: Some("has") };

/// What it is called that `metric` changed for the better or for the worse.
pub(super) fn manner(metric: &Metric, good: bool) -> Manner {
    let up = good == (metric.better == Better::Higher);
    match (&metric.unit, up) {
        (Unit::Count | Unit::Other(_), false) if is_counted(&metric.name) => FEWER,
        (Unit::Count | Unit::Other(_), true) if is_counted(&metric.name) => MORE,
        (Unit::Bytes, false) => LESS,
        (Unit::Bytes, true) => MORE,
        (Unit::Seconds, false) if is_processor_time(&metric.name) => Manner { amount: Some("uses"), ..LESS },
        (Unit::Seconds, true) if is_processor_time(&metric.name) => Manner { amount: Some("uses"), ..MORE },
        _ if good => FASTER,
        _ => SLOWER,
    }
}

/// Whether more of it is neither good nor bad: merged requests, or requests in flight.
pub(super) fn is_neutral(metric: &Metric) -> bool {
    let of = metric.name.strip_prefix("dev.").unwrap_or_default();
    ["read_merges", "write_merges", "in_flight"].iter().any(|name| of.starts_with(name))
}

/// Whether assay, fio or a hook counts it. What a number without a unit is that somebody else named, nobody knows.
fn is_counted(name: &str) -> bool {
    const HEADS: [&str; 10] = [
        "dev.", "events.", "events_per_op.", "extents.", "blocks.", "fs.count", "hook.", "ctx", "majf",
        "minf",
    ];
    HEADS.iter().any(|head| name.starts_with(head)) || name.ends_with("total_ios") || name.contains("_per_")
}

fn is_processor_time(name: &str) -> bool {
    name.ends_with("_cpu") || name.contains("_cpu_per_")
}

/// Whether a change of the metric is one of speed.
pub(super) fn is_speed(metric: &Metric) -> bool {
    manner(metric, true).amount.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Sample;

    #[test]
    fn amounts_are_fewer_less_or_more_and_the_rest_is_faster() {
        let word = |name: &str, unit: Unit, good: bool| {
            let manner = manner(&Sample::new("", name, unit, 1.0).metric, good);
            (manner.word, manner.amount)
        };
        assert_eq!(word("write.bw", Unit::BytesPerSecond, true), ("faster", None));
        assert_eq!(word("runtime", Unit::Seconds, false), ("slower", None));
        assert_eq!(word("dev.flushes_per_op", Unit::Count, true), ("fewer", Some("has")));
        assert_eq!(word("write.total_ios", Unit::Count, true), ("more", Some("has")));
        let each_mib = Unit::Other("/MiB".to_owned());
        assert_eq!(word("extents.owner_changes_per_mib", each_mib, true), ("fewer", Some("has")));
        assert_eq!(word("points", Unit::Count, false), ("slower", None), "an imported one");
        assert_eq!(word("dev.write_bytes", Unit::Bytes, true), ("less", Some("has")));
        assert_eq!(word("sys_cpu", Unit::Seconds, false), ("more", Some("uses")));
    }
}
