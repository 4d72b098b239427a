use super::*;
use crate::record::{Cell, Factor, Unit};

/// A run of `steps` steps whose change comes with step `change`.
fn run(steps: usize) -> Run {
    let mut run = crate::analyse::made_up::run_of(&crate::analyse::made_up::Made::default(), 0);
    run.design.factors = vec![Factor::new("step", (0..=steps).map(|step| format!("s{step}")).collect())];
    run.design.primary = Some("took".to_owned());
    run.design.stop.max_rounds = 400;
    run.design.bisects =
        Some(Bisects { source: None, build: None, titles: Vec::new(), per_round: 1, ends_rounds: 60 });
    run.cells = (0..=steps as u32).map(|step| Cell { levels: vec![step] }).collect();
    run.metrics = vec![Metric {
        job: String::new(),
        name: "took".to_owned(),
        unit: Unit::Seconds,
        better: Better::Lower,
    }];
    run
}
