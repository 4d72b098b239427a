//! `--plan`: what would be run, written and erased, with which tools, and how long it can take.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::prepare::Prepared;
use super::watching;
use crate::catalog::Runs;
use crate::cli::recipes::hanging;
use crate::launch::Forecast;
use crate::plan::{Expected, Writes};
use crate::record::{StopRule, deltas_in_words};
use crate::units::{Unit, counted, format_number, pretty_duration};

/// Prints the plan to standard output, with what booting its guests will cost, and what explaining it afterwards.
///
/// # Errors
/// A closed pipe.
pub(super) fn print(
    prepared: &Prepared,
    ahead: Option<&Forecast>,
    explain: bool,
    kernels: &[String],
) -> std::io::Result<Option<f64>> {
    let mut out = crate::sys::terminal::out();
    let plan = &prepared.plan;
    writeln!(out, "{}: nothing has been run, written or erased", prepared.run.name)?;
    writeln!(out, "\ncells ({})", plan.cells.len())?;
    for (number, cell) in plan.cells.iter().enumerate() {
        let arm = &plan.factors[plan.compare].levels[cell.levels[plan.compare] as usize];
        let role = if cell.levels[plan.compare] == 0 { "baseline" } else { "candidate" };
        writeln!(out, "  {number:>3}  {}  ({role} {arm})", cell.label)?;
    }
    writeln!(out, "\norder (seed {}; drawn anew for each round)", plan.seed)?;
    for round in 0..plan.rounds_at_most().min(4) {
        let order: Vec<String> = plan.order(round).iter().map(ToString::to_string).collect();
        writeln!(out, "  round {}: {}", round + 1, shortened(&order))?;
    }
    lead_ins(&mut out, prepared)?;
    stopping(&mut out, prepared)?;
    targets(&mut out, prepared)?;
    files(&mut out, prepared)?;
    runs(&mut out, prepared)?;
    tools(&mut out, prepared)?;
    if !kernels.is_empty() {
        writeln!(out, "\nkernels built before the first trial, kept in the cache")?;
    }
    for line in kernels {
        hanging("  ", line).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    if let Some(ahead) = ahead {
        boots(&mut out, prepared, ahead)?;
    }
    let (expected, busy) = super::busy::outlook(prepared);
    if let Some(why) = busy {
        writeln!(out, "\nbusy machine at this moment")?;
        hanging("  ", &why).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    let expected = super::busy::with_guests(expected, ahead);
    let longest_s = longest(&mut out, prepared, &expected)?;
    if explain {
        explaining(&mut out, prepared, &expected)?;
    }
    Ok(longest_s)
}

/// How long several runs take, one after the other.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn print_all(longest_s: &[Option<f64>]) -> std::io::Result<()> {
    let known: Option<f64> = longest_s.iter().copied().sum();
    let time = known.map_or_else(|| "of some nobody knows".to_owned(), pretty_duration);
    writeln!(
        crate::sys::terminal::out(),
        "all {} runs, one after the other\n  longest time: {time}",
        longest_s.len()
    )
}

/// What `--explain` does after the verdict.
fn explaining(out: &mut impl Write, prepared: &Prepared, expected: &Expected) -> std::io::Result<()> {
    writeln!(out, "\nafter the verdict, to explain it")?;
    let Some((trials, seconds)) = watching::foretold(prepared, expected) else {
        let why = "nothing: a level of this run says itself what is watched, or there are too many cells";
        return hanging("  ", why).iter().try_for_each(|line| writeln!(out, "{line}"));
    };
    let more = seconds.map_or_else(
        || "as long as they take".to_owned(),
        |s| format!("{} more at most", pretty_duration(s)),
    );
    writeln!(
        out,
        "  {} rounds of each cell, unwatched and watched ({trials} trials): {more}",
        watching::ROUNDS
    )
}

/// How long it takes with all rounds, and where the first look at the results decides everything.
fn longest(out: &mut impl Write, prepared: &Prepared, expected: &Expected) -> std::io::Result<Option<f64>> {
    let plan = &prepared.plan;
    let rounds = plan.rounds_at_most();
    writeln!(out, "\nlongest time")?;
    let Some(seconds) = plan.longest_s(rounds, expected) else {
        let ends = match plan.cells.iter().any(|cell| cell.engine.descriptor().runs == Runs::Command) {
            true => "a command ends when it is done",
            false => "a job without runtime ends when its amount of I/O is done",
        };
        let said = match plan.stop.time_budget_s {
            Some(budget) => format!(
                "{} and what the last trial takes, by the time budget: {ends}",
                pretty_duration(budget)
            ),
            None => format!("unknown: {ends}; --time-budget 10m bounds it"),
        };
        hanging("  ", &said).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        return Ok(plan.stop.time_budget_s);
    };
    let mut said = pretty_duration(seconds);
    let first = prepared.first_look.filter(|first| *first < rounds);
    if let Some((first, sooner)) = first.and_then(|first| Some((first, plan.longest_s(first, expected)?))) {
        said.push_str(&format!("; {} where round {first} decides every row", pretty_duration(sooner)));
    }
    if expected.rounds_for_one > 1.0 {
        said.push_str(
            "; on a machine as busy as now some rounds are thrown out and made up for, which is counted",
        );
    }
    if prepared.surroundings.before.is_some() || prepared.surroundings.after.is_some() {
        said.push_str("; hooks come on top");
    }
    hanging("  ", &said).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Some(seconds))
}

