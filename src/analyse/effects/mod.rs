//! Which factor does what, and which depend on each other: of runs in which several factors were crossed.
//!
//! Enters: the values of every cell and the judged comparisons. Leaves: main effects and two-factor interactions of each metric that
//! decides, judged together, and the shares of the change from all first to all last levels. It must not know words.
//!
//! Each contrast (`stats/factorial.rs`) gives one value a round, ln of a ratio, which goes the way of D: the same looks, intervals, Holm's
//! procedure and verdicts. They are a family beside that of the verdicts, with an α of its own. Nothing is said before the last of a
//! fixed number of rounds.

mod contrasts;
mod found;
mod response;
mod share;
#[cfg(test)]
mod tests;

use super::comparison::{Comparison, Verdict};
use super::draft::Setting;
use crate::record::Metric;
use contrasts::Term;
pub use found::{Change, Effect, Effects, NoEffects, Shares, Within};
use response::{Crossed, Response};

/// More contrasts than this say nothing together: each would have too small a share of α.
const MOST_EFFECTS: usize = 200;

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
        let of_response = |response: &Response| setting.layout.deltas[response.case().metric as usize];
        let delta = response.as_ref().map_or(setting.stop.delta, of_response);
        Effects { metric: metric.clone(), delta, factors, n, family, effects, shares, refused }
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
