//! The words of a change that is a difference, not a ratio: values of 0 or below.
//!
//! Enters: a comparison. Leaves: its difference in the metric's unit, with the share of the baseline's magnitude.

use super::words::{NBSP, percent};
use crate::analyse::Comparison;
use crate::units::Scale;

/// `dev.flushes +3.10 [+1.00, +5.20], +12.4 % of the baseline's size`; `None` for ratios.
pub(super) fn raw_change(comparison: &Comparison) -> Option<String> {
    let difference = comparison.difference?;
    let metric = &comparison.metric;
    let scale = Scale::for_column(&metric.unit, [difference.low, difference.high, difference.estimate]);
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
    let mut text = format!(
        "{} {}{symbol} [{},{NBSP}{}]",
        metric.name,
        signed(difference.estimate),
        signed(difference.low),
        signed(difference.high)
    );
    if let Some(share) = comparison.effect {
        text.push_str(&format!(", {}{NBSP}% of the baseline's size", percent(share.estimate, 1)));
    }
    Some(text)
}
