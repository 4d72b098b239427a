//! Searches of `assay bisect` over made-up noise: how often the step is right, what it costs, whether the stated probability is right.
//!
//! Enters: how many searches. Leaves: two tables, and what in them breaks a promise. The search is [`crate::stats::bisection`], as the
//! command runs it; trials of a round are in random order behind a lead-in, as in a run.

use std::fmt::Write as Text;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::noise::{Kind, Noise, OTHER_SEEDS};
use super::{Args, in_parallel};
use crate::stats::bisection::{Bisection, Next, Outcome, Round, Rules};
use crate::stats::descriptive::mean;

/// Searches of a row at the default of `--replicates`.
const SEARCHES: u32 = 1_000;
/// One in so many of the replicates of other tables.
const SHARE: u32 = 10;
const STEPS: usize = 64;
const CV: f64 = 0.05;
const EFFECT: f64 = 0.05;
const ALPHA: f64 = 0.05;
/// Right answers in percent that are promised at least.
const PROMISED: f64 = 95.0;
/// Runs of a step in the bisection by hand.
const BY_HAND: [u32; 3] = [5, 20, 40];
/// Stated probabilities are counted in bins that end here.
const BINS: [f64; 4] = [0.5, 0.8, 0.95, 1.0];

/// A search to simulate.
#[derive(Clone, Copy)]
struct Model {
    kind: Kind,
    cv: f64,
    /// Of the change, as a ratio − 1.
    effect: f64,
    rules: Rules,
}

/// How a search ended.
#[derive(Clone, Copy)]
struct Ended {
    /// The right step alone was named, or that nothing differs where nothing does.
    right: bool,
    /// A wrong step was named.
    wrong: bool,
    /// Trials, those that lead into rounds with them.
    trials: f64,
    /// Different steps that were run, the ends left out.
    steps: f64,
    /// The search stopped halfway: the likeliest step's probability then, and whether it was right.
    halfway: Option<(f64, bool)>,
}

/// What the command does where nothing is said.
fn usual() -> Rules {
    Rules {
        steps: STEPS,
        alpha: ALPHA,
        delta: 0.02_f64.ln_1p(),
        per_round: crate::stats::bisection::MOST_ASKED,
        ends_rounds: 250,
        max_rounds: 500,
    }
}

/// How sure it is that right answers are as many as promised, and wrong ones as few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// Not at all: the row is there to be compared with.
    No,
    /// Chance may take something from it.
    WithinChance,
    /// The figure itself is held: docs/bisection.md quotes it.
    Exact,
}

/// A row of the first table.
struct Line {
    what: String,
    searches: usize,
    right: f64,
    wrong: f64,
    trials: f64,
    steps: f64,
    promised: Promise,
}

/// Stated probabilities beside how often they were right.
struct Bin {
    to: f64,
    answers: usize,
    stated: f64,
    right: f64,
}

/// Both tables.
pub(super) struct Searches {
    lines: Vec<Line>,
    bins: Vec<Bin>,
}

impl Searches {
    pub(super) fn simulate(args: &Args) -> Searches {
        let searches = (args.replicates / SHARE).clamp(100, SEARCHES);
        let args = &Args { replicates: searches, seed: args.seed };
        let usual = Model { kind: Kind::Normal, cv: CV, effect: EFFECT, rules: usual() };
        let mut lines = Vec::new();
        let mut halfway = Vec::new();
        let mut add = |what: &str, model: Model, promised: Promise| {
            let ended = in_parallel(args, |seed| model.search(seed));
            halfway.extend(ended.iter().filter_map(|ended| ended.halfway));
            lines.push(line(what, &ended, promised));
        };
        add("normal", usual, Promise::Exact);
        let one_step = Model { rules: Rules { per_round: 1, ..usual.rules }, ..usual };
        add("normal, one step a round", one_step, Promise::WithinChance);
        for kind in [Kind::Lognormal, Kind::Bimodal, Kind::Drift, Kind::Stalls, Kind::AfterB5] {
            // Two of these kinds are more than their CV says.
            let cv = if matches!(kind, Kind::Lognormal | Kind::Bimodal) { CV / 2.0 } else { CV };
            add(kind.name(), Model { kind, cv, ..usual }, Promise::WithinChance);
        }
        add("normal, effect 20 %", Model { effect: 0.2, ..usual }, Promise::WithinChance);
        add("nothing differs", Model { effect: 0.0, ..usual }, Promise::WithinChance);
        for runs in BY_HAND {
            let ended = in_parallel(args, |seed| usual.by_hand(seed, runs));
            lines.push(line(&format!("by hand: {runs} runs a step, averages"), &ended, Promise::No));
        }
        let (drifting, runs) = (Model { kind: Kind::Drift, ..usual }, BY_HAND[BY_HAND.len() - 1]);
        let ended = in_parallel(args, |seed| drifting.by_hand(seed, runs));
        lines.push(line(&format!("by hand: {runs} runs a step, averages, drift"), &ended, Promise::No));
        Searches { lines, bins: bins(&halfway) }
    }

