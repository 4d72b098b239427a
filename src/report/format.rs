//! The eight formats by name, and what a reader can ask of a report.

use std::fmt;
use std::str::FromStr;

use crate::analyse::Gate;

named! {
    /// A format a report can be written in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Format {
        /// For a terminal and for pasting: 80 columns.
        Text = "text",
        /// For a kernel mailing list: 72 columns of plain ASCII, averages, differences, deviations.
        Lkml = "lkml",
        /// As mmtests' `compare-kernels.sh` prints it.
        Mmtests = "mmtests",
        /// GitHub tables.
        Markdown = "markdown",
        /// Everything, versioned, for programs.
        Json = "json",
        /// One line a comparison.
        Csv = "csv",
        /// One self-contained page with pictures.
        Html = "html",
        /// JUnit XML, for build servers: a case for each comparison that decides.
        Junit = "junit",
    }
}

impl Format {
    /// The format that a file name's ending asks for: `report.html` is HTML; `None` when it says nothing.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Format> {
        match name.rsplit_once('.')?.1 {
            "txt" => Some(Format::Text),
            "md" | "markdown" => Some(Format::Markdown),
            "json" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            "html" | "htm" => Some(Format::Html),
            "lkml" => Some(Format::Lkml),
            "mmtests" => Some(Format::Mmtests),
            "xml" | "junit" => Some(Format::Junit),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a report format; write text, lkml, mmtests, markdown, json, csv, html or junit")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Format::named(text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// How much a document says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What fits one screen: the verdict, the numbers that decide, and what may make them wrong.
    Screen,
    /// All that is known, without what has not shown itself.
    #[default]
    Page,
    /// All, with the interval of each row alone.
    All,
}

/// What a document shall contain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// lkml: a difference below this many percent is printed as 0.
    pub hide_below_pct: Option<f64>,
    /// List every exploratory metric, also those without a clear difference.
    pub all_metrics: bool,
    /// How much is said.
    pub detail: Detail,
    /// The reader named metrics: their tables are shown on one screen, too.
    pub named_metrics: bool,
    /// junit: what fails a case; `None`: what is slower by more than δ, and nothing of an A/A run.
    pub gate: Option<Gate>,
}

/// How a document is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// ANSI colour (text only; the caller knows whether a terminal reads it and what `NO_COLOR` says).
    pub colour: bool,
    /// Columns of text and lkml; `None`: 80 and 72. Never less than 60.
    pub width: Option<usize>,
    /// csv: cells as they are, also those that a spreadsheet would execute.
    pub raw_cells: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "yaml".parse::<Format>().unwrap_err();
        assert!(error.to_string().contains("'yaml' is not a report format"), "{error}");
    }

    #[test]
    fn a_file_name_may_say_the_format() {
        assert_eq!(Format::from_file_name("out/report.html"), Some(Format::Html));
        assert_eq!(Format::from_file_name("notes.md"), Some(Format::Markdown));
        assert_eq!(Format::from_file_name("report"), None);
    }
}
