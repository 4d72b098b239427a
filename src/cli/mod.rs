//! One file a subcommand: wires parts, decides nothing.
//!
//! Enters: the command line. Leaves: an exit code. Data goes to standard output, everything else to standard error.

pub mod bisect;
pub mod cleanup;
pub mod compare;
pub mod database;
pub mod delete;
pub mod doctor;
pub mod explain;
pub mod export;
mod fail_if;
mod failure;
mod failures;
mod flames;
pub mod generate;
pub mod help;
pub mod history;
pub mod import;
mod judge;
mod kept_files;
pub mod list;
mod local_time;
mod metric_patterns;
pub mod metrics;
mod named_run;
mod other_user;
pub mod output;
mod overview;
mod own_file;
mod pictures;
pub mod probe;
pub mod progress;
pub mod recipes;
pub mod report;
pub mod run;
pub mod show;
mod simulate;
pub mod trace;
mod usage;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use failure::Failure;
use failure::report_error;

/// The command line.
#[derive(Parser)]
#[command(
    name = "assay",
    version,
    disable_help_subcommand = true,
    about = "An A/B laboratory for the Linux storage path: is this change faster or slower, by how much, is it real, and why",
    after_help = "Examples:\n  assay run randwrite.fio --vary direct=0,1\n  assay run bdev-mix --quick\n  assay compare before/ after/\n  \
                  assay report 7 --format html -o report.html\n\n\
                  Exit codes: 0 ran, 1 a trial or tool failed, 2 the request is wrong, 3 --fail-if holds, 130 interrupted."
)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an experiment: a fio job file with --vary, an experiment file, or a command behind `--`
    Run(Box<run::Args>),
    /// List the recipes: experiments that are part of assay, for `assay run NAME`; `recipes show NAME` prints one
    Recipes(recipes::Args),
    /// Compare results that already exist: fio JSON, benchstat text, hyperfine JSON, CSV, plain numbers, stored runs
    Compare(compare::Args),
    /// Report a stored run or an exported file as text, lkml, mmtests, markdown, html, json, csv or junit
    Report(report::Args),
    /// Find the step that made something worse: versions, commits of a repository; each trial may have noise
    Bisect(Box<bisect::Args>),
    /// Say why: run the cells of a stored run some more rounds, unwatched and watched, and report what was seen
    #[command(alias = "why")]
    Explain(explain::Args),
    /// The runs of one name in time: where their level changed, and whether the newest is as those before it
    History(history::Args),
    /// List the runs in the store
    List(list::Args),
    /// Show one run: design, trials, failures, facts of the host
    Show(show::Args),
    /// List the metrics of a run, or those that a job will report
    Metrics(metrics::Args),
    /// Take runs out of the store
    Delete(delete::Args),
    /// Write a run with every trial as JSON or CSV
    Export(export::Args),
    /// Put runs that another machine exported into the store
    Import(import::Args),
    /// Say what a block trace says: latencies by stage, counts, and whether each fsync was behind its flushes
    Trace(Box<trace::Args>),
    /// Say what makes this machine unfit to measure on, and the command that mends it
    Doctor(doctor::Args),
    /// Measure what this machine can do: copies, locks, calls into the kernel, the device under a directory; reports compare with it
    Probe(probe::Args),
    /// Remove what a killed run has left behind
    Cleanup(cleanup::Args),
    /// Reprint the simulation table of `assay help methodology` from the shipped code
    #[command(hide = true)]
    Simulate(simulate::Options),
    /// Write the man page or shell completions
    Generate(generate::Args),
    /// Explain a subcommand or a topic: jobs, targets, methodology …
    Help(help::Args),
    /// Execute one trial: a request on standard input, a reply on standard output
    #[command(hide = true)]
    Agent,
}

/// Parses the command line, runs the subcommand and returns assay's exit code.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(code) = crate::launch::guest_part() {
        return ExitCode::from(code);
    }
    // Handle SIGXFSZ so that a write past the limit of a file's size returns EFBIG instead of ending the program. A failure to
    // watch leaves things as they were.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => {
            return usage::report(&error);
        }
    };
    let code = dispatch(command_line.command).unwrap_or_else(|error| report_error(&error));
    crate::sys::cache::remove_private_cache();
    code
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Recipes(args) => recipes::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Bisect(args) => bisect::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::History(args) => history::run(&args),
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Delete(args) => delete::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Cleanup(args) => cleanup::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Help(args) => help::run(&args),
        Command::Agent => {
            crate::launch::serve().map(|()| ExitCode::SUCCESS).map_err(|error| Failure::tool(error).into())
        }
    }
}
