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

/// A command line broken so that it can be pasted into a shell: between its words, which stay as they were written; a
/// word wider than a line goes on at the first column of the next. What no shell would read is folded as it is.
pub(super) fn fold_command(command: &str, columns: usize, indent: &str) -> String {
    let room = columns.saturating_sub(width(indent) + 4);
    let words = written_words(command).filter(|_| !command.contains(char::is_control));
    let pieces =
        words.and_then(|words| words.iter().map(|word| pieces(word, room)).collect::<Option<Vec<_>>>());
    let Some(words) = pieces.filter(|words| !words.is_empty()) else {
        return fold_lines(command, columns, indent);
    };
    let (mut out, mut line) = (indent.to_owned(), width(indent));
    for (at, word) in words.iter().enumerate() {
        if at > 0 && line + 1 + width(&word[0]) + 2 > columns {
            out.push_str(" \\\n");
            out.push_str(&" ".repeat(width(indent) + 2));
            line = width(indent) + 2;
        } else if at > 0 {
            out.push(' ');
            line += 1;
        }
        out.push_str(&word.join("\\\n"));
        line =
            if word.len() > 1 { word.last().map_or(0, |last| width(last)) } else { line + width(&word[0]) };
    }
    out.push('\n');
    out
}

/// A word in pieces of at most `room` columns that a shell puts together again; `None` where quotes forbid it.
fn pieces(word: &str, room: usize) -> Option<Vec<String>> {
    if width(word) <= room {
        return Some(vec![word.to_owned()]);
    }
    let quoted = word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let inner: Vec<char> = quoted.unwrap_or(word).chars().collect();
    if inner.contains(&'\'') || quoted.is_none() && inner.iter().any(|c| matches!(c, '"' | '\\')) {
        return None;
    }
    let quote = if quoted.is_some() { "'" } else { "" };
    let chunks = inner.chunks(room.saturating_sub(2 * quote.len()).max(8));
    Some(chunks.map(|chunk| format!("{quote}{}{quote}", chunk.iter().collect::<String>())).collect())
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
        // Operators stay what they are, and words wider than a line are whole again when a shell has read them.
        let command = "mkdir -p /tmp && printf '%s\\n' '[a job] with $a long \"line\" in it' /a/long/path/without/blanks | cat -";
        let folded = fold_command(command, 30, "  ");
        assert!(folded.lines().all(|line| width(line) <= 30), "{folded}");
        let said = |command: &str| std::process::Command::new("sh").args(["-c", command]).output().unwrap();
        assert_eq!(said(&folded), said(command));
        assert_eq!(
            said(command).stdout,
            b"[a job] with $a long \"line\" in it\n/a/long/path/without/blanks\n"
        );
    }

    #[test]
    fn ascii_spells_what_assay_writes() {
        assert_eq!(ascii("−31.2 % ± 1 µs × 2, δ é"), "-31.2 % +/- 1 us x 2, delta ?");
    }
}
