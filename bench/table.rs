//! Prints docs/performance.md: what `make bench` measured, as one table of ratios within rounds.
//!
//! Enters: the store with the runs of bench/*.toml, and lines `memory ENGINE BYTES` on standard input. Leaves: Markdown
//! on standard output; exit code 1 when a target is missed. It measures nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use assay::record::{Run, Trial};
use assay::stats::signed_rank;
use assay::stats::walsh::Walsh;
use assay::store::Store;

/// A figure of one trial, if the trial has it.
type Figure = fn(&Run, &Trial) -> Option<f64>;

/// One line of the table: a figure of one level over that of another.
struct Line {
    run: &'static str,
    what: &'static str,
    figure: Figure,
    level: &'static str,
    over: &'static str,
    bound: Bound,
    kind: Kind,
}

/// How rounds become one figure, and what it counts.
#[derive(Clone, Copy)]
enum Kind {
    /// I/Os a second: medians, and the ratios within rounds.
    Rate,
    /// Nanoseconds of processor time: means, and their ratio. It is counted in ticks of some milliseconds, of which one
    /// trial has too few.
    Time,
}

/// What was promised.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    None,
}

const LINES: &[Line] = &[
    line("null", "null, 1 job: I/Os a second", iops, "native", "fio", Bound::AtLeast(5.0)),
    line(
        "psync-tmpfs",
        "psync 4 KiB randread, cached file of a tmpfs",
        iops,
        "native",
        "bare",
        Bound::AtLeast(0.97),
    ),
    line("psync-tmpfs", "the same", iops, "fio", "bare", Bound::None),
    line("psync-zram", "psync O_DIRECT 4 KiB randread, zram", iops, "native", "bare", Bound::AtLeast(0.97)),
    line("psync-zram", "the same", iops, "fio", "bare", Bound::None),
    line(
        "uring-warm",
        "io_uring, depth 32, cached file, plain options",
        iops,
        "native",
        "fio",
        Bound::AtLeast(1.3),
    ),
    line("uring-warm", "both at their fastest", iops, "native tuned", "fio tuned", Bound::AtLeast(1.15)),
    line(
        "uring-zram",
        "io_uring, depth 32, zram, plain options",
        iops,
        "native",
        "fio",
        Bound::AtLeast(0.98),
    ),
    line("uring-zram", "both at their fastest", iops, "native tuned", "fio tuned", Bound::AtLeast(0.98)),
    line(
        "uring-disk",
        "io_uring, depth 32, a disk, plain options",
        iops,
        "native",
        "fio",
        Bound::AtLeast(0.98),
    ),
    line("uring-disk", "both at their fastest", iops, "native tuned", "fio tuned", Bound::AtLeast(0.98)),
    line(
        "libaio-read",
        "libaio, depth 1024, batch 32, 2 jobs, zram, randread",
        iops,
        "native",
        "fio",
        Bound::AtLeast(0.98),
    ),
    line("libaio-write", "the same, randwrite", iops, "native", "fio", Bound::AtLeast(0.98)),
    line("null", "user CPU an I/O: null", user_ns, "native", "fio", Bound::AtMost(0.5)),
    line("psync-tmpfs", "user CPU an I/O: psync, tmpfs", user_ns, "native", "fio", Bound::AtMost(0.5)),
    line("psync-zram", "user CPU an I/O: psync, zram", user_ns, "native", "fio", Bound::AtMost(0.5)),
    line("uring-warm", "user CPU an I/O: io_uring, plain", user_ns, "native", "fio", Bound::AtMost(0.5)),
    line(
        "uring-warm",
        "user CPU an I/O: io_uring, tuned",
        user_ns,
        "native tuned",
        "fio tuned",
        Bound::AtMost(0.5),
    ),
    line("libaio-read", "user CPU an I/O: libaio, randread", user_ns, "native", "fio", Bound::AtMost(0.5)),
    line("libaio-write", "user CPU an I/O: libaio, randwrite", user_ns, "native", "fio", Bound::AtMost(0.5)),
];

