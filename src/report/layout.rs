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

/// Texts shortened to `columns` so that they still differ. Where the middle of several is what differs, as with kernels in long
/// paths, what those have in common at both ends gives way instead, up to the next mark between words.
pub(super) fn told_apart(texts: &[&str], columns: usize) -> Vec<String> {
    let distinct = |names: &[String]| names.iter().collect::<std::collections::BTreeSet<_>>().len();
    let each = |texts: &[String]| texts.iter().map(|text| shorten(text, columns)).collect::<Vec<_>>();
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let plain = each(&texts);
    if distinct(&plain) == distinct(&texts) {
        return plain;
    }
    let wide = texts.iter().filter(|text| width(text) > columns);
    let (head, tail) = alike(&wide.map(|text| text.chars().collect()).collect::<Vec<_>>());
    let cut = |text: &String| {
        if width(text) <= columns {
            return text.clone();
        }
        let letters: Vec<char> = text.chars().collect();
        let mark = |there: bool| if there { "…" } else { "" };
        let middle: String = letters[head..letters.len() - tail].iter().collect();
        format!("{}{middle}{}", mark(head > 0), mark(tail > 0))
    };
    let cut: Vec<String> = texts.iter().map(cut).collect();
    let short = each(&cut);
    if distinct(&short) == distinct(&cut) {
        return short;
    }
    cut.iter().map(|text| beginning(text, columns)).collect()
}

/// How many letters all texts have in common at their beginning and, of the rest, at their end, both up to a mark between words.
fn alike(texts: &[Vec<char>]) -> (usize, usize) {
    let Some((first, others)) = texts.split_first() else { return (0, 0) };
    let shortest = texts.iter().map(Vec::len).min().unwrap_or(0);
    let is_mark = |letter: &char| "/-_=,: ".contains(*letter);
    let same = |at: &dyn Fn(&[char]) -> char| others.iter().all(|other| at(other) == at(first));
    let begin = (0..shortest).take_while(|at| same(&|text| text[*at])).count();
    let end = (1..=shortest - begin).take_while(|back| same(&|text| text[text.len() - back])).count();
    let head = first[..begin].iter().rposition(is_mark).map_or(0, |at| at + 1);
    let tail = first[first.len() - end..].iter().position(is_mark).map_or(0, |at| end - at);
    (head, tail)
}

/// The first `columns` of a text, with a mark where more follows.
fn beginning(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
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
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            '▲' => out.push('^'),
            '▼' => out.push('v'),
            '∞' => out.push_str("infinite"),
            '½' => out.push_str("1/2"),
            '⁻' => out.push('-'),
            '¹' => out.push('1'),
            '²' => out.push('2'),
            '³' => out.push('3'),
            '⁰' => out.push('0'),
            c @ '⁴'..='⁹' => out.push(char::from(b'4' + (c as u32 - '⁴' as u32) as u8)),
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
    fn names_with_a_long_common_part_are_told_apart() {
        let apart = |texts: &[&str], columns| told_apart(texts, columns).join(" ");
        let images = ["/k/boot/vmlinuz-6.1.0-56-amd64", "/k/boot/vmlinuz-6.12.117+deb12-amd64", "effect"];
        assert_eq!(apart(&images, 12), "…6.1.0-56… …6.12…deb12… effect");
        let trees = ["/builds/mainline/arch/x86/boot/bzImage", "/builds/patched/arch/x86/boot/bzImage"];
        assert_eq!(apart(&trees, 12), "…mainline… …patched…");
        let packages = [
            "linux-image-6.1.0-56-amd64_6.1.176-1_amd64.deb",
            "linux-image-6.1.0-57-amd64_6.1.177-1_amd64.deb",
        ];
        assert_eq!(apart(&packages, 12), "…56-a…1.176… …57-a…1.177…");
        // Those that differ without that, one alone, two that are the same, and one that begins as another ends.
        assert_eq!(apart(&["kernel=vmlinuz-6.1", "kernel=vmlinuz-6.12"], 12), "kerne…uz-6.1 kerne…z-6.12");
        assert_eq!(apart(&images[1..], 12), format!("{} effect", shorten(images[1], 12)));
        assert_eq!(apart(&[images[0]; 2], 12), [shorten(images[0], 12), shorten(images[0], 12)].join(" "));
        for texts in [["a-b-a-b-a-b", "a-b-a-b-a-b-a-b"], ["ü/ü/ü/x", "ü/ü/ü/y"]] {
            let both = told_apart(&texts, 6);
            assert!(both[0] != both[1] && both.iter().all(|text| width(text) <= 6), "{both:?}");
        }
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
        assert_eq!(ascii("1.8 → 2.0 ms, ≤ 3 ≥ 2 ∞"), "1.8 -> 2.0 ms, <= 3 >= 2 infinite");
        assert_eq!(ascii("⁰¹²³⁴⁵⁶⁷⁸⁹"), "0123456789");
    }

    #[test]
    fn no_sign_that_reports_use_becomes_a_question_mark() {
        // Not those of the run with names in other alphabets.
        let goldens = [
            include_str!("../../tests/it/golden/measured.txt"),
            include_str!("../../tests/it/golden/measured-all.txt"),
            include_str!("../../tests/it/golden/measured.md"),
            include_str!("../../tests/it/golden/measured.html"),
            include_str!("../../tests/it/golden/dbench.txt"),
        ];
        let used: std::collections::BTreeSet<char> =
            goldens.concat().chars().filter(|c| !c.is_ascii()).collect();
        assert!(used.contains(&'→') && used.contains(&'δ'), "{used:?}");
        let lost: Vec<char> = used.into_iter().filter(|c| ascii(&c.to_string()).contains('?')).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}
