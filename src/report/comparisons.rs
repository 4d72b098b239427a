//! Which comparisons a report shows, and which of them together.
//!
//! Enters: a run's analysis. Leaves: comparisons in the order in which they are read. It must not know what is said of them.

use super::format::Options;
use super::operation_times::{is_time, matters};
use super::verdict_words::is_too_short;
use crate::analyse::{Analysis, ArmSummary, Comparison, Role, Verdict};
use crate::record::Run;

/// A value with its round, its place there and its time.
type Value = (u32, u32, u64, f64);

/// Comparisons of one role.
pub(super) fn of_role(analysis: &Analysis, role: Role) -> impl Iterator<Item = &Comparison> {
    analysis.comparisons.iter().filter(move |c| c.role == role)
}

/// The two arms of a comparison.
pub(super) fn arms_of(comparison: &Comparison) -> [&str; 2] {
    [&comparison.baseline.arm, &comparison.candidate.arm]
}

/// The comparisons that tables show: those that decide, and of the others those asked for.
pub(super) fn shown<'a>(run: &Run, analysis: &'a Analysis, options: &Options) -> Vec<&'a Comparison> {
    let Beside { shown: beside, .. } = beside(run, analysis, options);
    let is_beside = |c: &Comparison| beside.iter().any(|other| std::ptr::eq(*other, c));
    // Who names metrics wants their figures, whatever they show.
    let is_asked = options.all_metrics || options.named_metrics;
    let is_shown = |c: &&Comparison| c.role == Role::Primary || is_asked || stands_out(c) || is_beside(c);
    analysis.comparisons.iter().filter(is_shown).collect()
}

/// What does not decide.
pub(super) struct Beside<'c> {
    /// What the experiment wants shown.
    pub(super) shown: Vec<&'c Comparison>,
    /// The same, of which no row matters.
    pub(super) small: usize,
    /// All others.
    pub(super) others: Vec<&'c Comparison>,
}

/// Of what does not decide, the comparisons that the experiment wants shown, and the others. Of a metric that jobs have, those of
/// the jobs are shown, as they are the ones that decide.
pub(super) fn beside<'c>(run: &Run, analysis: &'c Analysis, options: &Options) -> Beside<'c> {
    // What an arm has no value of is told where it decides; a value of 0, of which there is no ratio, is a value.
    let wanted = |c: &&Comparison| {
        // What an experiment asks for is listed, whatever it repeats.
        run.design.shows(&c.metric.name) && c.baseline.n > 0 && c.candidate.n > 0
    };
    let of_jobs = |name: &str| {
        of_role(analysis, Role::Exploratory).any(|c| !c.row.job.is_empty() && c.metric.name == name)
    };
    let (wanted, others): (Vec<&Comparison>, Vec<&Comparison>) = of_role(analysis, Role::Exploratory)
        .partition(|c| wanted(c) && !(c.row.job.is_empty() && of_jobs(&c.metric.name)));
    let all = wanted.len();
    let of_one_table = |c: &Comparison, other: &Comparison| {
        c.metric.name == other.metric.name
            && c.baseline.arm == other.baseline.arm
            && (!is_time(&c.metric) || c.candidate.arm == other.candidate.arm)
    };
    let matters = |c: &&Comparison| {
        let mut table = wanted.iter().filter(|other| of_one_table(c, other));
        options.all_metrics || options.named_metrics || table.any(|c| matters(c, analysis))
    };
    let shown: Vec<&Comparison> = wanted.iter().copied().filter(matters).collect();
    Beside { small: all - shown.len(), shown, others }
}

/// Whether an exploratory metric is worth a line without `--all-metrics`: it differs clearly, and says something of its own.
pub(super) fn stands_out(comparison: &Comparison) -> bool {
    comparison.unlisted.is_none()
        && matches!(comparison.verdict, Verdict::Faster { .. } | Verdict::Slower { .. })
}

/// Two metrics say the same where their ratio is the same to this share in all trials.
const SAME_RATIO: f64 = 0.001;

/// The metric that decides, where this one is the same multiple of it in every trial of both arms: it says nothing of its own.
pub(super) fn repeated<'c>(c: &Comparison, analysis: &'c Analysis) -> Option<&'c str> {
    let ratios = |own: &ArmSummary, of: &ArmSummary| -> Option<Vec<f64>> {
        let same = own.values.len() == of.values.len() && !own.values.is_empty();
        let both = own.values.iter().zip(&of.values);
        let ratio =
            |((round, .., a), (of_round, .., b)): (&Value, &Value)| (round == of_round).then_some(a / b);
        if same { both.map(ratio).collect() } else { None }
    };
    let is_multiple = |of: &&Comparison| {
        let both = ratios(&c.baseline, &of.baseline).zip(ratios(&c.candidate, &of.candidate));
        let Some((base, cand)) = both else { return false };
        let all = || base.iter().chain(&cand).copied();
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        least > 0.0 && all().all(f64::is_finite) && most <= least * (1.0 + SAME_RATIO)
    };
    let decides = of_role(analysis, Role::Primary);
    let mut decides = decides.filter(|of| of.row == c.row && arms_of(of) == arms_of(c));
    Some(decides.find(is_multiple)?.metric.name.as_str())
}

/// Whether the change of a comparison says anything: of a few trials against fewer it is that of one of them, and of a few ticks that of
/// the clock.
pub(super) fn has_change(c: &Comparison) -> bool {
    let is_of_one = matches!(c.verdict, Verdict::TooFew { .. }) && c.baseline.n != c.candidate.n;
    !is_too_short(c) && !is_of_one
}

/// Whether the difference of two means is that of one of a few trials.
pub(super) fn is_chance(n: usize, other: usize) -> bool {
    n != other && n.min(other) < 4
}

/// Comparisons with the same key together, keys in the order of their first use.
pub(super) fn group<'c, K: PartialEq>(
    comparisons: &[&'c Comparison],
    key: impl Fn(&'c Comparison) -> K,
) -> Vec<Vec<&'c Comparison>> {
    let mut groups: Vec<(K, Vec<&Comparison>)> = Vec::new();
    for comparison in comparisons {
        let own = key(comparison);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, members)) => members.push(comparison),
            None => groups.push((own, vec![comparison])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}
