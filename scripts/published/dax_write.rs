//! XFS on persistent memory: the page cache against DAX.

use assay::record::Run;

use crate::shape::{Claim, Reasons, Shape};
use crate::study::{Found, Study, mean, median, ratio, records, shown, table, values};

const TABLE: &str = include_str!("../../tests/data/published/dax-write.csv");
const ROWS: [(&str, &str); 4] =
    [("allocate", "4k"), ("allocate", "16m"), ("overwrite", "4k"), ("overwrite", "16m")];
const HEADS: [&str; 6] =
    ["state", "bs", "page cache MiB/s", "DAX MiB/s", "page cache run time s", "DAX run time s"];

pub(crate) const STUDY: Study = Study {
    name: "dax-write",
    runs: &["dax-write"],
    was: "August 2016: XFS on an 8 GB pmem device, `xfs_io -f -c \"pwrite 0 1g [-b 16m]\" -c sync`, means of three runs; MiB/s are\n\
          pwrite's own, the run time is the whole command's. Concluded: allocating and zeroing, not the copy, make small DAX writes four\n\
          times slower; overwriting, DAX takes half the time, because writeback copies everything once more.",
    published,
    ours,
    shapes,
};

fn published() -> String {
    let all = records(TABLE);
    let row = |(state, bs): (&str, &str)| {
        let of = |column| shown(mean(&all, &[("state", state), ("block_size", bs)], column));
        let columns = ["pagecache_mib_s", "dax_mib_s", "pagecache_runtime_s", "dax_runtime_s"];
        [state.to_owned(), bs.to_owned()].into_iter().chain(columns.map(of)).collect()
    };
    table(&HEADS, 2, &ROWS.map(row))
}

fn of(
    run: &Run,
    mount: &str,
    (state, bs): (&str, &str),
    metric: &str,
) -> std::collections::BTreeMap<u32, f64> {
    values(run, &[("mount", mount), ("state", state), ("bs", bs)], "", metric)
}

fn ours(runs: &[&Run]) -> Found<String> {
    let run = runs[0];
    let row = |at: (&str, &str)| {
        let rate = |mount| shown(median(&of(run, mount, at, "write.bw")) / f64::from(1 << 20));
        let time = |mount| shown(median(&of(run, mount, at, "runtime")));
        vec![
            at.0.to_owned(),
            at.1.to_owned(),
            rate("page cache"),
            rate("DAX"),
            time("page cache"),
            time("DAX"),
        ]
    };
    Ok(table(&HEADS, 2, &ROWS.map(row)))
}

fn shapes(runs: &[&Run]) -> Found<Vec<Shape>> {
    let all = records(TABLE);
    let shape = |(at, metric, columns, says, claim, differs): Line| -> Found<Shape> {
        let here = ratio(&of(runs[0], "DAX", at, metric), &of(runs[0], "page cache", at, metric))?;
        let wanted = [("state", at.0), ("block_size", at.1)];
        let published = mean(&all, &wanted, columns.1) / mean(&all, &wanted, columns.0);
        let otherwise = Reasons { differs, ..Reasons::NONE };
        Ok(Shape { says: says.to_owned(), claim, published, here, otherwise })
    };
    LINES.into_iter().map(shape).collect()
}

type Line = (
    (&'static str, &'static str),
    &'static str,
    (&'static str, &'static str),
    &'static str,
    Claim,
    &'static str,
);

const TIME: (&str, &str) = ("pagecache_runtime_s", "dax_runtime_s");
const RATE: (&str, &str) = ("pagecache_mib_s", "dax_mib_s");
const LINES: [Line; 5] = [
    (
        ("allocate", "4k"),
        "write.bw",
        RATE,
        "4 KiB into a new file: DAX writes slower, MiB/s of DAX / page cache",
        Claim::Below(1.0),
        "each small write allocates and zeroes under DAX; what that weighs against the page cache's own work depends on the processor.",
    ),
    (
        ("allocate", "16m"),
        "runtime",
        TIME,
        "16 MiB into a new file: DAX is done sooner, run time of DAX / page cache",
        Claim::Below(1.0),
        "the whole command is short here, and its start weighs as much as the copying.",
    ),
    (
        ("overwrite", "4k"),
        "runtime",
        TIME,
        "4 KiB over an old file: DAX is done sooner, run time of DAX / page cache",
        Claim::Below(1.0),
        "the whole command is short here, and its start weighs as much as the copying.",
    ),
    (
        ("overwrite", "16m"),
        "runtime",
        TIME,
        "16 MiB over an old file: DAX is done sooner, run time of DAX / page cache",
        Claim::Below(1.0),
        "the whole command is short here, and its start weighs as much as the copying.",
    ),
    (
        ("overwrite", "4k"),
        "write.bw",
        RATE,
        "4 KiB over an old file: before the sync both write alike, MiB/s of DAX / page cache",
        Claim::Between(0.8, 1.25),
        "where the processor is emulated, the page cache's bookkeeping for each page (many instructions) weighs more than the copy \
         (few instructions); on the hardware of the study both took as long as the copy.",
    ),
];
