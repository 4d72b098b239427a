//! One comparison and what belongs to it, as values. No text is made here; reports word them.

use serde::{Deserialize, Serialize};

// `why` imports all of an analysis from here.
pub(super) use super::analysis::Analysis;
use crate::record::{Direction, LatencyKind, Metric, SoFar};
use crate::units::Better;

/// A row of the result: the levels of the factors that are not compared, and the job or group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowKey {
    /// (factor, level) of every factor that is not compared, in the design's order.
    pub levels: Vec<(String, String)>,
    /// Job or group; empty for the whole trial.
    pub job: String,
}

/// Whether a metric decides or only accompanies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The one metric of its row that decides.
    Primary,
    /// Shown besides; Benjamini–Hochberg at q = 0.05.
    Exploratory,
}

/// The judgement of one comparison (the candidate relative to the baseline, "better" already applied).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval excludes 0 on the good side and reaches out of the band (−δ, δ).
    Faster {
        /// All of it lies beyond δ; otherwise the difference may be less than δ.
        beyond_delta: bool,
    },
    /// The same on the bad side.
    Slower {
        /// All of it lies beyond δ; otherwise the difference may be less than δ.
        beyond_delta: bool,
    },
    /// The interval lies inside (−δ, δ).
    NoDifference {
        /// It also excludes 0: real, but below δ.
        real_but_below_delta: bool,
    },
    /// The arms' failures are unequal, so that what worked cannot be compared; see [`Comparison::failures`].
    NotComparable,
    /// Neither; with the rounds it would probably take.
    Undecided {
        /// Rounds (or repeats) to claim the difference seen, 14·(s_D/θ)², more where rows share α.
        rounds_to_claim: Option<u32>,
        /// Rounds (or repeats) to claim no difference, 20·(s_D/δ)², more where rows share α.
        rounds_for_no_difference: Option<u32>,
    },
    /// A fixed number of rounds of which some are missing: figures, and no verdict before the last.
    SoFar {
        /// Rounds that count.
        rounds: u32,
        /// Rounds asked for.
        of: u32,
    },
    /// Fewer than 4 repeats or rounds: change only.
    TooFew {
        /// How many there were.
        n: usize,
    },
    /// Nothing to compare (an arm without values); the reason.
    NotMeasured(String),
}

/// Trials of one row that failed by themselves at any of their attempts: a retry that worked does not undo it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureCounts {
    /// Failed trials of the baseline.
    pub baseline_failed: u32,
    /// Of how many; in paired designs of the rounds in which both arms were tried.
    pub baseline_trials: u32,
    /// Failed trials of the candidate.
    pub candidate_failed: u32,
    /// Of how many.
    pub candidate_trials: u32,
    /// Exact two-sided p: McNemar's over rounds, Fisher's for unpaired results; none before the last of a fixed number of rounds.
    pub p: Option<f64>,
}

/// Candidate relative to baseline as ratio − 1 in the metric's own direction (+0.12: 12 % more).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Hodges–Lehmann estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Which procedure gave interval and p.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Paired, sequential: mean ± t, from n = 4 until signed ranks take over (n = 8 for one comparison).
    SequentialT,
    /// Paired, sequential: Walsh interval with k_n.
    SequentialSignedRank,
    /// Paired, `--anytime`: bets on the signs of D, valid at any number of looks.
    Anytime,
    /// Paired, fixed number of rounds, 2^(1−n) ≤ α/(4m) for m comparisons: exact signed rank.
    FixedSignedRank,
    /// Paired, fixed number of rounds, fewer: t.
    FixedT,
    /// Paired, a run without lead-ins in which a carry-over shows: the difference without it, by least squares and t, once at the
    /// end.
    CarryOverAdjusted,
    /// Unpaired: Mann–Whitney U with the Hodges–Lehmann shift.
    MannWhitney,
    /// By cluster, both arms in each: exact signed rank of one difference a cluster.
    ClusterSignedRank,
    /// By cluster, both arms in each, too few for ranks: Student's t of one difference a cluster.
    ClusterT,
    /// By cluster, one arm in each: Mann–Whitney U of the clusters' means.
    ClusterMannWhitney,
    /// By cluster, one arm in each, too few for ranks: Welch's t of the clusters' means.
    ClusterWelch,
    /// Unpaired effects of factors: Welch's t of the cells' weighted means.
    ContrastWelch,
    /// No interval.
    ChangeOnly,
}

