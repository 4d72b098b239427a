//! k_n where N_max is too large to be simulated: looks on a grid of n that grows by a quarter.
//!
//! Enters: N_max, the first look, the spending function. Leaves: (n, k_n). What a look spends beyond the looks
//! before it comes from the recursion of Armitage, McPherson & Rowe (1969, J. R. Stat. Soc. A 132:235): the
//! standardised signed-rank statistics of n_1 < n_2 < … are jointly normal for large n, with the correlation
//! √(n_1/n_2) of a Brownian motion seen at n/N_max. The nominal level of each look is then turned into k_n by the exact
//! signed-rank tail (the significance-level approach; Jennison & Turnbull 2000, *Group Sequential Methods* §3.3).

use super::{normal, signed_rank};

/// Points of the density between the bounds; odd, for Simpson's rule.
const POINTS: usize = 301;
/// Halvings of the search for a bound.
const HALVINGS: usize = 50;
/// No bound is so far out, in standard deviations.
const FARTHEST: f64 = 40.0;

/// (n, k_n) on the grid; `spending(n)` is the α that may be spent up to n.
pub(super) fn boundary(
    max_rounds: usize,
    first_look: usize,
    spending: impl Fn(usize) -> f64,
) -> Vec<(usize, u64)> {
    // From the top down, so that the last step, where the most is spent, is a full one.
    let mut grid = vec![max_rounds];
    while let Some(n) = grid.last().map(|n| n - n.div_ceil(5)).filter(|n| *n >= first_look) {
        grid.push(n);
    }
    let (mut looks, mut spent) = (Vec::new(), 0.0);
    let mut alive: Option<Alive> = None;
    for n in grid.into_iter().rev() {
        let time = n as f64 / max_rounds as f64;
        let available = spending(n) - spent;
        let nominal = match &alive {
            // Nothing can have stopped before the first look: all that is available is its level.
            None => available,
            Some(alive) => alive.affordable_level(time, available),
        };
        let Some(k) = signed_rank::critical(n, nominal) else { continue };
        let level = signed_rank::two_sided(n, k);
        spent += alive.as_ref().map_or(level, |alive| alive.cost(time, level));
        alive = Some(Alive::after(alive.as_ref(), time, level));
        looks.push((n, k));
    }
    looks
}

/// The density of a Brownian motion at `time` on the paths that no look has stopped.
struct Alive {
    time: f64,
    bound: f64,
    density: Vec<f64>,
}

/// How far out a look at `time` with this two-sided level stops.
fn bound(time: f64, level: f64) -> f64 {
    time.sqrt() * normal::upper_quantile(level / 2.0).min(FARTHEST)
}

impl Alive {
    /// After a look with this level, made of the paths `before` it.
    fn after(before: Option<&Alive>, time: f64, level: f64) -> Alive {
        let bound = bound(time, level);
        let density_at = |x: f64| match before {
            None => density(x, time),
            Some(before) => before.integral(|y| density(x - y, time - before.time)),
        };
        let density = places(bound).map(density_at).collect();
        Alive { time, bound, density }
    }

    /// Probability that a look at `time` with this level stops a path that was alive until then.
    fn cost(&self, time: f64, level: f64) -> f64 {
        let (bound, sd) = (bound(time, level), (time - self.time).sqrt());
        2.0 * self.integral(|x| normal::upper_tail((bound - x) / sd))
    }

    /// The largest level that costs at most `available`.
    fn affordable_level(&self, time: f64, available: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.cost(time, middle) <= available {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// ∫ density·f by Simpson's rule.
    fn integral(&self, f: impl Fn(f64) -> f64) -> f64 {
        let step = 2.0 * self.bound / (POINTS - 1) as f64;
        let weight = |at: usize| match at {
            0 => 1.0,
            _ if at == POINTS - 1 => 1.0,
            _ if at % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let terms = places(self.bound).zip(&self.density).enumerate();
        step / 3.0 * terms.map(|(at, (x, density))| weight(at) * density * f(x)).sum::<f64>()
    }
}

/// The points at which a density is kept.
fn places(bound: f64) -> impl Iterator<Item = f64> {
    (0..POINTS).map(move |at| bound * (2.0 * at as f64 / (POINTS - 1) as f64 - 1.0))
}

/// Normal density with variance `time`.
fn density(x: f64, time: f64) -> f64 {
    (-x * x / (2.0 * time)).exp() / (std::f64::consts::TAU * time).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_equal_looks_are_pococks() {
        // Pocock (1977), Biometrika 64:191, table 1: five looks at nominal 0.0158 make 0.05 together.
        let mut alive = Alive::after(None, 0.2, 0.0158);
        let mut spent = 0.0158;
        for look in 2..=5 {
            let time = 0.2 * f64::from(look);
            spent += alive.cost(time, 0.0158);
            alive = Alive::after(Some(&alive), time, 0.0158);
        }
        assert!((spent - 0.05).abs() < 2e-4, "{spent}");
        assert!((alive.integral(|_| 1.0) - (1.0 - spent)).abs() < 1e-6);
    }

    #[test]
    fn the_level_found_costs_what_there_is() {
        let alive = Alive::after(None, 0.5, 0.01);
        let level = alive.affordable_level(0.75, 0.002);
        assert!((alive.cost(0.75, level) - 0.002).abs() < 1e-9 && (0.002..0.012).contains(&level), "{level}");
    }
}
