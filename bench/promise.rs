//! What is promised of a ratio, and whether it was kept.
//!
//! Enters: a ratio with its interval. Leaves: a verdict. It must not know what the ratio is of.

use assay::stats::Estimate;

/// The least ratio of two rates that count as equal: within 2 %.
const EQUAL: f64 = 0.98;
/// How near to bare system calls the engine must come where those leave no room for what is promised.
const OF_BARE: f64 = 0.95;
/// More rounds than anybody would measure.
const TOO_MANY_ROUNDS: f64 = 100_000.0;

/// What was promised.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Promise {
    /// The ratio is at least this: the whole interval lies above it.
    AtLeast(f64),
    /// The ratio is at least this; where bare system calls in a loop are not shown to reach it either, the engine is near to them.
    AtLeastOrBare(f64),
    /// The ratio is at most this: the whole interval lies below it, where there is one.
    AtMost(f64),
    /// Within 2 % or faster, as a test of equivalence: the whole interval must lie above 0.98.
    NotSlower,
    /// Nothing; the row is there to compare with.
    None,
}

/// What came of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    NotPromised,
    Kept,
    /// It was not kept. Bare system calls are not shown to keep it either, and the engine is near to them.
    AsBare,
    Missed,
    /// The interval holds both; about so many rounds would tell, where that can be said.
    Undecided(Option<usize>),
}

/// A ratio within rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    /// Its interval at 95 %; `None`: too few rounds, or a figure that has none.
    pub(crate) interval: Option<Estimate>,
    pub(crate) rounds: usize,
}

impl Promise {
    /// In words; empty where nothing was promised.
    pub(crate) fn words(self) -> String {
        match self {
            Promise::AtLeast(least) => format!("≥ {least}"),
            Promise::AtLeastOrBare(least) => format!("≥ {least}, or {OF_BARE} of bare"),
            Promise::AtMost(most) => format!("≤ {most}"),
            Promise::NotSlower => format!("interval ≥ {EQUAL}"),
            Promise::None => String::new(),
        }
    }

    /// Whether it was kept; `bare` is the ratio of bare system calls to the same figure, where they were measured.
    pub(crate) fn judge(self, ratio: &Ratio, bare: Option<&Ratio>) -> Verdict {
        match self {
            Promise::AtLeast(least) => at_least(least, ratio),
            Promise::AtLeastOrBare(least) => match (at_least(least, ratio), bare) {
                (Verdict::Kept, _) => Verdict::Kept,
                (_, Some(bare)) if ratio.value >= OF_BARE * bare.value && !is_reached(least, bare) => {
                    Verdict::AsBare
                }
                (verdict, _) => verdict,
            },
            Promise::AtMost(most) => at_most(most, ratio),
            Promise::NotSlower => at_least(EQUAL, ratio),
            Promise::None => Verdict::NotPromised,
        }
    }
}

impl Verdict {
    /// Kept or missed.
    pub(crate) fn of(kept: bool) -> Verdict {
        if kept { Verdict::Kept } else { Verdict::Missed }
    }

    /// One word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::NotPromised => "",
            Verdict::Kept => "kept",
            Verdict::AsBare => "not kept, as bare",
            Verdict::Missed => "MISSED",
            Verdict::Undecided(_) => "undecided",
        }
    }
}

fn at_least(least: f64, ratio: &Ratio) -> Verdict {
    match ratio.interval {
        Some(interval) if interval.low >= least => Verdict::Kept,
        Some(interval) if interval.high < least => Verdict::Missed,
        Some(interval) if ratio.value > least => undecided(least, ratio, interval.low),
        _ => Verdict::Undecided(None),
    }
}

/// Whether all of the interval lies above it.
fn is_reached(least: f64, ratio: &Ratio) -> bool {
    at_least(least, ratio) == Verdict::Kept
}

fn at_most(most: f64, ratio: &Ratio) -> Verdict {
    match ratio.interval {
        None => Verdict::of(ratio.value <= most),
        Some(interval) if interval.high <= most => Verdict::Kept,
        Some(interval) if interval.low > most => Verdict::Missed,
        Some(interval) if ratio.value < most => undecided(most, ratio, interval.high),
        Some(_) => Verdict::Undecided(None),
    }
}

