//! Sections where the whole report is to fit one screen.
//!
//! Enters: a document. Leaves: lines: what may make the verdict wrong, shortened; and a last line that says what `--verbose` adds. It
//! must not judge (which caveats matter is told by [`super::footnotes::told_from`]), nor know which section it shortens.

use super::document::Document;
use super::layout::{one_line, width};
use super::page::Page;
use super::page_blocks::line_text;
use super::section::{Block, GivesWay, List, Section};
use super::words::NBSP;

/// Lines of the whole report where one pair is compared.
const SCREEN: usize = 40;
/// Lines of what `--verbose` adds, with the empty one above.
const LAST_LINES: usize = 4;
/// Letters of one line of a list, as much as is read willingly, and what one pair leaves of a screen; a longer one ends earlier.
const LETTERS: [usize; 2] = [400, 150];

/// A section on the screen.
#[derive(Default)]
struct Part {
    /// Footnotes: they stay, because their marks do.
    stays: String,
    /// The rest.
    text: String,
    /// How that gives way.
    way: Option<GivesWay>,
}

/// What is left out, in words.
#[derive(Default)]
struct More {
    /// Of what is shown in part, and what is not shown at all.
    first: Vec<String>,
    /// What was withheld from the start.
    last: Vec<String>,
}

/// All sections.
pub(super) fn sections(page: &Page, out: &mut String, document: &Document<'_>) {
    // Several pairs may take more than a screen; one pair does not.
    let several = document
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .any(|block| matches!(block, Block::Verdicts(verdicts) if verdicts.sentences.len() > 1));
    let above = out.lines().count();
    let fits = |parts: &[Part]| {
        let lines: usize =
            parts.iter().map(|part| part.stays.lines().count() + part.text.lines().count()).sum();
        several || above + LAST_LINES + lines <= SCREEN
    };
    let (mut parts, mut more) = laid_out(page, document, 0);
    if !fits(&parts) {
        (parts, more) = laid_out(page, document, 1);
    }
    let mut turns: Vec<u8> = parts.iter().filter_map(|part| part.way?.turn).collect();
    turns.sort_unstable();
    for turn in turns {
        if fits(&parts) {
            break;
        }
        let of_turn = |part: &&mut Part| part.way.is_some_and(|way| way.turn == Some(turn));
        for part in parts.iter_mut().filter(of_turn).filter(|part| !part.text.is_empty()) {
            part.text.clear();
            more.last.extend(part.way.map(|way| way.called.to_owned()));
        }
    }
    parts.iter().for_each(|part| out.extend([part.stays.as_str(), part.text.as_str()]));
    more.first.append(&mut more.last);
    if !more.first.is_empty() {
        out.push('\n');
        page.words(out, &format!("--verbose adds: {}", more.first.join(", ")), "", "  ");
    }
}

/// The sections in reading order, and what they leave out. `room` is 0 for as much as is read willingly, 1 where room is short.
fn laid_out(page: &Page, document: &Document<'_>, room: usize) -> (Vec<Part>, More) {
    let mut more = More::default();
    let parts =
        document.sections.iter().map(|section| part(page, document, section, room, &mut more)).collect();
    (parts, more)
}

fn part(page: &Page, document: &Document<'_>, section: &Section, room: usize, more: &mut More) -> Part {
    let mut part = Part { way: section.gives_way, ..Part::default() };
    page.footnotes_of(&mut part.stays, document, section);
    let mut body = String::new();
    blocks(page, &section.blocks, (section.gives_way, room), &mut body, more);
    if !body.is_empty() {
        page.section_heading(&mut part.text, &section.heading);
        part.text.push_str(&body);
    }
    part
}

fn blocks(
    page: &Page,
    all: &[Block],
    (way, room): (Option<GivesWay>, usize),
    out: &mut String,
    more: &mut More,
) {
    for block in all {
        match (block, way) {
            (Block::Folded { blocks: inner, .. }, _) => {
                blocks(page, inner, (way, room), out, more);
            }
            (Block::List(list), Some(way)) => page.list(out, &short(list, way, room, more)),
            (Block::Transcripts(transcripts), _) => {
                let sentences = List::of(transcripts.all.iter().map(|one| one.sentence.clone()));
                let list = way.map_or_else(|| sentences.clone(), |way| short(&sentences, way, room, more));
                page.list(out, &list);
                more.first.push(transcripts.called.to_owned());
            }
            (Block::Command(_), Some(way)) => {
                let mut lines = String::new();
                page.block(&mut lines, block);
                match lines.lines().count() <= way.most[room] {
                    true => out.push_str(&lines),
                    false => more.first.push(way.called.to_owned()),
                }
            }
            (Block::Facts(facts), _) => more.first.push(facts.called.to_owned()),
            (Block::Listing { called, .. }, _) => more.first.push((*called).to_owned()),
            (Block::Withheld(called), _) => more.last.push((*called).to_owned()),
            (block, _) => page.block(out, block),
        }
    }
}

/// The first lines of a list, each shortened.
fn short(list: &List, way: GivesWay, room: usize, more: &mut More) -> List {
    let all: Vec<String> = list.lines.iter().map(line_text).collect();
    let lines: Vec<String> =
        all.iter().take(way.most[room]).map(|line| shortened(line, LETTERS[room])).collect();
    let counted = |n: usize, before: &str, between: &str| {
        let what = way.items[usize::from(n > 1)];
        format!("{before}{n}{NBSP}{between}{what}")
    };
    let left = all.len() - lines.len();
    more.first.extend((left > 0).then(|| counted(left, "", "more ")));
    let cut = all.iter().zip(&lines).filter(|(long, short)| long != short).count();
    more.first.extend((cut > 0).then(|| counted(cut, "the rest of ", "")));
    List { caption: list.caption.clone(), ..List::of(lines) }
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
