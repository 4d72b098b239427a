//! What other layers ask about an engine.
//!
//! Enters: nothing. Leaves: the [`EngineDescriptor`] of a row, and two to make others from. Which engines there are is the
//! table's (`engine_kind.rs`).

use super::program::Program;
use super::setting::Setting;
use super::tool_output::{ToolOutputError, ToolTrial};

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
    /// Bytes that its files take at once by these values, where they say so.
    pub takes: fn(&[(String, String)]) -> Option<u64>,
}

/// A section (empty: the whole trial) and the name of a metric.
pub type SectionMetric = (&'static str, String);

/// What a tool prints, for its engine and for imports alike.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// What reports call the format.
    pub format: &'static str,
    /// Whether only this tool prints such a line.
    pub is_line: fn(&str) -> bool,
    /// Reads every run in a text.
    pub read: fn(&str) -> Result<Vec<ToolTrial>, ToolOutputError>,
    /// What it reports with these settings, by sections; a `*` in a name stands for a word that only the run tells.
    pub metrics: fn(&[(String, String)]) -> Vec<SectionMetric>,
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
pub(super) const OWN: EngineDescriptor = EngineDescriptor {
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
