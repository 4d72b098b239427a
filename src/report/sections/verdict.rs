//! The verdict: one sentence a row and candidate, and how many of each kind.
//!
//! Enters: the comparisons that decide. Leaves: sentences with their tone. It must not judge.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Material;
use super::together::{MOST_APART, Shared, shared};
use crate::analyse::{Comparison, Role, Verdict};
use crate::record::{Run, Status};
use crate::report::document::Document;
use crate::report::footnotes::caveat_text;
use crate::report::format::Detail;
use crate::report::layout::printable;
use crate::report::manner::is_speed;
use crate::report::section::{Block, Heading, Section, Sentence, Verdicts};
use crate::report::verdict_words::{
    COUNTED, Tone, counted, counted_as, refused, sentence, tone, verdict_word,
};
use crate::report::words::Names;
use crate::units;

/// Behind the first line of the verdict, where others used the machine when the run began; the head says what they did.
const ON_A_BUSY_MACHINE: &str = " (on a busy machine)";
/// The same where guests ran in an emulated processor, whose times are none of the hardware's.
const EMULATED: &str = " (in an emulated processor)";

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, options, names, primary, footnotes, .. } = material;
    let told: Vec<Sentence> = primary
        .iter()
        .map(|c| Sentence {
            tone: tone(&c.verdict),
            word: verdict_word(c),
            text: sentence(c, names),
            notes: footnotes.of(c, names),
        })
        .collect();
    let mut each = headlines(primary, &told, &[], names);
    let is_told_together = primary.len() > MOST_APART && options.detail < Detail::All;
    let shared = if is_told_together { shared(primary, names) } else { Vec::new() };
    let withheld = (!shared.is_empty()).then_some(Block::Withheld("a sentence for each comparison"));
    let mut sentences = each.clone();
    if !shared.is_empty() {
        // Of many, what was found comes first.
        let mut ordered: Vec<(&Comparison, Sentence)> = primary.iter().copied().zip(told).collect();
        ordered.sort_by_key(|(comparison, _)| order(&comparison.verdict));
        let (primary, told): (Vec<_>, Vec<_>) = ordered.into_iter().unzip();
        sentences = headlines(&primary, &told, &shared, names);
    }
    let mut tally = (primary.len() >= FEWEST_COUNTED && each.len() > 1).then(|| tally(primary));
    let behind = [(run.busy_machine().is_some(), ON_A_BUSY_MACHINE), (run.was_emulated(), EMULATED)];
    for (_, words) in behind.into_iter().filter(|(is_so, _)| *is_so) {
        match &mut tally {
            Some(tally) => tally.push_str(words),
            None => [&mut sentences, &mut each]
                .into_iter()
                .filter_map(|told| told.first_mut())
                .for_each(|first| first.text.push_str(words)),
        }
    }
    let verdicts = Verdicts {
        tally,
        sentences,
        each,
        otherwise: match were_all_thrown_out(run) {
            true => "no verdict: all rounds were thrown out for what others did to the machine",
            false => "nothing to compare: no trial has a value of the metric that decides",
        },
        of_one_pair: are_of_one_pair(primary),
    };
    let raw = Block::Raw { name: "verdicts", json };
    let blocks = [Block::Verdicts(verdicts), raw].into_iter().chain(withheld).collect();
    Section::new("verdict", Heading::None, blocks)
}

/// Whether all trials that worked are of rounds that were thrown out.
fn were_all_thrown_out(run: &Run) -> bool {
    let mut done = run.trials.iter().filter(|trial| trial.status == Status::Done).peekable();
    done.peek().is_some() && done.all(|trial| trial.excluded.is_some())
}

/// Fewer are not counted: one sees how many they are.
const FEWEST_COUNTED: usize = 4;
/// So many verdicts of one pair leave room for the rest on one screen.
const MOST_ON_A_SCREEN: usize = 4;

