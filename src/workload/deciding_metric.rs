//! What `--primary` says: metrics for all sections, or for each section that is named. Where there are several for one, each decides.
//!
//! Enters: `write.bw`, `wal:write.lat_ns.p99` or several of these with commas. Leaves: sections with metrics. Whether they
//! exist is not known here.

/// The wishes in `text`: the section (`None`: every section) and the metric. A text that is itself the name of a metric,
/// by `is_metric`, is one wish whatever is in it.
#[must_use]
pub fn deciding_metrics<'t>(
    text: &'t str,
    is_metric: impl Fn(&str) -> bool,
) -> Vec<(Option<&'t str>, &'t str)> {
    if is_metric(text) {
        return vec![(None, text)];
    }
    let one = |wish: &'t str| match wish.trim().rsplit_once(':') {
        Some((section, metric)) => (Some(section.trim()), metric.trim()),
        None => (None, wish.trim()),
    };
    text.split(',').map(one).collect()
}

/// The same metric of reads in the place of writes, or the other way round: rows that only read have no `write.bw`.
#[must_use]
pub fn other_direction(name: &str) -> Option<String> {
    let of_writes = name.strip_prefix("write.").or_else(|| name.strip_prefix("durable."));
    let of_reads = of_writes.map(|rest| format!("read.{rest}"));
    of_reads.or_else(|| name.strip_prefix("read.").map(|rest| format!("write.{rest}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stand_for_writes() {
        assert_eq!(other_direction("write.bw").as_deref(), Some("read.bw"));
        assert_eq!(other_direction("read.lat_ns.p99").as_deref(), Some("write.lat_ns.p99"));
        assert_eq!(
            other_direction("durable.lat_ns.mean").as_deref(),
            Some("read.lat_ns.mean"),
            "a read has no sync"
        );
        assert_eq!(other_direction("sync.lat_ns.mean"), None);
    }

    #[test]
    fn sections_stand_in_front_of_metrics() {
        let none = |_: &str| false;
        assert_eq!(deciding_metrics("write.bw", none), [(None, "write.bw")]);
        assert_eq!(
            deciding_metrics("wal:write.lat_ns.p99, checkpoint:write.bw", none),
            [(Some("wal"), "write.lat_ns.p99"), (Some("checkpoint"), "write.bw")]
        );
        assert_eq!(deciding_metrics("4k:seq:bw", none), [(Some("4k:seq"), "bw")]);
        assert_eq!(deciding_metrics("a:b,c", |name| name == "a:b,c"), [(None, "a:b,c")]);
    }
}
