//! Prints what `make bench` measured, and writes it into docs/performance.md.
//!
//! Enters: the store with the runs of bench/*.toml, and on standard input lines `memory ENGINE BYTES` and
//! `instructions LOOP NATIVE FIO STORED MOST`. Leaves: the rows on standard output, 80 columns wide; with a third argument, the
//! page, this processor's chapter is written anew, and everything must have been measured. Exit code 1 when a
//! promise is not kept. It measures nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

mod cases;
mod counted;
mod figures;
mod page;
mod promise;
mod row;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use assay::record::Run;
use assay::store::Store;

use cases::{CASES, Case, Pair};
use figures::{ByRound, elapsed_ms, iops, mean, median, of_level, of_means, user_ns, within_rounds};
use promise::{Ratio, Verdict};
use row::Row;

/// The longest that a trial of one I/O may take.
const START_MS: f64 = 20.0;

const INTRODUCTION: &str = "\
# What the native engine costs

`make bench` writes this page: assay measures itself with the experiment files of bench/, whose factor is the engine. Each processor
that was measured has a chapter; a run replaces only that of its own processor.

A ratio of I/Os a second is the median of the ratios within rounds (Hodges–Lehmann) with its signed-rank interval. A ratio of user
times is one of means, with Student's t on its logarithm. Ratios of medians (memory, whole trials) and of counts (instructions) have no
interval. I/Os are
random reads of 4 KiB where a row says nothing else. All engines record the latency of every I/O, except `bare`, which is the
system call in a loop that counts nothing. With io_uring and libaio `bare` keeps as many I/Os in flight as the job says, and reads
the clock after each call of the kernel: nobody can tell latencies without that.

An option that a job does not set means to the native engine what it means to fio. `native` and `fio` run the plain job: each I/O
is submitted as it is queued, completions are reaped one by one, nothing is registered. `native tuned` and `fio tuned` run what a
job can ask for: batches of 32 (8 where a disk answers), and with io_uring registered files and buffers. `bursts` are
batches of 32 beside a disk: as deep as the queue, so that the disk waits for the next one.

Where I/Os end while they are submitted (a cached file) the engine must be faster than fio. How much faster it can be depends on
what the system call itself takes on a machine: `bare` is that limit. A row reads `not kept, as bare` where the multiple of fio is
not shown, bare system calls are not shown to reach it either (their interval begins below it), and the engine reaches at least 0.95
of `bare`: there is hardly room for more. `make bench` fails for a row that is `MISSED` without that. Where I/Os wait for a device the
engine must not be in the way: within 2 % of fio, or faster. That is a test of equivalence. The whole interval must lie above 0.98,
as with all promises of `≥`, and below with those of `≤`; a row is undecided where it lies on both sides.

Instructions are those of user space, counted by callgrind, so that no noise of the machine moves them. They may be 10 % above the
count that bench/instructions.txt has of this architecture.
";

