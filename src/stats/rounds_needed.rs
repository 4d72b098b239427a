//! How many rounds an answer probably takes.
//!
//! Enters: the α of one comparison. Leaves: the factor of (s/θ)² for a claim, of (s/δ)² for "no difference".
//! Both grow with the level as sample sizes do, (z_{1−α/2} + z_power)² (Lachin 1981, Control. Clin. Trials 2:93): a
//! claim with 80 % power; "no difference" where both ends must come in, with 90 % a side. At α = 0.05 they are 14 and 20, which holds
//! what repeated looks, ranks and a spread taken from few rounds cost. A family of m gives each comparison α/m.

use super::normal::upper_quantile;
use super::student_t;

/// Factor of a claim at α = 0.05.
const CLAIM: f64 = 14.0;
/// Factor of "no difference" at α = 0.05.
const NO_DIFFERENCE: f64 = 20.0;
/// What ranks and looks on the way cost in size of effect.
const LOOKS: f64 = 1.15;
/// The α that both are meant for.
const ALPHA: f64 = 0.05;

/// Rounds a claim takes in units of (s/θ)², at two-sided `alpha`.
#[must_use]
pub fn claim_factor(alpha: f64) -> f64 {
    CLAIM * relative_size(alpha, 0.2)
}

/// Rounds "no difference" takes in units of (s/δ)², at two-sided `alpha`.
#[must_use]
pub fn no_difference_factor(alpha: f64) -> f64 {
    NO_DIFFERENCE * relative_size(alpha, 0.1)
}

/// The smallest effect, in spreads of the differences, that `rounds` rounds show with 80 % power at two-sided `alpha`:
/// (t_{1−α/2} + t_{0.8})/√n, and 15 % for ranks and for looks on the way: simulated, 12 rounds of 9 rows find in 54 % what t
/// alone would in 80.
#[must_use]
pub fn smallest_shown(rounds: usize, alpha: f64) -> f64 {
    let df = rounds.saturating_sub(1).max(1) as f64;
    let t = student_t::upper_quantile(alpha / 2.0, df) + student_t::upper_quantile(0.2, df);
    LOOKS * t / (rounds.max(1) as f64).sqrt()
}

fn relative_size(alpha: f64, miss: f64) -> f64 {
    let root = |level: f64| upper_quantile(level / 2.0) + upper_quantile(miss);
    (root(alpha) / root(ALPHA)).powi(2)
}

#[cfg(test)]
mod tests {
    use super::super::{Estimate, signed_rank, walsh::Walsh};
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn one_row_has_the_factors_of_old() {
        assert!(
            (claim_factor(0.05) - 14.0).abs() < 1e-12 && (no_difference_factor(0.05) - 20.0).abs() < 1e-12
        );
        // 20 rows: z_{0.99875} = 3.0233, so 14·((3.0233 + 0.8416)/(1.9600 + 0.8416))².
        assert!((claim_factor(0.05 / 20.0) - 26.643).abs() < 0.01, "{}", claim_factor(0.05 / 20.0));
        assert!(
            (no_difference_factor(0.05 / 20.0) - 35.28).abs() < 0.02,
            "{}",
            no_difference_factor(0.05 / 20.0)
        );
    }

    /// Share of 300 looks after `rounds` rounds, of an effect in standard deviations, whose interval at `alpha` is what is asked for.
    fn share(rounds: usize, alpha: f64, effect: f64, asked: impl Fn(Estimate) -> bool) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let k = signed_rank::critical(rounds, alpha).unwrap();
        let looks = (0..300).filter(|_| {
            let differences: Vec<f64> = (0..rounds).map(|_| effect + normal()).collect();
            Walsh::new(&differences).and_then(|walsh| walsh.interval(k)).is_some_and(&asked)
        });
        looks.count() as f64 / 300.0
    }

    /// An effect of 0.8 standard deviations is found.
    fn found(rounds: usize, alpha: f64) -> f64 {
        share(rounds, alpha, 0.8, |interval| interval.excludes(0.0))
    }

    #[test]
    fn rounds_named_suffice_for_no_difference() {
        for rows in [1.0, 6.0, 20.0] {
            let alpha = 0.05 / rows;
            let rounds = (no_difference_factor(alpha) / 0.64).ceil() as usize;
            // Where nothing differs, and δ is 0.8 standard deviations.
            let inside = share(rounds, alpha, 0.0, |interval| interval.low > -0.8 && interval.high < 0.8);
            println!("{rows} rows: {:.0} % show no difference after {rounds} rounds", 100.0 * inside);
            assert!(inside >= 0.8, "{rows} rows: {inside}");
        }
    }

    #[test]
    fn what_is_named_is_shown_as_often_as_said() {
        use super::super::crossover::Crossover;
        use super::super::sequential::Boundary;
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        for (rounds, rows) in [(4, 1), (4, 9), (8, 1), (8, 9), (12, 9), (20, 2), (20, 48)] {
            let alpha = 0.05 / f64::from(rows);
            let effect = smallest_shown(rounds, alpha);
            let boundary = Boundary::new(rounds, alpha, false);
            let shown = (0..1_000).filter(|_| {
                let differences: Vec<f64> = (0..rounds).map(|_| effect + normal()).collect();
                let look = boundary.look(&Crossover::of_unknown_order(&differences));
                look.is_some_and(|look| look.interval.excludes(0.0))
            });
            let share = shown.count() as f64 / 1_000.0;
            println!("{rounds} rounds, {rows} rows: {effect:.2} spreads are shown in {:.0} %", 100.0 * share);
            assert!((0.65..0.95).contains(&share), "{rounds} rounds, {rows} rows: {share}");
        }
    }

    #[test]
    fn rounds_named_suffice_with_many_rows() {
        for rows in [1.0, 6.0, 20.0] {
            let alpha = 0.05 / rows;
            let (old, new) = (
                found((14.0 / 0.64_f64).ceil() as usize, alpha),
                found((claim_factor(alpha) / 0.64).ceil() as usize, alpha),
            );
            println!(
                "{rows} rows: {:.0} % found after the rounds named, {:.0} % after those of one row",
                100.0 * new,
                100.0 * old
            );
            assert!(new >= 0.9, "{rows} rows: {new}");
        }
    }
}
