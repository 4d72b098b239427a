//! The kernel's own description of its events: `events/*/*/format`, `header_page` and `header_event`.
//!
//! Enters: those texts. Leaves: where each field lies, by the number of the event. Numbers are of one boot: the layouts of
//! another machine, or of this one after a boot, name other events.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::sys::regular_file;

use super::error::TraceError;

/// No layout is longer.
const LONGEST: u64 = 1 << 20;
/// More files than any kernel has events.
const MOST_FILES: usize = 20_000;

/// Where a field lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) offset: usize,
    pub(super) size: usize,
}

/// One event's layout.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) name: String,
    fields: HashMap<String, Field>,
}

impl Layout {
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// How pages are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageLayout {
    pub(super) timestamp: Field,
    pub(super) commit: Field,
    pub(super) data: Field,
}

impl PageLayout {
    pub(super) fn page_bytes(&self) -> usize {
        self.data.offset + self.data.size
    }
}

/// All that raw pages need for being read.
#[derive(Clone, Debug)]
pub struct Formats {
    pub(super) page: PageLayout,
    events: HashMap<u16, Layout>,
}

impl Formats {
    /// Reads the layouts below a directory: `NAME.format` files or `EVENT/format`, two levels deep at most; `header_page` and
    /// `header_event`, with or without `.txt`, in it or beside it.
    ///
    /// # Errors
    /// A text that is not such a layout, or no layout at all.
    pub fn read(directory: &Path) -> Result<Formats, TraceError> {
        let mut files = Vec::new();
        collect(directory, 0, &mut files)?;
        if files.is_empty() {
            let reason =
                "no file called format, or with that ending, is in it or two levels below".to_owned();
            return Err(no_layouts(directory, reason));
        }
        let texts = files.iter().map(|file| Ok((file.clone(), text_of(file)?)));
        let texts: Vec<(PathBuf, String)> = texts.collect::<Result<_, TraceError>>()?;
        let header = |name: &str| -> Result<String, TraceError> {
            let around = [Some(directory), directory.parent()];
            let places = around
                .into_iter()
                .flatten()
                .flat_map(|place| [place.join(name), place.join(format!("{name}.txt"))]);
            match places.into_iter().find(|place| place.is_file()) {
                Some(place) => text_of(&place),
                None => Err(no_layouts(directory, format!("{name} is neither in nor beside it"))),
            }
        };
        let described = texts.iter().map(|(file, text)| (file.display().to_string(), text.as_str()));
        Formats::from_texts(&header("header_page")?, &header("header_event")?, described)
    }

    /// The same from texts; each layout comes with a name for messages.
    ///
    /// # Errors
    /// A text that is not such a layout, or no layout at all.
    pub fn from_texts<'a>(
        header_page: &str,
        header_event: &str,
        layouts: impl IntoIterator<Item = (String, &'a str)>,
    ) -> Result<Formats, TraceError> {
        let mut events = HashMap::new();
        for (name, text) in layouts {
            let bad = |what: &str| TraceError::BadFormat { name: name.clone(), what: what.to_owned() };
            let (id, layout) = parse(text).ok_or_else(|| bad("it has no name, ID or fields"))?;
            if let Some(other) = events.insert(id, layout) {
                return Err(bad(&format!("{} has the same ID {id}: they are not of one boot", other.name)));
            }
        }
        if events.is_empty() {
            return Err(no_layouts(Path::new("formats"), "nothing is there".to_owned()));
        }
        Ok(Formats { page: page_layout(header_page, header_event)?, events })
    }

    pub(super) fn events(&self) -> impl Iterator<Item = (u16, &Layout)> {
        self.events.iter().map(|(id, layout)| (*id, layout))
    }
}

pub(super) fn no_formats(name: &Path, reason: String) -> TraceError {
    TraceError::NoFormats { name: name.display().to_string(), reason }
}

fn no_layouts(directory: &Path, reason: String) -> TraceError {
    TraceError::NoLayouts { name: directory.display().to_string(), reason }
}

fn text_of(file: &Path) -> Result<String, TraceError> {
    let unreadable = |reason: String| TraceError::Unreadable { name: file.display().to_string(), reason };
    let bytes = regular_file::read(file, LONGEST).map_err(|error| unreadable(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| TraceError::BadFormat {
        name: file.display().to_string(),
        what: "it is not text".to_owned(),
    })
}

/// The layouts' files below a directory.
fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), TraceError> {
    let entries = std::fs::read_dir(directory).map_err(|error| no_layouts(directory, error.to_string()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let is_layout = path.extension().is_some_and(|ending| ending == "format")
            || path.file_name().is_some_and(|name| name == "format");
        if is_layout && path.is_file() {
            files.push(path);
        } else if depth < 2 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, depth + 1, files)?;
        }
        if files.len() > MOST_FILES {
            return Err(no_layouts(directory, format!("more than {MOST_FILES} files are in it")));
        }
    }
    files.sort();
    Ok(())
}

