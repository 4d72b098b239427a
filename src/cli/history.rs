//! `assay history`: the runs of one name in time: where their level changed, and whether the newest is as those before it.

use std::io::Write;
use std::process::ExitCode;

use super::compare::check_primary;
use super::database::{Database, wrong};
use super::fail_if::{FailIf, HOLDS};
use super::failure::{number_of, report_error};
use super::named_run::{is_prefix, meant_below, no_name_below};
use super::output::Output;
use super::report::format_of;
use super::{Failure, local_time};
use crate::analyse::{self, Verdict};
use crate::history::{FEWEST_BEFORE, History, Series};
use crate::import::{self, Input};
use crate::record::{Deltas, MetricDelta, Run, RunState, without_syncs};
use crate::report::{Format, HistoryOf, history_json, history_page, history_text};
use crate::store::{RunSummary, Store};
use crate::sys::terminal::{self, Form};
use crate::units::{counted, parse_ratio};

const EXAMPLES: &str = "A run is one value, the median of its trials. Each night:
  assay run job.fio --aa --name nightly && assay history nightly --fail-if slower
Several jobs: assay run wal.fio db.fio --aa --name nightly && assay history nightly/ --fail-if slower
With a picture of each: assay history nightly/ -o history.html
After a change that is accepted, --since RUN begins a new history.";

/// Options of `assay history`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The name of the runs (`assay run --name`), or several; `night/` means all names below it; without one, the names that several
    /// runs have
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The metric that decides [default: what decided the runs]
    #[arg(long, value_name = "[SECTION:]METRIC")]
    primary: Option<String>,
    /// Begin the history of this run's name at it; may be given for several names
    #[arg(long, value_name = "RUN")]
    since: Vec<i64>,
    /// Only the last N runs
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// The smallest difference that matters, also by metric (2%,p99=10%) [default: what the runs say]
    #[arg(long, value_name = "2%|0.02")]
    delta: Option<Deltas>,
    /// Chance of any false change among all series [default: the largest of the runs]
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
    output: Output,
    #[command(flatten)]
    database: Database,
}

/// Prints the history.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such runs, or nothing that they have in common.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let format = format_of(None, &args.output)?;
    if !matches!(format, Format::Text | Format::Html | Format::Json) {
        return Err(Failure::request("a history is written as .txt, .html or .json").into());
    }
    let store = args.database.read()?;
    let mut runs = store.list().map_err(|error| wrong(&error))?;
    if args.names.is_empty() {
        runs.retain(is_whole);
        return Ok(names(&runs)?);
    }
    let all = with_those_below(&args.names, &runs)?;
    begin_a_history(args, &all, &runs)?;
    // One that never finished a run has no test, and takes no share.
    let is_tested = |name: &&String| runs.iter().any(|run| run.name == **name && is_whole(run));
    let tested = all.iter().filter(is_tested).count();
    let of = |name: &String| of_name(args, &store, name, runs.clone(), (all.len(), tested));
    let several = all.len() > 1;
    let (mut found, mut codes) = (Vec::new(), Vec::new());
    for name in &all {
        match of(name) {
            Ok(Found::History(history)) => found.push(*history),
            Ok(Found::FirstNight(code)) => codes.push(code),
            // Of several names one without a history keeps nobody from reading the others.
            Err(error) if several => codes.push(report_error(&error.into())),
            Err(error) => return Err(error.into()),
        }
    }
    write(args, &found, several)?;
    if several {
        codes.extend(not_run_together(args, &store, &all, &runs)?);
    }
    for one in &found {
        match one.gate(args) {
            Err(error) if several => codes.push(report_error(&error.into())),
            code => codes.push(code?),
        }
    }
    Ok(ExitCode::from(codes.into_iter().map(number_of).max().unwrap_or(0)))
}

