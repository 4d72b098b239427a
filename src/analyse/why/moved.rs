//! Whether the machine that watched is still the one whose difference is explained: it may be days later.
//!
//! Enters: the sum that is explained, and the unwatched trials of the run that watched. Leaves: whether they take other times. It must not
//! know what was watched.

use super::super::budget::BudgetLine;
use super::super::watching::MOVED;
use super::source::Source;

/// The time of all workers.
const WALL: &str = "workers.wall";

/// Whether the baseline takes another time now, or the difference is surely another one. Of trials that are too few nobody knows.
pub(super) fn has_moved(then: &BudgetLine, now: &Source<'_>) -> bool {
    now.time(WALL).is_some_and(|now| is_another(then, &now))
}

fn is_another(then: &BudgetLine, now: &BudgetLine) -> bool {
    let is_far = |then: f64, now: f64| (now - then).abs() > MOVED * then.abs();
    let (whole, again) = (then.difference_ns.estimate, now.difference_ns);
    // Few rounds watch: their difference is less sure than that of the run.
    let is_surely_other = whole < again.low || whole > again.high;
    is_far(then.baseline_ns, now.baseline_ns) || is_surely_other && is_far(whole, again.estimate)
}

#[cfg(test)]
mod tests {
    use super::super::super::comparison::Interval;
    use super::*;

    #[test]
    fn another_machine_has_another_baseline_or_surely_another_difference() {
        let line = |baseline_ns: f64, estimate: f64, half: f64| BudgetLine {
            baseline_ns,
            candidate_ns: baseline_ns + estimate,
            difference_ns: Interval { estimate, low: estimate - half, high: estimate + half },
        };
        let then = line(100.0, 100.0, 5.0);
        for (now, moved) in [
            (line(110.0, 90.0, 2.0), false),
            (line(130.0, 100.0, 2.0), true),
            (line(70.0, 100.0, 2.0), true),
            (line(100.0, 60.0, 10.0), true),
            (line(100.0, 60.0, 50.0), false),
            (line(100.0, -100.0, 10.0), true),
        ] {
            assert_eq!(is_another(&then, &now), moved, "{now:?}");
        }
    }
}
