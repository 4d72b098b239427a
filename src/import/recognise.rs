//! Which tool wrote a text, by its content; names and endings are not looked at.

use std::io::Read;
use std::path::Path;

use super::error::{ImportError, Problem};
use crate::catalog::{EngineKind, KnownProgram};
use crate::sys::regular_file;

/// Bytes of the beginning of a file, with the first line of a table.
const START: u64 = 64 << 10;
/// fio names itself behind a line for each of its first jobs.
const FIO_LINES: usize = 64;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// fio `--output-format=json` or `json+`.
    FioJson,
    /// `assay export --format json`.
    AssayJson,
    /// `assay export --format csv`.
    AssayCsv,
    /// `hyperfine --export-json`.
    Hyperfine,
    /// Output of `go test -bench`, or benchstat's input.
    GoBenchmark,
    /// One number a line, as ministat reads it.
    Numbers,
    /// What the program of an engine prints.
    Tool(EngineKind),
    /// What a program that is known by this name prints for people; empty: any text, by the patterns of `--metric`.
    Printed(&'static str),
    /// A table with a header.
    Csv,
}

impl Format {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::FioJson => "fio json",
            Format::AssayJson => "assay export",
            Format::AssayCsv => "assay csv export",
            Format::Hyperfine => "hyperfine json",
            Format::GoBenchmark => "go benchmark text",
            Format::Numbers => "numbers",
            Format::Tool(engine) => engine.descriptor().output.map_or(engine.name(), |output| output.format),
            Format::Printed("") => "text",
            Format::Printed(name) => name,
            Format::Csv => "csv",
        }
    }
}

/// The text in `bytes`, a byte order mark removed.
pub(super) fn text<'a>(bytes: &'a [u8], origin: &str) -> Result<&'a str, ImportError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ImportError::new(origin, Problem::NotText { offset: error.valid_up_to() }))?;
    if let Some(offset) = text.find('\0') {
        return Err(ImportError::new(origin, Problem::NotText { offset }));
    }
    Ok(text.trim_start_matches('\u{feff}'))
}

/// Whether a regular file begins as an export does, and no job or experiment: with a brace, or with the header of the table.
#[must_use]
pub fn may_be_export(path: &Path) -> bool {
    let mut start = Vec::new();
    // A FIFO would wait for a writer, and what a pipe holds can be read once only.
    let opened = regular_file::open(path).ok().filter(|_| path.is_file());
    let read = opened.and_then(|file| file.take(START).read_to_end(&mut start).ok());
    let text = String::from_utf8_lossy(&start);
    let line = text.trim_start_matches('\u{feff}').trim_start().lines().next().unwrap_or_default();
    read.is_some() && (line.starts_with('{') || super::assay_csv::begins(line.trim_end()))
}

/// Recognises a file's format by its content.
///
/// # Errors
/// [`ImportError`] when it is empty, not text, or like none of the known formats.
pub fn recognise(bytes: &[u8], origin: &str) -> Result<Format, ImportError> {
    let text = text(bytes, origin)?;
    let Some(first) = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
    else {
        return Err(ImportError::new(origin, Problem::Empty));
    };
    let is_list = first.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'));
    if is_list || text.lines().any(|line| line.trim_start().starts_with('{')) || opens_fio(text) {
        if let Some(format) = json_format(text) {
            return Ok(format);
        }
        if first.starts_with('{') || is_list {
            return Err(unknown(origin, "JSON, but not fio's, hyperfine's or assay's"));
        }
    }
    if text.lines().take(FIO_LINES).any(is_fio_text) {
        return Err(ImportError::new(origin, Problem::FioText));
    }
    if is_fio_terse(first) {
        return Err(ImportError::new(origin, Problem::FioTerse));
    }
    if text.lines().any(is_go_result) {
        return Ok(Format::GoBenchmark);
    }
    if let Some(format) = text.lines().find_map(|line| tool_format(line.trim())) {
        return Ok(format);
    }
    if let Some(known) = KnownProgram::of_text(text) {
        return Ok(Format::Printed(known.name));
    }
    if number(first).is_some() {
        return Ok(Format::Numbers);
    }
    if super::assay_csv::begins(first) {
        return Ok(Format::AssayCsv);
    }
    if delimiter(first).is_some() {
        return Ok(Format::Csv);
    }
    if first.contains('{') && json_format(text) == Some(Format::FioJson) {
        return Ok(Format::FioJson);
    }
    let start: String = first.chars().take(40).collect();
    Err(unknown(origin, &format!("it starts with '{start}'")))
}

fn unknown(origin: &str, looks_like: &str) -> ImportError {
    ImportError::new(origin, Problem::UnknownFormat { looks_like: looks_like.to_owned() })
}

/// By keys that only that tool writes together.
fn json_format(text: &str) -> Option<Format> {
    let has = |key: &str| text.contains(key);
    if has("\"fio version\"") || has("\"client_stats\"") || has("\"jobname\"") {
        Some(Format::FioJson)
    } else if has("\"design\"") && has("\"trials\"") && has("\"cells\"") || has("\"assay_version\"") {
        Some(Format::AssayJson)
    } else if has("\"results\"") && has("\"command\"") {
        Some(Format::Hyperfine)
    } else {
        None
    }
}

