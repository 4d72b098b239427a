//! Noisy bisection: at which of n steps in a row did something become worse, when each trial of a step has noise.
//!
//! Enters: rounds of trials, each with the good end, the bad end and mostly steps between them. Leaves: what to ask next, and in the end
//! the step, with its probability. Pure: the same rounds give the same questions, so that a search can be replayed and resumed.
//!
//! First the ends alone are compared ([`super::bisection_ends`]); where the bad end is not worse there is nothing to find. Then the
//! search is Bayesian: k = 1…n, the first step with the change, has equal prior weights, and half of all weight is on "nothing
//! differs". Each round's likelihood is that of [`super::bisection_model`], which compares trials of one round only and sums over effect
//! and noise. The next question is the step that halves the mass of k, which is the rule of Horstein (1963, IEEE Trans. Inf. Theory 9:136), known as
//! probabilistic bisection (Waeber, Frazier & Henderson 2013, SIAM J. Control Optim. 51:2261). Burnashev & Zigangirov (1974) and Karp &
//! Kleinberg (2007, SODA: *Noisy binary search and its applications*) give versions with proven error and number of questions, Ben-Or & Hassidim
//! (2008, FOCS) one whose expected number is optimal. Theirs is a coin of known or bounded bias; here it is the values themselves.
//!
//! The search ends when one step has probability 1 − α or more. Where model and prior hold, that probability is right at whichever moment the search
//! ends, because a posterior does not depend on why sampling stopped; `assay simulate` counts how often it is.

use super::bisection_ends::{Ends, EndsRule, ends};
use super::bisection_model::Grid;
pub use super::bisection_model::Round;
use super::crossover::Crossover;
use super::sequential::Look;

/// Most steps asked in one round.
pub const MOST_ASKED: usize = 2;
/// Prior weight of "nothing differs".
const NOTHING_DIFFERS: f64 = 0.5;

/// What is decided before the first round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// n: steps behind the good end; the last of them is the bad end.
    pub steps: usize,
    /// Chance of a wrong answer: half of it is that of the ends' verdict, half that of the step.
    pub alpha: f64,
    /// The smallest difference that matters, on the log scale.
    pub delta: f64,
    /// Steps asked in one round, up to [`MOST_ASKED`].
    pub per_round: usize,
    /// Most rounds of the ends alone.
    pub ends_rounds: usize,
    /// Most rounds of all.
    pub max_rounds: usize,
}

impl Rules {
    /// The probability at which a step is the answer.
    fn enough(&self) -> f64 {
        1.0 - self.alpha / 2.0
    }
}

/// Steps `first..=last`, one of which has the change. They are several where those between cannot be run, or the search ended early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The first of them, from 1.
    pub first: usize,
    /// The last of them.
    pub last: usize,
    /// That the change is there.
    pub probability: f64,
}

/// How a search ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The change is there.
    Found(Found),
    /// The bad end is not worse than the good one by δ or more.
    NotWorse(Look),
    /// The bad end is better than the good one.
    Better(Look),
    /// The ends did not become clear in the rounds there were.
    EndsUnclear(Option<Look>),
    /// The ends seemed to differ, and later rounds say that they do not; with the probability of that.
    NothingDiffers(f64),
    /// The rounds are spent; the change is among these with probability 1 − α or more.
    Among(Found),
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// A round of the ends alone.
    Ends,
    /// A round of the ends and these steps, ascending.
    Ask(Vec<usize>),
    /// Nothing.
    Stop(Outcome),
}

/// A search so far.
#[derive(Clone, Debug)]
pub struct Bisection {
    rules: Rules,
    /// By step, 0 being the good end: it cannot be run.
    skipped: Vec<bool>,
    /// Rounds of the ends alone.
    alone: Vec<Round>,
    rounds: usize,
    verdict: Ends,
    search: Option<Search>,
}

impl Bisection {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(rules: Rules) -> Bisection {
        let skipped = vec![false; rules.steps + 1];
        Bisection { rules, skipped, alone: Vec::new(), rounds: 0, verdict: Ends::Open(None), search: None }
    }

    /// A step between the ends that cannot be run is not asked any more.
    pub fn skip(&mut self, step: usize) {
        if (1..self.rules.steps).contains(&step) {
            self.skipped[step] = true;
        }
    }

