//! Comparisons as rows of strings: one table a metric and baseline, one scale a column.
//!
//! Enters: comparisons. Leaves: tables that text, Markdown and HTML lay out each in its own way.

use super::clusters;
use super::comparisons::{group, has_change, stands_out};
use super::footnotes::Footnotes;
use super::layout::one_line;
use super::raw_words::difference_words;
use super::scale_of_medians::{medians, scale_of};
use super::verdict_words::{Tone, form_instead, so_far, tone_of_row, verdict_word};
use super::words::{
    NBSP, Names, cell_number, change_cell, direction, has_share, heads_of, interval_alone, interval_of,
    is_nothing, p_value, short_key, shown_cell, unit_words,
};
use crate::analyse::{Comparison, RowKey};
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
    fn arms(names: &Names<'_>, comparisons: &[&Comparison]) -> impl Iterator<Item = Head> {
        let several = candidates(comparisons) > 1;
        let mut heads = comparisons.first().map(|c| heads_of(names, c)).into_iter().flatten();
        let baseline = heads.next().map(|text| Head::new(text, Of::Arm));
        let candidate = heads.next().map(|text| match several {
            true => Head::new("candidate", Of::Values),
            false => Head::new(text, Of::Arm),
        });
        baseline.into_iter().chain(candidate)
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

impl TableRow {
    /// A row without a verdict.
    pub(super) fn new(labels: Vec<String>, cells: Vec<String>) -> TableRow {
        TableRow { labels, cells, tone: None, notes: Vec::new() }
    }
}

/// What tells the rows of a table apart: the candidate where there are several, the factors of several levels, and the job when any row
/// has one.
struct Labels<'n> {
    names: &'n Names<'n>,
    heads: Vec<Head>,
    has_job: bool,
    has_candidate: bool,
}

impl<'n> Labels<'n> {
    fn of(comparisons: &[&Comparison], names: &'n Names<'_>) -> Labels<'n> {
        let factors = comparisons.first().map(|c| c.row.levels.as_slice()).unwrap_or_default();
        let varied =
            factors.iter().map(|(factor, _)| factor.as_str()).filter(|factor| !names.is_fixed(factor));
        let has_job = comparisons.iter().any(|c| !c.row.job.is_empty());
        let has_candidate = candidates(comparisons) > 1;
        let job = has_job.then_some("job");
        let arm = has_candidate.then(|| names.factor().unwrap_or_else(|| "arm".to_owned()));
        let heads = arm.as_deref().into_iter().chain(varied).chain(job);
        let heads = heads.map(|name| Head::new(short_key(name), Of::Levels)).collect();
        Labels { names, heads, has_job, has_candidate }
    }

    /// The labels of a comparison, one a head, also where a store has fewer levels for a row.
    fn row(&self, comparison: &Comparison) -> Vec<String> {
        let RowKey { levels, job } = &comparison.row;
        let varied = levels.iter().filter(|(factor, _)| !self.names.is_fixed(factor));
        let job = self.has_job.then_some(job);
        let candidate = self.has_candidate.then_some(&comparison.candidate.arm);
        let labels = candidate.into_iter().chain(varied.map(|(_, level)| level)).chain(job);
        let mut labels: Vec<String> = labels.map(|label| one_line(label)).collect();
        labels.resize(self.heads.len(), String::new());
        labels
    }
}

/// How many arms are compared with the baseline.
fn candidates(comparisons: &[&Comparison]) -> usize {
    group(comparisons, |c| &c.candidate.arm).len()
}

/// `direct=1 against direct=0`, or how many there are of them.
fn both(comparisons: &[&Comparison], names: &Names<'_>) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    match candidates(comparisons) {
        1 => names.against(&first.candidate.arm, &first.baseline.arm),
        n => format!("{n}{NBSP}candidates against {}", names.arm(&first.baseline.arm)),
    }
}

/// The rows of a candidate below each other.
fn by_candidate<'c>(comparisons: &[&'c Comparison]) -> Vec<&'c Comparison> {
    group(comparisons, |c| &c.candidate.arm).concat()
}

