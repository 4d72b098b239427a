//! A [`Table`] laid out in columns of text that fit a page.
//!
//! Enters: a table of strings. Leaves: lines. Labels that leave no room for the values are shortened in the middle,
//! or, when too little would be left of them, put on lines of their own: the first ones once above the rows that share them, or all
//! above each row; values that do not fit even so are listed.

use super::layout::{left, right, shorten, told_apart, width};
use super::page::Page;
use super::table::{Of, Table};

/// Widest head of a value column.
const MOST_HEAD: usize = 12;
/// The same of an arm, and whether other heads are short, in the order in which it is tried whether a table fits: a table is easier
/// to read than a list of the same values.
const TRIED: [(usize, bool); 6] = [(16, false), (16, true), (12, false), (12, true), (9, true), (7, true)];
/// Before rows whose labels stand above them.
const INDENT: &str = "  ";
/// Labels are not shortened below this many columns in all.
const LEAST_LABELS: usize = 24;

/// Widths of everything in one table.
struct Grid {
    labels: Vec<usize>,
    values: Vec<usize>,
    gap: &'static str,
    stacked: bool,
    /// So many labels stand above the rows that share them.
    above: usize,
    listed: bool,
    /// No label is shortened.
    whole: bool,
}

impl Grid {
    fn measure(table: &Table, heads: &[String], page: &Page, above: usize) -> Grid {
        let widest = |cells: &mut dyn Iterator<Item = usize>, head: usize| cells.fold(head, usize::max);
        let values: Vec<usize> = (0..heads.len())
            .map(|at| widest(&mut table.rows.iter().map(|row| width(&row.cells[at])), width(&heads[at])))
            .collect();
        let wanted: Vec<usize> = (above..table.labels.len())
            .map(|at| {
                widest(
                    &mut table.rows.iter().map(|row| width(&row.labels[at])),
                    width(&table.labels[at].text),
                )
            })
            .collect();
        let marks = widest(&mut table.rows.iter().map(|row| width(&page.mark(&row.notes))), 0);
        let indent = if above > 0 { INDENT.len() } else { 0 };
        let bare = values.iter().sum::<usize>() + marks + indent;
        let gaps = values.len().saturating_sub(1);
        let all: usize = wanted.iter().map(|w| w + 2).sum();
        let room = |gap: usize| page.columns.saturating_sub(bare + gap * gaps);
        // Labels come before a second blank between values.
        let close = all > room(2) && all <= room(1);
        let room = room(if close { 1 } else { 2 });
        let stacked = all > room && room < LEAST_LABELS.min(all);
        let is_wide = bare + 2 * gaps + 2 * usize::from(stacked) > page.columns;
        let gap = if close || is_wide { " " } else { "  " };
        let labels = if stacked { Vec::new() } else { share(&wanted, room) };
        let least = bare + gaps * gap.len() + if stacked { 2 } else { labels.iter().map(|w| w + 2).sum() };
        let whole = !stacked && labels == wanted;
        Grid { labels, values, gap, stacked, above, listed: least > page.columns, whole }
    }

    /// A line without its verdict: labels and all values but the last.
    fn line(&self, labels: &[String], cells: &[String]) -> String {
        let mut line = if self.stacked || self.above > 0 { INDENT.to_owned() } else { String::new() };
        for (label, columns) in labels.iter().skip(self.above).zip(&self.labels) {
            line.push_str(&left(&shorten(label, *columns), *columns));
            line.push_str("  ");
        }
        for (cell, columns) in cells.iter().zip(&self.values).take(cells.len() - 1) {
            line.push_str(&right(cell, *columns));
            line.push_str(self.gap);
        }
        line
    }
}

