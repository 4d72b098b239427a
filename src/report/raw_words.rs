//! The words of a change that is a difference, not a ratio: values of 0 or below.
//!
//! Enters: a comparison. Leaves: its share of the baseline's size with its interval, as tables have them, and both medians; the
//! difference in the metric's unit where the baseline has no size.

use super::scale_of_medians::scale_of;
use super::words::{NBSP, effect_decimals, has_share, interval_of, percent};
use crate::analyse::Comparison;
use crate::units::Scale;

/// `dev.flushes +12.4 % [+4.0, +20.8] of the baseline's size, medians 25.0 → 28.1`; `None` for ratios.
pub(super) fn raw_change(comparison: &Comparison) -> Option<String> {
    comparison.difference?;
    let name = &comparison.metric.name;
    let Some(share) = comparison.effect else {
        return Some(format!("{name} {}", difference_words(comparison)));
    };
    if !has_share(comparison) {
        return Some(format!(
            "{name} {}, medians {}",
            difference_words(comparison),
            medians_words(comparison)
        ));
    }
    Some(format!(
        "{name} {}{NBSP}% {} of the baseline's size, medians {}",
        percent(share.estimate, effect_decimals(comparison.effect)),
        interval_of(comparison),
        medians_words(comparison)
    ))
}

/// `25.0 → 28.1 MiB`: the medians of both arms.
pub(super) fn medians_words(comparison: &Comparison) -> String {
    let scale = scale_of(&[comparison]);
    let medians = [comparison.baseline.median, comparison.candidate.median];
    let [base, cand] = medians.map(|median| scale.number(median));
    let symbol = if scale.symbol.is_empty() { String::new() } else { format!("{NBSP}{}", scale.symbol) };
    // Where there is room words are whole.
    let symbol = symbol.replace("ops", "operations");
    format!("{base}{NBSP}→{NBSP}{cand}{symbol}")
}

/// `+3.10 [+1.00, +5.20]`: the difference in the metric's unit; nothing for ratios.
pub(super) fn difference_words(comparison: &Comparison) -> String {
    let metric = &comparison.metric;
    let Some(difference) = comparison.difference else { return String::new() };
    let scale = Scale::by_largest(&metric.unit, [difference.low, difference.high, difference.estimate]);
    let signed = |value: f64| {
        let size = scale.number(value.abs());
        // What is shown as 0 has no sign.
        let zero = size.chars().all(|c| c == '0' || c == '.');
        let sign = match value {
            _ if zero => "",
            v if v < 0.0 => "−",
            _ => "+",
        };
        format!("{sign}{size}")
    };
    let symbol = if scale.symbol.is_empty() { String::new() } else { format!("{NBSP}{}", scale.symbol) };
    format!(
        "{}{symbol} [{},{NBSP}{}]",
        signed(difference.estimate),
        beside_zero(signed(difference.low), difference.low, '>'),
        beside_zero(signed(difference.high), -difference.high, '<')
    )
}

/// An end that lies beside 0 must not read like one that holds it.
fn beside_zero(shown: String, beyond: f64, sign: char) -> String {
    let zero = shown.chars().all(|c| matches!(c, '0' | '.'));
    if zero && beyond > 0.0 { format!("{sign}{shown}") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::super::section_tests::made_up;
    use super::*;
    use crate::analyse::Interval;
    use crate::record::Metric;
    use crate::units::Unit;

    /// Flushes that went to nothing: a difference, and its share of the baseline's size.
    fn flushes(name: &str, median: f64) -> Comparison {
        let mut c = made_up().1.comparisons.remove(0);
        c.metric = Metric { name: name.to_owned(), unit: Unit::Count, ..c.metric };
        [c.baseline.median, c.candidate.median] = [median, 0.0];
        c.difference = Some(Interval { estimate: -3.0, low: -9.7, high: 2.2 });
        c.effect = Some(Interval { estimate: -1.0, low: -1.0, high: 0.735 });
        c
    }

    #[test]
    fn zeros_among_other_values_have_no_percent() {
        let words = |c: &Comparison| raw_change(c).unwrap().replace(NBSP, " ");
        let mut c = flushes("dev.flushes", 3.0);
        c.candidate.median = 1.5;
        for (at, value) in c.candidate.values.iter_mut().enumerate() {
            value.3 = if at < 2 { 0.0 } else { 1.5 };
        }
        assert_eq!(words(&c), "dev.flushes −3.00 [−9.70, +2.20], medians 3.00 → 1.50");
        c.candidate.values.iter_mut().for_each(|value| value.3 = 0.0);
        assert!(words(&c).starts_with("dev.flushes −100.0 % "), "none has any");
    }

    #[test]
    fn the_interval_is_the_one_of_the_table() {
        let words = |c: &Comparison| raw_change(c).unwrap().replace(NBSP, " ");
        let c = flushes("dev.flushes", 3.0);
        assert_eq!(
            words(&c),
            "dev.flushes −100.0 % [−100.0, +73.5] of the baseline's size, medians 3.00 → 0.00"
        );
        let few = flushes("dev.flushes_per_op", 0.000_188);
        assert!(words(&few).ends_with(", medians 0.188 → 0.000 per 1000 operations"), "{}", words(&few));
        let without = Comparison { effect: None, ..c };
        assert_eq!(words(&without), "dev.flushes −3.00 [−9.70, +2.20]");
        let claimed = Interval { estimate: 1.0, low: 1e-9, high: 2.0 };
        let claimed = Comparison { difference: Some(claimed), ..without };
        assert_eq!(words(&claimed), "dev.flushes +1.00 [>0.00, +2.00]");
    }
}
