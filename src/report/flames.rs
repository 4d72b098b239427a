//! The flame graphs of a report: its pictures of the differences, and all of them as files with the stacks they are drawn of.
//!
//! Enters: a document. Leaves: drawings, and texts with their names. How a graph is drawn is [`super::picture`]'s to know; what
//! differs is analyse's.

use super::document::Document;
use super::picture::{self, FlameGraph, Flames, Form, Picture};
use super::pictures::{MOST_ROWS, index_of, of_letters};
use super::section::Drawings;
use super::words::row_label;
use crate::analyse::{Flame, Operation, Standing, Why};
use crate::record::{Folded, StackKind};

/// A flame graph, or what one is drawn of, as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameFile {
    /// Its name: `cpu-1-direct-0-direct-1.difference.svg`.
    pub name: String,
    /// What is in it.
    pub content: String,
}

/// Of each pair with stacks: graphs of the baseline, of the candidate and of their difference, and the stacks of both arms as flamegraph.pl and
/// difffolded.pl read them, with times of an operation in picoseconds.
#[must_use]
pub fn flame_files(document: &Document<'_>) -> Vec<FlameFile> {
    let labels: Vec<String> = document.analysis.arms.iter().map(|arm| document.arm(arm)).collect();
    let of = |(at, flame): (usize, &Flame)| {
        let graph = graph(document, flame);
        let pair = of_letters(&pair(document, flame));
        let name = format!("{}-{}-{pair}", flame.kind.name(), at + 1);
        let name = name.trim_end_matches('-').to_owned();
        let svg = |flames: Flames| {
            graph.drawn(flames, Form::Wide).map(|drawn| picture::document(&drawn, &document.title, &labels))
        };
        let all = [
            ("baseline.svg", svg(Flames::Of(0))),
            ("candidate.svg", svg(Flames::Of(1))),
            ("difference.svg", svg(Flames::Difference)),
            ("baseline.folded", Some(folded(flame, 0))),
            ("candidate.folded", Some(folded(flame, 1))),
        ];
        all.into_iter().filter_map(move |(ending, content)| {
            Some(FlameFile { name: format!("{name}.{ending}"), content: content? })
        })
    };
    document.flames().iter().enumerate().flat_map(of).collect()
}

/// The stacks of one arm.
fn folded(flame: &Flame, arm: usize) -> String {
    let mut folded = Folded::default();
    for stack in &flame.stacks {
        folded.add(stack.frames.iter().map(String::as_str), (stack.ns[arm] * 1000.0).round() as u64);
    }
    folded.text()
}

/// The differences of the pairs whose why is told.
pub(super) fn drawn(document: &Document<'_>) -> Option<Drawings> {
    let told: Vec<&Flame> = document.flames().iter().filter(|flame| is_told(document.why(), flame)).collect();
    let picture = |flame: &&Flame| {
        let graph = graph(document, flame);
        let drawn = |form| graph.drawn(Flames::Difference, form);
        drawn(Form::Wide).map(|wide| Picture { narrow: drawn(Form::Narrow).map(|p| p.svg), ..wide })
    };
    let pictures: Vec<Picture> = told.iter().take(MOST_ROWS).filter_map(picture).collect();
    Drawings::of(pictures, true, told.len().saturating_sub(MOST_ROWS)).map(Drawings::searchable)
}

/// Whether the arms of a pair with stacks differ.
pub(super) fn is_told(why: &[Why], flame: &Flame) -> bool {
    why.iter().any(|why| {
        why.standing == Standing::Differs
            && why.row.levels == flame.row.levels
            && why.baseline == flame.baseline
            && why.candidate == flame.candidate
    })
}

fn graph<'a>(document: &Document<'_>, flame: &'a Flame) -> FlameGraph<'a> {
    let what = match flame.kind {
        StackKind::Cpu => "processor time",
        StackKind::Waits => "sleep",
    };
    let one = match flame.operation {
        Operation::Counted => "an operation",
        Operation::Trial | Operation::Unknown => "a trial",
    };
    FlameGraph {
        stacks: &flame.stacks,
        title: format!("{}: {what} {one}", pair(document, flame)),
        one,
        arms: [&flame.baseline, &flame.candidate].map(|arm| index_of(document, arm)),
        candidate: document.arm(&flame.candidate),
    }
}

/// The arms of a pair, behind its row.
fn pair(document: &Document<'_>, flame: &Flame) -> String {
    // The picture may stand in a file alone, without the head that says what all rows have.
    let row = row_label(&flame.row);
    let row = if row.is_empty() { row } else { format!("{row}: ") };
    format!("{row}{} → {}", document.arm(&flame.baseline), document.arm(&flame.candidate))
}

#[cfg(test)]
mod tests {
    use resvg::usvg;

    use super::super::Options;
    use super::super::section_tests::made_up;
    use super::*;
    use crate::analyse::analyse;
    use crate::record::{Better, KeptFile, Metric, Unit};

    /// Names that would end texts, comments and sections of a document.
    const STACKS: &str = "a<b>&;]]>--!>\u{1}\"' 9000\n<![CDATA[;</g></svg> 1000\n";

    #[test]
    fn every_file_is_well_formed_whatever_names_say() {
        let (mut run, _) = made_up();
        run.design.factors[0].levels[1] = "]]>--!> & \"off\" \u{1}</title><b>".to_owned();
        let (job, name) = (String::new(), "cpu.samples".to_owned());
        let samples = run.metric_index(&Metric { job, name, unit: Unit::Count, better: Better::Lower });
        for trial in &mut run.trials {
            trial.values.push((samples, 10.0));
            let text = if trial.cell == 0 { STACKS } else { "a 5000\n" };
            trial.files = vec![KeptFile { name: "cpu.folded".to_owned(), bytes: text.into() }];
        }
        let analysis = analyse(&run, &crate::analyse::Options::default());
        let document = Document::build(&run, &analysis, &Options::default());
        let files = flame_files(&document);
        assert_eq!(files.len(), 5, "{files:?}");
        for file in &files {
            assert!(KeptFile::is_name(&file.name), "{}", file.name);
            if file.name.ends_with(".svg") {
                let tree = usvg::Tree::from_str(&file.content, &usvg::Options::default());
                assert!(tree.is_ok(), "{:?}: {}", tree.err(), file.content);
            }
        }
        let folded =
            |ending: &str| files.iter().find(|file| file.name.ends_with(ending)).map(|file| &file.content);
        let expected = "<![CDATA[;</g></svg> 1000000\na<b>&;]]>--!>_\"' 9000000\n";
        assert_eq!(folded("baseline.folded").map(String::as_str), Some(expected));
        assert_eq!(folded("candidate.folded").map(String::as_str), Some("a 5000000\n"));
    }
}