/// The heads of the value columns, those of arms in at most so many columns.
fn heads_of(table: &Table, most: usize, short: bool) -> Vec<String> {
    let full: Vec<&str> = table.columns.iter().map(|head| head.text.as_str()).collect();
    let mut heads = told_apart(&full, MOST_HEAD);
    let arms: Vec<usize> = (0..full.len()).filter(|at| table.columns[*at].of == Of::Arm).collect();
    if most != MOST_HEAD {
        let of_arms = told_apart(&arms.iter().map(|at| full[*at]).collect::<Vec<_>>(), most);
        arms.iter().zip(of_arms).for_each(|(at, head)| heads[*at] = head);
    }
    if short {
        let own = (0..full.len()).filter(|at| !arms.contains(at));
        for (at, short) in own.filter_map(|at| Some((at, shorter(full[at])?))) {
            heads[at] = short.to_owned();
        }
    }
    heads
}

/// A head of the table's own where room is short.
fn shorter(head: &str) -> Option<&'static str> {
    match head {
        "change %" => Some("chg %"),
        "candidate" => Some("cand."),
        _ => None,
    }
}

/// The first way of writing heads with which the table fits; where there is more room for arms labels must not be shortened for it.
fn measured(table: &Table, page: &Page) -> (Vec<String>, Grid) {
    let tried = |above: usize, (most, short): (usize, bool)| {
        let heads = heads_of(table, most, short);
        let grid = Grid::measure(table, &heads, page, above);
        (most, heads, grid)
    };
    let fits =
        |(most, _, grid): &(usize, Vec<String>, Grid)| !grid.listed && (*most <= MOST_HEAD || grid.whole);
    let first = |above: usize| TRIED.into_iter().map(|heads| tried(above, heads)).find(fits);
    let is_inline = |found: &(usize, Vec<String>, Grid)| !found.2.stacked;
    let inline = |above: usize| {
        TRIED.into_iter().map(|heads| tried(above, heads)).find(|found| fits(found) && is_inline(found))
    };
    let found = match first(0) {
        Some(found) if is_inline(&found) => Some(found),
        // A label of many rows is better read once than each time on a line of its own.
        other => (1..table.labels.len()).find_map(inline).or(other),
    };
    let (_, heads, grid) = found.unwrap_or_else(|| tried(0, (MOST_HEAD, false)));
    (heads, grid)
}

/// The table's lines.
pub(super) fn table(table: &Table, page: &Page) -> String {
    let (heads, grid) = measured(table, page);
    let Some(last) = heads.last() else { return String::new() };
    if grid.listed {
        return list(table, &heads, page);
    }
    let labels: Vec<String> = table.labels.iter().map(|head| head.text.clone()).collect();
    let mut out = page.dim(format!("{}{last}", grid.line(&labels, &heads)).trim_end());
    out.push('\n');
    let mut above: &[String] = &[];
    for row in &table.rows {
        let stacked = if grid.stacked { row.labels.len() } else { grid.above };
        if grid.stacked || row.labels[..stacked] != *above {
            above = &row.labels[..stacked];
            page.words(&mut out, &stacked_label(table, above), "", INDENT);
        }
        let verdict = row.cells.last().map_or("", String::as_str);
        out.push_str(&grid.line(&row.labels, &row.cells));
        out.push_str(&row.tone.map_or_else(|| verdict.to_owned(), |tone| page.tone(verdict, tone)));
        out.push_str(&page.mark(&row.notes));
        out.push('\n');
    }
    out
}

/// Every row as a paragraph: its label, then its values each behind its head.
fn list(table: &Table, heads: &[String], page: &Page) -> String {
    let mut out = String::new();
    for row in &table.rows {
        let label = stacked_label(table, &row.labels);
        if !label.is_empty() {
            page.words(&mut out, &label, "", "  ");
        }
        let values: Vec<String> =
            heads.iter().zip(&row.cells).map(|(head, cell)| format!("{head}: {cell}")).collect();
        page.words(&mut out, &format!("{}{}", values.join("; "), page.mark(&row.notes)), "  ", "  ");
    }
    out
}

