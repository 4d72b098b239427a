//! Deterministic runs and hand-made analyses for the report tests: no clock, no disk, no statistics of the
//! product (what the product computes is tested where it is computed).

use std::collections::BTreeMap;

use assay::analyse::{
    Analysis, ArmSummary, Caveat, Comparison, FactDifference, Interval, Method, NoiseFloor, QuantileCurve,
    Role, RowKey, Verdict,
};
use assay::record::{
    Cell, Design, Direction, Factor, FailureKind, HostFacts, LatencyKind, Metric, Run, RunState, Series,
    Source, Status, Trial,
};
use assay::units::{Better, Unit};

/// A small generator, so that fixtures need no crate and never change.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(seed)
    }

    /// Roughly normal, mean 0, standard deviation 1: twelve uniforms less six.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(crate) fn metric(job: &str, name: &str, unit: Unit, better: Better) -> Metric {
    Metric::new(job, name, unit, better)
}

/// An empty run with these factors, the first compared.
pub(crate) fn empty_run(name: &str, factors: &[(&str, &[&str])], source: Source) -> Run {
    let factors: Vec<Factor> = factors
        .iter()
        .map(|(name, levels)| {
            Factor::new((*name).to_owned(), levels.iter().map(|&level| level.to_owned()).collect())
        })
        .collect();
    let mut cells = vec![Cell { levels: Vec::new() }];
    for factor in &factors {
        cells = cells
            .iter()
            .flat_map(|cell| {
                (0..factor.levels.len() as u32).map(|level| {
                    let mut levels = cell.levels.clone();
                    levels.push(level);
                    Cell { levels }
                })
            })
            .collect();
    }
    let design = Design { paired: source == Source::Measured, ..Design::new(factors) };
    Run {
        id: (source == Source::Measured).then_some(7),
        assay_version: "0.1.0".to_owned(),
        started_unix_ns: 1_772_366_400_000_000_000,
        seed: 42,
        cells,
        ..Run::new(name, source, RunState::Finished, design)
    }
}

pub(crate) fn trial(cell: u32, round: u32, position: u32, values: Vec<(u32, f64)>) -> Trial {
    Trial {
        cell,
        round,
        position,
        started_unix_ns: 1_772_366_400_000_000_000
            + (u64::from(round) * 8 + u64::from(position)) * 11_000_000_000,
        elapsed_s: 10.4,
        facts: Some(0),
        values,
        ..Trial::default()
    }
}

