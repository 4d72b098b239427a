//! Verdicts of many comparisons in few sentences: rows that show one difference share one.
//!
//! Enters: the comparisons that decide. Leaves: the words that several of them share. It must not judge; the tables have what each row
//! shows by itself.

use crate::analyse::{Comparison, Verdict};
use crate::report::comparisons::{arms_of, group};
use crate::report::verdict_words::{
    MOST_ROUNDS, as_expected, claim, counted, names_metric, repeats, repeats_words, too_coarse,
};
use crate::report::words::{NBSP, Names, change, effect_decimals, has_share, shown_change};

/// So many comparisons have a sentence each.
pub(super) const MOST_APART: usize = 8;
/// Rows that a sentence names; the tables have all of them.
const MOST_NAMED: usize = 6;

/// Comparisons that show one difference.
#[derive(Debug)]
pub(super) struct Shared<'c> {
    claim: String,
    members: Vec<&'c Comparison>,
}

/// The comparisons that share their words with another one, in the order in which they come.
pub(super) fn shared<'c>(primary: &[&'c Comparison], names: &Names<'_>) -> Vec<Shared<'c>> {
    let mut all: Vec<Shared<'c>> = Vec::new();
    for comparison in primary {
        let Some(claim) = claim(comparison, names).filter(|_| stands_in_a_range(comparison)) else {
            continue;
        };
        match all.iter_mut().find(|shared| shared.claim == claim && is_alike(shared.members[0], comparison)) {
            Some(shared) => shared.members.push(comparison),
            None => all.push(Shared { claim, members: vec![comparison] }),
        }
    }
    all.retain(|shared| shared.members.len() > 1);
    all
}

/// Whether all there is to say of a comparison is its change in percent. Failures are told with their row.
fn stands_in_a_range(c: &Comparison) -> bool {
    c.failures.is_none() && c.effect.is_some() && has_share(c) && shown_change(c).is_finite()
}

/// Whether two comparisons are of the same arms and the same metric, and there is the same to say of them.
fn is_alike(one: &Comparison, other: &Comparison) -> bool {
    arms_of(one) == arms_of(other)
        && one.metric.name == other.metric.name
        && one.difference.is_some() == other.difference.is_some()
        && one.corrected.is_some() == other.corrected.is_some()
        && least(one).is_some() == least(other).is_some()
        && too_coarse(one) == too_coarse(other)
        && counted(one) == counted(other)
}

impl Shared<'_> {
    /// Whether a comparison is among them.
    pub(super) fn has(&self, comparison: &Comparison) -> bool {
        self.members.iter().any(|member| std::ptr::eq(*member, comparison))
    }

    /// `direct=1 is faster than direct=0 by more than 2 % in 3 rows: bw +28.0 to +31.2 %, 8 rounds (bs=4k; bs=8k; bs=16k)`.
    pub(super) fn sentence(&self, primary: &[&Comparison], names: &Names<'_>) -> String {
        let Shared { claim, members } = self;
        let first = members[0];
        let metric = if names_metric(first) { String::new() } else { format!("{} ", first.metric.name) };
        let decimals = members.iter().map(|c| effect_decimals(c.effect)).max().unwrap_or(1);
        let size = if first.difference.is_some() { " of the baseline's size" } else { "" };
        let changes = range(members.iter().map(|c| shown_change(c)), decimals);
        let corrected: Vec<f64> = members.iter().filter_map(|c| c.corrected).collect();
        let corrected = match corrected.is_empty() {
            true => String::new(),
            false => format!(" ({} corrected for the early stop)", range(corrected, decimals)),
        };
        let (of_rows, named) = match (members.len(), group(primary, |c| &c.row).len()) {
            (2, 2) => (format!("both{NBSP}rows"), String::new()),
            (n, all) if n == all => (format!("all {n}{NBSP}rows"), String::new()),
            (n, _) => (format!("{n}{NBSP}rows"), format!(" ({})", rows(members, names))),
        };
        let (repeats, next) = (repeats_of_all(members), next(members, names));
        let expected = as_expected(first, names);
        format!("{claim} in {of_rows}{expected}: {metric}{changes}{size}{corrected}, {repeats}{named}{next}")
    }
}

