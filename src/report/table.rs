//! Comparisons as rows of strings: one table a metric and candidate, one scale a column.
//!
//! Enters: comparisons. Leaves: tables that text, Markdown and HTML lay out each in its own way.

use super::clusters;
use super::footnotes::Footnotes;
use super::layout::one_line;
use super::scale_of_medians::{medians, scale_of};
use super::verdict_words::{Tone, so_far, tone, verdict_word};
use super::words::{
    Names, cell_number, direction, effect_decimals, heads_of, interval, interval_of, is_nothing, p_value,
    percent, row_label, short_key, shown_change, unit_words,
};
use crate::analyse::{Comparison, RowKey, Verdict};
use crate::units::Scale;

/// A table: label columns at the left, value columns, the verdict last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// What is compared, on what, in which unit, which direction is good.
    pub(super) caption: String,
    /// Heads of the label columns; empty when the run has one row only.
    pub(super) labels: Vec<Head>,
    /// Heads of the value columns.
    pub(super) columns: Vec<Head>,
    /// The rows.
    pub(super) rows: Vec<TableRow>,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Its words.
    pub(super) text: String,
    /// What the column has.
    pub(super) of: Of,
}

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Levels, which say nothing without the head.
    Levels,
    /// Names, which say all by themselves.
    Names,
    /// Values of an arm, whose name may be long.
    Arm,
    /// Other values.
    Values,
    /// Verdicts, in the tone of the row.
    Verdicts,
}

impl Head {
    /// The head of such a column.
    pub(super) fn new(text: impl Into<String>, of: Of) -> Head {
        Head { text: text.into(), of }
    }

    /// Heads of columns of values.
    pub(super) fn values<'t>(texts: impl IntoIterator<Item = &'t str>) -> impl Iterator<Item = Head> {
        texts.into_iter().map(|text| Head::new(text, Of::Values))
    }

    /// Heads of the columns of both arms.
    fn arms(names: &Names<'_>, comparison: &Comparison) -> impl Iterator<Item = Head> {
        heads_of(names, comparison).into_iter().map(|text| Head::new(text, Of::Arm))
    }
}

/// One comparison in a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableRow {
    /// One text a label column.
    pub(super) labels: Vec<String>,
    /// One text a value column.
    pub(super) cells: Vec<String>,
    /// What the verdict means, in tables that have one.
    pub(super) tone: Option<Tone>,
    /// Numbers of its footnotes, from 1.
    pub(super) notes: Vec<usize>,
}

/// Heads of the label columns of these rows: the factors, and the job when any row has one.
fn label_heads(comparisons: &[&Comparison]) -> Vec<Head> {
    let factors = comparisons.first().map(|c| c.row.levels.as_slice()).unwrap_or_default();
    let job = comparisons.iter().any(|c| !c.row.job.is_empty()).then_some("job");
    let names = factors.iter().map(|(factor, _)| factor.as_str()).chain(job);
    names.map(|name| Head::new(short_key(name), Of::Levels)).collect()
}

fn labels_of(row: &RowKey, heads: usize) -> Vec<String> {
    let mut labels: Vec<String> = row.levels.iter().map(|(_, level)| one_line(level)).collect();
    if labels.len() < heads {
        labels.push(one_line(&row.job));
    }
    labels.resize(heads, String::new());
    labels
}