/// The primary table of one metric and one baseline.
pub(super) fn primary(
    comparisons: &[&Comparison],
    names: &Names<'_>,
    notes: &mut Footnotes,
) -> Option<Table> {
    let first = comparisons.first()?;
    let metric = &first.metric;
    let both = both(comparisons, names);
    let scale = scale_of(comparisons);
    let labels = Labels::of(comparisons, names);
    let with_p = comparisons.iter().any(|c| c.p.is_some() && c.effect.is_some());
    // The largest of a family stays what it is, and is adjusted all the same.
    let adjusted =
        comparisons.iter().any(|c| c.p_adjusted.is_some_and(|p| Some(p) != c.p || c.alone.is_some()));
    let p = with_p.then_some(if adjusted { "adj. p" } else { "p" });
    let values = ["change %", "interval", "mean %"].into_iter().chain(p).chain(["n"]);
    let columns = Head::arms(names, comparisons)
        .chain(Head::values(values))
        .chain([Head::new("verdict", Of::Verdicts)])
        .collect();
    let rows = by_candidate(comparisons)
        .into_iter()
        .map(|c| {
            let mut cells = vec![
                cell_number(&scale, c.baseline.median),
                cell_number(&scale, c.candidate.median),
                if has_share(c) { shown_cell(c) } else { "-".to_owned() },
                interval_cell(c),
                change_cell(c.mean_change.estimate, 1),
            ];
            if with_p {
                cells.push(c.p_adjusted.or(c.p).map_or("-".to_owned(), p_value));
            }
            cells.push(repeats(c));
            cells.push(verdict_word(c).to_owned());
            TableRow { labels: labels.row(c), cells, tone: tone_of_row(c), notes: notes.of(c, names) }
        })
        .collect();
    let without = if comparisons.iter().any(|c| !has_share(c)) { WITHOUT_CHANGE } else { "" };
    let caption = format!(
        "{}{}: medians of {both}{}; {}{without}",
        metric.name,
        unit_words(&scale, &metric.unit),
        so_far(comparisons.iter().copied()),
        direction(metric.better)
    );
    Some(Table { caption, labels: labels.heads, columns, rows })
}

/// The interval of each row as the only one that decides, beside the one that holds together with the others; `None` where one row
/// decides, which has one interval.
pub(super) fn alone(comparisons: &[&Comparison], names: &Names<'_>) -> Option<Table> {
    let first = comparisons.iter().find(|c| c.alone.is_some())?;
    let labels = Labels::of(comparisons, names);
    let rows = by_candidate(comparisons)
        .into_iter()
        .map(|c| TableRow::new(labels.row(c), vec![interval_of(c), interval_alone(c)]))
        .collect();
    let both = both(comparisons, names);
    let caption = format!(
        "{}: intervals in percent of {both}: with the other rows, as judged, and of each row alone, which do not \
         hold together",
        first.metric.name
    );
    Some(Table {
        caption,
        labels: labels.heads,
        columns: Head::values(["interval", "alone"]).collect(),
        rows,
    })
}

/// Whether one median is so much larger that a unit for both suits only one of them.
fn are_far_apart(c: &Comparison) -> bool {
    let [a, b] = [c.baseline.median.abs(), c.candidate.median.abs()];
    a.min(b) > 0.0 && a.max(b) >= 1000.0 * a.min(b)
}

/// A share of nothing is no figure, but where it differs all the same.
fn hides_change(c: &Comparison) -> bool {
    is_nothing(c) && !stands_out(c)
}

/// The change in percent, of a comparison that accompanies.
fn change_beside(c: &Comparison) -> String {
    if !has_change(c) || hides_change(c) || !has_share(c) { "-".to_owned() } else { shown_cell(c) }
}

/// What a caption adds where a row has a difference and no change.
const WITHOUT_CHANGE: &str = "; without change %: the difference";

/// The interval of a row, in percent; where there is no share the difference with its interval, in the metric's unit.
fn interval_cell(c: &Comparison) -> String {
    if has_share(c) { interval_of(c) } else { difference_words(c) }
}

/// The same of a comparison that accompanies.
fn interval_beside(c: &Comparison) -> String {
    if !has_change(c) || hides_change(c) { String::new() } else { interval_cell(c) }
}

/// What a caption adds for rows that accompany.
fn without_change(comparisons: &[&Comparison]) -> &'static str {
    let is_told = |c: &&Comparison| !has_share(c) && !interval_beside(c).is_empty();
    if comparisons.iter().any(is_told) { WITHOUT_CHANGE } else { "" }
}

/// What a caption adds where a total of different amounts of work has no verdict.
fn of_forms(comparisons: &[&Comparison]) -> &'static str {
    match comparisons.iter().any(|c| form_instead(c).is_some()) {
        true => {
            "; see per op or byte: trials did different amounts of work, and the metric's form for each operation or \
             byte says which arm is better"
        }
        false => "",
    }
}