const fn line(
    run: &'static str,
    what: &'static str,
    figure: Figure,
    level: &'static str,
    over: &'static str,
    bound: Bound,
) -> Line {
    let kind = if matches!(bound, Bound::AtMost(_)) { Kind::Time } else { Kind::Rate };
    Line { run, what, figure, level, over, bound, kind }
}

fn main() -> ExitCode {
    match print() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench-table: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print() -> Result<bool, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("usage: bench-table STORE COMMIT < memory")?;
    let commit = arguments.next().ok_or("usage: bench-table STORE COMMIT < memory")?;
    let reader = Store::open_existing(Path::new(&store))?;
    let mut runs = BTreeMap::new();
    for summary in reader.list()? {
        let run = reader.load_run(summary.id)?;
        runs.insert(run.name.clone(), run);
    }
    heading(runs.values().next().ok_or("the store has no run")?, &commit);
    let mut kept = true;
    println!("| case | level | figure | over | figure | ratio | 95 % interval | promised | |");
    println!("|---|---|---:|---|---:|---:|---|---|---|");
    for line in LINES {
        let run = runs.get(line.run).ok_or_else(|| format!("the store has no run of {}.toml", line.run))?;
        kept &= ratio(run, line).ok_or_else(|| format!("{}: no round has both levels", line.what))?;
    }
    kept &= start(runs.get("start").ok_or("the store has no run of start.toml")?);
    kept &= memory(&std::io::read_to_string(std::io::stdin())?)?;
    closing(&runs);
    Ok(kept)
}

fn heading(run: &Run, commit: &str) {
    println!("# What the native engine costs\n");
    println!(
        "`make bench` writes this page: assay measures itself with the experiment files of bench/, whose factor is the"
    );
    println!(
        "engine. A ratio is the median of the ratios within rounds (Hodges–Lehmann) with its signed-rank interval; all"
    );
    println!(
        "engines record the latency of every I/O, but `bare`, which is the system call in a loop with no bookkeeping."
    );
    println!(
        "An option that a job does not set means what it means to fio: \"plain\" submits each I/O as it is queued, reaps one by one"
    );
    println!(
        "and registers nothing; \"fastest\" is what a job can ask for: registered files and buffers, batches of 32.\n"
    );
    println!("Commit {commit}, assay {}, {}.", run.assay_version, day(run.started_unix_ns));
    let facts = run.facts.first();
    for key in ["cpu.model", "cpu.count", "virt", "kernel.release"] {
        println!("- {key}: {}", facts.and_then(|facts| facts.get(key)).unwrap_or("unknown"));
    }
    println!();
}

/// Prints one line; whether the promise was kept.
fn ratio(run: &Run, line: &Line) -> Option<bool> {
    let level = figures(run, line.level, line.figure);
    let over = figures(run, line.over, line.figure);
    let typical = match line.kind {
        Kind::Rate => |figures: &BTreeMap<u32, f64>| per_second(median(figures.values().copied())),
        Kind::Time => |figures: &BTreeMap<u32, f64>| format!("{:.1} ns", mean(figures)),
    };
    let (ratio, interval) = match line.kind {
        Kind::Rate => paired(&level, &over)?,
        Kind::Time => (mean(&level) / mean(&over), "all rounds together".to_owned()),
    };
    let (promised, kept) = judged(line.bound, ratio);
    println!(
        "| {} | {} | {} | {} | {} | **{ratio:.3}** | {interval} | {promised} | {} |",
        line.what,
        line.level,
        typical(&level),
        line.over,
        typical(&over),
        verdict(line.bound, kept),
    );
    Some(kept)
}

/// The ratio within rounds and its interval.
fn paired(level: &BTreeMap<u32, f64>, over: &BTreeMap<u32, f64>) -> Option<(f64, String)> {
    let logs: Vec<f64> =
        level.iter().filter_map(|(round, value)| Some((value / over.get(round)?).ln())).collect();
    let walsh = Walsh::new(&logs)?;
    let interval = signed_rank::critical(logs.len(), 0.05).and_then(|k| walsh.interval(k));
    let interval = interval.map_or("—".to_owned(), |e| format!("{:.3} – {:.3}", e.low.exp(), e.high.exp()));
    Some((walsh.hodges_lehmann().exp(), interval))
}

