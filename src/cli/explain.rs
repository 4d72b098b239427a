//! `assay explain`: why a stored run's verdict is what it is, from some more rounds of its cells that are watched.
//!
//! Enters: the options. Leaves: the report of the explained run with what watching showed. The trials of those rounds are a run of their
//! own: they enter no verdict.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use super::database::{Database, wrong};
use super::judge::{judge, watched_run_of};
use super::output::{Output, make_directory};
use super::report::{detail, write};
use super::run::{Conduct, ROUNDS, Watched, Wish, say_not_here, says_that_nothing_differs, watch};
use super::{Failure, flames};
use crate::analyse;
use crate::record::Run;
use crate::report::{self, Document, Format};
use crate::store::Store;
use crate::sys::terminal::err;
use crate::units::counted;

/// The fewest of which a difference can be told.
const FEWEST_ROUNDS: u32 = crate::stats::sequential::FEWEST_ROUNDS as u32;
/// More rounds than this are taken for a mistake.
const MOST_ROUNDS: i64 = 120;

/// Options of `assay explain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  assay explain 7                        5 rounds of each cell, unwatched and watched, then why
  assay explain 7 --only locks,waits     watch nothing else
  assay explain 7 --no-watch             only what is stored
  assay explain 7 --flame DIR            with flame graphs of both arms and of their difference
  assay help observers                   what each observer watches, and what it needs")]
pub struct Args {
    /// Number or name of a stored run, `latest`, or an exported file
    #[arg(value_name = "RUN|FILE")]
    run: String,
    /// Rounds of each cell, unwatched and watched: at least 4, fewer only with --flame or --keep-traces
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..=MOST_ROUNDS))]
    rounds: u32,
    /// Watch with these observers only, also where nothing differs [default: all that can watch here, if an arm differs]
    #[arg(long, value_name = "OBSERVER,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Keep the block events of each watched trial (at most 16 MiB) for `assay trace`; `assay show RUN --files DIR` writes them
    #[arg(long)]
    keep_traces: bool,
    /// Run nothing: say what is stored
    #[arg(long, conflicts_with_all = ["rounds", "only", "keep_traces", "trust"])]
    no_watch: bool,
    /// Write flame graphs of each compared pair into DIR, which is made where it is missing: of both arms and of their difference, as SVG
    /// and as folded stacks
    #[arg(long, value_name = "DIR")]
    flame: Option<PathBuf>,
    /// With --flame: replace files whoever wrote them
    #[arg(long, requires = "flame")]
    force: bool,
    /// Watch a run that somebody else may have written (what it would do is printed first), and work in a directory that others can change
    #[arg(long)]
    trust: bool,
    /// Everything: other metrics, all notes, the host's facts, the job
    #[arg(long, short)]
    verbose: bool,
    /// No progress, only failures and the report
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    database: Database,
}