/// Says which names were not run when the others were, by a command of several runs: with a gate an exit code for each.
fn not_run_together(
    args: &Args,
    store: &Store,
    names: &[String],
    runs: &[RunSummary],
) -> Result<Vec<ExitCode>, Failure> {
    let mut newest: Vec<(&String, i64, u64)> = Vec::new();
    for name in names {
        let of_name = runs.iter().filter(|run| run.name == *name && is_one_of_a_series(run));
        let Some(run) = of_name.max_by_key(|run| (run.started_unix_ns, run.id)) else { continue };
        let loaded = store.load_for_report(run.id).map_err(|error| wrong(&error))?;
        newest.extend(loaded.design.together.map(|together| (name, run.id, together.begun_unix_ns)));
    }
    let latest = newest.iter().map(|(_, _, begun)| *begun).max().unwrap_or(0);
    let late = newest.iter().filter(|(_, _, begun)| *begun < latest).map(|(name, run, _)| {
        let when = local_time::minute(latest).map(|time| format!(", begun {time}")).unwrap_or_default();
        let why = format!("{name} was not run with the others{when}: run {run} is of an earlier command");
        match args.fail_if {
            Some(_) => report_error(
                &Failure::tool(why)
                    .hint("was its file there, and did the command come to it? assay delete takes the runs of a job out that is no more")
                    .into(),
            ),
            None => {
                terminal::tell(&format!("note: {why}"));
                ExitCode::SUCCESS
            }
        }
    });
    Ok(late.collect())
}

/// What the runs of a name are.
enum Found {
    History(Box<Loaded>),
    /// One run, and what a gate makes of it.
    FirstNight(ExitCode),
}

/// A history with what it was read from.
struct Loaded {
    name: String,
    run: Run,
    history: History,
    /// The newest run, which has not finished and is not in it.
    unfinished: Option<i64>,
}

/// Writes them as they were asked for.
fn write(args: &Args, found: &[Loaded], several: bool) -> anyhow::Result<()> {
    let format = if args.json { Format::Json } else { format_of(None, &args.output)? };
    if found.is_empty() && format != Format::Json {
        return Ok(());
    }
    let (text, form) = match format {
        Format::Json => {
            let mut all: Vec<_> =
                found.iter().map(|one| history_json(&one.about(args, several), &one.history)).collect();
            let json = if several { all.into() } else { all.pop().unwrap_or_default() };
            (serde_json::to_string_pretty(&json)? + "\n", Form::Json)
        }
        Format::Html => {
            let all: Vec<_> = found.iter().map(|one| (one.about(args, several), &one.history)).collect();
            (history_page(&all), Form::Plain)
        }
        _ => {
            let all: Vec<_> =
                found.iter().map(|one| history_text(&one.about(args, several), &one.history)).collect();
            (all.join("\n"), Form::Plain)
        }
    };
    args.output.write(&text, form)
}

/// The same names, with all of the store that lie below one that ends so.
fn with_those_below(words: &[String], runs: &[RunSummary]) -> Result<Vec<String>, Failure> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        // Also those of which no run has finished: a job that never works must not pass for none.
        let below = runs
            .iter()
            .filter(|run| is_prefix(word) && run.name.starts_with(word) && is_one_of_a_series(run));
        let mut below: Vec<String> = below.map(|run| run.name.clone()).collect();
        below.sort_unstable();
        if is_prefix(word) && below.is_empty() {
            return Err(no_name_below(word));
        }
        let named = if is_prefix(word) { below } else { vec![word.clone()] };
        named.into_iter().for_each(|name| {
            if !all.contains(&name) {
                all.push(name);
            }
        });
    }
    Ok(all)
}