    /// Takes a round in. Its asked steps must be ascending.
    pub fn add(&mut self, round: Round) {
        self.rounds += 1;
        match &mut self.search {
            Some(search) => search.add(&round),
            None => {
                self.alone.push(round);
                self.verdict = ends(&self.pairs(), &self.ends_rule());
                if let Ends::Worse(_) = self.verdict {
                    self.search = Some(Search::new(self.rules.steps, &self.alone));
                }
            }
        }
    }

    /// A round was spent and gave nothing.
    pub fn lost(&mut self) {
        self.rounds += 1;
    }

    /// What to do next.
    #[must_use]
    pub fn next(&self) -> Next {
        let spent = self.rounds >= self.rules.max_rounds;
        let Some(search) = &self.search else {
            return match self.verdict {
                Ends::Better(look) => Next::Stop(Outcome::Better(look)),
                Ends::NotWorse(look) => Next::Stop(Outcome::NotWorse(look)),
                Ends::Open(look) if spent || self.rounds >= self.rules.ends_rounds => {
                    Next::Stop(Outcome::EndsUnclear(look))
                }
                Ends::Worse(_) | Ends::Open(_) => Next::Ends,
            };
        };
        let enough = self.rules.enough();
        let posterior = search.posterior();
        if posterior.nothing_differs >= enough {
            return Next::Stop(Outcome::NothingDiffers(posterior.nothing_differs));
        }
        let groups = self.groups(&posterior);
        if let Some(found) = groups.iter().find(|group| group.probability >= enough) {
            return Next::Stop(Outcome::Found(*found));
        }
        let asked = self.questions(&posterior);
        if spent || asked.is_empty() {
            return Next::Stop(Outcome::Among(shortest(&groups, enough)));
        }
        Next::Ask(asked)
    }

    /// Steps that may have the change with what probability, best first: those that no step that can be run tells apart are together.
    #[must_use]
    pub fn likeliest(&self) -> Vec<Found> {
        let Some(search) = &self.search else { return Vec::new() };
        let mut groups = self.groups(&search.posterior());
        groups.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        groups
    }

    /// The shortest range of steps that has the change with probability 1 − α/2 or more; the whole where no step was asked yet.
    #[must_use]
    pub fn range(&self) -> Found {
        match &self.search {
            Some(search) => shortest(&self.groups(&search.posterior()), self.rules.enough()),
            None => Found { first: 1, last: self.rules.steps, probability: 1.0 },
        }
    }

    /// The verdict on the ends, as it was when they were compared alone.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.verdict
    }

    fn ends_rule(&self) -> EndsRule {
        let Rules { alpha, delta, ends_rounds, .. } = self.rules;
        EndsRule { max_rounds: ends_rounds, alpha: alpha / 2.0, delta }
    }

    fn pairs(&self) -> Crossover {
        let whole = || self.alone.iter().filter_map(|round| Some((round.difference()?, round.bad_second)));
        let differences: Vec<f64> = whole().map(|(difference, _)| difference).collect();
        let second: Vec<bool> = whole().map(|(_, second)| second).collect();
        Crossover::new(&differences, &second)
    }

    /// Sums over the steps that cannot be told apart.
    fn groups(&self, posterior: &Posterior) -> Vec<Found> {
        let mut groups: Vec<Found> = Vec::new();
        for (step, probability) in (1..).zip(&posterior.of_step) {
            match groups.last_mut() {
                // Only a trial of the step before tells this one from that one.
                Some(group) if self.skipped[step - 1] => {
                    group.last = step;
                    group.probability += probability;
                }
                _ => groups.push(Found { first: step, last: step, probability: *probability }),
            }
        }
        groups
    }

    /// The steps that cut the mass of the change into equal parts, as nearly as they can.
    fn questions(&self, posterior: &Posterior) -> Vec<usize> {
        let change: f64 = posterior.of_step.iter().sum();
        let mut below = 0.0;
        let shares: Vec<(usize, f64)> = (1..self.rules.steps)
            .map(|step| {
                below += posterior.of_step[step - 1];
                (step, below / change)
            })
            .filter(|(step, _)| !self.skipped[*step])
            .collect();
        let parts = self.rules.per_round.clamp(1, MOST_ASKED) + 1;
        let mut asked: Vec<usize> = Vec::new();
        for part in 1..parts {
            let wanted = part as f64 / parts as f64;
            let free = shares.iter().filter(|(step, _)| !asked.contains(step));
            let nearest = free.min_by(|a, b| (a.1 - wanted).abs().total_cmp(&(b.1 - wanted).abs()));
            asked.extend(nearest.map(|(step, _)| *step));
        }
        asked.sort_unstable();
        asked
    }
}

