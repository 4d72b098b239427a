//! `assay bisect`: which of many steps made something worse, when every run of it has noise.
//!
//! Enters: the steps and a command, or a stored search. Leaves: the step with its probability on standard output.

mod asked;
mod revisions;
mod steps;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::Failure;
use super::database::Database;
use super::run::{self, Search};
use crate::analyse::Bisected;
use crate::experiment::CommandLine;
use crate::record::{Bisects, Run};
use crate::report::{bisected_json, bisected_text, step_name, wrapped};
use crate::sys::terminal::{self, Form};
use crate::units::counted;
use asked::Asked;
use steps::{Commits, Steps, names_the_step};

/// Rounds after which a search gives up.
const MAX_ROUNDS: u32 = 500;
const MOST_ROUNDS: i64 = 10_000;
/// The ends alone may take this part of them.
const ENDS_PART: u32 = 2;

const EXAMPLES: &str = "Examples:
  assay bisect --steps '1.0 1.1 1.2 1.3 2.0' -- ./prog-{step} --bench
  assay bisect --steps 'a b c d' --build 'make -C {step}' --metric 'tps=tps: ([0-9.]+):/s:higher' -- {step}/prog
  assay bisect --source . --good v1.0 --bad HEAD --build make -- {tree}/prog input.dat
  assay bisect --resume 7                       go on with a search that was stopped or killed
  assay bisect --show 7 --format json           every question and every value of a stored search

Exit codes: 0 whatever the answer (\"outcome\" in JSON says which), 1 an end or a tool failed, 2 the request is wrong, 130 interrupted.
`assay help bisection` says how it searches and what its probability means.";

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Written {
    /// For people.
    Text,
    /// For programs, with every round.
    Json,
}

/// Options of `assay bisect`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The steps in their order, with blanks between: the good one first, the bad one last
    #[arg(long, value_name = "'STEP STEP …'", conflicts_with_all = ["source", "good", "bad"])]
    steps: Option<String>,
    /// A git repository: the steps are the commits from --good to --bad on the first-parent line; it is only read
    #[arg(long, value_name = "GIT", requires_all = ["good", "bad"])]
    source: Option<PathBuf>,
    /// The revision that is good
    #[arg(long, value_name = "REV", requires = "source")]
    good: Option<String>,
    /// The revision that is bad
    #[arg(long, value_name = "REV", requires = "source")]
    bad: Option<String>,
    /// Shell command that makes a step ready, once before its first trial; with --source it runs in the commit's files. A step whose
    /// build fails is skipped
    #[arg(long, value_name = "SHELL")]
    build: Option<String>,
    /// The command of a trial, behind `--`; {step} in it is the step, {tree} the directory with the commit's files
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Read a metric from the output of the command: name=REGEX[:unit][:higher|lower]; the first one decides (default: the wall time)
    #[arg(long = "metric", value_name = "SPEC")]
    metrics: Vec<String>,
    /// The metric that decides
    #[arg(long, value_name = "METRIC")]
    primary: Option<String>,
    /// Shell command before each trial; $step is the step
    #[arg(long, value_name = "SHELL")]
    before: Option<String>,
    /// Shell command after each trial
    #[arg(long, value_name = "SHELL")]
    after: Option<String>,
    /// Where the directories of a session are made (default: here)
    #[arg(long, short = 'd', value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The smallest slowdown that matters (default 2%)
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    delta: Option<String>,
    /// Chance of a wrong answer (default 0.05)
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    alpha: Option<String>,
    /// Most rounds; up to half of them compare the ends alone
    #[arg(long, value_name = "N", default_value_t = MAX_ROUNDS, value_parser = clap::value_parser!(u32).range(8..=MOST_ROUNDS))]
    max_rounds: u32,
    /// Steps asked in one round, 1 or 2: two need fewer trials, one needs fewer builds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2))]
    ask: u32,
    /// End with the trial that passes this time, e.g. 2h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    time_budget: Option<String>,
    /// Stop a trial that takes longer, e.g. 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// Longest wait for an idle device before each trial; 0: none
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    settle: Option<String>,
    /// Wait up to this long for a quiet machine before the first trial, e.g. 10m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    wait_idle: Option<String>,
    /// Skip the lead-in of each round: a trial that is not judged, run first so that all steps follow another trial
    #[arg(long)]
    no_lead_in: bool,
    /// Count every round, also those in which others disturbed the machine
    #[arg(long)]
    keep_disturbed: bool,
    /// Seed of the order (default: from the clock; recorded)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only say what would be run, and about how many trials
    #[arg(long)]
    plan: bool,
    /// Go on with a search that was stopped or killed: its number, its name, or latest
    #[arg(long, value_name = "RUN", conflicts_with_all = ["steps", "source", "build", "command", "metrics", "primary", "before", "after",
        "directory", "delta", "alpha", "max_rounds", "ask", "time_budget", "timeout", "settle", "no_lead_in", "seed", "plan", "show"])]
    resume: Option<String>,
    /// Print the answer of a stored search; nothing is run
    #[arg(long, value_name = "RUN", conflicts_with_all = ["steps", "source", "build", "command", "plan"])]
    show: Option<String>,
    /// Go on with a search that somebody else may have written (prints first what it would do), and work in a directory that others can
    /// change
    #[arg(long)]
    trust: bool,
    /// Format of the answer on standard output
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Written::Text)]
    format: Written,
    /// No progress, only failures and the answer
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    database: Database,
}

