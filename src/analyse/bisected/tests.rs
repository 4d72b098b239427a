use super::*;
use crate::record::{Cell, Factor, Unit};

/// A run of `steps` steps whose change comes with step `change`.
fn stored(steps: usize) -> Run {
    let mut run = crate::analyse::made_up::run_of(&crate::analyse::made_up::Made::default(), 0);
    run.design.factors = vec![Factor::new("step", (0..=steps).map(|step| format!("s{step}")).collect())];
    run.design.primary = Some("took".to_owned());
    run.design.stop.max_rounds = 400;
    run.design.bisects = Some(Bisects {
        source: None,
        build: None,
        titles: Vec::new(),
        merges: Vec::new(),
        paths: Vec::new(),
        left_out: crate::record::LeftOut::default(),
        per_round: 1,
        ends_rounds: 60,
        kernels: false,
        for_better: false,
    });
    run.cells = (0..=steps as u32).map(|step| Cell { levels: vec![step] }).collect();
    run.metrics = vec![Metric::new("", "took", Unit::Seconds, Better::Lower)];
    run
}

/// Runs the search on: each round as it is asked for, the value of a trial by its step; `rounds` at most.
fn go_on(run: &mut Run, rounds: u32, mut value: impl FnMut(usize) -> Option<f64>) {
    for _ in 0..rounds {
        let now = Bisected::of(run).unwrap();
        if matches!(now.next, Next::Stop(_)) {
            return;
        }
        let round = now.rounds.len() as u32;
        for (position, step) in (0..).zip(now.of_round(round)) {
            run.trials.push(trial(round, position, step, value(step)));
        }
    }
}

fn trial(round: u32, position: u32, step: usize, value: Option<f64>) -> Trial {
    let status = match value {
        Some(_) => Status::Done,
        None => Status::Skipped { reason: "it cannot be built".to_owned() },
    };
    Trial {
        cell: step as u32,
        round,
        position,
        started_unix_ns: 1,
        elapsed_s: 1.0,
        status,
        values: value.map(|value| (0, value)).into_iter().collect(),
        ..Trial::default()
    }
}

