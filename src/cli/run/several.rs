//! Several runs of one command, one after the other: files, a directory of files, the parts of a recipe.
//!
//! Enters: what the command line names. Leaves: one [`Part`] a run, with options of its own; later what all of them say. One that fails
//! keeps no other from being run.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use super::among::Among;
use super::args::Args;
use super::conduct::database_flag;
use super::prepare::{Prepared, now_unix_ns};
use super::source::Source;
use super::verdict::{is_written, options, wishes};
use super::{judged, place};
use crate::cli::Failure;
use crate::cli::fail_if::HOLDS;
use crate::cli::failure::{number_of, report_error};
use crate::cli::output::Output;
use crate::cli::overview::{self, Reported};
use crate::record::Together;
use crate::report::Format;
use crate::store::Store;
use crate::sys::terminal::tell;
use crate::workload::Hint;

/// One run.
pub(super) struct Part {
    /// Where it is written.
    pub(super) source: Source,
    /// What it is called among the others.
    label: String,
    /// Its options.
    pub(super) args: Args,
}

/// The runs that the command line asks for, at least one, planned; nothing was touched.
///
/// # Errors
/// A [`Failure`] with exit code 2: neither file nor recipe, a directory without experiments, or what is wrong with each of them.
pub(super) fn prepared(args: &Args) -> Result<Vec<(Part, Prepared)>, Failure> {
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    for part in parts(args)? {
        match place::prepared(&part.args, &part.source) {
            Ok(prepared) => all.push((part, prepared)),
            Err(failure) => refused.push(part.refused(failure)),
        }
    }
    // One is told with what helps against it; of several each with its own.
    match &refused[..] {
        [] => Ok(all),
        [_] => Err(refused.remove(0)),
        several => {
            let told = |one: &Failure| match one.hinted() {
                Some(hint) => format!("\n- {one} ({hint})"),
                None => format!("\n- {one}"),
            };
            let told: String = several.iter().map(told).collect();
            Err(Failure::request(format!("{} of the files cannot be run:{told}", several.len())))
        }
    }
}

fn parts(args: &Args) -> Result<Vec<Part>, Failure> {
    let mut sources = Vec::new();
    for word in &args.files {
        sources.extend(Source::all(word, args.quiet)?);
    }
    if sources.is_empty() {
        sources.push(Source::CommandLine);
    }
    let labels = labels(&sources);
    if let Some(label) = twice(&labels).or_else(|| clashing(args, &sources)) {
        return Err(Failure::request(format!("two of the runs would be called {label}"))
            .hint("name each file once; with --name the names of the files tell runs apart, from night to night, too"));
    }
    let (runs, has_others) = (sources.len(), sources.len() > 1);
    // The parts of a recipe ask different questions, each with an error of its own.
    let is_recipe = args.files.len() == 1 && sources.iter().all(Source::is_of_a_recipe);
    let sharing_alpha = if is_recipe { 1 } else { sources.len() as u32 };
    let together = Together { begun_unix_ns: now_unix_ns(), sharing_alpha };
    let is_suite = has_others || args.files.iter().any(|file| file.is_dir());
    let part = |(source, label): (Source, String)| {
        let own = source.own_word();
        let among = Among { words: args.files.clone(), own, together, has_others };
        let one = match is_suite {
            true => args.of_part(among, &label, runs, !is_recipe),
            false => args.clone(),
        };
        Part { source, label, args: one }
    };
    Ok(sources.into_iter().zip(labels).map(part).collect())
}

/// A label that two have.
fn twice(labels: &[String]) -> Option<String> {
    labels
        .iter()
        .enumerate()
        .find(|(at, label)| labels[..*at].contains(label))
        .map(|(_, label)| label.clone())
}

/// With `--name`, a short name that two have: the next night one of them might be there alone, and have it.
fn clashing(args: &Args, sources: &[Source]) -> Option<String> {
    let name = args.asked.name.as_ref()?;
    let all: Vec<String> = sources.iter().map(short).collect();
    twice(&all).map(|label| named(name, &label))
}

/// `nightly/wal`, also of `nightly/`.
fn named(name: &str, label: &str) -> String {
    format!("{}/{label}", name.trim_end_matches('/'))
}

