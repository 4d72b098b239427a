//! Which factor does what, and which depend on each other: of runs in which several factors were crossed.
//!
//! Enters: the values of every cell and the judged comparisons. Leaves: main effects and two-factor interactions of each metric that
//! decides, judged together, and the shares of the change from all first to all last levels. It must not know words.
//!
//! Each contrast (`stats/factorial.rs`) gives one value a round, ln of a ratio, which goes the way of D: the same looks, intervals, Holm's
//! procedure and verdicts. They are a family beside that of the verdicts, with an α of its own. Nothing is said before the last of a
//! fixed number of rounds.

mod contrasts;
mod response;
mod share;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::comparison::{Caveat, Comparison, Interval, Method, Verdict};
use super::draft::Setting;
use crate::record::Metric;
use contrasts::Term;
use response::{Crossed, Response};

/// More contrasts than this say nothing together: each would have too small a share of α.
const MOST_EFFECTS: usize = 200;

/// What the factors of a run do to one metric that decides, in one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// The metric; where rows are judged by different ones (`read.bw`, `write.bw`), its name has all of them.
    pub metric: Metric,
    /// The crossed factors: the compared one, then the others in the design's order.
    pub factors: Vec<String>,
    /// Rounds in which every cell has a value; the repeats of the smallest cell, where there are no rounds.
    pub n: usize,
    /// Effects that share α: those of all metrics and jobs.
    pub family: usize,
    /// Main effects, then interactions; empty where `refused` has a reason.
    pub effects: Vec<Effect>,
    /// What each factor has of the change from all first to all last levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Shares>,
    /// Why there are no effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<NoEffects>,
}

/// A main effect, or the interaction of two factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The change of one factor, or of two: then how much the first one's effect depends on the second.
    pub of: Vec<Change>,
    /// The estimate, that of the mean where there is no interval: ratio − 1 of a main effect; of an interaction the first factor's ratio at the
    /// second's later level over its ratio at the second's first level, − 1.
    pub change: f64,
    /// The same with the interval that holds together with those of all other effects.
    pub effect: Option<Interval>,
    /// p; none of sequential looks.
    pub p: Option<f64>,
    /// p after Holm.
    pub p_adjusted: Option<f64>,
    /// How it was judged.
    pub method: Method,
    /// `faster`: better in the metric's direction. Of an interaction: the first factor's effect is better at the later level.
    pub verdict: Verdict,
    /// Of an interaction: the first factor's effect at the first and at the later level of the second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Within>,
    /// Of a main effect: factors that its factor depends on, so that it says nothing alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What must be known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
}

/// A factor that goes from its first level to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The factor.
    pub factor: String,
    /// Its first level.
    pub from: String,
    /// The level compared with it.
    pub to: String,
}

/// The effect of one factor at one level of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The other factor's level.
    pub level: String,
    /// The effect as ratio − 1, with its interval as if it were the only one.
    pub effect: Interval,
}

/// What each factor has of the change from all first to all last levels (Shapley): the parts multiply to the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// The whole change: each factor from its first to its last level.
    pub of: Vec<Change>,
    /// As ratio − 1, of mean logarithms, with its interval as if it were the only one (no number where there is none).
    pub whole: Interval,
    /// The same for each factor, in their order.
    pub parts: Vec<Interval>,
}

/// Why nothing is said of the factors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoEffects {
    /// Not every combination of levels has a value.
    Incomplete {
        /// Combinations that have one.
        measured: usize,
        /// Of how many.
        of: usize,
    },
    /// Rows are judged by metrics of different units or directions.
    DifferentMetrics,
    /// Values of 0 or below have no ratio.
    NotPositive,
    /// No round has a value of every cell.
    NoCommonRound,
    /// The failures of arms are so unequal that what worked cannot be compared.
    UnequalFailures,
    /// Failed trials rank as the worst (`--failures worst`), and a rank is no value.
    FailuresAsWorst,
    /// Results come in clusters.
    Clusters,
    /// So many effects that each would have too small a share of α.
    TooMany {
        /// How many.
        effects: usize,
    },
}

/// The effects of each metric that decides, by job; none where fewer than two factors vary.
pub(super) fn effects(setting: &Setting, comparisons: &[Comparison]) -> Vec<Effects> {
    let crossed = Crossed::of(setting);
    if crossed.factors.len() < 2 {
        return Vec::new();
    }
    let count = contrasts::count(&crossed.levels());
    let too_many = (count > MOST_EFFECTS).then_some(NoEffects::TooMany { effects: count });
    let terms = if too_many.is_none() { contrasts::terms(&crossed.levels()) } else { Vec::new() };
    let found: Vec<(Metric, Result<Response, NoEffects>)> =
        response::all(setting, &crossed, comparisons, too_many);
    let responses: Vec<&Response> = found.iter().filter_map(|(_, response)| response.as_ref().ok()).collect();
    let family = responses.len() * terms.len();
    let mut judged = contrasts::judge(setting, &responses, &terms).into_iter();
    let effects = found.iter().map(|(metric, response)| {
        let (n, mut effects, shares, refused) = match response {
            Ok(response) => {
                let own: Vec<Comparison> = judged.by_ref().take(terms.len()).collect();
                let effects: Vec<Effect> = terms
                    .iter()
                    .zip(own)
                    .map(|(term, judged)| effect(setting, &crossed, response, term, judged))
                    .collect();
                (response.n(), effects, share::shares(setting, &crossed, response), None)
            }
            Err(reason) => (0, Vec::new(), None, Some(reason.clone())),
        };
        mark_dependence(&mut effects);
        let factors = crossed.factors.iter().map(|factor| factor.name.clone()).collect();
        Effects { metric: metric.clone(), factors, n, family, effects, shares, refused }
    });
    effects.collect()
}

fn effect(
    setting: &Setting,
    crossed: &Crossed,
    response: &Response,
    term: &Term,
    judged: Comparison,
) -> Effect {
    Effect {
        of: term.iter().map(|at| crossed.change(*at)).collect(),
        change: judged.effect.map_or_else(|| response.mean(term, &[]).exp_m1(), |effect| effect.estimate),
        effect: judged.effect,
        p: judged.p,
        p_adjusted: judged.p_adjusted,
        method: judged.method,
        verdict: judged.verdict,
        within: contrasts::within(setting, crossed, response, term),
        depends_on: Vec::new(),
        caveats: judged.caveats,
    }
}

/// Notes at each main effect the factors with which its factor has an interaction that is claimed and not shown to be below δ.
fn mark_dependence(effects: &mut [Effect]) {
    let claimed: Vec<[String; 2]> = effects
        .iter()
        .filter(|effect| effect.is_claimed())
        .filter_map(|effect| match effect.of.as_slice() {
            [first, second] => Some([first.factor.clone(), second.factor.clone()]),
            _ => None,
        })
        .collect();
    for effect in effects.iter_mut().filter(|effect| effect.of.len() == 1) {
        let own = effect.of[0].factor.clone();
        for [first, second] in &claimed {
            let other = if *first == own { second } else { first };
            if (*first == own || *second == own) && !effect.depends_on.contains(other) {
                effect.depends_on.push(other.clone());
            }
        }
    }
}

impl Effect {
    /// Whether an effect is claimed that is not shown to be below δ.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        matches!(self.verdict, Verdict::Faster { .. } | Verdict::Slower { .. })
    }
}
