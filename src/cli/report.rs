//! `assay report`: a stored run, or an exported one, judged again and written in any format.

use std::path::PathBuf;
use std::process::ExitCode;

use super::database::Database;
use super::fail_if::{FailIf, fail_if};
use super::failure::{number_of, report_error};
use super::failures::Failures;
use super::judge::{fitted, judge, watched_run_of};
use super::output::Output;
use super::overview::{self, Reported};
use super::{Failure, local_time, named_run, pictures};
use crate::analyse;
use crate::record::{Deltas, Run, RunState};
use crate::report::{self, Detail, Document, Format, RenderOptions};
use crate::store::Store;
use crate::sys::terminal::{self, Form};

/// Options of `assay report`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  assay report 7                                 text, 80 columns
  assay report 7 -o report.html                  one page with pictures
  assay report 7 --format lkml --hide-below 5    tables for a mailing list
  assay report 7 8 9 -o report.html              what several runs say, on one page
  assay report run.json --format markdown        a run that `assay export` wrote")]
pub struct Args {
    /// Number or name of a stored run, `latest`, or an exported file; `night/` is the newest run of each name below it; several have one
    /// report
    #[arg(value_name = "RUN|FILE", required = true)]
    runs: Vec<String>,
    /// text, lkml, mmtests, markdown, html, json, csv or junit [default: by the name behind -o, else text]
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
    /// The smallest difference that matters, also by metric (2%,p99=10%) [default: the run's own]
    #[arg(long, value_name = "2%|0.02")]
    delta: Option<Deltas>,
    /// The metric that decides [default: the run's own]
    #[arg(long, value_name = "[SECTION:]METRIC")]
    primary: Option<String>,
    /// The factor whose levels are compared [default: the run's own]
    #[arg(long, value_name = "FACTOR")]
    compare: Option<String>,
    /// The level the others are compared with [default: the first]
    #[arg(long, value_name = "LEVEL")]
    baseline: Option<String>,
    /// Compare every pair of levels, not each with the baseline only: more comparisons share alpha, and each is judged more strictly
    #[arg(long)]
    all_pairs: bool,
    /// Besides the deciding metric only these, and those below them: write.clat_ns takes write.clat_ns.p99
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',')]
    metrics: Vec<String>,
    /// List every metric, also those without a clear difference
    #[arg(long)]
    all_metrics: bool,
    /// Everything: other metrics, all notes, the host's facts, the job, and the interval of each row alone where several decide
    #[arg(long, short)]
    verbose: bool,
    /// What failed trials mean: their numbers are compared, or each is worse than any value [default: the run's own]
    #[arg(long, value_name = "RULE")]
    failures: Option<Failures>,
    /// Exit with 3 when a row that decides is slower or changed (slower or faster) by more than delta, slower:any or changed:any
    /// (by however little), undecided, or slower,undecided or changed,undecided (all but what is known to be neither)
    #[arg(long, value_name = "VERDICT", conflicts_with = "all_pairs")]
    fail_if: Option<FailIf>,
    /// Write every picture as SVG and PNG into DIR, which is made where it is missing
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
    #[command(flatten)]
    database: Database,
}

/// A number of percent, `5` or `5%`, not below 0.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let digits = text.trim().trim_end_matches('%').trim_end();
    let value = digits.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| format!("'{text}' is not a percentage; write e.g. 5 or 2.5"))
}

/// Judges the run again and writes the report.
///
/// # Errors
/// A [`Failure`]: exit code 2 when there is no such run or a wish does not fit it, 1 when the file cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let format = format_of(args.format, &args.output)?;
    let named = named_run::with_those_below(&args.database, &args.runs)?;
    let wishes = analyse::Options {
        delta: args.delta.clone().unwrap_or_default(),
        primary: args.primary.clone(),
        compare: args.compare.clone(),
        baseline: args.baseline.clone(),
        metrics: args.metrics.clone(),
        all_metrics: args.all_metrics,
        all_pairs: args.all_pairs,
        alone: true,
        failures: args.failures.map(Failures::rule),
        ..analyse::Options::default()
    };
    let options = report::Options {
        hide_below_pct: args.hide_below,
        all_metrics: args.all_metrics,
        detail: detail(args.verbose, format),
        named_metrics: !args.metrics.is_empty(),
        gate: args.fail_if.map(FailIf::gate),
    };
    say_hidden(args.hide_below, format);
    let load = |name: &String| loaded(args, name, &wishes).map(|run| (name.clone(), run));
    let mut runs = named.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    // A report of a file needs no store; where there is one, it may know the noise floor.
    let store = args.database.db.exists().then(|| args.database.read().ok()).flatten();
    if runs.len() > 1 {
        return several(args, runs, &wishes, &options, store.as_ref());
    }
    let (name, run) = runs.remove(0);
    fitted(&wishes, &run).check_deltas(&run).map_err(|error| {
        Failure::request(error).hint(format!("`assay show {name}` lists what the run has"))
    })?;
    let analysis = judge(&run, &wishes, store.as_ref());
    let watched = store.as_ref().and_then(|store| watched_run_of(store, &run));
    let document = Document::explained(&run, &analysis, watched.as_ref(), &options);
    if let Some(directory) = &args.pictures {
        pictures::write(&document, directory, args.output.force)?;
    }
    write(&document, format, &args.output, args.raw_cells)?;
    fail_if(args.fail_if, &analysis, None)
}