/// The primary table of one metric and one candidate.
pub(super) fn primary(
    comparisons: &[&Comparison],
    names: &Names<'_>,
    notes: &mut Footnotes,
) -> Option<Table> {
    let first = comparisons.first()?;
    let metric = &first.metric;
    let both = names.against(&first.candidate.arm, &first.baseline.arm);
    let scale = scale_of(comparisons);
    let labels = label_heads(comparisons);
    let with_p = comparisons.iter().any(|c| c.p.is_some() && c.effect.is_some());
    let adjusted = comparisons.iter().any(|c| c.p_adjusted.is_some_and(|p| Some(p) != c.p));
    let p = with_p.then_some(if adjusted { "adj. p" } else { "p" });
    let values = ["change %", "interval", "mean %"].into_iter().chain(p).chain(["n"]);
    let columns = Head::arms(names, first)
        .chain(Head::values(values))
        .chain([Head::new("verdict", Of::Verdicts)])
        .collect();
    let rows = comparisons
        .iter()
        .map(|c| {
            let decimals = effect_decimals(c.effect);
            let mut cells = vec![
                cell_number(&scale, c.baseline.median),
                cell_number(&scale, c.candidate.median),
                percent(shown_change(c), decimals),
                interval_of(c),
                percent(c.mean_change.estimate, 1),
            ];
            if with_p {
                cells.push(c.p_adjusted.or(c.p).map_or("-".to_owned(), p_value));
            }
            cells.push(repeats(c));
            cells.push(verdict_word(c).to_owned());
            TableRow {
                labels: labels_of(&c.row, labels.len()),
                cells,
                tone: Some(tone(&c.verdict)),
                notes: notes.of(c, names),
            }
        })
        .collect();
    let caption = format!(
        "{}{}: medians of {both}{}; {}",
        metric.name,
        unit_words(&scale, &metric.unit),
        so_far(comparisons.iter().copied()),
        direction(metric.better)
    );
    Some(Table { caption, labels, columns, rows })
}

/// The interval of each row as the only one that decides, beside the one that holds together with the others; `None` where one row
/// decides, which has one interval.
pub(super) fn alone(comparisons: &[&Comparison], names: &Names<'_>) -> Option<Table> {
    let first = comparisons.iter().find(|c| c.alone.is_some())?;
    let labels = label_heads(comparisons);
    let rows = comparisons
        .iter()
        .map(|c| TableRow {
            labels: labels_of(&c.row, labels.len()),
            cells: vec![interval_of(c), interval(c.alone)],
            tone: None,
            notes: Vec::new(),
        })
        .collect();
    let both = names.against(&first.candidate.arm, &first.baseline.arm);
    let caption = format!(
        "{}: intervals in percent of {both}: with the other rows, as judged, and of each row alone, which do not \
         hold together",
        first.metric.name
    );
    Some(Table { caption, labels, columns: Head::values(["interval", "alone"]).collect(), rows })
}

/// A share of nothing is no figure, but where it differs all the same.
fn hides_change(c: &Comparison) -> bool {
    is_nothing(c) && !stands_out(c)
}

/// The change in percent, of a comparison that accompanies.
fn change_beside(c: &Comparison) -> String {
    if hides_change(c) { "-".to_owned() } else { percent(shown_change(c), effect_decimals(c.effect)) }
}

/// A table of one metric that accompanies: values and their change, no verdict. Times of an operation share one unit, `of_times`.
pub(super) fn beside(
    comparisons: &[&Comparison],
    names: &Names<'_>,
    of_times: Option<&Scale>,
) -> Option<Table> {
    let first = comparisons.first()?;
    let metric = &first.metric;
    let both = names.against(&first.candidate.arm, &first.baseline.arm);
    let scale = of_times
        .map_or_else(|| scale_of(comparisons), |scale| scale.clone().with_digits_of(medians(comparisons)));
    let labels = label_heads(comparisons);
    let columns = Head::arms(names, first).chain(Head::values(["change %", "n"])).collect();
    let rows = comparisons.iter().map(|c| row_beside(labels_of(&c.row, labels.len()), &scale, c)).collect();
    let unit = unit_words(&scale, &metric.unit);
    let so_far = so_far(comparisons.iter().copied());
    let caption = format!("beside: {}{unit}, medians of {both}{so_far}", metric.name);
    Some(Table { caption, labels, columns, rows })
}

/// Both medians, their change and how often they were measured.
fn row_beside(labels: Vec<String>, scale: &Scale, c: &Comparison) -> TableRow {
    let [baseline, candidate] =
        [c.baseline.median, c.candidate.median].map(|median| cell_number(scale, median));
    TableRow {
        labels,
        cells: vec![baseline, candidate, change_beside(c), repeats(c)],
        tone: None,
        notes: Vec::new(),
    }
}

