//! The noise table through the real runner: runs of `assay run` whose program prints a made-up time, and how often their verdicts
//! are wrong.
//!
//! Enters: `table ASSAY RUNS DIRECTORY`, or `trial KIND SEED EFFECT ARM` for one trial of such a run, which assay starts. Leaves: one
//! Markdown table on standard output; exit code 1 when a promise is broken beyond chance. The noise is that of `assay simulate`;
//! everything else is the shipped program: its order, its lead-ins, its stopping, its report.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

#[macro_use]
#[path = "../src/named.rs"]
mod named;
#[path = "../src/cli/simulate/noise.rs"]
mod noise;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

use assay::stats::binomial;
use noise::{Kind, Noise, OTHER_SEEDS};

const CV: f64 = 0.02;
/// None, just above δ, and one that is to be found.
const EFFECTS: [f64; 3] = [0.0, 0.0204, 0.05];
/// The kinds that depend on nothing but the arms and their order, and that are worst.
const KINDS: [Kind; 6] =
    [Kind::Lognormal, Kind::Autocorrelated, Kind::EveryThird, Kind::TwoAndTwo, Kind::AfterB10, Kind::Full];
/// Runs beside each other: a trial mostly waits for processes to start and end.
const BESIDE: usize = 4;
/// False claims, percent, that are promised at most.
const PROMISED: f64 = 6.0;
/// The arms that ran so far in this run, a byte a trial.
const ARMS: &str = "arms";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["trial", kind, seed, effect, arm] => trial(kind, seed, effect, arm),
        ["table", assay, runs, directory] => table(Path::new(assay), runs, Path::new(directory)),
        _ => Err("usage: truth table ASSAY RUNS DIRECTORY".into()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("truth: {error}");
        ExitCode::from(2)
    })
}

type Done = Result<ExitCode, Box<dyn std::error::Error>>;

/// Prints the time of the next trial of the run in the current directory.
fn trial(kind: &str, seed: &str, effect: &str, arm: &str) -> Done {
    let kind = Kind::ALL[kind.parse::<usize>()?];
    let effect: f64 = effect.parse()?;
    let mut arms = std::fs::read(ARMS).unwrap_or_default();
    let mut noise = Noise::new(kind, CV, seed.parse()?);
    // Where in a round a trial is, only assay knows; no kind of the table asks.
    for before in &arms {
        noise.next_trial(*before == b'B', false);
    }
    let is_b = arm == "B";
    let log = noise.next_trial(is_b, false) + if is_b { effect.ln_1p() } else { 0.0 };
    arms.push(if is_b { b'B' } else { b'A' });
    std::fs::write(ARMS, arms)?;
    println!("time {:.9}", log.exp());
    Ok(ExitCode::SUCCESS)
}