fn main() -> ExitCode {
    match report() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench-table: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report() -> Result<bool, Box<dyn std::error::Error>> {
    let usage = "usage: bench-table STORE COMMIT [PAGE] < counted";
    let mut arguments = std::env::args().skip(1);
    let (store, commit) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let page = arguments.next();
    let counted = std::io::read_to_string(std::io::stdin())?;
    let runs = runs(&store)?;
    let mut rows = Vec::new();
    for case in CASES {
        match runs.get(case.run) {
            Some(run) => rows.extend(rows_of(case, run)?),
            None if page.is_none() => {}
            None => return Err(format!("the store has no run of {}.toml", case.run).into()),
        }
    }
    rows.extend(runs.get("start").map(start));
    rows.extend(counted::memory(&counted)?);
    rows.extend(counted::instructions(&counted)?);
    for row in &rows {
        print!("{}", row.text());
    }
    if let (Some(page), Some(run)) = (page, runs.values().next()) {
        let former = std::fs::read_to_string(&page).unwrap_or_default();
        let processor = processor(run);
        let chapter = chapter(&runs, run, &commit, &processor, &rows);
        std::fs::write(&page, page::with_chapter(&former, INTRODUCTION, &processor, &chapter))?;
    }
    // What so many rounds cannot tell is said, and is no failure.
    Ok(rows.iter().all(|row| row.verdict != Verdict::Missed))
}

/// The runs of a store by name.
fn runs(store: &str) -> Result<BTreeMap<String, Run>, Box<dyn std::error::Error>> {
    let mut runs = BTreeMap::new();
    if !Path::new(store).exists() {
        // Only memory or instructions were counted.
        return Ok(runs);
    }
    let reader = Store::open_existing(Path::new(store))?;
    for summary in reader.list()? {
        let run = reader.load_run(summary.id)?;
        runs.insert(run.name.clone(), run);
    }
    Ok(runs)
}

/// Rates first, then user time.
fn rows_of(case: &Case, run: &Run) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for pair in case.rates {
        let [level, over] = [pair.level, pair.over].map(|level| of_level(run, level, iops));
        let ratio = within_rounds(&level, &over)
            .ok_or_else(|| format!("{}: no round has both {} and {}", case.run, pair.level, pair.over))?;
        let bare = within_rounds(&of_level(run, &pair.bare(), iops), &over);
        let typical = |figures: ByRound| per_second(median(figures.into_values()));
        let verdict = pair.promise.judge(&ratio, bare.as_ref());
        rows.push(row(case.what.to_owned(), pair, [typical(level), typical(over)], ratio, verdict));
    }
    for pair in case.user_times {
        // One trial has too few of the ticks of some milliseconds in which it is counted.
        let [level, over] = [pair.level, pair.over].map(|level| of_level(run, level, user_ns));
        let ns = |figures: &ByRound| format!("{:.1} ns", mean(figures));
        let figures = [ns(&level), ns(&over)];
        let ratio = of_means(&level, &over);
        let verdict = pair.promise.judge(&ratio, None);
        rows.push(row(format!("{}, user time an I/O", case.what), pair, figures, ratio, verdict));
    }
    Ok(rows)
}

fn row(case: String, pair: &Pair, [figure, other]: [String; 2], ratio: Ratio, verdict: Verdict) -> Row {
    Row {
        case,
        level: (pair.level, figure),
        over: (pair.over, other),
        promised: pair.promise.words(),
        verdict,
        ratio,
    }
}

/// A trial of one I/O takes at least as long as its start.
fn start(run: &Run) -> Row {
    let [native, fio] = ["native", "fio"].map(|level| median(of_level(run, level, elapsed_ms).into_values()));
    Row {
        case: "a whole trial of one I/O, from start to end".to_owned(),
        level: ("native", format!("{native:.1} ms")),
        over: ("fio", format!("{fio:.1} ms")),
        ratio: Ratio { value: native / fio, interval: None, rounds: 1 },
        promised: format!("≤ {START_MS} ms"),
        verdict: Verdict::of(native <= START_MS),
    }
}

fn chapter(runs: &BTreeMap<String, Run>, first: &Run, commit: &str, processor: &str, rows: &[Row]) -> String {
    let fact = |key: &str| first.facts.first().and_then(|facts| facts.get(key)).unwrap_or("unknown");
    let engines = runs.values().map(|run| run.engine.as_str()).max_by_key(|names| names.len()).unwrap_or("");
    let table: String = rows.iter().map(|row| row.markdown(processor)).collect();
    format!(
        "Commit {commit}, {}. {} processors, {}, Linux {}. Engines: {engines}.\n\n{}{table}",
        day(first.started_unix_ns),
        fact("cpu.count"),
        fact("virt"),
        fact("kernel.release"),
        Row::HEAD,
    )
}

fn processor(run: &Run) -> String {
    let model = run.facts.first().and_then(|facts| facts.get("cpu.model")).unwrap_or("unknown processor");
    model.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.2} M/s", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.0} k/s", rate / 1e3),
        rate => format!("{rate:.0}/s"),
    }
}

fn day(unix_ns: u64) -> String {
    jiff::Timestamp::from_second((unix_ns / 1_000_000_000) as i64)
        .map_or_else(|_| String::new(), |time| time.strftime("%Y-%m-%d").to_string())
}
