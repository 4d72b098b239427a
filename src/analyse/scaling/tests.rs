//! Laws of made-up runs: what is found, what differs between arms, and every refusal.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::made_up::{Made, run_of};
use super::super::{Options, analyse};
use super::{NoLaw, Scaling};
use crate::record::{Cell, Factor, Run, StopRule, Trial};
use crate::stats::scalability_law::Law;
use crate::units::Unit;

const LEVELS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const LAW: Law = Law { gamma: 1e8, alpha: 0.05, beta: 0.002 };

/// A run of two arms (`fs`) by numbers of `factor`, whose throughput is what `law` says of arm and level, with noise.
fn run(factor: &str, levels: &[u32], rounds: u32, processors: u32, law: impl Fn(u32, f64) -> f64) -> Run {
    seeded(11, factor, levels, rounds, processors, law)
}

fn seeded(
    seed: u64,
    factor: &str,
    levels: &[u32],
    rounds: u32,
    processors: u32,
    law: impl Fn(u32, f64) -> f64,
) -> Run {
    let stop = StopRule { rounds: Some(rounds), ..StopRule::default() };
    let mut run = run_of(&Made { stop, ..Made::default() }, rounds);
    let labels = levels.iter().map(u32::to_string).collect();
    run.design.factors =
        vec![Factor::new("fs", vec!["xfs".to_owned(), "ext4".to_owned()]), Factor::new(factor, labels)];
    let cell = |at: usize| Cell { levels: vec![(at / levels.len()) as u32, (at % levels.len()) as u32] };
    run.cells = (0..2 * levels.len()).map(cell).collect();
    run.metrics.truncate(1);
    run.facts[0].set("cpu.count", processors.to_string());
    let pattern = run.trials[0].clone();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = || 0.005 * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
    run.trials.clear();
    for round in 0..rounds {
        for cell in 0..run.cells.len() as u32 {
            let own = &run.cells[cell as usize].levels;
            let value = law(own[0], f64::from(levels[own[1] as usize])) * noise().exp();
            let position = if round % 2 == 0 { cell } else { run.cells.len() as u32 - 1 - cell };
            run.trials.push(Trial { cell, round, position, values: vec![(0, value)], ..pattern.clone() });
        }
    }
    run
}

