//! `assay bisect`: which of many steps made something worse, when every run of it has noise.
//!
//! Enters: the steps and a command, or a stored search. Leaves: the step with its probability on standard output.

pub(in crate::cli) mod args;
mod asked;
mod revisions;
mod steps;

use std::io::Write;
use std::process::ExitCode;

use super::Failure;
use super::run::{self, Arms, BuiltEnds, Search};
use crate::analyse::Bisected;
use crate::record::{Bisects, Run};
use crate::report::{bisected_json, bisected_text, left_out_line, step_name, wrapped};
use crate::sys::terminal::{self, Form};
use crate::units::counted;
pub use args::Args;
use args::Written;
use asked::Asked;
use steps::{Commits, Steps, names_the_step};

/// The ends alone may take this part of them.
const ENDS_PART: u32 = 2;

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
        let arms = of_stored(&mut search, args.quiet)?;
        let run = search.execute(&options, &mut store, arms)?;
        return show(args, &run);
    }
    let mut asked = Asked::of(args)?;
    if !args.plan {
        args.database.can_be_opened()?;
    }
    let mut ends = None;
    if args.is_of_kernels() {
        let of_ends = of_ends(args, &options, &asked)?;
        if args.plan && of_ends.builds_whole_kernels() {
            return plan(args, &of_ends, asked.names.len() - 1);
        }
        (asked, ends) = that_are_compiled(args, asked, &of_ends)?;
        asked.can_be_searched(args)?;
    }
    let bisects = bisects(args, &asked);
    let mut search = Search::new(&options, &asked.names, args.max_rounds, bisects)?;
    search.is_repeated_by(|words| fixed(words, args, &asked));
    if args.plan {
        return plan(args, &search, asked.names.len() - 1);
    }
    // What is built is not there yet.
    if args.build.is_none()
        && asked.git_dir.is_none()
        && !args.command.first().is_some_and(|word| names_the_step(word))
    {
        search.tools_are_here()?;
    }
    let arms = of_stored(&mut search, args.quiet)?;
    let mut store = args.database.open()?;
    let run = search.execute(&options, &mut store, arms)?;
    // Until they were booted, nobody removed them from the cache.
    drop(ends);
    show(args, &run)
}

fn bisects(args: &Args, asked: &Asked) -> Bisects {
    Bisects {
        source: asked.git_dir.clone(),
        build: args.build.clone(),
        titles: asked.titles(),
        merges: asked.merges(),
        paths: args.path.clone(),
        left_out: asked.left_out,
        per_round: args.ask,
        ends_rounds: args.max_rounds / ENDS_PART,
        kernels: args.is_of_kernels(),
        for_better: asked.for_better,
    }
}

/// The search as if nothing lay between the ends.
fn of_ends(args: &Args, options: &run::Args, asked: &Asked) -> Result<Search, Failure> {
    let ends: Vec<String> = asked.names.first().into_iter().chain(asked.names.last()).cloned().collect();
    let bisects = Bisects { titles: Vec::new(), merges: Vec::new(), ..bisects(args, asked) };
    Search::new(options, &ends, args.max_rounds, bisects)
}

/// The commits that may make another kernel, once those of the ends are built: of a kernel's commits most change what a configuration
/// leaves out. Whether modules alone are built depends on all commits, and then all are searched.
fn that_are_compiled(
    args: &Args,
    asked: Asked,
    of_ends: &Search,
) -> Result<(Asked, Option<BuiltEnds>), Failure> {
    let Some(source) = args.source.as_ref().filter(|_| of_ends.builds_whole_kernels()) else {
        return Ok((asked, None));
    };
    let ends = of_ends.build_ends(args.quiet)?;
    match ends.made_of() {
        Some(made_of) => Ok((asked.that_are_compiled(source, made_of)?, Some(ends))),
        None => Ok((asked, Some(ends))),
    }
}