impl Method {
    /// Whether failed trials can be ranked as worse than any value: not in the mean of a cluster, nor on a line through all rounds.
    pub(super) fn ranks_failures(self) -> bool {
        !matches!(
            self,
            Method::CarryOverAdjusted
                | Method::ClusterSignedRank
                | Method::ClusterT
                | Method::ClusterMannWhitney
                | Method::ClusterWelch
        )
    }
}

/// One arm's values of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// The arm's label.
    pub arm: String,
    /// Number of trials with a value.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Harmonic mean (NaN when a value is ≤ 0).
    pub harmonic_mean: f64,
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation, n − 1 (NaN for n = 1).
    pub stddev: f64,
    /// Share of trials that stalled: beyond 1.5 × the arm's own median in the bad direction.
    pub stall_rate: f64,
    /// The values in trial order with (round, position within the round, started_unix_ns).
    pub values: Vec<(u32, u32, u64, f64)>,
}

/// Something a reader must know about one comparison or the whole; reports turn them into footnotes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caveat {
    /// Fewer than 4 repeats: change only.
    TooFewRepeats {
        /// How many there were.
        n: usize,
    },
    /// Judged by clusters (boots, hosts, sessions), not by trials.
    Clustered {
        /// What one is called: `boot`.
        kind: String,
        /// Clusters that hold the baseline.
        baseline: u32,
        /// Clusters that hold the candidate.
        candidate: u32,
        /// Clusters that hold both.
        both: u32,
        /// By which test; [`Method::ChangeOnly`]: too few clusters for one.
        method: Method,
    },
    /// How much clusters differ, and trials within one: standard deviations on the log scale.
    ClusterVariance {
        /// What one is called: `boot`.
        kind: String,
        /// Between clusters; where both arms are in each, of their difference.
        between: f64,
        /// Within clusters.
        within: f64,
        /// Where both arms are in each: what clusters differ in for both, which the difference is free of.
        cancelled: Option<f64>,
        /// Part of the error that more repeats in a cluster would not take away.
        share: f64,
        /// Trials of an arm in a cluster, on average.
        repeats: f64,
        /// Repeats of an arm that serve best where a new cluster takes as long as ten trials; `None`: clusters do not differ.
        best_repeats: Option<u32>,
    },
    /// Imported results: order and drift are unknown.
    OrderUnknown,
    /// Imported results whose timestamps show the arms interleaved.
    Interleaved,
    /// Imported results whose timestamps show one arm after the other.
    Sequential,
    /// Stopped early with a difference: the estimate is too large on average (METHODOLOGY's simulation says by how much).
    StoppedEarly,
    /// Stopped early with none: the estimate is nearer to 0 on average than the difference is.
    StoppedAlike,
    /// The typical trial (HL) and the mean disagree.
    MeanDisagrees {
        /// Hodges–Lehmann change.
        typical: f64,
        /// Change of the mean.
        mean: f64,
    },
    /// The medians of the arms differ the other way than the pairs of trials do, by what the interval excludes, or by a ratio more than 1.5
    /// times that of the pairs or its inverse.
    MediansDisagree {
        /// Change from median to median.
        medians: f64,
    },
    /// Values ≤ 0 have no logarithm: judged by differences of the values, δ and shares relative to the baseline's
    /// median |value|.
    NotPositive,
    /// The primary metric was chosen after the run.
    ChosenAfterwards {
        /// The one that decided the run itself; `None` where its row had none.
        instead_of: Option<String>,
    },
    /// An exploratory metric of a run that its primary metric ended early: p is too small where it moves with that.
    AfterEarlyStop,
    /// The order within a round mattered: effect of running second, as ratio − 1.
    OrderEffect {
        /// Estimated effect.
        effect: f64,
        /// Its p.
        p: f64,
    },
    /// What a trial leaves behind for the one after it.
    CarryOver {
        /// The candidate.
        arm: String,
        /// The deciding metric after a trial of it, relative to after one of the baseline, as ratio − 1.
        effect: Interval,
        /// Its p.
        p: f64,
        /// A trial that is not judged led into each round, so that it falls on all arms alike.
        lead_in: bool,
    },
    /// The baseline drifted over the run (Mann–Kendall).
    BaselineDrift {
        /// Theil–Sen slope, ratio − 1 a round.
        slope_per_round: f64,
        /// Mann–Kendall p.
        p: f64,
    },
    /// The difference itself drifted: a warning.
    EffectDrift {
        /// Theil–Sen slope, ratio − 1 a round.
        slope_per_round: f64,
        /// Mann–Kendall p.
        p: f64,
    },
    /// Successive differences are correlated: a warning.
    Autocorrelated {
        /// Lag-1 autocorrelation of D.
        r1: f64,
    },
    /// A quantile was refused: too few operations a trial.
    QuantileRefused {
        /// Which metric.
        metric: String,
        /// Operations a trial needed.
        needed: u64,
        /// Operations the smallest trial had.
        had: u64,
    },
    /// User or kernel time was refused: a typical trial of an arm has too little for the ticks that divide them.
    ProcessorTimeRefused {
        /// Which metric.
        metric: String,
    },
    /// Trials whose throughput never settled: MSER-5 would cut more than half.
    NeverSettled {
        /// How many.
        trials: u32,
        /// Of how many with a series long enough to tell.
        of: u32,
    },
    /// The metric's values have visible steps: the interval is at least one step to each side of the estimate.
    Steps {
        /// The step, relative to the smaller median of the arms.
        step: f64,
        /// It is above δ/2, and because of it "no difference" was not said.
        refused: bool,
    },
    /// n was too large for the exact distribution: normal approximation with tie correction.
    LargeSampleApproximation,
    /// Rounds left out, with the rule that did it.
    ExcludedRounds {
        /// How many.
        count: u32,
        /// The rule.
        rule: String,
    },
    /// Trials that failed and are not in the values.
    FailedTrials {
        /// How many.
        count: u32,
    },
    /// The failures of the arms leave no verdict.
    UnequalFailures,
    /// Failed trials are in the comparison as worse than any value (`--failures worst`).
    FailuresAsWorst,
    /// Too few repeats for an interval that holds together with those of the other comparisons.
    NoIntervalTogether,
    /// Rows that share one family: α/m each, or Holm.
    Family {
        /// How many rows share α.
        m: u32,
    },
}

