//! Many processes appending with direct I/O at once.

use std::collections::BTreeMap;

use assay::record::Run;

use crate::study::{Found, Study, levels, mean, median, records, shown, table, values};

const TABLE: &str = include_str!("../../tests/data/published/f2fs-dio-serialize-averages.csv");

pub(crate) const STUDY: Study = Study {
    name: "dio-append",
    runs: &["dio-append"],
    was: "January 2016: f2fs on a phone's eMMC, fio with 32 jobs of direct appends or random overwrites, KB/s, averages of eight runs,\n\
          the allocation of a whole write held together with a lock (serialized) or not. Concluded: concurrent appenders interleave\n\
          their blocks, serializing keeps each run contiguous, and small overwrites lose by the lock. The patch is in no kernel\n\
          package; what can be done without it is to allocate beforehand. Where the files lay was not published.",
    published,
    ours,
    claims: include_str!("claims/dio-append.toml"),
    in_full: "in full there are rows of 2 MiB, of mixed sizes, of overwrites, and of 10 and 16 processes; `assay run \
              dio-append` takes 20 h in an emulated guest, 2 h where KVM runs.",
};

fn published() -> String {
    let all = records(TABLE);
    let mut rows = Vec::new();
    for (write, size) in [
        ("append", "4K"),
        ("append", "128K"),
        ("append", "2M"),
        ("append", "4K-1024K"),
        ("overwrite", "4K"),
        ("overwrite", "16K"),
        ("overwrite", "4K-1024K"),
    ] {
        let of = |variant| mean(&all, &[("write", write), ("io_size", size), ("variant", variant)], "kb_s");
        let (none, serialized) = (of("serialize none"), of("serialize all"));
        let change = format!("{:+.1}", (serialized / none - 1.0) * 100.0);
        rows.push(vec![write.to_owned(), size.to_owned(), shown(none), shown(serialized), change]);
    }
    table(&["write", "block", "not serialized KB/s", "serialized KB/s", "change %"], 2, &rows)
}

fn of(run: &Run, at: &[(&str, &str)], metric: &str) -> BTreeMap<u32, f64> {
    values(run, at, "", metric)
}

fn ours(runs: &[&Run]) -> Found<String> {
    let run = runs[0];
    let mut rows = Vec::new();
    for write in levels(run, "write") {
        for fs in levels(run, "fs") {
            for allocation in levels(run, "allocation") {
                let at = [("write", write.as_str()), ("fs", fs), ("allocation", allocation)];
                let rate = median(&of(run, &at, "write.bw")) / 1024.0;
                if !rate.is_finite() {
                    continue;
                }
                let layout = ["extents.per_file", "extents.owner_changes_per_mib"];
                let mut row = [write, fs, allocation].map(String::clone).to_vec();
                row.push(shown(rate));
                row.extend(layout.map(|metric| shown(median(&of(run, &at, metric)))));
                rows.push(row);
            }
        }
    }
    let heads = ["write", "fs", "allocation", "KB/s", "extents a file", "owner changes a MiB"];
    Ok(table(&heads, 3, &rows))
}
