//! What is said of comparisons that were judged by clusters (boots, hosts, sessions) and not by trials.
//!
//! Enters: comparisons and their caveats. Leaves: words. The numbers were computed by analyse.

use super::words::{NBSP, plain_percent};
use crate::analyse::{Caveat, Comparison, Method};

/// Clusters that make this part of the error leave little for more repeats to do.
const MOST_OF_THE_ERROR: f64 = 0.7;

/// What a comparison by clusters rests on.
pub(super) struct Counted<'c> {
    /// What one is called: `boot`.
    pub kind: &'c str,
    /// Clusters of the baseline and of the candidate.
    pub arms: [u32; 2],
    /// Clusters with both arms.
    pub both: u32,
    /// Whether each cluster gives one difference.
    pub paired: bool,
}

/// The clusters of a comparison; `None` where trials or rounds were judged.
pub(super) fn counted(comparison: &Comparison) -> Option<Counted<'_>> {
    comparison.caveats.iter().find_map(|caveat| match caveat {
        Caveat::Clustered { kind, baseline, candidate, both, method } => {
            let arms = [*baseline, *candidate];
            Some(Counted { kind, arms, both: *both, paired: is_paired(*method, arms, *both) })
        }
        _ => None,
    })
}

fn is_paired(method: Method, arms: [u32; 2], both: u32) -> bool {
    match method {
        Method::ClusterSignedRank | Method::ClusterT => true,
        Method::ClusterMannWhitney | Method::ClusterWelch => false,
        _ => arms == [both; 2],
    }
}

impl Counted<'_> {
    /// `8 boots`, `5 boots each`, `5 and 6 boots`.
    pub(super) fn words(&self) -> String {
        let kind = self.kind;
        match (self.paired, self.arms) {
            (true, _) if self.both == 1 => format!("1{NBSP}{kind}"),
            (true, _) => format!("{}{NBSP}{kind}s", self.both),
            (false, [1, 1]) => format!("one {kind} each"),
            (false, [a, b]) if a == b => format!("{a}{NBSP}{kind}s each"),
            (false, [a, b]) => format!("{a} and {b}{NBSP}{kind}s"),
        }
    }
}

/// What [`Caveat::Clustered`] means.
pub(super) fn judged_by(kind: &str, arms: [u32; 2], both: u32, method: Method) -> String {
    let [a, b] = arms;
    let alone = a + b - 2 * both;
    let test = match method {
        Method::ClusterSignedRank => "exact signed rank of one difference",
        Method::ClusterT => "Student's t of one difference",
        Method::ClusterMannWhitney => "Mann-Whitney U of one mean",
        Method::ClusterWelch => "Welch's t of one mean",
        _ => {
            return format!(
                "too few {kind}s: what {kind}s differ in cannot be told from a difference of the arms with fewer than 4 \
                 {kind}s an arm, however many trials each has"
            );
        }
    };
    let mut text = format!("judged by {kind}s, not by trials: {test} a {kind} (log scale)");
    if is_paired(method, arms, both) {
        text.push_str(&format!("; what a {kind} does to both arms cancels"));
        match alone {
            0 => {}
            1 => text.push_str(&format!("; 1 {kind} with one arm only is left out")),
            more => text.push_str(&format!("; {more} {kind}s with one arm only are left out")),
        }
    } else if both > 0 {
        text.push_str(&format!(
            "; {both} of the {kind}s hold both arms, too few to judge by their differences: the interval is rather too wide"
        ));
    }
    text
}

/// How much clusters and trials differ, as [`Caveat::ClusterVariance`] has it.
pub(super) struct Variance<'c> {
    /// What one is called.
    pub kind: &'c str,
    /// Standard deviation between clusters, log scale.
    pub between: f64,
    /// Within.
    pub within: f64,
    /// Between clusters, of both arms alike.
    pub cancelled: Option<f64>,
    /// Part of the error that clusters make.
    pub share: f64,
    /// Trials of an arm in a cluster.
    pub repeats: f64,
    /// Those that serve best.
    pub best_repeats: Option<u32>,
}

impl Variance<'_> {
    /// Both spreads, and what to repeat more often next time.
    pub(super) fn words(&self) -> String {
        let kind = self.kind;
        let spread = |log: f64| plain_percent((log.exp_m1() * 1e3).round() / 1e3);
        let mut text = match self.cancelled {
            Some(cancelled) => format!(
                "standard deviations: between {kind}s {} of both arms alike, which cancels, and {} of their difference; \
                 between trials of a {kind} {}",
                spread(cancelled),
                spread(self.between),
                spread(self.within)
            ),
            None => format!(
                "standard deviations: between {kind}s {}, between trials of a {kind} {}",
                spread(self.between),
                spread(self.within)
            ),
        };
        let share = plain_percent((self.share * 100.0).round() / 100.0);
        let advice = if self.between == 0.0 {
            format!(
                "the {kind}s are as alike as trials of one: next time more trials serve as well as more {kind}s"
            )
        } else if self.share >= MOST_OF_THE_ERROR {
            format!(
                "{kind}s make {share} of the error: next time more {kind}s, more trials in each hardly help"
            )
        } else if self.share <= 1.0 - MOST_OF_THE_ERROR {
            format!("{kind}s make {share} of the error: next time more trials in each {kind} help as well")
        } else {
            format!(
                "{kind}s make {share} of the error: next time more {kind}s and more trials in each both help"
            )
        };
        text.push_str(&format!("; {advice}"));
        if let Some(best) = self.best_repeats {
            let trials = if best == 1 { "trial" } else { "trials" };
            text.push_str(&format!(
                " ({best} {trials} of an arm in each would be best where another {kind} takes as long as ten trials; there were {})",
                (self.repeats * 10.0).round() / 10.0
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_and_what_is_left_out_are_named() {
        let text = judged_by("boot", [5, 5], 0, Method::ClusterMannWhitney);
        assert_eq!(text, "judged by boots, not by trials: Mann-Whitney U of one mean a boot (log scale)");
        let text = judged_by("host", [9, 8], 8, Method::ClusterSignedRank);
        assert!(text.ends_with("cancels; 1 host with one arm only is left out"), "{text}");
        let text = judged_by("day", [6, 6], 2, Method::ClusterWelch);
        assert!(text.contains("2 of the days hold both arms"), "{text}");
        assert!(judged_by("boot", [2, 2], 0, Method::ChangeOnly).starts_with("too few boots"));
    }

    #[test]
    fn the_larger_variance_is_what_to_repeat() {
        let of = |between: f64, share, best_repeats| {
            let variance = Variance {
                kind: "boot",
                between,
                within: 0.01,
                cancelled: None,
                share,
                repeats: 6.0,
                best_repeats,
            };
            variance.words()
        };
        assert_eq!(
            of(0.0202, 0.96, Some(2)),
            "standard deviations: between boots 2\u{a0}%, between trials of a boot 1\u{a0}%; boots make 96\u{a0}% of the error: next \
             time more boots, more trials in each hardly help (2 trials of an arm in each would be best where another boot takes \
             as long as ten trials; there were 6)"
        );
        assert!(of(0.004, 0.5, Some(8)).contains("both help"));
        assert!(of(0.0, 0.0, None).ends_with("next time more trials serve as well as more boots"));
    }
}