    /// Both tables, as METHODOLOGY has them.
    pub(super) fn tables(&self) -> String {
        let mut text = String::from(
            "| 64 steps, CV 5 %, effect 5 % | right % | wrong step % | mean trials | mean steps run |\n|---|---|---|---|---|\n",
        );
        for line in &self.lines {
            let Line { what, right, wrong, trials, steps, .. } = line;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {what} | {right:.1} | {wrong:.1} | {trials:.0} | {steps:.1} |");
        }
        text.push_str("\n| stated probability | searches | mean stated % | right % |\n|---|---|---|---|\n");
        let mut from = 0.0;
        for Bin { to, answers, stated, right } in &self.bins {
            let _ = writeln!(
                text,
                "| {:.0}–{:.0} % | {answers} | {stated:.1} | {right:.1} |",
                100.0 * from,
                100.0 * to
            );
            from = *to;
        }
        text
    }

    /// Broken promises, one line each.
    pub(super) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for line in self.lines.iter().filter(|line| line.promised != Promise::No) {
            let searches = line.searches as f64;
            let chance = 300.0 * (PROMISED / 100.0 * (1.0 - PROMISED / 100.0) / searches).sqrt();
            let Line { what, right, wrong, .. } = line;
            let least = if line.promised == Promise::Exact { PROMISED } else { PROMISED - chance };
            // A figure that is none breaks its promise, too.
            if right.is_nan() || *right < least {
                broken.push(format!("bisect, {what}: {right:.1} % right, promised {PROMISED:.0}"));
            }
            if wrong.is_nan() || *wrong > 100.0 * ALPHA + chance {
                broken
                    .push(format!("bisect, {what}: {wrong:.1} % wrong steps, promised {:.0}", 100.0 * ALPHA));
            }
        }
        for Bin { to, answers, stated, right } in self.bins.iter().filter(|bin| bin.answers >= 100) {
            let share = stated / 100.0;
            let chance = 300.0 * (share * (1.0 - share) / *answers as f64).sqrt();
            if right.is_nan() || *right < stated - 5.0 - chance {
                broken.push(format!(
                    "bisect, stated up to {:.0} %: {stated:.1} % stated, {right:.1} % right",
                    100.0 * to
                ));
            }
        }
        broken
    }
}

fn line(what: &str, ended: &[Ended], promised: Promise) -> Line {
    let percent = |of: &dyn Fn(&Ended) -> bool| {
        100.0 * ended.iter().filter(|ended| of(ended)).count() as f64 / ended.len() as f64
    };
    let mean_of = |of: &dyn Fn(&Ended) -> f64| mean(&ended.iter().map(of).collect::<Vec<_>>());
    Line {
        what: what.to_owned(),
        searches: ended.len(),
        right: percent(&|ended| ended.right),
        wrong: percent(&|ended| ended.wrong),
        trials: mean_of(&|ended| ended.trials),
        steps: mean_of(&|ended| ended.steps),
        promised,
    }
}

fn bins(answers: &[(f64, bool)]) -> Vec<Bin> {
    let mut from = 0.0;
    let mut bins = Vec::new();
    for to in BINS {
        let within = |answer: &&(f64, bool)| answer.0 > from && answer.0 <= to;
        let of_bin: Vec<(f64, bool)> = answers.iter().filter(within).copied().collect();
        let right = of_bin.iter().filter(|(_, right)| *right).count() as f64;
        let stated: f64 = of_bin.iter().map(|(stated, _)| stated).sum();
        let count = of_bin.len() as f64;
        bins.push(Bin {
            to,
            answers: of_bin.len(),
            stated: 100.0 * stated / count,
            right: 100.0 * right / count,
        });
        from = to;
    }
    bins
}

impl Model {
    /// Trials in time order, each with what leads into its round.
    fn machine(&self, seed: u64) -> Machine {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let change = rng.random_range(1..=self.rules.steps);
        let noise = Noise::new(self.kind, self.cv, seed.wrapping_add(OTHER_SEEDS));
        Machine { rng, noise, change, effect: self.effect.ln_1p(), trials: 0.0 }
    }