pub(crate) fn summary(arm: &str, values: Vec<(u32, u32, u64, f64)>, better: Better) -> ArmSummary {
    let mut sorted: Vec<f64> = values.iter().map(|v| v.3).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let mean = sorted.iter().sum::<f64>() / n as f64;
    let median = if n == 0 { f64::NAN } else { (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0 };
    let stalled = |v: &f64| match better {
        Better::Lower => *v > 1.5 * median,
        Better::Higher => *v < median / 1.5,
    };
    ArmSummary {
        arm: arm.to_owned(),
        n,
        mean,
        harmonic_mean: if sorted.iter().any(|v| *v <= 0.0) {
            f64::NAN
        } else {
            n as f64 / sorted.iter().map(|v| 1.0 / v).sum::<f64>()
        },
        median,
        min: sorted.first().copied().unwrap_or(f64::NAN),
        max: sorted.last().copied().unwrap_or(f64::NAN),
        stddev: if n < 2 {
            f64::NAN
        } else {
            (sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt()
        },
        stall_rate: sorted.iter().filter(|v| stalled(v)).count() as f64 / n as f64,
        values,
    }
}

/// A comparison with an interval of ± two and a half standard errors, which is enough for a picture.
pub(crate) fn comparison(
    row: RowKey,
    metric: &Metric,
    role: Role,
    baseline: ArmSummary,
    candidate: ArmSummary,
) -> Comparison {
    let pairs: Vec<f64> =
        baseline.values.iter().zip(&candidate.values).map(|(a, b)| (b.3 / a.3).ln()).collect();
    let n = pairs.len();
    let mean_log = pairs.iter().sum::<f64>() / n as f64;
    let s = (pairs.iter().map(|d| (d - mean_log).powi(2)).sum::<f64>() / (n as f64 - 1.0)).sqrt();
    let half = 2.5 * s / (n as f64).sqrt();
    let effect = (n >= 4 && half.is_finite() && mean_log.is_finite()).then(|| Interval {
        estimate: mean_log.exp() - 1.0,
        low: (mean_log - half).exp() - 1.0,
        high: (mean_log + half).exp() - 1.0,
    });
    let delta = 1.02f64.ln();
    let good = if metric.better == Better::Higher { 1.0 } else { -1.0 };
    let beyond_delta = mean_log.abs() - half > delta;
    let verdict = match effect {
        None if n < 4 => Verdict::TooFew { n },
        None => Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None },
        Some(_) if (mean_log - half) > -delta && (mean_log + half) < delta => {
            Verdict::NoDifference { real_but_below_delta: mean_log.abs() > half }
        }
        Some(_) if mean_log.abs() > half && mean_log * good > 0.0 => Verdict::Faster { beyond_delta },
        Some(_) if mean_log.abs() > half => Verdict::Slower { beyond_delta },
        Some(_) => Verdict::Undecided {
            rounds_to_claim: Some((14.0 * (s / mean_log).powi(2)).ceil().min(9999.0) as u32),
            rounds_for_no_difference: Some((20.0 * (s / delta).powi(2)).ceil() as u32),
        },
    };
    let change = candidate.mean / baseline.mean - 1.0;
    Comparison {
        row,
        metric: metric.clone(),
        role,
        method: if n < 4 {
            Method::ChangeOnly
        } else if n < 8 {
            Method::SequentialT
        } else {
            Method::SequentialSignedRank
        },
        n,
        effect,
        difference: None,
        delta: 0.02,
        typical: None,
        alone: None,
        unlisted: None,
        corrected: None,
        mean_change: Interval { estimate: change, low: change - half, high: change + half },
        p: None,
        p_adjusted: None,
        failures: None,
        verdict,
        caveats: Vec::new(),
        baseline,
        candidate,
    }
}

/// The values of a metric in one cell, in trial order.
pub(crate) fn values_of(run: &Run, cell: u32, metric: u32) -> Vec<(u32, u32, u64, f64)> {
    let trials = run.trials.iter().filter(|trial| trial.cell == cell && trial.counts());
    trials
        .filter_map(|trial| Some((trial.round, trial.position, trial.started_unix_ns, trial.value(metric)?)))
        .collect()
}

/// Compares every candidate with the baseline on every metric; `primary` decides.
pub(crate) fn analysis_of(run: &Run, primary: &str) -> Analysis {
    let arms = run.arms().to_vec();
    let mut comparisons = Vec::new();
    for (base_cell, cell) in run.cells.iter().enumerate().filter(|(at, _)| run.arm_of(*at as u32) == 0) {
        let levels: Vec<(String, String)> = run
            .design
            .factors
            .iter()
            .zip(&cell.levels)
            .skip(1)
            .map(|(factor, level)| (factor.name.clone(), factor.levels[*level as usize].clone()))
            .collect();
        for arm in 1..arms.len() as u32 {
            let candidate = run
                .cells
                .iter()
                .position(|c| c.levels[0] == arm && c.levels[1..] == cell.levels[1..])
                .unwrap();
            for (index, metric) in run.metrics.iter().enumerate() {
                let base = values_of(run, base_cell as u32, index as u32);
                let cand = values_of(run, candidate as u32, index as u32);
                if base.is_empty() || cand.is_empty() {
                    continue;
                }
                let row = RowKey { levels: levels.clone(), job: metric.job.clone() };
                let role = if metric.name == primary { Role::Primary } else { Role::Exploratory };
                let base = summary(&arms[0], base, metric.better);
                let cand = summary(&arms[arm as usize], cand, metric.better);
                comparisons.push(comparison(row, metric, role, base, cand));
            }
        }
    }
    comparisons.sort_by_key(|c| c.role == Role::Exploratory);
    Analysis {
        arms,
        factor: run.design.factors[0].name.clone(),
        delta: 0.02,
        alpha: 0.05,
        rounds: run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0),
        comparisons,
        ..Analysis::default()
    }
}

