//! Axes: ranges with ticks at round numbers, each with its label.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

/// A range of numbers that knows its ticks and how to label them. A logarithmic one maps the logarithm.
pub(super) struct Axis<'f> {
    range: Range<f64>,
    ticks: Vec<f64>,
    log: bool,
    label: Box<dyn Fn(f64) -> String + 'f>,
}

impl<'f> Axis<'f> {
    /// Linear from `range.start` to `range.end`.
    pub(super) fn linear(range: Range<f64>, ticks: Vec<f64>, label: impl Fn(f64) -> String + 'f) -> Self {
        Axis { range, ticks, log: false, label: Box::new(label) }
    }

    /// Logarithmic; both ends must be positive.
    pub(super) fn log(range: Range<f64>, ticks: Vec<f64>, label: impl Fn(f64) -> String + 'f) -> Self {
        Axis { range, ticks, log: true, label: Box::new(label) }
    }
}

impl Ranged for Axis<'_> {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = |x: f64| if self.log { x.ln() } else { x };
        let line: RangedCoordf64 = (place(self.range.start)..place(self.range.end)).into();
        line.map(&place(*value), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Lines between the ticks are not wanted.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis<'_> {
    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

/// More than any picture asks for.
const MOST_TICKS: i64 = 1000;

/// About `wanted` ticks at 1, 2 or 5 times a power of ten inside `low..high`.
pub(super) fn round_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    // Where numbers are so small or so large that a step is lost in rounding, there are no ticks.
    if !step.is_normal() || last.saturating_sub(first) > MOST_TICKS {
        return vec![low];
    }
    (first..=last).map(|at| at as f64 * step).collect()
}

/// Digits after the point that tell neighbouring ticks apart.
pub(super) fn tick_decimals(ticks: &[f64]) -> usize {
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if !step.is_finite() || step <= 0.0 { 1 } else { (-step.log10().floor()).clamp(0.0, 6.0) as usize }
}

/// A tick's number, with an exponent where it would be too wide for its axis.
pub(super) fn tick_text(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    if plain.len() > 7 { format!("{value:.1e}") } else { plain }
}

/// Ticks at 1, 2 and 5 times powers of ten inside `low..high` (both positive); every tenfold only when those
/// would be too many.
pub(super) fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let ticks = |factors: &[f64]| -> Vec<f64> {
        (first..=last)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(|tick| (low..=high).contains(tick))
            .collect()
    };
    [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]]
        .into_iter()
        .map(ticks)
        .find(|ticks| ticks.len() <= most)
        .unwrap_or_else(|| ticks(&[1.0]))
}

/// The range of values with a margin, also when all are equal.
pub(super) fn padded(values: impl Iterator<Item = f64>, margin: f64) -> Option<(f64, f64)> {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return None;
    }
    let span = high - low;
    let pad = if span > 0.0 { span * margin } else { low.abs().max(1e-9) * 0.05 };
    Some((low - pad, high + pad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(round_ticks(0.3, 9.7, 5), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(round_ticks(-31.0, 12.0, 5), [-30.0, -20.0, -10.0, 0.0, 10.0]);
        assert_eq!(tick_decimals(&[0.1, 0.15, 0.2]), 2);
        assert_eq!(log_ticks(150.0, 9000.0, 8), [200.0, 500.0, 1000.0, 2000.0, 5000.0]);
        assert_eq!(log_ticks(1.5, 2e6, 8), [10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }

    #[test]
    fn equal_values_still_have_a_range() {
        let (low, high) = padded([5.0, 5.0].into_iter(), 0.1).unwrap();
        assert!(low < 5.0 && high > 5.0);
        assert_eq!(padded([f64::NAN].into_iter(), 0.1), None);
    }
}
