//! What is known of the ends of a search, in words.
//!
//! Enters: a [`Bisected`] or a look at its ends. Leaves: text. It must not judge.

use super::words::percent;
use crate::analyse::{Bisected, Ends, Look};

/// What is known of the ends while they are compared: `+1.2 % (−0.8 % to +3.2 %) in 40 rounds`; `None`: too few rounds for that.
#[must_use]
pub fn ends_so_far(found: &Bisected) -> Option<String> {
    match &found.ends {
        Ends::Open(Some(look)) => Some(look_words(found, look)),
        _ => None,
    }
}

/// The ends' difference at a look.
pub(super) fn look_words(found: &Bisected, look: &Look) -> String {
    let interval = &look.interval;
    let ratio = |log: f64| (found.sign * log).exp_m1();
    let (one, other) = (ratio(interval.low), ratio(interval.high));
    format!(
        "{} ({} to {}) in {} rounds",
        signed(ratio(interval.estimate)),
        signed(one.min(other)),
        signed(one.max(other)),
        look.n
    )
}

/// The smallest δ that the interval of a look is below, in steps of 0.1 %, as it is written.
pub(super) fn delta_above(look: &Look) -> String {
    let least = look.interval.high.max(0.0).exp_m1();
    format!("{:.1}%", ((least * 1000.0).floor() + 1.0) / 10.0)
}

/// `+1.2 %`, as the text of a search writes it.
pub(super) fn signed(ratio: f64) -> String {
    format!("{} %", percent(ratio, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Estimate, LookKind};

    #[test]
    fn what_reads_as_nothing_has_no_sign() {
        assert_eq!([-0.0002, 0.0002, -0.123].map(signed), ["0.0 %", "0.0 %", "−12.3 %"]);
    }

    #[test]
    fn the_delta_that_would_decide_is_above_the_interval() {
        let of = |high: f64| {
            let interval = Estimate { estimate: 0.0, low: -0.01, high: f64::ln_1p(high) };
            delta_above(&Look { n: 8, kind: LookKind::StudentT, interval })
        };
        assert_eq!(
            (of(0.0318), of(0.05), of(0.0849)),
            ("3.2%".to_owned(), "5.1%".to_owned(), "8.5%".to_owned())
        );
    }
}