/// Buffered against direct random writes at four block sizes: slower, faster, no difference, undecided; with a
/// failed trial, latency curves, series, facts that differ, a noise floor and a little of every caveat.
pub(crate) fn measured() -> (Run, Analysis) {
    let mut run = empty_run(
        "randwrite.fio",
        &[("direct", &["0", "1"]), ("bs", &["4k", "16k", "64k", "1m"])],
        Source::Measured,
    );
    run.engine = "native 0.1.0".to_owned();
    run.command_line = [
        "assay", "run", "randwrite.fio", "--vary", "direct=0,1", "--vary", "bs=4k,16k,64k,1m", "--directory",
        "/mnt/the disk",
    ]
    .map(str::to_owned)
    .to_vec();
    run.job_text =
        Some("[global]\nioengine=psync\nrw=randwrite\nsize=256m\nend_fsync=1\n\n[w]\nnumjobs=1\n".to_owned());
    run.facts = vec![facts("mq-deadline"), facts("none")];
    run.notes =
        vec!["a virtual disk answers for the device: its host's page cache may hold what was written".into()];
    let bw = run.metric_index(&metric("", "write.bw", Unit::BytesPerSecond, Better::Higher));
    let p99 = run.metric_index(&metric("", "write.clat_ns.p99", Unit::Nanoseconds, Better::Lower));
    let iops = run.metric_index(&metric("", "write.iops", Unit::PerSecond, Better::Higher));
    let runtime = run.metric_index(&metric("", "runtime", Unit::Seconds, Better::Lower));
    let usr = run.metric_index(&metric("", "usr_cpu", Unit::Seconds, Better::Lower));
    let sys = run.metric_index(&metric("", "sys_cpu", Unit::Seconds, Better::Lower));
    let ctx = run.metric_index(&metric("", "ctx.voluntary", Unit::Count, Better::Lower));
    let switches = run.metric_index(&metric("", "ctx", Unit::Count, Better::Lower));
    let flushes = run.metric_index(&metric("", "dev.flushes", Unit::Count, Better::Lower));
    let mut noise = Noise::new(11);
    let speed = [120e6, 210e6, 380e6, 720e6];
    let effect = [0.688, 1.003, 0.99, 1.21];
    let spread = [0.02, 0.007, 0.06, 0.03];
    for round in 0..12u32 {
        for position in 0..8u32 {
            let place = if round % 2 == 0 { position } else { 7 - position };
            let (direct, bs) = ((place / 4) as usize, (place % 4) as usize);
            let factor = if direct == 1 { effect[bs] } else { 1.0 };
            let drift = 1.0 - 0.002 * f64::from(round);
            let value = speed[bs] * factor * drift * (spread[bs] * noise.normal()).exp();
            let direct = f64::from(direct as u8);
            let values = vec![
                (bw, value),
                (p99, 2.1e5 * 120e6 / value * (1.0 + 1.6 * direct) * (0.08 * noise.normal()).exp()),
                (iops, value / 4096.0 / 4f64.powi(bs as i32)),
                (runtime, 268_435_456.0 / value),
                (usr, 0.21 * (0.1 * noise.normal()).exp()),
                (sys, (3.1 - 1.2 * direct) * (0.05 * noise.normal()).exp()),
                (ctx, (65_536.0 * direct + 210.0) * (0.01 * noise.normal()).exp()),
                (switches, (65_536.0 * direct + 260.0) * (0.01 * noise.normal()).exp()),
                (flushes, 1.0),
            ];
            let mut one = trial(place, round, position, values);
            one.facts = Some(u32::from(direct > 0.5));
            one.series = vec![series(value, &mut noise)];
            run.trials.push(one);
        }
    }
    run.trials[13].status = Status::Failed {
        kind: FailureKind::Passing,
        reason: "write to /mnt/the disk/w.0.0: no space left on device (ENOSPC), 4096 bytes missing"
            .to_owned(),
        command: "assay agent < request.json".to_owned(),
        output: "job w: 61234 of 65536 I/Os\nwrite: No space left on device\n".to_owned(),
    };
    let mut analysis = analysis_of(&run, "write.bw");
    decorate(&mut analysis);
    (run, analysis)
}

fn decorate(analysis: &mut Analysis) {
    for c in analysis.comparisons.iter_mut().filter(|c| c.role == Role::Primary) {
        c.caveats.push(Caveat::Family { m: 4 });
    }
    analysis.comparisons[0].caveats.push(Caveat::StoppedEarly);
    let c = &mut analysis.comparisons[2];
    let (typical, mean) = (c.effect.unwrap().estimate, c.mean_change.estimate);
    c.caveats.push(Caveat::MeanDisagrees { typical, mean });
    analysis.comparisons[2].caveats.push(Caveat::BaselineDrift { slope_per_round: -0.0021, p: 0.004 });
    analysis.comparisons[3].caveats.push(Caveat::StoppedEarly);
    analysis.curves = curves();
    analysis.differences = vec![FactDifference {
        fact: "queue.scheduler".to_owned(),
        values: vec![("0".to_owned(), "mq-deadline".to_owned()), ("1".to_owned(), "none".to_owned())],
    }];
    analysis.noise_floor = Some(NoiseFloor {
        run: Some(5),
        metric: metric("", "write.bw", Unit::BytesPerSecond, Better::Higher),
        s_d: 0.011,
        s_d_low: 0.0079,
        s_d_high: 0.0181,
        pooled_runs: 2,
        half_width: 0.0089,
        rounds: 30,
        smallest_effect: 0.0076,
        aa_runs: 12,
        aa_claims: 1,
        // 1 − 0.95^12.
        aa_p: 0.459_639_912_337_363,
    });
    analysis.caveats = vec![Caveat::FailedTrials { count: 1 }];
}