/// `write=append, io_size=4K`: labels of a row on a line of their own.
fn stacked_label(table: &Table, labels: &[String]) -> String {
    let parts: Vec<String> = table
        .labels
        .iter()
        .zip(labels)
        .filter(|(_, label)| !label.is_empty())
        .map(|(head, label)| match head.of {
            Of::Names => label.clone(),
            _ => format!("{}={label}", head.text),
        })
        .collect();
    parts.join(", ")
}

/// Column widths for labels so that together (two blanks behind each) they fit into `room`: the widest give way.
fn share(wanted: &[usize], room: usize) -> Vec<usize> {
    let mut widths = wanted.to_vec();
    while widths.iter().map(|w| w + 2).sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > 4 => *widest -= 1,
            _ => break,
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::super::table::{Head, TableRow};
    use super::*;

    /// A table of flushes of two arms, a row a job, as wide as that of journal-flush.
    fn flushes(arms: [&str; 2]) -> Table {
        let cells =
            ["3.00", "0.00", "−100.00", "[−100.00, −100.00]", "−100.0", "<0.001", "4", "fewer by > δ"];
        let values = Head::values(["change %", "interval", "mean %", "adj. p", "n"]);
        let columns = arms.into_iter().map(|arm| Head::new(arm, Of::Arm)).chain(values);
        Table {
            caption: "dev.flushes".to_owned(),
            labels: ["fs", "job"].map(|head| Head::new(head, Of::Levels)).to_vec(),
            columns: columns.chain([Head::new("verdict", Of::Verdicts)]).collect(),
            rows: vec![TableRow {
                labels: ["xfs", "create"].map(str::to_owned).to_vec(),
                cells: cells.map(str::to_owned).to_vec(),
                tone: None,
                notes: vec![2],
            }],
        }
    }

    const PAGE: Page = Page { columns: 80, colour: false, plain: false, each_verdict: false };

    #[test]
    fn heads_give_way_before_a_table_becomes_a_list() {
        let text = table(&flushes(["writeback", "writethrough"]), &PAGE);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "a head, a label and a row:\n{text}");
        assert!(lines.iter().all(|line| width(line) <= 80) && lines[0].contains("chg %"), "{text}");
    }

    #[test]
    fn a_label_of_many_rows_stands_above_them_once() {
        let mut table_of = flushes(["write back", "candidate"]);
        table_of.labels = ["variant", "io_size"].map(|head| Head::new(head, Of::Levels)).to_vec();
        let row = table_of.rows[0].clone();
        let of = |variant: &str, size: &str| TableRow {
            labels: [variant, size].map(str::to_owned).to_vec(),
            cells: row.cells.iter().map(|cell| cell.replace("−100.00, −100.00", "−16.5, +1.9")).collect(),
            ..row.clone()
        };
        table_of.rows = vec![
            of("serialize none at all", "4K"),
            of("serialize none at all", "128K"),
            of("serialize partial", "4K"),
        ];
        let text = table(&table_of, &PAGE);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].trim_start().starts_with("io_size"), "{text}");
        assert_eq!(lines[1], "variant=serialize none at all", "{text}");
        assert!(lines[2].starts_with("  4K ") && lines[3].starts_with("  128K "), "{text}");
        assert_eq!((lines.len(), lines[4]), (6, "variant=serialize partial"), "{text}");
        assert!(lines.iter().all(|line| width(line) <= 80), "{text}");
    }

    #[test]
    fn arms_have_more_room_where_there_is_some() {
        let mut wide = flushes(["write back", "write through"]);
        (wide.labels, wide.rows[0].labels) = (Vec::new(), Vec::new());
        wide.rows[0].cells[3] = "[−66.7, −22.4]".to_owned();
        let text = table(&wide, &PAGE);
        assert!(text.contains("write through"), "{text}");
    }

    #[test]
    fn the_widest_label_gives_way() {
        assert_eq!(share(&[20, 6], 24), [14, 6]);
        assert_eq!(share(&[5, 6], 24), [5, 6]);
    }
}
