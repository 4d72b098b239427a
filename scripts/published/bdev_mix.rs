//! Six groups of direct 4 KiB I/O on a block device.

use std::collections::BTreeMap;

use assay::record::Run;

use crate::shape::{Claim, Shape};
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
          as packages, so what is compared here is the shape of the six groups on one kernel; the first kernel of the table is shown.",
    published,
    ours,
    shapes,
};

const FIRST: &str = "3.6.0-rc5+";

fn published() -> String {
    let all = records(TABLE);
    let row = |job: &str| {
        let of = |column| shown(mean(&all, &[("kernel", FIRST), ("job", job)], column));
        let columns = ["read_kb_s", "write_kb_s", "usr_pct", "sys_pct", "csw"];
        std::iter::once(job.to_owned()).chain(columns.map(of)).collect()
    };
    table(&HEADS, 1, &GROUPS.map(row))
}

/// The baseline's values of a group.
fn of(run: &Run, job: &str, metric: &str) -> BTreeMap<u32, f64> {
    let factor = &run.design.factors[run.design.compare];
    values(run, &[(factor.name.as_str(), factor.levels[0].as_str())], job, metric)
}

/// Processor time in percent of the four processes' time, as fio prints it for a group.
fn percent(run: &Run, job: &str, metric: &str) -> BTreeMap<u32, f64> {
    let times = ["read.runtime", "write.runtime"].map(|name| of(run, job, name));
    let took =
        |round: &u32| times.iter().filter_map(|times| times.get(round)).fold(0.0_f64, |a, b| a.max(*b));
    let used = of(run, job, metric);
    used.iter().map(|(round, seconds)| (*round, seconds / (took(round) * PROCESSES) * 100.0)).collect()
}

fn ours(runs: &[&Run]) -> Found<String> {
    let run = runs[0];
    let row = |job: &str| {
        let rate = |direction: &str| {
            let value = median(&of(run, job, &format!("{direction}.bw"))) / 1024.0;
            shown(if value.is_finite() { value } else { 0.0 })
        };
        let cpu = |metric| shown(median(&percent(run, job, metric)));
        vec![
            job.to_owned(),
            rate("read"),
            rate("write"),
            cpu("usr_cpu"),
            cpu("sys_cpu"),
            shown(median(&of(run, job, "ctx"))),
        ]
    };
    let arm = &levels(run, &run.design.factors[run.design.compare].name)[0];
    let head = format!("{}={arm}, the baseline of the run:\n\n", run.design.factors[run.design.compare].name);
    Ok(head + &table(&HEADS, 1, &GROUPS.map(row)))
}

fn shapes(runs: &[&Run]) -> Found<Vec<Shape>> {
    let (run, all) = (runs[0], records(TABLE));
    let was = |job: &str, column: &str| mean(&all, &[("kernel", FIRST), ("job", job)], column);
    let published = |over: (&str, &str), under: (&str, &str)| was(over.0, over.1) / was(under.0, under.1);
    let shape = |says: &str, claim, published, here, otherwise| Shape {
        says: says.to_owned(),
        claim,
        published,
        here,
        otherwise,
    };
    const ZRAM: &str = "zram does the work of a write (it looks for room and tries to compress the page) in the writer's own time, and a \
        read only copies; the SSD of the study did both by itself.";
    const CACHE: &str = "a page that lies in memory next to the one before is nearer than a random one; on an SSD that makes no difference.";
    Ok(vec![
        shape(
            "random reads are as fast as sequential ones, KB/s of randread1 / read1",
            Claim::Between(0.8, 1.25),
            published(("randread1", "read_kb_s"), ("read1", "read_kb_s")),
            ratio(&of(run, "randread1", "read.bw"), &of(run, "read1", "read.bw"))?,
            CACHE,
        ),
        shape(
            "random writes are as fast as sequential ones, KB/s of randwrite1 / write1",
            Claim::Between(0.8, 1.25),
            published(("randwrite1", "write_kb_s"), ("write1", "write_kb_s")),
            ratio(&of(run, "randwrite1", "write.bw"), &of(run, "write1", "write.bw"))?,
            CACHE,
        ),
        shape(
            "reads and writes are equally fast, KB/s of read1 / write1",
            Claim::Between(0.8, 1.25),
            published(("read1", "read_kb_s"), ("write1", "write_kb_s")),
            ratio(&of(run, "read1", "read.bw"), &of(run, "write1", "write.bw"))?,
            ZRAM,
        ),
        shape(
            "a mixed group does as much of one as of the other, KB/s read / written of randrw1",
            Claim::Between(0.95, 1.05),
            published(("randrw1", "read_kb_s"), ("randrw1", "write_kb_s")),
            ratio(&of(run, "randrw1", "read.bw"), &of(run, "randrw1", "write.bw"))?,
            "",
        ),
    ])
}
