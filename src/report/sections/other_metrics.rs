//! The tables of the metrics that only accompany, and what they leave out.
//!
//! Enters: exploratory comparisons. Leaves: tables, one a row and candidate, and sentences. It must not judge.

use super::clear::is_undecided;
use super::{Material, left_out};
use crate::analyse::{Comparison, Verdict};
use crate::report::comparisons::{Beside, beside, group, repeated, stands_out};
use crate::report::format::Detail;
use crate::report::operation_times::ranked;
use crate::report::section::{Block, GivesWay, Heading, Section, Weight};
use crate::report::table;
use crate::report::words::{is_nothing, printed_alike};

/// Tables that are there before anything is unfolded.
const MOST_UNFOLDED: usize = 2;

/// Where a report is to fit one screen.
const WAY: GivesWay = GivesWay {
    turn: Some(3),
    called: "other metrics",
    most: [2, 2],
    items: ["other metric", "other metrics"],
};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("other metrics"));
    let Material { run, analysis, options, names, primary, footnotes, .. } = material;
    let Beside { small, others, .. } = beside(run, analysis, options);
    // Who names metrics wants their figures, whatever they show.
    let named = options.named_metrics;
    let listed = options.detail > Detail::Screen || named || options.all_metrics;
    let (repeats, others): (Vec<&Comparison>, Vec<&Comparison>) =
        others.into_iter().partition(|c| !named && repeated(c, analysis).is_some());
    let (mut shown, hidden): (Vec<&Comparison>, Vec<&Comparison>) =
        ranked(others).into_iter().partition(|c| named || is_listed(c, options.all_metrics));
    let mut clear = Vec::new();
    if !listed {
        // What decides has its verdict, also where it decides for jobs and is known of the whole trial, too.
        shown.retain(|c| primary.iter().all(|decides| decides.metric.name != c.metric.name));
        clear = std::mem::take(&mut shown);
    }
    let tables: Vec<Block> = group(&shown, |c| (c.candidate.arm.as_str(), &c.row))
        .iter()
        .filter_map(|rows| table::exploratory(rows, names, footnotes))
        .map(Block::Table)
        .collect();
    let left_out = match options.all_metrics {
        true => left_out::alike(&hidden).into_iter().chain(left_out::repeated(&repeats)).collect(),
        false => left_out::sentences(&clear, &hidden, small),
    };
    if tables.is_empty() && left_out.is_empty() {
        return Section::new("other-metrics", heading, Vec::new()).of_weight(Weight::Figures);
    }
    let what = if analysis.so_far().is_none() {
        "Exploratory: false discoveries are held to 5 % over all of them together, and none decides."
    } else {
        "Exploratory: none decides."
    };
    let mut blocks = vec![Block::Legend(what.to_owned())];
    if !tables.is_empty() {
        let open = tables.len() <= MOST_UNFOLDED;
        blocks.push(Block::Folded { summary: "Metrics shown".to_owned(), open, blocks: tables });
    }
    blocks.push(Block::Remarks(left_out));
    let section = Section::new("other-metrics", heading, blocks).of_weight(Weight::Figures);
    // Tables that were asked for stay, and so does what differs where the verdict says that nothing shows.
    let is_all_that_differs = !clear.is_empty() && primary.iter().any(|c| is_undecided(c));
    if listed || is_all_that_differs { section } else { section.gives_way(WAY) }
}

