//! The three kinds of table of the published study, in fio's READ, WRITE and CPU columns.

use std::collections::HashMap;
use std::ops::Range;

use super::super::comparisons::is_chance;
use super::super::document::Document;
use super::super::layout::{ascii, left, right, shorten, width, wrap};
use super::super::page::Page;
use super::super::words::Names;
use super::columns::{Average, Averages, Column, Nine, averages};
use super::{difference_heading, difference_pct};
use crate::analyse::RowKey;

/// Labels are not shortened below this many columns.
const LEAST_LABEL: usize = 10;

/// Averages of all rows and arms, ready to be written.
pub(super) struct FioTables<'d> {
    averages: Averages<'d>,
    names: Names<'d>,
    arms: Vec<(&'d str, String)>,
    head: String,
    /// The columns that have anything: a direction that nobody moved is left out.
    columns: Vec<usize>,
    hide: Option<f64>,
    so_far: &'static str,
}

impl<'d> FioTables<'d> {
    /// The tables, when the results are shaped like fio's.
    pub(super) fn of(document: &'d Document<'_>) -> Option<FioTables<'d>> {
        let averages = averages(document.analysis)?;
        let arms = document.analysis.arms.iter().map(|arm| (arm.as_str(), document.arm(arm))).collect();
        let row = averages.rows.first()?;
        let names = document.names();
        let factors: Vec<&str> = varied(row, &names).map(|(factor, _)| factor.as_str()).collect();
        let head = match factors.as_slice() {
            [] => "Job Name".to_owned(),
            ["job"] if row.job.is_empty() => "Job Name".to_owned(),
            factors => factors.join(" "),
        };
        let moved = |of: Range<usize>| {
            let all = averages.cells.values().flat_map(|nine: &Nine| nine[of.clone()].iter().flatten());
            all.into_iter().any(|average| average.mean != 0.0)
        };
        let mut columns: Vec<usize> =
            [0..3, 3..6].into_iter().filter(|of| moved(of.clone())).flatten().collect();
        if columns.is_empty() {
            columns.extend(0..6);
        }
        columns.extend(6..9);
        Some(FioTables {
            columns,
            averages,
            names,
            arms,
            head,
            hide: document.options.hide_below_pct,
            so_far: document.so_far(),
        })
    }

    /// All tables, each behind its heading.
    pub(super) fn write(&self, out: &mut String, page: &Page) {
        for (arm, name) in &self.arms {
            page.heading(out, &format!("AVERAGES{}, {name}", self.so_far));
            self.table(out, page, |row, column| {
                self.cell(row, arm, column).map(|average| mean_text(average, column))
            });
        }
        let hide = self.hide.unwrap_or(0.0);
        for (candidate, name) in self.arms.iter().skip(1) {
            let (baseline, baseline_name) = &self.arms[0];
            page.heading(out, &difference_heading(self.so_far, baseline_name, name, self.hide));
            self.table(out, page, |row, column| {
                let base = self.cell(row, baseline, column)?;
                let cand = self.cell(row, candidate, column)?;
                let percent = difference_pct(base.mean, cand.mean, hide);
                (!is_chance(base.n, cand.n)).then(|| self.difference_text(percent, column))
            });
        }
        let spread = |row: &RowKey, arm: &str, column| {
            self.cell(row, arm, column).filter(|average| average.stddev.is_finite())
        };
        for (arm, name) in &self.arms {
            if self.averages.rows.iter().all(|row| Column::ALL.iter().all(|c| spread(row, arm, *c).is_none()))
            {
                continue;
            }
            page.heading(out, &format!("STANDARD DEVIATION{} in %, {name}", self.so_far));
            self.table(out, page, |row, column| {
                let average = spread(row, arm, column)?;
                let percent = if average.stddev == 0.0 { 0.0 } else { average.stddev / average.mean * 100.0 };
                let decimals = if column.is_integer() { 0 } else { 2 };
                Some(if percent.is_finite() { format!("{percent:.decimals$}") } else { "-".to_owned() })
            });
        }
        self.notes(out, page);
    }

    /// What the figures are.
    fn notes(&self, out: &mut String, page: &Page) {
        let mut notes = Vec::new();
        if self.arms.len() > 1 {
            notes.push(match self.hide {
                Some(_) => {
                    "Differences are of means; those in whole numbers are cut off toward 0, not rounded."
                }
                None => "Differences are of means.",
            });
        }
        if self.averages.in_kib {
            notes.push("KB: 1024 bytes.");
        }
        if self.averages.cpu_derived {
            let of = if self.averages.of_all_processes {
                "usr and sys are CPU time in % of the run time of all processes of the job together, as fio \
                 prints them."
            } else {
                "usr and sys are CPU time in % of the job's run time."
            };
            notes.push(of);
        }
        if !notes.is_empty() {
            out.push('\n');
            page.words(out, &notes.join(" "), "", "");
        }
    }

    /// Integer columns rounded; where differences are hidden cut off toward zero, as the study has both. The others with two decimals.
    fn difference_text(&self, percent: f64, column: Column) -> String {
        if !percent.is_finite() {
            return "-".to_owned();
        }
        if !column.is_integer() {
            let text = format!("{percent:.2}");
            return if text == "-0.00" { "0.00".to_owned() } else { text };
        }
        let whole = match self.hide {
            // A hair outward: 7.0 may have become 6.999999999 on its way through the column's unit.
            Some(_) => (percent + percent.signum() * 1e-9).trunc(),
            None => percent.round(),
        };
        format!("{:.0}", if whole == 0.0 { 0.0 } else { whole })
    }

    fn nine(&self, row: &RowKey, arm: &str) -> Option<Nine> {
        let cells: &HashMap<(&RowKey, &str), Nine> = &self.averages.cells;
        cells.get(&(row, arm)).copied()
    }

    /// One average. A direction that moved nothing is 0, as fio prints it. One that moved has only what is known of it.
    fn cell(&self, row: &RowKey, arm: &str, column: Column) -> Option<Average> {
        let nine = self.nine(row, arm)?;
        let n = nine.iter().flatten().map(|average| average.n).max().unwrap_or(0);
        let zero = Average { mean: 0.0, stddev: 0.0, n };
        let moved = |columns: Range<usize>| nine[columns].iter().flatten().any(|average| average.mean != 0.0);
        let idle = column.of_direction().is_some_and(|columns| !moved(columns));
        nine[column as usize].or(idle.then_some(zero))
    }

    /// One table: in one block where it fits, else in two blocks, READ + WRITE and CPU.
    fn table(&self, out: &mut String, page: &Page, text: impl Fn(&RowKey, Column) -> Option<String>) {
        let labels: Vec<String> =
            self.averages.rows.iter().map(|row| ascii(&label(row, &self.names))).collect();
        let cells: Vec<Vec<String>> = self
            .averages
            .rows
            .iter()
            .map(|row| Column::ALL.iter().map(|c| text(row, *c).unwrap_or_else(|| "-".to_owned())).collect())
            .collect();
        let all = &self.columns;
        let mut grid = Grid::measure(&self.head, &labels, &cells);
        if grid.columns(all) > page.columns && grid.drop_cents(&cells) {
            let whole = whole_switches(&cells);
            grid = Grid::measure(&self.head, &labels, &whole);
            if grid.least(all) <= page.columns {
                return grid.write(out, page, &self.head, &labels, &whole, all);
            }
        }
        if grid.least(all) <= page.columns {
            return grid.write(out, page, &self.head, &labels, &cells, all);
        }
        let (directions, processor) = all.split_at(all.len() - 3);
        for columns in [directions, processor] {
            grid.write(out, page, &self.head, &labels, &cells, columns);
        }
    }
}