/// The history of the runs of one name, which is one of `several`, of which so many share α.
fn of_name(
    args: &Args,
    store: &Store,
    name: &str,
    mut runs: Vec<RunSummary>,
    (several, sharing): (usize, usize),
) -> Result<Found, Failure> {
    runs.retain(|run| run.name == *name && is_one_of_a_series(run));
    runs.sort_by_key(|run| (run.started_unix_ns, run.id));
    let whole = runs.iter().filter(|run| is_whole(run)).count();
    let unfinished = runs.last().filter(|newest| !is_whole(newest)).map(|newest| newest.id);
    if let Some(first) = args.since.iter().filter_map(|first| place_of(*first, &runs)).max() {
        runs.drain(..first);
    }
    runs.retain(is_whole);
    runs.drain(..runs.len().saturating_sub(args.last.unwrap_or(usize::MAX)));
    // Of several names one may be young, or have a new beginning.
    let is_young = whole == 1 || (several > 1 && runs.len() == 1 && !args.since.is_empty());
    if let Some(condition) = args.fail_if.filter(|_| is_young && unfinished.is_none()) {
        return Ok(Found::FirstNight(first_night(condition, name)));
    }
    if several > 1 && runs.len() == 1 && unfinished.is_none() {
        terminal::tell(&format!("note: '{name}' has one finished run, and nothing before it"));
        return Ok(Found::FirstNight(ExitCode::SUCCESS));
    }
    let is_one_below = args.names.iter().any(|word| is_prefix(word) && name.starts_with(word.as_str()));
    if let Some(newest) = unfinished.filter(|_| whole == 0 && (several > 1 || is_one_below)) {
        let why = format!("no run called '{name}' has finished; the newest is run {newest}");
        if args.fail_if.is_some() {
            let db = super::run::database_flag(&args.database.db);
            return Err(Failure::tool(why).hint(format!(
                "`assay show {newest}{db}` says what became of it; `assay run --resume {newest}{db}` goes on with it, `assay delete \
                 {newest}{db}` takes it out"
            )));
        }
        terminal::tell(&format!("note: {why}"));
        return Ok(Found::FirstNight(ExitCode::SUCCESS));
    }
    if runs.len() < 2 {
        let there = counted(whole as u64, "finished run");
        let left =
            if whole > runs.len() { format!(", of which {} is left", runs.len()) } else { String::new() };
        let all = store.list().map_err(|error| wrong(&error))?;
        if let Some(hint) = meant_below(name, &all).filter(|_| whole == 0) {
            return Err(Failure::request(format!("no finished run is called '{name}'")).hint(hint));
        }
        return Err(Failure::request(format!("a history needs two runs; '{name}' has {there}{left}")).hint(
            "assay run … --name NAME gives runs one name; assay history lists the names; assay list all runs",
        ));
    }
    let mut ways: Vec<Way> = Vec::new();
    // The share that a run had among others of its command is nothing of its own.
    let mut alpha = 0.0_f64;
    let mut arm = |run: &RunSummary| {
        let loaded = store.load_run(run.id).map_err(|error| wrong(&error))?;
        let stop = &loaded.design.stop;
        let (primary, deltas) = (loaded.design.primary.clone(), loaded.design.deltas.clone());
        ways.push(Way { primary, delta: stop.delta, deltas });
        let share = loaded.design.together.map_or(1, |together| together.sharing_alpha);
        alpha = alpha.max(stop.alpha * f64::from(share));
        Ok::<_, Failure>(Input::Run { label: format!("run {}", run.id), run: Box::new(loaded) })
    };
    let inputs = runs.iter().map(&mut arm).collect::<Result<Vec<_>, _>>()?;
    judged_in_one_way(args, &ways, name)?;
    let options = import::Options { primary: args.primary.clone(), ..import::Options::default() };
    let run = import::load(inputs, &options).map_err(Failure::request)?.run;
    check_primary(args.primary.as_ref().and(run.design.primary.as_deref()), &analyse::metrics_of(&run))?;
    let alpha = args.alpha.or(Some(alpha));
    let wishes = analyse::Options {
        delta: args.delta.clone().unwrap_or_default(),
        alpha,
        ..analyse::Options::default()
    };
    wishes.check(&run).map_err(Failure::request)?;
    match wishes.check_deltas(&run) {
        // Of several names one may have the metric and another one not.
        Err(unknown) if several > 1 => terminal::tell(&format!("note: {name}: {unknown}")),
        known => known.map_err(Failure::request)?,
    }
    let analysis = analyse::analyse(&run, &wishes);
    let history = History::of(&analysis, sharing);
    if history.series.is_empty() {
        return Err(Failure::request(format!(
            "the runs called '{name}' have no row and deciding metric in common"
        ))
        .hint("--primary METRIC names one that they have; `assay metrics RUN` lists them"));
    }
    Ok(Found::History(Box::new(Loaded { name: name.to_owned(), run, history, unfinished })))
}