/// A table of one metric that accompanies: values, their change and what it is taken for. Times of an operation share one unit, `of_times`.
pub(super) fn beside(
    comparisons: &[&Comparison],
    names: &Names<'_>,
    of_times: Option<&Scale>,
) -> Option<Table> {
    let first = comparisons.first()?;
    let metric = &first.metric;
    let both = both(comparisons, names);
    let scale = of_times
        .map_or_else(|| scale_of(comparisons), |scale| scale.clone().with_digits_of(medians(comparisons)));
    let labels = Labels::of(comparisons, names);
    let columns = Head::arms(names, comparisons).chain(Head::values(["change %", "interval", "n"]));
    let columns = columns.chain([Head::new("verdict", Of::Verdicts)]).collect();
    let rows = by_candidate(comparisons).into_iter().map(|c| {
        let mut row = row_beside(labels.row(c), &scale, c);
        row.cells.push(verdict_word(c).to_owned());
        row
    });
    let rows = rows.collect();
    let unit = unit_words(&scale, &metric.unit);
    let so_far = so_far(comparisons.iter().copied());
    let without = without_change(comparisons);
    let of_forms = of_forms(comparisons);
    let caption = format!("beside: {}{unit}, medians of {both}{so_far}{without}{of_forms}", metric.name);
    Some(Table { caption, labels: labels.heads, columns, rows })
}

/// Both medians, their change with its interval, and how often they were measured.
fn row_beside(labels: Vec<String>, scale: &Scale, c: &Comparison) -> TableRow {
    let [baseline, candidate] =
        [c.baseline.median, c.candidate.median].map(|median| cell_number(scale, median));
    TableRow::new(labels, vec![baseline, candidate, change_beside(c), interval_beside(c), repeats(c)])
}