/// Whether few sections or metrics of one pair of arms are judged.
fn are_of_one_pair(primary: &[&Comparison]) -> bool {
    let pair = |c: &&Comparison| (c.row.levels.clone(), c.baseline.arm.clone(), c.candidate.arm.clone());
    let pairs: BTreeSet<_> = primary.iter().map(pair).collect();
    pairs.len() <= 1 && primary.len() <= MOST_ON_A_SCREEN
}

/// Where a verdict stands among many: what was found, and arms that failed are such a thing, before what shows nothing.
fn order(verdict: &Verdict) -> usize {
    match (verdict, tone(verdict)) {
        (Verdict::NotComparable, _) | (_, Tone::Better | Tone::Worse) => 0,
        (_, Tone::Same) => 1,
        (_, Tone::Unclear) => 2,
    }
}

/// The words that belong to one primary comparison of `analysis.comparisons`.
#[derive(Serialize)]
struct VerdictPart {
    comparison: usize,
    sentence: String,
    tone: &'static str,
    caveats: Vec<String>,
}

fn json(document: &Document<'_>) -> String {
    let names = document.names();
    let comparisons = document.analysis.comparisons.iter().enumerate();
    let part = |(comparison, c): (usize, &Comparison)| VerdictPart {
        comparison,
        sentence: printable(&sentence(c, &names)),
        tone: tone(&c.verdict).name(),
        caveats: c.caveats.iter().map(|caveat| printable(&caveat_text(caveat, Some(c), &names))).collect(),
    };
    let parts: Vec<VerdictPart> = comparisons.filter(|(_, c)| c.role == Role::Primary).map(part).collect();
    crate::report::json::written(&parts)
}

/// Comparisons without a judgement are told one by one only up to this many for a reason.
const MOST_UNJUDGED: usize = 3;