fn only(run: &Run) -> Scaling {
    let mut found = analyse(run, &Options::default()).scaling;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Why the first arm has no law; the other one has none for the same reason.
fn refused(run: &Run) -> NoLaw {
    let found = only(run);
    let kind = |curve: usize| found.curves[curve].refused.as_ref().map(std::mem::discriminant);
    assert_eq!(kind(0), kind(1), "{found:?}");
    assert!(found.differences.is_empty() && found.curves[0].law.is_none());
    assert!(found.curves[0].points.iter().all(|point| !point.fitted && point.mean > 0.0));
    found.curves[0].refused.clone().unwrap()
}

#[test]
fn both_arms_laws_are_found_and_what_differs() {
    let twice_the_crosstalk = Law { beta: 0.004, ..LAW };
    let found =
        only(&run("numjobs", &LEVELS, 8, 64, |arm, n| [LAW, twice_the_crosstalk][arm as usize].at(n)));
    assert_eq!((found.factor.as_str(), found.processors), ("numjobs", Some(64)));
    let law = found.curves[0].law.as_ref().unwrap();
    assert!((law.alpha.estimate - 0.05).abs() < 0.005 && (law.beta.estimate - 0.002).abs() < 2e-4, "{law:?}");
    assert!((law.gamma.estimate - 1e8).abs() < 2e6 && (law.peak.estimate - LAW.peak()).abs() < 1.5);
    assert!(law.peak.low <= LAW.peak() && LAW.peak() <= law.peak.high && law.residual < 0.01);
    assert!((law.ceiling.unwrap() / 2e9 - 1.0).abs() < 0.1 && law.last == 32);
    assert_eq!(found.curves[1].of, [("fs".to_owned(), "ext4".to_owned())]);
    let difference = &found.differences[0];
    assert_eq!((difference.curves, difference.differs.as_slice()), ([0, 1], &["beta".to_owned()][..]));
    assert!((difference.beta.estimate - 0.002).abs() < 4e-4, "{difference:?}");
    let points: Vec<u32> = found.curves[0].points.iter().map(|point| point.level).collect();
    assert!(points == LEVELS && found.curves[0].points.iter().all(|point| point.n == 8 && point.fitted));
}

#[test]
fn equal_laws_seldom_differ_however_few_rounds() {
    for rounds in [4, 6] {
        let differs = (0..200).filter(|seed| {
            let run = seeded(*seed, "numjobs", &LEVELS, rounds, 64, |_, n| LAW.at(n));
            only(&run).differences.iter().any(|found| !found.differs.is_empty())
        });
        // 10 of 200 are promised at most; three standard errors more are 19.
        let differs = differs.count();
        println!("of 200 pairs of equal laws at {rounds} rounds {differs} differ");
        assert!(differs <= 19, "{rounds} rounds: {differs}");
    }
}

#[test]
fn more_workers_than_processors_are_not_fitted() {
    let levels = [1, 2, 3, 4, 5, 6, 8, 16];
    let found = only(&run("numjobs", &levels, 6, 6, |_, n| if n > 6.0 { 1e8 } else { LAW.at(n) }));
    let curve = &found.curves[0];
    assert!(curve.points.iter().all(|point| point.fitted == (point.level <= 6)), "{curve:?}");
    assert_eq!(curve.law.as_ref().unwrap().last, 6);
    let two = refused(&run("numjobs", &[1, 2, 4, 8, 16], 6, 2, |_, n| LAW.at(n)));
    assert_eq!(two, NoLaw::FewLevels { levels: 2, of: 5 });
    let depth = only(&run("iodepth", &LEVELS, 6, 2, |_, n| LAW.at(n)));
    assert!(depth.processors.is_none() && depth.curves[0].law.is_some(), "I/Os in flight need no processor");
}

#[test]
fn refusals() {
    let of =
        |levels: &[u32], rounds, law: fn(u32, f64) -> f64| refused(&run("threads", levels, rounds, 99, law));
    assert_eq!(of(&LEVELS[..5], 6, |_, n| LAW.at(n)), NoLaw::FewLevels { levels: 5, of: 5 });
    assert_eq!(of(&[8, 9, 10, 11, 12, 13], 6, |_, n| LAW.at(n)), NoLaw::NarrowRange { from: 8, to: 13 });
    assert_eq!(of(&LEVELS, 3, |_, n| LAW.at(n)), NoLaw::FewRounds { rounds: 3 });
    let jagged = of(&LEVELS, 6, |_, n| if n == 8.0 { 2e8 } else { 1e8 * n });
    assert!(matches!(jagged, NoLaw::Misses { residual } if residual > 0.1), "{jagged:?}");
    // Throughput that hardly changes has its peak anywhere.
    let flat = of(&LEVELS, 6, |_, n| Law { gamma: 1e8, alpha: 0.97, beta: 1e-4 }.at(n));
    assert!(matches!(flat, NoLaw::PeakUnknown { .. }), "{flat:?}");
    let mut time = run("threads", &LEVELS, 6, 99, |_, n| LAW.at(n));
    (time.metrics[0].unit, time.metrics[0].name) = (Unit::Seconds, "runtime".to_owned());
    time.design.primary = Some("runtime".to_owned());
    assert_eq!(refused(&time), NoLaw::NoThroughput { metric: "runtime".to_owned() });
}

#[test]
fn a_line_without_a_peak_is_known_to_have_none_nearby() {
    let found = only(&run("clients", &LEVELS, 8, 99, |_, n| 1e8 * n));
    let law = found.curves[0].law.as_ref();
    assert!(law.is_some_and(|law| law.peak.low >= 64.0), "{:?}", found.curves[0]);
}

#[test]
fn rows_scale_where_the_number_itself_is_compared() {
    let made = run("threads", &LEVELS, 8, 99, |arm, n| if arm == 0 { LAW.at(n) } else { 1e8 * n.sqrt() });
    let options = Options { compare: Some("threads".to_owned()), ..Options::default() };
    let mut found = analyse(&made, &options).scaling;
    assert_eq!(found.len(), 1);
    let scaling = found.remove(0);
    let of: Vec<&str> = scaling.curves.iter().map(|curve| curve.of[0].1.as_str()).collect();
    assert_eq!((of, scaling.row.len()), (vec!["xfs", "ext4"], 0));
    assert!(scaling.curves[0].law.is_some());
}

#[test]
fn a_bandwidth_stands_for_a_time_that_decides() {
    let mut made = run("numjobs", &LEVELS, 6, 99, |_, n| LAW.at(n));
    let time = crate::record::Metric {
        name: "runtime".to_owned(),
        unit: Unit::Seconds,
        better: crate::units::Better::Lower,
        ..made.metrics[0].clone()
    };
    made.metrics.push(time);
    made.trials.iter_mut().for_each(|trial| trial.values.push((1, 1e9 / trial.values[0].1)));
    made.design.primary = Some("runtime".to_owned());
    let found = only(&made);
    assert_eq!(found.curves[0].metric.name, "write.bw");
    assert!(found.curves[0].law.is_some());
}

#[test]
fn what_is_no_number_of_workers_has_no_curve() {
    let none = |made: Run| analyse(&made, &Options::default()).scaling.is_empty();
    assert!(none(run("bs", &LEVELS, 6, 99, |_, n| LAW.at(n))), "a size");
    assert!(none(run("numjobs", &LEVELS[..2], 6, 99, |_, n| LAW.at(n))), "two levels are a comparison");
    let mut words = run("numjobs", &LEVELS, 6, 99, |_, n| LAW.at(n));
    words.design.factors[1].levels[0] = "few".to_owned();
    assert!(none(words));
    let mut aa = run("numjobs", &LEVELS, 6, 99, |_, n| LAW.at(n));
    aa.aa = true;
    assert!(none(aa));
    let mut sets = run("threads per file", &LEVELS, 6, 99, |_, n| LAW.at(n));
    sets.design.factors[1].sets = vec!["fs_mark.threads".to_owned()];
    assert!(!none(sets), "what the levels set counts");
}

#[test]
fn results_without_rounds_are_drawn_cell_by_cell() {
    let mut made = run("numjobs", &LEVELS, 6, 99, |_, n| LAW.at(n));
    made.design.paired = false;
    made.design.stop = StopRule::default();
    made.source = crate::record::Source::Imported("made up".to_owned());
    let found = only(&made);
    assert!(found.curves[0].law.is_some(), "{:?}", found.curves[0].refused);
}
