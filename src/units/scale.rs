//! One scale a column: chosen by the value nearest zero so that it keeps three significant digits
//! (the rule of benchunit's `scale.go`).

use super::Unit;

/// A divisor and the symbol that goes with it, for a whole column.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Divide a base-unit value by this.
    pub divisor: f64,
    /// The scaled unit's symbol, e.g. `MiB/s`.
    pub symbol: String,
    /// Digits after the point, the same for the whole column.
    pub decimals: usize,
}

const BINARY: [(f64, &str); 5] =
    [(1_099_511_627_776.0, "Ti"), (1_073_741_824.0, "Gi"), (1_048_576.0, "Mi"), (1024.0, "Ki"), (1.0, "")];
const DECIMAL: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
const FROM_NANOSECONDS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const FROM_SECONDS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];

impl Scale {
    /// The scale for a column of base-unit `values`: the largest prefix that leaves the value nearest zero
    /// (zeros aside) at least 1. Non-finite values are ignored.
    #[must_use]
    pub fn for_column(unit: &Unit, values: impl IntoIterator<Item = f64>) -> Scale {
        let smallest = values
            .into_iter()
            .map(f64::abs)
            .filter(|v| v.is_finite() && *v > 0.0)
            .fold(f64::INFINITY, f64::min);
        let smallest = if smallest.is_finite() { smallest } else { 0.0 };
        let (divisor, symbol) = match unit {
            Unit::BytesPerSecond => prefixed(&BINARY, smallest, "B/s"),
            Unit::Bytes => prefixed(&BINARY, smallest, "B"),
            Unit::PerSecond => prefixed(&DECIMAL, smallest, "/s"),
            Unit::Count => prefixed(&DECIMAL, smallest, ""),
            Unit::Nanoseconds => prefixed(&FROM_NANOSECONDS, smallest, ""),
            Unit::Seconds => prefixed(&FROM_SECONDS, smallest, ""),
            Unit::Percent => (1.0, "%".to_owned()),
            Unit::Other(name) => (1.0, name.clone()),
        };
        Scale { divisor, symbol, decimals: decimals_for(smallest / divisor) }
    }

    /// The scale of values that are compared by size: the unit and three digits of the one furthest from zero, beside which the
    /// others matter less.
    #[must_use]
    pub fn by_largest(unit: &Unit, values: impl IntoIterator<Item = f64>) -> Scale {
        Scale::for_column(unit, [largest(values)])
    }

    /// The same unit, with three digits of the value furthest from zero.
    #[must_use]
    pub fn with_digits_of(self, values: impl IntoIterator<Item = f64>) -> Scale {
        Scale { decimals: decimals_for(largest(values) / self.divisor), ..self }
    }

    /// The number alone, in this scale.
    #[must_use]
    pub fn number(&self, value: f64) -> String {
        if value.is_finite() { format!("{:.*}", self.decimals, value / self.divisor) } else { "-".to_owned() }
    }

    /// The number with the unit behind it.
    #[must_use]
    pub fn with_unit(&self, value: f64) -> String {
        let number = self.number(value);
        if self.symbol.is_empty() { number } else { format!("{number} {}", self.symbol) }
    }
}

/// The size of the value furthest from zero; 0 where none is a number.
fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(f64::abs).filter(|v| v.is_finite()).fold(0.0, f64::max)
}

fn prefixed(table: &[(f64, &str)], smallest: f64, base: &str) -> (f64, String) {
    let last = table[table.len() - 1];
    let (divisor, prefix) =
        table.iter().copied().find(|(d, _)| rounded(smallest / d) >= 1.0).unwrap_or(if smallest == 0.0 {
            *table.iter().find(|(d, _)| *d == 1.0).unwrap_or(&last)
        } else {
            last
        });
    (divisor, format!("{prefix}{base}"))
}

/// The value as three significant digits have it: 999.6 µs are 1.00 ms.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Digits after the point that keep at least three significant ones.
fn decimals_for(scaled: f64) -> usize {
    if scaled == 0.0 {
        return 0;
    }
    let magnitude = rounded(scaled.abs()).log10().floor();
    (2.0 - magnitude).clamp(0.0, 9.0) as usize
}

/// One value alone with its unit, three significant digits.
#[must_use]
pub fn format_number(unit: &Unit, value: f64) -> String {
    Scale::for_column(unit, [value]).with_unit(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_nearest_zero_chooses_the_scale() {
        let scale = Scale::for_column(&Unit::BytesPerSecond, [5.0 * 1_048_576.0, 3e12]);
        assert_eq!((scale.symbol.as_str(), scale.decimals), ("MiB/s", 2));
        assert_eq!(scale.with_unit(5.0 * 1_048_576.0), "5.00 MiB/s");
    }

    #[test]
    fn values_compared_by_size_have_the_unit_of_the_largest() {
        let scale = Scale::by_largest(&Unit::Seconds, [0.562e-9, 1746.105e-9, f64::NAN]);
        assert_eq!([0.562e-9, 1746.105e-9].map(|v| scale.with_unit(v)), ["0.00 µs", "1.75 µs"]);
        let small = scale.with_digits_of([233e-9, 251e-9]);
        assert_eq!([233e-9, 251e-9].map(|v| small.with_unit(v)), ["0.233 µs", "0.251 µs"]);
        assert_eq!(Scale::by_largest(&Unit::Seconds, [0.0]).with_unit(0.0), "0 s");
    }

    #[test]
    fn times_go_up_and_down() {
        assert_eq!(format_number(&Unit::Nanoseconds, 1_234_567.0), "1.23 ms");
        assert_eq!(format_number(&Unit::Seconds, 0.00123), "1.23 ms");
        assert_eq!(format_number(&Unit::Seconds, 0.0), "0 s");
        assert_eq!(format_number(&Unit::Count, 0.25), "0.250");
        assert_eq!(format_number(&Unit::PerSecond, 4567.0), "4.57 k/s");
    }

    #[test]
    fn the_value_as_it_is_printed_chooses_the_unit() {
        assert_eq!(format_number(&Unit::Nanoseconds, 999_600.0), "1.00 ms");
        assert_eq!(format_number(&Unit::Nanoseconds, 999_400.0), "999 µs");
        assert_eq!(format_number(&Unit::BytesPerSecond, 1_048_570.0), "1.00 MiB/s");
        assert_eq!(format_number(&Unit::BytesPerSecond, 1020.0 * 1024.0), "1020 KiB/s");
        assert_eq!(format_number(&Unit::Seconds, 9.996), "10.0 s");
        assert_eq!(format_number(&Unit::Count, f64::MAX), format!("{:.0} G", f64::MAX / 1e9));
    }
}
