//! Contrasts of a full factorial: what one factor does on average over the others, and how much that depends on another factor.
//!
//! Enters: how many levels each factor has. Leaves: weights, one a cell; a contrast is the sum of weight × value. Cells are in
//! standard order: the first factor varies fastest. It must not know what the values are; on a log scale a contrast is the
//! logarithm of a ratio.
//!
//! A factor's level is compared with its first one. A main effect is that difference, averaged over all combinations of the
//! other factors. The interaction of two factors is the difference of two such differences: the first factor's at a level of the second
//! less the first factor's at the first level of the second. Where all factors have two levels, Yates' effects, as Box, Hunter & Hunter
//! print them, are contrasts divided by 2^(r − 1), r being the number of factors in the term: an interaction of two
//! is half the difference.
//!
//! Source: Box, Hunter & Hunter, *Statistics for Experimenters* (2005) §5; Yates (1937), *The Design and Analysis of Factorial
//! Experiments*.

/// A factor by its index, and a level of it, counted from 0.
pub type At = (usize, usize);

/// How many cells a full factorial has.
#[must_use]
pub fn cells(levels: &[usize]) -> usize {
    levels.iter().product()
}

/// The level of each factor in a cell.
#[must_use]
pub fn levels_of(cell: usize, levels: &[usize]) -> Vec<usize> {
    let mut rest = cell;
    levels
        .iter()
        .map(|count| {
            let level = rest % count;
            rest /= count;
            level
        })
        .collect()
}

/// The weights of a term: `changes` are the factors in it, each with the level that is compared with its first; factors that are
/// `held` stay at one level; over all others the contrast is an average.
#[must_use]
pub fn weights(levels: &[usize], changes: &[At], held: &[At]) -> Vec<f64> {
    let named = |factor: usize| changes.iter().chain(held).any(|(known, _)| *known == factor);
    let others = levels.iter().enumerate().filter(|(factor, _)| !named(*factor));
    let averaged: usize = others.map(|(_, count)| *count).product();
    let weight = |cell: usize| {
        let own = levels_of(cell, levels);
        let sign = |(factor, level): &At| match own[*factor] {
            here if here == *level => 1.0,
            0 => -1.0,
            _ => 0.0,
        };
        let is_held = held.iter().all(|(factor, level)| own[*factor] == *level);
        let product: f64 = changes.iter().map(sign).product();
        if is_held { product / averaged as f64 } else { 0.0 }
    };
    (0..cells(levels)).map(weight).collect()
}

