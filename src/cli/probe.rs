//! `assay probe`: what this machine can do at most, measured and stored, so that reports can compare with it.
//!
//! Enters: the directory whose device is measured, and what of all that is wanted. Leaves: a run of the store that compares nothing, and
//! its figures on standard output.

mod record;
mod screen;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Failure;
use super::database::{Database, wrong};
use crate::host;
use crate::probe::{Group, Outcome, Progress, Settings, measure};
use crate::record::Run;
use crate::run::now_unix_ns;
use crate::store::Store;
use crate::sys::terminal::{self, Form, err};
use crate::units::pretty_duration;

pub(super) use screen::doctor_lines;

/// Probes of a store that are looked at, the latest first.
const MOST_STORED: usize = 20;

/// How many rounds, what they should take together, and when no further one begins.
struct Size {
    rounds: u32,
    time: Duration,
    longest: Duration,
}

const WHOLE: Size = Size { rounds: 9, time: Duration::from_secs(45), longest: Duration::from_secs(55) };
const QUICK: Size = Size { rounds: 3, time: Duration::from_secs(2), longest: Duration::from_secs(10) };

/// How the figures are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people, 80 columns.
    Text,
    /// Everything as one JSON object.
    Json,
}

/// A group by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Only {
    /// Bytes copied in memory
    Copies,
    /// Grabs of locks
    Locks,
    /// A system call, a context switch, a page fault, a wake-up
    Calls,
    /// The device and filesystem under the directory
    Device,
}

impl Only {
    fn group(self) -> Group {
        match self {
            Only::Copies => Group::Copies,
            Only::Locks => Group::Locks,
            Only::Calls => Group::Calls,
            Only::Device => Group::Device,
        }
    }
}

/// Measure what this machine can do at most, and store it.
///
/// It takes less than a minute, needs no root, and writes to a file without a name in the directory and to the store.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  assay probe /mnt/disk                          everything; the device is the one under /mnt/disk
  assay probe --only copies,locks                what needs no device
  assay probe --quick --format json

`assay help probes` says what each figure is.")]
pub struct Args {
    /// Directory on the device that is measured
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Only these
    #[arg(long, value_enum, value_name = "GROUP,…", value_delimiter = ',')]
    only: Vec<Only>,
    /// Three short rounds: a few seconds, and figures that are less exact
    #[arg(long)]
    quick: bool,
    /// Every figure, not only those that speak for the others
    #[arg(long, short)]
    verbose: bool,
    /// How to print the figures
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    database: Database,
}

/// Measures, stores and prints.
///
/// # Errors
/// A [`Failure`]: exit code 2 when no file can be made in the directory or the store cannot be used; nothing was measured then.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let directory = directory(&args.directory)?;
    let store = args.database.open()?;
    let groups: Vec<Group> = Group::ALL
        .into_iter()
        .filter(|group| args.only.is_empty() || args.only.iter().any(|only| only.group() == *group))
        .collect();
    let mut facts = host::facts();
    facts.extend(host::path_facts(&directory));
    let Size { rounds, time, longest } = if args.quick { QUICK } else { WHOLE };
    let no_direct = no_direct(&directory, &groups);
    let settings = Settings { groups, directory, no_direct, rounds, time, longest };
    let began = now_unix_ns();
    let outcome = measured(&settings, time)?;
    let ended = now_unix_ns();
    let mut run = record::run(&settings, &outcome, facts, args.quick, (began, ended));
    shown_and_stored(args, store, &mut run)
}

/// Prints the figures and stores them; they are printed also where the store cannot take them.
fn shown_and_stored(args: &Args, mut store: Store, run: &mut Run) -> anyhow::Result<ExitCode> {
    // The number is a part of what is printed.
    let stored = store.insert_run(run);
    run.id = stored.as_ref().ok().copied();
    let printed = match args.format {
        Format::Text => write!(terminal::out(), "{}", screen::text(run, args.verbose)),
        Format::Json => writeln!(terminal::out_as(Form::Json), "{:#}", record::json(run)),
    };
    if let Err(error) = stored {
        let failure = wrong(&error).of("the probe was not stored");
        return Err(if failure.code() == 1 { failure } else { Failure::tool(failure) }.into());
    }
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// The directory without links; nothing of it is touched.
fn directory(path: &Path) -> Result<PathBuf, Failure> {
    let refused = |why: String| {
        Failure::request(format!("cannot measure in {}: {why}", path.display()))
            .hint("name a directory that exists and can be written: assay probe /mnt/disk")
    };
    let found = path.canonicalize().map_err(|error| refused(error.to_string()))?;
    if found.is_dir() { Ok(found) } else { Err(refused("it is not a directory".to_owned())) }
}

/// Why the device cannot be measured past the page cache; `None`: it can.
fn no_direct(directory: &Path, groups: &[Group]) -> Option<String> {
    if !groups.contains(&Group::Device) {
        return Some("it was not asked for".to_owned());
    }
    match host::direct_io_tried(directory) {
        found if found.starts_with("yes") => None,
        found if found == "no" => Some("files there take no direct I/O".to_owned()),
        found if found == host::FALLS_BACK => Some(format!("direct I/O {found} there")),
        found if found == host::WRITES_FALL_BACK => Some(format!("with direct I/O {found} there")),
        found => Some(format!("whether files there take direct I/O is {found}")),
    }
}

/// Measures, and says on standard error how far it is.
fn measured(settings: &Settings, time: Duration) -> Result<Outcome, Failure> {
    let is_seen = std::io::stderr().is_terminal();
    let bar = is_seen.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
    match &bar {
        Some(bar) => {
            let style = ProgressStyle::with_template("{bar:24} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        // Nobody to tell is no reason to measure nothing.
        None => drop(writeln!(err(), "measuring for at most {}", pretty_duration(time.as_secs_f64()))),
    }
    let outcome = measure(settings, &mut |progress: &Progress<'_>| {
        if let Some(bar) = &bar {
            bar.set_length(progress.of as u64);
            bar.set_position(progress.done as u64);
            bar.set_message(format!(
                "{} more  {}",
                pretty_duration(progress.left.as_secs_f64()),
                progress.next
            ));
        }
    });
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    outcome.map_err(|error| {
        Failure::request(error)
            .hint("name a directory that can be written and has 65 MiB of room, or --only copies,locks,calls")
    })
}

/// The probes of a store, the latest first; what cannot be read is left out.
pub(super) fn stored(store: &Store) -> Vec<Run> {
    let all = store.list().unwrap_or_default();
    let latest = all.into_iter().rev().filter(|summary| summary.is_probe()).take(MOST_STORED);
    latest.filter_map(|summary| store.load_run(summary.id).ok()).collect()
}
