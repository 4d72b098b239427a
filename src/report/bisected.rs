//! What a search has found, as a screen of text and as JSON.
//!
//! Enters: the run and its [`Bisected`]. Leaves: text. It must not judge.

use std::fmt::Write;

use serde_json::{Value, json};

use super::bisected_ends::{delta_above, look_words, signed};
use super::bisected_further::{Sense, further};
use super::wrapped;
use crate::analyse::{Another, Bisected, BisectedRound, Ends, Estimate, Found, Look, Next, Outcome};
use crate::record::{Better, LeftOut, Run};
use crate::units::{Unit, counted, format_number, pretty_duration};

/// Characters of a commit that are shown.
const SHORT_COMMIT: usize = 12;
/// Steps that the table of a screen has at most.
const MOST_LINES: usize = 12;
/// Steps that could not be run and are named one by one.
const MOST_SKIPPED: usize = 4;
/// Reasons are cut after so many characters.
const REASON: usize = 240;

/// What a step is called: a commit by its first characters, any other as it was named.
#[must_use]
pub fn step_name(run: &Run, step: usize) -> &str {
    let name = run.arms().get(step).map_or("", String::as_str);
    let is_commit = run.design.bisects.as_ref().is_some_and(|bisects| bisects.source.is_some());
    if is_commit { name.get(..SHORT_COMMIT).unwrap_or(name) } else { name }
}

/// How many commits between the ends are no steps, and why; `None`: all are.
#[must_use]
pub fn left_out_line(run: &Run) -> Option<String> {
    let bisects = run.design.bisects.as_ref().filter(|bisects| !bisects.left_out.is_none())?;
    let LeftOut { beside_paths, not_compiled } = bisects.left_out;
    let paths = bisects.paths.join(", ");
    let ends = "what the kernels of the ends are made of";
    let all = counted(u64::from(beside_paths) + u64::from(not_compiled), "commit");
    Some(match (beside_paths, not_compiled) {
        (_, 0) => format!("{all} left out: nothing of {paths} changes there"),
        (0, _) => format!("{all} left out: nothing of {ends} changes there"),
        _ => format!(
            "{all} left out: nothing of {paths} changes in {beside_paths}, and nothing of {ends} in {not_compiled}"
        ),
    })
}

/// The answer on a screen.
#[must_use]
pub fn bisected_text(run: &Run, found: &Bisected) -> String {
    let words = Words { run, found, sense: Sense::of(run) };
    let mut text = String::new();
    let metric = words.metric();
    let better = found.metric.as_ref().map_or(Better::Lower, |metric| metric.better).word();
    let (first, last) = (step_name(run, 0), step_name(run, found.steps));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}: which of {} steps from {first} to {last} made {metric} {} ({better} is better)\n",
        run.name, found.steps, words.sense.sought
    );
    for line in words.answer().into_iter().chain(left_out_line(run)) {
        let _ = writeln!(text, "{}", wrapped(&line, "  "));
    }
    let _ = writeln!(text, "{}", wrapped(&words.cost(), "  "));
    words.skipped(&mut text);
    words.table(&mut text);
    text
}

/// The same for programs, with every round: what was asked in which order, with which values.
#[must_use]
pub fn bisected_json(run: &Run, found: &Bisected) -> Value {
    let words = Words { run, found, sense: Sense::of(run) };
    let stop = &run.design.stop;
    let range = |range: &Found| {
        let steps: Vec<Value> = (range.first..=range.last).map(|step| words.step_json(step)).collect();
        json!({ "steps": steps, "probability": range.probability })
    };
    let effect = |effect: &Estimate, pairs: usize| json!({ "estimate": effect.estimate, "low": effect.low, "high": effect.high, "rounds": pairs });
    let round = |round: &BisectedRound| {
        let asked: Vec<&str> = round.asked.iter().map(|step| words.arm(*step)).collect();
        let values: Vec<Value> = round
            .values
            .iter()
            .map(|(step, value)| json!({ "step": words.arm(*step), "value": value }))
            .collect();
        json!({ "round": round.round + 1, "asked": asked, "values": values, "excluded": round.excluded })
    };
    json!({
        "run": run.id,
        "seeks": words.sense.sought,
        "outcome": words.outcome(),
        "found": words.found_steps().map(|found| range(&found)),
        "range": range(&found.range),
        "alpha": stop.alpha,
        "delta": stop.delta,
        "metric": found.metric.as_ref().map(|metric| metric.name.clone()),
        "effect": found.effect.as_ref().map(|of| effect(of, found.pairs)),
        "steps": (0..=found.steps).map(|step| words.step_json(step)).collect::<Vec<_>>(),
        "likeliest": found.likeliest.iter().take(MOST_LINES).map(range).collect::<Vec<_>>(),
        "lost_end": found.lost_end.as_ref().map(|(step, why)| json!({ "step": words.arm(*step), "reason": why })),
        "others": found.others.iter().map(|another| match another { Another::Before => "before", Another::Behind => "behind" }).collect::<Vec<_>>(),
        "skipped": found.skipped.iter().map(|(step, why)| json!({ "step": words.arm(*step), "reason": why })).collect::<Vec<_>>(),
        "left_out": run.design.bisects.as_ref().map(|bisects| json!({
            "paths": bisects.paths, "beside_paths": bisects.left_out.beside_paths, "not_compiled": bisects.left_out.not_compiled,
        })),
        "trials": run.trials.len(),
        "lead_ins": run.lead_ins.len(),
        "elapsed_s": words.elapsed_s(),
        "seed": run.seed,
        "command_line": run.command_line,
        "rounds": found.rounds.iter().map(round).collect::<Vec<_>>(),
    })
}

