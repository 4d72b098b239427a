//! Why, in real experiments, where the device's requests differ: their time, size, number under way, and whose blocks lie beside whose.

use crate::spoiled::{expect, unless_spoiled};
use crate::target_bench::{can_make, fact, zram};
use crate::tools::impossible_here;
use crate::why_real::{Found, shown};

/// The same reads of two loop devices, of which one has its image in the page cache and the other on the disk below.
const TWO_DISKS: &str = r#"
job_text = """
[r]
rw=randread
bs=64k
direct=1
time_based
runtime=300ms
"""

[stop]
rounds = 5

[target]
state = "overwrite"

[[factor]]
name = "disk"
level = [
  { label = "cached", set = { device = "loop:32m:direct_io=0" } },
  { label = "below", set = { device = "loop:32m:direct_io=1" } },
]
"#;

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn a_device_made_slower_from_outside_is_blamed_and_no_software() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(TWO_DISKS, &["--explain"]);
        if fact(&found.sandbox, "1", 1, "loop.direct_io") == fact(&found.sandbox, "1", 0, "loop.direct_io") {
            impossible_here("the filesystem below has no direct I/O for loop devices");
            return Ok(());
        }
        let pair = found.pair("below")?;
        let slower = pair.fires("slower_device")?;
        let [cached, below] = shown(slower);
        assert!(slower["what"]["slower_device"]["direction"] == "read" && cached < below, "{slower}");
        for rule in ["smaller_requests", "queue_depth", "page_cache", "lock_wait"] {
            pair.silent(rule)?;
        }
        pair.adds_up()?;
        let words = "goes with: the same read requests take longer: it is the device, not the software";
        assert!(found.text().contains(words), "{}", found.text());
        Ok(())
    });
}

/// Eight large reads under way, one of them, and eight small ones.
const DEPTHS: &str = r#"
job_text = """
[r]
rw=randread
direct=1
ioengine=io_uring
time_based
runtime=300ms
"""

[stop]
rounds = 5

[target]
device = "loop:32m"
state = "overwrite"

[[factor]]
name = "reads"
level = [
  { label = "deep", set = { iodepth = 8, bs = "64k" } },
  { label = "shallow", set = { iodepth = 1, bs = "64k" } },
  { label = "small", set = { iodepth = 8, bs = "4k" } },
]
"#;

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn lost_depth_and_smaller_requests_go_with_what_they_cost() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(DEPTHS, &[]);
        let shallow = found.pair("shallow")?;
        let [deep, one] = shown(shallow.fires("queue_depth")?);
        assert!(one < 2.0 && deep > 1.15 * one, "{deep} → {one}");
        for rule in ["smaller_requests", "slower_device", "worker_threads"] {
            shallow.silent(rule)?;
        }
        let small = found.pair("small")?;
        let smaller = small.fires("smaller_requests")?;
        let [large, little] = shown(smaller);
        assert!(smaller["what"]["smaller_requests"]["direction"] == "read", "{smaller}");
        expect((65_000.0..67_000.0).contains(&large) && little < 5000.0, || format!("{smaller}"))?;
        small.silent("slower_device")?;
        let text = found.text();
        for words in [
            "goes with: fewer requests under way at the device",
            "goes with: smaller read requests at the device",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        Ok(())
    });
}

/// Reads of zram, which takes no I/O without waiting, so that io_uring gives them to threads of the kernel.
const HANDED_ON: &str = r#"
job_text = """
[r]
rw=randread
bs=4k
direct=1
time_based
runtime=250ms
"""

[stop]
rounds = 5

[target]
device = "zram:48m"

[[factor]]
name = "ioengine"
levels = ["psync", "io_uring"]
"#;

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn reads_that_io_uring_hands_to_worker_threads_are_named() {
    if !can_make() {
        return;
    }
    let Some(_alone) = zram() else { return };
    unless_spoiled(|| {
        let found = Found::of(HANDED_ON, &[]);
        let pair = found.pair("io_uring")?;
        let threads = pair.fires("worker_threads")?;
        assert_eq!(threads["what"]["worker_threads"]["arm"], "io_uring", "{threads}");
        assert_eq!(shown(threads), [0.0, 1.0], "{threads}");
        let words = "goes with: io_uring hands I/Os to worker threads with ioengine=io_uring";
        assert!(found.text().contains(words), "{}", found.text());
        Ok(())
    });
}

/// Eight files of XFS that grow in turns, with blocks for each write and with all of them beforehand.
const APPENDERS: &str = r#"
job_text = """
[w]
rw=write
bs=4k
direct=1
numjobs=8
size=256k
group_reporting
"""
observe = ["extents"]
primary = "extents.owner_changes_per_mib"

[stop]
rounds = 4

[target]
device = "loop:300m"
fs = "xfs"

[[factor]]
name = "allocation"
level = [{ label = "beforehand", set = { fallocate = "keep" } }, { label = "plain", set = { fallocate = "none" } }]
"#;

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn files_that_grow_in_turns_lie_between_each_other() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(APPENDERS, &[]);
        let pair = found.pair("plain")?;
        let changes = pair.fires("owner_changes")?;
        let [beforehand, plain] = shown(changes);
        assert!(plain > 2.0 * beforehand, "{changes}");
        // Each write is a request of its own in both arms.
        pair.silent("smaller_requests")?;
        let words = "goes with: files lie more between each other on the device";
        assert!(found.text().contains(words), "{}", found.text());
        Ok(())
    });
}
