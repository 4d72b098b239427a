//! How the run can be repeated: its command line and its job.
//!
//! Enters: a run. Leaves: a command that a shell reads, and the job's text as it was given.

use super::Material;
use crate::record::{Run, Source};
use crate::report::section::{Block, GivesWay, Heading, Section};

/// Where a report is to fit one screen.
const WAY: GivesWay = GivesWay {
    turn: Some(1),
    called: "the command that repeats it",
    most: [12, 3],
    items: ["line", "lines"],
};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let run = material.run;
    // Of imported results assay chose nothing.
    let seed = (run.source == Source::Measured).then(|| format!("seed {}", run.seed));
    let mut blocks = Vec::new();
    let command = command(run);
    if !command.is_empty() {
        blocks.push(Block::Command(command));
    }
    if let Some(job) = &run.job_text {
        let (lead, text) = ("with this job:".to_owned(), job.clone());
        blocks.push(Block::Listing { lead, text, called: "the job" });
    }
    Section::new("repeat", Heading::Shown("to repeat it".to_owned(), seed), blocks).gives_way(WAY)
}

/// The command line, quoted for a shell; empty when unknown.
fn command(run: &Run) -> String {
    let mut words: Vec<&str> = run.command_line.iter().map(String::as_str).collect();
    if let Some(program) = words.first_mut()
        && program.rsplit('/').next() == Some("assay")
    {
        // Where the program lies on this machine says nothing to others.
        *program = "assay";
    }
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}
