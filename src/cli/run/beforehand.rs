//! What is known before anything is watched: whether there is a difference to explain.
//!
//! Enters: the stored run. Leaves: why watching it would explain nothing, and a command that would help. It must not run anything.

use std::path::Path;

use super::conduct::database_flag;
use crate::analyse::{self, Analysis, Comparison, Role, Standing, Verdict};

use crate::record::{Run, Unit};
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::units::format_number;

/// More rounds than this are not run on a machine that somebody waits for.
const MOST_ROUNDS: u32 = 1_000;
/// Counts that are named.
const MOST_COUNTS: usize = 2;

/// Why nothing is watched where no arm differs.
const NOTHING_DIFFERS: &str = "nothing differs, so there is nothing to explain";

/// Why nothing is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nothing {
    pub(super) reason: String,
    pub(super) hint: String,
}

/// Why watching would explain nothing of this run; `None`: an arm differs, or nobody can tell.
pub(super) fn nothing(run: &Run, analysis: &Analysis, db: &Path) -> Option<Nothing> {
    let standings: Vec<Standing> = analyse::why(run, analysis, None).iter().map(|why| why.standing).collect();
    let all_the_same = all_the_same(run, db);
    let (id, db) = (run.id.unwrap_or_default(), database_flag(db));
    match standings.iter().min()? {
        Standing::Differs => None,
        Standing::NotDecided => {
            let more = match analysis.so_far() {
                Some(_) => Some(format!("assay run --resume {id}{db} measures the rounds that are missing")),
                None => more_rounds(run, analysis, &db),
            };
            Some(Nothing {
                reason: format!("the verdict is undecided{}", counts(&different(analysis))),
                hint: more.unwrap_or(all_the_same),
            })
        }
        Standing::NothingDiffers => Some(Nothing { reason: NOTHING_DIFFERS.to_owned(), hint: all_the_same }),
        Standing::NotJudged => {
            let few = analysis.comparisons.iter().any(|c| matches!(c.verdict, Verdict::TooFew { .. }));
            let more = if few { again(&run.command_line, FEWEST_ROUNDS as u32) } else { None };
            Some(Nothing {
                reason: "it has no verdict that could be explained".to_owned(),
                hint: more.unwrap_or(all_the_same),
            })
        }
    }
}

/// The command that watches a run in which watching would show what it costs, and nothing else.
fn all_the_same(run: &Run, db: &Path) -> String {
    let (id, db) = (run.id.unwrap_or_default(), database_flag(db));
    format!("assay explain {id}{db} --only cpu,locks,waits watches it all the same")
}

/// The command that measures as many rounds as the undecided comparisons probably take.
fn more_rounds(run: &Run, analysis: &Analysis, db: &str) -> Option<String> {
    let undecided = analysis.comparisons.iter().filter(|c| c.role == Role::Primary);
    let needed = undecided.filter_map(|comparison| match comparison.verdict {
        Verdict::Undecided { rounds_to_claim, rounds_for_no_difference } => {
            let least = rounds_to_claim.into_iter().chain(rounds_for_no_difference).min()?;
            Some((least, u32::try_from(comparison.n).unwrap_or(u32::MAX)))
        }
        _ => None,
    });
    let (rounds, n) = needed.max().filter(|(rounds, _)| *rounds <= MOST_ROUNDS)?;
    if run.design.stop.anytime {
        let (more, id) = (rounds.saturating_sub(n).max(1), run.id?);
        return Some(format!(
            "about {rounds} rounds would probably decide it: assay run --more {more} {id}{db}"
        ));
    }
    let command = again(&run.command_line, rounds)?;
    Some(format!("about {rounds} rounds would probably decide it: {command}"))
}

/// The command of a run, with so many rounds.
fn again(command_line: &[String], rounds: u32) -> Option<String> {
    let said: Vec<&str> = command_line.iter().skip(1).map(String::as_str).collect();
    let ["run", others @ ..] = said.as_slice() else { return None };
    let rounds = rounds.to_string();
    let mut words = vec!["assay", "run", "--rounds", rounds.as_str()];
    let (mut is_value, mut is_payload) = (false, false);
    for word in others {
        // Behind -- stands a command with options of its own.
        is_payload |= *word == "--";
        let is_rounds = !is_payload && matches!(*word, "--rounds" | "--max-rounds");
        let is_both = !is_payload && (word.starts_with("--rounds=") || word.starts_with("--max-rounds="));
        if !(is_value || is_rounds || is_both) {
            words.push(*word);
        }
        is_value = is_rounds;
    }
    shlex::try_join(words).ok()
}

/// A count whose arms clearly differ: its name, its unit and both medians.
type Count = (String, Unit, [f64; 2]);

/// The counts that clearly differ, the largest difference first.
fn different(analysis: &Analysis) -> Vec<Count> {
    let is_count = |c: &&Comparison| {
        c.role == Role::Exploratory
            && c.unlisted.is_none()
            && matches!(c.metric.unit, Unit::Count | Unit::Bytes | Unit::Other(_))
            && matches!(c.verdict, Verdict::Faster { .. } | Verdict::Slower { .. })
    };
    let ratio = |c: &Comparison| {
        let ratio = (c.candidate.median / c.baseline.median).ln().abs();
        if ratio.is_nan() { 0.0 } else { ratio }
    };
    let mut found: Vec<&Comparison> = analysis.comparisons.iter().filter(is_count).collect();
    found.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    let of = |c: &Comparison| {
        (c.metric.name.clone(), c.metric.unit.clone(), [c.baseline.median, c.candidate.median])
    };
    found.into_iter().map(of).collect()
}

/// `; what differs in the counts: extents.per_file 155 → 1`, or nothing.
fn counts(found: &[Count]) -> String {
    let words = |(name, unit, values): &Count| {
        let [baseline, candidate] = values.map(|value| format_number(unit, value));
        format!("{name} {baseline} → {candidate}")
    };
    let named: Vec<String> = found.iter().take(MOST_COUNTS).map(words).collect();
    if named.is_empty() {
        return String::new();
    }
    format!("; what differs in the counts: {}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_command_is_repeated_with_more_rounds() {
        for (line, expected) in [
            ("assay run j.fio --vary direct=0,1", Some("assay run --rounds 40 j.fio --vary 'direct=0,1'")),
            ("/bin/assay run --rounds 4 j.fio --max-rounds=9", Some("assay run --rounds 40 j.fio")),
            ("assay run -- x --rounds 4", Some("assay run --rounds 40 -- x --rounds 4")),
            ("assay compare a b", None),
        ] {
            assert_eq!(again(&words(line), 40).as_deref(), expected, "{line}");
        }
        assert_eq!(again(&[], 4), None);
    }

    #[test]
    fn of_an_undecided_run_the_counts_that_differ_are_named() {
        let count = |name: &str, values: [f64; 2]| (name.to_owned(), Unit::Count, values);
        let found = [count("extents.per_file", [155.0, 1.0]), count("a", [2.0, 3.0]), count("b", [2.0, 2.5])];
        let said = counts(&found);
        assert!(said.starts_with("; what differs in the counts: extents.per_file 155"), "{said}");
        assert!(said.contains(" → 1") && said.contains(", a 2") && !said.contains(", b "), "{said}");
        assert_eq!(counts(&[]), "");
    }
}
