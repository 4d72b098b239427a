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

#[cfg(test)]
mod tests {
    use super::*;

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
