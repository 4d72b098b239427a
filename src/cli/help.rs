//! `assay help`: the options of a subcommand, or a page of the documentation, which is part of the program.
//!
//! Enters: a word. Leaves: text on standard output, folded at the terminal's width. The pages are those of docs/.

mod page;

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use super::recipes::hanging;
use super::{CommandLine, Failure};
use crate::sys::terminal::{self, Form};
use crate::workload::nearest;

/// A page: its name, what it is about, its text.
struct Topic {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! topics {
    ($($name:literal $file:literal $about:literal)*) => {
        [$(Topic { name: $name, about: $about, text: include_str!(concat!("../../docs/", $file)) }),*]
    };
}

/// All pages, those that are needed first in front.
static TOPICS: [Topic; 23] = topics! {
    "jobs" "jobs.md" "job files, experiment files, what can be varied"
    "targets" "targets.md" "devices and filesystems made for a run; schedulers and other settings"
    "tools" "tools.md" "dbench, fs_mark and xfs_io with their settings"
    "kernels" "kernels.md" "kernels booted in a virtual machine"
    "patches" "patches.md" "patches and revisions as levels: kernels built from source"
    "observers" "observers.md" "waits for locks, sleep, processor time, the block layer, the filesystem and tracepoints, watched while a trial runs"
    "why" "why.md" "what a report says of why two arms differ, and how far it can be trusted"
    "bisection" "bisection.md" "which step, version or commit made something worse"
    "extents" "extents.md" "how the files of a trial lie on the device"
    "traces" "traces.md" "block traces: latencies by stage, counts, the audit of flushes"
    "imports" "IMPORT.md" "results of other programs, for `assay compare`"
    "nightly" "nightly.md" "a gate every night, and the runs of one name in time: `assay history`"
    "doctor" "doctor.md" "what makes a machine unfit to measure on"
    "probes" "probe.md" "what this machine can do at most, and how reports compare with it"
    "safety" "SAFETY.md" "what assay writes to, what it never touches, and how it puts back"
    "methodology" "METHODOLOGY.md" "how assay judges, and what its words mean"
    "format" "FORMAT.md" "what is stored and exported"
    "performance" "performance.md" "what the native engine takes beside fio"
    "bdev-mix" "recipes/bdev-mix.md" "the recipe of that name"
    "dax-write" "recipes/dax-write.md" "the recipe of that name"
    "dio-append" "recipes/dio-append.md" "the recipe of that name"
    "dio-scaling" "recipes/dio-scaling.md" "the recipe of that name"
    "journal-flush" "recipes/journal-flush.md" "the recipe of that name"
};

/// Options of `assay help`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A subcommand, or a topic; without it all topics are listed
    #[arg(value_name = "SUBCOMMAND|TOPIC")]
    topic: Option<String>,
}

/// Prints the help that is asked for.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such subcommand and no such topic.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = CommandLine::command();
    let Some(wanted) = &args.topic else {
        styled(&command.render_help())?;
        let mut out = terminal::out();
        writeln!(out, "\nTopics, for `assay help TOPIC`:")?;
        topic_lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        return Ok(ExitCode::SUCCESS);
    };
    command.build();
    if let Some(part) = command.find_subcommand_mut(wanted) {
        styled(&part.render_long_help())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(topic) = TOPICS.iter().find(|topic| topic.name.eq_ignore_ascii_case(wanted)) else {
        let topics = TOPICS.iter().map(|topic| topic.name);
        let known = topics.chain(command.get_subcommands().map(clap::Command::get_name));
        let near = nearest(wanted, known, 1).first().map(|near| format!("; did you mean {near}?"));
        let failure =
            Failure::request(format!("no subcommand and no topic '{wanted}'{}", near.unwrap_or_default()));
        return Err(failure.hint("`assay help` lists both").into());
    };
    let is_topic = |name: &str| TOPICS.iter().any(|topic| topic.name == name);
    terminal::out().write_all(page::plain(topic.text, terminal::columns(), is_topic).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// All topics with what they are about, in lines of 80 columns.
fn topic_lines() -> Vec<String> {
    let wide = TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or(0);
    TOPICS.iter().flat_map(|topic| hanging(&format!("  {:<wide$}  ", topic.name), topic.about)).collect()
}

fn styled(text: &clap::builder::StyledStr) -> std::io::Result<()> {
    let text = if terminal::colours() { text.ansi().to_string() } else { text.to_string() };
    terminal::out_as(Form::Styled).write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_topics_fits_eighty_columns() {
        let lines = topic_lines();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
        let listed = lines.join(" ");
        assert!(TOPICS.iter().all(|topic| listed.contains(topic.name)), "{lines:?}");
    }

    #[test]
    fn every_topic_folds_at_eighty_columns() {
        for topic in &TOPICS {
            let text = page::plain(topic.text, 80, |name| TOPICS.iter().any(|topic| topic.name == name));
            assert!(text.lines().count() > 5, "{}", topic.name);
            assert!(!text.contains("](") && !text.contains("**"), "{}: {text}", topic.name);
            let folded = |line: &&str| !line.starts_with("    ") && line.chars().count() > 80;
            let long: Vec<&str> = text.lines().filter(folded).filter(|line| line.contains(' ')).collect();
            assert!(
                long.iter().all(|line| line.split(' ').any(|word| word.len() > 40)),
                "{}: {long:?}",
                topic.name
            );
        }
    }
}
