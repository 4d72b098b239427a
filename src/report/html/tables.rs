//! The parts of the page that are tables.

use super::super::html_text::escape;
use super::super::section::Fact;
use super::super::table::{Of, Table};
use super::super::verdict_words::Tone;
use super::blocks::marks;

/// A table; on a phone the heads stand before the cells.
pub(super) fn table(out: &mut String, table: &Table) {
    let caption = escape(&table.caption);
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
    for row in &table.rows {
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
    out.push_str("</tbody>\n</table>\n</div>\n");
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
