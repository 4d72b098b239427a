//! The order of three or more arms that the judged comparisons allow, with ties.
//!
//! Enters: judged comparisons. Leaves: a place for each arm: 1 + the number of arms that are proven better. A place follows from
//! verdicts alone, never from estimates. A verdict is a bound on how much better the candidate is: above δ, above 0, or within δ. Where A
//! is better than B and B than C, A is better than C; where A is better than B by more than δ and C is within δ of B, A is better than C.
//! All verdicts of a family hold together with probability 1 − α, and then what follows from them holds, too. Arms that nothing
//! tells apart share a place, or say from whom they are not told apart. It must not judge anything itself.

use serde::{Deserialize, Serialize};

use super::comparison::{Comparison, Role, RowKey, Verdict};
use crate::units::Better;

/// Fewer arms have no ranking: the verdict is one.
const FEWEST_ARMS: usize = 3;

/// The arms of one row in the order that is proven, by one metric that decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The row.
    pub row: RowKey,
    /// Name of the metric that decides.
    pub metric: String,
    /// Every pair of arms was compared; otherwise each with the baseline only.
    pub all_pairs: bool,
    /// The arms, the best first; those with one place by their estimates where they were compared with the baseline only, else in their own
    /// order.
    pub places: Vec<Place>,
    /// Arms without a judged comparison, which have no place.
    pub unjudged: Vec<String>,
}

/// The place of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// 1 + the number of arms that are proven better.
    pub place: u32,
    /// The arm's label.
    pub arm: String,
    /// Other arms that are neither proven better nor proven worse, whatever their place.
    pub not_told_apart_from: Vec<String>,
}

/// The rankings of all rows; none before the last of a fixed number of rounds, and none of fewer than three arms.
pub(super) fn rankings(comparisons: &[Comparison], arms: &[String], all_pairs: bool) -> Vec<Ranking> {
    let mut rows: Vec<Vec<&Comparison>> = Vec::new();
    for comparison in comparisons.iter().filter(|c| c.role == Role::Primary) {
        let same = |known: &Comparison| known.row == comparison.row && known.metric == comparison.metric;
        match rows.iter_mut().find(|known| same(known[0])) {
            Some(row) => row.push(comparison),
            None => rows.push(vec![comparison]),
        }
    }
    rows.iter().filter_map(|row| ranking(row, arms, all_pairs)).collect()
}

fn ranking(comparisons: &[&Comparison], arms: &[String], all_pairs: bool) -> Option<Ranking> {
    let first = comparisons.first()?;
    if comparisons.iter().any(|c| c.so_far().is_some()) {
        return None;
    }
    let at = |label: &String| arms.iter().position(|arm| arm == label);
    let (mut judged, mut bounds) = (vec![false; arms.len()], Bounds::of(arms.len()));
    for comparison in comparisons.iter().filter(|c| is_judged(&c.verdict)) {
        let (Some(base), Some(cand)) = (at(&comparison.baseline.arm), at(&comparison.candidate.arm)) else {
            continue;
        };
        (judged[base], judged[cand]) = (true, true);
        bounds.add(comparison, base, cand);
    }
    let of = |wanted: bool| (0..arms.len()).filter(|arm| judged[*arm] == wanted).collect::<Vec<_>>();
    let (ranked, unjudged) = (of(true), of(false));
    if ranked.len() < FEWEST_ARMS {
        return None;
    }
    let better = bounds.closed();
    let label = |arm: &usize| arms[*arm].clone();
    let mut places: Vec<Place> = ranked
        .iter()
        .map(|arm| Place {
            place: better.place(*arm),
            arm: label(arm),
            not_told_apart_from: ranked
                .iter()
                .filter(|other| better.leaves_open(*arm, **other))
                .map(label)
                .collect(),
        })
        .collect();
    places.sort_by_key(|place| place.place);
    if !all_pairs {
        // Nobody compared them with each other: the estimates against the baseline say in which order they may be.
        let gain = |arm: &str| comparisons.iter().find(|c| c.candidate.arm == arm).map_or(0.0, |c| gain(c));
        places.sort_by(|a, b| a.place.cmp(&b.place).then(gain(&b.arm).total_cmp(&gain(&a.arm))));
    }
    Some(Ranking {
        row: first.row.clone(),
        metric: first.metric.name.clone(),
        all_pairs,
        places,
        unjudged: unjudged.iter().map(label).collect(),
    })
}