fn facts(scheduler: &str) -> HostFacts {
    let facts = [
        ("cpu.model", "AMD EPYC 7B13 64-Core Processor"),
        ("cpu.count", "2"),
        ("cpu.governor", "performance"),
        ("cpu.boost", "on"),
        ("kernel.release", "6.12.9-amd64"),
        ("kernel.cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet mitigations=auto <&\"'>"),
        ("memory.total", "8589934592"),
        ("virt", "virtual machine"),
        ("device.kind", "virtio"),
        ("queue.scheduler", scheduler),
        ("queue.write_cache", "write back"),
        ("fs.type", "ext4"),
        ("mount.options", "rw,relatime,errors=remount-ro"),
        ("now.psi.io", "0.12"),
        ("now.memory.swap_used", "0"),
        ("io_uring", "usable"),
    ];
    let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
    HostFacts::from(BTreeMap::from(facts))
}

fn series(mean: f64, noise: &mut Noise) -> Series {
    let values = (0..10)
        .map(|second| mean * (1.0 + 0.3 * (-f64::from(second)).exp() + 0.02 * noise.normal()))
        .collect();
    Series { job: String::new(), name: "write.bw".to_owned(), interval_s: 1.0, values }
}

/// Curves of two rows: the direct arm is slower in the body, and has a tail.
fn curves() -> Vec<QuantileCurve> {
    let mut curves = Vec::new();
    for (bs, base) in [("4k", 18_000.0), ("1m", 900_000.0)] {
        for (arm, slow, tail) in [("0", 1.0, 3.5), ("1", 1.9, 2.2)] {
            let quantiles =
                [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999];
            let points = quantiles
                .iter()
                .map(|q: &f64| {
                    (*q, base * slow * (1.0 - q).max(1e-6).powf(-1.0 / (2.0 * tail)) * (0.8 + 0.4 * q))
                })
                .collect();
            curves.push(QuantileCurve {
                row: RowKey { levels: vec![("bs".to_owned(), bs.to_owned())], job: String::new() },
                arm: arm.to_owned(),
                direction: Direction::Write,
                kind: LatencyKind::Clat,
                count: 786_432,
                points,
            });
        }
    }
    curves
}

/// The published block-device study: two of its kernels, one average each.
pub(crate) fn bdev(baseline: &str, candidate: &str) -> (Run, Analysis) {
    let text = std::fs::read_to_string(data("published/bdev-fio-averages.csv")).unwrap();
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let mut jobs: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    jobs.dedup();
    jobs.truncate(6);
    let mut run = empty_run(
        "bdev-fio-averages.csv",
        &[("kernel", &[baseline, candidate]), ("job", &jobs)],
        Source::Imported("CSV".to_owned()),
    );
    for (arm, kernel) in [baseline, candidate].iter().enumerate() {
        for (at, job) in jobs.iter().enumerate() {
            let row = rows.iter().find(|row| row[0] == *kernel && row[1] == *job).unwrap();
            let values = heads[2..]
                .iter()
                .zip(&row[2..])
                .map(|(head, value)| {
                    let higher = head.ends_with("kb_s") || head.ends_with("iops");
                    let better = if higher { Better::Higher } else { Better::Lower };
                    let index = run.metric_index(&metric("", head, Unit::Count, better));
                    (index, value.parse().unwrap())
                })
                .collect();
            let mut one = trial((arm * jobs.len() + at) as u32, 0, 0, values);
            one.elapsed_s = 0.0;
            one.facts = None;
            run.trials.push(one);
        }
    }
    run.started_unix_ns = 0;
    let analysis = analysis_of(&run, "write_kb_s");
    (run, analysis)
}