struct Words<'w> {
    run: &'w Run,
    found: &'w Bisected,
    sense: Sense,
}

impl Words<'_> {
    fn arm(&self, step: usize) -> &str {
        self.run.arms().get(step).map_or("", String::as_str)
    }

    /// What decides, with its section where it is of one.
    fn metric(&self) -> String {
        match &self.found.metric {
            Some(metric) if metric.job.is_empty() => metric.name.clone(),
            Some(metric) => format!("{}:{}", metric.job, metric.name),
            None => "the metric".to_owned(),
        }
    }

    fn title(&self, step: usize) -> &str {
        let titles = self.run.design.bisects.as_ref().map(|bisects| &bisects.titles);
        titles.and_then(|titles| titles.get(step)).map_or("", String::as_str)
    }

    /// `1a2b3c4d5e6f "its subject"`.
    fn named(&self, step: usize) -> String {
        match self.title(step) {
            "" => step_name(self.run, step).to_owned(),
            title => format!("{} \"{title}\"", step_name(self.run, step)),
        }
    }

    fn step_json(&self, step: usize) -> Value {
        match self.title(step) {
            "" => json!({ "step": self.arm(step) }),
            title => json!({ "step": self.arm(step), "title": title }),
        }
    }

    fn outcome(&self) -> String {
        let outcome = match self.found.next {
            Next::Ends | Next::Ask(_) => "unfinished",
            Next::Stop(Outcome::Found(found)) if found.first == found.last => "found",
            Next::Stop(Outcome::Found(_)) => "found_among",
            Next::Stop(Outcome::Among(_)) => "not_found",
            Next::Stop(Outcome::NotWorse(_)) => return format!("not_{}", self.sense.sought),
            Next::Stop(Outcome::Better(_)) => self.sense.other,
            Next::Stop(Outcome::EndsUnclear(_)) => "ends_unclear",
            Next::Stop(Outcome::NothingDiffers(_)) => "nothing_differs",
        };
        outcome.to_owned()
    }

    fn found_steps(&self) -> Option<Found> {
        match self.found.next {
            Next::Stop(Outcome::Found(found)) => Some(found),
            _ => None,
        }
    }

    /// The answer, a sentence a line.
    fn answer(&self) -> Vec<String> {
        let run = self.run;
        let (first, last) = (step_name(run, 0), step_name(run, self.found.steps));
        let Sense { sought, other, ends } = &self.sense;
        match &self.found.next {
            Next::Stop(Outcome::Found(found)) => {
                let besides = further(run, self.found, found);
                [self.change(found), self.effect("the side with it")].into_iter().chain(besides).collect()
            }
            Next::Stop(Outcome::Among(found)) => {
                let left = found.last - found.first + 1;
                let is_spent = self.found.rounds.len() >= run.design.stop.max_rounds as usize;
                let (why, remedy) = match is_spent {
                    true => {
                        ("the rounds are spent, and", "a new search with a larger --max-rounds may find it")
                    }
                    false => ("no step that would decide can be run, and", "the reasons are below"),
                };
                vec![
                    format!(
                        "not found: {why} {left} steps are left with probability {}: {} to {}",
                        probability(found.probability),
                        self.named(found.first),
                        self.named(found.last)
                    ),
                    self.effect(&format!("the {} side", ends.1)),
                    remedy.to_owned(),
                ]
            }
            Next::Stop(Outcome::NotWorse(look)) => vec![
                format!("nothing to find: {last} is not {sought} than {first}"),
                format!("the ends: {}, below {}", self.look(look), percent(run.design.stop.delta)),
            ],
            Next::Stop(Outcome::Better(look)) => vec![
                format!("nothing to find: {last} is {other} than {first}"),
                format!("the ends: {}; {}", self.look(look), self.sense.turned_round(run)),
            ],
            Next::Stop(Outcome::EndsUnclear(look)) => vec![
                format!("not clear whether {last} is {sought} than {first}, so that nothing was searched"),
                match look {
                    Some(look) => format!(
                        "the ends: {}; a larger --max-rounds decides it, or --delta {} where less does not matter",
                        self.look(look),
                        delta_above(look)
                    ),
                    None if self.mostly_thrown_out() => {
                        "too few rounds counted for any verdict: see below why the others do not".to_owned()
                    }
                    None => "too few rounds for any verdict; --max-rounds allows more".to_owned(),
                },
            ],
            Next::Stop(Outcome::NothingDiffers(p)) => vec![format!(
                "nothing to find: {last} seemed {sought} than {first} at first, and with all rounds it is not, with probability {}",
                probability(*p)
            )],
            Next::Ends | Next::Ask(_) if self.found.lost_end.is_some() => vec![self.lost_end()],
            Next::Ends => vec![match self.found.ends {
                Ends::Open(Some(look)) => {
                    format!("not finished: the ends are being compared, {} so far", self.look(&look))
                }
                _ => "not finished: the ends are being compared".to_owned(),
            }],
            Next::Ask(_) => {
                let range = &self.found.range;
                vec![format!(
                    "not finished: the change is between {} and {} with probability {}",
                    self.named(range.first),
                    self.named(range.last),
                    probability(range.probability)
                )]
            }
        }
    }

    fn lost_end(&self) -> String {
        let (step, why) = self.found.lost_end.as_ref().map_or((0, ""), |(step, why)| (*step, why.as_str()));
        format!(
            "not found: {} cannot be run, and without it nothing can be compared: {}; begin a new search when it can",
            step_name(self.run, step),
            in_one_line(why)
        )
    }

    /// Rounds that count for nothing, and the rule that the latest of them broke.
    fn thrown_out(&self) -> Option<(usize, &str)> {
        let count = self.found.rounds.iter().filter(|round| round.excluded).count();
        let rule = self.run.trials.iter().rev().find_map(|trial| trial.excluded.as_deref())?;
        (count > 0).then_some((count, rule))
    }

    fn mostly_thrown_out(&self) -> bool {
        self.thrown_out().is_some_and(|(count, _)| 2 * count >= self.found.rounds.len())
    }

    fn change(&self, found: &Found) -> String {
        let p = probability(found.probability);
        if found.first == found.last {
            return format!("the change came with {} (probability {p})", self.named(found.first));
        }
        format!(
            "the change came with one of {} to {} (probability {p}): no step between them could be run",
            self.named(found.first),
            self.named(found.last)
        )
    }

    /// How much the metric differs over all rounds.
    fn effect(&self, who: &str) -> String {
        let metric = self.metric();
        match &self.found.effect {
            Some(Estimate { estimate, low, high }) => format!(
                "{metric} is {} {} on {who} ({} to {} at {:.0} % confidence, {} rounds)",
                signed(*estimate).trim_start_matches(['+', '−']),
                if *estimate < 0.0 { "lower" } else { "higher" },
                signed(*low),
                signed(*high),
                100.0 * (1.0 - self.run.design.stop.alpha),
                self.found.pairs
            ),
            None => format!(
                "{} are too few for an interval of the effect",
                counted(self.found.pairs as u64, "round")
            ),
        }
    }

    fn look(&self, look: &Look) -> String {
        look_words(self.found, look)
    }

    fn elapsed_s(&self) -> f64 {
        let trials = self.run.trials.iter().map(|trial| trial.elapsed_s);
        trials.chain(self.run.lead_ins.iter().map(|lead_in| lead_in.elapsed_s)).sum()
    }

    fn cost(&self) -> String {
        let led = match self.run.lead_ins.len() {
            0 => String::new(),
            led => format!(" and {led} that led into rounds"),
        };
        let out = match self.thrown_out() {
            None => String::new(),
            Some((count, rule)) => {
                let all = self.found.rounds.len();
                let remedy =
                    if self.mostly_thrown_out() { "; --keep-disturbed keeps such rounds" } else { "" };
                format!(", {count} of {} thrown out ({rule}{remedy})", counted(all as u64, "round"))
            }
        };
        format!(
            "{}{led}{out}, {} of {} steps run between the ends, {}",
            counted(self.run.trials.len() as u64, "trial"),
            self.found.asked().len(),
            self.found.steps - 1,
            pretty_duration(self.elapsed_s())
        )
    }

    fn skipped(&self, text: &mut String) {
        for (step, why) in self.found.skipped.iter().take(MOST_SKIPPED) {
            let why: String = in_one_line(why).chars().take(REASON).collect();
            let _ = writeln!(
                text,
                "{}",
                wrapped(&format!("skipped: {}: {why}", step_name(self.run, *step)), "  ")
            );
        }
        match self.found.skipped.len().saturating_sub(MOST_SKIPPED) {
            0 => {}
            more => drop(writeln!(text, "skipped: {more} more; assay show has why")),
        }
    }

    fn against_good(&self, step: usize) -> String {
        let ratio = within_rounds(&self.found.rounds, step).filter(|_| step > 0);
        ratio.map_or_else(String::new, |ratio| signed(ratio - 1.0))
    }

    /// The steps that were run, in their order: how often, and where they lie between the ends.
    fn table(&self, text: &mut String) {
        let mut rows: Vec<(usize, usize, f64)> = Vec::new();
        for step in self.found.asked().into_iter().chain([0, self.found.steps]) {
            let values: Vec<f64> = self
                .found
                .rounds
                .iter()
                .filter(|round| !round.excluded)
                .flat_map(|round| &round.values)
                .filter(|(known, _)| *known == step)
                .map(|(_, value)| *value)
                .collect();
            let Some(middle) = median(values.clone()) else { continue };
            rows.push((step, values.len(), middle));
        }
        if rows.len() < 3 {
            return;
        }
        rows.sort_by_key(|(step, ..)| *step);
        // What is nearest to the answer is what matters.
        let centre = self.found.likeliest.first().map_or(1, |found| found.first);
        let mut kept: Vec<usize> = rows.iter().map(|(step, ..)| *step).collect();
        kept.sort_by_key(|step| (!(*step == 0 || *step == self.found.steps), step.abs_diff(centre)));
        kept.truncate(MOST_LINES);
        let unit = self.found.metric.as_ref().map_or(Unit::Count, |metric| metric.unit.clone());
        let heads = ["step", "trials", "median", "in rounds"];
        let _ = writeln!(
            text,
            "\n{:>4}  {:<16} {:>6}  {:>14}  {:>10}",
            "", heads[0], heads[1], heads[2], heads[3]
        );
        for (step, trials, middle) in rows.iter().filter(|(step, ..)| kept.contains(step)) {
            let mark = match self.found_steps() {
                Some(found) if found.first <= *step && *step <= found.last => "-->",
                _ => "",
            };
            let shown: String = step_name(self.run, *step).chars().take(16).collect();
            let middle = format_number(&unit, *middle);
            let line =
                format!("{mark:>4}  {shown:<16} {trials:>6}  {middle:>14}  {:>10}", self.against_good(*step));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        match rows.len().saturating_sub(MOST_LINES) {
            0 => {}
            more => drop(writeln!(text, "      and {}", counted(more as u64, "step"))),
        }
        let good: String = step_name(self.run, 0).chars().take(16).collect();
        let _ = writeln!(text, "      in rounds: against {good} in the same rounds");
    }
}

