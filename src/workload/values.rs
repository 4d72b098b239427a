//! Values of options as fio reads them, refused where fio would silently read something else.
//!
//! Enters: the text behind the `=`. Leaves: bytes, durations, ranges, lists; or a sentence that says what would be right.

use std::path::PathBuf;
use std::time::Duration;

use super::job::BlockRange;

/// A microsecond, for options whose bare numbers count those.
pub(super) const BARE_MICROSECONDS: u64 = 1;
/// A second, for options whose bare numbers count those.
pub(super) const BARE_SECONDS: u64 = Duration::from_secs(1).as_micros() as u64;

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No value of this option.
    Bad(String),
    /// fio has it, the native engine does not.
    NotNative(String),
}

pub(super) type Value<T> = Result<T, Fault>;

pub(super) fn bad<T>(message: impl Into<String>) -> Value<T> {
    Err(Fault::Bad(message.into()))
}

/// A size in bytes. fio's units at kilobase 1024 (the default): `k`, `kb`, `ki` are 1024 and only `kib` is 1000; at 1000 it
/// is the other way round (parse.c, `__get_mult_bytes`; the table is in the tests).
pub(super) fn size(text: &str, kb_base: u64) -> Value<u64> {
    let lower = text.to_ascii_lowercase();
    if lower.is_empty() {
        return bad("a size is missing; write e.g. 4k, 1m or 2g");
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16)
            .or_else(|_| bad(format!("'{text}' is not a hexadecimal number")));
    }
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    if unit.starts_with('%') {
        return Err(Fault::NotNative(format!("'{text}': a percentage")));
    }
    if number.is_empty() {
        let arithmetic = text.starts_with(['(', '$']);
        let message = format!("'{text}' is not a size; write e.g. 4k, 1m or 2g");
        return Err(if arithmetic {
            Fault::NotNative(format!("'{text}': arithmetic"))
        } else {
            Fault::Bad(message)
        });
    }
    let unit = unit.trim();
    if unit.starts_with('.') {
        return bad(format!("'{text}': fio knows no fractions; write it in a smaller unit"));
    }
    let power = match unit.as_bytes().first() {
        None => 0,
        Some(b'b') if unit == "b" => 0,
        Some(letter) => match b"kmgtp".iter().position(|known| known == letter) {
            Some(at) => at as u32 + 1,
            None => return bad(format!("'{unit}' in '{text}' is not a unit of size; write k, m, g, t or p")),
        },
    };
    let base = match unit.get(1..).unwrap_or("") {
        "" | "b" | "i" => kb_base,
        "ib" => 2024 - kb_base,
        _ => return bad(format!("'{unit}' in '{text}' is not a unit of size; write k, m, g, t or p")),
    };
    let value: Option<u64> = number.parse().ok();
    let bytes = value.and_then(|value| base.checked_pow(power).and_then(|factor| value.checked_mul(factor)));
    bytes.map_or_else(|| bad(format!("'{text}' is more than 2^64 bytes")), Ok)
}

/// A whole number from `low` to `high`; fio allows units of size here too.
pub(super) fn number(text: &str, kb_base: u64, low: u64, high: u64) -> Value<u64> {
    if text.starts_with('-') {
        return bad(format!("{text} is negative; write {low} or more"));
    }
    match size(text, kb_base) {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        Ok(value) if value < low => bad(format!("{value} is too small; write {low} or more")),
        Ok(value) => bad(format!("{value} is too large; write at most {high}")),
        Err(Fault::Bad(_)) => bad(format!("'{text}' is not a whole number")),
        Err(fault) => Err(fault),
    }
}

/// 0 or 1; nothing at all is 1 for options that may stand alone.
pub(super) fn boolean(text: Option<&str>) -> Value<bool> {
    match text {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(other) => bad(format!("'{other}' is neither 0 nor 1")),
    }
}

/// Microseconds a unit of time counts.
fn time_factor(unit: &str) -> Option<u64> {
    Some(match unit {
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    })
}

