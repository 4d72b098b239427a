//! What was measured, as a run of the store and as JSON.
//!
//! Enters: an outcome. Leaves: a run with one arm, whose trials are the rounds, and one JSON object. Nothing is judged here.

use serde_json::{Value, json};

use crate::analyse::{ceilings, saturated};
use crate::probe::{Outcome, Settings};
use crate::record::{
    Cell, Design, Factor, HostFacts, Note, PROBE_ENGINE, Run, RunState, Sample, Source, StopRule, Trial,
};

/// A load above this part of the processors takes some from the probes.
const BUSY: f64 = 0.5;
/// What is measured by depth.
const BY_DEPTH: [&str; 2] = ["read.4k", "write.4k"];

/// The run that is stored; `times` are its begin and end.
pub(super) fn run(
    settings: &Settings,
    outcome: &Outcome,
    facts: HostFacts,
    quick: bool,
    times: (u64, u64),
) -> Run {
    let directory = settings.directory.display().to_string();
    let left_out = outcome.left_out.iter().map(|left| format!("not measured: {} ({})", left.what, left.why));
    let notes: Vec<Note> = busy(&facts).into_iter().chain(left_out).map(Note::from).collect();
    let groups: Vec<&str> = settings.groups.iter().map(|group| group.name()).collect();
    let stop = StopRule { rounds: Some(outcome.rounds), max_rounds: outcome.rounds, ..StopRule::default() };
    let factors = vec![Factor::new("directory", vec![directory.clone()])];
    let design = Design { paired: true, stop, ..Design::new(factors) };
    let mut run = Run {
        started_unix_ns: times.0,
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        engine: format!("{PROBE_ENGINE} {}", env!("CARGO_PKG_VERSION")),
        experiment: json!({ "probe": { "directory": directory, "groups": groups, "quick": quick } }),
        facts: vec![facts],
        cells: vec![Cell { levels: vec![0] }],
        notes,
        ..Run::new("probe", Source::Measured, RunState::Finished, design)
    };
    let indices: Vec<u32> = outcome
        .measured
        .iter()
        .map(|measured| {
            let unit = measured.unit.clone();
            run.metric_index(&Sample::new(measured.group.name(), &measured.name, unit, 0.0).metric)
        })
        .collect();
    run.trials = trials(outcome, &indices, times);
    run
}

/// A trial a round.
fn trials(outcome: &Outcome, indices: &[u32], (began, ended): (u64, u64)) -> Vec<Trial> {
    let of_round = ended.saturating_sub(began) / u64::from(outcome.rounds.max(1));
    let values = |round: u32| -> Vec<(u32, f64)> {
        let figures = indices.iter().zip(&outcome.measured);
        figures
            .filter_map(|(index, measured)| Some((*index, *measured.values.get(round as usize)?)))
            .collect()
    };
    let trial = |round: u32| Trial {
        cell: 0,
        round,
        started_unix_ns: began + u64::from(round) * of_round,
        elapsed_s: of_round as f64 / 1e9,
        facts: Some(0),
        values: values(round),
        ..Trial::default()
    };
    (0..outcome.rounds).map(trial).collect()
}

/// That others used the machine when it began: then it can do more than the figures say.
fn busy(facts: &HostFacts) -> Option<String> {
    let number = |name: &str| facts.get(name)?.parse::<f64>().ok();
    let (load, processors) = (number("now.load1")?, number("cpu.count")?);
    (load > BUSY * processors).then(|| {
        format!("the load was {load:.1} on {processors} processors when it began: rates are too low, and times too long")
    })
}

/// Everything as one object (docs/probe.md).
pub(super) fn json(run: &Run) -> Value {
    let all = ceilings(run);
    let measured: Vec<Value> = all
        .iter()
        .map(|ceiling| {
            json!({ "group": ceiling.group, "name": ceiling.name, "unit": ceiling.unit.symbol(),
                "median": ceiling.median, "low": ceiling.low, "high": ceiling.high, "rounds": ceiling.n,
                "values": ceiling.values })
        })
        .collect();
    let saturation: Vec<Value> = BY_DEPTH
        .iter()
        .filter_map(|kind| {
            let found = saturated(&all, "device", kind)?;
            let ceiling = found.ceiling;
            Some(json!({ "name": kind, "depth": ceiling.level(), "median": ceiling.median,
                "unit": ceiling.unit.symbol(), "reached": found.is_reached }))
        })
        .collect();
    let notes: Vec<&str> = run.notes.iter().map(|note| &*note.text).collect();
    json!({ "format": "assay-probe", "version": 1, "run": run.id, "started_unix_ns": run.started_unix_ns,
        "directory": run.arms().first(), "quick": run.experiment["probe"]["quick"], "measured": measured,
        "saturation": saturation, "notes": notes, "facts": run.facts.first() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_said() {
        let facts = |load: &str| {
            let mut facts = HostFacts::default();
            facts.set("now.load1", load);
            facts.set("cpu.count", "4");
            facts
        };
        assert_eq!(busy(&facts("1.9")), None);
        let said = busy(&facts("2.13")).unwrap();
        assert_eq!(
            said,
            "the load was 2.1 on 4 processors when it began: rates are too low, and times too long"
        );
        assert_eq!(busy(&HostFacts::default()), None);
    }
}
