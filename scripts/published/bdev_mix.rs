//! Six groups of direct 4 KiB I/O on a block device.

use std::collections::BTreeMap;

use assay::record::Run;

use crate::shape::{Claim, Reasons, Shape};
use crate::study::{Found, Study, levels, mean, median, ratio, records, shown, table, values};

const TABLE: &str = include_str!("../../tests/data/published/bdev-fio-averages.csv");
const GROUPS: [&str; 6] = ["write1", "read1", "randwrite1", "randread1", "readwrite1", "randrw1"];
const HEADS: [&str; 6] = ["job", "read KB/s", "write KB/s", "usr %", "sys %", "csw"];
/// Processes of a group.
const PROCESSES: f64 = 4.0;

pub(crate) const STUDY: Study = Study {
    name: "bdev-mix",
    runs: &["bdev-mix"],
    was: "October 2012: a raw PCIe SSD, fio's libaio, four processes with 1024 requests in flight each, 4 KiB direct, averages of five\n\
          runs, for five kernels that guard the device's block size in different ways. Concluded: a per-CPU semaphore doubled the reads and\n\
          removed 92 % of the context switches of a plain one; nobody could say why from the table. Those kernels cannot be had\n\
          as packages. What is varied here is a stand-in between the jobs and the device, the I/O scheduler of a loop device (none: each\n\
          request by itself; mq-deadline: under one lock, neighbours made one); beside it stand the first kernel of the table and\n\
          the one with the per-CPU semaphore. Where both gain, they need not gain for the same reason.",
    published,
    ours,
    shapes,
};

const FIRST: &str = "3.6.0-rc5+";
/// The kernel with the per-CPU semaphore.
const BETTER: &str = "3.6.0-rc5.mikulas.3+";

fn published() -> String {
    let all = records(TABLE);
    let row = |job: &str, kernel: &str| {
        let of = |column| shown(mean(&all, &[("kernel", kernel), ("job", job)], column));
        let columns = ["read_kb_s", "write_kb_s", "usr_pct", "sys_pct", "csw"];
        std::iter::once(job.to_owned()).chain(columns.map(of)).collect()
    };
    let of = |name: &str, kernel: &str| {
        format!("{name}:\n\n{}", table(&HEADS, 1, &GROUPS.map(|job| row(job, kernel))))
    };
    of(FIRST, FIRST) + "\n" + &of("with the per-CPU semaphore", BETTER)
}

/// An arm's values of a group; arm 0 is the baseline.
fn of(run: &Run, arm: usize, job: &str, metric: &str) -> BTreeMap<u32, f64> {
    let factor = &run.design.factors[run.design.compare];
    values(run, &[(factor.name.as_str(), factor.levels[arm].as_str())], job, metric)
}

/// Processor time in percent of the four processes' time, as fio prints it for a group.
fn percent(run: &Run, arm: usize, job: &str, metric: &str) -> BTreeMap<u32, f64> {
    let times = ["read.runtime", "write.runtime"].map(|name| of(run, arm, job, name));
    let took =
        |round: &u32| times.iter().filter_map(|times| times.get(round)).fold(0.0_f64, |a, b| a.max(*b));
    let used = of(run, arm, job, metric);
    used.iter().map(|(round, seconds)| (*round, seconds / (took(round) * PROCESSES) * 100.0)).collect()
}

fn ours(runs: &[&Run]) -> Found<String> {
    let run = runs[0];
    let row = |arm: usize, job: &str| {
        let rate = |direction: &str| {
            let value = median(&of(run, arm, job, &format!("{direction}.bw"))) / 1024.0;
            shown(if value.is_finite() { value } else { 0.0 })
        };
        let cpu = |metric| shown(median(&percent(run, arm, job, metric)));
        vec![
            job.to_owned(),
            rate("read"),
            rate("write"),
            cpu("usr_cpu"),
            cpu("sys_cpu"),
            shown(median(&of(run, arm, job, "ctx"))),
        ]
    };
    let factor = &run.design.factors[run.design.compare];
    let arms = levels(run, &factor.name).iter().take(2).enumerate();
    let tables = arms.map(|(arm, level)| {
        format!("{}={level}:\n\n{}", factor.name, table(&HEADS, 1, &GROUPS.map(|job| row(arm, job))))
    });
    Ok(tables.collect::<Vec<_>>().join("\n"))
}

