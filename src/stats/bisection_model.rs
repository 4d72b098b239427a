//! How likely the values of one round of a bisection are, for a given effect, noise and place of the change.
//!
//! Enters: the values of a round, and how many of its asked steps lie before the change. Leaves: a log-likelihood for each setting of
//! a grid. It must not know which step is asked next.
//!
//! A trial of a round is u + Δ·(its step has the change) + noise, where u is whatever the round has in common: a drift of the machine says
//! nothing. With u unknown (a flat prior), what is left of c trials are their residuals around their mean. With sum of squares S
//! they have the density of a multivariate t of d = c − 1 dimensions, ν degrees of freedom and scale σ:
//! Γ((ν + d)/2)/Γ(ν/2)·(νπσ²)^(−d/2)·(1 + S/(νσ²))^(−(ν + d)/2). With a small ν a round with a stall says little, whatever it seems to say
//! (Lange, Little & Taylor 1989, J. Am. Stat. Assoc. 84:881, on t likelihoods that outliers do not carry away).
//!
//! Nobody knows Δ, σ and ν: each of them is summed over, with all rounds' own evidence for it. σ and ν have flat priors on their grids
//! (σ on the log scale), Δ half a Cauchy distribution whose scale is the noise of a difference (Jeffreys 1961, *Theory of Probability*).

use statrs::function::gamma::ln_gamma;

use super::descriptive::{median, stddev};
use super::walsh::Walsh;

/// Degrees of freedom: rare stalls, heavy tails, and almost normal.
const DEGREES: [f64; 3] = [3.0, 8.0, 50.0];
/// Values of σ.
const SCALES: usize = 9;
/// Values of Δ, half a standard error of the ends' rounds apart.
const EFFECTS: usize = 18;
const BELOW: f64 = -4.5;
const APART: f64 = 0.5;
/// Most dimensions of a round.
pub(super) const MOST_DIMENSIONS: usize = 5;
/// What a round's evidence counts for. Noise that is no t distribution, two modes say, would else seem to say more than it does.
const TEMPER: f64 = 0.9;
/// Rounds without any noise are taken to have this part of the effect.
const LEAST_NOISE: f64 = 0.01;
/// Makes a median of absolute deviations a standard deviation where noise is normal.
const NORMAL_MAD: f64 = 1.482_602_218_505_602;

/// What one round measured, on the log scale, worse being higher. A trial that failed is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// The good end.
    pub good: Option<f64>,
    /// The bad end.
    pub bad: Option<f64>,
    /// Steps between the ends and their values.
    pub asked: Vec<(usize, f64)>,
    /// The bad end was run after the good one.
    pub bad_second: bool,
}

impl Round {
    /// Bad less good.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.bad? - self.good?)
    }

    /// Squares around the mean of what is left of the values where the change makes `delta`, and the last `bad` of the asked steps
    /// have it; with the number of values.
    fn squares(&self, delta: f64, before: usize) -> (f64, usize) {
        let level = |at: usize| if at < before { 0.0 } else { delta };
        let asked = self.asked.iter().enumerate().map(|(at, (_, value))| value - level(at));
        let left = || self.good.into_iter().chain(self.bad.map(|bad| bad - delta)).chain(asked.clone());
        let count = left().count();
        let mean = left().sum::<f64>() / count as f64;
        (left().map(|residual| (residual - mean) * (residual - mean)).sum(), count)
    }
}

/// A grid of effects, scales and degrees of freedom, with the prior weight of each point.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    effects: Vec<f64>,
    /// (νσ², ν, the log of the constant for each number of dimensions).
    noises: Vec<(f64, f64, [f64; MOST_DIMENSIONS])>,
    /// Log of the prior weight, effects outermost; they add up to 1.
    pub(super) log_weights: Vec<f64>,
}

impl Grid {
    /// The grids with a change and without one, from the differences of the ends before the first step was asked.
    pub(super) fn around(differences: &[f64]) -> (Grid, Grid) {
        let centre = Walsh::new(differences).map_or(0.0, |walsh| walsh.hodges_lehmann());
        let middle = median(differences);
        let deviations: Vec<f64> = differences.iter().map(|difference| (difference - middle).abs()).collect();
        let spreads = [NORMAL_MAD * median(&deviations), stddev(differences)];
        let floor = (LEAST_NOISE * centre.abs()).max(1e-9);
        let known = |pick: fn(f64, f64) -> f64, start: f64| {
            let spread = spreads.into_iter().filter(|spread| *spread > floor).fold(start, pick);
            if spread.is_finite() && spread > 0.0 { spread } else { floor }
        };
        let (low, high) = (known(f64::min, f64::INFINITY), known(f64::max, 0.0));
        // Of few rounds the spread is hardly known.
        let margin = 1.0 + 6.0 / (differences.len().max(1) as f64).sqrt();
        let (least, most) = (low / margin / 2f64.sqrt(), high * margin / 2f64.sqrt());
        let scales: Vec<f64> =
            (0..SCALES).map(|at| least * (most / least).powf(at as f64 / (SCALES - 1) as f64)).collect();
        let error = high / (differences.len().max(1) as f64).sqrt();
        let effects: Vec<f64> = (0..EFFECTS)
            .map(|at| centre + error * (BELOW + APART * at as f64))
            .filter(|effect| *effect > 0.0)
            .collect();
        let effects = if effects.is_empty() { vec![error] } else { effects };
        let scale = (low * high).sqrt();
        let prior = |effect: &f64| {
            let density = 2.0 / (std::f64::consts::PI * scale * (1.0 + (effect / scale).powi(2)));
            (density * error * APART).ln()
        };
        let priors: Vec<f64> = effects.iter().map(prior).collect();
        (Grid::of(effects, &priors, &scales), Grid::of(vec![0.0], &[0.0], &scales))
    }

    fn of(effects: Vec<f64>, priors: &[f64], scales: &[f64]) -> Grid {
        let noise = |scale: &f64, df: f64| {
            let constant = |d: usize| {
                let d = d as f64;
                ln_gamma(0.5 * (df + d))
                    - ln_gamma(0.5 * df)
                    - 0.5 * d * (df * std::f64::consts::PI).ln()
                    - d * scale.ln()
            };
            (df * scale * scale, df, std::array::from_fn(constant))
        };
        let noises: Vec<_> = scales.iter().flat_map(|scale| DEGREES.map(|df| noise(scale, df))).collect();
        let each = (noises.len() as f64).ln();
        let log_weights = priors.iter().flat_map(|prior| vec![prior - each; noises.len()]).collect();
        Grid { effects, noises, log_weights }
    }

    /// Adds to `log` how likely the round is at each point, when `before` of its asked steps lie before the change.
    pub(super) fn add(&self, log: &mut [f64], round: &Round, before: usize) {
        let mut points = log.iter_mut();
        for effect in &self.effects {
            let (squares, values) = round.squares(*effect, before);
            let dimensions = values.saturating_sub(1).min(MOST_DIMENSIONS - 1);
            for ((scale, df, constants), point) in self.noises.iter().zip(&mut points) {
                let power = 0.5 * (df + dimensions as f64);
                *point += TEMPER * (constants[dimensions] - power * (squares / scale).ln_1p());
            }
        }
    }
}