/// A table of times of an operation in the one row of a run, in the order in which they come.
pub(super) fn times(comparisons: &[&Comparison], names: &Names<'_>, of_times: &Scale) -> Option<Table> {
    let first = comparisons.first()?;
    let row = row_label(&first.row);
    let place = if row.is_empty() { row } else { format!("{row}: ") };
    let rows = comparisons.iter().map(|c| {
        let scale = of_times.clone().with_digits_of(medians(&[*c]));
        row_beside(vec![c.metric.name.clone()], &scale, c)
    });
    let both = names.against(&first.candidate.arm, &first.baseline.arm);
    let unit = unit_words(of_times, &first.metric.unit);
    let so_far = so_far(comparisons.iter().copied());
    Some(Table {
        caption: format!("beside: {place}times of an operation{unit}, medians of {both}{so_far}"),
        labels: vec![Head::new("metric", Of::Names)],
        columns: Head::arms(names, first).chain(Head::values(["change %", "n"])).collect(),
        rows: rows.collect(),
    })
}

/// Rounds, or repeats of both arms where they differ, or clusters.
fn repeats(c: &Comparison) -> String {
    if let Some(of) = clusters::counted(c) {
        let [a, b] = of.arms;
        return if of.paired || a == b { c.n.to_string() } else { format!("{a}/{b}") };
    }
    let (a, b) = (c.baseline.n, c.candidate.n);
    let unpaired =
        matches!(c.method, crate::analyse::Method::MannWhitney | crate::analyse::Method::ChangeOnly);
    if unpaired && a != b { format!("{a}/{b}") } else { c.n.to_string() }
}

/// The exploratory metrics of one row and one candidate, each value with its own unit.
pub(super) fn exploratory(
    comparisons: &[&Comparison],
    names: &Names<'_>,
    notes: &mut Footnotes,
) -> Option<Table> {
    let first = comparisons.first()?;
    let both = names.against(&first.candidate.arm, &first.baseline.arm);
    let row = row_label(&first.row);
    let place = if row.is_empty() { String::new() } else { format!("{row}: ") };
    let rows = comparisons
        .iter()
        .map(|c| {
            let scale = scale_of(&[*c]);
            // What stands for many operations stands once, behind the name.
            let (of_name, of_value) = match scale.symbol.starts_with("per ") {
                true => (format!(" {}", scale.symbol), ""),
                false => (String::new(), scale.symbol.as_str()),
            };
            let value = |v: f64| {
                let number = cell_number(&scale, v);
                // What has no value has no unit either.
                if of_value.is_empty() || !v.is_finite() { number } else { format!("{number} {of_value}") }
            };
            let cells = vec![
                value(c.baseline.median),
                value(c.candidate.median),
                change_beside(c),
                if hides_change(c) { String::new() } else { interval_of(c) },
                verdict_word(c).to_owned(),
            ];
            TableRow {
                labels: vec![c.metric.name.clone() + &of_name],
                cells,
                tone: Some(tone(&c.verdict)),
                notes: notes.of(c, names),
            }
        })
        .collect();
    Some(Table {
        caption: format!(
            "{place}other metrics of {both}{} (medians; exploratory)",
            so_far(comparisons.iter().copied())
        ),
        labels: vec![Head::new("metric", Of::Names)],
        columns: Head::arms(names, first)
            .chain(Head::values(["change %", "interval"]))
            .chain([Head::new("verdict", Of::Verdicts)])
            .collect(),
        rows,
    })
}

/// Whether an exploratory metric is worth a line without `--all-metrics`: it differs clearly, and says something of its own.
pub(super) fn stands_out(comparison: &Comparison) -> bool {
    comparison.unlisted.is_none()
        && matches!(comparison.verdict, Verdict::Faster { .. } | Verdict::Slower { .. })
}