/// `+28.0 to +31.2 %`, from the smallest to the largest.
fn range(changes: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    let ends = changes
        .into_iter()
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], change| [low.min(change), high.max(change)]);
    let [low, high] = ends.map(|end| change(end, decimals));
    let shared = if high.ends_with('%') { low.trim_end_matches(['%', NBSP]) } else { &low };
    if low == high { low } else { format!("{shared} to {high}") }
}

/// `8 rounds`, or `8 to 12 rounds`, or `5 to 8 repeats an arm`. Where p decides, each row has its own, which tables have.
fn repeats_of_all(members: &[&Comparison]) -> String {
    let said = repeats_words(members[0]);
    if members.iter().all(|c| repeats_words(c) == said) {
        return said;
    }
    let all = || members.iter().flat_map(|c| repeats(c));
    let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
    let what = counted(members[0]).1;
    format!("{least} to {most}{NBSP}{what}")
}

fn rows(members: &[&Comparison], names: &Names<'_>) -> String {
    some_rows(members.iter().map(|c| names.row(&c.row)).collect())
}

/// `bs=4k; bs=8k; 5 more`: the tables have all of them. One row more than there is room for has that of the words for it.
pub(super) fn some_rows(mut rows: Vec<String>) -> String {
    let others = rows.len().saturating_sub(MOST_NAMED);
    if others > 1 {
        rows.truncate(MOST_NAMED);
        rows.push(format!("{others}{NBSP}more"));
    }
    rows.join("; ")
}

/// What an undecided row would probably take, where it is not more than anybody runs.
fn least(c: &Comparison) -> Option<u32> {
    let Verdict::Undecided { rounds_to_claim, rounds_for_no_difference } = c.verdict else { return None };
    let rounds = [rounds_to_claim, rounds_for_no_difference].into_iter().flatten();
    rounds.min().filter(|rounds| *rounds <= MOST_ROUNDS)
}

/// Whether no number of rounds would decide it.
fn has_no_end(c: &Comparison) -> bool {
    matches!(c.verdict, Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None })
}