/// Context switches without their two decimals, which are needed least where room is short.
fn whole_switches(cells: &[Vec<String>]) -> Vec<Vec<String>> {
    let cut = |cell: &String| cell.split_once('.').map_or(cell.clone(), |(whole, _)| whole.to_owned());
    cells
        .iter()
        .map(|row| row.iter().enumerate().map(|(at, c)| if at == 8 { cut(c) } else { c.clone() }).collect())
        .collect()
}

fn mean_text(average: Average, column: Column) -> String {
    match (average.mean.is_finite(), column.is_integer()) {
        (false, _) => "-".to_owned(),
        (true, true) => format!("{:.0}", average.mean),
        (true, false) => format!("{:.2}", average.mean),
    }
}

/// The levels that tell a row from others.
fn varied<'r>(row: &'r RowKey, names: &Names<'_>) -> impl Iterator<Item = &'r (String, String)> {
    row.levels.iter().filter(|(factor, _)| !names.is_fixed(factor))
}

/// The row's levels and job, without the names of the factors.
fn label(row: &RowKey, names: &Names<'_>) -> String {
    let mut parts: Vec<&str> = varied(row, names).map(|(_, level)| level.as_str()).collect();
    if !row.job.is_empty() {
        parts.push(&row.job);
    }
    if parts.is_empty() { "all".to_owned() } else { parts.join(" ") }
}

