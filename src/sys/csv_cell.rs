//! Cells of a CSV that a spreadsheet takes for text, whatever they hold; read back as they were.
//!
//! Enters: a cell. Leaves: the same, or, where a spreadsheet would execute it or a terminal obey it, an apostrophe and the cell with
//! such characters spelled out (`'=1+1`, `'\x1b[2J`). It must not know which table the cell is in.

use std::borrow::Cow;

use super::terminal::acts;

/// Beginnings that make a cell a formula, and that of a cell written here.
fn begins_a_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\''])
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The cell as it is written.
#[must_use]
pub fn written(cell: &str) -> Cow<'_, str> {
    if !cell.contains(acts) && (!begins_a_formula(cell) || is_number(cell)) {
        return Cow::Borrowed(cell);
    }
    let mut out = String::from("'");
    for c in cell.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if acts(c) => out.push_str(&c.escape_unicode().to_string()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// What a cell held before it was written.
#[must_use]
pub fn read(cell: &str) -> Cow<'_, str> {
    let Some(mut rest) = cell.strip_prefix('\'') else { return Cow::Borrowed(cell) };
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('\\') {
            out.push('\\');
            rest = behind;
        } else if let Some((c, behind)) = spelled(rest) {
            out.push(c);
            rest = behind;
        } else {
            // Not written here.
            out.push('\\');
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// `u{1b}` and what is behind it.
fn spelled(text: &str) -> Option<(char, &str)> {
    let (digits, behind) = text.strip_prefix("u{")?.split_once('}')?;
    let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
    Some((c, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text_and_numbers_stay() {
        for (cell, wanted) in [
            ("bs=4k", "bs=4k"),
            ("-5", "-5"),
            ("+1.5e3", "+1.5e3"),
            ("=1+1", "'=1+1"),
            ("-o noatime", "'-o noatime"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-inf", "'-inf"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\\u{d}=1"),
            ("a\u{1b}[2J\u{202e}", "'a\\u{1b}[2J\\u{202e}"),
            ("'a", "''a"),
            ("a\\b", "a\\b"),
            ("=a\\u{41}", "'=a\\\\u{41}"),
        ] {
            assert_eq!(written(cell), wanted);
            assert!(!written(cell).contains(acts));
        }
    }

    proptest::proptest! {
        #[test]
        fn every_cell_reads_back(cell in "[=+\\-@'\\\\u{}1-4a\u{1b}\u{202e}\t\r\n]{0,12}") {
            let written = written(&cell).into_owned();
            proptest::prop_assert_eq!(read(&written), cell);
        }
    }
}