/// The end of the interval lies beyond the limit and the ratio does not: it narrows with the square root of the rounds.
fn undecided(limit: f64, ratio: &Ratio, end: f64) -> Verdict {
    let shorter = (ratio.value - end) / (ratio.value - limit);
    let rounds = ratio.rounds as f64 * shorter * shorter;
    Verdict::Undecided((rounds < TOO_MANY_ROUNDS).then(|| rounds.ceil() as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(low: f64, value: f64, high: f64) -> Verdict {
        let interval = Some(Estimate { estimate: value, low, high });
        Promise::NotSlower.judge(&Ratio { value, interval, rounds: 20 }, None)
    }

    #[test]
    fn equivalence_is_judged_by_the_whole_interval() {
        assert_eq!(judged(0.985, 1.0, 1.015), Verdict::Kept);
        assert_eq!(judged(1.2, 1.3, 1.4), Verdict::Kept, "faster is kept, too");
        assert_eq!(judged(0.9, 0.93, 0.96), Verdict::Missed);
        // Twice as wide as it may be: four times the rounds.
        assert_eq!(judged(0.96, 1.0, 1.04), Verdict::Undecided(Some(80)));
        assert_eq!(judged(0.9, 0.97, 1.04), Verdict::Undecided(None));
        let few = Ratio { value: 1.0, interval: None, rounds: 4 };
        assert_eq!(Promise::NotSlower.judge(&few, None), Verdict::Undecided(None));
        assert_eq!(Promise::AtLeast(1.3).judge(&few, None), Verdict::Undecided(None));
        let interval = Some(Estimate { estimate: 0.969, low: 0.937, high: 0.998 });
        let noisy = Ratio { value: 0.969, interval, rounds: 40 };
        assert_eq!(Promise::AtLeast(0.97).judge(&noisy, None), Verdict::Undecided(None));
        assert_eq!(Promise::AtLeast(0.93).judge(&noisy, None), Verdict::Kept);
        assert_eq!(Promise::AtLeast(1.3).judge(&noisy, None), Verdict::Missed);
        assert_eq!(Promise::AtMost(1.0).judge(&few, None), Verdict::Kept, "a count has no interval");
        assert_eq!(Promise::AtMost(1.0).judge(&noisy, None), Verdict::Kept);
        assert_eq!(Promise::AtMost(0.93).judge(&noisy, None), Verdict::Missed);
        assert_eq!(Promise::AtMost(0.96).judge(&noisy, None), Verdict::Undecided(None));
        assert!(matches!(Promise::AtMost(0.98).judge(&noisy, None), Verdict::Undecided(Some(270..290))));
        assert_eq!(Promise::None.judge(&few, None), Verdict::NotPromised);
    }

    #[test]
    fn where_bare_calls_leave_no_room_the_engine_must_be_near_to_them() {
        let exactly = |value| Some(Estimate { estimate: value, low: value, high: value });
        let ratio = |value| Ratio { value, interval: exactly(value), rounds: 20 };
        let judged = |value, bare| Promise::AtLeastOrBare(1.3).judge(&ratio(value), Some(&ratio(bare)));
        assert_eq!(judged(1.31, 1.5), Verdict::Kept);
        assert_eq!(judged(1.2, 1.25), Verdict::AsBare, "0.96 of bare");
        assert_eq!(judged(1.2, 1.28), Verdict::Missed, "0.94 of bare");
        assert_eq!(judged(1.26, 1.32), Verdict::Missed, "0.955 of bare, which leaves room");
        let interval = Some(Estimate { estimate: 1.32, low: 1.28, high: 1.36 });
        let unclear = Ratio { value: 1.32, interval, rounds: 20 };
        assert_eq!(Promise::AtLeastOrBare(1.3).judge(&ratio(1.28), Some(&unclear)), Verdict::AsBare);
        assert_eq!(Promise::AtLeastOrBare(1.3).judge(&ratio(1.28), None), Verdict::Missed);
    }
}
