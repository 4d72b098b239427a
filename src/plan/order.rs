//! The order of the cells in every round, and the seeds of trials.
//!
//! Enters: the seed, the number of cells, a round. Leaves: a permutation. Source: balanced order over blocks of two rounds
//! as in docs/METHODOLOGY.md; two cells run AB then BA, or BA then AB, by a seeded coin.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Streams below this one belong to blocks of rounds.
const TRIAL_STREAMS: u64 = 1 << 40;

pub(super) fn order(seed: u64, cells: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // A stream of its own for every block: a round's order needs no rounds before it, so a resumed run agrees.
    rng.set_stream(u64::from(round / 2));
    // Fisher–Yates, written out so that no library's later version can change the order of a stored seed.
    for last in (1..cells).rev() {
        order.swap(last, below(&mut rng, last as u64 + 1) as usize);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

pub(super) fn trial_seed(seed: u64, round: u32, cell: usize, attempt: u32) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(TRIAL_STREAMS + u64::from(round));
    rng.set_word_pos(2 * (2 * cell as u128 + u128::from(attempt.min(1))));
    rng.next_u64()
}

/// A number below `bound`, each equally likely (rejection of the incomplete last stretch).
fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % bound;
    loop {
        let drawn = rng.next_u64();
        if drawn < limit {
            return drawn % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn two_cells_run_ab_then_ba_or_ba_then_ab() {
        let mut seen = HashSet::new();
        for seed in 0..50 {
            let (first, second) = (order(seed, 2, 0), order(seed, 2, 1));
            assert!(
                (first == [0, 1] && second == [1, 0]) || (first == [1, 0] && second == [0, 1]),
                "{first:?} {second:?}"
            );
            seen.insert(first);
        }
        assert_eq!(seen.len(), 2, "the coin falls both ways");
    }

    #[test]
    fn every_second_round_is_the_one_before_it_reversed() {
        for round in (0..20).step_by(2) {
            let mut reversed = order(7, 5, round + 1);
            reversed.reverse();
            assert_eq!(order(7, 5, round), reversed);
        }
    }

    #[test]
    fn every_round_runs_every_cell_once() {
        for round in 0..20 {
            let mut cells = order(3, 6, round);
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3, 4, 5]);
        }
    }

    #[test]
    fn over_a_block_every_cell_stands_in_the_middle_on_average() {
        for cells in 2..8_usize {
            let mut places = vec![0; cells];
            for round in 0..2 {
                for (place, cell) in order(11, cells, round).into_iter().enumerate() {
                    places[cell] += place;
                }
            }
            assert!(places.iter().all(|place| *place == cells - 1), "{places:?}");
        }
    }

    #[test]
    fn all_permutations_are_equally_likely() {
        let mut counts: HashMap<Vec<usize>, u32> = HashMap::new();
        for seed in 0..6000 {
            *counts.entry(order(seed, 3, 0)).or_default() += 1;
        }
        // Six permutations of 1000 each; 150 is five standard deviations.
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| count.abs_diff(1000) < 150), "{counts:?}");
    }

    #[test]
    fn the_seed_fixes_the_order_for_good() {
        let rounds: Vec<Vec<usize>> = (0..6).map(|round| order(42, 3, round)).collect();
        assert_eq!(rounds, (0..6).map(|round| order(42, 3, round)).collect::<Vec<_>>());
        // Written down: a stored run must be resumed in the order it was begun in.
        assert_eq!(order(42, 4, 100), [1, 2, 0, 3]);
    }

    #[test]
    fn every_trial_has_a_seed_of_its_own() {
        let mut seeds = HashSet::new();
        for round in 0..50 {
            for cell in 0..8 {
                for attempt in 0..2 {
                    assert!(seeds.insert(trial_seed(1, round, cell, attempt)));
                }
            }
        }
        assert_eq!(trial_seed(1, 3, 2, 0), trial_seed(1, 3, 2, 0));
        assert_ne!(trial_seed(1, 3, 2, 0), trial_seed(2, 3, 2, 0));
    }
}