/// Whether a metric that nobody named has a line: where all are asked for, what has a verdict, or is not printed as the same number
/// in both arms.
fn is_listed(c: &Comparison, all: bool) -> bool {
    let tells = || matches!(c.verdict, Verdict::NoDifference { .. }) || !printed_alike(c);
    stands_out(c) || all && tells() && !is_nothing(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::format::Options;
    use crate::report::operation_times::tests::observed;
    use crate::report::section::unfolded;
    use crate::report::section_tests::made_up;

    /// Names of the metrics in the tables, and the sentences.
    fn told(of: &[Comparison], options: &Options) -> (Vec<String>, Vec<String>) {
        let (run, mut analysis) = made_up();
        analysis.comparisons.extend(of.iter().cloned());
        let section = section(&mut Material::new(&run, &analysis, None, options));
        let (mut names, mut sentences) = (Vec::new(), Vec::new());
        for block in unfolded(&section.blocks) {
            match block {
                Block::Table(table) => {
                    names.extend(table.rows.iter().map(|row| format!("{} {}", row.labels[0], row.cells[2])));
                }
                Block::Remarks(all) => sentences.extend(all.clone()),
                _ => {}
            }
        }
        (names, sentences)
    }

    #[test]
    fn what_is_0_or_the_same_in_both_arms_is_listed_only_by_name() {
        let mut nothing = observed("dev.read_bytes", [0.0, 0.0]);
        nothing.effect = None;
        let alike = observed("dev.in_flight", [4.0, 4.0]);
        let mut other = observed("usr_cpu", [1.0, 1.5]);
        for c in [&mut nothing, &mut other] {
            c.verdict = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
        }
        let mut alike = Comparison { verdict: nothing.verdict.clone(), ..alike };
        let all = Options { all_metrics: true, ..Options::default() };
        let (names, sentences) = told(&[nothing.clone(), alike.clone(), other], &all);
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].starts_with("usr_cpu "), "{names:?}");
        let last = sentences.last().unwrap().replace('\u{a0}', " ");
        assert_eq!(
            last,
            "2 metrics are printed alike for both arms; `assay report RUN --metrics NAME` lists one"
        );
        let named = Options { named_metrics: true, ..Options::default() };
        alike.metric.name = "dev.other".to_owned();
        assert_eq!(told(&[nothing], &named).0, ["dev.read_bytes -"], "no percentage of nothing");
    }

    #[test]
    fn beside_an_undecided_verdict_what_differs_stays_on_the_screen() {
        let (run, mut analysis) = made_up();
        let mut other = observed("usr_cpu", [1.0, 1.5]);
        other.verdict = Verdict::Slower { beyond_delta: true };
        analysis.comparisons.push(other);
        let options = Options { detail: Detail::Screen, ..Options::default() };
        let stays = |analysis: &crate::analyse::Analysis| {
            section(&mut Material::new(&run, analysis, None, &options)).gives_way.is_none()
        };
        assert!(!stays(&analysis));
        analysis.comparisons[0].verdict =
            Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
        assert!(stays(&analysis));
    }

    #[test]
    fn a_multiple_of_what_decides_is_not_listed_beside_it() {
        let mut multiple = observed("iops", [100.0, 110.0]);
        multiple.verdict = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
        let decides = made_up().1.comparisons.remove(0);
        (multiple.baseline, multiple.candidate) = (decides.baseline, decides.candidate);
        for arm in [&mut multiple.baseline, &mut multiple.candidate] {
            arm.values.iter_mut().for_each(|value| value.3 /= 4096.0);
        }
        let all = Options { all_metrics: true, ..Options::default() };
        let (names, sentences) = told(&[multiple.clone()], &all);
        assert_eq!(names.len(), 0, "{names:?}");
        let said =
            "iops is a multiple of what decides in every trial; `assay report RUN --metrics NAME` lists it";
        assert_eq!(sentences, [said]);
        multiple.candidate.values[2].3 *= 1.01;
        assert_eq!(told(&[multiple], &all).0.len(), 1);
    }

    #[test]
    fn a_metric_that_decides_is_not_among_those_that_differ_besides() {
        let again = observed("bw", [100.0, 110.0]);
        let mut other = observed("usr_cpu", [1.0, 1.5]);
        other.verdict = Verdict::Slower { beyond_delta: true };
        let again = Comparison { verdict: other.verdict.clone(), ..again };
        let screen = Options { detail: Detail::Screen, ..Options::default() };
        let (_, sentences) = told(&[again, other], &screen);
        assert!(sentences[0].contains("1\u{a0}exploratory metric differs clearly: usr_cpu"), "{sentences:?}");
    }
}
