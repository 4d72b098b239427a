//! What stands below the tables where the whole report is to fit one screen.
//!
//! Enters: a document. Leaves: lines: what may make the verdict wrong, shortened; the command; and a last line that says what
//! `--verbose` adds. It must not judge; which caveats matter is told by [`super::footnotes::told_from`].

use super::document::{Document, count};
use super::layout::{one_line, width};
use super::page::Page;

/// Lines of the whole report where one pair is compared.
const SCREEN: usize = 40;
/// Lines of what `--verbose` adds, with the empty one above.
const LAST_LINES: usize = 4;
/// What notes, differences and failures may take: first as much as is read willingly, then what one pair leaves of a screen.
const ROOMS: [Room; 2] = [
    Room { letters: 400, notes: 8, others: 4, command: 12 },
    Room { letters: 150, notes: 4, others: 2, command: 3 },
];

/// The parts that a full screen goes without, the first one first. Footnotes stay, because their marks do.
const DISPENSABLE: [usize; 4] = [4, 1, 3, 2];

/// What the parts may take.
#[derive(Clone, Copy)]
struct Room {
    /// Letters of one item; a longer one ends earlier.
    letters: usize,
    /// Notes.
    notes: usize,
    /// Differences, and failures.
    others: usize,
    /// Lines of the command that repeats the run.
    command: usize,
}

/// A part of the report, and what it is called where it is left out.
struct Part {
    text: String,
    called: String,
}

/// Everything below the tables.
pub(super) fn rest(page: &Page, out: &mut String, document: &Document<'_>) {
    // Several pairs may take more than a screen; one pair does not, and the command is what it can do without first.
    let above = out.lines().count();
    let fits = |parts: &[Part]| {
        let lines: usize = parts.iter().map(|part| part.text.lines().count()).sum();
        document.headlines.len() > 1 || above + LAST_LINES + lines <= SCREEN
    };
    let (mut parts, mut more) = below(page, document, ROOMS[0]);
    if !fits(&parts) {
        (parts, more) = below(page, document, ROOMS[1]);
    }
    for index in DISPENSABLE {
        if !fits(&parts) && !parts[index].text.is_empty() {
            parts[index].text.clear();
            more.push(std::mem::take(&mut parts[index].called));
        }
    }
    parts.iter().for_each(|part| out.push_str(&part.text));
    if !more.is_empty() {
        out.push('\n');
        page.words(out, &format!("--verbose adds: {}", more.join(", ")), "", "  ");
    }
}

/// The parts in reading order, and what they leave out.
fn below(page: &Page, document: &Document<'_>, room: Room) -> (Vec<Part>, Vec<String>) {
    let mut more = Vec::new();
    let parts = vec![
        part("notes to the rows", |text| page.footnotes(text, &document.footnotes)),
        notes(page, document, room, &mut more),
        differences(page, document, room, &mut more),
        failures(page, document, room, &mut more),
        command(page, document, room, &mut more),
    ];
    more.extend(document.repeat.job.is_some().then(|| "the job".to_owned()));
    more.extend((!document.host.is_empty()).then(|| "the host's facts".to_owned()));
    more.extend((!document.analysis.budgets.is_empty()).then(|| "where the time went".to_owned()));
    if document.analysis.comparisons.iter().any(|c| c.alone.is_some()) {
        more.push("the interval of each row alone".to_owned());
    }
    (parts, more)
}

fn part(called: &str, write: impl FnOnce(&mut String)) -> Part {
    let mut text = String::new();
    write(&mut text);
    Part { text, called: called.to_owned() }
}

fn notes(page: &Page, document: &Document<'_>, room: Room, more: &mut Vec<String>) -> Part {
    let all: Vec<&String> = document.notes.iter().chain(&document.noise).collect();
    let short: Vec<String> = all.iter().take(room.notes).map(|note| shortened(note, room.letters)).collect();
    let left = all.len().saturating_sub(room.notes);
    more.extend((left > 0).then(|| count(left as u64, "more note")));
    let cut = all.iter().zip(&short).filter(|(long, short)| long.as_str() != short.as_str()).count();
    more.extend((cut > 0).then(|| format!("the rest of {}", count(cut as u64, "note"))));
    part("the notes", |text| page.list(text, "notes", short.iter().map(String::as_str)))
}

fn differences(page: &Page, document: &Document<'_>, room: Room, more: &mut Vec<String>) -> Part {
    let lines = page.difference_lines(document);
    let left = lines.len().saturating_sub(room.others);
    more.extend((left > 0).then(|| count(left as u64, "more undeclared difference")));
    let short: Vec<String> =
        lines.iter().take(room.others).map(|line| shortened(line, room.letters)).collect();
    part("undeclared differences between the arms", |text| {
        page.list(text, super::page::UNDECLARED, short.iter().map(String::as_str));
    })
}

fn failures(page: &Page, document: &Document<'_>, room: Room, more: &mut Vec<String>) -> Part {
    let left = document.failures.len().saturating_sub(room.others);
    more.extend((left > 0).then(|| count(left as u64, "more kind") + " of failure"));
    if !document.failures.is_empty() {
        more.push("what failed, with its output".to_owned());
    }
    let told: Vec<String> = document
        .failures
        .iter()
        .take(room.others)
        .map(|failure| shortened(&failure.sentence(), room.letters))
        .collect();
    part("trials that do not count", |text| {
        page.list(text, "trials that do not count", told.iter().map(String::as_str));
    })
}

fn command(page: &Page, document: &Document<'_>, room: Room, more: &mut Vec<String>) -> Part {
    let mut part = part("the command that repeats it", |text| page.command(text, document));
    // With its heading and the empty line above.
    if part.text.lines().count() > room.command + 2 {
        part.text.clear();
        more.push(std::mem::take(&mut part.called));
    }
    part
}

/// The beginning of a text: its first clauses, or its first words where the first clause is long.
fn shortened(text: &str, most: usize) -> String {
    let text = one_line(text);
    if width(&text) <= most {
        return text;
    }
    let head: String = text.chars().take(most - 1).collect();
    let clause = head.rfind("; ").or_else(|| head.rfind(". ")).filter(|at| *at > most / 3);
    let end = clause.or_else(|| head.rfind(' ').filter(|at| *at > most / 3)).unwrap_or(head.len());
    format!("{} …", head[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_ends_with_a_clause_or_a_word() {
        let most = 150;
        assert_eq!(shortened("short; and whole", most), "short; and whole");
        let clause = "a".repeat(80);
        assert_eq!(shortened(&format!("{clause}; {clause}"), most), format!("{clause} …"));
        let short = shortened(&"word ".repeat(60), most);
        assert!(short.ends_with("word …") && width(&short) <= most, "{short}");
        assert_eq!(width(&shortened(&"ü".repeat(300), most)), most + 1);
    }
}
