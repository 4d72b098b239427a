//! A statement about a ratio, whether the published figures bear it out, and whether ours do.
//!
//! Enters: ratios. Leaves: a line of a table, a reason where the two differ.

use assay::stats::signed_rank;
use assay::stats::student_t;
use assay::stats::walsh::Walsh;

/// Where a ratio lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Claim {
    /// Above this.
    Above(f64),
    /// Below this.
    Below(f64),
    /// Between these.
    Between(f64, f64),
}

/// A ratio and how far it may be off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// Pairs it is of, one a round.
    pub(crate) rounds: usize,
}

/// What may lie behind it where the shapes do not agree. Written before the figures, so each is told only of the outcome
/// it is for; empty: nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reasons {
    /// Why the interval may be wide.
    pub(crate) unclear: &'static str,
    /// Why the ratio may really lie elsewhere here.
    pub(crate) differs: &'static str,
}

impl Reasons {
    /// None is known.
    pub(crate) const NONE: Reasons = Reasons { unclear: "", differs: "" };
}

impl Ratio {
    /// Of pairs, one a round: the numerator and the denominator.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let logs: Vec<f64> = pairs.iter().map(|(over, under)| (over / under).ln()).collect();
        let walsh = Walsh::new(&logs)?;
        let ranks = signed_rank::critical(logs.len(), 0.05).and_then(|k| walsh.interval(k));
        // Fewer than six pairs have no rank interval at 95 %.
        let interval = match (ranks, logs.len()) {
            (Some(ranks), _) => Some((ranks.low.exp(), ranks.high.exp())),
            (None, 4..) => {
                student_t::paired(&logs, 0.05).map(|t| (t.interval.low.exp(), t.interval.high.exp()))
            }
            (None, _) => None,
        };
        Some(Ratio { value: walsh.hodges_lehmann().exp(), interval, rounds: pairs.len() })
    }
}

/// A statement of a study in numbers.
pub(crate) struct Shape {
    /// In words, with what is divided by what.
    pub(crate) says: String,
    /// What makes it true.
    pub(crate) claim: Claim,
    /// The published ratio; not a number where there is none.
    pub(crate) published: f64,
    /// The one measured here.
    pub(crate) here: Ratio,
    /// The likely reasons, by outcome.
    pub(crate) otherwise: Reasons,
}

impl Claim {
    fn holds(self, value: f64) -> bool {
        match self {
            Claim::Above(bound) => value > bound,
            Claim::Below(bound) => value < bound,
            Claim::Between(low, high) => (low..=high).contains(&value),
        }
    }

    /// Some(true): it holds in the whole interval, Some(false): nowhere in it.
    fn judged(self, ratio: Ratio) -> Option<bool> {
        let (low, high) = ratio.interval?;
        let nowhere = match self {
            Claim::Above(bound) => high <= bound,
            Claim::Below(bound) => low >= bound,
            Claim::Between(least, most) => high < least || low > most,
        };
        match () {
            () if self.holds(low) && self.holds(high) => Some(true),
            () if nowhere => Some(false),
            () => None,
        }
    }

    fn words(self) -> String {
        match self {
            Claim::Above(bound) => format!("above {bound}"),
            Claim::Below(bound) => format!("below {bound}"),
            Claim::Between(low, high) => format!("{low} to {high}"),
        }
    }
}

impl Shape {
    /// A row of the table.
    pub(crate) fn line(&self) -> String {
        let interval = match self.here.interval {
            Some((low, high)) => format!(" [{low:.2}, {high:.2}]"),
            None => " (too few rounds)".to_owned(),
        };
        let published = match self.published {
            value if value.is_nan() => "—".to_owned(),
            value if self.claim.holds(value) => format!("{value:.2}"),
            value => format!("{value:.2} (does not hold there either)"),
        };
        let word = match self.claim.judged(self.here) {
            Some(true) => "agrees",
            Some(false) => "**does not agree**",
            None => "not clear here",
        };
        format!(
            "| {}: {} | {published} | {:.2}{interval} | {word} |",
            self.says,
            self.claim.words(),
            self.here.value
        )
    }

    /// Why it does not agree, or why that is not clear; by what was found, not by what was expected.
    pub(crate) fn reason(&self) -> Option<String> {
        let rounds = self.here.rounds;
        let why = match (self.claim.judged(self.here), self.here.interval) {
            (Some(true), _) => return None,
            (Some(false), _) if self.otherwise.differs.is_empty() => "no reason is known.".to_owned(),
            (Some(false), _) => self.otherwise.differs.to_owned(),
            (None, None) => format!("{rounds} rounds have no interval."),
            (None, Some(_)) => {
                format!("the interval of {rounds} rounds leaves both open. {}", self.otherwise.unclear)
            }
        };
        let what = self.says.split(", ").next().unwrap_or(&self.says);
        Some(format!("- {what}: {}", why.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(claim: Claim, pairs: &[(f64, f64)]) -> Shape {
        let here = Ratio::of(pairs).unwrap();
        let otherwise = Reasons { unclear: "It is noisy.", differs: "it is another machine." };
        Shape { says: "it is more, a / b".to_owned(), claim, published: 2.0, here, otherwise }
    }

    fn shape(claim: Claim, pairs: &[(f64, f64)]) -> String {
        made(claim, pairs).line()
    }

    #[test]
    fn a_reason_is_that_of_what_was_found() {
        let twice: Vec<(f64, f64)> = (0..8).map(|n| (2.0 + f64::from(n) / 100.0, 1.0)).collect();
        let half: Vec<(f64, f64)> = twice.iter().map(|(over, under)| (*under, *over)).collect();
        let both: Vec<(f64, f64)> = twice[..4].iter().chain(&half[..4]).copied().collect();
        let reason = |pairs: &[(f64, f64)]| made(Claim::Above(1.0), pairs).reason();
        assert_eq!(reason(&twice), None);
        // A narrow interval on the other side is not called wide.
        assert_eq!(reason(&half).unwrap(), "- it is more: it is another machine.");
        let said = "- it is more: the interval of 8 rounds leaves both open. It is noisy.";
        assert_eq!(reason(&both).unwrap(), said);
        assert_eq!(reason(&twice[..3]).unwrap(), "- it is more: 3 rounds have no interval.");
        let unknown = Shape { otherwise: Reasons::NONE, ..made(Claim::Above(1.0), &half) };
        assert_eq!(unknown.reason().unwrap(), "- it is more: no reason is known.");
    }

    #[test]
    fn a_shape_agrees_with_its_whole_interval_only() {
        let twice: Vec<(f64, f64)> = (0..8).map(|n| (2.0 + f64::from(n) / 100.0, 1.0)).collect();
        let half: Vec<(f64, f64)> = twice.iter().map(|(over, under)| (*under, *over)).collect();
        let both: Vec<(f64, f64)> = twice[..4].iter().chain(&half[..4]).copied().collect();
        assert!(shape(Claim::Above(1.0), &twice).ends_with("| agrees |"));
        assert!(shape(Claim::Below(1.0), &twice).contains("2.00 (does not hold there either)"));
        assert!(shape(Claim::Above(1.0), &half).ends_with("| **does not agree** |"));
        assert!(shape(Claim::Between(0.9, 1.1), &half).ends_with("| **does not agree** |"));
        assert!(shape(Claim::Above(1.0), &both).ends_with("| not clear here |"));
        assert!(shape(Claim::Above(1.0), &twice[..3]).ends_with("(too few rounds) | not clear here |"));
    }
}
