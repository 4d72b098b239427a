//! The parts of the page that are tables.

use super::super::html_text::escape;
use super::super::section::Fact;
use super::super::table::{Of, Table, TableRow};
use super::super::verdict_words::Tone;
use super::super::words::count;
use super::blocks::{folded, marks};

/// Rows of a longer table that are there before it is unfolded: of one whose rows are looked up by their names, and of others.
const UNFOLDED: [usize; 2] = [5, 12];

/// A table, of a long one the first rows and the others when unfolded; on a phone the heads stand before the cells.
pub(super) fn table(out: &mut String, table: &Table) {
    let by_name = table.labels.first().is_some_and(|head| head.of == Of::Names);
    let most = UNFOLDED[usize::from(!by_name)];
    // One more row takes no more room than what would unfold it.
    if table.rows.len() <= most + 1 {
        return rows(out, table, &table.caption, &table.rows);
    }
    let (first, others) = table.rows.split_at(boundary(table, most));
    rows(out, table, &table.caption, first);
    let summary = count(others.len() as u64, "more row");
    let mut body = String::new();
    rows(&mut body, table, &format!("{}: {summary}", table.caption), others);
    folded(out, &summary, false, &body);
}

/// Where a long table is cut: rows with the same first label stay together, if that is not most of them.
fn boundary(table: &Table, most: usize) -> usize {
    let first = |at: usize| table.rows.get(at).and_then(|row| row.labels.first());
    let begins = |at: &usize| table.labels.len() < 2 || first(*at) != first(at - 1);
    (most / 2..=most).rev().find(begins).unwrap_or(most)
}

fn rows(out: &mut String, table: &Table, caption: &str, rows: &[TableRow]) {
    let caption = escape(caption);
    out.push_str(&format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n<caption>{caption}\
         </caption>\n<thead><tr>"
    ));
    for head in &table.labels {
        out.push_str(&format!("<th scope=\"col\" class=\"left\">{}</th>", escape(&head.text)));
    }
    for head in &table.columns {
        let class = if head.of == Of::Arm { " class=\"arm\"" } else { "" };
        out.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escape(&head.text)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    rows.iter().for_each(|one| row(out, table, one));
    out.push_str("</tbody>\n</table>\n</div>\n");
}

fn row(out: &mut String, table: &Table, row: &TableRow) {
    out.push_str("<tr>");
    for (label, head) in row.labels.iter().zip(&table.labels) {
        let (head, label) = (escape(&head.text), escape(label));
        out.push_str(&format!("<th scope=\"row\" data-head=\"{head}\">{label}</th>"));
    }
    for (cell, head) in row.cells.iter().zip(&table.columns) {
        let (cell, text) = (escape(cell), escape(&head.text));
        if head.of == Of::Verdicts {
            let (tone, marks) = (row.tone.map_or("", Tone::name), marks(&row.notes));
            out.push_str(&format!("<td class=\"verdict {tone}\">{cell}{marks}</td>"));
        } else {
            out.push_str(&format!("<td data-head=\"{text}\">{cell}</td>"));
        }
    }
    out.push_str("</tr>\n");
}

/// Names and values; those in which arms differ are marked.
pub(super) fn facts(out: &mut String, facts: &[Fact]) {
    out.push_str("<div class=\"scroll\"><table class=\"facts\">\n<tbody>\n");
    for Fact { name, value, differs } in facts {
        let of_arm: Vec<String> = differs.iter().map(|(arm, value)| format!("{arm}: {value}")).collect();
        let (class, text) = match of_arm.as_slice() {
            [] => ("", value.clone()),
            of_arm => (" class=\"differs\"", format!("{} (arms differ)", of_arm.join("; "))),
        };
        let (name, text) = (escape(name), escape(&text));
        out.push_str(&format!("<tr{class}><th scope=\"row\">{name}</th><td>{text}</td></tr>\n"));
    }
    out.push_str("</tbody>\n</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::super::super::table::Head;
    use super::*;

    /// A table of this many rows.
    fn html(rows: usize, of: Of) -> String {
        let row = |n: usize| TableRow::new(vec![format!("row {n}")], vec!["1".to_owned()]);
        let (labels, columns) = (vec![Head::new("effect", of)], Head::values(["change %"]).collect());
        let table = Table { caption: "c".to_owned(), labels, columns, rows: (1..=rows).map(row).collect() };
        let mut out = String::new();
        super::table(&mut out, &table);
        out
    }

    #[test]
    fn the_first_rows_of_a_long_table_stand_before_unfolding() {
        let effects = html(17, Of::Names);
        let (first, folded) = effects.split_once("<details><summary>12\u{a0}more rows</summary>").unwrap();
        assert!(first.contains("row 5<") && !first.contains("row 6<"), "{effects}");
        assert!(folded.contains("row 6<") && folded.contains("row 17<"), "{effects}");
        assert!(!html(12, Of::Levels).contains("<details>"), "the rows that decide");
    }
}