/// Sentences for people: what is shared is said where the first of them stands, and what could not be judged for one and the same reason
/// is said once.
fn headlines(
    primary: &[&Comparison],
    verdicts: &[Sentence],
    shared: &[Shared<'_>],
    names: &Names<'_>,
) -> Vec<Sentence> {
    let reason = |c: &Comparison| match &c.verdict {
        Verdict::TooFew { n } => Some((
            "too few",
            format!("have too few {} for a verdict ({n} of the 4 that an interval needs)", counted(c).0),
        )),
        Verdict::NotMeasured(reason) if refused(c) => {
            Some(("too few I/Os", format!("have too few I/Os for a verdict: {reason}")))
        }
        Verdict::NotMeasured(reason) => Some(("not measured", format!("were not measured: {reason}"))),
        _ => None,
    };
    let mut told: Vec<String> = Vec::new();
    let mut shared_told: Vec<&Shared<'_>> = Vec::new();
    let mut sentences = Vec::new();
    for (comparison, sentence) in primary.iter().zip(verdicts) {
        if let Some(one) = shared.iter().find(|one| one.has(comparison)) {
            if !shared_told.iter().any(|told| std::ptr::eq(*told, one)) {
                let members: Vec<&Sentence> =
                    primary.iter().zip(verdicts).filter(|(c, _)| one.has(c)).map(|(_, told)| told).collect();
                // The tables mark what is said of one of them.
                let is_of_all = |note: &usize| members.iter().all(|member| member.notes.contains(note));
                let notes = sentence.notes.iter().copied().filter(is_of_all).collect();
                sentences.push(Sentence { text: one.sentence(primary, names), notes, ..sentence.clone() });
                shared_told.push(one);
            }
            continue;
        }
        let Some((word, why)) = reason(comparison) else {
            sentences.push(sentence.clone());
            continue;
        };
        let same = primary.iter().filter(|c| reason(c).is_some_and(|(_, other)| other == why)).count();
        if same <= MOST_UNJUDGED {
            sentences.push(sentence.clone());
        } else if !told.contains(&why) {
            let text = format!("{same} comparisons {why}; the tables have what there is");
            sentences.push(Sentence { tone: Tone::Unclear, word, text, notes: Vec::new() });
            told.push(why);
        }
    }
    sentences
}

/// `4 comparisons: 1 slower by more than δ, 3 undecided`.
pub(in crate::report) fn tally(primary: &[&Comparison]) -> String {
    let mut counts = [0usize; COUNTED.len()];
    for comparison in primary {
        counts[counted_as(&comparison.verdict)] += 1;
    }
    // Of what is counted there is fewer or more: together with others it is better or worse.
    let speeds = primary.iter().all(|c| is_speed(&c.metric));
    let word = |word: &str| match speeds {
        true => word.to_owned(),
        false => word.replace("faster", "better").replace("slower", "worse"),
    };
    let parts: Vec<String> = counts
        .iter()
        .zip(COUNTED)
        .filter(|(n, _)| **n > 0)
        .map(|(n, counted)| format!("{n} {}", word(counted)))
        .collect();
    format!("{}: {}", units::counted(primary.len() as u64, "comparison"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::format::Options;
    use crate::report::section_tests::made_up;

    /// Sentences where tables have the verdicts, and where no table has them.
    fn told(rows: usize, detail: Detail) -> [usize; 2] {
        let (run, mut analysis) = made_up();
        let one = analysis.comparisons[0].clone();
        let of_row = |at: usize| {
            let mut c = one.clone();
            c.row.levels = vec![("bs".to_owned(), format!("{}k", 4 << at))];
            c
        };
        analysis.comparisons = (0..rows).map(of_row).collect();
        let options = Options { detail, ..Options::default() };
        let section = section(&mut Material::new(&run, &analysis, None, &options));
        let Some(Block::Verdicts(verdicts)) = section.blocks.first() else { panic!("{section:?}") };
        [verdicts.sentences.len(), verdicts.each.len()]
    }

    #[test]
    fn arms_that_failed_come_before_what_shows_nothing() {
        let unclear = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
        let same = Verdict::NoDifference { real_but_below_delta: false };
        let found = Verdict::Slower { beyond_delta: false };
        assert_eq!(
            [unclear, same, found, Verdict::NotComparable].map(|verdict| order(&verdict)),
            [2, 1, 0, 0]
        );
    }

    #[test]
    fn sections_and_metrics_of_one_pair_are_one_pair() {
        let (_, analysis) = made_up();
        let one = analysis.comparisons[0].clone();
        let [mut section, mut row, mut arm] = [(); 3].map(|()| one.clone());
        section.row.job = "wal".to_owned();
        row.row.levels = vec![("bs".to_owned(), "4k".to_owned())];
        arm.candidate.arm = "another".to_owned();
        assert!(are_of_one_pair(&[&one]) && are_of_one_pair(&[&one, &section]));
        assert!(!are_of_one_pair(&[&one, &row]) && !are_of_one_pair(&[&one, &arm]));
        assert!(!are_of_one_pair(&[&one; MOST_ON_A_SCREEN + 1]));
    }

    #[test]
    fn a_real_difference_below_delta_is_counted_as_one() {
        let one = made_up().1.comparisons.remove(0);
        let of = |real_but_below_delta| Comparison {
            verdict: Verdict::NoDifference { real_but_below_delta },
            ..one.clone()
        };
        let all = [of(true), of(false), of(false), of(false)];
        assert_eq!(
            tally(&all.iter().collect::<Vec<_>>()),
            "4 comparisons: 1 real but below δ, 3 without difference beyond δ"
        );
    }

    #[test]
    fn many_rows_share_a_sentence_until_each_is_asked_for() {
        assert_eq!(told(MOST_APART, Detail::Screen), [8, 8]);
        assert_eq!(told(MOST_APART + 1, Detail::Screen), [1, 9]);
        assert_eq!(told(MOST_APART + 1, Detail::All), [9, 9]);
    }
}