/// Why a metric is not listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unlisted {
    /// In all trials of the row it has one and the same ratio to another metric.
    SameAs {
        /// That metric.
        metric: String,
    },
    /// It counts work of which the trials did different amounts: its form for each operation or byte is listed.
    Form {
        /// That metric.
        metric: String,
    },
    /// Page faults or context switches of which every arm of the row has but a few.
    Few,
}

/// One candidate against the baseline, on one metric, in one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The row.
    pub row: RowKey,
    /// The metric (its `job` equals the row's).
    pub metric: Metric,
    /// Whether it decides.
    pub role: Role,
    /// The baseline's values.
    pub baseline: ArmSummary,
    /// The candidate's values.
    pub candidate: ArmSummary,
    /// How it was judged.
    pub method: Method,
    /// Pairs (paired) or the smaller arm's n (unpaired).
    pub n: usize,
    /// Effect and interval as ratio − 1 in the metric's own direction; of values ≤ 0 as a share of the baseline's
    /// median |value|; `None`: no interval, or nothing to be a share of.
    pub effect: Option<Interval>,
    /// The estimate of Hodges and Lehmann as ratio − 1, where its interval would not hold together with the others'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// Effect and interval in the metric's unit, where values ≤ 0 have no ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Interval>,
    /// The smallest difference that matters, as a ratio − 1; a document has it once.
    #[serde(skip)]
    pub delta: f64,
    /// `effect` as it would be if this were the only comparison that decides; `None`: it is, or it does not decide. It does not
    /// hold together with those of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Interval>,
    /// Why it needs no line of its own in reports; of those that accompany only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Unlisted>,
    /// The estimate, as ratio − 1, corrected for an early stop with a claim; interval and verdict do not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<f64>,
    /// Ratio of means − 1, always; its 95 % interval where n ≥ 4 and both means are above 0.
    pub mean_change: Interval,
    /// p of the test used; none before the last of a fixed number of rounds.
    pub p: Option<f64>,
    /// p after Holm (primary) or Benjamini–Hochberg (exploratory).
    pub p_adjusted: Option<f64>,
    /// Failed trials of both arms; `None`: none failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailureCounts>,
    /// The judgement. For exploratory metrics: after Benjamini–Hochberg.
    pub verdict: Verdict,
    /// Footnotes.
    pub caveats: Vec<Caveat>,
}

