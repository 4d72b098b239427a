//! The smallest differences that matter: one for all metrics, and other ones for some.
//!
//! Enters: a text like `2%,p99=10%`. Leaves: the difference of each metric. It must not know what is compared.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Metric;
use crate::units::parse_ratio;

/// The smallest difference that matters in some metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricDelta {
    /// Which: a metric's name or a part of it between dots (`p99`, `clat_ns`, `write.bw`), behind `SECTION:` those of a section.
    pub metric: String,
    /// A ratio minus 1.
    pub delta: f64,
}

impl MetricDelta {
    /// Whether a section's metric of this name is meant.
    #[must_use]
    pub fn is_of(&self, section: &str, name: &str) -> bool {
        let within = |asked: &str| {
            let (asked, parts): (Vec<&str>, Vec<&str>) = (parts(asked), parts(name));
            parts.windows(asked.len()).any(|some| some == asked)
        };
        let of_section = |(asked, metric): (&str, &str)| asked == section && within(metric);
        within(&self.metric) || self.metric.rsplit_once(':').is_some_and(of_section)
    }
}

/// Between the dots; that of `p99.9` is a part of a number.
fn parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in name.match_indices('.') {
        let is_fraction = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        if !is_fraction(&name[at + 1..]) {
            parts.push(&name[from..at]);
            from = at + 1;
        }
    }
    parts.push(&name[from..]);
    parts
}

/// What was said of smallest differences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deltas {
    /// That of every metric without one of its own; `None`: nothing was said of it.
    pub others: Option<f64>,
    /// Those of some metrics; of several for one the last holds.
    pub of_metrics: Vec<MetricDelta>,
}

/// The smallest difference that matters in a metric: the last of `own` that is of it, else `others`.
#[must_use]
pub fn delta_of(metric: &Metric, own: &[MetricDelta], others: f64) -> f64 {
    let last = own.iter().rev().find(|one| one.is_of(&metric.job, &metric.name));
    last.map_or(others, |one| one.delta)
}

/// `2 % (p99: 10 %)`.
#[must_use]
pub fn deltas_in_words(others: f64, own: &[MetricDelta], percent: impl Fn(f64) -> String) -> String {
    let named: Vec<String> =
        own.iter().map(|own| format!("{}: {}", own.metric, percent(own.delta))).collect();
    match named.is_empty() {
        true => percent(others),
        false => format!("{} ({})", percent(others), named.join(", ")),
    }
}

impl FromStr for Deltas {
    type Err = String;

    /// `2%`, `2%,p99=10%` or `wal:p99=10%,write.bw=0.05`.
    fn from_str(text: &str) -> Result<Deltas, String> {
        let mut deltas = Deltas::default();
        for part in text.split(',').map(str::trim) {
            let (metric, ratio) = match part.rsplit_once('=') {
                Some((metric, ratio)) => (Some(metric.trim()), ratio.trim()),
                None => (None, part),
            };
            let delta = match parse_ratio(ratio)? {
                ratio if ratio > 0.0 => ratio,
                _ => return Err(format!("'{part}' is 0, and no difference is that small; write e.g. 2%")),
            };
            match metric {
                Some("") => return Err(format!("'{part}' names no metric; write e.g. p99=10%")),
                Some(metric) => deltas.of_metrics.push(MetricDelta { metric: metric.to_owned(), delta }),
                None if deltas.others.is_some() => {
                    return Err(format!("'{part}' is a second one for all metrics; write e.g. p99={part}"));
                }
                None => deltas.others = Some(delta),
            }
        }
        Ok(deltas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Better, Unit};

    fn of(own: &str, section: &str, name: &str) -> f64 {
        let deltas: Deltas = own.parse().unwrap();
        let metric = Metric {
            job: section.to_owned(),
            name: name.to_owned(),
            unit: Unit::Count,
            better: Better::Lower,
        };
        delta_of(&metric, &deltas.of_metrics, deltas.others.unwrap_or(0.02))
    }

    #[test]
    fn a_metric_has_the_last_that_names_it() {
        assert_eq!(of("5%", "", "write.bw"), 0.05);
        assert_eq!(of("p99=10%", "", "write.clat_ns.p99"), 0.1);
        assert_eq!(of("p99=10%", "", "write.bw"), 0.02, "nothing was said of the others");
        assert_eq!(of("p99=10%", "", "write.clat_ns.p99.9"), 0.02, "another percentile");
        assert_eq!(of("p99.9=10%", "", "write.clat_ns.p99.9"), 0.1);
        assert_eq!(of("1%,clat_ns=10%,read.clat_ns.p99=30%", "", "read.clat_ns.p99"), 0.3);
        assert_eq!(of("1%,clat_ns=10%,read.clat_ns.p99=30%", "", "write.clat_ns.p99"), 0.1);
        assert_eq!(of("wal:p99=10%", "wal", "write.clat_ns.p99"), 0.1);
        assert_eq!(of("wal:p99=10%", "checkpoint", "write.clat_ns.p99"), 0.02);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let said = |text: &str| text.parse::<Deltas>().unwrap_err();
        assert_eq!(said("2%,3%"), "'3%' is a second one for all metrics; write e.g. p99=3%");
        assert_eq!(said("=3%"), "'=3%' names no metric; write e.g. p99=10%");
        assert_eq!(said("p99=0"), "'p99=0' is 0, and no difference is that small; write e.g. 2%");
        assert!("".parse::<Deltas>().is_err() && "2%,".parse::<Deltas>().is_err());
    }
}
