//! Tests of skewed placement against numbers taken from fio 3.33's own logs (`write_iolog`, ioengine=null).

use std::collections::BTreeMap;

use super::*;
use crate::workload::{JobFile, Workload};

fn job(text: &str) -> Job {
    let file = JobFile::parse(text, "test", std::path::Path::new(".")).unwrap();
    Workload::resolve(&file).unwrap().jobs.remove(0)
}

/// Share of the hits of the most popular 1 % and 10 % of `blocks`, and how many blocks were hit at all.
fn summary(options: &str, blocks: u64, draws: u32) -> (f64, f64, usize) {
    let job = job(&format!("[j]\nrw=randread\nbs=4k\nsize=64m\n{options}\n"));
    let mut offsets = Offsets::new(&job, 1 << 20, blocks * 4096, 11);
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for _ in 0..draws {
        let (at, length) = offsets.draw(DataDirection::Read).unwrap();
        assert!(length == 4096 && at % 4096 == 0 && at >= 1 << 20 && at < (1 << 20) + blocks * 4096);
        *counts.entry(at).or_default() += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top = |count: u64| f64::from(counts.iter().take(count as usize).sum::<u32>()) / f64::from(draws);
    (top(blocks / 100), top(blocks / 10), counts.len())
}

#[test]
fn distributions_are_as_skewed_as_fios() {
    for (distribution, blocks, top1, top10, hit) in [
        ("zipf:1.2", 10_240, 0.7661, 0.9158, 6446),
        ("zipf:0.8", 10_240, 0.3091, 0.6006, 8038),
        ("pareto:0.2", 10_240, 0.5298, 0.7440, 7946),
        ("pareto:0.4", 10_240, 0.0811, 0.3238, 8058),
        ("normal", 10_240, 0.0573, 0.4902, 4458),
        ("normal:20", 10_240, 0.0547, 0.4469, 5162),
        ("zoned:60/10:30/20:10/70", 10_240, 0.0695, 0.5990, 9851),
        ("zipf:1.2", 16_384, 0.7897, 0.9212, 9928),
        ("zipf:0.8", 16_384, 0.3165, 0.5862, 16_101),
        ("pareto:0.2", 16_384, 0.5284, 0.7315, 15_405),
        ("pareto:0.4", 16_384, 0.0774, 0.2857, 16_378),
        ("normal", 16_384, 0.0560, 0.4590, 8110),
        ("normal:20", 16_384, 0.0471, 0.3883, 9547),
        ("zoned:60/10:30/20:10/70", 16_384, 0.0721, 0.5990, 14_528),
    ] {
        let found = summary(&format!("random_distribution={distribution}"), blocks, 204_800);
        // Four standard deviations of a share of 204800 draws are at most 0.0045.
        assert!(
            (found.0 - top1).abs() < 0.006 && (found.1 - top10).abs() < 0.006,
            "{distribution}: {found:?}"
        );
        let hit = f64::from(hit);
        assert!((found.2 as f64 / hit - 1.0).abs() < 0.03, "{distribution}: {found:?}");
    }
}

#[test]
fn the_most_popular_block_is_at_the_center() {
    for distribution in ["zipf:1.2:0.25", "pareto:0.2:0.25"] {
        let job = job(&format!("[j]\nrw=randread\nbs=4k\nsize=40m\nrandom_distribution={distribution}\n"));
        let mut offsets = Offsets::new(&job, 0, 40 << 20, 3);
        let hits = |offsets: &mut Offsets| {
            (0..10_000).filter(|_| offsets.draw(DataDirection::Read) == Some((10 << 20, 4096))).count()
        };
        let first = hits(&mut offsets);
        assert!(first > 1_900, "{distribution}: {first}");
        offsets.restart();
        assert!(hits(&mut offsets).abs_diff(first) < 300, "what is popular stays so");
    }
}

#[test]
fn partly_random_jobs_go_on_where_the_last_io_ended() {
    let job = job("[j]\nrw=randread\nbs=4k\nsize=40m\npercentage_random=30\n");
    let mut offsets = Offsets::new(&job, 0, 40 << 20, 5);
    let hits: Vec<u64> =
        (0..10_240).filter_map(|_| offsets.draw(DataDirection::Read)).map(|hit| hit.0).collect();
    let followed = hits.windows(2).filter(|pair| pair[0] + 4096 == pair[1]).count();
    let mut distinct = hits.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(hits.len(), 10_240);
    // fio 3.33: 69.4 to 70.1 % followed, 6532 to 6636 blocks were hit.
    assert!((followed as f64 / 10_240.0 - 0.7).abs() < 0.02, "{followed}");
    assert!(distinct.len().abs_diff(6600) < 250, "{}", distinct.len());
    let mut filled = Vec::new();
    Offsets::new(&job, 0, 40 << 20, 5).fill(DataDirection::Read, 1000, &mut filled);
    assert_eq!(filled, hits[..1000], "a lot is what single draws are");
}

#[test]
fn block_sizes_have_their_shares() {
    let shares = |options: &str| {
        let job = job(&format!("[j]\nbs=4k\nsize=400m\nbssplit=4k/20:16k/30:64k\n{options}\n"));
        let mut offsets = Offsets::new(&job, 0, 400 << 20, 5);
        let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
        let mut bytes = 0;
        let mut draws = 0.0;
        while bytes < 400 << 20 {
            let Some((_, length)) = offsets.draw(DataDirection::Read) else { break };
            *counts.entry(length).or_default() += 1.0;
            bytes += length;
            draws += 1.0;
        }
        counts.values_mut().for_each(|count| *count /= draws);
        (counts, bytes)
    };
    for options in ["rw=read", "rw=randread\nnorandommap"] {
        let (counts, _) = shares(options);
        let wanted = [(4096, 0.2), (16384, 0.3), (65536, 0.5)];
        assert_eq!(counts.len(), 3, "{options}: {counts:?}");
        for (size, share) in wanted {
            assert!((counts[&size] - share).abs() < 0.02, "{options}: {counts:?}");
        }
    }
    // With a map blocks are cut where they meet others; fio 3.33 has 25.9 % of 4k, 26.3 % of 16k, 19.4 % of 64k.
    let (counts, bytes) = shares("rw=randread");
    assert_eq!(bytes, 400 << 20);
    assert_eq!(counts.len(), 16);
    for (size, share) in [(4096, 0.259), (16384, 0.263), (65536, 0.194)] {
        assert!((counts[&size] - share).abs() < 0.03, "{size}: {counts:?}");
    }
}
