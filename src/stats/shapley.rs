//! Shapley shares: how much each factor has of the change from all factors low to all high.
//!
//! Enters: the value of every combination of low and high. Leaves: one share a factor; they add up to the change. A share is what the
//! factor adds when it is set to high, averaged over all orders in which the factors can be set. So it has a part of each
//! interaction, as large as that of the other factors in it. It must not know what the values are.
//!
//! Source: Shapley (1953), "A Value for n-Person Games", *Contributions to the Theory of Games* II:307.

/// The shares. `values[set]` is the value where the factors whose bits are in `set` are high: 2^k values for k factors; empty where
/// their number is no power of two.
#[must_use]
pub fn shares(values: &[f64]) -> Vec<f64> {
    if !values.len().is_power_of_two() {
        return Vec::new();
    }
    let factors = values.len().trailing_zeros();
    let share = |factor: u32| {
        let without = (0..values.len()).filter(|set| set & (1 << factor) == 0);
        without
            .map(|set| {
                let added = values[set | 1 << factor] - values[set];
                added * orders(set.count_ones(), factors)
            })
            .sum()
    };
    (0..factors).map(share).collect()
}

/// The part of all orders of `factors` in which a factor comes right after a given set of `before` others: before!·(factors − before
/// − 1)!/factors!, that is 1/(factors · the number of sets of this size among the other factors).
fn orders(before: u32, factors: u32) -> f64 {
    let others = factors - 1;
    let sets: f64 = (0..before).map(|i| f64::from(others - i) / f64::from(i + 1)).product();
    1.0 / (f64::from(factors) * sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pilot_plant_from_all_low_to_all_high() {
        // Box, Hunter & Hunter's yields; T is bit 0, C bit 1, K bit 2.
        let shares = shares(&[60.0, 72.0, 54.0, 68.0, 52.0, 83.0, 45.0, 80.0]);
        for (have, want) in shares.iter().zip([23.1667, -4.8333, 1.6667]) {
            assert!((have - want).abs() < 5e-5, "{shares:?}");
        }
        assert!((shares.iter().sum::<f64>() - 20.0).abs() < 1e-12, "80 − 60");
    }

    #[test]
    fn what_only_both_together_do_is_halved() {
        assert_eq!(shares(&[1.0, 1.0, 1.0, 5.0]), [2.0, 2.0]);
        assert_eq!(shares(&[3.0, 4.5]), [1.5]);
        assert!(shares(&[7.0]).is_empty() && shares(&[]).is_empty() && shares(&[1.0; 3]).is_empty());
    }
}
