//! What few rounds can claim: families of rows looked at once, and short sequential runs.
//!
//! Enters: how many replicates. Leaves: two tables, and what in them breaks a promise. A family goes through
//! [`crate::plan`]'s order and [`crate::analyse::analyse`].

use std::fmt::Write as Text;

use super::model::{self, Model};
use super::noise::Kind;
use super::{Args, in_parallel};
use crate::analyse::{self, Options, Role, Verdict};
use crate::plan::Plan;
use crate::record::StopRule;
use crate::stats::descriptive::mean;

/// Comparisons that share α.
const FAMILIES: [u32; 5] = [1, 2, 6, 12, 24];
/// Rounds of the one look.
const ROUNDS: [u32; 8] = [4, 5, 6, 7, 8, 9, 10, 12];
/// N_max of the short sequential runs.
const AT_MOST: [u32; 7] = [4, 5, 6, 7, 8, 9, 10];
/// False claims are the mean over these.
const FALSE_CVS: [f64; 2] = [0.02, 0.05];
const RIGHT_CV: f64 = 0.02;
/// The effect that a family is to find in every row.
const LARGE: f64 = 0.5;
/// The effect that a short run is to find.
const SMALL: f64 = 0.05;

/// False claims in percent that are promised at most.
const PROMISED: f64 = 5.0;
/// Points by which right claims may fall from one number of rounds to the next.
const FALL: f64 = 2.0;

/// Claims in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figure {
    /// Families with any claim where there is no effect.
    wrong: f64,
    /// Rows with the right claim.
    right: f64,
}

impl Figure {
    fn printed(self) -> String {
        format!("{:.1}/{:.0}", self.wrong, self.right)
    }
}

/// Figures by number of rounds, with the title of their row in the table.
struct Line {
    title: String,
    figures: Vec<Figure>,
    /// Replicates behind each percentage of false claims.
    replicates: u32,
    /// That of [`Args`].
    chance: f64,
}

/// Both tables.
pub(super) struct FewRounds {
    families: Vec<Line>,
    sequential: Line,
    one_look: Line,
    mean_rounds: Vec<f64>,
}

impl FewRounds {
    pub(super) fn simulate(args: &Args) -> anyhow::Result<FewRounds> {
        let families = FAMILIES.map(|rows| family(rows, args)).into_iter().collect::<anyhow::Result<_>>()?;
        let plan = model::cells(1)?;
        let (mut mean_rounds, mut sequential, mut one_look) = (Vec::new(), Vec::new(), Vec::new());
        for rounds in AT_MOST {
            let at_most = StopRule { max_rounds: rounds, ..StopRule::default() };
            let (figure, rounds_taken) = short_runs(&plan, at_most, args);
            sequential.push(figure);
            mean_rounds.push(rounds_taken);
            one_look.push(short_runs(&plan, StopRule { rounds: Some(rounds), ..at_most }, args).0);
        }
        let replicates = 2 * args.replicates;
        let line = |title: &str, figures| Line {
            title: title.to_owned(),
            figures,
            replicates,
            chance: args.chance(),
        };
        Ok(FewRounds {
            families,
            sequential: line("`--max-rounds N`", sequential),
            one_look: line("`--rounds N`", one_look),
            mean_rounds,
        })
    }

