//! Where I/Os go, under the native engine and under fio: the same shares for skewed offsets, files and block sizes.

use std::collections::BTreeMap;

use assay::engine::EngineKind;
use assay::launch::Answer;

use crate::iolog::{Note, counts, parts, transfers, with_logs};
use crate::native_engine::{agent, done, work};
use crate::tools;

/// The transfers of a job without any I/O.
fn noted(engine: EngineKind, options: &str) -> Vec<Note> {
    let (_base, work) = work();
    let job = format!("[j]\nioengine=null\nrw=randread\nbs=4k\n{options}\n");
    done(engine, &with_logs(&job), work.path());
    let log = std::fs::read_to_string(work.path().join("0.iolog")).unwrap();
    let parts = parts(&log);
    assert_eq!(parts.len(), 1, "{options}");
    transfers(&parts[0]).into_iter().cloned().collect()
}

/// Shares of the hits: of the most popular 1 % and 10 % of `blocks`, of blocks that were hit at all.
fn skew(notes: &[Note], blocks: usize) -> [f64; 3] {
    let mut hits: Vec<u64> = counts(notes.iter().map(|note| note.offset)).into_values().collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    let top = |count: usize| hits.iter().take(count).sum::<u64>() as f64 / notes.len() as f64;
    [top(blocks / 100), top(blocks / 10), hits.len() as f64 / blocks as f64]
}

/// How many percent of the I/Os each file gets, least first, and of the I/Os that stay with their file.
fn file_shares(notes: &[Note]) -> Vec<f64> {
    let stays = notes.windows(2).filter(|pair| pair[0].file == pair[1].file).count();
    let mut shares: Vec<u64> = counts(notes.iter().map(|note| note.file.clone())).into_values().collect();
    shares.sort_unstable();
    shares.into_iter().chain([stays as u64]).map(|count| count as f64 / notes.len() as f64).collect()
}

fn size_shares(notes: &[Note]) -> Vec<f64> {
    let sizes: BTreeMap<u64, u64> = counts(notes.iter().map(|note| note.length));
    (1..=16).map(|size| sizes.get(&(size * 4096)).map_or(0.0, |n| *n as f64 / notes.len() as f64)).collect()
}

/// Shares of I/Os that follow the one before them, and of blocks hit.
fn followed(notes: &[Note]) -> Vec<f64> {
    let follows = notes.windows(2).filter(|pair| pair[0].offset + 4096 == pair[1].offset).count();
    let hit = counts(notes.iter().map(|note| note.offset)).len();
    vec![follows as f64 / notes.len() as f64, hit as f64 / notes.len() as f64]
}

fn close(native: &[f64], fio: &[f64], within: f64, options: &str) {
    assert_eq!(native.len(), fio.len(), "{options}: {native:?} {fio:?}");
    for (native_share, fio_share) in native.iter().zip(fio) {
        assert!((native_share - fio_share).abs() < within, "{options}: native {native:?}, fio {fio:?}");
    }
}

#[test]
fn shares_of_both_engines_agree() {
    if !tools::available("fio") {
        return;
    }
    let both = |options: &str| (noted(EngineKind::Native, options), noted(EngineKind::Fio, options));
    for distribution in ["zipf:1.2:0.5", "pareto:0.3", "normal:10", "zoned:70/5:20/25:10"] {
        let options = format!("size=16m\nio_size=128m\nrandom_distribution={distribution}");
        let (native, fio) = both(&options);
        assert_eq!(native.len(), 32_768);
        close(&skew(&native, 4096), &skew(&fio, 4096), 0.02, &options);
    }
    for service in ["roundrobin:4", "random:8", "sequential"] {
        let options = format!("size=8m\nio_size=24m\nnrfiles=8\nfile_service_type={service}");
        let (native, fio) = both(&options);
        close(&file_shares(&native), &file_shares(&fio), 0.02, &options);
    }
    for split in ["bssplit=4k/20:16k/30:64k", "bsrange=4k-64k"] {
        let options = format!("size=200m\n{split}");
        let (native, fio) = both(&options);
        close(&size_shares(&native), &size_shares(&fio), 0.03, &options);
    }
    let options = "size=32m\npercentage_random=30";
    let (native, fio) = both(options);
    close(&followed(&native), &followed(&fio), 0.03, options);
}

#[test]
fn skewed_choices_of_files_give_most_to_few() {
    // fio 3.33 gives the two most popular of eight files 94 %, 82 % and 86 %; how the first ranks lie across their
    // border is a matter of the seed.
    for (service, range) in [("zipf:1.2", 0.88..0.97), ("pareto:0.2", 0.74..0.88), ("normal", 0.84..0.89)] {
        let options = format!("size=8m\nio_size=64m\nnrfiles=8\nfile_service_type={service}");
        let notes = noted(EngineKind::Native, &options);
        assert_eq!(notes.len(), 16_384);
        let shares = file_shares(&notes);
        let files = &shares[..shares.len() - 1];
        let first: f64 = files.iter().rev().take(2).sum();
        assert!(range.contains(&first), "{service}: {shares:?}");
    }
}

#[test]
fn zones_larger_than_a_file_are_an_error() {
    let (_base, work) = work();
    let job = "[j]\nrw=randwrite\nbs=4k\nsize=1m\nrandom_distribution=zoned_abs:90/512k:10/1m\n";
    match agent(EngineKind::Native, job, work.path()).answer {
        Answer::Failed { reason, .. } => {
            assert!(reason.contains("take 1572864 bytes, and its region has 1048576"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}