/// The published mmtests table of dbench, one mean a kernel and number of clients.
pub(crate) fn dbench() -> (Run, Analysis) {
    let text = std::fs::read_to_string(data("published/dbench-mmtests-amean.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let clients: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let mut run = empty_run(
        "dbench",
        &[("arm", &["5.18-vanilla", "5.18-patched"]), ("clients", &clients)],
        Source::Imported("CSV".to_owned()),
    );
    let index = run.metric_index(&metric("", "completion", Unit::Other("ms".to_owned()), Better::Lower));
    for (arm, column) in [1, 2].into_iter().enumerate() {
        for (at, row) in rows.iter().enumerate() {
            let cell = (arm * rows.len() + at) as u32;
            run.trials.push(trial(cell, 0, 0, vec![(index, row[column].parse().unwrap())]));
        }
    }
    let analysis = analysis_of(&run, "completion");
    (run, analysis)
}

/// Everything that breaks columns: five arms with long names, markup and control characters in labels, zeros,
/// negative and huge values, too few repeats, failed and skipped trials, a long job line.
pub(crate) fn nasty() -> (Run, Analysis) {
    let long = "vmlinuz-6.12.0-rc5-with-a-name-that-nobody-would-want-to-read-aloud+";
    let arms = ["<script>alert(1)</script>", long, "é\u{1b}[31m|*_`x`_*|", "-1", "zero"];
    let rows = [
        "a",
        "the-row-with-a-label-that-is-much-longer-than-any-column-of-any-table-could-be",
        "naïve & \"quoted\"",
    ];
    let mut run = empty_run(
        "nasty <b>&amp; friends",
        &[("kernel_image_under_test", &arms), ("mode", &rows)],
        Source::Measured,
    );
    run.state = RunState::Interrupted;
    run.engine = "command".to_owned();
    run.command_line = vec!["assay".into(), "run".into(), "x".repeat(120), "$(rm -rf /)".into()];
    run.job_text = Some(format!("[{}]\n\tfilename=/dev/{}\n```\n", "j".repeat(90), "p".repeat(200)));
    let value = run.metric_index(&metric(
        "a job with blanks",
        "a.metric.whose.name.goes.on.and.on.and.on.ms",
        Unit::Other("furlongs per fortnight".to_owned()),
        Better::Lower,
    ));
    let count = run.metric_index(&metric("a job with blanks", "ctx", Unit::Count, Better::Lower));
    for round in 0..3u32 {
        for cell in 0..run.cells.len() as u32 {
            let sign = if cell / 3 == 3 { -1.0 } else { 1.0 };
            let size = if cell / 3 == 4 { 0.0 } else { 123_456_789_012_345.0 + f64::from(round) };
            let mut one =
                trial(cell, round, cell, vec![(value, sign * size), (count, f64::from(cell) * 1e7)]);
            if cell == 1 && round == 1 {
                one.status = Status::Skipped {
                    reason: "io_uring is disabled here (kernel.io_uring_disabled = 2)".to_owned(),
                };
            }
            if cell == 2 {
                one.status = Status::Failed {
                    kind: FailureKind::Passing,
                    reason: "x".repeat(130),
                    command: "y ".repeat(80),
                    output: "\u{1b}[31mred\u{1b}[0m\ttab\n".to_owned(),
                };
            }
            run.trials.push(one);
        }
    }
    let mut analysis = analysis_of(&run, "a.metric.whose.name.goes.on.and.on.and.on.ms");
    for (at, c) in analysis.comparisons.iter_mut().enumerate() {
        c.caveats = vec![
            Caveat::NotPositive,
            Caveat::TooFewRepeats { n: c.n },
            Caveat::ExcludedRounds { count: at as u32, rule: "steal over 5 %".to_owned() },
        ];
    }
    analysis.comparisons[0].verdict =
        Verdict::NotMeasured("no trial of the candidate has a value".to_owned());
    analysis.comparisons[0].mean_change = Interval { estimate: f64::NAN, low: f64::NAN, high: f64::NAN };
    analysis.differences = vec![FactDifference {
        fact: "kernel.cmdline".to_owned(),
        values: arms.iter().map(|arm| ((*arm).to_owned(), "q".repeat(150))).collect(),
    }];
    (run, analysis)
}

/// Two arms, this many rounds, five metrics.
pub(crate) fn long(rounds: u32) -> Run {
    let mut run = empty_run("long", &[("direct", &["0", "1"])], Source::Measured);
    let metrics = ["write.bw", "write.iops", "runtime", "sys_cpu", "ctx.voluntary"].map(|name| {
        let better = if name.starts_with("write") { Better::Higher } else { Better::Lower };
        run.metric_index(&metric("", name, Unit::Count, better))
    });
    run.facts = vec![facts("none")];
    let mut noise = Noise::new(3);
    for round in 0..rounds {
        for cell in 0..2 {
            let values = metrics.map(|index| (index, 1e8 * (1.0 + 0.01 * noise.normal())));
            run.trials.push(trial(cell, round, cell, values.to_vec()));
        }
    }
    run
}

/// A file below tests/data.
pub(crate) fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}