/// One `format` text.
fn parse(text: &str) -> Option<(u16, Layout)> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let name = value("name:")?.to_owned();
    let id = value("ID:")?.parse().ok()?;
    let fields: HashMap<String, Field> = text.lines().filter_map(field).collect();
    (!fields.is_empty()).then_some((id, Layout { name, fields }))
}

/// `field:char rwbs[10]; offset:28; size:10; signed:0;`
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.split_whitespace().next_back()?.split('[').next()?.trim_start_matches('*').to_owned();
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => size = value.parse().ok(),
            _ => {}
        }
    }
    let (offset, size): (usize, usize) = (offset?, size?);
    // Records lie within a page; larger numbers are nonsense and could overflow.
    (offset < 1 << 20 && size < 1 << 20).then_some((name, Field { offset, size }))
}

fn page_layout(header_page: &str, header_event: &str) -> Result<PageLayout, TraceError> {
    let bad = |name: &str, what: &str| TraceError::BadFormat { name: name.to_owned(), what: what.to_owned() };
    let fields: HashMap<String, Field> = header_page.lines().filter_map(field).collect();
    let one = |name: &str| {
        fields.get(name).copied().ok_or_else(|| bad("header_page", &format!("it has no {name}")))
    };
    let page = PageLayout { timestamp: one("timestamp")?, commit: one("commit")?, data: one("data")? };
    let fits = page.timestamp.size == 8
        && matches!(page.commit.size, 4 | 8)
        && page.timestamp.offset + 8 <= page.data.offset
        && page.commit.offset + page.commit.size <= page.data.offset
        && (64..=1 << 16).contains(&page.page_bytes());
    if !fits {
        return Err(bad(
            "header_page",
            "its fields overlap, or have other sizes than those of a 64-bit kernel",
        ));
    }
    let words: Vec<&str> = header_event.split_whitespace().collect();
    let known =
        ["type_len : 5 bits", "time_delta : 27 bits", "padding : type == 29", "time_extend : type == 30"];
    match known.iter().find(|line| !words.join(" ").contains(*line)) {
        Some(line) => Err(bad("header_event", &format!("it does not say '{line}'"))),
        None => Ok(page),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    const EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
                         \tpadding     : type == 29\n\ttime_extend : type == 30\n";
    const ONE: &str = "name: block_split\nID: 2092\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                       \tfield:char rwbs[10];\toffset:32;\tsize:10;\tsigned:0;\n\tfield:void * lock_addr;\toffset:8;\tsize:8;\n\nprint fmt: \"\"\n";

    #[test]
    fn fields_are_found_by_name() {
        let formats = Formats::from_texts(PAGE, EVENT, [("one".to_owned(), ONE)]).unwrap();
        let layout = &formats.events[&2092];
        assert_eq!(layout.name, "block_split");
        assert_eq!(layout.field("rwbs"), Some(Field { offset: 32, size: 10 }));
        assert_eq!(layout.field("lock_addr"), Some(Field { offset: 8, size: 8 }));
        assert_eq!((layout.field("nothing"), formats.page.page_bytes()), (None, 4096));
    }

    #[test]
    fn what_is_no_layout_is_refused() {
        let said = |page: &str, event: &str, layouts: &[&str]| {
            let named = layouts.iter().enumerate().map(|(i, text)| (format!("file {i}"), *text));
            Formats::from_texts(page, event, named).unwrap_err().to_string()
        };
        assert!(said(PAGE, EVENT, &[]).contains("formats has no event layouts"));
        assert!(said(PAGE, EVENT, &["name: x\n"]).contains("file 0"));
        assert!(said(PAGE, EVENT, &[ONE, ONE]).contains("same ID 2092"));
        let empty = tempfile::tempdir().unwrap();
        let said_of_empty = Formats::read(empty.path()).unwrap_err().to_string();
        let expected = format!("{} has no event layouts: no file called format", empty.path().display());
        assert!(said_of_empty.starts_with(&expected), "{said_of_empty}");
        assert!(said("", EVENT, &[ONE]).contains("no timestamp"));
        assert!(said(&PAGE.replace("size:4080", "size:9999999"), EVENT, &[ONE]).contains("header_page"));
        assert!(said(PAGE, &EVENT.replace("27 bits", "26 bits"), &[ONE]).contains("time_delta : 27 bits"));
    }
}
