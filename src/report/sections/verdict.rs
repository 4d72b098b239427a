//! The verdict: one sentence a row and candidate, and how many of each kind.
//!
//! Enters: the comparisons that decide. Leaves: sentences with their tone. It must not judge.

use serde::Serialize;

use super::Material;
use crate::analyse::{Comparison, Role, Verdict};
use crate::report::document::Document;
use crate::report::footnotes::caveat_text;
use crate::report::manner::is_speed;
use crate::report::section::{Block, Heading, Section, Sentence, Verdicts};
use crate::report::verdict_words::{
    COUNTED, Tone, counted, counted_as, refused, sentence, tone, verdict_word,
};

/// Behind the first line of the verdict, where others used the machine when the run began; the head says what they did.
const ON_A_BUSY_MACHINE: &str = " (on a busy machine)";

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, analysis, names, primary, footnotes, .. } = material;
    let sentences: Vec<Sentence> = primary
        .iter()
        .map(|c| Sentence {
            tone: tone(&c.verdict),
            word: verdict_word(c),
            text: sentence(c, names, analysis.delta),
            notes: footnotes.of(c, names),
        })
        .collect();
    let mut sentences = headlines(primary, &sentences);
    let mut tally = tally(primary).filter(|_| sentences.len() > 1);
    if run.busy_machine().is_some()
        && let Some(first) = tally.as_mut().or(sentences.first_mut().map(|sentence| &mut sentence.text))
    {
        first.push_str(ON_A_BUSY_MACHINE);
    }
    let verdicts = Verdicts {
        tally,
        sentences,
        otherwise: "nothing to compare: no trial has a value of the metric that decides",
    };
    let blocks = vec![Block::Verdicts(verdicts), Block::Raw { name: "verdicts", json }];
    Section::new("verdict", Heading::None, blocks)
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
        sentence: sentence(c, &names, document.analysis.delta),
        tone: tone(&c.verdict).name(),
        caveats: c.caveats.iter().map(|caveat| caveat_text(caveat, Some(c), &names)).collect(),
    };
    let parts: Vec<VerdictPart> = comparisons.filter(|(_, c)| c.role == Role::Primary).map(part).collect();
    crate::report::json::written(&parts)
}

/// Comparisons without a judgement are told one by one only up to this many for a reason.
const MOST_UNJUDGED: usize = 3;

/// Sentences for people: what could not be judged for one and the same reason is said once.
fn headlines(primary: &[&Comparison], verdicts: &[Sentence]) -> Vec<Sentence> {
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
    let mut sentences = Vec::new();
    for (comparison, sentence) in primary.iter().zip(verdicts) {
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

fn tally(primary: &[&Comparison]) -> Option<String> {
    if primary.len() < 4 {
        return None;
    }
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
    Some(format!("{} comparisons: {}", primary.len(), parts.join(", ")))
}