/// `2 guests, about 2 s each (as the last one)` and, in a second line, what runs them.
pub(super) fn guests(ahead: &Forecast) -> String {
    let word = if ahead.guests == 1 { "guest" } else { "guests" };
    let each = pretty_duration(ahead.boot_s);
    let known = if ahead.measured { "as the last one" } else { "a guess" };
    format!("{} {word}, about {each} each ({known})\n  {}", ahead.guests, ahead.accelerator)
}

/// How often guests are booted, and how long that takes.
fn boots(out: &mut impl Write, prepared: &Prepared, ahead: &Forecast) -> std::io::Result<()> {
    if ahead.once {
        writeln!(out, "\nboots, once for all trials")?;
        writeln!(out, "  {}", guests(ahead))?;
    } else {
        let tried = u64::from(ahead.again);
        let count = u64::from(ahead.guests) * (u64::from(prepared.plan.rounds_at_most()) + tried);
        let also = if ahead.again { ", and once before: they do not fit side by side" } else { "" };
        writeln!(out, "\nboots, each guest once a round{also}")?;
        writeln!(out, "  {}", guests(ahead))?;
        writeln!(out, "  {count} boots at most: {}", pretty_duration(count as f64 * ahead.boot_s))?;
    }
    if ahead.emulated {
        writeln!(out, "  times under emulation are no measurement of the hardware")?;
    }
    Ok(())
}

fn shortened(order: &[String]) -> String {
    const MOST: usize = 16;
    let more = if order.len() > MOST { " …" } else { "" };
    format!("{}{more}", order[..order.len().min(MOST)].join(" "))
}

/// What leads into each round, and what that takes.
fn lead_ins(out: &mut impl Write, prepared: &Prepared) -> std::io::Result<()> {
    if !prepared.plan.lead_in {
        return Ok(());
    }
    writeln!(
        out,
        "  into each round: one trial that is not judged, of the cell that goes first;\n  \
         what a trial leaves behind then falls on all arms alike;\n  \
         it takes 1/{} of the time, and --no-lead-in goes without it",
        prepared.plan.cells.len() + 1
    )
}