/// A time; a bare number counts `bare_us` microseconds.
pub(super) fn time(text: &str, bare_us: u64) -> Value<Duration> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let unit = unit.trim();
    if number.is_empty() {
        return bad(format!("'{text}' is not a time; write e.g. 500ms, 10s or 5m"));
    }
    if unit.starts_with('.') {
        return bad(format!("'{text}': fio knows no fractions of time; write it in a smaller unit, e.g. ms"));
    }
    let factor = if unit.is_empty() { Some(bare_us) } else { time_factor(unit) };
    let Some(factor) = factor else {
        return bad(format!("'{unit}' in '{text}' is not a unit of time; write us, ms, s, m, h or d"));
    };
    match number.parse::<u64>().ok().and_then(|value| value.checked_mul(factor)) {
        Some(us) if us <= u64::MAX / 1000 => Ok(Duration::from_micros(us)),
        _ => bad(format!("'{text}' is too long")),
    }
}

/// One time or `A-B`.
pub(super) fn time_range(text: &str, bare_us: u64) -> Value<(Duration, Duration)> {
    let (low, high) = match text.split_once('-') {
        Some((low, high)) => (time(low, bare_us)?, time(high, bare_us)?),
        None => (time(text, bare_us)?, time(text, bare_us)?),
    };
    Ok((low.min(high), low.max(high)))
}

/// One size or `A-B` (`A:B`), the smaller first.
pub(super) fn size_range(text: &str, kb_base: u64) -> Value<(u64, u64)> {
    let (low, high) = match text.split_once(['-', ':']) {
        Some((low, high)) => (size(low, kb_base)?, size(high, kb_base)?),
        None => (size(text, kb_base)?, size(text, kb_base)?),
    };
    Ok((low.min(high), low.max(high)))
}

/// `READ,WRITE,TRIM` of block sizes over what was set before. `ranges`: whether each is `MIN-MAX`.
pub(super) fn blocks(
    text: &str,
    kb_base: u64,
    ranges: bool,
    before: [BlockRange; 3],
) -> Value<[BlockRange; 3]> {
    let block = |part: &str| {
        let (min, max) = match (ranges, part.contains(['-', ':'])) {
            (true, false) => {
                return bad(format!("'{part}' is not a range; write MIN-MAX, e.g. 4k-64k, or use bs={part}"));
            }
            (false, true) => return bad(format!("'{part}' is a range; use bsrange={part}")),
            _ => size_range(part, kb_base)?,
        };
        if min == 0 {
            return bad("a block has at least 1 byte");
        }
        if max > 1 << 30 {
            return bad(format!("a block of {max} bytes is over 1 GiB"));
        }
        Ok(BlockRange { min, max })
    };
    directions(text, before, block)
}

/// `READ,WRITE,TRIM` of anything over what was set before, as fio fills it: one value is for all, of two the second is
/// also for trims, an empty one changes nothing.
pub(super) fn directions<T: Clone>(
    text: &str,
    before: [T; 3],
    parse: impl Fn(&str) -> Value<T>,
) -> Value<[T; 3]> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return bad(format!(
            "'{text}' has {} parts; there are three directions: read,write,trim",
            parts.len()
        ));
    }
    if parts.iter().all(|part| part.is_empty()) {
        return bad("a value is missing");
    }
    let mut values = before;
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let value = parse(part)?;
        let last = index + 1 == parts.len();
        for (direction, slot) in values.iter_mut().enumerate() {
            if direction == index || (last && direction > index) {
                *slot = value.clone();
            }
        }
    }
    Ok(values)
}

/// A decimal fraction.
pub(super) fn decimal(text: &str) -> Value<f64> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => bad(format!("'{text}' is not a number; write e.g. 1.2")),
    }
}

/// Euclid's.
pub(super) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// File names divided by `:`, where `\:` is a colon of the name.
pub(super) fn paths(text: &str) -> Value<Vec<PathBuf>> {
    let mut names = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, names.last_mut()) {
            ('\\', Some(name)) if characters.peek() == Some(&':') => {
                characters.next();
                name.push(':');
            }
            (':', _) => names.push(String::new()),
            (c, Some(name)) => name.push(c),
            (_, None) => {}
        }
    }
    names.retain(|name| !name.is_empty());
    if names.is_empty() {
        return bad("a file name is missing");
    }
    Ok(names.into_iter().map(PathBuf::from).collect())
}

