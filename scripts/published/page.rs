//! The claims of a study as Markdown: a line each, and reasons behind them.
//!
//! Enters: claims with their verdicts. Leaves: tables. What may lie behind a difference was written before the figures, and
//! is told only of the outcome it is for.

use std::collections::BTreeMap;

use crate::claims::Claim;
use crate::judge::{Holds, Verdict, published};
use crate::study::Found;

/// Claims by outcome, in this order.
pub(crate) const OUTCOMES: [&str; 5] =
    ["reproduced", "contrary", "undecided", "not in this size", "not there"];

/// The place in [`OUTCOMES`].
pub(crate) fn outcome(verdict: &Verdict) -> usize {
    match verdict {
        Verdict::Reproduced(_) => 0,
        Verdict::Contrary(_) => 1,
        Verdict::Undecided(..) => 2,
        Verdict::LeftOut => 3,
        Verdict::NotThere => 4,
    }
}

/// The line of a claim.
///
/// # Errors
/// Its published figures are not there.
pub(crate) fn line(claim: &Claim, verdict: &Verdict) -> Found<String> {
    let was = match &claim.published {
        None => "—".to_owned(),
        Some(quotient) => {
            let value = published(quotient)?;
            let held = Holds::parse(&claim.holds).is_none_or(|holds| holds.at(value));
            format!("{value:.2}{}", if held { "" } else { " (does not hold there either)" })
        }
    };
    let digits = |value: f64| if value < 0.01 { format!("{value:.5}") } else { format!("{value:.2}") };
    let here = match verdict.ratio().map(|ratio| (ratio.value, ratio.interval)) {
        Some((value, Some((low, high)))) => format!("{} [{}, {}]", digits(value), digits(low), digits(high)),
        Some((value, None)) => format!("{} (too few rounds)", digits(value)),
        None => "—".to_owned(),
    };
    let word = match verdict {
        Verdict::Contrary(_) => "**contrary**".to_owned(),
        Verdict::Undecided(_, Some(rounds)) => format!("undecided; about {rounds} rounds"),
        Verdict::Undecided(_, None) => "undecided; more than 1000 rounds".to_owned(),
        other => OUTCOMES[outcome(other)].to_owned(),
    };
    let holds = if claim.holds.is_empty() { String::new() } else { format!(": {}", claim.holds) };
    Ok(format!("| {} | {}{holds} | {was} | {here} | {word} |", claim.table, claim.says))
}

/// What may lie behind outcomes that are not the study's, each reason once with the claims it is for. `in_full` is why a run of the
/// small size leaves some out.
pub(crate) fn reasons(judged: &[(Claim, Verdict)], in_full: &str) -> Vec<String> {
    let mut of: BTreeMap<(usize, String), Vec<&str>> = BTreeMap::new();
    for (claim, verdict) in judged {
        let why = match verdict {
            Verdict::Contrary(_) if claim.differs.is_empty() => "no reason is known.",
            Verdict::Contrary(_) => &claim.differs,
            Verdict::Undecided(..) => &claim.unclear,
            Verdict::NotThere => claim.not_there.as_deref().unwrap_or_default(),
            Verdict::LeftOut => in_full,
            Verdict::Reproduced(_) => continue,
        };
        if !why.is_empty() {
            of.entry((outcome(verdict), why.to_owned())).or_default().push(&claim.says);
        }
    }
    let line = |((outcome, why), claims): ((usize, String), Vec<&str>)| {
        let which = match claims.as_slice() {
            [one] => format!("“{one}”"),
            [first, others @ ..] => format!("“{first}” and {} more", others.len()),
            [] => String::new(),
        };
        format!("- {}, {which}: {why}", OUTCOMES[outcome])
    };
    of.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::read;
    use crate::judge::Ratio;

    fn claim() -> Claim {
        let text = "[[claim]]\ntable = \"t\"\nsays = \"it is more\"\nholds = \"above 1\"\nunclear = \"It is noisy.\"\n\
                    differs = \"it is another machine.\"\nhere = { at = { metric = \"m\" }, over = {}, under = {} }\n";
        read(text).unwrap().remove(0)
    }

    fn ratio(value: f64) -> Ratio {
        Ratio::of(&(0..8).map(|n| (value + f64::from(n) / 1000.0, 1.0)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_line_tells_what_came_of_it() {
        let said = |verdict: Verdict| line(&claim(), &verdict).unwrap();
        let reproduced = said(Verdict::Reproduced(ratio(2.0)));
        assert_eq!(reproduced, "| t | it is more: above 1 | — | 2.00 [2.00, 2.01] | reproduced |");
        assert!(said(Verdict::Contrary(ratio(0.5))).ends_with("| **contrary** |"));
        assert!(said(Verdict::Undecided(ratio(1.0), Some(40))).ends_with("| undecided; about 40 rounds |"));
        assert!(said(Verdict::LeftOut).ends_with("| — | — | not in this size |"));
    }

    #[test]
    fn a_reason_is_that_of_what_was_found() {
        let of = |verdict: Verdict| reasons(&[(claim(), verdict)], "It takes hours.");
        assert_eq!(of(Verdict::Reproduced(ratio(2.0))), Vec::<String>::new());
        assert_eq!(of(Verdict::Contrary(ratio(0.5))), ["- contrary, “it is more”: it is another machine."]);
        assert_eq!(of(Verdict::Undecided(ratio(1.0), None)), ["- undecided, “it is more”: It is noisy."]);
        assert_eq!(of(Verdict::LeftOut), ["- not in this size, “it is more”: It takes hours."]);
        let unknown = Claim { differs: String::new(), ..claim() };
        assert!(reasons(&[(unknown, Verdict::Contrary(ratio(0.5)))], "")[0].ends_with("no reason is known."));
        let contrary = |value| (claim(), Verdict::Contrary(ratio(value)));
        let twice = reasons(&[contrary(0.5), contrary(0.4)], "");
        assert_eq!(twice, ["- contrary, “it is more” and 1 more: it is another machine."]);
    }
}