fn stopping(out: &mut impl Write, prepared: &Prepared) -> std::io::Result<()> {
    let plan = &prepared.plan;
    let StopRule { delta, alpha, .. } = prepared.run.design.stop;
    let rounds = match plan.stop.rounds {
        Some(rounds) => format!("after {} exactly", counted(rounds.into(), "round")),
        None => format!("as soon as every row is decided, at most {} rounds", plan.stop.max_rounds),
    };
    let led =
        if plan.lead_in { format!(" and {} that lead in", plan.rounds_at_most()) } else { String::new() };
    writeln!(out, "\nends\n  {rounds}\n  ({} trials at most{led})", plan.trials_at_most())?;
    let lost = match prepared.keep_disturbed {
        true => "a trial that fails in a way that may pass is tried once more, on top",
        false => {
            "rounds that others disturb are thrown out and made up for, up to as many again, and a trial that fails in a way that may \
                  pass is tried once more: on top"
        }
    };
    hanging("  ", lost).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    let percent = |ratio: f64| format!("{:.3} %", ratio * 100.0);
    let deltas = deltas_in_words(delta, &prepared.run.design.deltas, percent);
    let limits = format!("smallest difference that matters: {deltas}, false claims: {}", percent(alpha));
    hanging("  ", &limits).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if let Some(shows) = &prepared.shows {
        hanging("  ", shows).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    if plan.stop.anytime {
        let said = "the interval holds at any number of looks: `assay run --more N RUN` adds rounds later";
        hanging("  ", said).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    if let Some(budget) = plan.stop.time_budget_s {
        writeln!(out, "  with the trial that passes {}", pretty_duration(budget))?;
    }
    Ok(())
}

/// What is made, what is set, and what is erased for it.
fn targets(out: &mut impl Write, prepared: &Prepared) -> std::io::Result<()> {
    let mut seen: Vec<String> = Vec::new();
    for target in prepared.plan.cells.iter().map(|cell| &cell.target) {
        let lines = target.described();
        if let Some(first) = lines.first().filter(|_| !seen.contains(&lines.join("\n"))) {
            if seen.is_empty() {
                writeln!(out, "\ntargets, put back afterwards")?;
            }
            writeln!(out, "  {first}")?;
            lines.iter().skip(1).try_for_each(|line| writeln!(out, "    {line}"))?;
            seen.push(lines.join("\n"));
        }
    }
    Ok(())
}

fn files(out: &mut impl Write, prepared: &Prepared) -> std::io::Result<()> {
    writeln!(out, "\nmade and removed again")?;
    for path in &prepared.work {
        writeln!(out, "  {}/", path.display())?;
    }
    let mut by_fate: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in &prepared.plan.files {
        let fate = match (file.path.exists(), file.writes) {
            (true, _) if file.deletes => "\ndeleted (named with --destroy)",
            (true, Writes::Content) => "\noverwritten (named with --destroy)",
            (true, Writes::Layout) => "\nread, as it is",
            (_, Writes::Log) => "\nadded to, and left there",
            (false, _) => "",
        };
        let size =
            file.bytes.map(|b| format!("  {}", format_number(&Unit::Bytes, b as f64))).unwrap_or_default();
        by_fate.entry(fate).or_default().push(format!("  {}{size}", file.path.display()));
    }
    for (path, fate) in fios_files(prepared) {
        by_fate.entry(fate).or_default().push(format!("  {path}"));
    }
    const MOST: usize = 12;
    for (fate, lines) in by_fate {
        if !fate.is_empty() {
            writeln!(out, "{fate}")?;
        }
        for line in lines.iter().take(MOST) {
            writeln!(out, "{line}")?;
        }
        if lines.len() > MOST {
            writeln!(out, "  … and {} more", lines.len() - MOST)?;
        }
    }
    if !prepared.plan.files_known {
        writeln!(out, "  other files that the command or fio writes; assay cannot know them in advance")?;
    }
    Ok(())
}

/// What only fio's options name outside assay's own directories, and what becomes of it.
pub(super) fn fios_files(prepared: &Prepared) -> Vec<(String, &'static str)> {
    const THERE: &str = "\nused by fio, which may overwrite or delete it (named with --destroy)";
    const NEW: &str = "\nmade by fio, and left there";
    let fio = &prepared.plan.fio;
    let outside = |path: &Path| !prepared.work.iter().any(|own| path.starts_with(own));
    let special = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|found| !found.is_file());
    let files = fio.files.iter().chain(fio.devices.iter().filter(special)).filter(|path| outside(path));
    let files = files.map(|path| (path.display().to_string(), if path.exists() { THERE } else { NEW }));
    let beginnings = fio.beginnings.iter().filter(|(directory, _)| outside(directory));
    let beginnings = beginnings.map(|(at, start)| (format!("{}…", at.join(start).display()), NEW));
    let trees = fio.trees.iter().map(|tree| (format!("{}/…", tree.display()), THERE));
    let elsewhere = fio.elsewhere.iter().map(|storage| (storage.names.join(" "), THERE));
    files.chain(beginnings).chain(trees).chain(elsewhere).collect()
}

/// Every command that the trials run: hooks, commands, programs that jobs name.
pub(super) fn commands(prepared: &Prepared) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let surroundings = &prepared.surroundings;
    lines.extend(surroundings.before.iter().map(|hook| format!("{hook}  (before each trial)")));
    for cell in prepared.plan.cells.iter().filter(|cell| cell.engine.descriptor().runs == Runs::Command) {
        let line = shlex::try_join(cell.command.iter().map(String::as_str)).unwrap_or_default();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.extend(prepared.plan.fio.commands.iter().cloned());
    lines.extend(surroundings.after.iter().map(|hook| format!("{hook}  (after each trial)")));
    lines
}

fn runs(out: &mut impl Write, prepared: &Prepared) -> std::io::Result<()> {
    let lines = commands(prepared);
    if !lines.is_empty() {
        writeln!(out, "\nruns")?;
    }
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}

fn tools(out: &mut impl Write, prepared: &Prepared) -> std::io::Result<()> {
    writeln!(out, "\ntools")?;
    for (kind, probe) in &prepared.engines {
        let path = probe.path.as_ref().map(|path| format!("  {}", path.display())).unwrap_or_default();
        writeln!(out, "  engine {}: {}{path}", kind.name(), probe.version)?;
    }
    for tool in &prepared.plan.tools {
        let found = crate::sys::find_program(tool);
        let place = found.map_or_else(|| "not found".to_owned(), |path| path.display().to_string());
        writeln!(out, "  {tool}: {place}")?;
    }
    Ok(())
}