fn shapes(runs: &[&Run]) -> Found<Vec<Shape>> {
    let run = runs[0];
    if run.design.factors[run.design.compare].levels.len() < 2 {
        return Err("bdev-mix has one arm only".into());
    }
    let mut found = of_the_groups(run)?;
    found.extend(of_the_arms(run)?);
    Ok(found)
}

/// How the six groups compare on the baseline.
fn of_the_groups(run: &Run) -> Found<Vec<Shape>> {
    let all = records(TABLE);
    let was = |job: &str, column: &str| mean(&all, &[("kernel", FIRST), ("job", job)], column);
    let shape = |says: &str, claim, (over, column): (&str, &str), (under, other): (&str, &str), otherwise| {
        let here = |job: &str, column: &str| of(run, 0, job, &column.replace("_kb_s", ".bw"));
        Ok(Shape {
            says: says.to_owned(),
            claim,
            published: was(over, column) / was(under, other),
            here: ratio(&here(over, column), &here(under, other))?,
            otherwise,
        })
    };
    const NEAR: Reasons = Reasons {
        differs: "neighbours lie together in the file below a loop device and on the disk below that, random blocks do not; the study's \
            SSD did not care.",
        ..Reasons::NONE
    };
    const CACHE: Reasons = Reasons {
        differs: "a write and a read of the file below a loop device take different ways through its filesystem and the virtual disk; \
            the study's SSD took both alike.",
        ..Reasons::NONE
    };
    let even = Claim::Between(0.8, 1.25);
    vec![
        shape(
            "random reads are as fast as sequential ones, KB/s of randread1 / read1",
            even,
            ("randread1", "read_kb_s"),
            ("read1", "read_kb_s"),
            NEAR,
        ),
        shape(
            "random writes are as fast as sequential ones, KB/s of randwrite1 / write1",
            even,
            ("randwrite1", "write_kb_s"),
            ("write1", "write_kb_s"),
            NEAR,
        ),
        shape(
            "reads and writes are equally fast, KB/s of read1 / write1",
            even,
            ("read1", "read_kb_s"),
            ("write1", "write_kb_s"),
            CACHE,
        ),
        shape(
            "a mixed group does as much of one as of the other, KB/s read / written of randrw1",
            Claim::Between(0.95, 1.05),
            ("randrw1", "read_kb_s"),
            ("randrw1", "write_kb_s"),
            Reasons::NONE,
        ),
    ]
    .into_iter()
    .collect()
}

/// What the better of two ways through the block layer wins.
fn of_the_arms(run: &Run) -> Found<Vec<Shape>> {
    let all = records(TABLE);
    let factor = &run.design.factors[run.design.compare];
    let arms = format!("{} / {}", factor.levels[1], factor.levels[0]);
    let shape = |job: &str, (column, metric): (&str, &str), says: &str, claim, otherwise| -> Found<Shape> {
        let was = |kernel| mean(&all, &[("kernel", kernel), ("job", job)], column);
        Ok(Shape {
            says: format!("{says} of {job}: per-CPU semaphore / first kernel there, {arms} here"),
            claim,
            published: was(BETTER) / was(FIRST),
            here: ratio(&of(run, 1, job, metric), &of(run, 0, job, metric))?,
            otherwise,
        })
    };
    const OTHER: Reasons = Reasons {
        differs: "the stand-in gains by making one request of neighbours, and random blocks have none; the study's lock was in the way of \
            every request.",
        ..Reasons::NONE
    };
    Ok(vec![
        shape(
            "read1",
            ("read_kb_s", "read.bw"),
            "sequential reads gain, KB/s",
            Claim::Above(1.0),
            Reasons::NONE,
        )?,
        shape(
            "read1",
            ("csw", "ctx"),
            "and with them go context switches, their number",
            Claim::Below(1.0),
            Reasons::NONE,
        )?,
        shape("randread1", ("read_kb_s", "read.bw"), "random reads gain, KB/s", Claim::Above(1.0), OTHER)?,
    ])
}