impl Loaded {
    fn about(&self, args: &Args, several: bool) -> HistoryOf<'_> {
        HistoryOf {
            name: &self.name,
            run: &self.run,
            time: local_time::minute,
            verbose: args.verbose,
            among_others: several,
        }
    }

    /// What a gate makes of it.
    fn gate(&self, args: &Args) -> Result<ExitCode, Failure> {
        if let Some(id) = self.unfinished {
            let why =
                format!("run {id} of the name {}, the newest, has not finished: it is left out", self.name);
            match args.fail_if {
                Some(_) => {
                    return Err(Failure::tool(why).hint(format!("assay run --resume {id} goes on with it")));
                }
                None => terminal::tell(&format!("note: {why}")),
            }
        }
        fails(args.fail_if, &self.name, &self.history)
    }
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

/// Where the run of that number is among those of a name.
fn place_of(first: i64, runs: &[RunSummary]) -> Option<usize> {
    runs.iter().position(|run| run.id == first)
}

/// Refuses a beginning of a history that is not asked for.
fn begin_a_history(args: &Args, names: &[String], runs: &[RunSummary]) -> Result<(), Failure> {
    let is_one = |first: &&i64| runs.iter().any(|run| run.id == **first && names.contains(&run.name));
    let Some(first) = args.since.iter().find(|first| !is_one(first)) else { return Ok(()) };
    let named: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let of = if let [name] = &named[..] {
        format!("the name {name}")
    } else {
        format!("the names {}", named.join(", "))
    };
    Err(Failure::request(format!("--since {first}: no run of {of} has this number"))
        .hint("assay list --name NAME lists the runs of a name"))
}

/// A gate must not look at another metric, or at another δ, because one run was made with them.
fn judged_in_one_way(args: &Args, ways: &[Way], name: &str) -> Result<(), Failure> {
    let Some(what) = judged_otherwise(args, ways) else { return Ok(()) };
    let why = format!("the runs called '{name}' were not all judged in one way: they differ in {what}");
    let hint = format!("{what} says what holds for all of them");
    if args.fail_if.is_some() {
        return Err(Failure::request(why).hint(hint));
    }
    terminal::tell(&format!("note: {why}; {hint}"));
    Ok(())
}

/// By what a run was judged.
struct Way {
    primary: Option<String>,
    delta: f64,
    deltas: Vec<MetricDelta>,
}

/// The option that says of all runs what they say differently.
fn judged_otherwise(args: &Args, ways: &[Way]) -> Option<&'static str> {
    let mut pairs = ways.windows(2);
    let primary = |way: &Way| way.primary.as_deref().map(without_syncs);
    if args.primary.is_none() && pairs.clone().any(|two| primary(&two[0]) != primary(&two[1])) {
        return Some("--primary");
    }
    let said = args.delta.as_ref();
    let is_open = |two: &[Way]| match said {
        None => (two[0].delta, &two[0].deltas) != (two[1].delta, &two[1].deltas),
        // One for some metrics alone leaves open what holds for the others.
        Some(deltas) => deltas.others.is_none() && two[0].delta != two[1].delta,
    };
    pairs.any(is_open).then_some("--delta")
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
fn fails(condition: Option<FailIf>, of: &str, history: &History) -> Result<ExitCode, Failure> {
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
            "assay: --fail-if {name}: holds for {held} of {} series of {of}",
            history.series.len()
        ));
        return Ok(ExitCode::from(HOLDS));
    }
    let lost = history.series.iter().find_map(|series| match &series.newest.verdict {
        Verdict::NotMeasured(why) => {
            Some(format!("--fail-if {name} asks for a verdict, and {of}: {}: {why}", series.metric.name))
        }
        _ => None,
    });
    if let Some(why) = lost {
        return Err(Failure::tool(why).hint("`assay show RUN` says what became of its trials"));
    }
    let young = history.series.iter().filter(|series| series.newest.effect.is_none()).count();
    if young > 0 {
        let all = history.series.len();
        let some = if young < all { format!("of {young} of {all} series ") } else { String::new() };
        terminal::tell(&format!(
            "assay: --fail-if {name} does not hold of {of}; {some}the newest run cannot be judged yet: that takes {FEWEST_BEFORE} runs before it"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
