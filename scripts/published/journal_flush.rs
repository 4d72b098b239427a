//! What the flushes of a journal cost: dbench and fs_mark.

use assay::record::Run;

use crate::study::{Found, Record, Study, levels, median, records, shown, table, values};

const DBENCH: &str = include_str!("../../tests/data/published/dbench-clients.csv");
const FS_MARK: &str = include_str!("../../tests/data/published/fsmark.csv");
const PHASES: [&str; 4] = ["create", "xattr", "chown", "unlink"];

pub(crate) const STUDY: Study = Study {
    name: "journal-flush",
    runs: &["journal-flush/dbench", "journal-flush/fs_mark"],
    was: "March to June 2022: XFS, flushes of the disk's cache sent asynchronously against flushes attached to the journal's writes (sync).\n\
          `dbench -t 30` on an NVMe and a SATA disk, MB/s and the longest latency; fs_mark's phases in seconds. Concluded: asynchronous flushes\n\
          gain nothing on fast storage and lose on slow. That patch is in no kernel package; what is compared here is flushes against\n\
          none (the kernel being told that the device's cache is safe), on a loop device, with the flushes counted.",
    published,
    ours,
    claims: include_str!("claims/journal-flush.toml"),
    in_full: "in full there are 16, 32 and 128 clients, too, and `assay run journal-flush` takes 2 h; 512 clients take 10 \
              GiB and longer than the study's half a minute: `assay run journal-flush/dbench --vary clients=512 --vary \
              time=120s --target loop:16g`.",
};

fn published() -> String {
    let (dbench, fs_mark) = (records(DBENCH), records(FS_MARK));
    let row = |record: &Record| {
        let columns = ["device", "clients", "async_mb_s", "async_latency_ms", "sync_mb_s", "sync_latency_ms"];
        columns.map(|column| record.get(column).cloned().unwrap_or_default()).to_vec()
    };
    let heads = ["device", "clients", "async MB/s", "async latency ms", "sync MB/s", "sync latency ms"];
    let first = table(&heads, 1, &dbench.iter().map(row).collect::<Vec<_>>());
    let row = |record: &Record| {
        let columns = ["device", "threads", "variant", "operation", "seconds"];
        columns.map(|column| record.get(column).cloned().unwrap_or_default()).to_vec()
    };
    let heads = ["device", "threads", "flushes", "phase", "seconds"];
    first + "\n" + &table(&heads, 4, &fs_mark.iter().map(row).collect::<Vec<_>>())
}

fn ours(runs: &[&Run]) -> Found<String> {
    let (dbench, fs_mark) = (runs[0], runs[1]);
    let mut rows = Vec::new();
    for fs in levels(dbench, "fs") {
        for clients in levels(dbench, "clients") {
            for cache in levels(dbench, "cache") {
                let at = [("fs", fs.as_str()), ("clients", clients), ("cache", cache)];
                let of = |metric| median(&values(dbench, &at, "", metric));
                let figures = [
                    of("bw") / 1e6,
                    of("lat_ns.max") / 1e6,
                    of("dev.flushes_per_op"),
                    of("dev.flushes_per_sync"),
                ];
                let mut row = vec![fs.clone(), clients.clone(), cache.clone()];
                row.extend(figures.map(shown));
                rows.push(row);
            }
        }
    }
    let heads =
        ["fs", "clients", "cache", "MB/s", "longest latency ms", "flushes an operation", "flushes an fsync"];
    let first = table(&heads, 3, &rows);
    let mut rows = Vec::new();
    for fs in levels(fs_mark, "fs") {
        for phase in PHASES {
            for cache in levels(fs_mark, "cache") {
                let at = [("fs", fs.as_str()), ("cache", cache)];
                let of = |metric| shown(median(&values(fs_mark, &at, phase, metric)));
                // In full only.
                if phase == "xattr" && values(fs_mark, &at, phase, "runtime").is_empty() {
                    continue;
                }
                rows.push(vec![
                    fs.clone(),
                    phase.to_owned(),
                    cache.clone(),
                    of("runtime"),
                    of("dev.flushes"),
                    of("dev.flushes_per_op"),
                ]);
            }
        }
    }
    let heads = ["fs", "phase", "cache", "seconds", "flushes", "flushes a file"];
    Ok(first + "\n" + &table(&heads, 3, &rows) + &unmounts(fs_mark))
}

/// Seconds to unmount after fs_mark and to take the device down; nothing of a run of before they were measured.
fn unmounts(run: &Run) -> String {
    let mut rows = Vec::new();
    for fs in levels(run, "fs") {
        for cache in levels(run, "cache") {
            let of = |metric| values(run, &[("fs", fs), ("cache", cache)], "", metric);
            let (umount, teardown) = (of("target.umount"), of("target.teardown"));
            if !umount.is_empty() {
                rows.push(vec![fs.clone(), cache.clone(), shown(median(&umount)), shown(median(&teardown))]);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    "\n".to_owned() + &table(&["fs", "cache", "unmount s", "with its device s"], 2, &rows)
}
