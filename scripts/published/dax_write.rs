//! XFS on persistent memory: the page cache against DAX.

use assay::record::Run;

use crate::study::{Found, Study, levels, mean, median, records, shown, table, values};

const TABLE: &str = include_str!("../../tests/data/published/dax-write.csv");
const ROWS: [(&str, &str); 4] =
    [("allocate", "4k"), ("allocate", "16m"), ("overwrite", "4k"), ("overwrite", "16m")];
const NO_SYNC: &str = "page cache, no sync";
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
    claims: include_str!("claims/dax-write.toml"),
    in_full: "in full there is a third arm, the page cache without a sync; `assay run dax-write` takes 2 h in an emulated \
              guest.",
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
    // In full only.
    let unsynced = levels(run, "mount").iter().find(|level| *level == NO_SYNC);
    let row = |at: (&str, &str)| {
        let rate = |mount| shown(median(&of(run, mount, at, "write.bw")) / f64::from(1 << 20));
        let time = |mount| shown(median(&of(run, mount, at, "runtime")));
        let mut cells = vec![at.0.to_owned(), at.1.to_owned()];
        cells.extend([rate("page cache"), rate("DAX"), time("page cache"), time("DAX")]);
        cells.extend(unsynced.map(|arm| time(arm)));
        cells
    };
    let mut heads = HEADS.to_vec();
    heads.extend(unsynced.map(|_| "no sync run time s"));
    Ok(table(&heads, 2, &ROWS.map(row)))
}
