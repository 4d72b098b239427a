//! Many runs in time, as one page with a picture of each series.
//!
//! Enters: histories. Leaves: HTML. It must not judge.

use super::history::{HistoryOf, called, change_words, changed_facts, newest_words, table};
use super::html::{self, PageSection};
use super::manner::manner;
use super::picture::levels;
use super::section::{Block, Sentence, Verdicts};
use super::verdict_words::Tone;
use super::words::Names;
use crate::analyse::{Interval, Verdict};
use crate::history::{History, Series};
use crate::units::counted;

/// One page of them all; what is not as it was stands first.
#[must_use]
pub fn history_page(all: &[(HistoryOf<'_>, &History)]) -> String {
    let names: Vec<&str> = all.iter().map(|(of, _)| of.name).collect();
    let title = match names[..] {
        [one] => format!("{one} in time"),
        _ => format!("{} in time", counted(names.len() as u64, "name")),
    };
    let mut sections: Vec<(Tone, PageSection)> = Vec::new();
    for (of, history) in all {
        let words = Names::new(of.run, "");
        for series in &history.series {
            sections.push(section(of, &words, series, history));
        }
    }
    // Worse, better, unclear, as before.
    let place = |tone: Tone| match tone {
        Tone::Worse => 0,
        Tone::Better => 1,
        Tone::Unclear => 2,
        Tone::Same => 3,
    };
    sections.sort_by_key(|(tone, _)| place(*tone));
    let summary = format!(
        "{}; a run is the median of its trials; the newest is compared with those before it, back to the last change",
        match sections.len() {
            1 => "1 metric".to_owned(),
            all => format!("{all} metrics"),
        }
    );
    html::of_pictures(&title, &summary, sections.into_iter().map(|(_, section)| section).collect())
}

/// A series, and what it is to the reader: the newest run, or else the last change.
fn section(of: &HistoryOf<'_>, names: &Names<'_>, series: &Series, history: &History) -> (Tone, PageSection) {
    let name = called(names, series);
    let newest = tone(series, &series.newest.verdict, series.newest.effect);
    let sentence =
        |(tone, word): (Tone, &'static str), text: String| Sentence { tone, word, text, notes: Vec::new() };
    let changes = series.changes.iter().map(|change| {
        let said = tone(series, &change.verdict, Some(change.effect));
        sentence(said, change_words(series, change))
    });
    let sentences: Vec<Sentence> =
        [sentence(newest, newest_words(series))].into_iter().chain(changes.rev()).collect();
    let foremost = match (newest.0, sentences.get(1)) {
        (Tone::Better | Tone::Worse, _) | (_, None) => newest.0,
        (_, Some(last_change)) => last_change.tone,
    };
    let mut every = String::new();
    table(&mut every, of, &name, series);
    changed_facts(&mut every, &history.facts);
    let verdicts =
        Verdicts { tally: None, each: sentences.clone(), sentences, otherwise: "", of_one_pair: false };
    let page = PageSection {
        heading: format!("{}: {name}", of.name),
        said: Block::Verdicts(verdicts),
        pictures: levels(series, "", newest.0).into_iter().collect(),
        folded: ("every run".to_owned(), every),
    };
    (foremost, page)
}

/// What a verdict is to the reader, and in a word.
fn tone(series: &Series, verdict: &Verdict, effect: Option<Interval>) -> (Tone, &'static str) {
    match effect.and_then(|effect| series.is_better(effect)) {
        _ if matches!(verdict, Verdict::NoDifference { .. }) => (Tone::Same, "as before"),
        Some(true) => (Tone::Better, manner(&series.metric, true).word),
        Some(false) => (Tone::Worse, manner(&series.metric, false).word),
        None => (Tone::Unclear, "no verdict"),
    }
}
