//! Times as people write them, and printed so that they can be read at a glance.

/// Reads a time in seconds: `10`, `10s`, `500ms`, `2m`, `1h`, `1d`, `30us`, `5ns`; `default_unit_s` is what a bare number
/// counts.
///
/// # Errors
/// A sentence that says what would be right.
pub fn parse_duration_s(text: &str, default_unit_s: f64) -> Result<f64, String> {
    let trimmed = text.trim().to_ascii_lowercase();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(end);
    let value: f64 =
        digits.parse().map_err(|_| format!("'{text}' is not a time; write e.g. 10s, 500ms, 2m or 1h"))?;
    let factor = match unit.trim() {
        "" => default_unit_s,
        "ns" | "nsec" => 1e-9,
        "us" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        other => return Err(format!("'{other}' in '{text}' is not a time unit; write us, ms, s, m, h or d")),
    };
    Ok(value * factor)
}

/// A time for people: `850 ms`, `12 s`, `3 min 20 s`, `2 h 05 min`.
#[must_use]
pub fn pretty_duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if seconds < 0.0995 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 9.95 {
        format!("{seconds:.1} s")
    } else if whole < 60 {
        format!("{whole} s")
    } else if whole < 3600 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{} h {:02} min", whole / 3600, whole % 3600 / 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times() {
        assert_eq!(parse_duration_s("10", 1.0), Ok(10.0));
        assert_eq!(parse_duration_s("2m", 1.0), Ok(120.0));
        assert_eq!(parse_duration_s("500ms", 1.0), Ok(0.5));
        assert!(parse_duration_s("ten", 1.0).is_err());
        assert!(parse_duration_s("5 parsecs", 1.0).is_err());
    }

    #[test]
    fn prints_times() {
        assert_eq!(pretty_duration(0.0123), "12.3 ms");
        assert_eq!(pretty_duration(200.0), "3 min 20 s");
        assert_eq!(pretty_duration(7500.0), "2 h 05 min");
    }
}