/// A run that can be judged as the command line wishes.
fn loaded(args: &Args, name: &str, wishes: &analyse::Options) -> Result<Run, Failure> {
    let run = args.database.load_for_report(name)?;
    if run.is_probe() {
        return Err(Failure::request(format!("run {name} is a probe: it compares nothing"))
            .hint(format!("`assay show {name} --values` prints it; reports of other runs compare with it")));
    }
    is_no_search(&run, name)?;
    fitted(wishes, &run).check(&run).map_err(|error| {
        Failure::request(error).hint(format!("`assay show {name}` lists what the run has"))
    })?;
    Ok(run)
}

/// What several runs say; the exit code is the largest.
fn several(
    args: &Args,
    runs: Vec<(String, Run)>,
    wishes: &analyse::Options,
    options: &report::Options,
    store: Option<&Store>,
) -> anyhow::Result<ExitCode> {
    if args.pictures.is_some() {
        return Err(Failure::request("--pictures writes those of one run").hint("give one run").into());
    }
    let begun = |run: &Run| run.design.together.map(|together| together.begun_unix_ns);
    let latest = runs.iter().filter_map(|(_, run)| begun(run)).max();
    let failure = |run: &Run| match run.state {
        RunState::Interrupted => Some("interrupted".to_owned()),
        _ if run.failures().next().is_some() => Some("some trials failed".to_owned()),
        RunState::Failed => Some("it did not come to its end".to_owned()),
        _ if begun(run) < latest && begun(run).is_some() => {
            let when = run.started_unix_ns;
            let when =
                local_time::minute(when).map(|time| format!(": this is of {time}")).unwrap_or_default();
            Some(format!("not run with the others{when}"))
        }
        _ => None,
    };
    // Of several runs one may have the metric and another one not.
    for (name, run) in &runs {
        if let Err(unknown) = fitted(wishes, run).check_deltas(run) {
            terminal::tell(&format!("note: {name}: {unknown}"));
        }
    }
    let reported = |(name, run): (String, Run)| Reported { name, failure: failure(&run), run: Some(run) };
    let all: Vec<Reported> = runs.into_iter().map(reported).collect();
    let has_failures = all.iter().any(|one| one.failure.is_some());
    let format = format_of(args.format, &args.output)?;
    let judged = overview::write(&all, wishes, options, format, &args.output, store, args.raw_cells)?;
    let mut largest = 0;
    for (analysis, run) in judged.iter().zip(all.iter().filter_map(|one| one.run.as_ref())) {
        let name = format!("run {} ({})", run.id.unwrap_or_default(), run.name);
        let code = fail_if(args.fail_if, analysis, Some(&name)).unwrap_or_else(|error| report_error(&error));
        largest = largest.max(number_of(code));
    }
    if args.fail_if.is_some() && has_failures {
        largest = largest.max(1);
    }
    Ok(ExitCode::from(largest))
}

/// Refuses a search, whose steps were run too seldom to be judged as arms.
///
/// # Errors
/// A [`Failure`] with exit code 2.
pub(super) fn is_no_search(run: &Run, name: &str) -> Result<(), Failure> {
    match run.design.bisects {
        None => Ok(()),
        Some(_) => {
            Err(Failure::request(format!("run {name} is a search: most of its steps were hardly run"))
                .hint(format!("`assay bisect --show {name}` prints its answer")))
        }
    }
}

/// Says where `--hide-below` changes nothing.
pub(super) fn say_hidden(hide_below: Option<f64>, format: Format) {
    if hide_below.is_some() && format != Format::Lkml {
        terminal::tell("assay: --hide-below changes nothing here: it is about the tables of --format lkml");
    }
}

/// The format asked for: by name, by the file's ending, else text.
///
/// # Errors
/// A [`Failure`] with exit code 2: an ending that stands for no format.
pub(super) fn format_of(format: Option<Format>, output: &Output) -> Result<Format, Failure> {
    let Some(file) = output.file.as_ref().filter(|_| format.is_none()) else {
        return Ok(format.unwrap_or(Format::Text));
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match (Format::from_file_name(&name), file.extension()) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(Format::Text),
        (None, Some(ending)) => Err(Failure::request(format!(
            "{}: no report format has the ending .{}; write .txt, .html, .md, .json, .csv, .lkml, .mmtests or .xml (JUnit)",
            file.display(),
            ending.to_string_lossy()
        ))
        .hint("--format NAME says it whatever the file is called")),
    }
}

/// How much a report in a format says: text fits one screen, and a mail is read on one, unless everything is asked for.
pub(super) fn detail(verbose: bool, format: Format) -> Detail {
    match format {
        _ if verbose => Detail::All,
        Format::Text | Format::Lkml => Detail::Screen,
        _ => Detail::Page,
    }
}

/// Writes a document in a format. Colour only on a terminal.
pub(super) fn write(
    document: &Document<'_>,
    format: Format,
    output: &Output,
    raw_cells: bool,
) -> anyhow::Result<()> {
    let colour = output.file.is_none() && terminal::colours();
    let form = match format {
        Format::Json => Form::Json,
        Format::Csv if raw_cells => Form::Raw,
        Format::Text if colour => Form::Styled,
        _ => Form::Plain,
    };
    let text = report::render_with(document, format, RenderOptions { colour, raw_cells, width: None });
    output.write(&text, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_with_or_without_their_sign() {
        assert_eq!(parse_percent("5"), Ok(5.0));
        assert_eq!(parse_percent("2.5 %"), Ok(2.5));
        assert!(
            parse_percent("-1").is_err() && parse_percent("NaN").is_err() && parse_percent("five").is_err()
        );
    }
}
