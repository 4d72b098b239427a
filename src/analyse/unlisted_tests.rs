//! What says nothing of its own is compared and not listed, and forms for each operation stand for what they are made of.

use super::made_up::{Made, run_of};
use super::*;
use crate::record::{Metric, StopRule};
use crate::units::{Better, Unit};

/// A run of ten rounds in which the candidate does 1.5 times the work for each operation, and `twice` as many operations.
fn run(twice: bool) -> Run {
    let stop = StopRule { rounds: Some(10), ..StopRule::default() };
    let mut run = run_of(&Made { effect: 1.0, stop, ..Made::default() }, 10);
    let metric = |name: &str| Metric::new("", name, Unit::Count, Better::Lower);
    // Behind write.bw, write.iops, write.total_ios and write.clat_ns.p99.
    run.metrics.extend(["write.io_bytes", "usr_cpu", "dev.write_bytes", "minf", "ctx.voluntary"].map(metric));
    for trial in &mut run.trials {
        let candidate = trial.cell == 1;
        let bytes = if twice { trial.values[0].1 } else { 4096e5 };
        let noise = 1.0 + 0.002 * f64::from((trial.round * 7 + trial.cell) % 5);
        let work = if candidate { 1.5 * noise } else { noise };
        trial.values[2].1 = bytes / 4096.0;
        let made =
            [bytes, 1e-9 * bytes * work, bytes * work, if candidate { 15.0 } else { 9.0 }, bytes / 1e4];
        trial.values.extend((4_u32..).zip(made));
    }
    run
}

fn unlisted(run: &Run, options: &Options) -> BTreeMap<String, Option<Unlisted>> {
    let comparisons = analyse(run, options).comparisons;
    comparisons.into_iter().map(|c| (c.metric.name, c.unlisted)).collect()
}

fn same_as(metric: &str) -> Option<Unlisted> {
    Some(Unlisted::SameAs { metric: metric.to_owned() })
}

#[test]
fn four_amounts_of_one_job_are_one_row() {
    let told = unlisted(&run(true), &Options::default());
    assert_eq!(told["write.bw"], None, "it decides");
    for name in ["write.iops", "write.total_ios", "write.io_bytes"] {
        assert_eq!(told[name], same_as("write.bw"), "{name}");
    }
    assert_eq!(told["write.clat_ns.p99"], None);
    let mut others = run(true);
    others.trials.iter_mut().for_each(|trial| trial.values[1].1 *= 1.0 + 0.02 * f64::from(trial.round % 2));
    assert_eq!(unlisted(&others, &Options::default())["write.iops"], None, "its ratio moves by 2 %");
}

#[test]
fn latency_decides_and_one_amount_is_listed() {
    let options = Options { primary: Some("write.clat_ns.p99".to_owned()), ..Options::default() };
    let told = unlisted(&run(true), &options);
    assert_eq!(told["write.bw"], None);
    assert_eq!(told["write.io_bytes"], same_as("write.bw"));
}

#[test]
fn work_is_compared_for_each_operation_where_amounts_differ() {
    let form = |metric: &str| Some(Unlisted::Form { metric: metric.to_owned() });
    let told = unlisted(&run(true), &Options::default());
    assert_eq!((&told["usr_cpu"], &told["usr_cpu_per_op"]), (&form("usr_cpu_per_op"), &None));
    let per_byte = "dev.write_bytes_per_byte";
    assert_eq!((&told["dev.write_bytes"], &told[per_byte]), (&form(per_byte), &None));
    let comparisons = analyse(&run(true), &Options::default()).comparisons;
    let effect =
        |name: &str| comparisons.iter().find(|c| c.metric.name == name).unwrap().effect.unwrap().estimate;
    assert!((effect("usr_cpu_per_op") - 0.5).abs() < 0.02, "half as much again for each operation");
    assert!(effect("usr_cpu") > 1.8, "three times as much in all");
}

#[test]
fn work_is_compared_as_it_is_where_amounts_are_alike() {
    let told = unlisted(&run(false), &Options::default());
    assert_eq!((&told["usr_cpu"], &told["usr_cpu_per_op"]), (&None, &same_as("usr_cpu")));
    assert_eq!(told["dev.write_bytes"], None);
}

#[test]
fn flushes_an_fsync_are_listed_where_they_tell_more() {
    let told = |syncs: [f64; 2]| {
        let mut run = run(false);
        for name in ["dev.flushes", "dev.flushes_per_op", "dev.flushes_per_sync"] {
            run.metrics.push(Metric { name: name.to_owned(), ..run.metrics[6].clone() });
        }
        for trial in &mut run.trials {
            let noise = 1.0 + 0.01 * f64::from(trial.round % 3);
            let each = if trial.cell == 1 { 2.0 * noise } else { noise };
            let made = [1000.0 * each, 0.5 * each, each / syncs[trial.cell as usize]];
            trial.values.extend((9_u32..).zip(made));
        }
        unlisted(&run, &Options::default())["dev.flushes_per_sync"].clone()
    };
    assert_eq!(told([1.0, 1.0]), same_as("dev.flushes_per_op"));
    assert_eq!(told([1.0, 4.0]), None, "half as many for each");
}

#[test]
fn a_few_page_faults_tell_nothing() {
    let told = unlisted(&run(true), &Options::default());
    assert_eq!(told["minf"], Some(Unlisted::Few), "15 against 9");
    assert_ne!(told["ctx.voluntary"], Some(Unlisted::Few), "thousands");
}

#[test]
fn what_the_reader_names_is_listed_and_may_decide() {
    let named = Options { metrics: vec!["minf".to_owned(), "write.iops".to_owned()], ..Options::default() };
    let told = unlisted(&run(true), &named);
    assert_eq!((&told["minf"], &told["write.iops"]), (&None, &None));
    let form = Options { primary: Some("usr_cpu_per_op".to_owned()), ..Options::default() };
    assert_eq!(form.check(&run(true)), Ok(()));
    let comparisons = analyse(&run(true), &form).comparisons;
    let decides = comparisons.iter().find(|c| c.role == Role::Primary).unwrap();
    assert_eq!((decides.metric.name.as_str(), decides.is_better()), ("usr_cpu_per_op", Some(false)));
}
