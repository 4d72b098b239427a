//! The verdict at the end of a session: the report on standard output, pictures where they were asked for.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::args::Args;
use crate::analyse::{self, Analysis, Caveat, Comparison, Role, Verdict};
use crate::cli::Failure;
use crate::cli::compare::check_primary;
use crate::cli::database::wrong;
use crate::cli::fail_if::{FailIf, fail_if, not_comparable, nothing_measured};
use crate::cli::judge::judge;
use crate::cli::output::Output;
use crate::cli::report::{detail, write};
use crate::record::{
    FailureKind, FailureRule, Metric, Note, Run, RunState, SoFar, Status, Trial, deciding_metrics,
};
use crate::report::{self, Document, Format, Overview, OverviewPart, RenderOptions};
use crate::store::Store;
use crate::sys::terminal::{self, Form, tell};

/// What was measured so far says this.
pub(super) fn of(args: &Args, store: &Store, run: &Run) -> Analysis {
    judge(run, &wishes(args), Some(store))
}

/// What the command line wants to know.
pub(super) fn wishes(args: &Args) -> analyse::Options {
    analyse::Options {
        all_metrics: args.all_metrics,
        all_pairs: args.all_pairs,
        alone: true,
        ..analyse::Options::default()
    }
}

/// Prints the report of what was measured so far.
///
/// # Errors
/// An output that cannot be written.
pub(super) fn print(
    args: &Args,
    store: &Store,
    run: &Run,
    analysis: &Analysis,
    watched: Option<&Run>,
) -> anyhow::Result<()> {
    if let (Some(SoFar { rounds, of }), Some(id)) = (analysis.so_far(), run.id) {
        // Whoever reads the verdict later shall know that figures were seen before it.
        let look = format!("looked at before its end, after {rounds} of {of} rounds");
        let notes: Vec<Note> = run.notes.iter().cloned().chain([look.into()]).collect();
        store.set_notes(id, &notes).map_err(|error| wrong(&error))?;
    }
    let document = Document::explained(run, analysis, watched, &options(args, args.format));
    let among = args.among.as_ref().filter(|among| among.has_others);
    match (among, args.format) {
        // All of them become one document.
        (Some(_), Format::Json | Format::Html | Format::Markdown | Format::Csv | Format::Junit) => Ok(()),
        (Some(among), Format::Text) if among.together.sharing_alpha > 1 && !args.verbose => {
            let part = OverviewPart { name: &run.name, document: Some(document), failure: None };
            let colour = terminal::colours();
            let text =
                Overview { parts: vec![part] }.body(RenderOptions { colour, ..RenderOptions::default() });
            Output::default().write(&text, if colour { Form::Styled } else { Form::Plain })
        }
        _ => write(&document, args.format, &Output::default(), false),
    }
}

/// Prints what watching a run's cells has shown, below its verdict.
///
/// # Errors
/// An output that cannot be written.
pub(super) fn explain(args: &Args, run: &Run, analysis: &Analysis, watched: &Run) -> anyhow::Result<()> {
    let document = Document::explanation(run, analysis, watched, &options(args, Format::Text));
    write(&document, Format::Text, &Output::default(), false)
}

/// Writes the file of `-o` if one is wanted, and says where the report is.
///
/// # Errors
/// An output that cannot be written.
pub(super) fn page(args: &Args, run: &Run, analysis: &Analysis, watched: Option<&Run>) -> anyhow::Result<()> {
    if let Some((output, format)) = args.file()? {
        let document = Document::explained(run, analysis, watched, &options(args, format));
        write(&document, format, &output, false)?;
        writeln!(terminal::err(), "\n{}", is_written(&output, format))?;
    } else if run.state == RunState::Finished
        && !args.quiet
        && args.among.as_ref().is_none_or(|among| !among.has_others)
    {
        let id = run.id.unwrap_or_default();
        let db = super::conduct::database_flag(&args.database.db);
        writeln!(
            terminal::err(),
            "\nrun {id} is stored; with pictures: assay report {id}{db} -o report.html"
        )?;
    }
    Ok(())
}

/// Where the report is, for the last line of a run.
pub(super) fn is_written(output: &Output, format: Format) -> String {
    let file = output.file.as_deref().unwrap_or(Path::new("-")).display();
    let what = if format == Format::Html { "report with pictures" } else { "report" };
    format!("{what}: {file}")
}

/// What the command line wants to read.
pub(super) fn options(args: &Args, format: Format) -> report::Options {
    report::Options {
        all_metrics: args.all_metrics,
        detail: detail(args.verbose, format),
        gate: args.fail_if.map(FailIf::gate),
        ..report::Options::default()
    }
}

/// Whether the metric that shall decide was measured; nothing can be said before a trial has ended.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names the nearest.
pub(super) fn primary_is_known(run: &Run) -> Result<(), Failure> {
    if run.metrics.is_empty() || !run.trials.iter().any(|trial| trial.status == Status::Done) {
        return Ok(());
    }
    let metrics = analyse::metrics_of(run);
    check_primary(run.design.primary.as_deref(), &metrics).map_err(|failure| of_hooks(run, &metrics, failure))
}

/// Begins what hooks report: only a trial shows whether they do.
const OF_HOOKS: &str = "hook.";

