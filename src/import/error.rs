//! What is wrong with an imported file, where, and what would help.

use crate::catalog::tool_names;
use crate::record::FioJsonError;
use crate::sys::regular_file::Kind;

/// A file (or what names files) that could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.place())]
pub struct ImportError {
    /// The path, glob or label it is about.
    pub origin: String,
    /// Line from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The system refuses to open or read it.
    #[error("cannot be read: {0}")]
    Io(std::io::Error),
    /// No such file, directory or stored run.
    #[error("there is no such file or directory{}", maybe(.nearest, "; the nearest name is"))]
    NotFound {
        /// A name like it in the same directory.
        nearest: Option<String>,
    },
    /// A directory where one file is expected.
    #[error("is a directory where a file should be")]
    IsDirectory,
    /// A device, a FIFO, a socket.
    #[error("is {0}, not a file with results")]
    NotAFile(Kind),
    /// Nothing in it.
    #[error("is empty")]
    Empty,
    /// Over the bound.
    #[error("is larger than {} MiB, the most that is read of such a file", limit_bytes >> 20)]
    TooLarge {
        /// The bound.
        limit_bytes: u64,
    },
    /// More trials than are compared.
    #[error("has more results than the {limit} that are compared at most, with all other files")]
    TooMany {
        /// The bound.
        limit: usize,
    },
    /// Binary.
    #[error("is not text: byte {offset} is not UTF-8")]
    NotText {
        /// Offset of the first such byte.
        offset: usize,
    },
    /// No format fits.
    #[error("has no format known here ({looks_like})")]
    UnknownFormat {
        /// What it looks like.
        looks_like: String,
    },
    /// What fio prints for people.
    #[error("this is fio's text for people, which is not read")]
    FioText,
    /// What fio prints with `--minimal`.
    #[error("this is fio's terse format, which is not read")]
    FioTerse,
    /// fio's JSON, damaged.
    #[error("fio JSON: {0}")]
    Fio(#[source] FioJsonError),
    /// What a tool printed, cut or without a result.
    #[error("{0}")]
    Tool(String),
    /// Other JSON, damaged or not as its tool writes it.
    #[error("{format}: {message}")]
    Json {
        /// Whose JSON.
        format: &'static str,
        /// What is wrong.
        message: String,
    },
    /// An export of a newer assay.
    #[error("was written by a newer assay: record version {found}, this one reads up to {known}")]
    NewerVersion {
        /// Version in the file.
        found: u64,
        /// Newest this assay reads.
        known: u32,
    },
    /// A value that is not a number, or an impossible one.
    #[error("{what} is '{text}', {reason}")]
    Value {
        /// The column, metric or field.
        what: String,
        /// What is there.
        text: String,
        /// What would be right.
        reason: &'static str,
    },
    /// A table row with more or fewer fields than the header.
    #[error("this row has {found} fields, the header has {expected}")]
    Fields {
        /// Fields in the row.
        found: u64,
        /// Fields in the header.
        expected: u64,
    },
    /// A column that is not there.
    #[error("there is no column '{column}'{}; its columns are {}", maybe(.nearest, "; the nearest is"), .columns.join(", "))]
    NoColumn {
        /// What was asked for.
        column: String,
        /// A column with a name like it.
        nearest: Option<String>,
        /// All columns.
        columns: Vec<String>,
    },
    /// A column of which there are several.
    #[error("{times} columns are called '{column}'")]
    SameColumns {
        /// What was asked for.
        column: String,
        /// How many there are.
        times: usize,
    },
    /// A table without the flags that say what its columns are.
    #[error("is a table (CSV): {missing}; its columns are {}", .columns.join(", "))]
    ColumnsNotSaid {
        /// What must be said.
        missing: &'static str,
        /// All columns.
        columns: Vec<String>,
    },
    /// A `--value`, `--row`, `--arm` or `--arm-columns` that cannot be read.
    #[error("{0}")]
    BadColumns(String),
    /// `--cluster` names nothing.
    #[error("nothing in the inputs is called '{name}' that could tell which trials belong together")]
    NoCluster {
        /// What was asked for.
        name: String,
    },
    /// `--cluster` names a column that is something else.
    #[error("column '{name}' holds arms or results: it cannot be the cluster as well")]
    ClusterTaken {
        /// What was asked for.
        name: String,
    },
    /// Nothing to compare with.
    #[error("holds one arm only ('{arm}'): there is nothing to compare it with")]
    OneArm {
        /// Its label.
        arm: String,
    },
    /// Many labels: hardly an arm.
    #[error("'{column}' has more than {limit} different values: is it really what tells the arms apart?")]
    TooManyArms {
        /// The column.
        column: String,
        /// The bound.
        limit: usize,
    },
    /// `--baseline` names no arm.
    #[error("there is no arm '{label}'; the arms are {}", .arms.join(", "))]
    NoSuchArm {
        /// What was asked for.
        label: String,
        /// The arms.
        arms: Vec<String>,
    },
    /// A glob that cannot be read or matches nothing.
    #[error("{0}")]
    Glob(String),
    /// A directory without files.
    #[error("is a directory without files in it")]
    EmptyDirectory,
    /// A search beside other inputs.
    #[error("holds a search: most of its steps were hardly run")]
    Search,
    /// No values in anything that was read.
    #[error("holds no results: {0}")]
    NoResults(String),
    /// Some files of a directory or glob could not be used.
    #[error("{} of {total} files cannot be used:\n{}", .failures.len(), list(.failures))]
    Unreadable {
        /// Files in all.
        total: usize,
        /// Why, one a file.
        failures: Vec<ImportError>,
    },
}

fn maybe(nearest: &Option<String>, words: &str) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("{words} '{name}'"))
}