/// A table of times of an operation in the one row of a run, in the order in which they come.
pub(super) fn times(comparisons: &[&Comparison], names: &Names<'_>, of_times: &Scale) -> Option<Table> {
    let first = comparisons.first()?;
    let place = names.before(&first.row);
    let rows = comparisons.iter().map(|c| {
        let scale = of_times.clone().with_digits_of(medians(&[*c]));
        row_beside(vec![c.metric.name.clone()], &scale, c)
    });
    let both = both(comparisons, names);
    let unit = unit_words(of_times, &first.metric.unit);
    let so_far = so_far(comparisons.iter().copied());
    Some(Table {
        caption: format!(
            "beside: {place}times of an operation{unit}, medians of {both}{so_far}{}",
            without_change(comparisons)
        ),
        labels: vec![Head::new("metric", Of::Names)],
        columns: Head::arms(names, comparisons).chain(Head::values(["change %", "interval", "n"])).collect(),
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
    let both = both(comparisons, names);
    let place = names.before(&first.row);
    let rows = comparisons
        .iter()
        .map(|c| {
            let scale = scale_of(&[*c]);
            // What stands for many operations stands once, behind the name.
            let is_of_many = scale.symbol.starts_with("per ");
            let of_name = if is_of_many { format!(" {}", scale.symbol) } else { String::new() };
            let value = |v: f64| {
                let own = (!is_of_many && are_far_apart(c)).then(|| Scale::for_column(&c.metric.unit, [v]));
                let scale = own.as_ref().unwrap_or(&scale);
                let number = cell_number(scale, v);
                // What has no value has no unit either.
                let is_bare = is_of_many || scale.symbol.is_empty() || !v.is_finite();
                if is_bare { number } else { format!("{number} {}", scale.symbol) }
            };
            let cells = vec![
                value(c.baseline.median),
                value(c.candidate.median),
                change_beside(c),
                interval_beside(c),
                verdict_word(c).to_owned(),
            ];
            TableRow {
                labels: vec![c.metric.name.clone() + &of_name],
                cells,
                tone: tone_of_row(c),
                notes: notes.of(c, names),
            }
        })
        .collect();
    Some(Table {
        caption: format!(
            "{place}other metrics of {both}{} (medians; exploratory){}{}",
            so_far(comparisons.iter().copied()),
            without_change(comparisons),
            of_forms(comparisons)
        ),
        labels: vec![Head::new("metric", Of::Names)],
        columns: Head::arms(names, comparisons)
            .chain(Head::values(["change %", "interval"]))
            .chain([Head::new("verdict", Of::Verdicts)])
            .collect(),
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Factor;
    use crate::report::format::Detail;
    use crate::report::section_tests::made_up;

    /// The table of these rows and candidates, as they come from an analysis: all candidates of a row after each other.
    fn table_of(candidates: &[&str], sizes: &[&str]) -> Table {
        let (mut run, analysis) = made_up();
        run.design.factors.push(Factor::new("fs", vec!["xfs".to_owned()]));
        let of = |candidate: &&str, bs: &&str| {
            let mut c = analysis.comparisons[0].clone();
            c.candidate.arm = (*candidate).to_owned();
            c.row.levels =
                [("fs", "xfs"), ("bs", bs)].map(|(f, level)| (f.to_owned(), level.to_owned())).to_vec();
            c
        };
        let all: Vec<Comparison> = sizes.iter().flat_map(|bs| candidates.iter().map(|c| of(c, bs))).collect();
        let mut notes = Footnotes::besides(Vec::new(), Detail::Screen);
        primary(&all.iter().collect::<Vec<_>>(), &Names::new(&run, "cache"), &mut notes).unwrap()
    }

    fn heads(of: &[Head]) -> Vec<&str> {
        of.iter().map(|head| head.text.as_str()).collect()
    }

    #[test]
    fn candidates_of_one_baseline_share_a_table() {
        let table = table_of(&["off", "half"], &["4k", "8k"]);
        assert_eq!(heads(&table.labels), ["cache", "bs"], "all rows have xfs");
        assert_eq!(heads(&table.columns)[..2], ["cache=on", "candidate"]);
        let rows: Vec<String> = table.rows.iter().map(|row| row.labels.join(" ")).collect();
        assert_eq!(rows, ["off 4k", "off 8k", "half 4k", "half 8k"]);
        assert!(table.caption.contains("medians of 2\u{a0}candidates against cache=on"), "{}", table.caption);
    }

    fn beside_of(c: &Comparison) -> Table {
        let mut notes = Footnotes::besides(Vec::new(), Detail::Screen);
        exploratory(&[c], &Names::of_factor("cache"), &mut notes).unwrap()
    }

    #[test]
    fn medians_far_apart_have_a_unit_each() {
        let mut c = made_up().1.comparisons.remove(0);
        c.metric.unit = crate::units::Unit::Nanoseconds;
        (c.baseline.median, c.candidate.median) = (24_500.0, 58_030_000.0);
        assert_eq!(beside_of(&c).rows[0].cells[..2], ["24.5 µs", "58.0 ms"]);
        c.candidate.median = 580_300.0;
        assert_eq!(beside_of(&c).rows[0].cells[..2], ["24.5 µs", "580.3 µs"]);
    }

    #[test]
    fn a_baseline_of_nothing_has_a_difference() {
        let mut c = made_up().1.comparisons.remove(0);
        c.metric.unit = crate::units::Unit::Count;
        (c.baseline.median, c.candidate.median, c.effect) = (0.0, 3.0, None);
        c.mean_change.estimate = f64::INFINITY;
        c.difference = Some(crate::analyse::Interval { estimate: 3.0, low: 1.0, high: 5.2 });
        let mut notes = Footnotes::besides(Vec::new(), Detail::Screen);
        let table = primary(&[&c], &Names::of_factor("cache"), &mut notes).unwrap();
        let cells = &table.rows[0].cells;
        assert_eq!([&cells[2], &cells[3]], ["-", "+3.00 [+1.00,\u{a0}+5.20]"]);
        assert!(table.caption.ends_with("; without change %: the difference"), "{}", table.caption);
        assert_eq!(beside_of(&c).rows[0].cells[2..4], cells[2..4]);
    }

    #[test]
    fn a_total_of_different_amounts_of_work_is_neither_better_nor_worse() {
        let mut c = made_up().1.comparisons.remove(0);
        c.role = crate::analyse::Role::Exploratory;
        c.verdict = crate::analyse::Verdict::Slower { beyond_delta: true };
        let told = |c: &Comparison| {
            let table = beside_of(c);
            (table.rows[0].cells[4].clone(), table.rows[0].tone, table.caption.contains("amounts of work"))
        };
        assert_eq!(told(&c), ("worse by > δ".to_owned(), Some(Tone::Worse), false));
        let form = |metric: &str| Some(crate::analyse::Unlisted::Form { metric: metric.to_owned() });
        c.unlisted = form("dev.write_bytes_per_byte");
        assert_eq!(told(&c), ("see per byte".to_owned(), None, true));
        c.unlisted = form("sys_cpu_per_op");
        assert_eq!(told(&c).0, "see per op");
        c.verdict = crate::analyse::Verdict::NoDifference { real_but_below_delta: false };
        assert_eq!(told(&c), ("no difference".to_owned(), Some(Tone::Same), false));
    }

    #[test]
    fn of_a_few_trials_against_fewer_there_is_no_change() {
        let mut c = made_up().1.comparisons.remove(0);
        c.verdict = crate::analyse::Verdict::TooFew { n: 1 };
        assert_ne!(change_beside(&c), "-");
        c.candidate.n = 1;
        assert_eq!(change_beside(&c), "-");
    }

    #[test]
    fn one_candidate_has_its_own_column() {
        let table = table_of(&["off"], &["4k", "8k"]);
        assert_eq!(heads(&table.labels), ["bs"]);
        assert_eq!(heads(&table.columns)[..2], ["cache=on", "cache=off"]);
        assert!(table.caption.contains("cache=off against cache=on"), "{}", table.caption);
    }
}