/// Watches the run, and prints its report with what was seen.
///
/// # Errors
/// A [`Failure`]: exit code 2 when there is no such run or it is not this user's, 1 when a trial or tool failed, 130 when interrupted.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.database.load_for_report(&args.run)?;
    if let Some(explains) = &run.design.explains {
        return Err(Failure::request(format!("{} is a run that watches run {}", args.run, explains.run))
            .hint(format!("assay explain {} explains that run", explains.run))
            .into());
    }
    if run.is_probe() {
        return Err(Failure::request(format!("run {} is a probe: it compares nothing", args.run))
            .hint(format!("`assay show {} --values` prints it", args.run))
            .into());
    }
    if run.design.bisects.is_some() {
        return Err(Failure::request(format!("run {} is a search: it has no verdict to explain", args.run))
            .hint("run good and bad again, as the two steps beside the change: assay run --explain")
            .into());
    }
    let shows_more = args.flame.is_some() || args.keep_traces || args.no_watch;
    if args.rounds < FEWEST_ROUNDS && !shows_more {
        let rounds = counted(u64::from(args.rounds), "round");
        return Err(Failure::request(format!(
            "{rounds} can explain nothing: it takes {FEWEST_ROUNDS} to tell two arms apart"
        ))
        .hint(format!("--rounds {FEWEST_ROUNDS} or more; fewer are enough for --flame and --keep-traces"))
        .into());
    }
    if args.keep_traces && !args.only.is_empty() && !args.only.iter().any(|name| name == "blocks") {
        let only = format!("{},blocks", args.only.join(","));
        let quoted = shlex::try_quote(&only).map_or_else(|_| only.clone(), |quoted| quoted.into_owned());
        return Err(Failure::request("--keep-traces keeps what blocks sees, which --only leaves out")
            .hint(format!("--only {quoted}"))
            .into());
    }
    if let Some(directory) = &args.flame {
        make_directory(directory, "--flame")?;
    }
    let now = if args.no_watch { None } else { watched_by(args, &run)? };
    let failed = now.as_ref().filter(|by| by.failures().next().is_some()).and_then(|by| by.id);
    let store = args.database.db.exists().then(|| args.database.read().ok()).flatten();
    tell(args, &run, store.as_ref(), now)?;
    match failed {
        Some(by) => {
            Err(Failure::tool("some trials failed while they were watched; their rounds do not count")
                .hint(format!("assay show {by} has their commands and last output"))
                .into())
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The run that has watched; `None`: nothing was run, which was said.
fn watched_by(args: &Args, run: &Run) -> anyhow::Result<Option<Run>> {
    let not_here = |reason: &str| say_not_here(run, reason);
    if run.id.is_none() || !args.database.is_stored(&args.run) {
        not_here("an exported file is not a run of this machine")?;
        return Ok(None);
    }
    let judged = || judge(run, &analyse::Options::default(), None);
    if args.only.is_empty() && says_that_nothing_differs(run, &judged(), &args.database.db)? {
        return Ok(None);
    }
    let mut store = match args.database.open_existing() {
        Ok(store) => store,
        Err(failure) => {
            not_here(&failure.to_string())?;
            return Ok(None);
        }
    };
    let conduct = Conduct {
        quiet: args.quiet,
        busy_told: false,
        patience: std::time::Duration::ZERO,
        beyond_delta: analyse::Beyond::Nothing,
        db: &args.database.db,
    };
    let wish = Wish {
        rounds: args.rounds,
        only: &args.only,
        keep_traces: args.keep_traces,
        trust: args.trust,
        ours: false,
        destroy: &[],
        time_left: None,
    };
    match watch(&conduct, &mut store, run, &wish, None)? {
        Watched::By(id) => {
            let by = store.load_for_report(id).map_err(|error| wrong(&error))?;
            let has_traces = by.metrics.iter().any(|metric| metric.name == "blocks.events");
            if args.keep_traces && !args.quiet && has_traces {
                let db = conduct.database_flag();
                let said =
                    format!("traces are kept: assay show {id}{db} --files DIR writes them for assay trace");
                writeln!(err(), "{}", report::wrapped(&said, "  "))?;
            }
            Ok(Some(by))
        }
        Watched::NotHere(reason) => {
            not_here(&reason)?;
            Ok(None)
        }
    }
}

/// Prints the report of the explained run, with what the run that has watched it `now` has shown, or one of the store, and writes its flame
/// graphs where they are asked for.
fn tell(args: &Args, run: &Run, store: Option<&Store>, now: Option<Run>) -> anyhow::Result<()> {
    let analysis = judge(run, &analyse::Options { alone: true, ..analyse::Options::default() }, store);
    let watched = now.or_else(|| watched_run_of(store?, run));
    let options =
        report::Options { detail: detail(args.verbose, Format::Text), ..report::Options::default() };
    let document = Document::explained(run, &analysis, watched.as_ref(), &options);
    write(&document, Format::Text, &Output::default(), false)?;
    match &args.flame {
        Some(directory) => Ok(flames::write(&document, directory, args.force)?),
        None => Ok(()),
    }
}
