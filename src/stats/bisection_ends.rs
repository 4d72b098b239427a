//! Whether the bad end of a bisection is worse than the good end at all: the sequential verdict of a run, looked at less and less often.
//!
//! Enters: the paired differences of the ends, worse being higher, and the rule. Leaves: worse, not worse by δ, better, or not clear yet.
//! It must not know steps.
//!
//! The boundary is that of [`super::sequential`] at 2α, so that all looks of a search together exclude the truth on either side with probability
//! at most α each. Two sides are not added up: ends that do not differ can be called worse, ends that do can be called not worse, and
//! none can be both. A look that is left out spends nothing. From the eighth round on the next look comes when there are a twelfth more rounds: a search may need
//! hundreds of them, and a look costs time that grows with their square.

use super::crossover::Crossover;
use super::sequential::{Boundary, FEWEST_ROUNDS, Look};

/// Up to here each round is looked at.
const EACH_UP_TO: usize = 8;
/// Beyond, a look comes after this part more rounds.
const GROWTH: f64 = 1.0 / 12.0;
/// Both sides of a look together exclude the truth with no larger probability.
const MOST_ALPHA: f64 = 0.5;

/// When the ends are judged, and what counts as a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndsRule {
    /// Most rounds.
    pub max_rounds: usize,
    /// Chance that any look calls ends worse that are not; and that it calls them not worse though they are by δ.
    pub alpha: f64,
    /// The smallest difference that matters, on the scale of the differences.
    pub delta: f64,
}

/// What the looks at the ends say together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ends {
    /// The bad end is worse, by at least δ as estimated.
    Worse(Look),
    /// The bad end is better.
    Better(Look),
    /// It is not worse by δ or more.
    NotWorse(Look),
    /// Not clear yet; the look, if there was one.
    Open(Option<Look>),
}

/// The verdict on the ends after all `rounds`.
#[must_use]
pub fn ends(rounds: &Crossover, rule: &EndsRule) -> Ends {
    let boundary = Boundary::new(rule.max_rounds, (2.0 * rule.alpha).min(MOST_ALPHA), false);
    let mut said: Option<Look> = None;
    for n in looks(rule.max_rounds).take_while(|n| *n <= rounds.len()) {
        let Some(look) = boundary.look_at(rounds, n) else { continue };
        let look = said.map_or(look, |before| before.narrowed(look));
        said = Some(look);
        match judged(look, rule.delta) {
            Ends::Open(_) => {}
            clear => return clear,
        }
    }
    Ends::Open(said)
}

fn judged(look: Look, delta: f64) -> Ends {
    let interval = look.interval;
    if interval.high < 0.0 {
        Ends::Better(look)
    } else if interval.high < delta {
        Ends::NotWorse(look)
    } else if interval.low > 0.0 && interval.estimate >= delta {
        Ends::Worse(look)
    } else {
        Ends::Open(Some(look))
    }
}

/// The rounds after which the ends are looked at.
fn looks(max_rounds: usize) -> impl Iterator<Item = usize> {
    let later = move |n: &usize| {
        let step = if *n < EACH_UP_TO { 1 } else { (*n as f64 * GROWTH).ceil() as usize };
        (*n < max_rounds).then(|| (*n + step).min(max_rounds))
    };
    std::iter::successors(Some(FEWEST_ROUNDS), later)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: EndsRule = EndsRule { max_rounds: 60, alpha: 0.05, delta: 0.02 };

    fn of(differences: &[f64]) -> Ends {
        ends(&Crossover::of_unknown_order(differences), &RULE)
    }

    /// Values around `centre` that look like noise of this spread.
    fn around(centre: f64, spread: f64, n: usize) -> Vec<f64> {
        (0..n).map(|at| centre + spread * ((at * 7919 % 101) as f64 / 50.0 - 1.0)).collect()
    }

    #[test]
    fn looks_become_rarer_and_end_with_the_last_round() {
        let all: Vec<usize> = looks(60).collect();
        assert_eq!(all[..6], [4, 5, 6, 7, 8, 9]);
        assert_eq!(all.last(), Some(&60));
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]) && all.len() < 32, "{all:?}");
        assert_eq!(looks(4).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn a_clear_difference_is_seen_in_four_rounds() {
        assert!(matches!(of(&[0.2; 4]), Ends::Worse(_)));
        assert!(matches!(of(&[-0.2; 4]), Ends::Better(_)));
        assert!(matches!(of(&[0.0; 4]), Ends::NotWorse(_)));
        assert!(matches!(of(&[0.2; 3]), Ends::Open(None)));
    }

    #[test]
    fn what_is_below_delta_is_not_worse() {
        assert!(matches!(of(&around(0.004, 0.01, 60)), Ends::NotWorse(_)));
        assert!(matches!(of(&around(0.05, 0.03, 60)), Ends::Worse(_)));
        assert!(matches!(of(&around(0.02, 0.2, 60)), Ends::Open(Some(_))));
    }

    #[test]
    fn a_verdict_stays_whatever_comes_later() {
        let mut differences = vec![0.2; 4];
        let said = of(&differences);
        differences.extend([-0.3; 40]);
        assert_eq!(of(&differences), said);
    }
}