    fn search(&self, seed: u64) -> Ended {
        let mut machine = self.machine(seed);
        let stops_at = machine.rng.random_range(10..60);
        let (mut search, mut rounds, mut halfway) = (Bisection::new(self.rules), 0, None);
        let mut run = std::collections::BTreeSet::new();
        let outcome = loop {
            let asked = match search.next() {
                Next::Ends => Vec::new(),
                Next::Ask(asked) => asked,
                Next::Stop(outcome) => break outcome,
            };
            run.extend(asked.iter().copied());
            rounds += usize::from(!asked.is_empty());
            if rounds == stops_at && halfway.is_none() && self.effect > 0.0 {
                let likeliest = search.likeliest()[0];
                halfway = Some((likeliest.probability, likeliest.first == machine.change));
            }
            search.add(machine.round(&asked, self.rules.steps));
        };
        let named = match outcome {
            Outcome::Found(found) => Some(found),
            _ => None,
        };
        let right = match named {
            Some(found) => self.effect > 0.0 && (found.first, found.last) == (machine.change, machine.change),
            None => {
                self.effect == 0.0
                    && matches!(
                        outcome,
                        Outcome::NotWorse(_) | Outcome::Better(_) | Outcome::NothingDiffers(_)
                    )
            }
        };
        let wrong = named.is_some() && !right;
        // Those that ended before they were stopped are counted as they ended.
        if let Some(found) = named.filter(|_| halfway.is_none() && self.effect > 0.0) {
            halfway = Some((found.probability, right));
        }
        Ended { right, wrong, trials: machine.trials, steps: run.len() as f64, halfway }
    }

    /// What people do today: so many runs of the good and the bad end, then of each middle; a step is bad when its average is nearer to
    /// that of the bad end.
    fn by_hand(&self, seed: u64, runs: u32) -> Ended {
        let mut machine = self.machine(seed);
        let steps = self.rules.steps;
        let mut average = |step: usize| {
            let values: Vec<f64> = (0..runs).map(|_| machine.trial(step, false).exp()).collect();
            mean(&values)
        };
        let middle = f64::midpoint(average(0), average(steps));
        let (mut good, mut bad, mut asked) = (0, steps, 0);
        while bad - good > 1 {
            let step = usize::midpoint(good, bad);
            asked += 1;
            if average(step) > middle { bad = step } else { good = step }
        }
        let right = bad == machine.change;
        Ended { right, wrong: !right, trials: machine.trials, steps: f64::from(asked), halfway: None }
    }
}

/// A machine with noise, and a change at one step.
struct Machine {
    rng: ChaCha8Rng,
    noise: Noise,
    change: usize,
    effect: f64,
    trials: f64,
}

impl Machine {
    fn trial(&mut self, step: usize, first: bool) -> f64 {
        self.trials += 1.0;
        let has_it = step >= self.change;
        let effect = if has_it { self.effect } else { 0.0 };
        self.noise.next_trial(has_it, first) + effect
    }

    /// A round in random order, led into by a trial of the cell that goes first.
    fn round(&mut self, asked: &[usize], steps: usize) -> Round {
        let mut order: Vec<usize> = asked.to_vec();
        order.extend([0, steps]);
        for last in (1..order.len()).rev() {
            let other = self.rng.random_range(0..=last);
            order.swap(last, other);
        }
        self.trial(order[0], false);
        let mut round = Round::default();
        for (position, step) in order.into_iter().enumerate() {
            let value = self.trial(step, position == 0);
            match step {
                0 => round.good = Some(value),
                _ if step == steps => {
                    round.bad = Some(value);
                    round.bad_second = round.good.is_some();
                }
                _ => round.asked.push((step, value)),
            }
        }
        round.asked.sort_by_key(|(step, _)| *step);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(right: f64, wrong: f64, promised: Promise) -> Line {
        Line {
            what: "normal".to_owned(),
            searches: 1_900,
            right,
            wrong,
            trials: 200.0,
            steps: 12.0,
            promised,
        }
    }

    #[test]
    fn broken_promises_are_named() {
        let bins = vec![Bin { to: 0.95, answers: 400, stated: 90.0, right: 70.0 }];
        // Three standard errors of 95 % at 1,900 searches are 1.5 points.
        let drift = |right: f64, wrong: f64| Line {
            what: "drift".to_owned(),
            ..line(right, wrong, Promise::WithinChance)
        };
        let lines = vec![
            drift(94.0, 6.0),
            line(94.0, 6.0, Promise::Exact),
            line(40.0, 60.0, Promise::No),
            drift(90.0, 3.0),
            line(96.0, 9.0, Promise::Exact),
        ];
        let broken = Searches { lines, bins }.broken();
        assert_eq!(broken.len(), 4, "{broken:?}");
        assert_eq!(broken[0], "bisect, normal: 94.0 % right, promised 95");
        assert_eq!(broken[1], "bisect, drift: 90.0 % right, promised 95");
        assert_eq!(broken[2], "bisect, normal: 9.0 % wrong steps, promised 5");
        assert_eq!(broken[3], "bisect, stated up to 95 %: 90.0 % stated, 70.0 % right");
    }

    #[test]
    fn large_effects_are_found_and_the_seed_decides() {
        let model = Model { kind: Kind::Normal, cv: 0.02, effect: 0.2, rules: usual() };
        let ended: Vec<Ended> = (0..20).map(|seed| model.search(seed)).collect();
        assert!(ended.iter().all(|ended| ended.right), "all are clear");
        assert_eq!(model.search(3).trials, ended[3].trials);
    }
}