    /// Both tables, as METHODOLOGY has them.
    pub(super) fn tables(&self) -> String {
        let mut text = header("rows, one look after N rounds: false/right claims %", &ROUNDS);
        for line in &self.families {
            line.print(&mut text);
        }
        text.push('\n');
        text.push_str(&header("one row, N rounds: false/right claims %", &AT_MOST));
        self.sequential.print(&mut text);
        self.one_look.print(&mut text);
        let rounds: Vec<String> = self.mean_rounds.iter().map(|rounds| format!("{rounds:.1}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| mean rounds of `--max-rounds N` where there is an effect | {} |",
            rounds.join(" | ")
        );
        text
    }

    /// Broken promises, one line each.
    pub(super) fn broken(&self) -> Vec<String> {
        let families = self.families.iter().flat_map(|line| line.broken(&ROUNDS, "rows "));
        // One look at a small effect may fall: up to n = 11, a single stall against it outranks any claim.
        let one_look = self.one_look.too_often_wrong(&AT_MOST, "");
        families.chain(self.sequential.broken(&AT_MOST, "")).chain(one_look).collect()
    }
}

impl Line {
    fn print(&self, text: &mut String) {
        let figures: Vec<String> = self.figures.iter().map(|figure| figure.printed()).collect();
        let _ = writeln!(text, "| {} | {} |", self.title, figures.join(" | "));
    }

    fn broken(&self, rounds: &[u32], what: &str) -> Vec<String> {
        let mut broken = self.too_often_wrong(rounds, what);
        for (pair, n) in self.figures.windows(2).zip(&rounds[1..]) {
            let fall = pair[0].right - pair[1].right;
            let kept = fall <= FALL * self.chance;
            if !kept {
                let title = &self.title;
                broken
                    .push(format!("right claims % of {what}{title} fall by {fall:.1} points at {n} rounds"));
            }
        }
        broken
    }

    fn too_often_wrong(&self, rounds: &[u32], what: &str) -> Vec<String> {
        let mut broken = Vec::new();
        let promise = PROMISED / 100.0;
        let error = 100.0 * (promise * (1.0 - promise) / f64::from(self.replicates)).sqrt();
        let most = PROMISED + 3.0 * error;
        for (figure, n) in self.figures.iter().zip(rounds) {
            // NaN breaks it, too.
            let kept = figure.wrong <= most;
            if !kept {
                let (title, wrong) = (&self.title, figure.wrong);
                broken.push(format!(
                    "false claims % of {what}{title}, {n} rounds: {wrong:.2}, promised {most:.2}"
                ));
            }
        }
        broken
    }
}

fn header(title: &str, rounds: &[u32]) -> String {
    let columns: Vec<String> = rounds.iter().map(u32::to_string).collect();
    format!("| {title} | {} |\n|---{}|\n", columns.join(" | "), "|---".repeat(rounds.len()))
}

/// One row of the first table. Large families are simulated less often: each replicate has that many more rows,
/// and eight analyses.
fn family(rows: u32, args: &Args) -> anyhow::Result<Line> {
    let replicates = (f64::from(args.replicates) / 2.0 / f64::from(rows).sqrt()).ceil() as u32;
    let fewer = Args { replicates, seed: args.seed };
    let plan = model::cells(rows)?;
    let mut figures = vec![Figure::default(); ROUNDS.len()];
    for (at, cv) in FALSE_CVS.into_iter().enumerate() {
        let looked = in_parallel(&other_seeds(&fewer, at), |seed| look_once(&plan, cv, 0.0, seed));
        for (at, figure) in figures.iter_mut().enumerate() {
            let claimed = looked.iter().filter(|looks| looks[at].claimed).count();
            figure.wrong += 100.0 * claimed as f64 / looked.len() as f64 / FALSE_CVS.len() as f64;
        }
    }
    let looked = in_parallel(&fewer, |seed| look_once(&plan, RIGHT_CV, LARGE, seed));
    for (at, figure) in figures.iter_mut().enumerate() {
        figure.right = 100.0 * mean(&looked.iter().map(|looks| looks[at].right).collect::<Vec<_>>());
    }
    Ok(Line { title: rows.to_string(), figures, replicates: 2 * replicates, chance: args.chance() })
}

/// What one look at a family said.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Looked {
    /// Any row claims a difference.
    claimed: bool,
    /// Share of the rows that claim the right one: slower.
    right: f64,
}