/// The shortest row of groups that holds `enough`, or all.
fn shortest(groups: &[Found], enough: f64) -> Found {
    let whole: f64 = groups.iter().map(|group| group.probability).sum();
    let enough = enough.min(whole) - 1e-12;
    let mut best: Option<Found> = None;
    let (mut from, mut held) = (0, 0.0);
    for group in groups {
        held += group.probability;
        while held - groups[from].probability >= enough && groups[from].last < group.first {
            held -= groups[from].probability;
            from += 1;
        }
        let row = Found { first: groups[from].first, last: group.last, probability: held.min(1.0) };
        let shorter = |best: &Found| {
            let length = |found: &Found| found.last - found.first;
            length(&row) < length(best)
                || (length(&row) == length(best) && row.probability > best.probability)
        };
        if held >= enough && best.as_ref().is_none_or(shorter) {
            best = Some(row);
        }
    }
    let all = Found { first: 1, last: groups.last().map_or(1, |group| group.last), probability: whole };
    best.unwrap_or(all)
}

/// Probabilities.
struct Posterior {
    /// That the change came with step 1, 2, …
    of_step: Vec<f64>,
    nothing_differs: f64,
}

/// The posterior, kept as log-likelihoods of the grid for each part of the steps that was told from its neighbours.
#[derive(Clone, Debug)]
struct Search {
    steps: usize,
    change: Grid,
    none: Grid,
    /// The first step of each part, ascending, with its log-likelihoods.
    parts: Vec<(usize, Vec<f64>)>,
    nothing: Vec<f64>,
}

impl Search {
    fn new(steps: usize, alone: &[Round]) -> Search {
        let differences: Vec<f64> = alone.iter().filter_map(Round::difference).collect();
        let (change, none) = Grid::around(&differences);
        let parts = vec![(1, change.log_weights.clone())];
        let nothing = none.log_weights.clone();
        let mut search = Search { steps, change, none, parts, nothing };
        alone.iter().for_each(|round| search.add(round));
        search
    }

    fn add(&mut self, round: &Round) {
        for (step, _) in &round.asked {
            // A change with the asked step or before it is told from a later one.
            let at = self.parts.partition_point(|(first, _)| first <= step);
            if self.parts.get(at).is_none_or(|(first, _)| *first != step + 1) {
                let same = self.parts[at - 1].1.clone();
                self.parts.insert(at, (step + 1, same));
            }
        }
        for (first, log) in &mut self.parts {
            let before = round.asked.iter().filter(|(step, _)| step < first).count();
            self.change.add(log, round, before);
        }
        self.none.add(&mut self.nothing, round, 0);
    }

    fn posterior(&self) -> Posterior {
        let all = self.parts.iter().flat_map(|(_, log)| log).chain(&self.nothing);
        let most = all.copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = |log: &[f64]| log.iter().map(|log| (log - most).exp()).sum::<f64>();
        let nothing = NOTHING_DIFFERS * sum(&self.nothing);
        let each = (1.0 - NOTHING_DIFFERS) / self.steps as f64;
        let mut of_step = Vec::with_capacity(self.steps);
        for (at, (first, log)) in self.parts.iter().enumerate() {
            let end = self.parts.get(at + 1).map_or(self.steps + 1, |(next, _)| *next);
            let mass = each * sum(log);
            of_step.extend(std::iter::repeat_n(mass, end - first));
        }
        let whole = nothing + of_step.iter().sum::<f64>();
        of_step.iter_mut().for_each(|mass| *mass /= whole);
        Posterior { of_step, nothing_differs: nothing / whole }
    }
}

#[cfg(test)]
mod tests;
