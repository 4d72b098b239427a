//! Why the arms differ: behind the verdict, the largest causes of each pair and what stays unexplained.
//!
//! Enters: what analyse found. Leaves: a list a pair, a table of locks, a picture of the sum, flame graphs, values for programs. It must not rank or
//! judge: order, grades and shares are analyse's.

use super::Material;
use super::cause_words::what;
use super::watching::watching;
use super::why_choice::{chosen, is_told, moves_against};
use super::why_figures::{bars, ends, locks};
use super::why_latency;
use super::why_words::{Room, brief, caption, causes, lines_of, nothing_words, pair, unwatched_words};
use crate::analyse::{Budget, Comparison, Role, Why};
use crate::report::document::Document;
use crate::report::flames;
use crate::report::format::Detail;
use crate::report::json::written;
use crate::report::picture::{self, Form, Picture};
use crate::report::pictures::{MOST_ROWS, index_of};
use crate::report::section::{Block, Drawings, GivesWay, Heading, List, Section};
use crate::report::words::count;

/// Parts of the sum that fit one screen beside what is unexplained.
const FEW: usize = 3;
/// Pairs that are there before anything is unfolded.
const MOST_UNFOLDED: usize = 3;
/// Lines of each pair on a screen, with its caption.
const MOST_LINES: usize = 12;
/// Of the only pair.
const MOST_LINES_OF_ONE: usize = 16;
/// On a screen of many pairs only the first have their line.
const WAY: GivesWay = GivesWay {
    turn: None,
    called: "why the arms differ",
    most: [6, 5],
    items: ["pair's why", "pairs' whys"],
};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { options, names, analysis, .. } = material;
    let found: Vec<&Why> = material.why.iter().filter(|why| is_told(why)).collect();
    // Who had the cells watched wants all of it.
    let in_full = options.detail > Detail::Screen || material.watched.is_some();
    let is_priced = watching(material.run, material.watched).is_some();
    let budget_of = |why: &Why| why.budget.and_then(|at| analysis.budgets.get(at));
    let mut blocks = Vec::new();
    match found.as_slice() {
        [] => {
            let is_said = options.detail == Detail::All || material.watched.is_some();
            let words = nothing_words(&material.why).filter(|_| is_said);
            let unwatched =
                unwatched_words(material.run, &material.why).filter(|_| material.watched.is_none());
            let words: Vec<String> = unwatched.or(words).into_iter().collect();
            blocks.extend((!words.is_empty()).then_some(Block::Remarks(words)));
        }
        all if in_full || all.len() == 1 => {
            let mut folded = Vec::new();
            let most_lines = match (options.detail, all.len()) {
                (Detail::Screen, 1) => MOST_LINES_OF_ONE,
                (Detail::Screen, _) => MOST_LINES,
                _ => usize::MAX,
            };
            for (number, why) in all.iter().enumerate() {
                let blocks = if number < MOST_UNFOLDED { &mut blocks } else { &mut folded };
                let head = caption(why, budget_of(why), names);
                let mut lines = why_latency::lines(why);
                let taken = lines_of(&head) + lines.iter().map(|line| lines_of(line)).sum::<usize>();
                let room = Room {
                    causes: if in_full { usize::MAX } else { FEW },
                    lines: most_lines.saturating_sub(taken),
                    watching: !is_priced
                        || why.watching.as_ref().is_some_and(|watching| !watching.can_tell()),
                    sleep: in_full,
                    hint: options.detail == Detail::Screen,
                };
                let (parts, hidden) = causes(why, budget_of(why), names, room);
                lines.extend(parts);
                blocks.push(Block::List(List { caption: Some(head), ..List::of(lines) }));
                blocks.extend((hidden > 0).then_some(Block::Withheld("further causes")));
            }
            if !folded.is_empty() {
                let summary =
                    format!("Why of {}", count(all.len() as u64 - MOST_UNFOLDED as u64, "more pair"));
                blocks.push(Block::Folded { summary, open: false, blocks: folded });
            }
        }
        all => {
            let lines = all.iter().map(|why| brief(why, budget_of(why), names));
            blocks.push(Block::List(List { caption: Some("why".to_owned()), ..List::of(lines) }));
            blocks.push(Block::Withheld("all causes"));
        }
    }
    if options.detail > Detail::Screen {
        blocks.extend(found.iter().filter_map(|why| locks(why, budget_of(why), names)).map(Block::Table));
    }
    blocks.extend([
        Block::Pictures(drawn),
        Block::Raw { name: "why", json: |document| written(document.why()) },
        Block::Column { head: "why", cell },
    ]);
    if material.flames.iter().any(|flame| flames::is_told(&material.why, flame)) {
        let summary = "Flame graphs of the difference".to_owned();
        blocks.push(Block::Folded { summary, open: false, blocks: vec![Block::Pictures(flames::drawn)] });
    }
    if !material.flames.is_empty() {
        blocks.push(Block::Raw { name: "flames", json: |document| written(document.flames()) });
    }
    let section = Section::new("why", Heading::OnPage("why".to_owned()), blocks);
    if in_full { section } else { section.gives_way(WAY) }
}

/// The sums of the pairs that differ, drawn.
fn drawn(document: &Document<'_>) -> Option<Drawings> {
    let names = document.names();
    let with_sum = document.why().iter().filter_map(|why| {
        let budget = document.analysis.budgets.get(why.budget?)?;
        // Of a quantile there is no sum.
        (is_told(why) && why.unexplained_ns.is_some()).then_some((why, budget))
    });
    let all: Vec<_> = with_sum.collect();
    let picture = |(why, budget): &(&Why, &Budget)| {
        let (bars, ends) = (bars(why, budget, &names), ends(why, budget, &names));
        let arms = [&why.baseline, &why.candidate].map(|arm| index_of(document, arm));
        let title = pair(why, &names);
        let scale = super::budget::scale(&budget.total);
        let drawn =
            |form| picture::waterfall(budget.total.baseline_ns, &bars, &ends, arms, &title, form, &scale);
        drawn(Form::Wide).map(|wide| Picture { narrow: drawn(Form::Narrow).map(|p| p.svg), ..wide })
    };
    let pictures: Vec<Picture> = all.iter().take(MOST_ROWS).filter_map(picture).collect();
    Drawings::of(pictures, true, all.len().saturating_sub(MOST_ROWS))
}

/// The first cause of a deciding comparison, in words; none where the time of an operation moved against the verdict.
fn cell(document: &Document<'_>, comparison: &Comparison) -> String {
    let is_its = |why: &&Why| {
        why.row == comparison.row
            && why.baseline == comparison.baseline.arm
            && why.candidate == comparison.candidate.arm
    };
    let own = document.why().iter().find(is_its).filter(|_| comparison.role == Role::Primary);
    let budget_of = |why: &Why| why.budget.and_then(|at| document.analysis.budgets.get(at));
    let fits = own.filter(|why| !moves_against(why, budget_of(why)));
    let first = fits.and_then(|why| chosen(why, 1).first());
    first.map(|cause| what(cause, &document.names())).unwrap_or_default()
}
