//! A [`Table`] laid out in columns of text that fit a page.
//!
//! Enters: a table of strings. Leaves: lines. Labels that leave no room for the values are shortened in the middle,
//! or, when too little would be left of them, put on lines of their own; values that do not fit even so are listed.

use super::layout::{left, right, shorten, told_apart, width, wrap};
use super::page::Page;
use super::table::{Of, Table, TableRow};

/// Widest head of a value column.
const MOST_HEAD: usize = 12;
/// Labels are not shortened below this many columns in all.
const LEAST_LABELS: usize = 24;

/// Widths of everything in one table.
struct Grid {
    labels: Vec<usize>,
    values: Vec<usize>,
    gap: &'static str,
    stacked: bool,
    listed: bool,
}

impl Grid {
    fn measure(table: &Table, heads: &[String], page: &Page) -> Grid {
        let widest = |cells: &mut dyn Iterator<Item = usize>, head: usize| cells.fold(head, usize::max);
        let values: Vec<usize> = (0..heads.len())
            .map(|at| widest(&mut table.rows.iter().map(|row| width(&row.cells[at])), width(&heads[at])))
            .collect();
        let wanted: Vec<usize> = (0..table.labels.len())
            .map(|at| {
                widest(
                    &mut table.rows.iter().map(|row| width(&row.labels[at])),
                    width(&table.labels[at].text),
                )
            })
            .collect();
        let marks = widest(&mut table.rows.iter().map(|row| width(&page.mark(&row.notes))), 0);
        let bare = values.iter().sum::<usize>() + marks;
        let gaps = values.len() - 1;
        let all: usize = wanted.iter().map(|w| w + 2).sum();
        let room = page.columns.saturating_sub(bare + 2 * gaps);
        let stacked = all > room && room < LEAST_LABELS.min(all);
        let gap = if bare + 2 * gaps + 2 * usize::from(stacked) > page.columns { " " } else { "  " };
        let labels = if stacked { Vec::new() } else { share(&wanted, room) };
        let least = bare + gaps * gap.len() + if stacked { 2 } else { labels.iter().map(|w| w + 2).sum() };
        Grid { labels, values, gap, stacked, listed: least > page.columns }
    }

    /// A line without its verdict: labels and all values but the last.
    fn line(&self, labels: &[String], cells: &[String]) -> String {
        let mut line = if self.stacked { "  ".to_owned() } else { String::new() };
        for (label, columns) in labels.iter().zip(&self.labels) {
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

/// The table's lines.
pub(super) fn table(table: &Table, page: &Page) -> String {
    let heads: Vec<&str> = table.columns.iter().map(|head| head.text.as_str()).collect();
    let heads = told_apart(&heads, MOST_HEAD);
    let Some(last) = heads.last() else { return String::new() };
    let grid = Grid::measure(table, &heads, page);
    if grid.listed {
        return list(table, &heads, page);
    }
    let labels: Vec<String> = table.labels.iter().map(|head| head.text.clone()).collect();
    let mut out = page.dim(format!("{}{last}", grid.line(&labels, &heads)).trim_end());
    out.push('\n');
    for row in &table.rows {
        if grid.stacked {
            out.push_str(&wrap(&stacked_label(table, row), page.columns, "", "  "));
            out.push('\n');
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
        let label = stacked_label(table, row);
        if !label.is_empty() {
            page.words(&mut out, &label, "", "  ");
        }
        let values: Vec<String> =
            heads.iter().zip(&row.cells).map(|(head, cell)| format!("{head}: {cell}")).collect();
        page.words(&mut out, &format!("{}{}", values.join("; "), page.mark(&row.notes)), "  ", "  ");
    }
    out
}

/// `write=append, io_size=4K`: a row's labels on a line of their own.
fn stacked_label(table: &Table, row: &TableRow) -> String {
    let parts: Vec<String> = table
        .labels
        .iter()
        .zip(&row.labels)
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
    use super::*;

    #[test]
    fn the_widest_label_gives_way() {
        assert_eq!(share(&[20, 6], 24), [14, 6]);
        assert_eq!(share(&[5, 6], 24), [5, 6]);
    }
}