fn mean(values: &BTreeMap<u32, f64>) -> f64 {
    values.values().sum::<f64>() / values.len() as f64
}

fn judged(bound: Bound, value: f64) -> (String, bool) {
    match bound {
        Bound::AtLeast(least) => (format!("≥ {least}"), value >= least),
        Bound::AtMost(most) => (format!("≤ {most}"), value <= most),
        Bound::None => (String::new(), true),
    }
}

/// In words; nothing where nothing was promised.
fn verdict(bound: Bound, kept: bool) -> &'static str {
    match (bound, kept) {
        (Bound::None, _) => "",
        (_, true) => "kept",
        (_, false) => "MISSED",
    }
}

/// The figure of one level, a round.
fn figures(run: &Run, level: &str, figure: Figure) -> BTreeMap<u32, f64> {
    let is_level = |trial: &&Trial| {
        let number = run.cells.get(trial.cell as usize).map(|cell| cell.levels[run.design.compare] as usize);
        let levels = &run.design.factors[run.design.compare].levels;
        number.is_some_and(|number| levels[number] == level)
    };
    let counted = run.trials.iter().filter(|trial| trial.counts()).filter(is_level);
    counted.filter_map(|trial| Some((trial.round, figure(run, trial)?))).collect()
}

fn value(run: &Run, trial: &Trial, name: &str) -> Option<f64> {
    let index = run.metrics.iter().position(|metric| metric.name == name)?;
    trial.value(index as u32)
}

/// I/Os a second.
fn iops(run: &Run, trial: &Trial) -> Option<f64> {
    value(run, trial, "read.iops").or_else(|| value(run, trial, "write.iops"))
}

/// Nanoseconds of user time an I/O.
fn user_ns(run: &Run, trial: &Trial) -> Option<f64> {
    let ios = value(run, trial, "read.total_ios").or_else(|| value(run, trial, "write.total_ios"))?;
    Some(value(run, trial, "usr_cpu")? * 1e9 / ios)
}

/// A trial of one I/O takes at least as long as its start.
fn start(run: &Run) -> bool {
    let whole = |level| median(figures(run, level, |_, trial| Some(trial.elapsed_s * 1e3)).into_values());
    let (native, fio) = (whole("native"), whole("fio"));
    let kept = native <= 20.0;
    println!(
        "| a whole trial of one I/O, which begins with its start (ms) | native | {native:.1} | fio | {fio:.1} | {:.3} | | ≤ 20 ms | {} |",
        native / fio,
        verdict(Bound::AtMost(20.0), kept)
    );
    kept
}

fn memory(lines: &str) -> Result<bool, String> {
    let of = |engine: &str| {
        let words = |line: &str| line.strip_prefix(&format!("memory {engine} ")).map(str::to_owned);
        let bytes: Vec<f64> =
            lines.lines().filter_map(words).filter_map(|bytes| bytes.trim().parse().ok()).collect();
        if bytes.is_empty() { Err(format!("no line `memory {engine} BYTES`")) } else { Ok(median(bytes)) }
    };
    let (native, fio) = (of("native")? / 1048576.0, of("fio")? / 1048576.0);
    let (promised, kept) = judged(Bound::AtMost(1.0), native / fio);
    println!(
        "| memory of 16 jobs with 1024 I/Os in flight each (MiB, PSS) | native | {native:.1} | fio | {fio:.1} | **{:.3}** | | {promised} | {} |",
        native / fio,
        verdict(Bound::AtMost(1.0), kept)
    );
    Ok(kept)
}

fn closing(runs: &BTreeMap<String, Run>) {
    println!(
        "\nEngines: {}. Figures of I/Os a second are medians of all rounds; figures of user CPU, and their ratios, are means.",
        runs.values().map(|run| run.engine.as_str()).max_by_key(|e| e.len()).unwrap_or("")
    );
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

fn per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.2} M", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.0} k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}

fn day(unix_ns: u64) -> String {
    jiff::Timestamp::from_second((unix_ns / 1_000_000_000) as i64)
        .map_or_else(|_| String::new(), |time| time.strftime("%Y-%m-%d").to_string())
}
