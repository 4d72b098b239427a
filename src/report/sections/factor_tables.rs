//! Which factor, as a table.
//!
//! Enters: effects of an analysis. Leaves: a table of all of them a metric. It must not judge.

use super::factor_words::{change_words, metric};
use crate::analyse::{Analysis, Effect, Effects, Verdict};
use crate::report::format::Detail;
use crate::report::table::{Head, Of, Table, TableRow};
use crate::report::verdict_words::Tone;
use crate::report::words::{change_cell, effect_decimals, interval_beside, p_value};

/// A table of all effects of each metric.
pub(super) fn tables(analysis: &Analysis, detail: Detail) -> Vec<Table> {
    if detail == Detail::Screen {
        return Vec::new();
    }
    analysis.effects.iter().filter(|effects| !effects.effects.is_empty()).map(table).collect()
}

pub(super) fn table(effects: &Effects) -> Table {
    let with_p = effects.effects.iter().any(|effect| effect.p_adjusted.is_some());
    let values = ["change %", "interval"].into_iter().chain(with_p.then_some("adj. p"));
    let columns = Head::values(values).chain([Head::new("verdict", Of::Verdicts)]).collect();
    let row = |effect: &Effect| {
        let mut cells = vec![
            change_cell(effect.change, effect_decimals(effect.effect)),
            interval_beside(effects.delta, effect.effect),
        ];
        if with_p {
            cells.push(effect.p_adjusted.map_or("-".to_owned(), p_value));
        }
        cells.push(word(effect).to_owned());
        let label = match effect.of.as_slice() {
            [first, second] => {
                format!("{} by {}", change_words(first), change_words(second))
            }
            of => of.iter().map(change_words).collect(),
        };
        TableRow { labels: vec![label], cells, tone: Some(tone(effect)), notes: Vec::new() }
    };
    Table {
        caption: format!(
            "{}: effects of factors, each averaged over the others; one factor by another: how much its effect changes",
            metric(effects)
        ),
        labels: vec![Head::new("effect", Of::Names)],
        columns,
        rows: effects.effects.iter().map(row).collect(),
    }
}

/// The judgement of an effect in at most 14 characters.
fn word(effect: &Effect) -> &'static str {
    let depends = effect.of.len() > 1;
    match &effect.verdict {
        _ if !effect.depends_on.is_empty() && effect.is_claimed() => "interacts",
        Verdict::Faster { beyond_delta: true } | Verdict::Slower { beyond_delta: true } if depends => {
            "interact"
        }
        Verdict::Faster { .. } | Verdict::Slower { .. } if depends => "interact, > δ?",
        Verdict::Faster { beyond_delta: true } => "better by > δ",
        Verdict::Faster { beyond_delta: false } => "better, > δ?",
        Verdict::Slower { beyond_delta: true } => "worse by > δ",
        Verdict::Slower { beyond_delta: false } => "worse, > δ?",
        Verdict::NoDifference { real_but_below_delta: true } => "real, below δ",
        Verdict::NoDifference { .. } if depends => "independent",
        Verdict::NoDifference { .. } => "no effect",
        Verdict::TooFew { .. } => "too few",
        _ => "undecided",
    }
}

fn tone(effect: &Effect) -> Tone {
    match (&effect.verdict, effect.of.len()) {
        (Verdict::NoDifference { .. }, _) => Tone::Same,
        (Verdict::Faster { .. }, 1) if effect.depends_on.is_empty() => Tone::Better,
        (Verdict::Slower { .. }, 1) if effect.depends_on.is_empty() => Tone::Worse,
        _ => Tone::Unclear,
    }
}
