//! `assay compare`: results that already exist, judged as two unpaired samples.

use std::collections::BTreeSet;
use std::process::ExitCode;

use super::Failure;
use super::database::Database;
use super::fail_if::{FailIf, fail_if, none_is_lost, nothing_measured};
use super::failures::Failures;
use super::output::Output;
use super::report::{is_no_search, parse_percent, say_hidden};
use crate::analyse;
use crate::import::{self, Clusters, Columns, ImportError, Input, Problem, ValueColumn};
use crate::record::{Deltas, Metric, StopRule, deciding_metrics};
use crate::report::{self, Document, Format};
use crate::units::parse_ratio;

/// Options of `assay compare`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  assay compare before/ after/                            fio JSON files, one a trial
  assay compare old='6.1/*.json' new='6.12/*.json'        quoted globs with labels
  assay compare old.txt new.txt                           Go benchmark text, or one number a line
  assay compare hyperfine.json                            its commands against the first
  assay compare t.csv --arm kernel --row bs --value kb_s:higher,msec:lower
  assay compare t.csv --row bs --arm-columns old_mib_s,new_mib_s:higher
  assay compare t.csv --arm kernel --value s --cluster boot   boots are judged, not trials
  assay compare 3 7                                       two stored runs
  assay compare fio/ 7:ioengine=psync                     results beside one level of a stored run")]
pub struct Args {
    /// BASELINE CANDIDATE…: each a file, a directory, a quoted glob, a stored run's number or name, latest, RUN:FACTOR=LEVEL,… (its trials
    /// at these levels), or label=one of these
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
    /// The arm the others are compared with [default: the first]
    #[arg(long, value_name = "LABEL")]
    baseline: Option<String>,
    /// Compare every pair of arms, not each with the first only: more comparisons share alpha, and each is judged more strictly
    #[arg(long)]
    all_pairs: bool,
    /// Tables: the column that names the arm
    #[arg(long, value_name = "COL", conflicts_with = "arm_columns")]
    arm: Option<String>,
    /// Tables: the columns that make the rows
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    row: Vec<String>,
    /// Tables: the columns with results, their unit and good direction where the name does not tell
    #[arg(
        long,
        value_name = "COL[:UNIT][:higher|lower],…",
        value_delimiter = ',',
        conflicts_with = "arm_columns"
    )]
    value: Vec<String>,
    /// Tables in which each arm has a column; once for each metric
    #[arg(long, value_name = "COL,COL[:higher|lower]")]
    arm_columns: Vec<String>,
    /// Which trials belong together: a column (boot, host, session …), or none [default: by common names and gaps in time stamps]
    #[arg(long, value_name = "COL|none", value_parser = cluster)]
    cluster: Option<Clusters>,
    /// Report format: text, lkml, mmtests, markdown, html, json, csv or junit [default: by the name behind -o, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: Output,
    /// csv: cells as they are, also those that a spreadsheet would take for a formula
    #[arg(long)]
    raw_cells: bool,
    /// lkml: print differences below PCT percent as 0, and cut whole numbers off instead of rounding, as the study of 2012 has them
    #[arg(long, value_name = "PCT", value_parser = parse_percent)]
    hide_below: Option<f64>,
    /// The smallest difference that matters, also by metric (2%,p99=10%) [default: 2%, or what the stored run says]
    #[arg(long, value_name = "2%|0.02")]
    delta: Option<Deltas>,
    /// Chance of any false claim among all rows [default: 5%, or what the stored run says]
    #[arg(long, value_name = "2%|0.02", value_parser = parse_ratio)]
    alpha: Option<f64>,
    /// Read a metric from the text of every file, whatever printed it: NAME=REGEX[:unit][:higher|lower]; a second match begins the next
    /// trial
    #[arg(long, value_name = "SPEC")]
    metric: Vec<String>,
    /// The metric that decides [default: what decided the stored runs]
    #[arg(long, value_name = "[SECTION:]METRIC")]
    primary: Option<String>,
    /// What failed trials mean: their numbers are compared, or each is worse than any value [default: compare]
    #[arg(long, value_name = "RULE")]
    failures: Option<Failures>,
    /// Exit with 3 when a row that decides is slower or changed (slower or faster) by more than delta, slower:any or changed:any
    /// (by however little), undecided, or slower,undecided or changed,undecided (all but what is known to be neither)
    #[arg(long, value_name = "VERDICT", conflicts_with = "all_pairs")]
    fail_if: Option<FailIf>,
    /// List every metric, also those without a clear difference
    #[arg(long)]
    all_metrics: bool,
    /// Everything: other metrics, all notes, and the interval of each row alone where several decide
    #[arg(long, short)]
    verbose: bool,
    /// Leave out files of a directory or glob that cannot be read, naming them
    #[arg(long)]
    skip_unreadable: bool,
    #[command(flatten)]
    database: Database,
}