/// One family of rows, judged as if it had ended after each of [`ROUNDS`].
fn look_once(plan: &Plan, cv: f64, effect: f64, seed: u64) -> Vec<Looked> {
    let most = ROUNDS[ROUNDS.len() - 1];
    let run = Model { plan, kind: Kind::Full, cv, effect, stop: StopRule::default() }.run(seed, most);
    let after = |rounds: u32| {
        let mut run = model::upto(&run, rounds);
        run.design.stop.rounds = Some(rounds);
        look(&run)
    };
    ROUNDS.into_iter().map(after).collect()
}

/// The same number of replicates of other seeds: the same noise at another CV would make the same errors.
fn other_seeds(args: &Args, at: usize) -> Args {
    Args { replicates: args.replicates, seed: args.seed.wrapping_add(at as u64) }
}

fn look(run: &crate::record::Run) -> Looked {
    let comparisons = analyse::analyse(run, &Options::default()).comparisons;
    let primary = comparisons.iter().filter(|c| c.role == Role::Primary);
    let rows = primary.clone().count();
    let right = primary.clone().filter(|c| matches!(c.verdict, Verdict::Slower { .. })).count();
    let wrong = primary.filter(|c| matches!(c.verdict, Verdict::Faster { .. })).count();
    Looked { claimed: right + wrong > 0, right: right as f64 / rows as f64 }
}

/// Short runs of one row under `stop`: claims, and the mean rounds of those with an effect.
fn short_runs(plan: &Plan, stop: StopRule, args: &Args) -> (Figure, f64) {
    let run = |args: &Args, cv: f64, effect: f64| {
        in_parallel(args, move |seed| Model { plan, kind: Kind::Full, cv, effect, stop }.sequential(seed))
    };
    let percent = |count: usize| 100.0 * count as f64 / f64::from(args.replicates);
    let wrong = |at: usize| {
        let runs = run(&other_seeds(args, at), FALSE_CVS[at], 0.0);
        percent(runs.iter().filter(|r| r.claimed).count())
    };
    let claims = [wrong(0), wrong(1)];
    let found = run(args, RIGHT_CV, SMALL);
    let rounds = mean(&found.iter().map(|r| f64::from(r.rounds)).collect::<Vec<_>>());
    (Figure { wrong: mean(&claims), right: percent(found.iter().filter(|r| r.right).count()) }, rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(figures: &[(f64, f64)]) -> Line {
        let figures = figures.iter().map(|(wrong, right)| Figure { wrong: *wrong, right: *right }).collect();
        Line { title: "6".to_owned(), figures, replicates: 7_600, chance: 1.0 }
    }

    #[test]
    fn broken_promises_are_named() {
        // 5 % of 7,600: the standard error is 0.25 points.
        assert!(line(&[(5.7, 90.0), (2.0, 88.1)]).broken(&[4, 5], "rows ").is_empty());
        assert_eq!(
            line(&[(5.8, 99.0), (2.0, 0.0)]).broken(&[5, 6], "rows "),
            [
                "false claims % of rows 6, 5 rounds: 5.80, promised 5.75",
                "right claims % of rows 6 fall by 99.0 points at 6 rounds"
            ]
        );
        assert_eq!(line(&[(f64::NAN, 1.0), (1.0, f64::NAN)]).broken(&[4, 5], "").len(), 2);
    }

    #[test]
    fn a_large_effect_is_found_by_more_rounds_not_less() {
        for rows in [1, 2, 6] {
            let plan = model::cells(rows).unwrap();
            let looked: Vec<_> = (0..60).map(|seed| look_once(&plan, RIGHT_CV, LARGE, seed)).collect();
            let right = |at: usize| mean(&looked.iter().map(|looks| looks[at].right).collect::<Vec<_>>());
            let shares: Vec<f64> = (0..ROUNDS.len()).map(right).collect();
            assert!(shares.windows(2).all(|pair| pair[1] > pair[0] - 0.05), "{rows} rows: {shares:?}");
            assert!(shares[2] > 0.95, "{rows} rows: {shares:?}");
        }
    }
}
