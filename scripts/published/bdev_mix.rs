//! Six groups of direct 4 KiB I/O on a block device.

use std::collections::BTreeMap;

use assay::record::Run;

use crate::study::{Found, Study, levels, mean, median, records, shown, table, values};

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
    claims: include_str!("claims/bdev-mix.toml"),
    in_full: "`assay run bdev-mix` in full takes 4 to 12 minutes.",
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
