//! A page of the documentation as plain text.
//!
//! Enters: Markdown as docs/ has it: headings, paragraphs, lists, tables, code. Leaves: text folded at a number of columns.
//! Code is left as it is. Links to other pages name the topic instead. It is no general reader of Markdown.

/// How far the cells behind the first one of a table's row are indented.
const CELL_INDENT: &str = "    ";

/// The page as text; `is_topic` says which links are topics of `assay help`.
pub(super) fn plain(text: &str, columns: usize, is_topic: impl Fn(&str) -> bool) -> String {
    let mut page = Page { out: String::new(), paragraph: String::new(), indent: String::new(), columns };
    let (mut fenced, mut lines) = (false, text.lines().peekable());
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```") {
            page.flush();
            fenced = !fenced;
        } else if fenced {
            page.line(&format!("    {}", without_files(line, &is_topic)));
        } else if line.starts_with("    ") && page.paragraph.is_empty() {
            page.line(&without_files(line, &is_topic));
        } else if line.trim().is_empty() {
            page.flush();
            page.blank();
        } else if let Some(heading) = line.strip_prefix('#') {
            page.flush();
            page.heading(heading.trim_start_matches('#').trim(), !heading.starts_with("##"));
        } else if line.starts_with('|') {
            page.flush();
            let is_head = lines.peek().is_some_and(|next| next.starts_with("|--") || next.starts_with("|:-"));
            if !(line.starts_with("|--") || line.starts_with("|:-")) {
                page.row(&inline(line, &is_topic), is_head);
            }
        } else if let Some(item) = item(line) {
            page.flush();
            item.clone_into(&mut page.indent);
            page.paragraph = inline(&line.trim_start()[item.trim_start().len()..], &is_topic);
        } else {
            let more = inline(line.trim(), &is_topic);
            page.paragraph.push(' ');
            page.paragraph.push_str(&more);
        }
    }
    page.flush();
    page.out.trim_end().to_owned() + "\n"
}

struct Page {
    out: String,
    /// Words that are not folded yet.
    paragraph: String,
    /// What stands in front of the first line: `- ` of a list; blanks in front of the others.
    indent: String,
    columns: usize,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn heading(&mut self, text: &str, underlined: bool) {
        self.blank();
        self.line(&inline(text, &|_| false));
        if underlined {
            self.line(&"-".repeat(text.chars().count().min(self.columns)));
        }
    }

    /// The first cell on a line of its own, the others below it.
    fn row(&mut self, line: &str, is_head: bool) {
        let line = line.replace("\\|", "\u{1}");
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        if is_head {
            self.fold(&cells.join(" / "), "", "  ");
            return;
        }
        let (first, rest) = cells.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        self.fold(first, "  ", CELL_INDENT);
        for cell in rest.iter().filter(|cell| !cell.is_empty()) {
            self.fold(cell, CELL_INDENT, CELL_INDENT);
        }
    }

    fn flush(&mut self) {
        let (text, first) = (std::mem::take(&mut self.paragraph), std::mem::take(&mut self.indent));
        if !text.is_empty() {
            self.fold(&text, &first, &" ".repeat(first.chars().count()));
        }
    }

    fn fold(&mut self, text: &str, first: &str, rest: &str) {
        let mut line = first.to_owned();
        let mut empty = true;
        for word in text.split_whitespace() {
            if !empty && line.chars().count() + 1 + word.chars().count() > self.columns {
                self.line(&line);
                rest.clone_into(&mut line);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }
}

/// `- ` or `1. ` with the blanks in front, if the line begins an item of a list.
fn item(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let blanks = line.len() - text.len();
    let mark = if text.starts_with("- ") || text.starts_with("* ") {
        2
    } else {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        text[digits..].starts_with(". ").then_some(digits + 2).filter(|_| digits > 0)?
    };
    Some(&line[..blanks + mark])
}

/// Without stars; links as their text, with the topic where the link leads to one.
fn inline(text: &str, is_topic: &impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((at, end, label, target)) = link(rest) {
        out.push_str(&rest[..at]);
        let name = topic(target);
        // A file's name says nothing to who has no files.
        if !(is_topic(&name) && label.ends_with(".md")) {
            out.push_str(label);
        }
        if is_topic(&name) {
            let command = format!("`assay help {name}`");
            out.push_str(&if label.ends_with(".md") { command } else { format!(" ({command})") });
        } else if target.starts_with("http") {
            out.push_str(&format!(" ({target})"));
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    without_files(&out, is_topic).replace("**", "")
}

/// With the topic in the place of each `docs/NAME.md` that is one.
fn without_files(text: &str, is_topic: &impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("docs/") {
        let end = rest[at..].find(".md").map(|end| at + end + ".md".len());
        let name = end.map(|end| topic(&rest[at..end])).filter(|name| is_topic(name));
        let (before, quoted) = match rest[..at].strip_suffix('`') {
            Some(before) if name.is_some() => (before, true),
            _ => (&rest[..at], false),
        };
        out.push_str(before);
        match (name, end) {
            (Some(name), Some(end)) => {
                out.push_str(&format!("`assay help {name}`"));
                rest = rest[end..].strip_prefix('`').filter(|_| quoted).unwrap_or(&rest[end..]);
            }
            _ => {
                out.push_str("docs/");
                rest = &rest[at + "docs/".len()..];
            }
        }
    }
    out + rest
}

/// `jobs` of `docs/jobs.md#files`.
fn topic(target: &str) -> String {
    let file = target.split('#').next().unwrap_or(target);
    match file.rsplit('/').next().unwrap_or(file).trim_end_matches(".md") {
        // The subcommand has that name.
        "probe" => "probes".to_owned(),
        name => name.to_lowercase(),
    }
}

/// The first link: where it begins and ends, its text and its target.
fn link(text: &str) -> Option<(usize, usize, &str, &str)> {
    let middle = text.find("](")?;
    let begin = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some((begin, end + 1, &text[begin + 1..middle], &text[middle + 2..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_folded_and_names_topics() {
        let text = "# Jobs\n\nSee [targets](targets.md), [jobs.md](jobs.md) or docs/jobs.md, **all** of\nit.\n\n- one item that is long\n  enough\n\n\
                    | key | what |\n|---|---|\n| `bs` | block size |\n\n```toml\na  = 1 # `docs/jobs.md`\n```\n\n    assay run\n";
        let page = plain(text, 30, |name| ["targets", "jobs"].contains(&name));
        assert_eq!(
            page,
            "Jobs\n----\n\nSee targets (`assay help\ntargets`), `assay help jobs`\nor `assay help jobs`, all of\nit.\n\n- one item that is long enough\n\n\
             key / what\n  `bs`\n    block size\n\n    a  = 1 # `assay help jobs`\n\n    assay run\n"
        );
    }
}
