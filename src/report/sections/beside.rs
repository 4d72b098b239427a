//! The tables of what the experiment wants shown beside the metrics that decide: its own metrics, and what was observed.
//!
//! Enters: comparisons that accompany. Leaves: tables. Times of an operation stand first, the largest difference first, all in one
//! unit; where the run has one row they share a table. What is in a table is [`table`]'s affair.

use super::Material;
use crate::analyse::Comparison;
use crate::report::comparisons::{beside, group};
use crate::report::format::Detail;
use crate::report::operation_times::{difference_s, is_place, is_time, ranked};
use crate::report::scale_of_medians::scale_of_times;
use crate::report::section::{Block, GivesWay, Heading, Section, Weight};
use crate::report::table::{self, Table};
use crate::report::words::{Names, count};

/// Places in the kernel that a screen has room for: an observer may name a dozen, and Why tells which matter.
const PLACES: usize = 2;
/// Times of an operation in the table that they share on a screen.
const TIMES: usize = 5;
/// On a screen they take what the verdict and its reasons leave.
const WAY: GivesWay =
    GivesWay { turn: None, called: "other tables", most: [8, 4], items: ["more table", "more tables"] };

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, analysis, options, names, .. } = material;
    let shown = beside(run, analysis, options).shown;
    let (times, others): (Vec<&Comparison>, Vec<&Comparison>) =
        shown.into_iter().partition(|c| is_time(&c.metric));
    let mut tables = Vec::new();
    let mut left_out = false;
    for of_candidate in group(&times, |c| (c.candidate.arm.as_str(), &c.metric.unit)) {
        let (told, all_told) = of_times(of_candidate, options.detail, names);
        tables.extend(told);
        left_out |= !all_told;
    }
    let groups = group(&others, |c| (c.baseline.arm.as_str(), &c.metric.name, &c.metric.unit));
    let (others, all_told) = places_that_fit(groups, options.detail);
    tables.extend(others.iter().filter_map(|rows| table::beside(rows, names, None)));
    left_out |= !all_told;
    if tables.is_empty() {
        return Section::new("beside", Heading::None, Vec::new()).of_weight(Weight::Figures);
    }
    let summary = format!("{} beside", count(tables.len() as u64, "table"));
    let tables = tables.into_iter().map(Block::Table).collect();
    let mut blocks = vec![Block::Folded { summary, open: false, blocks: tables }];
    blocks.extend(left_out.then_some(Block::Withheld("other places that were observed")));
    Section::new("beside", Heading::None, blocks).of_weight(Weight::Figures).gives_way(WAY)
}

/// The tables of one candidate's times of an operation, and whether all of them are told.
fn of_times(times: Vec<&Comparison>, detail: Detail, names: &Names<'_>) -> (Vec<Table>, bool) {
    let Some(scale) = scale_of_times(&times) else { return (Vec::new(), true) };
    if times.iter().all(|c| c.row == times[0].row) {
        let times = ranked(times);
        let most = if detail > Detail::Screen { times.len() } else { times.len().min(TIMES) };
        let table = table::times(&times[..most], names, &scale);
        return (table.into_iter().collect(), most == times.len());
    }
    let mut groups = group(&times, |c| c.metric.name.as_str());
    let largest = |rows: &[&Comparison]| rows.iter().map(|c| difference_s(c)).fold(0.0, f64::max);
    groups.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
    let (groups, all_told) = places_that_fit(groups, detail);
    let tables = groups.iter().filter_map(|rows| table::beside(rows, names, Some(&scale)));
    (tables.collect(), all_told)
}

/// The groups without the places that a screen has no room for, and whether all are told.
fn places_that_fit(groups: Vec<Vec<&Comparison>>, detail: Detail) -> (Vec<Vec<&Comparison>>, bool) {
    let all = groups.len();
    let mut places = 0;
    let fits = |rows: &Vec<&Comparison>| {
        let is_place = rows.iter().any(|c| is_place(&c.metric));
        places += usize::from(is_place);
        !is_place || places <= PLACES || detail > Detail::Screen
    };
    let told: Vec<_> = groups.into_iter().filter(fits).collect();
    let all_told = told.len() == all;
    (told, all_told)
}

#[cfg(test)]
mod tests {
    use super::super::Material;
    use super::*;
    use crate::report::format::Options;
    use crate::report::operation_times::tests::observed;
    use crate::report::section::unfolded;
    use crate::report::section_tests::made_up;

    fn tables(told: &[Comparison]) -> Vec<Table> {
        let (mut run, mut analysis) = made_up();
        run.design.show = ["locks.wait_time_per_op", "locks.at_per_op"].map(str::to_owned).to_vec();
        analysis.comparisons.extend(told.iter().cloned());
        let options = Options { detail: Detail::Screen, ..Options::default() };
        let section = section(&mut Material::new(&run, &analysis, None, &options));
        let table = |block: &Block| match block {
            Block::Table(table) => Some(table.clone()),
            _ => None,
        };
        unfolded(&section.blocks).into_iter().filter_map(table).collect()
    }

    #[test]
    fn times_of_a_row_share_a_table_the_largest_difference_first() {
        let told = [
            observed("locks.at_per_op.spinlock.exit_to_user_mode_loop", [0.371e-9, 0.0]),
            observed("locks.at_per_op.spinlock.irqentry_exit", [0.0, 0.0]),
            observed("locks.at_per_op.rwsem_W.ext4_buffered_write_iter", [0.0, 1481.545e-9]),
            observed("locks.wait_time_per_op", [0.562e-9, 1746.105e-9]),
        ];
        let tables = tables(&told);
        let [table] = tables.as_slice() else { panic!("{tables:?}") };
        assert!(table.caption.starts_with("beside: times of an operation in µs, medians of "), "{table:?}");
        let rows: Vec<[&str; 3]> =
            table.rows.iter().map(|row| [row.labels[0].as_str(), &row.cells[0], &row.cells[1]]).collect();
        let expected = [
            ["locks.wait_time_per_op", "0.00", "1.75"],
            ["locks.at_per_op.rwsem_W.ext4_buffered_write_iter", "0.00", "1.48"],
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn times_of_several_rows_have_a_table_a_metric() {
        let mut told = Vec::new();
        for bs in ["4k", "64k"] {
            let mut c = observed("locks.wait_time_per_op", [2e-6, 3e-6]);
            c.row.levels = vec![("bs".to_owned(), bs.to_owned())];
            told.push(c);
        }
        let tables = tables(&told);
        assert_eq!((tables.len(), tables[0].rows.len()), (1, 2), "{tables:?}");
        assert_eq!(tables[0].rows[0].cells[..2], ["2.00", "3.00"]);
    }
}
