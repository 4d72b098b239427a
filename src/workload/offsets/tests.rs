//! Tests of offsets.

use super::*;
use crate::workload::Mix;
use crate::workload::{JobFile, Workload};

fn job(text: &str) -> Job {
    let file = JobFile::parse(text, "test", std::path::Path::new(".")).unwrap();
    Workload::resolve(&file).unwrap().jobs.remove(0)
}

fn all(offsets: &mut Offsets, direction: DataDirection) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| offsets.draw(direction)).collect()
}

#[test]
fn sequential_ends_where_no_whole_block_fits() {
    let job = job("[j]\nrw=write\nbs=4k\nsize=42k\n");
    let mut offsets = Offsets::new(&job, 8192, 42 << 10, 1);
    let hits = all(&mut offsets, DataDirection::Write);
    assert_eq!(hits.len(), 10);
    assert_eq!(hits[9], (8192 + 9 * 4096, 4096));
    offsets.restart();
    assert_eq!(offsets.draw(DataDirection::Write), Some((8192, 4096)));
}

#[test]
fn sequential_directions_have_positions_of_their_own() {
    let job = job("[j]\nrw=rw\nbs=4k,8k\nsize=64k\n");
    let mut offsets = Offsets::new(&job, 0, 64 << 10, 1);
    assert_eq!(offsets.draw(DataDirection::Read), Some((0, 4096)));
    assert_eq!(offsets.draw(DataDirection::Write), Some((0, 8192)));
    assert_eq!(offsets.draw(DataDirection::Read), Some((4096, 4096)));
    assert_eq!(offsets.draw(DataDirection::Write), Some((8192, 8192)));
}

#[test]
fn random_with_a_map_hits_every_block_once() {
    let job = job("[j]\nrw=randwrite\nbs=4k\nsize=4m\n");
    for blocks in [0_u64, 1, 2, 3, 100, 1000, 1024, 1025] {
        let mut offsets = Offsets::new(&job, 4096, blocks * 4096 + 100, blocks);
        let mut hits = all(&mut offsets, DataDirection::Write);
        if blocks >= 100 {
            assert!(hits.windows(2).any(|w| w[0].0 > w[1].0), "random, not ascending");
        }
        hits.sort_unstable();
        let expected: Vec<_> = (0..blocks).map(|b| (4096 + b * 4096, 4096)).collect();
        assert_eq!(hits, expected, "{blocks} blocks");
    }
}

#[test]
fn the_order_looks_random() {
    let job = job("[j]\nrw=randread\nbs=4k\nsize=4m\n");
    let blocks: Vec<u64> = all(&mut Offsets::new(&job, 0, 1 << 32, 5), DataDirection::Read)
        .iter()
        .map(|hit| hit.0 / 4096)
        .collect();
    let count = blocks.len() as f64;
    assert_eq!(blocks.len(), 1 << 20);
    // Mean step between uniform draws is a third of the range; neighbours follow each other about twice in a million.
    let steps: f64 = blocks.windows(2).map(|pair| pair[0].abs_diff(pair[1]) as f64).sum();
    assert!((steps / count / count - 1.0 / 3.0).abs() < 0.005, "{}", steps / count / count);
    let neighbours = blocks.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
    assert!(neighbours < 20, "{neighbours}");
    // Each sixteenth of the order visits each sixteenth of the range equally often: 4096 expected, six deviations.
    let mut counts = [[0_u32; 16]; 16];
    for (index, block) in blocks.iter().enumerate() {
        counts[index >> 16][(block >> 16) as usize] += 1;
    }
    assert!(counts.iter().flatten().all(|count| count.abs_diff(4096) < 384), "{counts:?}");
}

#[test]
fn repeatable_passes_are_alike_and_others_not() {
    let passes = |options: &str| {
        let job = job(&format!("[j]\nrw=randread\nbs=4k\nsize=4m\n{options}\n"));
        let mut offsets = Offsets::new(&job, 0, 4 << 20, 7);
        let first = all(&mut offsets, DataDirection::Read);
        offsets.restart();
        let second = all(&mut offsets, DataDirection::Read);
        assert_eq!(first, all(&mut Offsets::new(&job, 0, 4 << 20, 7), DataDirection::Read));
        assert_ne!(first, all(&mut Offsets::new(&job, 0, 4 << 20, 8), DataDirection::Read));
        (first, second)
    };
    // Seen in fio 3.33 with write_iolog: loops=2 repeats its offsets.
    let (first, second) = passes("loops=2");
    assert_eq!(first, second);
    let (first, second) = passes("randrepeat=0\nloops=2");
    assert_ne!(first, second);
    let (first, second) = passes("time_based\nruntime=1");
    assert_ne!(first, second);
}

