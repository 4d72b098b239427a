//! What a judgement is called: the word of a row, its sentence, its tone, and under what it is counted.
//!
//! Enters: a comparison. Leaves: words in UTF-8. It must not judge: every number and verdict is analyse's.

use super::clusters;
use super::manner::{is_neutral, manner};
use super::raw_words::raw_change;
use super::words::{
    NBSP, Names, change, effect_decimals, interval_of, p_equals, plain_percent, shown_change, step_size,
};
use crate::analyse::{Caveat, Comparison, Method, Role, Unlisted, Verdict};
use crate::record::StopRule;

named! {
    /// What a judgement means to the reader; formats choose colours by it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Tone {
        /// The candidate is better.
        Better = "better",
        /// The candidate is worse.
        Worse = "worse",
        /// They do not differ beyond δ.
        Same = "same",
        /// It could not be told.
        Unclear = "unclear",
    }
}

/// Of fewer trials nobody asks whether failing is chance.
const FEWEST_WITH_P: u32 = 4;
/// Differences that differ by less, as a share, are one difference.
const ROUNDING: f64 = 1e-9;
/// Two shares that differ by less are printed as one.
const SAME_SHARE: f64 = 0.001;

/// What every figure carries that is there before the last of a fixed number of rounds.
pub(super) const SO_FAR: &str = "so far";

/// `, so far` behind what is said of these comparisons, where one of them has no verdict before the last round.
pub(super) fn so_far<'c>(comparisons: impl IntoIterator<Item = &'c Comparison>) -> &'static str {
    if comparisons.into_iter().any(|c| c.so_far().is_some()) { ", so far" } else { "" }
}

/// The judgement in at most 14 characters.
pub(super) fn verdict_word(comparison: &Comparison) -> &'static str {
    if let Some(form) = form_instead(comparison) {
        return if form.contains("_per_byte") { "see per byte" } else { "see per op" };
    }
    if comparison.role == Role::Primary
        && let Some(good) = comparison.is_better().filter(|_| is_claimed_alike(comparison))
    {
        return manner(&comparison.metric, good).word;
    }
    let says_manner = comparison.role == Role::Primary || is_neutral(&comparison.metric);
    match (&comparison.verdict, comparison.role) {
        (Verdict::Faster { beyond_delta: true }, _) if says_manner => manner(&comparison.metric, true).beyond,
        (Verdict::Faster { beyond_delta: false }, _) if says_manner => manner(&comparison.metric, true).maybe,
        (Verdict::Slower { beyond_delta: true }, _) if says_manner => {
            manner(&comparison.metric, false).beyond
        }
        (Verdict::Slower { beyond_delta: false }, _) if says_manner => {
            manner(&comparison.metric, false).maybe
        }
        (Verdict::Faster { beyond_delta: true }, _) => "better by > δ",
        (Verdict::Faster { beyond_delta: false }, _) => "better, > δ?",
        (Verdict::Slower { beyond_delta: true }, _) => "worse by > δ",
        (Verdict::Slower { beyond_delta: false }, _) => "worse, > δ?",
        (Verdict::NotComparable, _) => "not comparable",
        (Verdict::NoDifference { real_but_below_delta: false }, _) => "no difference",
        (Verdict::NoDifference { real_but_below_delta: true }, _) => "real, below δ",
        (Verdict::Undecided { .. }, Role::Primary) => "undecided",
        (Verdict::Undecided { .. }, Role::Exploratory) => "unclear",
        (Verdict::SoFar { .. }, _) => SO_FAR,
        (Verdict::TooFew { .. }, _) => "too few",
        (Verdict::NotMeasured(_), _) if refused(comparison) => "too few I/Os",
        (Verdict::NotMeasured(_), _) if is_too_short(comparison) => "too short",
        (Verdict::NotMeasured(_), _) => "not measured",
    }
}

/// The form that says which arm is better, where a total claims it of trials that did different amounts of work, which it follows.
pub(super) fn form_instead(comparison: &Comparison) -> Option<&str> {
    match (&comparison.unlisted, &comparison.verdict) {
        (Some(Unlisted::Form { metric }), Verdict::Faster { .. } | Verdict::Slower { .. }) => {
            Some(metric.as_str())
        }
        _ => None,
    }
}