fn found(run: &Run) -> (usize, usize) {
    match Bisected::of(run).unwrap().next {
        Next::Stop(Outcome::Found(found)) => (found.first, found.last),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stored_search_gives_its_answer_and_effect() {
    let mut run = stored(40);
    go_on(&mut run, 100, |step| Some(if step >= 31 { 1.1 } else { 1.0 }));
    assert_eq!(found(&run), (31, 31));
    let read = Bisected::of(&run).unwrap();
    let effect = read.effect.unwrap();
    assert!((effect.estimate - 0.1).abs() < 1e-9 && effect.low > 0.0, "{effect:?}");
    assert_eq!(read.pairs, read.rounds.len());
    assert!(read.rounds.iter().all(|round| round.whole && !round.excluded));
    // Where more is better, the bad side has less.
    run.metrics[0].better = Better::Higher;
    run.trials.clear();
    go_on(&mut run, 100, |step| Some(if step >= 31 { 0.9 } else { 1.0 }));
    assert_eq!(found(&run), (31, 31));
    assert!((Bisected::of(&run).unwrap().effect.unwrap().estimate + 0.1).abs() < 1e-9);
}

#[test]
fn at_any_trial_the_next_one_is_the_same() {
    let value = |step: usize| Some(if step >= 9 { 1.1 } else { 1.0 });
    let mut whole = stored(20);
    go_on(&mut whole, 100, value);
    for kept in 0..whole.trials.len() {
        let mut part = whole.clone();
        part.trials.truncate(kept);
        let read = Bisected::of(&part).unwrap();
        let next = &whole.trials[kept];
        assert!(read.of_round(next.round).contains(&(next.cell as usize)), "after {kept} trials");
        let steps = whole.trials.iter().filter(|trial| trial.round == next.round).count();
        assert_eq!(read.of_round(next.round).len(), steps, "after {kept} trials");
    }
}

#[test]
fn skipped_steps_and_thrown_out_rounds_are_left_out() {
    let mut run = stored(20);
    go_on(&mut run, 100, |step| (step != 8).then_some(if step >= 9 { 1.1 } else { 1.0 }));
    assert_eq!(found(&run), (8, 9));
    assert_eq!(Bisected::of(&run).unwrap().skipped, [(8, "it cannot be built".to_owned())]);
    // A round that was thrown out says nothing, and its question is asked again.
    let mut run = stored(20);
    let value = |step: usize| Some(if step >= 9 { 1.1 } else { 1.0 });
    go_on(&mut run, 5, value);
    let asked = Bisected::of(&run).unwrap().rounds[4].asked.clone();
    run.trials
        .iter_mut()
        .filter(|trial| trial.round == 4)
        .for_each(|trial| trial.excluded = Some("noise".to_owned()));
    assert_eq!(Bisected::of(&run).unwrap().next, Next::Ask(asked));
    go_on(&mut run, 100, value);
    assert_eq!(found(&run), (9, 9));
}

#[test]
fn values_without_a_ratio_are_counted() {
    let mut run = stored(5);
    go_on(&mut run, 1, |_| Some(0.0));
    let read = Bisected::of(&run).unwrap();
    assert_eq!((read.not_positive, read.pairs), (2, 0));
    run.design.bisects = None;
    assert_eq!(Bisected::of(&run), None, "it is no search");
}

#[test]
fn over_kernels_the_bandwidth_of_a_section_decides() {
    let mut run = stored(8);
    run.design.primary = None;
    run.design.bisects.as_mut().unwrap().kernels = true;
    (run.metrics[0].job, run.metrics[0].name) = ("w".to_owned(), "write.bw".to_owned());
    run.metrics[0].better = Better::Higher;
    let mut shake = 0.0;
    go_on(&mut run, 200, |step| {
        shake = (shake + 0.37) % 1.0;
        Some(if step >= 5 { 50.0 + shake } else { 100.0 + shake })
    });
    assert_eq!(found(&run), (5, 5));
    let effect = Bisected::of(&run).unwrap().effect.unwrap();
    assert!(effect.low < -0.45 && effect.high > -0.55 && effect.high < 0.0, "{effect:?}");
}

/// Values that scatter by 2 %.
fn scattered() -> impl FnMut(f64) -> f64 {
    let mut noise = 0_u32;
    move |value| {
        noise = noise.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        value * (1.0 + 0.02 * (f64::from(noise >> 16) / 65_536.0 - 0.5))
    }
}

#[test]
fn a_step_that_mostly_runs_is_not_skipped() {
    let (mut run, mut scattered) = (stored(20), scattered());
    let has_run = |run: &Run, step: usize| {
        run.trials.iter().any(|trial| trial.cell as usize == step && trial.status == Status::Done)
    };
    // Until a step is asked for the second time.
    let (now, asked) = loop {
        go_on(&mut run, 1, |step| Some(scattered(if step >= 9 { 1.02 } else { 1.0 })));
        let now = Bisected::of(&run).unwrap();
        match &now.next {
            Next::Ask(asked) if has_run(&run, asked[0]) => break (now.clone(), asked[0]),
            Next::Ends | Next::Ask(_) => {}
            Next::Stop(_) => panic!("{:?}", now.next),
        }
    };
    let round = now.rounds.len() as u32;
    let failed = Status::failed(FailureKind::Passing, "it died");
    for (position, step) in (0..).zip(now.of_round(round)) {
        let mut tried = trial(round, position, step, Some(1.0));
        if step == asked {
            (tried.status, tried.values, tried.attempt) = (failed.clone(), Vec::new(), 1);
        }
        run.trials.push(tried);
    }
    let read = Bisected::of(&run).unwrap();
    assert!(read.skipped.is_empty() && read.rounds.last().unwrap().whole, "{:?}", read.skipped);
    // One that has never run is.
    run.trials.retain(|trial| trial.round == round || trial.cell as usize != asked);
    assert_eq!(Bisected::of(&run).unwrap().skipped, [(asked, "it died".to_owned())]);
}

#[test]
fn a_second_change_and_a_lost_end_are_told() {
    // 5 % at one step, 5 % more at another; and one change alone.
    for (steps, expected) in [((10, 30), true), ((30, 30), false)] {
        let (mut run, mut scattered) = (stored(40), scattered());
        go_on(&mut run, 400, |step| {
            let worse = [steps.0, steps.1].iter().filter(|change| step >= **change).count() as i32;
            Some(scattered(1.05_f64.powi(worse)))
        });
        let read = Bisected::of(&run).unwrap();
        assert!(matches!(read.next, Next::Stop(Outcome::Found(_))), "{:?}", read.next);
        assert_eq!(!read.others.is_empty(), expected, "{:?} {:?}", read.next, read.others);
    }
    let mut lost = stored(5);
    go_on(&mut lost, 1, |step| (step != 5).then_some(1.0));
    assert_eq!(Bisected::of(&lost).unwrap().lost_end, Some((5, "it cannot be built".to_owned())));
}