#[test]
fn a_range_of_sizes_covers_every_granule_once() {
    let job = job("[j]\nrw=randwrite\nbsrange=1k-8k\nsize=400k\n");
    let mut offsets = Offsets::new(&job, 0, 400 << 10, 3);
    for _ in 0..2 {
        let mut hit = vec![0; 400];
        for (at, length) in all(&mut offsets, DataDirection::Write) {
            assert!((1024..=8192).contains(&length) && length % 1024 == 0);
            (at / 1024..(at + length) / 1024).for_each(|granule| hit[granule as usize] += 1);
        }
        assert!(hit.iter().all(|count| *count == 1));
        offsets.restart();
    }
}

#[test]
fn directions_of_two_sizes_never_hit_a_byte_twice() {
    let job = job("[j]\nrw=randrw\nbs=4k,12k\nsize=1m\n");
    let mut offsets = Offsets::new(&job, 0, 1 << 20, 3);
    let mut hit = vec![0; 256];
    for index in 0..200 {
        let direction = if index % 2 == 0 { DataDirection::Read } else { DataDirection::Write };
        let Some((at, length)) = offsets.draw(direction) else { continue };
        assert_eq!(length, if index % 2 == 0 { 4096 } else { 12_288 });
        assert_eq!(at % length, 0);
        (at / 4096..(at + length) / 4096).for_each(|granule| hit[granule as usize] += 1);
    }
    assert!(hit.iter().all(|count| *count <= 1) && hit.iter().sum::<u32>() > 200, "{hit:?}");
}

#[test]
fn sizes_are_drawn_as_fio_draws_them() {
    let job = job("[j]\nrw=write\nbsrange=3k-10k\nsize=1m\n");
    let mut offsets = Offsets::new(&job, 0, 1 << 50, 3);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..10_000 {
        let (_, length) = offsets.draw(DataDirection::Write).unwrap();
        *counts.entry(length).or_insert(0_u32) += 1;
    }
    // min + max·u over 3k…13k: 3k, 6k and 9k three tenths each, the rest cut to 10k.
    let shares: Vec<(u64, u32)> = counts.into_iter().collect();
    assert_eq!(shares.iter().map(|(length, _)| length / 1024).collect::<Vec<_>>(), [3, 6, 9, 10]);
    for ((_, count), expected) in shares.iter().zip([3000_u32, 3000, 3000, 1000]) {
        assert!(count.abs_diff(expected) < 300, "{shares:?}");
    }
}

#[test]
fn without_a_map_it_stays_inside_and_repeats() {
    let job = job("[j]\nrw=randread\nbs=4k\nsize=64k\nnorandommap\n");
    let mut offsets = Offsets::new(&job, 4096, (64 << 10) + 100, 3);
    let hits: Vec<_> = (0..1000).filter_map(|_| offsets.draw(DataDirection::Read)).collect();
    assert_eq!(hits.len(), 1000);
    assert!(hits.iter().all(|(at, length)| *at >= 4096 && at + length <= 4096 + (64 << 10)));
    let mut counts = [0; 16];
    hits.iter().for_each(|(at, _)| counts[((at - 4096) / 4096) as usize] += 1);
    // 62.5 expected each; six standard deviations.
    assert!(counts.iter().all(|count| (16..=110).contains(count)), "{counts:?}");
    assert_eq!(Offsets::new(&job, 0, 4095, 3).draw(DataDirection::Read), None);
}

#[test]
fn shares_of_a_mix_are_met() {
    let mut choice = DirectionChoice::new(Mix::ReadWrite { read_percent: 70 }, 5);
    let reads = (0..10_000).filter(|_| choice.draw() == DataDirection::Read).count();
    assert!((6800..=7200).contains(&reads), "{reads}");
}
