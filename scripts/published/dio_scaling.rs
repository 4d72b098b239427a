//! Random direct I/O to one file by more and more threads.

use std::collections::BTreeMap;

use assay::record::Run;

use crate::shape::{Claim, Reasons, Shape};
use crate::study::{Found, Study, levels, mean, median, ratio, records, shown, table, values};

const TABLE: &str = include_str!("../../tests/data/published/xfs-dio-scaling.csv");

pub(crate) const STUDY: Study = Study {
    name: "dio-scaling",
    runs: &["dio-scaling"],
    was: "January 2012: XFS on a 2 GB ramdisk, 262144 random 4 KiB direct I/Os into one preallocated file, seconds by the number of\n\
          threads. Concluded: reads scale, overwrites do not, for they take two exclusive locks each; share the lock, and take it\n\
          alone only to allocate.",
    published,
    ours,
    shapes,
};

fn published() -> String {
    let all = records(TABLE);
    let row = |threads: &str| {
        let of = |kernel, column| shown(mean(&all, &[("kernel", kernel), ("threads", threads)], column));
        let columns =
            [of("3.2.0", "read_s"), of("3.2.0", "write_s"), of("git", "read_s"), of("git", "write_s")];
        std::iter::once(threads.to_owned()).chain(columns).collect()
    };
    let heads = ["threads", "3.2.0 read s", "3.2.0 overwrite s", "git read s", "git overwrite s"];
    table(&heads, 0, &["1", "2", "4", "8", "16"].map(row))
}

fn seconds(run: &Run, threads: &str, does: &str) -> BTreeMap<u32, f64> {
    values(run, &[("threads", threads), ("does", does)], "", "runtime")
}

fn ours(runs: &[&Run]) -> Found<String> {
    let row = |threads: &String| {
        let of = |does| shown(median(&seconds(runs[0], threads, does)));
        vec![threads.clone(), of("read"), of("overwrite")]
    };
    let rows: Vec<Vec<String>> = levels(runs[0], "threads").iter().map(row).collect();
    Ok(table(&["threads", "read s", "overwrite s"], 0, &rows))
}

fn shapes(runs: &[&Run]) -> Found<Vec<Shape>> {
    let (run, all) = (runs[0], records(TABLE));
    let most = levels(run, "threads").last().ok_or("no threads")?;
    let of = |threads: &str, column: &str| mean(&all, &[("kernel", "3.2.0"), ("threads", threads)], column);
    let shape = |threads: &str, does: &str, column, says: &str, claim, otherwise| -> Found<Shape> {
        Ok(Shape {
            says: format!("{says}, seconds of {threads} threads / of 1"),
            claim,
            published: of(threads, column) / of("1", column),
            here: ratio(&seconds(run, threads, does), &seconds(run, "1", does))?,
            otherwise,
        })
    };
    const FEW: Reasons = Reasons {
        unclear: "What else runs on the processors takes from the threads.",
        differs: "threads win no more than there are processors (their number is above); the study had more of them.",
    };
    const SHARED: Reasons = Reasons {
        differs: "overwrites have shared the lock since the study asked for it, so that what it found is no longer there \
            to be found.",
        ..Reasons::NONE
    };
    Ok(vec![
        shape("2", "read", "read_s", "reads scale to two threads", Claim::Below(0.8), FEW)?,
        shape(most, "read", "read_s", "reads do not suffer from more threads", Claim::Below(1.0), FEW)?,
        shape(
            most,
            "overwrite",
            "write_s",
            "overwrites suffer from more threads",
            Claim::Above(1.0),
            SHARED,
        )?,
    ])
}
