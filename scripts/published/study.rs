//! What a study is here, and how figures are read from runs and published tables.

use std::collections::BTreeMap;
use std::error::Error;

use assay::record::{Run, Trial};

/// What can be read from the runs, or why not.
pub(crate) type Found<T> = Result<T, Box<dyn Error>>;

/// One published study and its recipe.
pub(crate) struct Study {
    /// The recipe.
    pub(crate) name: &'static str,
    /// The names of its runs.
    pub(crate) runs: &'static [&'static str],
    /// What was measured, and what the author concluded.
    pub(crate) was: &'static str,
    /// The published table.
    pub(crate) published: fn() -> String,
    /// The same from the runs.
    pub(crate) ours: fn(&[&Run]) -> Found<String>,
    /// The claims, as `claims.rs` reads them.
    pub(crate) claims: &'static str,
    /// What its full size has besides, and what that takes: a full stop at the end.
    pub(crate) in_full: &'static str,
}

/// A line of a CSV file by its heads.
pub(crate) type Record = BTreeMap<String, String>;

/// A published table by its name.
pub(crate) fn published_table(name: &str) -> Option<&'static str> {
    Some(match name {
        "bdev-fio-averages" => include_str!("../../tests/data/published/bdev-fio-averages.csv"),
        "dax-write" => include_str!("../../tests/data/published/dax-write.csv"),
        "dbench-clients" => include_str!("../../tests/data/published/dbench-clients.csv"),
        "dbench-mmtests-amean" => include_str!("../../tests/data/published/dbench-mmtests-amean.csv"),
        "f2fs-dio-earlier" => include_str!("../../tests/data/published/f2fs-dio-earlier.csv"),
        "f2fs-dio-serialize-averages" => {
            include_str!("../../tests/data/published/f2fs-dio-serialize-averages.csv")
        }
        "fsmark" => include_str!("../../tests/data/published/fsmark.csv"),
        "xfs-dio-scaling" => include_str!("../../tests/data/published/xfs-dio-scaling.csv"),
        _ => return None,
    })
}

/// The records of a published table.
pub(crate) fn records(text: &str) -> Vec<Record> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let heads: Vec<String> =
        reader.headers().map(|heads| heads.iter().map(str::to_owned).collect()).unwrap_or_default();
    let lines = reader.records().flatten();
    lines.map(|line| heads.iter().cloned().zip(line.iter().map(str::to_owned)).collect()).collect()
}

/// The mean of `column` over the records in which every `wanted` column has its value.
pub(crate) fn mean(records: &[Record], wanted: &[(&str, &str)], column: &str) -> f64 {
    let fits =
        |record: &&Record| wanted.iter().all(|(key, value)| record.get(*key).is_some_and(|v| v == value));
    let values: Vec<f64> =
        records.iter().filter(fits).filter_map(|record| record.get(column)?.parse().ok()).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The values of a metric in the cells with these levels, by round. `job` is empty for the whole trial.
pub(crate) fn values(run: &Run, levels: &[(&str, &str)], job: &str, metric: &str) -> BTreeMap<u32, f64> {
    let index = |of: &str| run.metrics.iter().position(|known| known.name == metric && known.job == of);
    // A job of its own is the whole trial.
    let first = || run.metrics.iter().position(|known| known.name == metric);
    let at = index(job).or_else(|| job.is_empty().then(first).flatten());
    let fits = |trial: &&Trial| {
        let cell = &run.cells[trial.cell as usize];
        levels.iter().all(|(name, label)| {
            let factor = run.design.factors.iter().position(|factor| factor.name == *name);
            factor.is_some_and(|at| run.design.factors[at].levels[cell.levels[at] as usize] == *label)
        })
    };
    let trials = run.trials.iter().filter(|trial| trial.counts()).filter(fits);
    trials.filter_map(|trial| Some((trial.round, trial.value(at? as u32)?))).collect()
}

/// Their median.
pub(crate) fn median(values: &BTreeMap<u32, f64>) -> f64 {
    let mut values: Vec<f64> = values.values().copied().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// The levels of a factor.
pub(crate) fn levels<'r>(run: &'r Run, name: &str) -> &'r [String] {
    run.design.factors.iter().find(|factor| factor.name == name).map_or(&[], |factor| &factor.levels)
}

/// Rows of Markdown below their heads; all columns but the first `texts` are numbers.
pub(crate) fn table(heads: &[&str], texts: usize, rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let rule = (0..heads.len()).map(|at| if at < texts { "---" } else { "---:" }).collect();
    let rows: String = rows.iter().map(|row| line(row.iter().map(String::as_str).collect())).collect();
    line(heads.to_vec()) + &line(rule) + &rows
}

/// Three significant digits, or the whole number; less of what is very small.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        _ if !value.is_finite() => "—".to_owned(),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

/// Where the runs were: kernel, device, machine, and emulation where there was any.
pub(crate) fn place(runs: &[&Run]) -> String {
    let mut told: Vec<String> = Vec::new();
    for run in runs {
        let used = run.trials.iter().filter_map(|trial| run.facts.get(trial.facts? as usize));
        let mut of = |name: &str, words: fn(&str) -> String| {
            for value in used.clone().filter_map(|facts| facts.get(name)) {
                let text = words(value);
                if !text.is_empty() && !told.contains(&text) {
                    told.push(text);
                }
            }
        };
        of("kernel.release", |release| format!("kernel {release}"));
        of("target.device", str::to_owned);
        of("fs.type", str::to_owned);
        of("cpu.count", |count| format!("{count} processors"));
        of("guest.accelerator", |name| match name.starts_with("tcg") {
            true => "in a guest on an **emulated** processor (no time is one of this hardware)".to_owned(),
            false => format!("in a guest ({name})"),
        });
    }
    let loads = runs.iter().filter_map(|run| run.facts.first()?.get("now.load1"));
    told.extend(loads.take(1).map(|load| format!("load average {load} when it began")));
    told.push(runs.iter().map(|run| run.engine.as_str()).collect::<Vec<_>>().join(" and "));
    told.join(", ")
}

/// The command that repeats a run, without the store's name.
pub(crate) fn command(run: &Run) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut given = run.command_line.iter().map(String::as_str);
    while let Some(word) = given.next() {
        match word {
            "--db" | "--html" => drop(given.next()),
            "-q" | "--quiet" => {}
            _ => words.push(word.rsplit_once("target/kernels/").map_or(word, |_| word)),
        }
    }
    shlex::try_join(words).unwrap_or_default()
}

/// `2026-11-21`.
pub(crate) fn day(unix_ns: u64) -> String {
    jiff::Timestamp::from_second((unix_ns / 1_000_000_000) as i64)
        .map_or_else(|_| String::new(), |time| time.strftime("%Y-%m-%d").to_string())
}
