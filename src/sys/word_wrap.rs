//! Lines that a terminal would break anywhere, broken between words.
//!
//! Enters: text in lines, a number of columns. Leaves: the same words; what goes on in the next line is indented. Words that are wider
//! than a line stay whole, so that they can be copied. It must not know what the words mean.

use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// What output of programs begins with, which is shown as it is.
const QUOTED: &str = "| ";
/// How much further than its line the rest of it is indented.
const DEEPER: &str = "  ";

/// The text in lines of at most `columns`, where its words allow it.
pub(super) fn wrapped(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| one(line, columns)).collect::<Vec<_>>().join("\n")
}

fn one(line: &str, columns: usize) -> String {
    let words = line.trim_start();
    if display_width(line) <= columns || words.starts_with(QUOTED) {
        return line.to_owned();
    }
    let indent = &line[..line.len() - words.len()];
    let deeper = format!("{indent}{DEEPER}");
    let options = Options::new(columns)
        .initial_indent(indent)
        .subsequent_indent(&deeper)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(words, options)
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
