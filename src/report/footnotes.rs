//! Caveats are values; here they become numbered footnotes, each text once.
//!
//! Enters: caveats of comparisons and of the whole. Leaves: sentences. The numbers they contain were computed
//! by analyse; nothing is judged here.

use super::clusters;
use super::counts::Counted;
use super::format::Detail;
use super::words::{NBSP, Names, change, interval, p_equals, percent, plain_percent, step_size};
use crate::analyse::{Caveat, Comparison, Interval, Method};
use crate::units::Better;

/// Footnotes in the order of their first use.
pub(super) struct Footnotes<'c> {
    texts: Vec<Counted>,
    told: Vec<&'c Caveat>,
    detail: Detail,
}

impl<'c> Footnotes<'c> {
    /// No footnotes yet; those of the caveats in `told` will not be made, because they stand elsewhere.
    pub(super) fn besides(told: Vec<&'c Caveat>, detail: Detail) -> Self {
        Footnotes { texts: Vec::new(), told, detail }
    }

    /// The number (from 1) of a footnote, new or used before, also with another count.
    pub(super) fn number(&mut self, text: &str) -> usize {
        if let Some(at) = self.texts.iter_mut().position(|known| known.takes(text)) {
            return at + 1;
        }
        self.texts.push(Counted::new(text));
        self.texts.len()
    }

    /// The numbers of all footnotes of one comparison, ascending.
    pub(super) fn of(&mut self, comparison: &Comparison, names: &Names<'_>) -> Vec<usize> {
        let mut numbers: Vec<usize> = comparison
            .caveats
            .iter()
            .filter(|caveat| !self.told.contains(caveat) && told_from(caveat) <= self.detail)
            .map(|caveat| caveat_text(caveat, Some(comparison), names))
            .collect::<Vec<String>>()
            .into_iter()
            .map(|text| self.number(&text))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The texts, number 1 first.
    pub(super) fn into_texts(self) -> Vec<String> {
        self.texts.iter().map(Counted::text).collect()
    }
}

/// Caveats that every row bears: they are told once, as notes to the whole.
pub(super) fn common_caveats<'c>(primary: &[&'c Comparison]) -> Vec<&'c Caveat> {
    match primary {
        [first, others @ ..] if !others.is_empty() => first
            .caveats
            .iter()
            .filter(|caveat| !matches!(caveat, Caveat::MeanDisagrees { .. } | Caveat::MediansDisagree { .. }))
            .filter(|caveat| others.iter().all(|c| c.caveats.contains(caveat)))
            .collect(),
        _ => Vec::new(),
    }
}

/// p from which on something is only estimated, and has not shown itself.
const SHOWS: f64 = 0.05;

/// The least detail of a report that tells a caveat: on one screen is what may make the verdict wrong.
pub(super) fn told_from(caveat: &Caveat) -> Detail {
    match caveat {
        Caveat::OrderEffect { p, .. } | Caveat::CarryOver { p, lead_in: true, .. } if *p >= SHOWS => {
            Detail::All
        }
        Caveat::StoppedEarly
        | Caveat::StoppedAlike
        | Caveat::AfterEarlyStop
        | Caveat::BaselineDrift { .. }
        | Caveat::CarryOver { lead_in: true, .. }
        | Caveat::LargeSampleApproximation
        | Caveat::ClusterVariance { .. }
        | Caveat::Interleaved
        | Caveat::Steps { refused: false, .. }
        | Caveat::FailedTrials { .. }
        | Caveat::Family { .. } => Detail::Page,
        _ => Detail::Screen,
    }
}

