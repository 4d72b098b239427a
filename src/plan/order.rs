//! The order of the cells in every round, and the seeds of trials.
//!
//! Enters: the seed, the number of cells, a round. Leaves: a permutation, drawn for each round on its own. If the arms do not
//! differ, exchanging two of them in a round exchanges the sign of their difference and nothing else, so that these signs are
//! independent fair coins whatever the noise: Fisher, *The Design of Experiments* (1935), on randomization.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Streams below this one belong to the orders of rounds.
const TRIAL_STREAMS: u64 = 1 << 40;
const LEAD_IN_STREAMS: u64 = 1 << 41;

pub(super) fn order(seed: u64, cells: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // A stream of its own for every round: its order needs no rounds before it, so a resumed run agrees.
    rng.set_stream(u64::from(round));
    // Fisher–Yates, written out so that no library's later version can change the order of a stored seed.
    for last in (1..cells).rev() {
        order.swap(last, below(&mut rng, last as u64 + 1) as usize);
    }
    order
}

pub(super) fn trial_seed(seed: u64, round: u32, cell: usize, attempt: u32) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(TRIAL_STREAMS + u64::from(round));
    rng.set_word_pos(2 * (2 * cell as u128 + u128::from(attempt.min(1))));
    rng.next_u64()
}

pub(super) fn lead_in_seed(seed: u64, round: u32) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(LEAD_IN_STREAMS + u64::from(round));
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
    fn each_round_has_a_coin_of_its_own() {
        // 1,000 rounds of two cells: each order in half of them, and each pair of successive orders in a quarter.
        let orders: Vec<Vec<usize>> = (0..1001).map(|round| order(9, 2, round)).collect();
        let count = |of: &dyn Fn(&[Vec<usize>]) -> bool| orders.windows(2).filter(|pair| of(pair)).count();
        assert!(count(&|pair| pair[0] == [0, 1]).abs_diff(500) < 64, "four standard deviations");
        assert!(count(&|pair| pair[0] == [0, 1] && pair[1] == [0, 1]).abs_diff(250) < 64);
        assert!(count(&|pair| pair[0] == [1, 0] && pair[1] == [0, 1]).abs_diff(250) < 64);
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
        assert_eq!(order(42, 4, 100), [2, 0, 1, 3]);
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
        assert!((0..50).all(|round| seeds.insert(lead_in_seed(1, round))));
        assert_eq!(trial_seed(1, 3, 2, 0), trial_seed(1, 3, 2, 0));
        assert_ne!(trial_seed(1, 3, 2, 0), trial_seed(2, 3, 2, 0));
    }
}