/// Compares and reports.
///
/// # Errors
/// A [`Failure`]: exit code 2 when an input or option is wrong, 1 when files of a directory cannot be read.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let format = super::report::format_of(args.format, &args.output)?;
    let options = import::Options {
        columns: columns(args)?,
        patterns: super::metric_patterns::metric_patterns(&args.metric)?,
        baseline: args.baseline.clone(),
        skip_unreadable: args.skip_unreadable,
        primary: args.primary.clone(),
        stop: StopRule::default(),
        // Only for readers: what is not UTF-8 was no input.
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    let mut inputs = Vec::with_capacity(args.inputs.len());
    for spec in &args.inputs {
        inputs.push(input(spec, &args.database)?);
    }
    let loaded = import::load(inputs, &options).map_err(|error| failure(&error))?;
    for skipped in &loaded.skipped {
        crate::sys::terminal::tell(&format!("assay: left out: {skipped}"));
    }
    let run = loaded.run;
    // A file alone; stored runs were looked at before.
    is_no_search(&run, args.inputs.first().map_or("", String::as_str))?;
    say_hidden(args.hide_below, format);
    let wishes = analyse::Options {
        delta: args.delta.clone().unwrap_or_default(),
        alpha: args.alpha,
        all_metrics: args.all_metrics,
        all_pairs: args.all_pairs,
        alone: true,
        failures: args.failures.map(Failures::rule),
        ..analyse::Options::default()
    };
    let asked = args.primary.as_ref().and(run.design.primary.as_deref());
    check_primary(asked, &analyse::metrics_of(&run))?;
    wishes.check(&run).and_then(|()| wishes.check_deltas(&run)).map_err(|error| {
        Failure::request(error).hint(
            "--delta 2% is the smallest difference that matters, --alpha 5% the chance of a false claim",
        )
    })?;
    let analysis = analyse::analyse(&run, &wishes);
    if args.fail_if.is_some_and(FailIf::asks_for_direction) {
        directions_are_known(&analysis, &loaded.guessed)?;
    }
    let report_options = report::Options {
        hide_below_pct: args.hide_below,
        all_metrics: args.all_metrics,
        detail: super::report::detail(args.verbose, format),
        gate: args.fail_if.map(FailIf::gate),
        ..report::Options::default()
    };
    let document = Document::build(&run, &analysis, &report_options);
    super::report::write(&document, format, &args.output, args.raw_cells)?;
    if let Some(reason) = nothing_measured(&analysis).filter(|_| args.fail_if.is_none()) {
        let failure = Failure::tool(format!("nothing was compared: {reason}"));
        return Err(failure.hint("--primary names a metric that both sides have").into());
    }
    let code = fail_if(args.fail_if, &analysis, None)?;
    if args.fail_if.is_some() && code == ExitCode::SUCCESS {
        none_is_lost(&analysis)?;
    }
    Ok(code)
}

/// A gate must not turn on what is better of a metric that nobody said and its name does not tell.
fn directions_are_known(analysis: &analyse::Analysis, guessed: &BTreeSet<String>) -> Result<(), Failure> {
    let mut deciding = analysis.comparisons.iter().filter(|found| found.role == analyse::Role::Primary);
    match deciding.find(|found| guessed.contains(&found.metric.name)) {
        None => Ok(()),
        Some(found) => {
            let name = &found.metric.name;
            Err(Failure::request(format!(
                "--fail-if: nothing says whether more or less of '{name}' is better"
            ))
            .hint(":higher or :lower behind the column in --value or --arm-columns says it"))
        }
    }
}

