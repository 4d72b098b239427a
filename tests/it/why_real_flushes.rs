//! Why, in real experiments, where flushes differ: a device with a cache that has to be flushed against one without, fewer syncs, a
//! filesystem that was told not to flush.
//!
//! A flush of a loop device is an fsync of its image, which takes what the disk below takes.

use assay::record::{NoteKind, Run};

use crate::spoiled::{expect, unless_spoiled};
use crate::target_bench::can_make;
use crate::why_real::{Found, estimate, share, shown};

/// A write of 4 KiB and an fsync, on a device without a cache and with one; and there with an eighth of the fsyncs.
fn synced(fs: &str, more: &str) -> String {
    format!(
        r#"
job_text = """
[w]
rw=write
bs=4k
size=512k
fsync=1
"""
observe = ["blocks", "waits"]
primary = "runtime,dev.flushes_per_op"

[stop]
rounds = 5

[target]
device = "loop:400m"
fs = "{fs}"

[[factor]]
name = "cache"
level = [
  {{ label = "through", set = {{ "sysfs:queue/write_cache" = "write through" }} }},
  {{ label = "back", set = {{ "sysfs:queue/write_cache" = "write back" }} }},
  {more}
]
"#
    )
}

const SELDOM: &str =
    r#"{ label = "seldom", set = { "sysfs:queue/write_cache" = "write through", fsync = 8 } },"#;

/// What the audit of flushes said of each trial of an arm, each verdict once.
fn audited(run: &Run, arm: u32) -> Vec<String> {
    let of_arm = run.trials.iter().filter(|trial| run.cells[trial.cell as usize].levels[0] == arm);
    let notes = of_arm.flat_map(|trial| &trial.notes).filter(|note| note.kind == NoteKind::Audit);
    let mut said: Vec<String> = notes.map(|note| note.text.clone()).collect();
    said.sort();
    said.dedup();
    said
}

/// Every fsync passed, in these arms.
fn all_pass(found: &Found, fs: &str, arms: std::ops::Range<u32>) {
    let run = found.run();
    for arm in arms {
        let said = audited(&run, arm);
        let pass = format!("audit of flushes ({fs}): PASS");
        assert!(!said.is_empty() && said.iter().all(|note| note.starts_with(&pass)), "{said:?}");
    }
}

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn flushes_of_a_journal_are_counted_and_waited_for_on_ext4() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(&synced("ext4", SELDOM), &[]);
        all_pass(&found, "ext4", 0..3);
        let back = found.pair("back")?;
        let [through, flushed] = shown(back.fires("more_flushes")?);
        assert!(
            through == 0.0 && (0.5..6.0).contains(&flushed),
            "{through} → {flushed} flushes an operation"
        );
        let commit = back.fires("commit_wait")?;
        expect(commit["what"]["commit"]["at"].as_str().is_some_and(|at| at.contains("jbd2")), || {
            format!("{commit}")
        })?;
        expect(share(commit) > 0.3 && estimate(&commit["time"]) > 0.0, || format!("{commit}"))?;
        // Both arms write the same.
        back.silent("device_bytes")?;
        back.adds_up()?;
        // Here it is the baseline that does more: a commit of the journal for each write.
        let seldom = found.pair("seldom")?;
        let bytes = seldom.fires("device_bytes")?;
        let [each, eighth] = shown(bytes);
        assert!(bytes["what"]["device_bytes"]["direction"] == "write" && each > eighth, "{bytes}");
        for rule in ["more_flushes", "flush_wait"] {
            seldom.silent(rule)?;
        }
        let text = found.text();
        assert!(text.contains("waits for a journal commit at jbd2"), "{text}");
        assert!(text.contains("goes with: more flushes"), "{text}");
        assert!(text.contains("goes with: the device writes less for each byte asked"), "{text}");
        Ok(())
    });
}

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn flushes_of_a_journal_are_counted_and_waited_for_on_xfs() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(&synced("xfs", ""), &[]);
        all_pass(&found, "xfs", 0..2);
        let back = found.pair("back")?;
        let [through, flushed] = shown(back.fires("more_flushes")?);
        assert!(
            through == 0.0 && (0.5..6.0).contains(&flushed),
            "{through} → {flushed} flushes an operation"
        );
        let commit = back.fires("commit_wait")?;
        expect(share(commit) > 0.3 && estimate(&commit["time"]) > 0.0, || format!("{commit}"))?;
        back.adds_up()
    });
}

/// Written blocks written again: a sync has nothing for the journal, and flushes by itself.
const OVERWRITTEN: &str = r#"
job_text = """
[w]
rw=randwrite
bs=4k
size=512k
fdatasync=1
"""
observe = ["blocks", "waits", "cpu"]
primary = "runtime"

[stop]
rounds = 5

[target]
device = "loop:300m"
fs = "ext4"
state = "overwrite"

[[factor]]
name = "cache"
level = [
  { label = "through", set = { "sysfs:queue/write_cache" = "write through" } },
  { label = "back", set = { "sysfs:queue/write_cache" = "write back" } },
  { label = "no barriers", set = { "sysfs:queue/write_cache" = "write back", mount = "barrier=0" } },
]
"#;

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn who_overwrites_waits_for_the_flush_unless_nobody_flushes() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(OVERWRITTEN, &[]);
        all_pass(&found, "ext4", 0..2);
        let said = audited(&found.run(), 2);
        let violation =
            |note: &String| note.contains("(ext4): VIOLATION") && note.contains("(first the fdatasync");
        assert!(!said.is_empty() && said.iter().all(violation), "{said:?}");
        let back = found.pair("back")?;
        let flush = back.fires("flush_wait")?;
        assert_eq!(flush["what"]["flush"]["at"], "blkdev_issue_flush", "{flush}");
        expect(share(flush) > 0.3, || format!("{flush}"))?;
        for rule in ["commit_wait", "copying"] {
            back.silent(rule)?;
        }
        back.adds_up()?;
        let text = found.text();
        assert!(text.contains("waits for a flush at blkdev_issue_flush"), "{text}");
        Ok(())
    });
}