/// Latency quantiles of one arm, from merged histograms, for the curve only (never for a verdict).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantileCurve {
    /// The row.
    pub row: RowKey,
    /// The arm's label.
    pub arm: String,
    /// Read, write or trim.
    pub direction: Direction,
    /// Which latency.
    pub kind: LatencyKind,
    /// Operations in all.
    pub count: u64,
    /// (quantile in 0..1, nanoseconds).
    pub points: Vec<(f64, f64)>,
}

/// A fact in which arms differ although no factor declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDifference {
    /// The fact's name.
    pub fact: String,
    /// (arm, values seen, joined by " | ").
    pub values: Vec<(String, String)>,
}

/// What an A/A run of the same host and job found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// The A/A run's number.
    pub run: Option<i64>,
    /// Metric it is about.
    pub metric: Metric,
    /// Standard deviation of D (log scale), pooled over `pooled_runs`.
    pub s_d: f64,
    /// Lower end of its 95 % interval.
    pub s_d_low: f64,
    /// Upper end of its 95 % interval.
    pub s_d_high: f64,
    /// A/A runs of the same experiment that s_D is from.
    pub pooled_runs: u32,
    /// Half width of the interval, as ratio − 1.
    pub half_width: f64,
    /// N_max, or the fixed number of rounds, of the run that is reported.
    pub rounds: u32,
    /// Smallest effect N_max rounds would show, 3.8·s_D/√N_max, as ratio − 1.
    pub smallest_effect: f64,
    /// A/A runs that were looked at (the latest twenty of the store) and how many of them claimed a difference.
    pub aa_runs: u32,
    /// How many of them claimed a difference.
    pub aa_claims: u32,
    /// Chance of as many claims or more at 5 % a run (binomial).
    pub aa_p: f64,
}

impl Comparison {
    /// Whether the candidate is better, where a difference is claimed, whatever its size; `None`: none is.
    #[must_use]
    pub fn is_better(&self) -> Option<bool> {
        match self.verdict {
            Verdict::Faster { .. } => Some(true),
            Verdict::Slower { .. } => Some(false),
            Verdict::NoDifference { real_but_below_delta: true } => {
                self.effect.map(|effect| (effect.estimate > 0.0) == (self.metric.better == Better::Higher))
            }
            _ => None,
        }
    }

    /// How far it is, while it has no verdict because rounds are missing.
    #[must_use]
    pub fn so_far(&self) -> Option<SoFar> {
        match self.verdict {
            Verdict::SoFar { rounds, of } => Some(SoFar { rounds, of }),
            _ => None,
        }
    }
}
