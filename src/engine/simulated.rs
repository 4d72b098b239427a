//! The simulated engine: made-up values that depend on the seed alone, so that an experiment can be taken
//! to a report without a disk.
//!
//! Enters: [`Task::simulated`] and [`Task::seed`]. Leaves: the samples, histogram and series of ten seconds of
//! 4 KiB writes. It does no I/O and reads no clock; it must not know what its numbers will be compared with.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Engine, EngineError, Probe, SimulatedCell, Task};
use crate::record::{Direction, FailureKind, LatencyHistogram, LatencyKind, Metric, Outcome, Sample, Series};
use crate::units::{Better, Unit};

/// Made-up length of a trial in seconds; the series has one value for each.
const RUNTIME_S: u32 = 10;
/// Made-up size of one write.
const BLOCK_BYTES: f64 = 4096.0;
/// Latencies drawn a trial; each stands for an equal share of the I/Os.
const LATENCY_DRAWS: u64 = 10_000;
/// Coefficient of variation of single latencies: a right-skewed tail as devices have one.
const LATENCY_CV: f64 = 0.5;

/// The simulated engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulated;

impl Engine for Simulated {
    fn probe(&self) -> Result<Probe, EngineError> {
        Ok(Probe { version: concat!("simulated ", env!("CARGO_PKG_VERSION")).to_owned(), path: None })
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let Some(cell) = task.simulated else {
            return Err(EngineError::Unsupported {
                reason: "the simulated engine needs a [simulated] table: it makes values up and reads no job"
                    .to_owned(),
            });
        };
        check(&cell)?;
        // The failure draw comes first so that `fail` does not shift the values of the trials that succeed.
        let mut rng = ChaCha8Rng::seed_from_u64(task.seed);
        let fails = rng.random::<f64>() < cell.fail;
        std::thread::sleep(Duration::from_millis(cell.sleep_ms));
        if fails {
            return Err(EngineError::Failed {
                kind: FailureKind::Passing,
                reason: format!("simulated failure (fail = {}, seed {})", cell.fail, task.seed),
                command: String::new(),
                output: "the simulated engine was asked to fail".to_owned(),
                so_far: Vec::new(),
            });
        }
        Ok(make_up(&cell, &mut rng))
    }
}

fn check(cell: &SimulatedCell) -> Result<(), EngineError> {
    let wrong = |what: String| Err(EngineError::Unsupported { reason: format!("the simulated cell {what}") });
    if !(cell.bw.is_finite() && cell.bw >= BLOCK_BYTES) {
        return wrong(format!(
            "has bw = {}; it must be a finite number of at least 4096 bytes a second",
            cell.bw
        ));
    }
    if !(cell.effect.is_finite() && cell.effect > -0.99) {
        return wrong(format!("has effect = {}; it must be a ratio above -0.99", cell.effect));
    }
    if !(cell.cv.is_finite() && (0.0..=10.0).contains(&cell.cv)) {
        return wrong(format!("has cv = {}; it must be between 0 and 10", cell.cv));
    }
    if !(0.0..=1.0).contains(&cell.fail) {
        return wrong(format!("has fail = {}; it must be a share between 0 and 1", cell.fail));
    }
    Ok(())
}

fn make_up(cell: &SimulatedCell, rng: &mut ChaCha8Rng) -> Outcome {
    let runtime_s = f64::from(RUNTIME_S);
    let wanted_bw = cell.bw * (1.0 + cell.effect) * lognormal(rng, cell.cv);
    // Whole I/Os, as a real engine would count them; the rates follow from the counts.
    let total_ios = (wanted_bw * runtime_s / BLOCK_BYTES).round().max(1.0);
    let io_bytes = total_ios * BLOCK_BYTES;
    let (bw, iops) = (io_bytes / runtime_s, total_ios / runtime_s);

    let series = (0..RUNTIME_S).map(|_| bw * lognormal(rng, cell.cv)).collect();
    // Queue depth 1: the mean latency is the time between completions.
    let clat = latencies(rng, 1e9 / iops, total_ios as u64);
    let latency = |name: &str, value: f64| Sample::new("", name, Unit::Nanoseconds, value);
    let samples = vec![
        Sample::new("", "write.bw", Unit::BytesPerSecond, bw),
        Sample::new("", "write.iops", Unit::PerSecond, iops),
        more_is_better("write.total_ios", Unit::Count, total_ios),
        more_is_better("write.io_bytes", Unit::Bytes, io_bytes),
        Sample::new("", "runtime", Unit::Seconds, runtime_s),
        latency("write.clat_ns.mean", clat.mean()),
        latency("write.clat_ns.p50", clat.value_at_quantile(0.5) as f64),
        latency("write.clat_ns.p99", clat.value_at_quantile(0.99) as f64),
    ];
    Outcome {
        samples,
        histograms: vec![LatencyHistogram::pack("", Direction::Write, LatencyKind::Clat, &clat)],
        series: vec![Series {
            job: String::new(),
            name: "write.bw".to_owned(),
            interval_s: 1.0,
            values: series,
        }],
        notes: vec!["simulated: every value is made up, no I/O was done".into()],
    }
}

