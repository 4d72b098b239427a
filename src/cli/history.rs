//! `assay history`: the runs of one name in time: where their level changed, and whether the newest is as those before it.

use std::io::Write;
use std::process::ExitCode;

use super::Failure;
use super::compare::check_primary;
use super::database::{Database, wrong};
use super::fail_if::{FailIf, HOLDS};
use super::local_time;
use crate::analyse::{self, Verdict};
use crate::history::{FEWEST_BEFORE, History, Series};
use crate::import::{self, Input};
use crate::record::RunState;
use crate::report::{HistoryOf, history_json, history_text};
use crate::store::RunSummary;
use crate::sys::terminal::{self, Form};
use crate::units::{counted, parse_ratio};

const EXAMPLES: &str = "A run is one value, the median of its trials. Each night:
  assay run job.fio --aa --name nightly && assay history nightly --fail-if slower
After a change that is accepted, --since RUN begins a new history.";

/// Options of `assay history`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The name of the runs (`assay run --name`); without it, the names that several runs have
    name: Option<String>,
    /// The metric that decides [default: what decided the runs]
    #[arg(long, value_name = "[SECTION:]METRIC")]
    primary: Option<String>,
    /// Only runs from this one on
    #[arg(long, value_name = "RUN")]
    since: Option<i64>,
    /// Only the last N runs
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// The smallest difference that matters [default: what the runs say]
    #[arg(long, value_name = "2%|0.02", value_parser = parse_ratio)]
    delta: Option<f64>,
    /// Chance of any false change among all series [default: what the runs say]
    #[arg(long, value_name = "5%|0.05", value_parser = parse_ratio)]
    alpha: Option<f64>,
    /// Exit with 3 when this holds of the newest run, or of the last change, which --since takes as accepted
    #[arg(long, value_name = "VERDICT")]
    fail_if: Option<FailIf>,
    /// A table of every series
    #[arg(long, short)]
    verbose: bool,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: Database,
}

/// Prints the history.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such runs, or nothing that they have in common.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = args.database.read()?;
    let mut runs = store.list().map_err(|error| wrong(&error))?;
    let Some(name) = &args.name else {
        runs.retain(is_whole);
        return Ok(names(&runs)?);
    };
    runs.retain(|run| run.name == *name && is_one_of_a_series(run));
    runs.sort_by_key(|run| (run.started_unix_ns, run.id));
    let whole = runs.iter().filter(|run| is_whole(run)).count();
    let unfinished = runs.last().filter(|newest| !is_whole(newest)).map(|newest| newest.id);
    if let Some(first) = args.since {
        runs.drain(..place_of(first, &runs, name)?);
    }
    runs.retain(is_whole);
    runs.drain(..runs.len().saturating_sub(args.last.unwrap_or(usize::MAX)));
    if let Some(condition) = args.fail_if.filter(|_| whole == 1 && unfinished.is_none()) {
        return Ok(first_night(condition, name));
    }
    if runs.len() < 2 {
        let there = counted(whole as u64, "finished run");
        let left =
            if whole > runs.len() { format!(", of which {} is left", runs.len()) } else { String::new() };
        return Err(Failure::request(format!("a history needs two runs; '{name}' has {there}{left}"))
        .hint(
            "assay run … --name NAME gives runs one name; assay history lists the names; assay list all runs",
        )
        .into());
    }
    let mut ways: Vec<(Option<String>, u64, u64)> = Vec::new();
    let mut arm = |run: &RunSummary| {
        let loaded = store.load_run(run.id).map_err(|error| wrong(&error))?;
        let stop = &loaded.design.stop;
        ways.push((loaded.design.primary.clone(), stop.delta.to_bits(), stop.alpha.to_bits()));
        Ok::<_, Failure>(Input::Run { label: format!("run {}", run.id), run: Box::new(loaded) })
    };
    let inputs = runs.iter().map(&mut arm).collect::<Result<Vec<_>, _>>()?;
    judged_in_one_way(args, &ways, name)?;
    let options = import::Options { primary: args.primary.clone(), ..import::Options::default() };
    let run = import::load(inputs, &options).map_err(Failure::request)?.run;
    check_primary(args.primary.as_ref().and(run.design.primary.as_deref()), &analyse::metrics_of(&run))?;
    let wishes = analyse::Options { delta: args.delta, alpha: args.alpha, ..analyse::Options::default() };
    wishes.check(&run).map_err(Failure::request)?;
    let analysis = analyse::analyse(&run, &wishes);
    let history = History::of(&analysis);
    if history.series.is_empty() {
        return Err(Failure::request(format!(
            "the runs called '{name}' have no row and deciding metric in common"
        ))
        .hint("--primary METRIC names one that they have; `assay metrics RUN` lists them")
        .into());
    }
    let of = HistoryOf { name, run: &run, time: local_time::minute, verbose: args.verbose };
    if args.json {
        writeln!(
            terminal::out_as(Form::Json),
            "{}",
            serde_json::to_string_pretty(&history_json(&of, &history))?
        )?;
    } else {
        terminal::out().write_all(history_text(&of, &history).as_bytes())?;
    }
    if let Some(id) = unfinished {
        let why = format!("run {id} of that name, the newest, has not finished: it is left out");
        match args.fail_if {
            Some(_) => {
                return Err(Failure::tool(why)
                    .hint(format!("assay run --resume {id} goes on with it"))
                    .into());
            }
            None => terminal::tell(&format!("note: {why}")),
        }
    }
    fails(args.fail_if, &history)
}

