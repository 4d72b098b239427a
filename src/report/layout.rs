//! Fitting words into columns: widths, wrapping, shortening in the middle, plain ASCII.
//!
//! Enters: any text. Leaves: lines no wider than asked. It must not know what the words mean.

/// Columns a text takes, one a character (the reports use no wide characters of their own).
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Left-aligned in `columns`.
pub(super) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Right-aligned in `columns`.
pub(super) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Shortened in the middle to at most `columns`, so that both the beginning and the end can still be told apart.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    let length = width(text);
    if length <= columns {
        return text.to_owned();
    }
    if columns <= 1 {
        return text.chars().take(columns).collect();
    }
    let head = (columns - 1) / 2;
    let tail = columns - 1 - head;
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    short.extend(text.chars().skip(length - tail));
    short
}

/// Words wrapped to `columns`; the first line starts with `first`, the others with `rest`. A word that is wider
/// than a line is broken. Control characters, line ends among them, count as blanks.
pub(super) fn wrap(text: &str, columns: usize, first: &str, rest: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(|c: char| c == ' ' || c.is_control()).filter(|word| !word.is_empty()) {
        let gap = usize::from(!empty);
        if !empty && width(&line) + gap + width(word) > columns {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        for character in word.chars() {
            if width(&line) >= columns.max(width(rest) + 1) {
                lines.push(std::mem::replace(&mut line, rest.to_owned()));
            }
            line.push(character);
        }
        empty = false;
    }
    lines.push(line);
    lines.join("\n")
}

/// Lines kept as they are, but those wider than `columns` continued on the next line behind a backslash.
pub(super) fn fold_lines(text: &str, columns: usize, indent: &str) -> String {
    let mut out = String::new();
    let room = columns.saturating_sub(width(indent) + 1).max(8);
    let blanks = " ".repeat(width(indent));
    for line in text.lines() {
        let clean: Vec<char> =
            line.chars().flat_map(|c| if c == '\t' { vec![' '; 4] } else { vec![c] }).collect();
        if clean.is_empty() {
            out.push('\n');
        }
        let mut pieces = clean.chunks(room).enumerate().peekable();
        while let Some((at, piece)) = pieces.next() {
            out.push_str(if at == 0 { indent } else { &blanks });
            out.extend(piece.iter().map(|c| if c.is_control() { '?' } else { *c }));
            if pieces.peek().is_some() {
                out.push('\\');
            }
            out.push('\n');
        }
    }
    out
}

/// A command line broken between its words, so that it can be pasted into a shell: each word stays as it was written,
/// however long. What spans lines, or what no shell would read, is folded as it is.
pub(super) fn fold_command(command: &str, columns: usize, indent: &str) -> String {
    let words = written_words(command);
    let Some(words) = words.filter(|words| !words.is_empty() && !command.contains(char::is_control)) else {
        return fold_lines(command, columns, indent);
    };
    let mut lines = vec![indent.to_owned()];
    for (at, word) in words.iter().enumerate() {
        let line = lines.last().map_or(0, |line| width(line));
        if at > 0 && line + 1 + width(word) + 2 > columns {
            lines.push(" ".repeat(width(indent) + 2));
        } else if at > 0
            && let Some(line) = lines.last_mut()
        {
            line.push(' ');
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    format!("{}\n", lines.join(" \\\n"))
}

/// The words of a shell's line with their quotes; `None` when a quote does not end.
fn written_words(command: &str) -> Option<Vec<&str>> {
    let (mut words, mut begun, mut quote, mut escaped) = (Vec::new(), None, None, false);
    for (at, character) in command.char_indices() {
        if begun.is_none() && character != ' ' {
            begun = Some(at);
        }
        match (character, quote) {
            _ if escaped => escaped = false,
            ('\\', None | Some('"')) => escaped = true,
            ('\'' | '"', None) => quote = Some(character),
            (closing, Some(open)) if closing == open => quote = None,
            (' ', None) => words.extend(begun.take().map(|from| &command[from..at])),
            _ => {}
        }
    }
    words.extend(begun.map(|from| &command[from..]));
    (quote.is_none() && !escaped).then_some(words)
}

/// Text in one line: control characters become blanks.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// No-break spaces have done their work once the lines are made.
pub(super) fn printable(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

/// The text in plain ASCII, for mailing lists: the signs that assay itself uses are spelled, others become `?`.
pub(super) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            c if c.is_ascii() && !c.is_ascii_control() => out.push(c),
            '−' | '–' | '—' => out.push('-'),
            // Wrapping needs it; whoever prints makes it a blank.
            '\u{a0}' => out.push('\u{a0}'),
            '\u{202f}' => out.push(' '),
            'µ' | 'μ' => out.push('u'),
            '×' => out.push('x'),
            '±' => out.push_str("+/-"),
            'δ' => out.push_str("delta"),
            'α' => out.push_str("alpha"),
            '…' => out.push_str(".."),
            '≥' => out.push_str(">="),
            '≤' => out.push_str("<="),
            '·' => out.push('-'),
            '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            _ => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_gives_way() {
        assert_eq!(
            shorten("kernel=vmlinuz-6.12.0-rc5", 12),
            "kerne…12.0-rc5"[..0].to_owned() + "kerne….0-rc5"
        );
        assert_eq!(width(&shorten("kernel=vmlinuz-6.12.0-rc5", 12)), 12);
        assert_eq!(shorten("short", 12), "short");
        assert_eq!(shorten("ab", 1), "a");
    }

    #[test]
    fn wrapping_keeps_the_limit_even_for_one_long_word() {
        let wrapped = wrap("a bb ccc dddddddddddddddd e", 8, "* ", "  ");
        assert_eq!(wrapped, "* a bb\n  ccc\n  dddddd\n  dddddd\n  dddd e");
        assert!(wrap("x\ny\tz", 20, "", "") == "x y z");
    }

    #[test]
    fn folded_lines_say_so() {
        assert_eq!(fold_lines("[global]\nabcdefghijkl\n", 12, "  "), "  [global]\n  abcdefghi\\\n  jkl\n");
    }

    #[test]
    fn a_folded_command_is_the_same_command() {
        let command = "assay run 'my job.fio' --vary direct=0,1 --directory '/mnt/the disk'";
        let folded = fold_command(command, 30, "  ");
        assert!(folded.lines().all(|line| width(line) <= 30), "{folded}");
        let joined = folded.replace("\\\n", "");
        assert_eq!(shlex::split(&joined), shlex::split(command));
    }

    #[test]
    fn ascii_spells_what_assay_writes() {
        assert_eq!(ascii("−31.2 % ± 1 µs × 2, δ é"), "-31.2 % +/- 1 us x 2, delta ?");
    }
}