/// A command line whose revisions are commits and whose repository has its whole path: it means the same tomorrow.
fn fixed(words: &mut [String], args: &Args, asked: &Asked) {
    let (Some(source), Some(first), Some(last)) = (&args.source, asked.names.first(), asked.names.last())
    else {
        return;
    };
    let (good, bad) = if asked.for_better { (last, first) } else { (first, last) };
    let source = source.canonicalize().unwrap_or_else(|_| source.clone());
    // What follows is the command's own.
    let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
    for (option, value) in [("--source", &*source.to_string_lossy()), ("--good", good), ("--bad", bad)] {
        let Some(at) = words[..own].iter().position(|word| word.split('=').next() == Some(option)) else {
            continue;
        };
        if words[at].contains('=') {
            words[at] = format!("{option}={value}");
        } else if at + 1 < own {
            value.clone_into(&mut words[at + 1]);
        }
    }
}

/// The arms of a search, new or stored.
fn of_stored(search: &mut Search, quiet: bool) -> Result<Box<dyn Arms>, Failure> {
    let Some(bisects) = search.run().design.bisects.clone() else {
        return Err(Failure::request("the run is no search"));
    };
    if bisects.kernels {
        return Ok(search.kernel_steps(quiet));
    }
    let commits = match &bisects.source {
        Some(source) => Some(Commits { git_dir: revisions::git_dir(source)?, place: search.place() }),
        None => None,
    };
    Ok(Box::new(Steps { names: search.run().arms().to_vec(), build: bisects.build, commits }))
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
                let db = run::database_flag(&args.database.db);
                let line = format!(
                    "\nrun {id} is stored; every question and value: assay bisect --show {id}{db} --format json"
                );
                writeln!(terminal::err(), "{}", wrapped(&line, "  "))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what would be run.
fn plan(args: &Args, search: &Search, steps: usize) -> anyhow::Result<ExitCode> {
    let run = search.run();
    let led = u64::from(run.design.lead_in);
    let a_round = u64::from(args.ask) + 2 + led;
    let questions = (steps as f64).log(f64::from(args.ask) + 1.0).ceil() as u64 + 1;
    let least = 4 * (2 + led) + questions * a_round;
    let mut out = terminal::out();
    writeln!(out, "{}: nothing has been run, written or erased\n", run.name)?;
    writeln!(
        out,
        "{} from {} to {}: which of them made it {}",
        counted(steps as u64, "step"),
        step_name(run, 0),
        step_name(run, run.arms().len() - 1),
        if run.design.bisects.as_ref().is_some_and(|bisects| bisects.for_better) {
            "better"
        } else {
            "worse"
        }
    )?;
    if let Some(left_out) = left_out_line(run) {
        writeln!(out, "{}", wrapped(&left_out, "  "))?;
    }
    if args.is_of_kernels() && search.builds_whole_kernels() {
        let line = "fewer once the ends are built: commits that change nothing of what these are made of are left out";
        writeln!(out, "{}", wrapped(line, "  "))?;
    }
    if let Some(build) = &args.build {
        writeln!(out, "  built before the first trial: {build}")?;
    }
    if args.is_of_kernels() {
        writeln!(out, "  each trial: {}, in a guest with the step's kernel", run.name)?;
        writeln!(out, "\nbuilt when a step is first asked for; the ends:")?;
        search.planned_kernels()?.iter().try_for_each(|line| writeln!(out, "{}", wrapped(line, "  ")))?;
    } else {
        writeln!(out, "  each trial: {}", args.command.join(" "))?;
    }
    writeln!(out, "\ntrials, those that lead into rounds with them")?;
    writeln!(out, "  about {least} without noise")?;
    writeln!(out, "  about 300 where a trial scatters by as much as the change makes (64 steps)")?;
    writeln!(out, "  at most {}", u64::from(args.max_rounds) * a_round)?;
    Ok(ExitCode::SUCCESS)
}