/// A caveat in words; `comparison` is the one it belongs to.
pub(super) fn caveat_text(caveat: &Caveat, comparison: Option<&Comparison>, names: &Names<'_>) -> String {
    match caveat {
        Caveat::TooFewRepeats { n } => {
            format!("needs at least 4 repeats for an interval, has {n}: change of the mean only")
        }
        Caveat::Clustered { kind, baseline, candidate, both, method } => {
            clusters::judged_by(kind, [*baseline, *candidate], *both, *method)
        }
        Caveat::ClusterVariance { kind, between, within, cancelled, share, repeats, best_repeats } => {
            let (between, within, share, repeats) = (*between, *within, *share, *repeats);
            let (cancelled, best_repeats) = (*cancelled, *best_repeats);
            clusters::Variance { kind, between, within, cancelled, share, repeats, best_repeats }.words()
        }
        Caveat::OrderUnknown => {
            "the order of the trials is unknown: drift of the machine between the arms would \
                                 look like a difference"
                .to_owned()
        }
        Caveat::Interleaved => "timestamps show the arms interleaved: drift falls on both".to_owned(),
        Caveat::Sequential => {
            "the arms were measured one after the other: what else changed meanwhile (load, temperature, neighbours) is in the \
                               difference and not in its interval; `assay run … --vary` takes them in turn"
                .to_owned()
        }
        Caveat::StoppedEarly => "stopped as soon as it was clear: such an estimate is too large on \
                                 average, by less than a point where most runs would find the effect, by more where \
                                 few would"
            .to_owned(),
        Caveat::StoppedAlike => "stopped as soon as it was clear that the arms are alike: such an estimate is nearer to 0 on \
                                 average than what it estimates"
            .to_owned(),
        Caveat::MeanDisagrees { typical, mean } => mean_disagrees(*typical, *mean, comparison, names),
        Caveat::MediansDisagree { medians } => medians_disagree(*medians, comparison),
        Caveat::NotPositive => "values of 0 or below have no ratio: judged by their differences; percent and δ are shares \
                                of the baseline's typical size"
            .to_owned(),
        Caveat::ChosenAfterwards { instead_of } => chosen_afterwards(instead_of.as_deref()),
        Caveat::AfterEarlyStop => "exploratory: the run stopped when its primary metric was decided, so p is too small for a \
                                   metric that moves with it"
            .to_owned(),
        Caveat::OrderEffect { .. }
        | Caveat::CarryOver { .. }
        | Caveat::BaselineDrift { .. }
        | Caveat::EffectDrift { .. }
        | Caveat::Autocorrelated { .. } => over_time(caveat, comparison, names),
        Caveat::QuantileRefused { metric, needed, had } => {
            format!("{metric} refused: it needs {needed} operations a trial, the smallest trial had {had}")
        }
        Caveat::ProcessorTimeRefused { metric } => format!(
            "{metric} refused: too short for ticks of up to 10{NBSP}ms, by which kernels divide user and kernel time"
        ),
        Caveat::NeverSettled { trials, of } => format!(
            "warning: in {trials} of {of} trials the first half or more was still warm-up (MSER-5): lengthen the \
             trial or set ramp_time"
        ),
        Caveat::Steps { step, refused } => steps(*step, *refused),
        Caveat::LargeSampleApproximation => {
            "too many values for the exact distribution: normal approximation, corrected for ties".to_owned()
        }
        Caveat::ExcludedRounds { count, rule } => {
            format!("rounds left out by a rule fixed beforehand: {count} ({rule})")
        }
        Caveat::FailedTrials { count: 1 } => "1 trial failed and is not in the values".to_owned(),
        Caveat::FailedTrials { count } => format!("{count} trials failed and are not in the values"),
        Caveat::UnequalFailures => "an arm that fails when it is slow loses its slow values: without its failed trials it \
                                    would look faster than it is; --failures worst counts each of them as worse than \
                                    any value"
            .to_owned(),
        Caveat::FailuresAsWorst => {
            "failed trials are in the change and its interval as worse than any value, not in the means".to_owned()
        }
        Caveat::NoIntervalTogether => "too few repeats for an interval that holds together with those of the other comparisons".to_owned(),
        Caveat::Family { m } => {
            format!("{m} comparisons share one error rate, so each is judged more strictly")
        }
    }
}