/// Before there is a second night.
fn first_night(condition: FailIf, name: &str) -> ExitCode {
    let condition_name = condition.name();
    if condition.holds_of(&Verdict::TooFew { n: 0 }, None) {
        terminal::tell(&format!(
            "assay: --fail-if {condition_name}: holds for the first run of the name '{name}'"
        ));
        return ExitCode::from(HOLDS);
    }
    terminal::tell(&format!(
        "assay: --fail-if {condition_name} does not hold; '{name}' has one finished run, and nothing before it"
    ));
    ExitCode::SUCCESS
}

/// Where the run of that number is among those of the name.
fn place_of(first: i64, runs: &[RunSummary], name: &str) -> Result<usize, Failure> {
    runs.iter().position(|run| run.id == first).ok_or_else(|| {
        Failure::request(format!("--since {first}: no run of the name '{name}' has this number"))
            .hint(format!("assay list --name {name} lists them"))
    })
}

/// A gate must not look at another metric, or at another δ, because one run was made with them.
fn judged_in_one_way(args: &Args, ways: &[(Option<String>, u64, u64)], name: &str) -> Result<(), Failure> {
    let Some(what) = judged_otherwise(args, ways) else { return Ok(()) };
    let why = format!("the runs called '{name}' were not all judged in one way: they differ in {what}");
    let hint = format!("{what} says what holds for all of them");
    if args.fail_if.is_some() {
        return Err(Failure::request(why).hint(hint));
    }
    terminal::tell(&format!("note: {why}; {hint}"));
    Ok(())
}

/// The option that says of all runs what they say differently.
fn judged_otherwise(args: &Args, ways: &[(Option<String>, u64, u64)]) -> Option<&'static str> {
    let differ = |part: fn(&(Option<String>, u64, u64)) -> String| {
        ways.windows(2).any(|two| part(&two[0]) != part(&two[1]))
    };
    if args.primary.is_none() && differ(|way| way.0.clone().unwrap_or_default()) {
        return Some("--primary");
    }
    if args.delta.is_none() && differ(|way| way.1.to_string()) {
        return Some("--delta");
    }
    (args.alpha.is_none() && differ(|way| way.2.to_string())).then_some("--alpha")
}

/// What ended by its own rule and has values.
fn is_whole(run: &RunSummary) -> bool {
    run.state == RunState::Finished && run.trials > 0 && is_one_of_a_series(run)
}

/// A probe, a search, or what watched another run is none.
fn is_one_of_a_series(run: &RunSummary) -> bool {
    run.explains.is_none() && !run.bisects && !run.is_probe()
}

/// The names that several runs have.
fn names(runs: &[RunSummary]) -> Result<ExitCode, std::io::Error> {
    let mut out = terminal::out();
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for run in runs {
        match seen.iter_mut().find(|(name, _)| *name == run.name) {
            Some((_, n)) => *n += 1,
            None => seen.push((&run.name, 1)),
        }
    }
    seen.retain(|(_, n)| *n > 1);
    if seen.is_empty() {
        writeln!(out, "no two finished runs have one name; assay run … --name NAME gives them one")?;
    }
    for (name, n) in seen {
        let word = shlex::try_quote(name).map_or_else(|_| name.into(), |quoted| quoted.into_owned());
        writeln!(out, "{n:>5} runs  assay history {}", terminal::visible_line(&word))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// 3 when the condition holds of the newest run or of the last change of a series.
///
/// # Errors
/// A [`Failure`] with exit code 1: the condition does not hold, but of some series the newest run has no value that can be judged.
fn fails(condition: Option<FailIf>, history: &History) -> anyhow::Result<ExitCode> {
    let Some(condition) = condition else { return Ok(ExitCode::SUCCESS) };
    let holds = |series: &Series| {
        let newest = (&series.newest.verdict, series.newest.effect);
        let last = series.changes.last().map(|change| (&change.verdict, Some(change.effect)));
        [Some(newest), last].into_iter().flatten().any(|(verdict, effect)| {
            condition.holds_of(verdict, effect.and_then(|effect| series.is_better(effect)))
        })
    };
    let held = history.series.iter().filter(|series| holds(series)).count();
    let name = condition.name();
    if held > 0 {
        terminal::tell(&format!(
            "assay: --fail-if {name}: holds for {held} of {} series",
            history.series.len()
        ));
        return Ok(ExitCode::from(HOLDS));
    }
    let lost = history.series.iter().find_map(|series| match &series.newest.verdict {
        Verdict::NotMeasured(why) => {
            Some(format!("--fail-if {name} asks for a verdict, and {}: {why}", series.metric.name))
        }
        _ => None,
    });
    if let Some(why) = lost {
        return Err(Failure::tool(why).hint("`assay show RUN` says what became of its trials").into());
    }
    let young = history.series.iter().filter(|series| series.newest.effect.is_none()).count();
    if young > 0 {
        let all = history.series.len();
        let of = if young < all { format!("of {young} of {all} series ") } else { String::new() };
        terminal::tell(&format!(
            "assay: --fail-if {name} does not hold; {of}the newest run cannot be judged yet: that takes {FEWEST_BEFORE} runs before it"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