/// How much better the candidate is by its estimate: in a row a ratio − 1 of all, or where the baseline is 0 a difference of all.
fn gain(comparison: &Comparison) -> f64 {
    let interval = comparison.effect.or(comparison.difference).map(|known| known.estimate);
    let more = interval.or(comparison.typical).unwrap_or(0.0);
    if comparison.metric.better == Better::Higher { more } else { -more }
}

/// Whether rounds were enough to claim something, whether they did or not.
fn is_judged(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Faster { .. }
        | Verdict::Slower { .. }
        | Verdict::NoDifference { .. }
        | Verdict::Undecided { .. } => true,
        Verdict::NotComparable | Verdict::SoFar { .. } | Verdict::TooFew { .. } | Verdict::NotMeasured(_) => {
            false
        }
    }
}

/// How much better arms are at least than others, in units of δ, every bound being exclusive; `None`: no bound.
struct Bounds {
    /// `above[a][b]`: b is better than a by more than this.
    above: Vec<Vec<Option<i32>>>,
}

impl Bounds {
    fn of(arms: usize) -> Bounds {
        Bounds { above: vec![vec![None; arms]; arms] }
    }

    /// What the verdict of one comparison says.
    fn add(&mut self, comparison: &Comparison, base: usize, cand: usize) {
        // Where values have no ratio, δ is a share of this pair's baseline and cannot be added to another one.
        let by_ratio = comparison.difference.is_none();
        let more = |beyond_delta: bool| Some(i32::from(beyond_delta && by_ratio));
        match comparison.verdict {
            Verdict::Faster { beyond_delta } => self.above[base][cand] = more(beyond_delta),
            Verdict::Slower { beyond_delta } => self.above[cand][base] = more(beyond_delta),
            Verdict::NoDifference { .. } => {
                let within = by_ratio.then_some(-1);
                let proven = |is: bool| if is { Some(0) } else { within };
                self.above[base][cand] = proven(comparison.is_better() == Some(true));
                self.above[cand][base] = proven(comparison.is_better() == Some(false));
            }
            _ => {}
        }
    }

    /// With all that follows: bounds along a path add up (Floyd 1962, Comm. ACM 5:345).
    fn closed(mut self) -> Bounds {
        let arms = self.above.len();
        // Verdicts that contradict each other would add up without end.
        let most = arms as i32;
        for middle in 0..arms {
            for first in 0..arms {
                for last in 0..arms {
                    let (Some(a), Some(b)) = (self.above[first][middle], self.above[middle][last]) else {
                        continue;
                    };
                    let sum = (a + b).clamp(-most, most);
                    self.above[first][last] = self.above[first][last].max(Some(sum));
                }
            }
        }
        self
    }

    /// Verdicts that go round in a circle contradict each other and prove nothing.
    fn proven(&self, better: usize, worse: usize) -> bool {
        let is_better =
            |better: usize, worse: usize| self.above[worse][better].is_some_and(|bound| bound >= 0);
        is_better(better, worse) && !is_better(worse, better)
    }

    fn place(&self, arm: usize) -> u32 {
        1 + (0..self.above.len()).filter(|other| self.proven(*other, arm)).count() as u32
    }

    fn leaves_open(&self, arm: usize, other: usize) -> bool {
        arm != other && !self.proven(arm, other) && !self.proven(other, arm)
    }
}
