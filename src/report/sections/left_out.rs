//! What the tables leave out, in words that the left-out rows bear out.
//!
//! Enters: the exploratory comparisons that no table shows. Leaves: sentences with how many there are of each kind, and the option
//! that lists them. It must not know which format prints them.

use crate::analyse::{Comparison, Verdict};
use crate::report::raw_words::medians_words;
use crate::report::words::{NBSP, change, count, has_share, percent, shown_change};

/// Metrics named of those that differ clearly.
const MOST_NAMED: usize = 4;

/// The sentences. `clear` differ clearly and have no room, `others` are not worth a line, and `small` are times that do not matter
/// beside that of an operation.
pub(super) fn sentences(clear: &[&Comparison], others: &[&Comparison], small: usize) -> Vec<String> {
    clear_ones(clear).into_iter().chain(other_ones(others, small)).collect()
}

/// The sentence where all metrics are asked for and these have no line.
pub(super) fn alike(others: &[&Comparison]) -> Option<String> {
    let are = if others.len() == 1 { "is" } else { "are" };
    let n = count(others.len() as u64, "metric");
    (!others.is_empty()).then(|| {
        format!("{n} {are} printed alike for both arms; `assay report RUN --metrics NAME` lists one")
    })
}

/// The sentence about those that are multiples of what decides.
pub(super) fn repeated(of: &[&Comparison]) -> Option<String> {
    let mut names: Vec<&str> = of.iter().map(|c| c.metric.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let (are, multiple, them) =
        if names.len() == 1 { ("is", "a multiple", "it") } else { ("are", "multiples", "one") };
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    Some(format!(
        "{names} {are} {multiple} of what decides in every trial; `assay report RUN --metrics NAME` lists {them}"
    ))
}

fn clear_ones(clear: &[&Comparison]) -> Option<String> {
    let first = clear.first()?;
    let n = clear.len();
    let differ = if n == 1 { "differs" } else { "differ" };
    if clear.iter().any(|c| (&c.row, &c.candidate.arm) != (&first.row, &first.candidate.arm)) {
        let others = count(n as u64, "exploratory comparison");
        return Some(format!("{others} {differ} clearly; --verbose lists them"));
    }
    let change = |c: &Comparison| match c.difference {
        None => change(shown_change(c), 1),
        Some(_) if !has_share(c) => medians_words(c),
        Some(_) => format!("{}{NBSP}%", percent(shown_change(c), 1)),
    };
    let told = |c: &&Comparison| format!("{} {}", c.metric.name, change(c));
    let mut named: Vec<String> = clear.iter().take(MOST_NAMED).map(told).collect();
    named.extend((n > MOST_NAMED).then(|| format!("{} more", n - MOST_NAMED)));
    let others = count(n as u64, "exploratory metric");
    Some(format!("{others} {differ} clearly: {}; --verbose lists them", named.join(", ")))
}

fn other_ones(others: &[&Comparison], small: usize) -> Option<String> {
    // What was not measured shows nothing, clear or not.
    let measured = others.iter().filter(|c| !matches!(c.verdict, Verdict::NotMeasured(_)));
    let (own, unlisted): (Vec<&Comparison>, Vec<&Comparison>) = measured.partition(|c| c.unlisted.is_none());
    let measured: Vec<&Verdict> = own.iter().map(|c| &c.verdict).collect();
    let number = |of: fn(&Verdict) -> bool| measured.iter().filter(|verdict| of(verdict)).count();
    let so_far = number(|v| matches!(v, Verdict::SoFar { .. }));
    let below = number(|v| matches!(v, Verdict::NoDifference { real_but_below_delta: true }));
    let unjudged = number(|v| matches!(v, Verdict::NotComparable | Verdict::TooFew { .. }));
    let unclear = measured.len() - so_far - below - unjudged;
    let kinds = [
        (unclear, ["shows no clear difference", "show no clear difference"]),
        (below, ["shows a real difference below δ", "show a real difference below δ"]),
        (so_far, ["has no verdict so far", "have no verdict so far"]),
        (unjudged, ["cannot be judged", "cannot be judged"]),
        (small, ["is too small to matter", "are too small to matter"]),
        // Beside others it is not worth a line.
        (
            unlisted.len() * usize::from(own.is_empty()),
            [
                "only repeats what is listed, or counts too little",
                "only repeat what is listed, or count too little",
            ],
        ),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (n, [one, many]) in kinds.into_iter().filter(|(n, _)| *n > 0) {
        let what = if n == 1 { one } else { many };
        parts.push(match parts.is_empty() {
            true => format!("{} {what}", count(n as u64, "other comparison")),
            false => format!("{n}{NBSP}{what}"),
        });
    }
    (!parts.is_empty()).then(|| format!("{}; --all-metrics lists them", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::Unlisted;
    use crate::report::operation_times::tests::observed;

    fn with(verdict: Verdict) -> Comparison {
        Comparison { verdict, ..observed("usr_cpu", [1.0, 1.5]) }
    }

    #[test]
    fn each_is_counted_as_what_it_is() {
        for (verdict, words) in [
            (
                Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None },
                "1 other comparison shows no clear difference",
            ),
            (
                Verdict::NoDifference { real_but_below_delta: false },
                "1 other comparison shows no clear difference",
            ),
            (
                Verdict::NoDifference { real_but_below_delta: true },
                "1 other comparison shows a real difference below δ",
            ),
            (Verdict::SoFar { rounds: 2, of: 8 }, "1 other comparison has no verdict so far"),
            (Verdict::NotComparable, "1 other comparison cannot be judged"),
            (Verdict::TooFew { n: 3 }, "1 other comparison cannot be judged"),
        ] {
            let one = with(verdict);
            let said = other_ones(&[&one], 0).unwrap().replace(NBSP, " ");
            assert_eq!(said, format!("{words}; --all-metrics lists them"));
        }
        let nothing = with(Verdict::NotMeasured("no trial has it".to_owned()));
        assert_eq!(other_ones(&[&nothing], 0), None);
    }

    #[test]
    fn a_clear_difference_is_never_among_those_that_are_not() {
        let clear =
            [Verdict::Faster { beyond_delta: true }, Verdict::Slower { beyond_delta: false }].map(with);
        // It repeats another, which is listed: that is why it has no line.
        let repeats = clear
            .clone()
            .map(|c| Comparison { unlisted: Some(Unlisted::SameAs { metric: "sys_cpu".to_owned() }), ..c });
        let unclear = with(Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None });
        let clear: Vec<&Comparison> = clear.iter().collect();
        let hidden: Vec<&Comparison> = repeats.iter().chain([&unclear]).collect();
        let said = sentences(&clear, &hidden, 0).join(" ").replace(NBSP, " ");
        assert!(said.contains("2 exploratory metrics differ clearly: usr_cpu"), "{said}");
        assert!(said.contains("1 other comparison shows no clear difference"), "{said}");
    }
}
