//! One row: two figures, their ratio, what was promised and what came of it; for the page and for a terminal.

use assay::stats::Estimate;

use crate::promise::{Ratio, Verdict};

/// Columns of the word in front of a row on a terminal.
const WORD: usize = 11;

/// A figure of one level beside that of another.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) case: String,
    /// The level and its figure with unit.
    pub(crate) level: (&'static str, String),
    /// What it is compared with.
    pub(crate) over: (&'static str, String),
    pub(crate) ratio: Ratio,
    pub(crate) promised: String,
    pub(crate) verdict: Verdict,
}

impl Row {
    /// The head of the table whose lines [`Row::markdown`] gives.
    pub(crate) const HEAD: &str = "| processor | case | level | figure | over | figure | ratio | 95 % interval | promised | |\n\
         |---|---|---|---:|---|---:|---:|---|---|---|\n";

    /// A line of the page.
    pub(crate) fn markdown(&self, processor: &str) -> String {
        let Row { case, level: (level, figure), over: (over, other), ratio, promised, verdict } = self;
        let interval = ratio
            .interval
            .map_or(String::new(), |Estimate { low, high, .. }| format!("{low:.3} – {high:.3}"));
        format!(
            "| {processor} | {case} | {level} | {figure} | {over} | {other} | **{:.3}** | {interval} | {promised} | {} |\n",
            ratio.value,
            verdict.word(),
        )
    }

    /// Two or three lines of at most 80 columns.
    pub(crate) fn text(&self) -> String {
        let Row { case, level: (level, figure), over: (over, other), ratio, promised, verdict } = self;
        let promised = if promised.is_empty() { String::new() } else { format!(" ({promised})") };
        let interval = ratio
            .interval
            .map_or(String::new(), |Estimate { low, high, .. }| format!(" [{low:.3}, {high:.3}]"));
        let more = match verdict {
            Verdict::Undecided(Some(rounds)) => {
                format!("{:WORD$}about {rounds} rounds would decide it\n", "")
            }
            _ => String::new(),
        };
        format!(
            "{:WORD$}{case}{promised}\n{:WORD$}{level} {figure}, {over} {other}: {:.3}{interval}\n{more}",
            verdict.word(),
            "",
            ratio.value,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::CASES;

    #[test]
    fn a_terminal_of_80_columns_is_wide_enough() {
        let interval = Some(Estimate { estimate: 1.234, low: 1.123, high: 1.345 });
        let rates = CASES.iter().flat_map(|case| case.rates.iter().map(|pair| (case.what.to_owned(), pair)));
        let user_times = CASES.iter().flat_map(|case| {
            case.user_times.iter().map(|pair| (format!("{}, user time an I/O", case.what), pair))
        });
        for (what, pair) in rates.chain(user_times) {
            let row = Row {
                case: what,
                level: (pair.level, "12.34 M/s".to_owned()),
                over: (pair.over, "12.34 M/s".to_owned()),
                ratio: Ratio { value: 1.234, interval, rounds: 100 },
                promised: pair.promise.words(),
                verdict: Verdict::Undecided(Some(99_999)),
            };
            for line in row.text().lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn every_row_of_the_page_names_the_processor() {
        let row = Row {
            case: "null, 1 job".to_owned(),
            level: ("native", "39.52 M".to_owned()),
            over: ("fio", "3.49 M".to_owned()),
            ratio: Ratio { value: 11.272, interval: None, rounds: 3 },
            promised: "≥ 5".to_owned(),
            verdict: Verdict::Kept,
        };
        let expected =
            "| AMD EPYC | null, 1 job | native | 39.52 M | fio | 3.49 M | **11.272** |  | ≥ 5 | kept |\n";
        assert_eq!(row.markdown("AMD EPYC"), expected);
        assert_eq!(Row::HEAD.lines().next().unwrap().matches('|').count(), expected.matches('|').count());
        assert_eq!(
            row.text(),
            "kept       null, 1 job (≥ 5)\n           native 39.52 M, fio 3.49 M: 11.272\n"
        );
    }
}
