//! What the flushes of a journal cost: dbench and fs_mark.

use std::collections::BTreeMap;

use assay::record::Run;

use crate::shape::{Claim, Reasons, Shape};
use crate::study::{Found, Record, Study, levels, mean, median, ratio, records, shown, table, values};

const DBENCH: &str = include_str!("../../tests/data/published/dbench-clients.csv");
const FS_MARK: &str = include_str!("../../tests/data/published/fsmark.csv");
const PHASES: [&str; 3] = ["create", "chown", "unlink"];

pub(crate) const STUDY: Study = Study {
    name: "journal-flush",
    runs: &["journal-flush/dbench", "journal-flush/fs_mark"],
    was: "March to June 2022: XFS, flushes of the disk's cache sent asynchronously against flushes attached to the journal's writes (sync).\n\
          `dbench -t 30` on an NVMe and a SATA disk, MB/s and the longest latency; fs_mark's phases in seconds. Concluded: asynchronous flushes\n\
          gain nothing on fast storage and lose on slow. That patch is in no kernel package; what is compared here is flushes against\n\
          none (the kernel being told that the device's cache is safe), on a loop device, with the flushes counted.",
    published,
    ours,
    shapes,
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
                let figures = [of("bw") / 1e6, of("lat_ns.max") / 1e6, of("dev.flushes_per_op")];
                let mut row = vec![fs.clone(), clients.clone(), cache.clone()];
                row.extend(figures.map(shown));
                rows.push(row);
            }
        }
    }
    let first =
        table(&["fs", "clients", "cache", "MB/s", "longest latency ms", "flushes an operation"], 3, &rows);
    let mut rows = Vec::new();
    for fs in levels(fs_mark, "fs") {
        for phase in PHASES {
            for cache in levels(fs_mark, "cache") {
                let of =
                    |metric| shown(median(&values(fs_mark, &[("fs", fs), ("cache", cache)], phase, metric)));
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
    Ok(first + "\n" + &table(&heads, 3, &rows))
}

fn shapes(runs: &[&Run]) -> Found<Vec<Shape>> {
    let (mut found, clients) = (Vec::new(), levels(runs[0], "clients"));
    let (one, more) = clients.first().zip(clients.get(1)).ok_or("one number of clients")?;
    let all = records(DBENCH);
    let bw = |clients: &str, cache: &str| {
        values(runs[0], &[("fs", "xfs"), ("clients", clients), ("cache", cache)], "", "bw")
    };
    let was = |clients: &str| mean(&all, &[("device", "sata"), ("clients", clients)], "sync_mb_s");
    found.push(Shape {
        says: format!(
            "xfs: more clients share a flush and do more in all, MB/s of {more} clients / {one} (sata, sync)"
        ),
        claim: Claim::Above(1.0),
        published: was(more) / was(one),
        here: ratio(&bw(more, "writeback"), &bw(one, "writeback"))?,
        otherwise: Reasons {
            differs: "one client keeps this machine's processors (their number is above), or its disk, busy already.",
            ..Reasons::NONE
        },
    });
    found.push(Shape {
        says: format!("xfs: flushes cost a file server throughput, MB/s without / with flushes, {more} clients"),
        claim: Claim::Above(1.0),
        published: f64::NAN,
        here: ratio(&bw(more, "writethrough"), &bw(more, "writeback"))?,
        otherwise: Reasons {
            unclear: "A flush of this loop device is an fsync of a file on a disk that others use, too, whose time varies.",
            differs: "the disk below may complete a flush without doing anything.",
        },
    });
    let all = records(FS_MARK);
    let took = |phase: &str, cache: &str| -> BTreeMap<u32, f64> {
        values(runs[1], &[("fs", "xfs"), ("cache", cache)], phase, "runtime")
    };
    let was = |phase: &str, variant: &str| {
        mean(&all, &[("device", "nvme"), ("operation", phase), ("variant", variant)], "seconds")
    };
    found.push(Shape {
        says:
            "xfs: a change of owner takes less than making the file, seconds of chown / create (nvme, sync)"
                .to_owned(),
        claim: Claim::Below(1.0),
        published: was("chown", "sync") / was("create", "sync"),
        here: ratio(&took("chown", "writeback"), &took("create", "writeback"))?,
        otherwise: Reasons {
            differs: "so few files fit into the journal's memory at once that a phase is its final sync.",
            ..Reasons::NONE
        },
    });
    found.push(Shape {
        says: "xfs: how flushes are sent does not matter to making files, seconds of create: async / sync there, with / without flushes here"
            .to_owned(),
        claim: Claim::Between(0.9, 1.1),
        published: was("create", "async") / was("create", "sync"),
        here: ratio(&took("create", "writeback"), &took("create", "writethrough"))?,
        otherwise: Reasons {
            unclear: "The study's phases took minutes, these a fraction of a second with --quick.",
            differs: "what is compared here is flushes against none, not two ways to send them.",
        },
    });
    Ok(found)
}