/// Widths of the label and of the nine columns.
struct Grid {
    label: usize,
    values: Vec<usize>,
}

impl Grid {
    fn measure(head: &str, labels: &[String], cells: &[Vec<String>]) -> Grid {
        let label = labels.iter().map(|l| width(l)).fold(width(head), usize::max);
        let values = Column::ALL
            .iter()
            .enumerate()
            .map(|(at, column)| cells.iter().map(|row| width(&row[at])).fold(column.head().len(), usize::max))
            .collect();
        Grid { label, values }
    }

    /// Columns the values take, one blank before each.
    fn numbers(&self, of: &[usize]) -> usize {
        of.iter().map(|at| self.values[*at] + 1).sum()
    }

    fn columns(&self, of: &[usize]) -> usize {
        self.label + self.numbers(of)
    }

    /// Columns with the label as short as it may become.
    fn least(&self, of: &[usize]) -> usize {
        self.label.min(LEAST_LABEL) + self.numbers(of)
    }

    /// Whether the last column has decimals that could be dropped.
    fn drop_cents(&self, cells: &[Vec<String>]) -> bool {
        cells.iter().any(|row| row[8].len() > 8 && row[8].contains('.'))
    }

    fn write(
        &self,
        out: &mut String,
        page: &Page,
        head: &str,
        labels: &[String],
        cells: &[Vec<String>],
        of: &[usize],
    ) {
        let room = page.columns.saturating_sub(self.numbers(of));
        let label = self.label.min(room.max(1));
        let mut groups = " ".repeat(label);
        for (name, columns) in [("READ", [0, 1, 2]), ("WRITE", [3, 4, 5]), ("CPU", [6, 7, 8])] {
            if of.contains(&columns[0]) {
                let numbers = self.numbers(&columns);
                groups.push_str(&right(&centred(name, numbers - 1), numbers));
            }
        }
        let mut lines = vec![groups.trim_end().to_owned()];
        let line = |name: &str, texts: &mut dyn Iterator<Item = &str>| {
            let mut line = left(&ascii(&shorten(name, label)), label);
            for (text, at) in texts.zip(of) {
                line.push(' ');
                line.push_str(&right(text, self.values[*at]));
            }
            line
        };
        lines.push(line(head, &mut of.iter().map(|at| Column::ALL[*at].head())));
        for (name, row) in labels.iter().zip(cells) {
            lines.push(line(name, &mut of.iter().map(|at| row[*at].as_str())));
        }
        for text in lines {
            let fits = width(&text) <= page.columns;
            out.push_str(&if fits { text } else { wrap(&text, page.columns, "", "    ") });
            out.push('\n');
        }
    }
}

fn centred(text: &str, columns: usize) -> String {
    let before = columns.saturating_sub(width(text)) / 2;
    left(&format!("{}{text}", " ".repeat(before)), columns)
}