/// The median of what a step's values are more than those of the first step in the same rounds.
fn within_rounds(rounds: &[BisectedRound], step: usize) -> Option<f64> {
    let of_round = |round: &BisectedRound| {
        let of =
            |wanted: usize| round.values.iter().find(|(known, _)| *known == wanted).map(|(_, value)| *value);
        Some(of(step)? / of(0).filter(|first| *first > 0.0)?)
    };
    median(rounds.iter().filter(|round| !round.excluded).filter_map(of_round).collect())
}

/// The first line of a reason, with the compiler's first mistake where there is one.
fn in_one_line(why: &str) -> String {
    let first = why.lines().next().unwrap_or("");
    let mistake = why.lines().skip(1).find_map(|line| Some(&line[line.find("error: ")?..]));
    mistake.map_or_else(|| first.to_owned(), |mistake| format!("{first} {mistake}"))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

fn probability(p: f64) -> String {
    if p > 0.999 { "over 0.999".to_owned() } else { format!("{p:.3}") }
}

fn percent(ratio: f64) -> String {
    format!("{:.3}", 100.0 * ratio).trim_end_matches('0').trim_end_matches('.').to_owned() + " %"
}

#[cfg(test)]
mod tests {
    use super::in_one_line;

    #[test]
    fn a_step_that_does_not_compile_is_told_with_the_first_mistake() {
        let why = "it cannot be built: f2fs does not compile:\n  fs/a.c:7:39: error: 'x' undeclared\n  fs/a.c:8: error: more";
        assert_eq!(in_one_line(why), "it cannot be built: f2fs does not compile: error: 'x' undeclared");
        assert_eq!(
            in_one_line("it cannot be built: exit status 2\nno rule"),
            "it cannot be built: exit status 2"
        );
    }
}
