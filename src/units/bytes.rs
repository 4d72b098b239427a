//! Sizes as fio and people write them.

/// Why a size could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseSizeError {
    /// No digits at all.
    #[error("'{0}' is not a size; write a number with an optional unit, e.g. 4k, 1m, 2g")]
    NotANumber(String),
    /// A unit nobody knows.
    #[error("'{unit}' in '{text}' is not a size unit; write k, m, g, t, p (or KiB, MB …)")]
    BadUnit {
        /// The whole text.
        text: String,
        /// The part that is not a unit.
        unit: String,
    },
    /// Over 2^64 bytes.
    #[error("'{0}' is more than 2^64 bytes")]
    TooLarge(String),
}

/// Reads a size in bytes with fio's rules at the given `kilo_base` (1024 or 1000): `k m g t p` and `kb mb …`
/// are powers of `kilo_base`; with base 1024 (fio's default) `Ki KiB …` are powers of 1024 too (fio reverses
/// the two kinds by default so that `4k` is 4096); with base 1000 `KiB` stays 1024. Hexadecimal with `0x`.
///
/// # Errors
/// [`ParseSizeError`] when the text is no size.
pub fn parse_bytes(text: &str, kilo_base: u64) -> Result<u64, ParseSizeError> {
    let trimmed = text.trim();
    let lower = trimmed.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).map_err(|_| ParseSizeError::NotANumber(text.to_owned()));
    }
    let digits_end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (digits, unit) = lower.split_at(digits_end);
    let unit = unit.trim();
    let factor = size_factor(unit, kilo_base)
        .ok_or_else(|| ParseSizeError::BadUnit { text: trimmed.to_owned(), unit: unit.to_owned() });
    if digits.is_empty() {
        return Err(ParseSizeError::NotANumber(text.to_owned()));
    }
    let factor = factor?;
    if digits.contains('.') {
        let value: f64 = digits.parse().map_err(|_| ParseSizeError::NotANumber(text.to_owned()))?;
        let bytes = value * factor as f64;
        if bytes >= u64::MAX as f64 {
            return Err(ParseSizeError::TooLarge(text.to_owned()));
        }
        return Ok(bytes as u64);
    }
    let value: u64 = digits.parse().map_err(|_| ParseSizeError::TooLarge(text.to_owned()))?;
    value.checked_mul(factor).ok_or_else(|| ParseSizeError::TooLarge(text.to_owned()))
}

fn size_factor(unit: &str, kilo_base: u64) -> Option<u64> {
    let (letter, rest) = match unit.chars().next() {
        None => return Some(1),
        Some('b') if unit == "b" => return Some(1),
        Some(letter) => (letter, &unit[letter.len_utf8()..]),
    };
    let power = match letter {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        _ => return None,
    };
    let base = match rest {
        "" | "b" => kilo_base,
        "i" | "ib" => 1024,
        _ => return None,
    };
    base.checked_pow(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_fio_reads() {
        for (text, bytes) in [
            ("4k", 4096),
            ("1M", 1 << 20),
            ("2g", 2 << 30),
            ("512", 512),
            ("4KiB", 4096),
            ("0x10", 16),
            ("1.5k", 1536),
        ] {
            assert_eq!(parse_bytes(text, 1024), Ok(bytes), "{text}");
        }
        assert_eq!(parse_bytes("4k", 1000), Ok(4000));
        assert_eq!(parse_bytes("4KiB", 1000), Ok(4096));
    }

    #[test]
    fn refuses_what_is_no_size() {
        for text in ["", "k", "4q", "4kk", "-1", "99999999999999999999", "1..2"] {
            assert!(parse_bytes(text, 1024).is_err(), "{text}");
        }
    }
}