/// At most ten lines, then how many more there are.
fn list(failures: &[ImportError]) -> String {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = failures.iter().take(SHOWN).map(|failure| format!("  {failure}")).collect();
    if failures.len() > SHOWN {
        lines.push(format!("  … and {} more", failures.len() - SHOWN));
    }
    lines.join("\n")
}

impl ImportError {
    pub(super) fn new(origin: impl Into<String>, problem: Problem) -> ImportError {
        ImportError { origin: origin.into(), line: None, problem }
    }

    pub(super) fn at(origin: impl Into<String>, line: usize, problem: Problem) -> ImportError {
        ImportError { origin: origin.into(), line: Some(line), problem }
    }

    /// `path, line 7: what is wrong`; a clause that starts with "is" or "has" follows the path directly.
    fn place(&self) -> String {
        let problem = self.problem.to_string();
        let joined =
            ["is ", "has ", "holds ", "was ", "cannot "].iter().any(|verb| problem.starts_with(verb));
        match (self.line, joined) {
            (Some(line), _) => format!("{}, line {line}: {problem}", self.origin),
            (None, true) => format!("{} {problem}", self.origin),
            (None, false) => format!("{}: {problem}", self.origin),
        }
    }

    /// What would help, where something does.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match &self.problem {
            Problem::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                "ask its owner for read permission, or copy it with sudo"
            }
            Problem::Io(_) => return None,
            Problem::NotFound { .. } => {
                "a file, a directory, a quoted glob, a stored run's number, or label=one of these; `assay list` shows the runs"
            }
            Problem::IsDirectory => "name a file in it, or give the directory as one side of the comparison",
            Problem::NotAFile(_) => {
                "give a file with results; to measure a device, use `assay run JOB --destroy DEVICE`"
            }
            Problem::Empty => {
                "did the tool that should have written it fail? run it again, or leave the file out"
            }
            Problem::TooLarge { .. } | Problem::TooMany { .. } => {
                "split it, or cut it down to what is compared"
            }
            Problem::NotText { .. } | Problem::UnknownFormat { .. } => {
                return Some(format!(
                    "readable are fio JSON and json+, one number a line, Go benchmark text, hyperfine JSON, what {} print, \
                     assay exports, and CSV with --arm, --row and --value",
                    tool_names()
                ));
            }
            Problem::FioText | Problem::FioTerse => {
                "run fio with --output-format=json (or json+ for histograms)"
            }
            Problem::Fio(error) => error.hint(),
            Problem::Tool(_) => "run the tool again, or leave the file out",
            Problem::Json { .. } => "write it again with the tool's own JSON export, or leave the file out",
            Problem::NewerVersion { .. } => "update assay, or export the run again with this one",
            Problem::Value { .. } => "correct the value, or leave the file out",
            Problem::Fields { .. } => "quote fields that contain the separator",
            Problem::NoColumn { .. } => "names are as in the header, upper and lower case alike count",
            Problem::SameColumns { .. } => "rename all but one of them in the header",
            Problem::ColumnsNotSaid { .. } => {
                "--arm COL --row COL,COL --value COL:higher when a column names the arm; --arm-columns COL,COL:higher when each arm has a column"
            }
            Problem::BadColumns(_) => "write --value COL[:unit][:higher|lower], e.g. --value kb_s:higher",
            Problem::NoCluster { .. } | Problem::ClusterTaken { .. } => {
                "--cluster takes a column of a table or a key of Go benchmark text; --cluster none takes every trial for itself"
            }
            Problem::OneArm { .. } => "give the other side too: `assay compare BASELINE CANDIDATE`",
            Problem::TooManyArms { .. } => "give the column of the variants to --arm and the others to --row",
            Problem::NoSuchArm { .. } => "--baseline takes one of these labels",
            Problem::Glob(_) => "quote the glob so that the shell leaves it alone: 'before/*.json'",
            Problem::EmptyDirectory => "files in its subdirectories are not read: name the subdirectory",
            Problem::Search => "`assay bisect --show` prints the answer of a stored one",
            Problem::NoResults(_) => "check that the tool did any work",
            Problem::Unreadable { .. } => "--skip-unreadable compares the others and names these",
        };
        Some(hint.to_owned())
    }
}

/// The name nearest to `wanted`, if any is near.
pub(super) fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|name| (strsim::jaro_winkler(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name.to_owned())
}

/// serde_json's error with its line, its message without it.
pub(super) fn json_error(origin: &str, format: &'static str, error: &serde_json::Error) -> ImportError {
    let message = error.to_string();
    let message = if error.is_eof() {
        "the JSON ends too early: the file was cut, or its writer was stopped".to_owned()
    } else {
        message.split(" at line ").next().unwrap_or_default().to_owned()
    };
    ImportError::at(origin, error.line().max(1), Problem::Json { format, message })
}
