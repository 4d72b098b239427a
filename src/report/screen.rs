//! Sections where the whole report is to fit one screen.
//!
//! Enters: a document. Leaves: lines: what may make the verdict wrong, shortened; and a last line that says what `--verbose` adds. It
//! must not judge (which caveats matter is told by [`super::footnotes::told_from`]), nor know which section it shortens.

use super::document::Document;
use super::layout::{one_line, width};
use super::page::Page;
use super::page_blocks::line_text;
use super::section::{Block, GivesWay, List, Section, unfolded};
use super::words::{NBSP, count};

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
    /// Tables for which there was no room.
    tables: usize,
}

/// How much of what gives way is laid out.
#[derive(Clone, Copy)]
struct Room {
    /// 0 for as much as is read willingly, 1 where room is short.
    short: usize,
    /// Tables of sections that give way.
    tables: usize,
    /// Sections of this turn and of earlier ones are left out.
    turn: u8,
}

/// All sections.
pub(super) fn sections(page: &Page, out: &mut String, document: &Document<'_>) {
    // Several pairs may take more than a screen; one pair does not.
    let several = document
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .any(|block| matches!(block, Block::Verdicts(verdicts) if !verdicts.of_one_pair));
    let above = out.lines().count();
    let fits = |(parts, _): &(Vec<Part>, More)| {
        let lines: usize =
            parts.iter().map(|part| part.stays.lines().count() + part.text.lines().count()).sum();
        several || above + LAST_LINES + lines <= SCREEN
    };
    let of = |room: Room| laid_out(page, document, room);
    let (parts, mut more) =
        rooms(document).map(of).find(fits).unwrap_or_else(|| of(Room { short: 1, tables: 0, turn: u8::MAX }));
    parts.iter().for_each(|part| out.extend([part.stays.as_str(), part.text.as_str()]));
    more.first.append(&mut more.last);
    if !more.first.is_empty() {
        out.push('\n');
        page.words(out, &format!("--verbose adds: {}", more.first.join(", ")), "", "  ");
    }
}

/// What is tried, the most first: all of it, short lists, fewer tables but for one, fewer sections in their turns, no table.
fn rooms(document: &Document<'_>) -> impl Iterator<Item = Room> {
    let of_way = |section: &&Section| section.gives_way.is_some();
    let blocks = document.sections.iter().filter(of_way).flat_map(|section| unfolded(&section.blocks));
    let tables = blocks.filter(|block| matches!(block, Block::Table(_))).count();
    let mut turns: Vec<u8> =
        document.sections.iter().filter_map(|section| section.gives_way?.turn).chain([0]).collect();
    turns.sort_unstable();
    turns.dedup();
    let last = turns.last().copied().unwrap_or(0);
    let fewer = turns
        .into_iter()
        .flat_map(move |turn| (1..=tables.max(1)).rev().map(move |tables| Room { short: 1, tables, turn }));
    [Room { short: 0, tables, turn: 0 }].into_iter().chain(fewer).chain([Room {
        short: 1,
        tables: 0,
        turn: last,
    }])
}

/// The sections in reading order, and what they leave out.
fn laid_out(page: &Page, document: &Document<'_>, room: Room) -> (Vec<Part>, More) {
    let mut more = More::default();
    let mut tables = room.tables;
    let mut parts = Vec::new();
    let mut hidden = 0;
    for section in &document.sections {
        let mut own = More::default();
        let mut part = part(page, document, section, room.short, (&mut tables, &mut own));
        hidden += std::mem::take(&mut own.tables);
        let leaves = part.way.and_then(|way| way.turn).is_some_and(|turn| turn <= room.turn);
        if leaves && !part.text.is_empty() {
            part.text.clear();
            more.last.extend(part.way.map(|way| way.called.to_owned()));
        } else {
            more.first.append(&mut own.first);
        }
        more.last.append(&mut own.last);
        parts.push(part);
    }
    more.first.extend((hidden > 0).then(|| count(hidden as u64, "more table")));
    (parts, more)
}

fn part(
    page: &Page,
    document: &Document<'_>,
    section: &Section,
    room: usize,
    (tables, more): (&mut usize, &mut More),
) -> Part {
    let mut part = Part { way: section.gives_way, ..Part::default() };
    page.footnotes_of(&mut part.stays, document, section);
    let mut body = String::new();
    blocks(page, &section.blocks, (section.gives_way, room), tables, (&mut body, more));
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
    tables: &mut usize,
    (out, more): (&mut String, &mut More),
) {
    for block in all {
        match (block, way) {
            (Block::Folded { blocks: inner, .. }, _) => {
                blocks(page, inner, (way, room), tables, (&mut *out, &mut *more));
            }
            (Block::Table(_), Some(_)) if *tables == 0 => more.tables += 1,
            (Block::Table(_), Some(_)) => {
                *tables -= 1;
                page.block(out, block);
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
            (Block::Withheld(called), _) if !more.last.iter().any(|known| known == called) => {
                more.last.push((*called).to_owned());
            }
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
    use super::super::format::{Detail, Options};
    use super::super::section::Heading;
    use super::super::section_tests::made_up;
    use super::super::table::{Head, Of, Table, TableRow};
    use super::super::text;
    use super::*;

    #[test]
    fn one_pair_with_many_tables_fits_a_screen_and_counts_the_rest() {
        let (run, analysis) = made_up();
        let options = Options { detail: Detail::Screen, ..Options::default() };
        let mut document = Document::build(&run, &analysis, &options);
        let head = Head::new("metric", Of::Names);
        let row = TableRow::new(vec!["m".to_owned()], vec!["1".to_owned()]);
        let table = |n: usize| Table {
            caption: format!("beside: table {n}"),
            labels: vec![head.clone()],
            columns: Head::values(["n"]).collect(),
            rows: vec![row.clone()],
        };
        let tables = |n: usize| {
            let way = GivesWay { turn: None, called: "other tables", most: [8, 4], items: ["a", "b"] };
            let blocks = (1..=n).map(|n| Block::Table(table(n))).collect();
            Section::new("beside", Heading::None, blocks).gives_way(way)
        };
        document.sections.push(tables(20));
        let text = text::render(&document, 80, false);
        let lines = text.lines().count();
        assert!(lines <= SCREEN && lines > SCREEN - 8, "{lines} lines:\n{text}");
        assert!(text.contains("beside: table 1\n") && !text.contains("beside: table 20\n"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("more tables"), "{text}");
    }

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