fn short(source: &Source) -> String {
    match source {
        Source::File(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        source => source.own_word().rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

/// The last part of each name, or the whole where two have the same.
fn labels(sources: &[Source]) -> Vec<String> {
    let all: Vec<String> = sources.iter().map(short).collect();
    let is_one = |label: &String| all.iter().filter(|other| *other == label).count() == 1;
    let label =
        |(source, label): (&Source, &String)| if is_one(label) { label.clone() } else { source.own_word() };
    sources.iter().zip(&all).map(label).collect()
}

impl Args {
    /// The options of one of so many runs: they share the time and α, have names and reports together, and compare what was asked of all.
    fn of_part(&self, among: Among, label: &str, runs: usize, one_question: bool) -> Args {
        let mut args = self.with_share_of_time(runs);
        args.asked.name = self.asked.name.as_ref().map(|name| named(name, label));
        if among.has_others {
            (args.html, args.output) = (None, None);
        }
        // A file's own factors become rows, as those of a recipe.
        let asked = self.asked.vary.first().and_then(|vary| vary.split_once('='));
        if one_question && args.asked.compare.is_none() {
            args.asked.compare = asked.map(|(factor, _)| factor.trim().to_owned());
        }
        args.among = Some(among);
        args
    }
}

impl Part {
    /// Why it cannot be run, named among the others.
    pub(super) fn refused(&self, failure: Failure) -> Failure {
        if self.args.among.as_ref().is_none_or(|among| !among.has_others) {
            return failure;
        }
        let own = self.source.own_word();
        match &self.source {
            Source::Recipe(_) if failure.hinted().is_none_or(Hint::is_page) => failure.of(&own).hint(
                format!("`assay run {own}` is one of the recipe's runs by itself, with settings of its own"),
            ),
            // Mistakes in a file have its name already.
            _ if failure.to_string().starts_with(&own) => failure,
            _ => failure.of(&own),
        }
    }
}

/// Executes the runs until the user has enough, which may also be while the verdict of one is printed, and says what all of them say.
/// The exit code is the largest.
///
/// # Errors
/// A [`Failure`]: somebody interrupted, or an output that cannot be written.
pub(super) fn execute(
    args: &Args,
    runs: Vec<(Part, Prepared)>,
    store: &mut Store,
    cancelled: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let commands: Vec<(String, String)> =
        runs.iter().map(|(part, prepared)| (part.label.clone(), alone(prepared))).collect();
    let of = runs.len();
    let mut held = Vec::new();
    let mut ended: Vec<Reported> = Vec::new();
    let runs = runs.into_iter().map(|(part, prepared)| (part.source.own_word(), (part, prepared)));
    let result = one_after_the_other(runs, cancelled, |name, (part, mut prepared)| {
        if !args.quiet {
            tell(&format!("\n{} of {of}: {name}", ended.len() + 1));
        }
        prepared.begins_now();
        let code = judged::execute(&part.args, store, &mut prepared, cancelled);
        let failure = code.as_ref().err().map(ToString::to_string);
        if code.as_ref().is_ok_and(|code| number_of(*code) == HOLDS) {
            held.push(name.to_owned());
        }
        let run = prepared.run.id.and_then(|id| store.load_for_report(id).ok());
        ended.push(Reported { name: part.label, run, failure });
        // What is known is on the page, whatever becomes of the others.
        after(page(args, &ended, store), code)
    });
    for (label, command) in &commands[ended.len()..] {
        let failure = Some(format!("not begun; by itself: {command}"));
        ended.push(Reported { name: label.clone(), run: None, failure });
    }
    let result = after(say_all(args, &ended, store), result);
    say_where(args, &ended);
    if let Some(gate) = args.fail_if.filter(|_| !held.is_empty()) {
        tell(&format!("assay: --fail-if {} holds of {}", gate.name(), held.join(", ")));
    }
    result
}

/// What became of the runs, once what they say was written: an output that cannot be written hides no gate and no failure.
fn after(written: anyhow::Result<()>, result: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let Err(error) = written else { return result };
    let code = number_of(report_error(&error));
    result.map(|own| ExitCode::from(number_of(own).max(code)))
}

/// Writes what all of them say.
fn say_all(args: &Args, ended: &[Reported], store: &Store) -> anyhow::Result<()> {
    if ended.iter().any(|one| one.run.is_none()) {
        page(args, ended, store)?;
    }
    let (wishes, options) = (wishes(args), options(args, args.format));
    match args.format {
        Format::Text => overview::write_head(ended, &wishes, &options, Some(store)),
        format @ (Format::Json | Format::Html | Format::Markdown | Format::Csv | Format::Junit) => {
            overview::write(ended, &wishes, &options, format, &Output::default(), Some(store), false)
                .map(drop)
        }
        // Each has been written when it ended.
        Format::Lkml | Format::Mmtests => Ok(()),
    }
}

/// Writes the file of `-o`.
fn page(args: &Args, ended: &[Reported], store: &Store) -> anyhow::Result<()> {
    let Some((output, format)) = args.file()? else { return Ok(()) };
    let options = options(args, format);
    overview::write(ended, &wishes(args), &options, format, &output, Some(store), false).map(drop)
}

/// What runs it by itself, as it would have been run.
fn alone(prepared: &Prepared) -> String {
    shlex::try_join(prepared.run.command_line.iter().map(String::as_str)).unwrap_or_default()
}

/// Says how all of it is read again.
fn say_where(args: &Args, ended: &[Reported]) {
    let ids: Vec<String> =
        ended.iter().filter_map(|one| one.run.as_ref()?.id).map(|id| id.to_string()).collect();
    for one in ended.iter().filter(|one| one.run.is_none()) {
        tell(&format!("{}: {}", one.name, one.failure.as_deref().unwrap_or_default()));
    }
    match args.file().ok().flatten() {
        _ if args.quiet || ids.is_empty() => {}
        Some((output, format)) => tell(&format!("\n{}", is_written(&output, format))),
        None => tell(&format!(
            "\nruns {} are stored; one page with pictures: assay report {}{} -o report.html",
            ids.join(", "),
            ids.join(" "),
            database_flag(&args.database.db)
        )),
    }
}

/// Executes what has a name each, one after the other; of one that fails it says why, and goes on. The exit code is the largest.
///
/// # Errors
/// A [`Failure`] with exit code 130: interrupted.
fn one_after_the_other<R>(
    runs: impl Iterator<Item = (String, R)>,
    cancelled: &AtomicBool,
    mut execute: impl FnMut(&str, R) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let mut largest = 0;
    for (name, run) in runs {
        if cancelled.load(Ordering::SeqCst) {
            return Err(Failure::interrupted(format!("interrupted before {name} was begun")).into());
        }
        let ended = match execute(&name, run) {
            Err(error) if cancelled.load(Ordering::SeqCst) => return Err(error),
            Err(error) => report_error(&error),
            Ok(code) => code,
        };
        largest = largest.max(number_of(ended));
    }
    Ok(ExitCode::from(largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_while_a_verdict_is_printed_ends_all_of_them() {
        let cancelled = AtomicBool::new(false);
        let runs = || {
            ["journal-flush/dbench", "journal-flush/fs_mark"].map(|name| (name.to_owned(), ())).into_iter()
        };
        let mut begun = Vec::new();
        let ended = one_after_the_other(runs(), &cancelled, |name, ()| {
            begun.push(name.to_owned());
            Ok(ExitCode::from(if begun.len() == 1 { 3 } else { 0 }))
        });
        assert_eq!((ended.unwrap(), begun.len()), (ExitCode::from(3), 2));
        begun.clear();
        let ended = one_after_the_other(runs(), &cancelled, |name, ()| {
            begun.push(name.to_owned());
            cancelled.store(true, Ordering::SeqCst);
            Ok(ExitCode::SUCCESS)
        });
        let error = ended.unwrap_err();
        let failure = error.downcast_ref::<Failure>().unwrap();
        assert_eq!((failure.code(), begun.len()), (130, 1));
        assert_eq!(failure.to_string(), "interrupted before journal-flush/fs_mark was begun");
    }

    #[test]
    fn one_that_fails_keeps_no_other_from_being_run() {
        let runs = ["a", "b", "c"].map(|name| (name.to_owned(), ())).into_iter();
        let mut begun = 0;
        let ended = one_after_the_other(runs, &AtomicBool::new(false), |name, ()| {
            begun += 1;
            match name {
                "a" => Err(Failure::tool("a trial failed").into()),
                _ => Ok(ExitCode::SUCCESS),
            }
        });
        assert_eq!((ended.unwrap(), begun), (ExitCode::from(1), 3));
    }

    #[test]
    fn labels_are_short_where_that_tells_them_apart() {
        let of =
            |files: &[&str]| labels(&files.iter().map(|file| Source::File(file.into())).collect::<Vec<_>>());
        assert_eq!(of(&["suite/wal.fio", "suite/db.toml"]), ["wal", "db"]);
        assert_eq!(of(&["a/wal.fio", "b/wal.fio", "c.fio"]), ["a/wal.fio", "b/wal.fio", "c"]);
    }
}