/// A wish for what no hook gave is no wrong request: the hooks failed to print it.
fn of_hooks(run: &Run, metrics: &[Metric], failure: Failure) -> Failure {
    let primary = run.design.primary.as_deref().unwrap_or_default();
    let given: Vec<&str> =
        metrics.iter().map(|metric| metric.name.as_str()).filter(|name| name.starts_with(OF_HOOKS)).collect();
    let wished = deciding_metrics(primary, |name| given.contains(&name)).into_iter().map(|(_, name)| name);
    let missing: Vec<&str> =
        wished.filter(|name| name.starts_with(OF_HOOKS) && !given.contains(name)).collect();
    if missing.is_empty() {
        return failure;
    }
    let given = if given.is_empty() { "nothing".to_owned() } else { given.join(", ") };
    let id = run.id.unwrap_or_default();
    Failure::tool(format!("no hook gave {}, which decides; hooks gave {given}", missing.join(", "))).hint(format!(
        "a hook writes NAME=VALUE to $ASSAY_METRICS (assay help jobs); assay show {id} --files DIR has what hooks printed"
    ))
}

/// 1 when data were wrong, 3 when `--fail-if` holds, 1 when a trial failed for good or arms are not comparable, else 0.
///
/// # Errors
/// A [`Failure`] with exit code 1.
pub(super) fn exit_code(args: &Args, run: &Run, analysis: &Analysis) -> anyhow::Result<ExitCode> {
    let wrong = wrong_data(run);
    if wrong.is_some() || run.failures().next().is_some() {
        let id = run.id.unwrap_or_default();
        let db = super::conduct::database_flag(&args.database.db);
        let is_wrong = wrong.is_some();
        let what = wrong.unwrap_or_else(|| {
            let said = match run.design.failures {
                FailureRule::Compare => "some trials failed; their rounds do not count",
                FailureRule::Worst => "some trials failed",
            };
            said.to_owned()
        });
        let hint = format!("assay show {id}{db} has their commands and last output{}", once_mended(run, &db));
        // What a gate asks for is known: that is the answer, and the failures are beside it.
        if !is_wrong && args.fail_if.is_some_and(|condition| condition.holds(analysis)) {
            tell(&format!("assay: {what}\nhint: {hint}"));
            return fail_if(args.fail_if, analysis, None);
        }
        return Err(Failure::tool(what).hint(hint).into());
    }
    if let Some(failure) = not_comparable(args.fail_if, analysis, "") {
        let id = run.id.unwrap_or_default();
        let db = super::conduct::database_flag(&args.database.db);
        return Err(failure
            .hint(format!(
                "assay show {id}{db} has the failed trials; assay report {id}{db} --failures worst counts each as \
                 worse than any value"
            ))
            .into());
    }
    if let Some((reason, hint)) = nothing_compared(run, analysis) {
        return Err(Failure::tool(format!("nothing was compared: {reason}")).hint(hint).into());
    }
    fail_if(args.fail_if, analysis, None)
}

/// How failures are made good that would have come again at once, if there are any.
pub(super) fn once_mended(run: &Run, database: &str) -> String {
    let id = run.id.unwrap_or_default();
    match run.failures().any(Trial::is_lasting) {
        true => format!("; once their cause is gone, assay run --resume {id}{database} tries again"),
        false => String::new(),
    }
}

/// That trials found data that are not what was written, if any did.
pub(super) fn wrong_data(run: &Run) -> Option<String> {
    let wrong = |status: &Status| matches!(status, Status::Failed { kind: FailureKind::WrongData, .. });
    let led = run.lead_ins.iter().filter(|lead_in| lead_in.wrong_data).count();
    match run.trials.iter().filter(|trial| wrong(&trial.status)).count() + led {
        0 => None,
        1 => Some("verification failed: one trial found data that are not what was written".to_owned()),
        trials => {
            Some(format!("verification failed: {trials} trials found data that are not what was written"))
        }
    }
}

/// Why no row has both its arms, when that is because cells were skipped or every round thrown out, and what helps.
fn nothing_compared<'r>(run: &'r Run, analysis: &'r Analysis) -> Option<(&'r str, &'static str)> {
    let compared = |c: &Comparison| c.role == Role::Primary && !matches!(c.verdict, Verdict::NotMeasured(_));
    if analysis.comparisons.iter().any(compared) {
        return None;
    }
    run.trials
        .iter()
        .find_map(|trial| match (&trial.status, &trial.excluded) {
            (Status::Skipped { reason }, _) => {
                Some((reason.as_str(), "change the level that cannot be run here, or take it out"))
            }
            (_, Some(reason)) => Some((
                reason.as_str(),
                "run it when the machine is calm, or count such rounds: --keep-disturbed",
            )),
            _ => None,
        })
        .or_else(|| {
            let refused = |caveat: &Caveat| matches!(caveat, Caveat::QuantileRefused { .. });
            let deciding = analysis.comparisons.iter().filter(|found| found.role == Role::Primary);
            let is_refused = deciding.flat_map(|found| &found.caveats).any(refused);
            let why = nothing_measured(analysis).filter(|_| is_refused)?;
            Some((why, "a longer runtime= gives it more operations; --primary names a lower quantile"))
        })
}
