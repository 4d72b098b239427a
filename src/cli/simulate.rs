//! `assay simulate` (hidden; `make simulate`): reprints METHODOLOGY's simulation tables from the shipped code.
//!
//! Enters: how many replicates. Leaves: the tables on standard output, and exit code 1 when a figure is off.
//! Nothing is re-implemented: a replicate's order is that of [`crate::plan`], it ends when [`crate::analyse::decided`] says
//! stop, and its verdict is [`crate::analyse::analyse`]'s.

mod anytime;
mod bisect;
mod few_rounds;
mod model;
mod noise;
mod noise_table;
mod places;

use std::fmt::Write as Text;
use std::io::Write;
use std::process::ExitCode;

use anytime::Anytime;
use bisect::Searches;
use few_rounds::FewRounds;
use model::Model;
use noise::Kind;
use noise_table::NoiseTable;
use places::Places;

use crate::plan::Plan;
use crate::record::StopRule;
use crate::stats::descriptive::mean;

/// A part of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// Searches of `assay bisect`
    Bisect,
}

/// Options of `assay simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    args: Args,
    /// Only this part
    #[arg(long)]
    only: Option<Only>,
}

/// How much is simulated.
#[derive(Debug, clap::Args)]
struct Args {
    /// Simulated experiments a cell of the table
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    replicates: u32,
    /// Seed of everything
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Args {
    /// How much wider chance makes a tolerance that is for 4,000 replicates. More of them narrow none: the published figures are rounded.
    fn chance(&self) -> f64 {
        (4000.0 / f64::from(self.replicates)).sqrt().max(1.0)
    }
}

/// Percents may be off by this many points: two standard errors at 4,000 replicates are 1.6 at worst.
const POINTS: f64 = 2.0;
/// Mean rounds may be off by this many; the published figures are rounded to half a round.
const ROUNDS: f64 = 1.0;

const CVS: [f64; 3] = [0.01, 0.03, 0.10];
const EFFECTS: [f64; 4] = [0.0, 0.02, 0.05, 0.10];
/// Claims in percent, by CV and effect: false at 0, right elsewhere.
const CLAIMS: [[f64; 4]; 3] = [[2.9, 95.0, 98.0, 99.0], [4.6, 35.0, 93.0, 99.0], [4.5, 6.0, 23.0, 70.0]];
/// Mean rounds until the run stopped, by CV and effect.
const MEAN_ROUNDS: [[f64; 4]; 3] =
    [[17.0, 13.0, 9.3, 7.4], [29.0, 26.0, 15.0, 9.7], [29.0, 29.0, 27.0, 21.0]];
/// How far estimates of early claims are beyond the effect, in points; none at no effect.
const BEYOND: [[f64; 4]; 3] = [[0.0, 0.22, 0.16, 0.12], [0.0, 1.82, 0.66, 0.41], [0.0, 9.65, 6.96, 3.79]];
/// False claims in percent of five runs each in blocks, judged by averages that differ by 2 %.
const BLOCKS: [f64; 3] = [39.0, 64.0, 85.0];

/// Simulates, prints and compares.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let start = std::time::Instant::now();
    let args = &options.args;
    let mut out = crate::sys::terminal::out();
    let mut off = match options.only {
        None => verdicts(args, &mut out)?,
        Some(Only::Bisect) => Vec::new(),
    };
    let searches = Searches::simulate(args);
    write!(out, "\n{}", searches.tables())?;
    off.extend(searches.broken());
    for line in &off {
        writeln!(out, "off: {line}")?;
    }
    let (replicates, elapsed_s) = (args.replicates, start.elapsed().as_secs_f64());
    writeln!(out, "{replicates} replicates a cell, seed {}, {elapsed_s:.0} s", args.seed)?;
    if off.is_empty() {
        writeln!(out, "every figure is as near to METHODOLOGY's as it says, and every promise holds")?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// The tables of verdicts, and which of their figures are off.
fn verdicts(args: &Args, out: &mut impl Write) -> anyhow::Result<Vec<String>> {
    let plan = model::cells(1)?;
    let columns: Vec<Column> = CVS.iter().map(|cv| Column::simulate(*cv, &plan, args)).collect();
    out.write_all(table(&columns).as_bytes())?;
    let few = FewRounds::simulate(args)?;
    write!(out, "\n{}", few.tables())?;
    let anytime = Anytime::simulate(args)?;
    write!(out, "\n{}", anytime.tables())?;
    let noises = NoiseTable::simulate(args)?;
    write!(out, "\n{}", noises.table())?;
    let places = Places::simulate(args)?;
    write!(out, "\n{}", places.table())?;
    let mut off = deviations(&columns, args.chance());
    off.extend(few.broken());
    off.extend(anytime.broken());
    off.extend(noises.broken());
    off.extend(places.broken());
    Ok(off)
}

/// The figures of one CV.
struct Column {
    claims: [f64; 4],
    rounds: [f64; 4],
    /// How far the estimates of right claims that stopped early are beyond the effect, in points on average.
    beyond: [f64; 4],
    blocks: f64,
}

impl Column {
    fn simulate(cv: f64, plan: &Plan, args: &Args) -> Column {
        let (mut claims, mut rounds, mut beyond) = ([0.0; 4], [0.0; 4], [0.0; 4]);
        for (at, effect) in EFFECTS.into_iter().enumerate() {
            let model = Model { plan, kind: Kind::Full, cv, effect, stop: StopRule::default() };
            let replicates = in_parallel(args, |seed| model.sequential(seed));
            let counted = replicates.iter().filter(|r| if effect == 0.0 { r.claimed } else { r.right });
            claims[at] = 100.0 * counted.count() as f64 / replicates.len() as f64;
            rounds[at] =
                replicates.iter().map(|r| f64::from(r.rounds)).sum::<f64>() / replicates.len() as f64;
            let early: Vec<f64> = replicates.iter().filter_map(|r| r.beyond).collect();
            beyond[at] = 100.0 * mean(&early);
        }
        let model = Model { plan, kind: Kind::Full, cv, effect: 0.0, stop: StopRule::default() };
        let wrong = in_parallel(args, |seed| model.five_and_five_in_blocks(seed));
        let blocks = 100.0 * wrong.iter().filter(|claimed| **claimed).count() as f64 / wrong.len() as f64;
        Column { claims, rounds, beyond, blocks }
    }
}

/// One result a replicate; the seeds do not depend on the number of threads.
fn in_parallel<T: Send>(args: &Args, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8) as u64;
    let seed = |replicate: u64| args.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(replicate);
    let share = |thread: u64| (thread..u64::from(args.replicates)).step_by(threads as usize);
    std::thread::scope(|scope| {
        let one = &one;
        let spawned: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || share(thread).map(|r| one(seed(r))).collect::<Vec<T>>()))
            .collect();
        let joined = spawned.into_iter().map(|thread| thread.join());
        joined.flat_map(|figures| figures.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

fn table(columns: &[Column]) -> String {
    let mut text = String::from("| | CV 1 % | CV 3 % | CV 10 % |\n|---|---|---|---|\n");
    let mut row = |title: &str, figure: &dyn Fn(&Column) -> String| {
        let figures: Vec<String> = columns.iter().map(figure).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {title} | {} |", figures.join(" | "));
    };
    row("false claims %", &|c| format!("{:.1}", c.claims[0]));
    row("right claims % at a 2 / 5 / 10 % effect", &|c| {
        c.claims[1..].iter().map(|p| format!("{p:.0}")).collect::<Vec<_>>().join("/")
    });
    row("mean rounds at 0/2/5/10 %", &|c| {
        c.rounds.iter().map(|n| format!("{n:.1}")).collect::<Vec<_>>().join("/")
    });
    row("estimates of early claims beyond 2/5/10 %, points", &|c| {
        c.beyond[1..].iter().map(|p| format!("{p:.2}")).collect::<Vec<_>>().join("/")
    });
    row("*for comparison:* 5+5 runs in blocks, claim if the averages differ by 2 %: false claims", &|c| {
        format!("{:.0}", c.blocks)
    });
    text
}

/// Figures that are off, one line each; `chance` is that of [`Args`].
fn deviations(columns: &[Column], chance: f64) -> Vec<String> {
    let mut off = Vec::new();
    let mut check = |what: String, have: f64, want: f64, tolerance: f64| {
        let tolerance = tolerance * chance;
        // NaN is off as well.
        let within = (have - want).abs() <= tolerance;
        if !within {
            off.push(format!("{what}: {have:.2} instead of {want} (± {tolerance:.2})"));
        }
    };
    for (at, column) in columns.iter().enumerate() {
        let cv = 100.0 * CVS[at];
        for (e, effect) in EFFECTS.iter().enumerate() {
            let cell = format!("CV {cv:.0} %, effect {:.0} %", 100.0 * effect);
            check(format!("claims % at {cell}"), column.claims[e], CLAIMS[at][e], POINTS);
            check(format!("mean rounds at {cell}"), column.rounds[e], MEAN_ROUNDS[at][e], ROUNDS);
            if *effect > 0.0 {
                let (have, want) = (column.beyond[e], BEYOND[at][e]);
                check(format!("estimates beyond the effect at {cell}"), have, want, 0.05 + 0.1 * want);
            }
        }
        check(format!("false claims % in blocks at CV {cv:.0} %"), column.blocks, BLOCKS[at], POINTS);
    }
    off
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_named() {
        let published = |at: usize| Column {
            claims: CLAIMS[at],
            rounds: MEAN_ROUNDS[at],
            beyond: BEYOND[at],
            blocks: BLOCKS[at],
        };
        let mut columns: Vec<Column> = (0..3).map(published).collect();
        assert!(deviations(&columns, 1.0).is_empty());
        columns[1].claims[0] = 6.7;
        columns[2].rounds[3] = f64::NAN;
        columns[2].beyond[3] = 3.2;
        let of = |replicates| deviations(&columns, Args { replicates, seed: 1 }.chance());
        let off = of(4_000);
        assert_eq!((of(10_000), of(1_000).len()), (off.clone(), 1), "twice the tolerance at a quarter");
        assert_eq!(off[0], "claims % at CV 3 %, effect 0 %: 6.70 instead of 4.6 (± 2.00)");
        assert!(off.len() == 3 && off[1].starts_with("mean rounds at CV 10 %, effect 10 %"));
        assert_eq!(
            off[2],
            "estimates beyond the effect at CV 10 %, effect 10 %: 3.20 instead of 3.79 (± 0.43)"
        );
        assert!(table(&columns).contains("| 2.9 | 6.7 | 4.5 |"));
    }

    #[test]
    fn threads_do_not_change_the_replicates() {
        let args = Args { replicates: 100, seed: 3 };
        let mut seeds = in_parallel(&args, |seed| seed);
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 100);
        let plan = model::cells(1).unwrap();
        let model =
            Model { plan: &plan, kind: Kind::Full, cv: 0.03, effect: 0.05, stop: StopRule::default() };
        let a = model.sequential(seeds[0]);
        assert_eq!(a, model.sequential(seeds[0]));
    }
}