/// Of undecided rows, what the one that takes least would take.
fn next(members: &[&Comparison], names: &Names<'_>) -> String {
    let (what, coarse) = (counted(members[0]).1, too_coarse(members[0]));
    match members.iter().filter_map(|c| least(c)).min() {
        _ if names.aa || !matches!(members[0].verdict, Verdict::Undecided { .. }) => String::new(),
        Some(rounds) => format!("; the one that takes least would probably take about {rounds} {what}"),
        None if members.iter().all(|c| has_no_end(c)) && !coarse.is_empty() => coarse,
        None => format!("; not on this machine: more than {MOST_ROUNDS} {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Caveat, FailureCounts, Interval, Method};
    use crate::report::section_tests::made_up;

    /// Ten rows of which the change is this in percent; below 0 it is slower.
    fn rows_of(changes: &[f64]) -> Vec<Comparison> {
        let (_, analysis) = made_up();
        let of = |(at, change): (usize, &f64)| {
            let mut c = analysis.comparisons[0].clone();
            let estimate = change / 100.0;
            c.corrected = None;
            c.effect = Some(Interval { estimate, low: estimate - 0.01, high: estimate + 0.01 });
            c.verdict = match *change {
                x if x.abs() < 2.0 => Verdict::Undecided {
                    rounds_to_claim: Some(400 / at as u32),
                    rounds_for_no_difference: None,
                },
                x if x < 0.0 => Verdict::Slower { beyond_delta: true },
                _ => Verdict::Faster { beyond_delta: true },
            };
            c.row.levels = vec![("bs".to_owned(), format!("{}k", 4 << at))];
            c
        };
        changes.iter().enumerate().map(of).collect()
    }

    fn told(comparisons: &[Comparison]) -> Vec<String> {
        let primary: Vec<&Comparison> = comparisons.iter().collect();
        let names = Names::of_factor("cache");
        let all = shared(&primary, &names);
        all.iter().map(|one| one.sentence(&primary, &names).replace(NBSP, " ")).collect()
    }

    #[test]
    fn rows_that_show_one_difference_share_a_sentence() {
        assert_eq!(
            told(&rows_of(&[10.0, 30.0, -5.0, 20.0, 1.0, 0.5])),
            [
                "cache=off is faster than cache=on by more than 2 % in 3 rows: bw +10.0 to +30.0 %, 5 rounds (bs=4k; bs=8k; \
                 bs=32k)",
                "undecided whether cache=off differs from cache=on in 2 rows: bw +0.5 to +1.0 %, 5 rounds (bs=64k; bs=128k); \
                 the one that takes least would probably take about 80 rounds",
            ],
            "what is slower stands alone"
        );
    }

    #[test]
    fn all_rows_are_not_named_and_many_are_counted() {
        assert_eq!(
            told(&rows_of(&[10.0; 9])),
            ["cache=off is faster than cache=on by more than 2 % in all 9 rows: bw +10.0 %, 5 rounds"]
        );
        let mut mixed = vec![10.0; 9];
        mixed.push(-9.0);
        assert!(told(&rows_of(&mixed))[0].ends_with("; bs=128k; 3 more)"), "{:?}", told(&rows_of(&mixed)));
    }

    #[test]
    fn rows_of_another_metric_are_rows_too() {
        let mut comparisons = rows_of(&[10.0, 10.0, 10.0, -10.0, -10.0, -10.0]);
        for c in &mut comparisons[3..] {
            c.metric.name = "read.bw".to_owned();
        }
        let told = told(&comparisons);
        assert!(told[0].contains(" in 3 rows: bw ") && told[1].contains(" in 3 rows: read.bw "), "{told:?}");
    }

    #[test]
    fn figures_of_an_early_stop_and_of_no_end_are_told() {
        let mut comparisons = rows_of(&[10.0, 20.0, 0.5, 1.0]);
        (comparisons[0].corrected, comparisons[1].corrected) = (Some(0.09), Some(0.18));
        for c in &mut comparisons[2..] {
            c.verdict = Verdict::Undecided { rounds_to_claim: Some(4000), rounds_for_no_difference: None };
        }
        comparisons[3].n = 6;
        let told = told(&comparisons);
        assert!(
            told[0].contains("+10.0 to +20.0 % (+9.0 to +18.0 % corrected for the early stop), 5 rounds"),
            "{told:?}"
        );
        assert!(
            told[1].contains(", 5 to 6 rounds (bs=16k; bs=32k); not on this machine: more than 1000 "),
            "{told:?}"
        );
    }

    #[test]
    fn a_metric_of_coarse_steps_is_not_blamed_on_the_rounds() {
        let mut comparisons = rows_of(&[10.0, 0.0, 0.0, 0.5, 1.0]);
        for c in &mut comparisons[1..3] {
            c.verdict = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
            c.caveats = vec![Caveat::Steps { step: 1.0, refused: true }];
        }
        let told = told(&comparisons);
        assert!(
            told[0].contains(" in 2 rows: ") && told[0].contains("; the metric has steps of "),
            "{told:?}"
        );
        assert!(
            !told[0].contains("not on this machine") && told[1].contains("would probably take"),
            "{told:?}"
        );
    }

    #[test]
    fn what_was_repeated_apart_is_counted_for_both_arms() {
        let mut comparisons = rows_of(&[10.0, 20.0, 10.0, 20.0]);
        for c in &mut comparisons[2..] {
            c.method = Method::MannWhitney;
            (c.baseline.n, c.candidate.n, c.n) = (5, 8, 5);
        }
        comparisons[2].candidate.n = 5;
        let told = told(&comparisons);
        assert!(
            told.len() == 2 && told[0].contains(" in 2 rows: ") && told[0].contains("5 rounds"),
            "{told:?}"
        );
        assert!(told[1].contains(", 5 to 8 repeats an arm (bs=16k; bs=32k)"), "{told:?}");
    }

    #[test]
    fn one_row_more_than_there_is_room_for_is_named() {
        let rows = |n: usize| some_rows((1..=n).map(|n| n.to_string()).collect()).replace(NBSP, " ");
        assert_eq!([rows(1), rows(7), rows(8)], ["1", "1; 2; 3; 4; 5; 6; 7", "1; 2; 3; 4; 5; 6; 2 more"]);
    }

    #[test]
    fn what_has_failures_or_no_share_stands_alone() {
        let mut comparisons = rows_of(&[10.0, 10.0, 10.0, 10.0]);
        comparisons[0].failures = Some(FailureCounts {
            baseline_failed: 0,
            baseline_trials: 5,
            candidate_failed: 1,
            candidate_trials: 5,
            p: None,
        });
        comparisons[1].effect = None;
        let told = told(&comparisons);
        assert!(told.len() == 1 && told[0].contains(" in 2 rows: "), "{told:?}");
    }
}
