//! The table of engines: one line an engine, and one descriptor that says what other layers ask about it.
//!
//! Enters: a name. Leaves: an [`EngineKind`] and its [`EngineDescriptor`]. How an engine does its work is `engine`'s, whose
//! `of` has a match without a wildcard: the compiler asks there for an engine that is new here.

use serde::{Deserialize, Serialize};

use super::engine_descriptor::{EngineDescriptor, LimitedBy, OWN, Reaches, Runs};
use super::program::Program;
use super::setting::Setting;
use super::table::table;
use super::{dbench, fs_mark, xfs_io};

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