/// The contrast of the cells' values.
#[must_use]
pub fn contrast(weights: &[f64], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(weight, value)| weight * value).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{signed_rank, walsh::Walsh};
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Box, Hunter & Hunter's pilot plant: yields in standard order, temperature T fastest, then concentration C and catalyst K.
    const PILOT_PLANT: [f64; 8] = [60.0, 72.0, 54.0, 68.0, 52.0, 83.0, 45.0, 80.0];
    const TWO_CUBED: [usize; 3] = [2, 2, 2];

    fn of(levels: &[usize], changes: &[At], held: &[At], values: &[f64]) -> f64 {
        contrast(&weights(levels, changes, held), values)
    }

    #[test]
    fn the_pilot_plant_of_box_hunter_and_hunter() {
        let (t, c, k) = ((0, 1), (1, 1), (2, 1));
        let effect =
            |term: &[At]| of(&TWO_CUBED, term, &[], &PILOT_PLANT) / 2_f64.powi(term.len() as i32 - 1);
        let known: [(&[At], f64); 7] = [
            (&[t], 23.0),
            (&[c], -5.0),
            (&[k], 1.5),
            (&[t, k], 10.0),
            (&[t, c], 1.5),
            (&[c, k], 0.0),
            (&[t, c, k], 0.5),
        ];
        for (term, wanted) in known {
            assert!((effect(term) - wanted).abs() < 1e-12, "{term:?}: {}", effect(term));
        }
    }

    #[test]
    fn an_interaction_is_the_difference_of_effects_within_levels() {
        let (t, k) = ((0, 1), (2, 1));
        let within = |level| of(&TWO_CUBED, &[t], &[(2, level)], &PILOT_PLANT);
        assert_eq!((within(0), within(1)), (13.0, 33.0), "temperature with either catalyst");
        assert_eq!(of(&TWO_CUBED, &[t, k], &[], &PILOT_PLANT), 20.0);
        assert_eq!(0.5 * (within(0) + within(1)), of(&TWO_CUBED, &[t], &[], &PILOT_PLANT));
    }

    #[test]
    fn each_level_is_compared_with_the_first() {
        // Rows of three by columns of two: value = 10·row + 100·column + 7 in the last cell.
        let values = [0.0, 10.0, 20.0, 100.0, 110.0, 127.0];
        assert_eq!(of(&[3, 2], &[(0, 1)], &[], &values), 10.0);
        assert_eq!(of(&[3, 2], &[(0, 2)], &[], &values), 23.5);
        assert_eq!(of(&[3, 2], &[(0, 1), (1, 1)], &[], &values), 0.0);
        assert_eq!(of(&[3, 2], &[(0, 2), (1, 1)], &[], &values), 7.0);
        assert_eq!(levels_of(5, &[3, 2]), [2, 1]);
    }

    /// Noise of the trials of one run in time order: normal, slow drift and a trend, each as large as `cv`, as `assay simulate` has it, with
    /// a stall in `stalls` of the trials.
    fn noise(trials: usize, cv: f64, stalls: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let slope = (6.0 * rng.random::<f64>() - 3.0) * cv / 20.0;
        let normal = |rng: &mut ChaCha8Rng| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let mut drift = cv * normal(rng);
        (0..trials)
            .map(|trial| {
                drift = 0.95 * drift + cv * (1.0 - 0.95_f64 * 0.95).sqrt() * normal(rng);
                let stalled = rng.random::<f64>() < stalls;
                let stall = if stalled { 0.1 + 0.4 * rng.random::<f64>() } else { 0.0 };
                cv * normal(rng) + drift + slope * trial as f64 + stall
            })
            .collect()
    }

    /// (coverage of the intervals of all main effects and two-factor interactions, mean half width of the main effects).
    fn covered(stalls: f64, replicates: u64) -> (f64, f64) {
        let levels = [2; 4];
        let mut terms: Vec<Vec<At>> = (0..4).map(|factor| vec![(factor, 1)]).collect();
        for first in 0..4 {
            terms.extend((first + 1..4).map(|second| vec![(first, 1), (second, 1)]));
        }
        let terms: Vec<Vec<f64>> = terms.iter().map(|term| weights(&levels, term, &[])).collect();
        let k = signed_rank::critical(10, 0.05).unwrap();
        let (mut held, mut of, mut width) = (0, 0, 0.0);
        for replicate in 0..replicates {
            let mut rng = ChaCha8Rng::seed_from_u64(replicate);
            let noise = noise(160, 0.03, stalls, &mut rng);
            let mut rounds = vec![vec![0.0; 16]; 10];
            for (round, values) in rounds.iter_mut().enumerate() {
                let mut order: Vec<usize> = (0..16).collect();
                for at in (1..16).rev() {
                    order.swap(at, (rng.random::<f64>() * (at + 1) as f64) as usize);
                }
                for (position, cell) in order.into_iter().enumerate() {
                    values[cell] = noise[16 * round + position];
                }
            }
            for (term, weights) in terms.iter().enumerate() {
                let differences: Vec<f64> = rounds.iter().map(|values| contrast(weights, values)).collect();
                let interval = Walsh::new(&differences).unwrap().interval(k).unwrap();
                held += u32::from(!interval.excludes(0.0));
                of += 1;
                width += if term < 4 { 0.5 * (interval.high - interval.low) } else { 0.0 };
            }
        }
        (100.0 * f64::from(held) / f64::from(of), 100.0 * width / (4.0 * replicates as f64))
    }

    #[test]
    fn intervals_of_a_factorial_cover_what_they_say() {
        for (name, stalls) in [("without stalls", 0.0), ("with stalls in 5 % of the trials", 0.05)] {
            let (coverage, half_width) = covered(stalls, 400);
            println!(
                "2⁴, 10 rounds, CV 3 %, {name}: {coverage:.1} % covered, half width {half_width:.2} points"
            );
            // 4,000 intervals: three standard errors are 1.1 points.
            assert!((93.5..=97.0).contains(&coverage), "{coverage}");
            let expected = if stalls == 0.0 { 1.1..=1.3 } else { 2.5..=3.0 };
            assert!(expected.contains(&half_width), "{half_width}");
        }
    }
}