/// A caveat about the order of trials and what changed over time; nothing for others.
fn over_time(caveat: &Caveat, comparison: Option<&Comparison>, names: &Names<'_>) -> String {
    match caveat {
        Caveat::OrderEffect { effect, p } if *p < SHOWS => format!(
            "the place within a round matters: a later trial reads {}{NBSP}% ({}); the random order keeps it out of the \
             difference{}",
            percent(*effect, 1),
            p_equals(*p),
            if comparison.is_none_or(is_free_of_place) {
                ", and where it shows it does not widen the interval"
            } else {
                ", and makes the interval wider"
            }
        ),
        Caveat::OrderEffect { effect, p } => format!(
            "effect of the place within a round: {}{NBSP}% for a later trial ({}, not proven); the random order keeps it \
             out of the difference",
            percent(*effect, 1),
            p_equals(*p)
        ),
        Caveat::CarryOver { arm, effect, p, lead_in } => carry_over(&names.arm(arm), *effect, *p, *lead_in),
        Caveat::BaselineDrift { slope_per_round, p } => format!(
            "the baseline drifted by {}{NBSP}% a round ({}); pairing within rounds cancels it",
            percent(*slope_per_round, 2),
            p_equals(*p)
        ),
        Caveat::EffectDrift { slope_per_round, p } => format!(
            "warning: the difference itself drifted by {}{NBSP}% a round ({}): it depends on the state of the machine",
            percent(*slope_per_round, 2),
            p_equals(*p)
        ),
        Caveat::Autocorrelated { r1 } => format!(
            "warning: successive differences are correlated (r = {r1:.2}): the interval may be too narrow"
        ),
        _ => String::new(),
    }
}

/// Whether the place within a round is taken out of the differences before they are judged: signed ranks do that, unless failed trials
/// are among them.
fn is_free_of_place(c: &Comparison) -> bool {
    let ranked = matches!(c.method, Method::SequentialSignedRank | Method::FixedSignedRank);
    ranked && !c.caveats.contains(&Caveat::FailuresAsWorst)
}

fn chosen_afterwards(instead_of: Option<&str>) -> String {
    let own = instead_of.map_or_else(|| "no other".to_owned(), |metric| format!("'{metric}'"));
    format!("this metric was chosen after the run, which {own} decided: its error rate is not promised")
}

fn steps(step: f64, refused: bool) -> String {
    let size = step_size(step);
    if refused {
        format!(
            "the metric has steps of {size}: too coarse to show that nothing differs beyond δ; choose another metric or a longer trial"
        )
    } else {
        format!(
            "the metric has steps of {size}: the interval is at least one step to each side of the estimate"
        )
    }
}

/// What a trial of an arm leaves behind, and what keeps it out of the difference.
fn carry_over(arm: &str, effect: Interval, p: f64, lead_in: bool) -> String {
    let size = format!(
        "{}{NBSP}% [{}, {}]",
        percent(effect.estimate, 1),
        percent(effect.low, 1),
        percent(effect.high, 1)
    );
    match (p < SHOWS, lead_in) {
        (true, true) => format!(
            "a trial leaves something behind: after {arm} the next one reads {size} ({}); the trial that leads into each \
             round, which is not judged, keeps it out of the difference",
            p_equals(p)
        ),
        (false, true) => format!(
            "what {arm} leaves behind for the next trial: {size} ({}, not proven); the trial that leads into each round \
             keeps it out of the difference",
            p_equals(p)
        ),
        (true, false) => format!(
            "warning: a trial leaves something behind: after {arm} the next one reads {size} ({}); where it shows in a \
             row, the difference is adjusted for it, which takes about twice the rounds; a run with lead-ins needs no adjusting",
            p_equals(p)
        ),
        (false, false) => format!(
            "what {arm} leaves behind for the next trial: {size} ({}, not proven); if it is there, half of it is in \
             the difference",
            p_equals(p)
        ),
    }
}

fn mean_disagrees(typical: f64, mean: f64, comparison: Option<&Comparison>, names: &Names<'_>) -> String {
    let mut text = format!(
        "the typical trial and the mean disagree: {} against {}",
        change(typical, 1),
        change(mean, 1)
    );
    if let Some(c) = comparison {
        let of_mean = interval(Some(c.mean_change));
        if !of_mean.is_empty() {
            // The interval of a mean decides nothing, and does not hold together with others.
            text.push_str(&format!("{NBSP}{of_mean} (95{NBSP}% by itself)"));
        }
        if c.baseline.stall_rate.max(c.candidate.stall_rate) > 0.0 {
            text.push_str(&format!(
                "; trials {} their own median: {} {}, {} {}",
                if c.metric.better == Better::Lower { "beyond 1.5 ×" } else { "below two thirds of" },
                names.arm(&c.baseline.arm),
                plain_percent(c.baseline.stall_rate),
                names.arm(&c.candidate.arm),
                plain_percent(c.candidate.stall_rate)
            ));
        }
    }
    text
}