/// What the judgement of a row means to the reader; `None`: its word claims nothing.
pub(super) fn tone_of_row(comparison: &Comparison) -> Option<Tone> {
    let claims = form_instead(comparison).is_none()
        && (comparison.role == Role::Primary || !is_neutral(&comparison.metric));
    claims.then(|| tone(&comparison.verdict))
}

/// Whether a quantile was refused because trials had too few operations for it.
pub(super) fn refused(comparison: &Comparison) -> bool {
    comparison.caveats.iter().any(|caveat| matches!(caveat, Caveat::QuantileRefused { .. }))
}

/// Whether a processor time was refused because trials had too little of it.
pub(super) fn is_too_short(comparison: &Comparison) -> bool {
    comparison.caveats.iter().any(|caveat| matches!(caveat, Caveat::ProcessorTimeRefused { .. }))
}

/// What a judgement means to the reader.
pub(super) fn tone(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::Faster { .. } => Tone::Better,
        Verdict::Slower { .. } => Tone::Worse,
        Verdict::NoDifference { .. } => Tone::Same,
        Verdict::NotComparable
        | Verdict::Undecided { .. }
        | Verdict::SoFar { .. }
        | Verdict::TooFew { .. }
        | Verdict::NotMeasured(_) => Tone::Unclear,
    }
}

/// Whether a difference of unknown size was found that is the same in every round, to rounding.
fn is_claimed_alike(c: &Comparison) -> bool {
    let claimed = Verdict::Faster { beyond_delta: false } == c.verdict
        || Verdict::Slower { beyond_delta: false } == c.verdict;
    let [base, cand] = [&c.baseline.values, &c.candidate.values];
    let rounds = base.iter().zip(cand).map(|((round, .., a), (of, .., b))| (round == of).then_some((*a, *b)));
    let rounds: Option<Vec<(f64, f64)>> = rounds.collect();
    let has_rounds = counted(c).0 == "rounds" && base.len() == cand.len();
    let Some(rounds) = rounds.filter(|all| claimed && has_rounds && all.len() == c.n) else {
        return false;
    };
    let is_ratio = c.difference.is_none();
    let differences: Vec<f64> = rounds.iter().map(|(a, b)| if is_ratio { b / a } else { b - a }).collect();
    let first = differences.first().copied().unwrap_or(f64::NAN);
    differences.iter().all(|other| (other - first).abs() <= ROUNDING * first.abs())
}

/// `, the same difference in every round`, with what is not known of it.
fn alike_words(c: &Comparison) -> String {
    if !is_claimed_alike(c) {
        return String::new();
    }
    let step = c.caveats.iter().find_map(|caveat| match caveat {
        Caveat::Steps { step, .. } => {
            Some(format!(" (its size is known to the metric's steps of {})", step_size(*step)))
        }
        _ => None,
    });
    format!(", the same difference in every round{}", step.unwrap_or_default())
}

/// Whether all of the interval lies beyond δ: the difference is larger than what matters.
pub(super) fn is_beyond_delta(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Faster { beyond_delta: true } | Verdict::Slower { beyond_delta: true })
}

/// The verdicts in words for counting them, in the order in which they are counted.
pub(super) const COUNTED: [&str; 11] = [
    "faster by more than δ", "faster, maybe by less", "slower by more than δ", "slower, maybe by less",
    "real but below δ", "without difference beyond δ", "undecided", "not comparable", "so far",
    "with too few repeats", "not measured",
];

/// The place of a verdict in [`COUNTED`].
pub(super) fn counted_as(verdict: &Verdict) -> usize {
    match verdict {
        Verdict::Faster { beyond_delta: true } => 0,
        Verdict::Faster { beyond_delta: false } => 1,
        Verdict::Slower { beyond_delta: true } => 2,
        Verdict::Slower { beyond_delta: false } => 3,
        Verdict::NoDifference { real_but_below_delta: true } => 4,
        Verdict::NoDifference { real_but_below_delta: false } => 5,
        Verdict::Undecided { .. } => 6,
        Verdict::NotComparable => 7,
        Verdict::SoFar { .. } => 8,
        Verdict::TooFew { .. } => 9,
        Verdict::NotMeasured(_) => 10,
    }
}

