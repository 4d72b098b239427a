//! The table of engines: one line an engine, and one descriptor that says what other layers ask about it.
//!
//! Enters: a name. Leaves: an [`EngineKind`] and its [`EngineDescriptor`]. How an engine does its work is `engine`'s, whose
//! `of` has a match without a wildcard: the compiler asks there for an engine that is new here.

use serde::{Deserialize, Serialize};

use super::program::Program;
use super::setting::Setting;
use super::table::table;
use super::tool_output::{ToolOutputError, ToolTrial};
use super::{dbench, fs_mark, xfs_io};

/// What an engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// A job.
    Job,
    /// The command behind `--`.
    Command,
    /// What its own settings say, and no job.
    Settings,
    /// A job if there is one, else made-up values.
    Anything,
}

/// What the trials of an engine may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaches {
    /// Nothing: it does no I/O.
    Nothing,
    /// The files that its job names.
    JobFiles,
    /// The directory that is made for it, and what its program reads.
    OwnDirectory,
    /// Whatever it likes.
    Anything,
}

/// Who ends a trial that takes longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The agent, whose threads and processes do the I/O.
    Agent,
    /// The engine, which ends its program.
    Engine,
    /// The engine; its program may wait on a ring for other things than I/O on storage.
    EngineOfAnyProgram,
}

/// Given which settings are set, what is wrong with settings that are each right; `None`: nothing.
pub type Together = fn(&dyn Fn(&str) -> bool) -> Option<&'static str>;

/// The settings that an engine has in a table of its name.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// All of them.
    pub known: &'static [Setting],
    /// What is wrong with settings that are each right, given which of them are set; `None`: nothing.
    pub together: Together,
    /// The setting that names the one file it works on: such an engine can work on a device without a filesystem.
    pub file: Option<&'static str>,
    /// Seconds that a trial lasts by these values, where they say so.
    pub lasts_s: fn(&[(String, String)]) -> Option<f64>,
}

/// What a tool prints, for its engine and for imports alike.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// What reports call the format.
    pub format: &'static str,
    /// Whether only this tool prints such a line.
    pub is_line: fn(&str) -> bool,
    /// Reads every run in a text.
    pub read: fn(&str) -> Result<Vec<ToolTrial>, ToolOutputError>,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct EngineDescriptor {
    /// As people write it.
    pub name: &'static str,
    /// What it runs.
    pub runs: Runs,
    /// Whether assay does the I/O itself; such an engine takes only jobs that assay understands.
    pub in_process: bool,
    /// The program it starts.
    pub program: Option<Program>,
    /// Its own settings.
    pub settings: Option<Settings>,
    /// What its trials may read and write.
    pub reaches: Reaches,
    /// Who ends a trial that takes too long.
    pub limited_by: LimitedBy,
    /// What its program prints.
    pub output: Option<Output>,
}

/// An engine of assay's own that runs jobs.
const OWN: EngineDescriptor = EngineDescriptor {
    name: "native",
    runs: Runs::Job,
    in_process: true,
    program: None,
    settings: None,
    reaches: Reaches::JobFiles,
    limited_by: LimitedBy::Agent,
    output: None,
};

/// A program with its settings, its results and all it writes below one directory.
pub(super) const fn tool(program: Program, settings: Settings, output: Output) -> EngineDescriptor {
    EngineDescriptor {
        name: program.name,
        runs: Runs::Settings,
        in_process: false,
        program: Some(program),
        settings: Some(settings),
        reaches: Reaches::OwnDirectory,
        limited_by: LimitedBy::Engine,
        output: Some(output),
    }
}