/// CPUs as `0,2-5`.
pub(super) fn cpus(text: &str) -> Value<Vec<u32>> {
    const MOST: u32 = 4096;
    let mut cpus = Vec::new();
    for part in text.split([',', ':']).map(str::trim) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        match (low.trim().parse::<u32>(), high.trim().parse::<u32>()) {
            (Ok(low), Ok(high)) if low <= high && high < MOST => cpus.extend(low..=high),
            _ => return bad(format!("'{part}' names no CPUs; write e.g. 0,2-5")),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_what_fio_3_33_reads() {
        // io_bytes of `size=3UNIT bs=1` under fio 3.33, for kb_base=1024 and 1000.
        for (text, binary, decimal) in [
            ("3", 3, 3),
            ("3b", 3, 3),
            ("3k", 3072, 3000),
            ("3K", 3072, 3000),
            ("3kb", 3072, 3000),
            ("3KB", 3072, 3000),
            ("3ki", 3072, 3000),
            ("3kib", 3000, 3072),
            ("3KiB", 3000, 3072),
            ("3m", 3_145_728, 3_000_000),
            ("3mib", 3_000_000, 3_145_728),
            ("0x1000", 4096, 4096),
        ] {
            assert_eq!(size(text, 1024), Ok(binary), "{text}");
            assert_eq!(size(text, 1000), Ok(decimal), "{text}");
        }
    }

    #[test]
    fn sizes_that_fio_misreads_are_refused() {
        // fio 3.33 reads 8q as 8, 1.5k as 1 and crashes on -4k.
        for text in ["", "8q", "1.5k", "-4k", "k", "4kk", "99999999999999999999", "0x", "4kx"] {
            assert!(matches!(size(text, 1024), Err(Fault::Bad(_))), "{text}");
        }
        for text in ["50%", "(1024*4)", "$ncpus"] {
            assert!(matches!(size(text, 1024), Err(Fault::NotNative(_))), "{text}");
        }
    }

    #[test]
    fn times_have_fios_units() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("10", ms(10_000)),
            ("500ms", ms(500)),
            ("200000us", ms(200)),
            ("2M", ms(120_000)),
            ("1h", ms(3_600_000)),
        ] {
            assert_eq!(time(text, 1_000_000), Ok(expected), "{text}");
        }
        assert_eq!(time("10", 1), Ok(Duration::from_micros(10)));
        for text in ["", "5parsec", "1sec", "1.5", "-1", "99999999999999999999s"] {
            assert!(time(text, 1_000_000).is_err(), "{text}");
        }
        assert_eq!(time_range("3-1", 1_000_000), Ok((ms(1000), ms(3000))));
    }

    #[test]
    fn block_sizes_fill_the_directions_as_fio_does() {
        let b = |bytes| BlockRange { min: bytes, max: bytes };
        let default = [b(4096); 3];
        // Seen in fio 3.33 with rw=rw: bs=8k, gives reads of 8k and writes of 4k; bs=,8k the reverse.
        assert_eq!(blocks("8k", 1024, false, default), Ok([b(8192); 3]));
        assert_eq!(blocks("8k,", 1024, false, default), Ok([b(8192), b(4096), b(4096)]));
        assert_eq!(blocks(",8k", 1024, false, default), Ok([b(4096), b(8192), b(8192)]));
        assert_eq!(blocks("1k,2k,4k", 1024, false, default), Ok([b(1024), b(2048), b(4096)]));
        let range = BlockRange { min: 1024, max: 4096 };
        assert_eq!(blocks("4k-1k", 1024, true, default), Ok([range; 3]));
        assert_eq!(blocks("1k:4k,8k-8k", 1024, true, default), Ok([range, b(8192), b(8192)]));
        for (text, ranges) in [
            ("4k", true),
            ("4k-8k", false),
            ("0", false),
            ("1k,1k,1k,1k", false),
            (",", false),
            ("2g", false),
        ] {
            assert!(blocks(text, 1024, ranges, default).is_err(), "{text}");
        }
    }

    #[test]
    fn file_names_keep_escaped_colons() {
        assert_eq!(paths("x:y\\:z"), Ok(vec![PathBuf::from("x"), PathBuf::from("y:z")]));
        assert!(paths(":").is_err());
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(cpus("3,0-1,1"), Ok(vec![0, 1, 3]));
        for text in ["", "x", "2-1", "0-99999999"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_and_booleans() {
        assert_eq!(number("1k", 1024, 0, 5000), Ok(1024));
        assert!(number("0", 1024, 1, 9).is_err() && number("10", 1024, 1, 9).is_err());
        assert!(number("-1", 1024, 0, 9).is_err());
        assert_eq!((boolean(None), boolean(Some("0"))), (Ok(true), Ok(false)));
        assert!(boolean(Some("yes")).is_err());
    }
}