/// Searches, goes on with a search, or shows one.
///
/// # Errors
/// A [`Failure`]: exit code 2 for a wrong request, 1 when an end or a tool failed, 130 when interrupted.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.show {
        let run = args.database.load_for_report(name)?;
        return show(args, &run);
    }
    run::arguments_can_be_kept()?;
    let options = args.as_run();
    if let Some(name) = &args.resume {
        let mut store = args.database.open_existing()?;
        let id = args.database.number(&store, name)?;
        let mut search = Search::again(&options, &store, id)?;
        let arms = of_stored(&mut search)?;
        let run = search.execute(&options, &mut store, Box::new(arms))?;
        return show(args, &run);
    }
    let asked = Asked::of(args)?;
    let bisects = Bisects {
        source: asked.git_dir.clone(),
        build: args.build.clone(),
        titles: asked.titles,
        per_round: args.ask,
        ends_rounds: args.max_rounds / ENDS_PART,
    };
    let mut search = Search::new(&options, &asked.names, args.max_rounds, bisects)?;
    if args.plan {
        return plan(args, search.run());
    }
    // What is built is not there yet.
    if args.build.is_none()
        && asked.git_dir.is_none()
        && !args.command.first().is_some_and(|word| names_the_step(word))
    {
        search.tools_are_here()?;
    }
    let arms = of_stored(&mut search)?;
    let mut store = args.database.open()?;
    let run = search.execute(&options, &mut store, Box::new(arms))?;
    show(args, &run)
}

impl Args {
    /// The same as options of a run.
    pub(super) fn as_run(&self) -> run::Args {
        let asked = CommandLine {
            // The levels are put in its place.
            vary: vec![format!("{}=good,bad", run::FACTOR)],
            directory: self.directory.clone(),
            delta: self.delta.clone(),
            alpha: self.alpha.clone(),
            no_lead_in: self.no_lead_in,
            time_budget: self.time_budget.clone(),
            timeout: self.timeout.clone(),
            settle: self.settle.clone(),
            primary: self.primary.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            metrics: self.metrics.clone(),
            ..CommandLine::default()
        };
        run::Args {
            seed: self.seed,
            trust: self.trust,
            wait_idle: self.wait_idle.clone(),
            keep_disturbed: self.keep_disturbed,
            quiet: self.quiet,
            ..run::Args::of(asked, self.command.clone(), self.database.clone())
        }
    }
}

/// The arms of a search, new or stored.
fn of_stored(search: &mut Search) -> Result<Steps, Failure> {
    let Some(bisects) = search.run().design.bisects.clone() else {
        return Err(Failure::request("the run is no search"));
    };
    let commits = match &bisects.source {
        Some(source) => Some(Commits { git_dir: revisions::git_dir(source)?, place: search.place() }),
        None => None,
    };
    Ok(Steps { names: search.run().arms().to_vec(), build: bisects.build, commits })
}

/// Prints what a search has found.
fn show(args: &Args, run: &Run) -> anyhow::Result<ExitCode> {
    let Some(found) = Bisected::of(run) else {
        let name = run.id.map_or_else(|| "it".to_owned(), |id| format!("run {id}"));
        return Err(Failure::request(format!("{name} is no search"))
            .hint("`assay list` says what there is; `assay report RUN` prints a verdict")
            .into());
    };
    if found.not_positive > 0 && found.pairs == 0 {
        let metric = found.metric.as_ref().map_or("the metric", |metric| metric.name.as_str());
        return Err(Failure::tool(format!("{metric} is not above 0, and ratios of it mean nothing"))
            .hint("choose another metric with --primary or --metric")
            .into());
    }
    match args.format {
        Written::Json => {
            let mut out = terminal::out_as(Form::Json);
            writeln!(out, "{}", serde_json::to_string_pretty(&bisected_json(run, &found))?)?;
        }
        Written::Text => {
            terminal::out().write_all(bisected_text(run, &found).as_bytes())?;
            if let Some(id) = run.id.filter(|_| !args.quiet && args.show.is_none()) {
                let db = database_flag(&args.database.db);
                let line = format!(
                    "\nrun {id} is stored; every question and value: assay bisect --show {id}{db} --format json"
                );
                writeln!(terminal::err(), "{}", wrapped(&line, "  "))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn database_flag(db: &Path) -> String {
    if db == Path::new("assay.db") { String::new() } else { format!(" --db {}", db.display()) }
}

/// Says what would be run.
fn plan(args: &Args, run: &Run) -> anyhow::Result<ExitCode> {
    let steps = run.arms().len() - 1;
    let led = u64::from(run.design.lead_in);
    let a_round = u64::from(args.ask) + 2 + led;
    let questions = (steps as f64).log(f64::from(args.ask) + 1.0).ceil() as u64 + 1;
    let least = 4 * (2 + led) + questions * a_round;
    let mut out = terminal::out();
    writeln!(out, "{}: nothing has been run, written or erased\n", run.name)?;
    writeln!(
        out,
        "{} from {} to {}",
        counted(steps as u64, "step"),
        step_name(run, 0),
        step_name(run, steps)
    )?;
    if let Some(build) = &args.build {
        writeln!(out, "  built before the first trial: {build}")?;
    }
    writeln!(out, "  each trial: {}", args.command.join(" "))?;
    writeln!(out, "\ntrials, those that lead into rounds with them")?;
    writeln!(out, "  about {least} without noise")?;
    writeln!(out, "  about 300 where a trial scatters by as much as the change makes (64 steps)")?;
    writeln!(out, "  at most {}", u64::from(args.max_rounds) * a_round)?;
    Ok(ExitCode::SUCCESS)
}
