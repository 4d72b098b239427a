//! Runs made up for the tests of this layer: two arms, one job, deterministic noise.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::record::{Cell, Design, Factor, HostFacts, Metric, Run, RunState, Source, StopRule, Trial};
use crate::units::{Better, Unit};

/// What a made-up run holds.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// Effect of the candidate on `write.bw` as a ratio minus 1.
    pub effect: f64,
    /// Spread of the noise on the log scale.
    pub cv: f64,
    /// Effect of running second on the log scale.
    pub second: f64,
    /// The rule that ends it.
    pub stop: StopRule,
    /// In rounds, or unpaired.
    pub paired: bool,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for Made {
    fn default() -> Self {
        Made { effect: 0.1, cv: 0.01, second: 0.0, stop: StopRule::default(), paired: true, seed: 1 }
    }
}

/// A run of `rounds` rounds with `write.bw` (primary), `write.iops`, `write.total_ios` (constant) and
/// `write.clat_ns.p99`, which moves against the bandwidth.
pub(super) fn run_of(made: &Made, rounds: u32) -> Run {
    let metric = |name: &str, unit: Unit, better: Better| Metric::new("", name, unit, better);
    let metrics = vec![
        metric("write.bw", Unit::BytesPerSecond, Better::Higher),
        metric("write.iops", Unit::PerSecond, Better::Higher),
        metric("write.total_ios", Unit::Count, Better::Higher),
        metric("write.clat_ns.p99", Unit::Nanoseconds, Better::Lower),
    ];
    let levels = vec!["0".to_owned(), "1".to_owned()];
    let design = Design {
        paired: made.paired,
        primary: made.paired.then(|| "write.bw".to_owned()),
        stop: made.stop,
        ..Design::new(vec![Factor::new("direct", levels)])
    };
    let source = if made.paired { Source::Measured } else { Source::Imported("made up".to_owned()) };
    Run {
        id: Some(1),
        seed: made.seed,
        engine: "simulated".to_owned(),
        facts: vec![HostFacts::default()],
        metrics,
        cells: vec![Cell { levels: vec![0] }, Cell { levels: vec![1] }],
        trials: trials(made, rounds),
        ..Run::new("made up", source, RunState::Finished, design)
    }
}

fn trials(made: &Made, rounds: u32) -> Vec<Trial> {
    let mut rng = ChaCha8Rng::seed_from_u64(made.seed);
    // Twelve uniforms: a normal good enough for tests.
    let mut noise = |cv: f64| cv * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
    let mut trials = Vec::new();
    for round in 0..rounds {
        for position in 0..2 {
            // AB, BA, AB, …
            let cell = (position + round) % 2;
            let log =
                f64::from(cell) * made.effect.ln_1p() + f64::from(position) * made.second + noise(made.cv);
            let bw = 4096.0 * 20_000.0 * log.exp();
            trials.push(Trial {
                cell,
                round,
                position,
                started_unix_ns: 1_000_000_000 * u64::from(2 * round + position + 1),
                elapsed_s: 1.0,
                facts: Some(0),
                values: vec![(0, bw), (1, bw / 4096.0), (2, 100_000.0), (3, 4e12 / bw)],
                ..Trial::default()
            });
        }
    }
    trials
}