fn medians_disagree(medians: f64, comparison: Option<&Comparison>) -> String {
    let of = match comparison.map(|c| c.method) {
        Some(Method::MannWhitney) => "the typical difference of two trials, one of each arm",
        Some(Method::ClusterSignedRank | Method::ClusterT) => {
            "the typical difference within a cluster, however many trials it has"
        }
        Some(Method::ClusterMannWhitney | Method::ClusterWelch) => {
            "that of the clusters' means, however many trials each has"
        }
        Some(Method::CarryOverAdjusted) => "adjusted for what a trial leaves behind",
        _ => "the typical difference within a round, where both arms meet the same machine",
    };
    let how = match comparison.and_then(|c| c.effect) {
        Some(effect) if medians * effect.estimate >= 0.0 => {
            let is_within = (effect.low..=effect.high).contains(&medians);
            if is_within { "far from the change" } else { "outside the interval of the change" }
        }
        _ => "the other way than the change",
    };
    format!("the medians of all trials differ by {}, {how}, which is {of}", change(medians, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_on_the_bad_side_of_a_metric() {
        let (_, analysis) = crate::report::section_tests::made_up();
        let names = Names::of_factor("direct");
        let told = |better: Better| {
            let mut c = analysis.comparisons[0].clone();
            (c.metric.better, c.candidate.stall_rate) = (better, 0.2);
            caveat_text(&Caveat::MeanDisagrees { typical: 0.1, mean: -0.2 }, Some(&c), &names)
        };
        assert!(
            told(Better::Lower).contains("; trials beyond 1.5 × their own median: "),
            "{}",
            told(Better::Lower)
        );
        let higher = told(Better::Higher);
        assert!(higher.contains("; trials below two thirds of their own median: "), "{higher}");
    }

    #[test]
    fn medians_that_differ_the_other_way_are_said_with_what_the_change_is() {
        let (_, analysis) = crate::report::section_tests::made_up();
        let names = Names::of_factor("direct");
        let of = |medians, method: Method| {
            let mut c = analysis.comparisons[0].clone();
            c.method = method;
            caveat_text(&Caveat::MediansDisagree { medians }, Some(&c), &names)
        };
        let told = |method| of(-0.11, method);
        assert_eq!(
            told(Method::SequentialSignedRank),
            "the medians of all trials differ by −11.0\u{a0}%, the other way than the change, which is the typical difference within a \
             round, where both arms meet the same machine"
        );
        assert!(
            told(Method::MannWhitney)
                .ends_with("which is the typical difference of two trials, one of each arm")
        );
        let mut wide = analysis.comparisons[0].clone();
        wide.effect = Some(Interval { estimate: 1.769, low: -0.2, high: 30.0 });
        let far = caveat_text(&Caveat::MediansDisagree { medians: 17.08 }, Some(&wide), &names);
        assert!(
            far.contains(", far from the change, which is the typical difference within a round"),
            "{far}"
        );
        let outside = of(0.31, Method::SequentialSignedRank);
        assert!(outside.contains("+31.0\u{a0}%, outside the interval of the change, which is"), "{outside}");
    }

    #[test]
    fn an_unproven_effect_of_the_place_is_told_only_with_all() {
        let of_place = |p| told_from(&Caveat::OrderEffect { effect: 0.03, p });
        assert_eq!(
            (of_place(0.049), of_place(0.05), of_place(0.9)),
            (Detail::Screen, Detail::All, Detail::All)
        );
        let left_behind = |p, lead_in| {
            let effect = Interval { estimate: 0.01, low: -0.01, high: 0.03 };
            told_from(&Caveat::CarryOver { arm: "direct=1".to_owned(), effect, p, lead_in })
        };
        assert_eq!((left_behind(0.01, true), left_behind(0.4, true)), (Detail::Page, Detail::All));
        // Nothing keeps it out of the difference there.
        assert_eq!(left_behind(0.4, false), Detail::Screen);
    }
}
