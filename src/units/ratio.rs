//! Ratios as people write them: `2%`, `0.02`.

/// A bare number above this may as well be meant as percent.
const LARGEST_BARE: f64 = 0.2;

/// Reads a ratio: `2%` and `0.02` are both 0.02. A bare number above 0.2 is refused: 0.5 may be half a percent, or a half.
///
/// # Errors
/// A clause that says what would be right.
pub fn parse_ratio(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let (digits, divisor) =
        trimmed.strip_suffix('%').map_or((trimmed, 1.0), |digits| (digits.trim_end(), 100.0));
    let wrong = || format!("'{text}' is not a ratio; write e.g. 2% or 0.02");
    let ratio = digits.parse::<f64>().map_err(|_| wrong())? / divisor;
    if !ratio.is_finite() || ratio < 0.0 {
        return Err(wrong());
    }
    if ratio >= 1.0 {
        return Err(format!("'{text}' is {}%; write e.g. 2% or 0.02", ratio * 100.0));
    }
    if divisor == 1.0 && ratio > LARGEST_BARE {
        return Err(format!("'{text}' may be {trimmed}% or {}%: write the one that is meant", ratio * 100.0));
    }
    Ok(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percent_and_fractions() {
        assert_eq!(parse_ratio("2%"), Ok(0.02));
        assert_eq!(parse_ratio(" 0.05 "), Ok(0.05));
        assert_eq!(parse_ratio("50%"), Ok(0.5));
        for text in ["2", "-1%", "nan", "", "%", "200%", "0.5"] {
            assert!(parse_ratio(text).is_err(), "{text}");
        }
    }
}