/// What was counted, and what another of it would be: `rounds`, `repeats an arm`, `boots an arm`.
pub(super) fn counted(comparison: &Comparison) -> (String, String) {
    match (clusters::counted(comparison), comparison.method) {
        (Some(of), _) if of.paired => (format!("{}s", of.kind), format!("{}s", of.kind)),
        (Some(of), _) => (format!("{}s", of.kind), format!("{}s an arm", of.kind)),
        (None, Method::MannWhitney | Method::ChangeOnly) => {
            ("repeats".to_owned(), "repeats an arm".to_owned())
        }
        (None, _) => ("rounds".to_owned(), "rounds".to_owned()),
    }
}

/// `, p = 0.012`, or nothing.
fn p_words(comparison: &Comparison) -> String {
    let adjusted = comparison.p_adjusted.filter(|p| Some(*p) != comparison.p);
    let Some(p) = adjusted.or(comparison.p) else { return String::new() };
    let what = if adjusted.is_some() { ", adjusted" } else { "," };
    format!("{what} {}", p_equals(p))
}

/// `8 rounds`, or for results without rounds `8 and 5 repeats, p = 0.012`, or by clusters `5 boots each, p = 0.03`.
fn evidence(comparison: &Comparison) -> String {
    let has_p = clusters::counted(comparison).is_some()
        || matches!(comparison.method, Method::MannWhitney | Method::ChangeOnly);
    let p = if has_p { p_words(comparison) } else { String::new() };
    repeats_words(comparison) + &p
}

/// The same without p.
pub(super) fn repeats_words(comparison: &Comparison) -> String {
    if let Some(of) = clusters::counted(comparison) {
        return of.words();
    }
    match comparison.method {
        Method::MannWhitney | Method::ChangeOnly => {
            let (a, b) = (comparison.baseline.n, comparison.candidate.n);
            match (a == b, a) {
                (true, 1) => "one value each".to_owned(),
                (true, _) => format!("{a}{NBSP}repeats each"),
                (false, _) => format!("{a} and {b}{NBSP}repeats"),
            }
        }
        _ if comparison.n == 1 => format!("1{NBSP}round"),
        _ => format!("{}{NBSP}rounds", comparison.n),
    }
}

/// The same as numbers, of the baseline and of the candidate; where both were repeated together, twice the same.
pub(super) fn repeats(comparison: &Comparison) -> [usize; 2] {
    match (clusters::counted(comparison), comparison.method) {
        (Some(of), _) if of.paired => [of.both as usize; 2],
        (Some(of), _) => of.arms.map(|clusters| clusters as usize),
        (None, Method::MannWhitney | Method::ChangeOnly) => [comparison.baseline.n, comparison.candidate.n],
        (None, _) => [comparison.n; 2],
    }
}

/// `direct=1 failed in 9 of 30 trials, direct=0 in 0 (p = 0.004)`: the arm that failed more comes first.
fn failures(comparison: &Comparison, names: &Names<'_>) -> Option<String> {
    let counts = comparison.failures?;
    let mut arms = [
        (&comparison.baseline.arm, counts.baseline_failed, counts.baseline_trials),
        (&comparison.candidate.arm, counts.candidate_failed, counts.candidate_trials),
    ];
    arms.sort_by_key(|(_, failed, _)| std::cmp::Reverse(*failed));
    let [(first, failed, trials), (second, others_failed, others)] = arms;
    let of = if others == trials { String::new() } else { format!(" of {others}") };
    let p = counts
        .p
        .filter(|_| trials.min(others) >= FEWEST_WITH_P)
        .map_or_else(String::new, |p| format!(" ({})", p_equals(p)));
    Some(format!(
        "{} failed in {failed} of {trials}{NBSP}trials, {} in {others_failed}{of}{p}",
        names.arm(first),
        names.arm(second)
    ))
}