fn table(assay: &Path, runs: &str, directory: &Path) -> Done {
    let runs: usize = runs.parse()?;
    let assay = std::fs::canonicalize(assay)?;
    let parts = Parts { assay, me: std::env::current_exe()?, directory: directory.to_owned() };
    println!(
        "| noise, CV 2 %, {runs} runs each | false claims % | false \"no difference\" % at 1.02·δ | right claims % at 5 % | \
         coverage % at 5 % | mean rounds at 0/5 % |\n|---|---|---|---|---|---|"
    );
    let mut broken = Vec::new();
    for kind in KINDS {
        let begun = std::time::Instant::now();
        let of = |effect| series(&parts, kind, effect, runs);
        let [none, above, found] = [of(EFFECTS[0])?, of(EFFECTS[1])?, of(EFFECTS[2])?];
        let wrong = Share::of(&none, |said| said.claims());
        let equal = Share::of(&above, |said| said.verdict == "no_difference");
        let right = Share::of(&found, |said| said.verdict == "slower");
        let covered = Share::of(&found, |said| said.low <= EFFECTS[2] && EFFECTS[2] <= said.high);
        let rounds = |said: &[Said]| said.iter().map(|said| said.rounds).sum::<f64>() / said.len() as f64;
        println!(
            "| {} | {wrong} | {equal} | {right} | {covered} | {:.1}/{:.1} |",
            kind.name(),
            rounds(&none),
            rounds(&found)
        );
        for (what, share) in [("false claims", &wrong), ("false \"no difference\"", &equal)] {
            if share.low > PROMISED {
                broken.push(format!("{what} under {}: {share}, promised {PROMISED}", kind.name()));
            }
        }
        eprintln!("{}: {:.0} s", kind.name(), begun.elapsed().as_secs_f64());
    }
    for line in &broken {
        println!("off: {line}");
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A share in percent with its 95 % Clopper-Pearson interval.
struct Share {
    percent: f64,
    low: f64,
    high: f64,
}

impl Share {
    fn of(runs: &[Said], counts: impl Fn(&Said) -> bool) -> Share {
        let (count, of) = (runs.iter().filter(|said| counts(said)).count(), runs.len());
        let (low, high) = binomial::interval(of as u32, count as u32, 0.95);
        Share { percent: 100.0 * count as f64 / of as f64, low: 100.0 * low, high: 100.0 * high }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} [{:.1}, {:.1}]", self.percent, self.low, self.high)
    }
}

/// What one run of assay said.
struct Said {
    verdict: String,
    low: f64,
    high: f64,
    rounds: f64,
}

impl Said {
    fn claims(&self) -> bool {
        matches!(self.verdict.as_str(), "slower" | "faster")
    }
}

/// What every run needs.
struct Parts {
    assay: PathBuf,
    me: PathBuf,
    /// In memory, where there is no device whose rest has to be waited for.
    directory: PathBuf,
}

/// Runs of one kind and effect, some beside each other.
fn series(
    parts: &Parts,
    kind: Kind,
    effect: f64,
    runs: usize,
) -> Result<Vec<Said>, Box<dyn std::error::Error>> {
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Vec<Said>, String> {
        let mut said = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= runs {
                return Ok(said);
            }
            said.push(one(parts, kind, effect, seed).map_err(|error| format!("run {seed}: {error}"))?);
        }
    };
    let done: Vec<Result<Vec<Said>, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..BESIDE).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()))
        };
        workers.into_iter().map(join).collect()
    });
    let mut all = Vec::new();
    for said in done {
        all.extend(said?);
    }
    Ok(all)
}

/// One run in a directory of its own.
fn one(parts: &Parts, kind: Kind, effect: f64, seed: usize) -> Result<Said, Box<dyn std::error::Error>> {
    let place = tempfile::tempdir_in(&parts.directory)?;
    let noise = (seed as u64 + OTHER_SEEDS).to_string();
    let number = Kind::ALL.iter().position(|known| *known == kind).unwrap_or(0);
    let output = Command::new(&parts.assay)
        .current_dir(place.path())
        .env("ASSAY_STATE_DIR", place.path().join("state"))
        .args(["run", "-q", "--db", "truth.db", "--format", "json", "--keep-disturbed"])
        .args(["--seed", &seed.to_string(), "--vary", "arm=A,B", "--primary", "time"])
        .args(["--metric", "time=time ([0-9.]+):s:lower", "--"])
        .arg(&parts.me)
        .args(["trial", &number.to_string(), &noise, &effect.to_string(), "${arm}"])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let decides = report["analysis"]["comparisons"].as_array().ok_or("a report without comparisons")?;
    let decides = decides.iter().find(|c| c["role"] == "primary").ok_or("no comparison decides")?;
    let verdict = match &decides["verdict"] {
        serde_json::Value::String(word) => word.clone(),
        other => other.as_object().and_then(|word| word.keys().next().cloned()).ok_or("no verdict")?,
    };
    let bound = |name: &str| decides["effect"][name].as_f64();
    Ok(Said {
        verdict,
        // An open end is no number in JSON.
        low: bound("low").unwrap_or(f64::NEG_INFINITY),
        high: bound("high").unwrap_or(f64::INFINITY),
        rounds: decides["n"].as_f64().ok_or("no number of rounds")?,
    })
}