fn more_is_better(name: &str, unit: Unit, value: f64) -> Sample {
    Sample { metric: Metric::new("", name, unit, Better::Higher), value }
}

/// Latencies with the given mean whose number is `total` I/Os.
fn latencies(rng: &mut ChaCha8Rng, mean_ns: f64, total: u64) -> hdrhistogram::Histogram<u64> {
    let draws = LATENCY_DRAWS.min(total).max(1);
    let median_ns = mean_ns / (1.0 + LATENCY_CV * LATENCY_CV).sqrt();
    let mut histogram = LatencyHistogram::empty();
    for draw in 0..draws {
        let share = total / draws + u64::from(draw < total % draws);
        let ns = (median_ns * lognormal(rng, LATENCY_CV)).max(1.0) as u64;
        histogram.saturating_record_n(ns, share);
    }
    histogram
}

/// A lognormal factor with median 1 and the coefficient of variation `cv`: σ² = ln(1 + cv²)
/// (Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions 1, §14).
fn lognormal(rng: &mut ChaCha8Rng, cv: f64) -> f64 {
    (normal(rng) * (1.0 + cv * cv).ln().sqrt()).exp()
}

/// A standard normal draw (Box & Muller 1958); always two uniform draws, so that streams stay aligned.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v) = (rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: SimulatedCell = SimulatedCell { bw: 100e6, effect: 0.0, cv: 0.05, sleep_ms: 0, fail: 0.0 };

    fn run(cell: SimulatedCell, seed: u64) -> Result<Outcome, EngineError> {
        Simulated.run(&Task { simulated: Some(cell), seed, ..Task::default() })
    }

    fn value(outcome: &Outcome, name: &str) -> f64 {
        outcome.samples.iter().find(|s| s.metric.name == name).unwrap().value
    }

    #[test]
    fn the_seed_decides_everything() {
        let (first, again, other) = (run(CELL, 7).unwrap(), run(CELL, 7).unwrap(), run(CELL, 8).unwrap());
        assert_eq!(first, again);
        assert_ne!(value(&first, "write.bw"), value(&other, "write.bw"));
    }

    #[test]
    fn median_and_cv_are_those_asked_for() {
        let mut logs: Vec<f64> =
            (0..400).map(|seed| value(&run(CELL, seed).unwrap(), "write.bw").ln()).collect();
        logs.sort_by(f64::total_cmp);
        let mean = logs.iter().sum::<f64>() / 400.0;
        let sd = (logs.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 399.0).sqrt();
        // Standard errors with 400 draws: median 0.0031, sd 0.0018.
        assert!((logs[200] - 100e6_f64.ln()).abs() < 0.012, "{}", logs[200]);
        assert!((sd - 0.05).abs() < 0.007, "{sd}");
    }

    #[test]
    fn the_effect_is_exact_without_noise_and_the_counts_agree() {
        let quiet = SimulatedCell { cv: 0.0, ..CELL };
        let base = run(quiet, 1).unwrap();
        let faster = run(SimulatedCell { effect: 0.1, ..quiet }, 1).unwrap();
        let ratio = value(&faster, "write.bw") / value(&base, "write.bw");
        assert!((ratio - 1.1).abs() < 1e-5, "{ratio}");
        let histogram = base.histograms[0].unpack().unwrap();
        assert_eq!(histogram.len() as f64, value(&base, "write.total_ios"));
        assert_eq!(value(&base, "write.io_bytes"), value(&base, "write.bw") * value(&base, "runtime"));
        let mean_ns = 1e9 / value(&base, "write.iops");
        assert!((value(&base, "write.clat_ns.mean") / mean_ns - 1.0).abs() < 0.02);
        assert_eq!(base.series[0].values.len(), 10);
    }

    #[test]
    fn the_asked_share_fails_by_seed() {
        let flaky = SimulatedCell { fail: 0.25, ..CELL };
        let failed: Vec<u64> = (0..400).filter(|seed| run(flaky, *seed).is_err()).collect();
        assert!((70..=130).contains(&failed.len()), "{}", failed.len());
        assert!(matches!(run(flaky, failed[0]), Err(EngineError::Failed { .. })));
        // A trial that succeeds has the values it has without the failures.
        let fine = (0..400).find(|seed| !failed.contains(seed)).unwrap();
        assert_eq!(run(flaky, fine).unwrap(), run(CELL, fine).unwrap());
    }

    #[test]
    fn nonsense_is_refused_before_anything_happens() {
        for bad in [
            SimulatedCell { bw: f64::NAN, ..CELL },
            SimulatedCell { bw: 0.0, ..CELL },
            SimulatedCell { effect: -1.0, ..CELL },
            SimulatedCell { cv: -0.1, ..CELL },
            SimulatedCell { fail: 2.0, ..CELL },
        ] {
            assert!(matches!(run(bad, 1), Err(EngineError::Unsupported { .. })), "{bad:?}");
        }
        assert!(matches!(Simulated.run(&Task::default()), Err(EngineError::Unsupported { .. })));
    }

    #[test]
    fn it_sleeps() {
        let start = std::time::Instant::now();
        run(SimulatedCell { sleep_ms: 30, ..CELL }, 1).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(30));
    }
}
