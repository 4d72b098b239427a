//! A pattern of bytes as fio writes it: `0xdeadbeef`, `"text"`, `-17`, `%o`, one behind the other.
//!
//! Enters: the text. Leaves: its parts, neighbouring bytes together. It must not know what the bytes are for.

use super::content::PatternPart;
use super::values::{Fault, Value, bad};

/// Most bytes of a pattern, as in fio.
const MOST_BYTES: usize = 512;
/// Bytes of an offset.
const OFFSET_BYTES: usize = 8;

/// The parts of a pattern.
pub(super) fn parse(text: &str) -> Value<Vec<PatternPart>> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut length = 0;
    while !rest.is_empty() {
        let (part, behind) = one(rest, text)?;
        length += match &part {
            PatternPart::Bytes(bytes) => bytes.len(),
            PatternPart::Offset => OFFSET_BYTES,
        };
        match (parts.last_mut(), part) {
            (Some(PatternPart::Bytes(before)), PatternPart::Bytes(bytes)) => before.extend(bytes),
            (_, part) => parts.push(part),
        }
        rest = behind;
    }
    if length > MOST_BYTES {
        return bad(format!("a pattern of {length} bytes; at most {MOST_BYTES} can be given"));
    }
    if parts.is_empty() { bad("a pattern is missing; write e.g. 0xdeadbeef") } else { Ok(parts) }
}

/// The first part and the text behind it.
fn one<'t>(rest: &'t str, whole: &str) -> Value<(PatternPart, &'t str)> {
    if let Some(behind) = rest.strip_prefix("%o") {
        return Ok((PatternPart::Offset, behind));
    }
    if let Some(quoted) = rest.strip_prefix('"') {
        return match quoted.split_once('"') {
            Some((inner, behind)) if !inner.is_empty() => {
                Ok((PatternPart::Bytes(inner.as_bytes().to_vec()), behind))
            }
            _ => bad(format!("'{whole}': a text stands between two \"")),
        };
    }
    if rest.starts_with('\'') {
        return Err(Fault::NotNative(format!("'{whole}': a pattern read from a file")));
    }
    if let Some(digits) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let (digits, behind) = run(digits, |c| c.is_ascii_hexdigit());
        if !digits.is_empty() {
            return Ok((PatternPart::Bytes(hexadecimal(digits)), behind));
        }
    }
    let sign = usize::from(rest.starts_with(['-', '+']));
    let (digits, behind) = run(&rest[sign..], |c| c.is_ascii_digit());
    let number = rest[..sign + digits.len()].parse::<i32>();
    match number {
        Ok(number) => Ok((PatternPart::Bytes(decimal(number)), behind)),
        Err(_) => bad(format!(
            "'{whole}' is not a pattern; write bytes as 0xdeadbeef, a \"text\", a number of 32 bits, or %o"
        )),
    }
}

/// The run of digits in front and what is behind; a 0 in front of an `x` begins the next number.
fn run(text: &str, is_digit: fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let begins_another = text[end..].starts_with(['x', 'X']) && text[..end].ends_with('0');
    text.split_at(end - usize::from(begins_another))
}

/// Two digits a byte, in the order they are written; of an odd number the first stands alone.
fn hexadecimal(digits: &str) -> Vec<u8> {
    let nibbles = digits.bytes().map(|digit| (char::from(digit)).to_digit(16).unwrap_or(0) as u8);
    let padding = (digits.len() % 2 == 1).then_some(0);
    let nibbles: Vec<u8> = padding.into_iter().chain(nibbles).collect();
    nibbles.chunks(2).map(|pair| pair.iter().fold(0, |byte, nibble| byte << 4 | nibble)).collect()
}

/// The bytes of a number, the lowest first, without the zeroes at its end.
fn decimal(number: i32) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    bytes[..used].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_what_fio_reads() {
        // The examples of fio's lib/pattern.c.
        for (text, expected) in [
            ("\"abcd\"", "61 62 63 64"),
            ("-1024", "00 fc ff ff"),
            ("66", "42"),
            ("0xFF0X1", "ff 01"),
            ("\"123\"0xFFeeCC", "31 32 33 ff ee cc"),
            ("-100xab\"1\"", "f6 ff ff ff ab 31"),
            ("0xdeadbeef", "de ad be ef"),
            ("0xfff", "0f ff"),
            ("0", "00"),
            ("256", "00 01"),
            ("0xff0x14", "ff 14"),
        ] {
            let bytes: Vec<u8> = expected.split(' ').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
            assert_eq!(parse(text), Ok(vec![PatternPart::Bytes(bytes)]), "{text}");
        }
        let bytes = |bytes: &[u8]| PatternPart::Bytes(bytes.to_vec());
        assert_eq!(
            parse("%o0xde0xad%o"),
            Ok(vec![PatternPart::Offset, bytes(&[0xde, 0xad]), PatternPart::Offset])
        );
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "abc", "\"abc", "\"\"", "0x", "%b", "99999999999", "-", "1x"] {
            assert!(matches!(parse(text), Err(Fault::Bad(_))), "{text}");
        }
        assert!(matches!(parse("'/dev/zero'"), Err(Fault::NotNative(_))));
        assert!(parse(&format!("0x{}", "ab".repeat(512))).is_ok());
        assert!(parse(&format!("0x{}", "ab".repeat(513))).is_err());
    }
}