/// `fio-3.33`, or the line of a job: `w: (g=0): rw=write, bs=(R) 4096B-4096B, …`.
fn is_fio_text(line: &str) -> bool {
    let line = line.trim();
    let version = line.strip_prefix("fio-").and_then(|rest| rest.chars().next());
    version.is_some_and(|digit| digit.is_ascii_digit()) && !line.contains([' ', ',', '\t', ';'])
        || line.split_once(": (g=").is_some_and(|(_, rest)| rest.contains("): rw="))
}

/// Whether a document of fio's begins within a line: behind other words, or in a list.
fn opens_fio(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| text[at + 1..].trim_start().starts_with("\"fio version\""))
}

/// `3;fio-3.33;job;0;0;…`, what `--minimal` prints.
fn is_fio_terse(line: &str) -> bool {
    let mut fields = line.split(';');
    fields.next().is_some_and(|version| version.parse::<u32>().is_ok())
        && fields.next().is_some_and(|fio| fio.starts_with("fio-"))
}

/// By a line that only that tool prints.
fn tool_format(line: &str) -> Option<Format> {
    let prints =
        |engine: &&EngineKind| engine.descriptor().output.is_some_and(|output| (output.is_line)(line));
    EngineKind::ALL.iter().find(prints).map(|engine| Format::Tool(*engine))
}

/// `BenchmarkName-8  100  123 ns/op`.
pub(super) fn is_go_result(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    fields.next().is_some_and(|name| name.starts_with("Benchmark"))
        && fields.next().is_some_and(|n| n.parse::<u64>().is_ok())
        && fields.next().is_some_and(|value| value.parse::<f64>().is_ok())
        && fields.next().is_some()
}

/// The number at the start of a line, the whole of which is the number or the number and a comment.
pub(super) fn number(line: &str) -> Option<f64> {
    let bare = line.split('#').next().unwrap_or("").trim();
    bare.parse().ok()
}

/// The character that separates the fields of a header line.
pub(super) fn delimiter(header: &str) -> Option<u8> {
    [b',', b'\t', b';'].into_iter().find(|byte| header.as_bytes().contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        let cases: [(&str, Format); 15] = [
            ("[{\"fio version\": \"fio-3.36\", \"jobs\": []}, {\"fio version\"", Format::FioJson),
            ("run 1, cold: { \"fio version\": \"fio-3.36\"", Format::FioJson),
            ("dbench version 4.00 - Copyright\n", Format::Tool(EngineKind::Dbench)),
            ("# fs_mark\n\nFSUse%  Count  Size  Files/sec\n", Format::Tool(EngineKind::FsMark)),
            ("+ xfs_io\nwrote 1/1 bytes at offset 0\n", Format::Tool(EngineKind::XfsIo)),
            ("trial,round,position,attempt,status,bs,job,metric,unit,value\n", Format::AssayCsv),
            ("trial,round,position,attempt,status,bs,job,metric,unit,better,value\n", Format::AssayCsv),
            ("note: x\n{\n \"fio version\" : \"fio-3.33\"", Format::FioJson),
            ("fio: warning {\"jobname\": 1}", Format::FioJson),
            ("{\"results\": [{\"command\": \"ls\"", Format::Hyperfine),
            ("{\"version\": 1, \"assay_version\": \"0.1.0\"", Format::AssayJson),
            ("goos: linux\nBenchmarkX-8 100 12.5 ns/op\n", Format::GoBenchmark),
            ("# times\n\n1.5\n2\n", Format::Numbers),
            ("a,b\n1,2\n", Format::Csv),
            ("\u{feff}a;b\n1;2\n", Format::Csv),
        ];
        for (text, format) in cases {
            assert_eq!(recognise(text.as_bytes(), "x").unwrap(), format, "{text}");
        }
    }

    #[test]
    fn what_is_nothing_known_is_said() {
        for (bytes, words) in [
            (&b""[..], "x is empty"),
            (b"\n # only a comment\n", "x is empty"),
            (b"\x7fELF\xff", "x is not text: byte 4"),
            (b"w: (g=0): rw=write, bs=(R) 4096B-4096B\nfio-3.33\n", "x: this is fio's text for people"),
            (b"note, all\nfio-3.33\nStarting 1 process\n", "x: this is fio's text for people"),
            (b"3;fio-3.33;w;0;0;0;0\n3;fio-3.33;w;0;0;0;0\n", "x: this is fio's terse format"),
            (b"hello\n", "x has no format known here (it starts with 'hello')"),
            (b"{\"a\": 1}", "x has no format known here (JSON, but not"),
        ] {
            let error = recognise(bytes, "x").unwrap_err();
            assert!(error.to_string().starts_with(words), "{error}");
            assert!(error.hint().is_some());
        }
    }
}