fn columns(args: &Args) -> Result<Columns, Failure> {
    let wrong =
        |problem: Problem| failure(&ImportError { origin: "columns".to_owned(), line: None, problem });
    let values = |specs: &[String]| {
        specs.iter().map(|spec| ValueColumn::parse_spec(spec)).collect::<Result<Vec<_>, _>>().map_err(wrong)
    };
    let mut arm_columns = Vec::new();
    for group in &args.arm_columns {
        let specs: Vec<String> = group.split(',').map(str::to_owned).collect();
        arm_columns.push(values(&specs)?);
    }
    Ok(Columns {
        arm: args.arm.clone(),
        rows: args.row.clone(),
        values: values(&args.value)?,
        arm_columns,
        clusters: args.cluster.clone().unwrap_or_default(),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "clap's parsers may fail")]
fn cluster(text: &str) -> Result<Clusters, std::convert::Infallible> {
    Ok(Clusters::parse(text))
}

/// A stored run's number, or files.
fn input(spec: &str, database: &Database) -> Result<Input, Failure> {
    if let Some((front, levels)) = spec.split_once(':').filter(|(_, levels)| levels.contains('='))
        && !std::path::Path::new(spec).exists()
    {
        let (label, rest) = import::split_label(front);
        if import::run_number(rest).is_some() || database.has_run(rest) {
            let label = label.map_or_else(|| format!("run {rest}, {levels}"), str::to_owned);
            let mut run = database.load(rest)?;
            is_no_search(&run, rest)?;
            import::choose(&mut run, levels).map_err(|why| {
                Failure::request(format!("{spec}: {why}")).hint(format!("assay show {rest} lists its arms"))
            })?;
            return Ok(Input::Run { label, run: Box::new(run) });
        }
    }
    let (label, rest) = import::split_label(spec);
    let is_word = !rest.contains(['/', '*', '?', '[']) && !std::path::Path::new(rest).exists();
    if import::run_number(rest).is_some() || (is_word && database.has_run(rest)) {
        let label = label.map_or_else(|| format!("run {rest}"), str::to_owned);
        let run = database.load(rest)?;
        is_no_search(&run, rest)?;
        return Ok(Input::Run { label, run: Box::new(run) });
    }
    import::find_files(rest, label).map(Input::Files).map_err(|error| failure(&error))
}

fn failure(error: &ImportError) -> Failure {
    let failure = match error.problem {
        Problem::Unreadable { .. } => Failure::tool(error),
        _ => Failure::request(error),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Refuses a primary metric that nothing was measured of.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names the nearest.
pub(super) fn check_primary(primary: Option<&str>, metrics: &[Metric]) -> Result<(), Failure> {
    let mut names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    let wishes = primary.map(|text| deciding_metrics(text, |name| names.contains(&name))).unwrap_or_default();
    let missing = |(section, name): &&(Option<&str>, &str)| {
        let here =
            |metric: &Metric| metric.name == *name && section.is_none_or(|section| metric.job == section);
        !metrics.iter().any(here)
    };
    let Some((section, primary)) = wishes.iter().find(missing).copied() else { return Ok(()) };
    let jobs: BTreeSet<&str> = metrics.iter().map(|metric| metric.job.as_str()).collect();
    if let Some(section) = section.filter(|section| !jobs.contains(section)) {
        return Err(no_section(section, primary, &jobs));
    }
    let here = |metric: &&Metric| section.is_none_or(|section| metric.job == section);
    names = metrics.iter().filter(here).map(|metric| metric.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.sort_by_key(|name| std::cmp::Reverse((strsim::jaro_winkler(primary, name) * 1e6) as u64));
    let nearest = names.first().copied().unwrap_or_default();
    let hint = match names.len() {
        ..=MOST_NEAREST => format!("--primary takes one of: {}", names.join(", ")),
        _ => format!("near are {}; `assay metrics RUN` lists all", names[..MOST_NEAREST].join(", ")),
    };
    let of_section = section.map(|section| format!(" of section '{section}'")).unwrap_or_default();
    Err(Failure::request(format!(
        "there is no metric '{primary}'{of_section} in these results; the nearest is '{nearest}'"
    ))
    .hint(hint))
}

/// Names of metrics in a hint.
const MOST_NEAREST: usize = 5;

fn no_section(section: &str, metric: &str, jobs: &BTreeSet<&str>) -> Failure {
    let known: Vec<&str> = jobs.iter().copied().filter(|job| !job.is_empty()).collect();
    match known.is_empty() {
        true => Failure::request(format!(
            "--primary {section}:{metric}: these results have no section '{section}'"
        ))
        .hint(format!("--primary {metric} means the results as a whole")),
        false => Failure::request(format!(
            "--primary {section}:{metric}: there is no section '{section}' in these results"
        ))
        .hint(format!("there are {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Sample;
    use crate::units::Unit;

    #[test]
    fn an_unknown_primary_metric_names_the_nearest() {
        let metrics =
            ["read.bw", "write.bw"].map(|name| Sample::new("", name, Unit::BytesPerSecond, 0.0).metric);
        let error = check_primary(Some("write.bv"), &metrics).unwrap_err();
        assert!(error.to_string().ends_with("the nearest is 'write.bw'"), "{error}");
        assert_eq!(error.code(), 2);
        assert!(check_primary(Some("write.bw"), &metrics).is_ok());
    }

    #[test]
    fn a_section_that_is_not_there_is_named_and_few_metrics_are() {
        let metric = |job: &str, name: &str| Sample::new(job, name, Unit::BytesPerSecond, 0.0).metric;
        let metrics: Vec<Metric> =
            (0..9).map(|at| metric("wal", &format!("m{at}"))).chain([metric("log", "x.bw")]).collect();
        let hint = |error: &Failure| error.hinted().map(ToString::to_string).unwrap_or_default();
        assert!(check_primary(Some("wal:m3"), &metrics).is_ok());
        let error = check_primary(Some("wall:m3"), &metrics).unwrap_err();
        assert_eq!(error.to_string(), "--primary wall:m3: there is no section 'wall' in these results");
        assert_eq!(hint(&error), "there are log, wal");
        let error = check_primary(Some("wal:x.bw"), &metrics).unwrap_err();
        assert!(error.to_string().starts_with("there is no metric 'x.bw' of section 'wal'"), "{error}");
        let hint = hint(&error);
        assert!(
            hint.ends_with("; `assay metrics RUN` lists all") && hint.matches(", m").count() == 4,
            "{hint}"
        );
    }
}
