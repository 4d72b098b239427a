//! Lines that a terminal would break anywhere, broken between words.
//!
//! Enters: text in lines, a number of columns. Leaves: the same words; what goes on in the next line is indented. Words that are wider
//! than a line stay whole, so that they can be copied. It must not know what the words mean.

/// What output of programs begins with, which is shown as it is.
const QUOTED: &str = "| ";
/// How much further than its line the rest of it is indented.
const DEEPER: usize = 2;

/// The text in lines of at most `columns`, where its words allow it.
pub(super) fn wrapped(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| one(line, columns)).collect::<Vec<_>>().join("\n")
}

fn one(line: &str, columns: usize) -> String {
    let words = line.trim_start();
    if line.chars().count() <= columns || words.starts_with(QUOTED) {
        return line.to_owned();
    }
    let indent = line.len() - words.len();
    let rest = " ".repeat(indent + DEEPER);
    let (mut out, mut taken) = (line[..indent].to_owned(), indent);
    for (at, word) in words.split(' ').enumerate() {
        let wide = word.chars().count();
        if at > 0 && taken + 1 + wide > columns {
            out.push('\n');
            out.push_str(&rest);
            taken = rest.len();
        } else if at > 0 {
            out.push(' ');
            taken += 1;
        }
        out.push_str(word);
        taken += wide;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_words_stay_whole() {
        assert_eq!(wrapped("assay: short\nhint: too", 20), "assay: short\nhint: too");
        let text =
            "assay: one two three four\n  | output of a program stays\nhint: --a-very-long-option=value that";
        assert_eq!(
            wrapped(text, 16),
            "assay: one two\n  three four\n  | output of a program stays\nhint:\n  --a-very-long-option=value\n  that"
        );
        assert_eq!(wrapped("  a b c d e f", 8), "  a b c\n    d e\n    f");
        assert!(wrapped(&"wörter ".repeat(40), 80).lines().all(|line| line.chars().count() <= 80));
    }
}