/// One sentence that says the verdict of a row and how often the arms failed.
pub(super) fn sentence(comparison: &Comparison, names: &Names<'_>) -> String {
    let verdict = verdict_sentence(comparison, names);
    match failures(comparison, names) {
        Some(failures) if comparison.verdict == Verdict::NotComparable => {
            format!("{verdict}: {failures}, and the trials that failed may have been its slow ones")
        }
        Some(failures) => format!("{verdict}; {failures}"),
        None => verdict,
    }
}

fn verdict_sentence(comparison: &Comparison, names: &Names<'_>) -> String {
    let (base, cand) = (names.arm(&comparison.baseline.arm), names.arm(&comparison.candidate.arm));
    let prefix = names.before(&comparison.row);
    let metric = &comparison.metric.name;
    let change = change_words(comparison);
    let evidence = evidence(comparison);
    if let Some(claim) = claim(comparison, names) {
        let change = match names_metric(comparison) {
            true => change.strip_prefix(metric.as_str()).unwrap_or(&change).trim_start(),
            false => change.as_str(),
        };
        let needed = match &comparison.verdict {
            Verdict::Undecided { rounds_to_claim, rounds_for_no_difference } if !names.aa => what_it_takes(
                comparison,
                [*rounds_to_claim, *rounds_for_no_difference],
                &counted(comparison).1,
                &plain_percent(comparison.delta),
            ),
            _ => String::new(),
        };
        let expected = as_expected(comparison, names);
        let alike = alike_words(comparison);
        return format!("{prefix}{claim}{expected}: {change}, {evidence}{alike}{needed}");
    }
    match &comparison.verdict {
        Verdict::SoFar { rounds, of } => format!(
            "{prefix}{SO_FAR}, {rounds} of {of}{NBSP}rounds: {change} for {cand} against {base}; no verdict before the last"
        ),
        Verdict::TooFew { n } => format!(
            "{prefix}too few {} to judge {cand} against {base}: {change}, {evidence} ({n} of the 4 that an interval needs)",
            counted(comparison).0
        ),
        Verdict::NotMeasured(reason) => {
            format!("{prefix}{cand} cannot be compared with {base} on {metric}: {reason}")
        }
        _ => format!("{prefix}{cand} is not comparable with {base}"),
    }
}

/// `direct=1 is faster than direct=0 by more than 2 %`: what was judged, without the row, the figures and the evidence, so that rows
/// that show one difference have the same words. `None` where nothing was judged.
pub(super) fn claim(comparison: &Comparison, names: &Names<'_>) -> Option<String> {
    let (base, cand) = (names.arm(&comparison.baseline.arm), names.arm(&comparison.candidate.arm));
    let below = plain_percent(edge(comparison));
    Some(match &comparison.verdict {
        Verdict::NoDifference { real_but_below_delta: false } => {
            let below = plain_percent(comparison.delta);
            format!("no difference beyond {below} between {cand} and {base}")
        }
        Verdict::Faster { .. } | Verdict::Slower { .. } | Verdict::NoDifference { .. } => {
            let how = manner(&comparison.metric, comparison.is_better() == Some(true));
            let by = match comparison.verdict {
                Verdict::NoDifference { .. } => format!(", but by less than {below} (real but below δ)"),
                // Of nothing there is no share.
                _ if comparison.effect.is_none() => String::new(),
                _ if is_beyond_delta(&comparison.verdict) => format!(" by more than {below}"),
                _ if is_claimed_alike(comparison) => String::new(),
                _ => format!(", maybe by less than {below}"),
            };
            let word = how.word;
            match how.amount {
                None => format!("{cand} is {word} than {base}{by}"),
                Some(verb) => format!("{cand} {verb} {word} {} than {base}{by}", comparison.metric.name),
            }
        }
        // More rounds would show nothing: the two are the same.
        Verdict::Undecided { .. } if names.aa => format!("no difference claimed between {cand} and {base}"),
        Verdict::Undecided { .. } => format!("undecided whether {cand} differs from {base}"),
        _ => return None,
    })
}

/// The share that a change of this sign was held against: δ is a factor, so that of what is less a smaller share is as much. What rounds to
/// δ is δ.
fn edge(comparison: &Comparison) -> f64 {
    let delta = comparison.delta;
    let is_less =
        comparison.difference.is_none() && comparison.effect.is_some_and(|effect| effect.estimate < 0.0);
    let less = 1.0 - 1.0 / (1.0 + delta);
    if is_less && delta - less > SAME_SHARE { less } else { delta }
}

