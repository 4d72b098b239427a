//! A store with one finished run of N trials (default 100,000), to see how long its report takes:
//! `many-trials STORE [N]`. Two arms on ten rows, every trial with the samples, histogram and series of the simulated engine.

use std::path::Path;

use assay::engine::{Engine, SimulatedCell, Task, simulated::Simulated};
use assay::record::{
    Cell, Design, Factor, HostFacts, Outcome, Run, RunState, Source, Status, StopRule, Trial,
};
use assay::store::Store;

const ARMS: u32 = 2;
const ROWS: u32 = 10;
/// Outcomes that the trials take turns with: drawing 10,000 latencies for each trial would take minutes.
const DRAWN: u64 = 97;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("many-trials STORE [N]")?;
    let trials: u32 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let rounds = trials / (ARMS * ROWS);
    let mut run = empty(rounds);
    let facts = run.facts_index(&HostFacts::default());
    let outcomes = (0..DRAWN).map(outcome).collect::<Result<Vec<_>, _>>()?;
    for round in 0..rounds {
        for position in 0..ARMS * ROWS {
            let number = u64::from(round * ARMS * ROWS + position);
            let outcome = &outcomes[(number.wrapping_mul(2_654_435_761) >> 7) as usize % outcomes.len()];
            // The second arm is 3 % faster.
            let factor =
                if position % ARMS == 1 { 1.03 } else { 1.0 } * (1.0 + (number % 1009) as f64 * 1e-6);
            let values = outcome
                .samples
                .iter()
                .map(|sample| (run.metric_index(&sample.metric), sample.value * factor))
                .collect();
            run.trials.push(Trial {
                cell: position,
                round,
                position,
                attempt: 0,
                started_unix_ns: run.started_unix_ns + number * 10_500_000_000,
                elapsed_s: 10.4,
                facts: Some(facts),
                status: Status::Done,
                excluded: None,
                values,
                histograms: outcome.histograms.clone(),
                series: outcome.series.clone(),
                files: Vec::new(),
                notes: Vec::new(),
            });
        }
    }
    Store::open(Path::new(&path))?.insert_run(&run)?;
    use std::io::Write;
    writeln!(std::io::stdout(), "{} trials in {path}", run.trials.len())?;
    Ok(())
}

fn outcome(seed: u64) -> Result<Outcome, Box<dyn std::error::Error>> {
    let simulated = Some(SimulatedCell { bw: 5e8, effect: 0.0, cv: 0.03, sleep_ms: 0, fail: 0.0 });
    Ok(Simulated.run(&Task { simulated, seed, ..Task::default() })?)
}

fn empty(rounds: u32) -> Run {
    let factor = |name: &str, levels: u32| {
        Factor::new(name, (0..levels).map(|level| format!("{name}{level}")).collect())
    };
    let design = Design {
        paired: true,
        primary: Some("write.bw".to_owned()),
        stop: StopRule { rounds: Some(rounds), ..StopRule::default() },
        ..Design::new(vec![factor("arm", ARMS), factor("row", ROWS)])
    };
    Run {
        started_unix_ns: 1_772_366_400_000_000_000,
        seed: 42,
        engine: "simulated".to_owned(),
        cells: (0..ARMS * ROWS).map(|cell| Cell { levels: vec![cell % ARMS, cell / ARMS] }).collect(),
        ..Run::new("many-trials", Source::Measured, RunState::Finished, design)
    }
}
