//! Random direct I/O to one file by more and more threads.

use std::collections::BTreeMap;

use assay::record::Run;

use crate::study::{Found, Study, levels, mean, median, records, shown, table, values};

const TABLE: &str = include_str!("../../tests/data/published/xfs-dio-scaling.csv");

pub(crate) const STUDY: Study = Study {
    name: "dio-scaling",
    runs: &["dio-scaling"],
    was: "January 2012: XFS on a 2 GB ramdisk, 262144 random 4 KiB direct I/Os into one preallocated file, seconds by the number of\n\
          threads. Concluded: reads scale, overwrites do not, for they take two exclusive locks each; share the lock, and take it\n\
          alone only to allocate.",
    published,
    ours,
    claims: include_str!("claims/dio-scaling.toml"),
    in_full: "`assay run dio-scaling` in full takes 3 to 10 minutes.",
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