table! {
    /// Which engine runs the trials.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    EngineKind of EngineDescriptor {
        /// assay's own.
        Native = OWN,
        /// assay's own without I/O.
        Null = EngineDescriptor { name: "null", reaches: Reaches::Nothing, ..OWN },
        /// The bare system calls of a job: the limit of what an engine can reach.
        Bare = EngineDescriptor { name: "bare", ..OWN },
        /// fio as a child process.
        Fio = EngineDescriptor {
            name: "fio",
            in_process: false,
            program: Some(Program { name: "fio", package: "fio" }),
            limited_by: LimitedBy::Engine,
            ..OWN
        },
        /// Any command.
        Command = EngineDescriptor {
            name: "command",
            runs: Runs::Command,
            in_process: false,
            reaches: Reaches::Anything,
            limited_by: LimitedBy::EngineOfAnyProgram,
            ..OWN
        },
        /// dbench as a child process.
        Dbench = dbench::DBENCH,
        /// fs_mark as a child process.
        FsMark = fs_mark::FS_MARK,
        /// xfs_io as a child process.
        XfsIo = xfs_io::XFS_IO,
        /// Made-up values.
        Simulated = EngineDescriptor {
            name: "simulated",
            runs: Runs::Anything,
            reaches: Reaches::Nothing,
            limited_by: LimitedBy::Engine,
            ..OWN
        },
    }
}

impl EngineKind {
    /// The name as written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// The engine of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<EngineKind> {
        EngineKind::ALL.iter().copied().find(|engine| engine.name() == name)
    }

    /// The names of all, in the order of the table.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        EngineKind::ALL.iter().map(|engine| engine.name()).collect()
    }

    /// The engines that have settings of their own.
    pub fn with_settings() -> impl Iterator<Item = EngineKind> {
        EngineKind::ALL.iter().copied().filter(|engine| engine.descriptor().settings.is_some())
    }

    /// Its own settings; none for most.
    #[must_use]
    pub fn settings(self) -> &'static [Setting] {
        self.descriptor().settings.as_ref().map_or(&[], |settings| settings.known)
    }

    /// The names of its own settings.
    #[must_use]
    pub fn setting_names(self) -> Vec<&'static str> {
        self.settings().iter().map(|setting| setting.name).collect()
    }
}

/// The names of the engines that have settings of their own, in words: `dbench, fs_mark and xfs_io`.
#[must_use]
pub fn tool_names() -> String {
    let names: Vec<&str> = EngineKind::with_settings().map(EngineKind::name).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_means_itself_also_where_it_is_stored() {
        for engine in EngineKind::ALL {
            assert_eq!(EngineKind::named(engine.name()), Some(*engine));
            assert_eq!(serde_json::to_value(engine).unwrap(), engine.name());
        }
        assert_eq!(EngineKind::named("natve"), None);
    }

    #[test]
    fn a_row_is_complete_and_agrees_with_itself() {
        for engine in EngineKind::ALL {
            let row = engine.descriptor();
            let named = format!("{engine:?}");
            assert!(!(row.in_process && row.program.is_some()), "{named} is a program or it is not");
            assert_eq!(row.settings.is_some(), row.runs == Runs::Settings, "{named}");
            assert_eq!(row.output.is_some(), row.runs == Runs::Settings, "{named} has a parser");
            if row.runs == Runs::Settings {
                let program = row.program.expect(&named);
                assert_eq!(program.name, row.name);
                assert!(!program.package.is_empty(), "{named}");
            }
        }
    }

    #[test]
    fn settings_have_one_name_each_and_are_looked_at() {
        for engine in EngineKind::with_settings() {
            let settings = engine.descriptor().settings.unwrap();
            let names: BTreeSet<&str> = engine.setting_names().into_iter().collect();
            assert_eq!(names.len(), settings.known.len(), "{}", engine.name());
            assert!(settings.file.is_none_or(|file| names.contains(file)), "{}", engine.name());
            for setting in settings.known {
                assert!(setting.value.read("").is_err() || setting.value.is_file(), "{}", setting.name);
            }
        }
    }

    #[test]
    fn nothing_is_a_tools_output_by_chance() {
        for output in EngineKind::ALL.iter().filter_map(|engine| engine.descriptor().output) {
            assert!(!(output.is_line)("") && !(output.is_line)("{\"fio version\": 1}"), "{}", output.format);
            assert!((output.read)("nothing of it").is_err(), "{}", output.format);
        }
        assert_eq!(tool_names(), "dbench, fs_mark and xfs_io");
    }
}