/// What stands behind a claim that was to be expected: two arms that are the same do not differ.
pub(super) fn as_expected(comparison: &Comparison, names: &Names<'_>) -> &'static str {
    let is_undecided = matches!(comparison.verdict, Verdict::Undecided { .. });
    if names.aa && is_undecided { ", as it should be" } else { "" }
}

/// Whether the words of a claim name the metric: of an amount there is more or less.
pub(super) fn names_metric(comparison: &Comparison) -> bool {
    let is_claimed = match comparison.verdict {
        Verdict::NoDifference { real_but_below_delta } => real_but_below_delta,
        Verdict::Faster { .. } | Verdict::Slower { .. } => true,
        _ => false,
    };
    is_claimed && manner(&comparison.metric, comparison.is_better() == Some(true)).amount.is_some()
}

/// `bw +31.2 % [+29.0, +33.5]`: by how much the metric changed.
fn change_words(comparison: &Comparison) -> String {
    let metric = &comparison.metric.name;
    let decimals = effect_decimals(comparison.effect);
    let ratio = shown_change(comparison);
    let mut words = if ratio.is_finite() {
        format!("{metric} {}", change(ratio, decimals))
    } else if comparison.baseline.mean == comparison.candidate.mean {
        format!("{metric} is {} in both", comparison.baseline.mean)
    } else {
        format!("{metric} has no ratio")
    };
    let interval = interval_of(comparison);
    if let Some(raw) = raw_change(comparison) {
        words = raw;
    } else if !interval.is_empty() {
        words.push_str(&format!(" {interval}"));
    }
    if let Some(corrected) = comparison.corrected {
        words.push_str(&format!(" ({} corrected for the early stop)", change(corrected, decimals)));
    }
    words
}

/// What would decide an undecided row: rounds to claim, and to show that nothing differs; or why no rounds would.
fn what_it_takes(comparison: &Comparison, rounds: [Option<u32>; 2], another: &str, below: &str) -> String {
    let coarse = too_coarse(comparison);
    match rounds {
        [None, None] if comparison.effect.is_none() && comparison.difference.is_some() => {
            format!("; the baseline's usual value is 0, and {below} of it is nothing")
        }
        [None, None] if !coarse.is_empty() => coarse,
        [claim, none] => needed(claim, none, another, below) + &coarse,
    }
}

/// Why more rounds cannot show that nothing differs, when the metric's steps are the reason.
pub(super) fn too_coarse(comparison: &Comparison) -> String {
    let step = comparison.caveats.iter().find_map(|caveat| match caveat {
        Caveat::Steps { step, refused: true } => Some(*step),
        _ => None,
    });
    step.map_or_else(String::new, |step| {
        format!("; the metric has steps of {}; choose another metric or a longer trial", step_size(step))
    })
}

/// More rounds than this are not run on a machine that somebody waits for.
pub(super) const MOST_ROUNDS: u32 = 1_000;

/// What an undecided row would probably take.
fn needed(claim: Option<u32>, none: Option<u32>, what: &str, below: &str) -> String {
    let [claim, none] = [claim, none].map(|rounds| rounds.filter(|rounds| *rounds <= MOST_ROUNDS));
    // A run that stops by itself may not have as many.
    let by = |rounds: u32| match what == "rounds" && rounds > StopRule::MOST_ROUNDS {
        true => format!(" (--rounds {rounds})"),
        false => String::new(),
    };
    match (claim, none) {
        (None, None) => format!(
            "; not on this machine: it is too noisy to tell them apart, or to show that they do not differ beyond {below}, in \
             {MOST_ROUNDS} {what}"
        ),
        (Some(c), Some(n)) if n >= c => format!(
            "; about {c} {what} would probably show this difference, about {n} that nothing differs beyond {below}{}",
            by(n)
        ),
        (Some(c), None) => format!("; about {c} {what} would probably show this difference{}", by(c)),
        (_, Some(n)) => {
            format!("; about {n} {what} would probably show that nothing differs beyond {below}{}", by(n))
        }
    }
}

#[cfg(test)]
mod tests;
