//! The table mmtests' `compare-kernels.sh` prints: two header lines, one line a mean and row, positive is better.
//!
//! Layout: gormanm/mmtests, `bin/lib/MMTests/Compare.pm` and the tables its users post: the value, then the
//! gain over the first column in `(   0.00%)`, or `*   8.81%*` where it is significant.

use super::comparisons::{group, shown};
use super::document::Document;
use super::layout::{left, printable, right, shorten, told_apart, width, wrap};
use super::page::Page;
use super::section::Weight;
use super::verdict_words::{is_beyond_delta, so_far};
use super::words::{Names, direction, plain_percent, unit_words};
use crate::analyse::{ArmSummary, Caveat, Comparison, Role, RowKey};
use crate::record::SoFar;
use crate::units::{Better, Scale};

/// Columns of the first cell's value and of the others', as mmtests has them; wider values widen all.
const VALUE: usize = 13;
/// Columns of ` (   0.00%)`.
const GAIN: usize = 11;

/// Writes the document as mmtests would.
pub(super) fn render(document: &Document<'_>) -> String {
    let page = Page { columns: 80, colour: false, plain: true, each_verdict: true };
    let mut out = String::new();
    page.words(&mut out, &document.title, "", "  ");
    let clear = shown(document.run, document.analysis, &document.options);
    // A row has a cell for each arm, also for those whose difference is not clear.
    let is_of_a_row = |c: &&Comparison| {
        let same = |of: &&Comparison| (&of.row, of.role, &of.metric) == (&c.row, c.role, &c.metric);
        clear.iter().any(same)
    };
    let shown: Vec<&Comparison> = document.analysis.comparisons.iter().filter(is_of_a_row).collect();
    for rows in group(&shown, |c| (&c.metric.name, &c.metric.unit, c.role)) {
        out.push('\n');
        out.push_str(&section(document, &rows, &page));
    }
    footer(&mut out, document, &page);
    printable(&out)
}

/// One metric: its heading, two header lines, one line a row.
fn section(document: &Document<'_>, comparisons: &[&Comparison], page: &Page) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    let rows = group(comparisons, |c| &c.row);
    let names = document.names();
    let summaries = comparisons.iter().flat_map(|c| [&c.baseline, &c.candidate]);
    let mean_of = mean_kind(first, summaries.clone());
    let scale = Scale::for_column(&first.metric.unit, summaries.clone().map(|s| mean_of.of(s)));
    let decimals = scale.decimals.max(2);
    let number = |value: f64| {
        if value.is_finite() { format!("{:.decimals$}", value / scale.divisor) } else { "-".to_owned() }
    };
    let values = summaries.map(|s| width(&number(mean_of.of(s)))).fold(VALUE - 1, usize::max) + 1;
    let labels: Vec<String> =
        rows.iter().map(|row| page.letters(&row_name(row[0], &names)).into_owned()).collect();
    let label = labels.iter().map(|l| width(l)).fold(4, usize::max).min(32) + 1;
    let cell = values + GAIN;
    let role = if first.role == Role::Exploratory { " (exploratory)" } else { "" };
    let caption = format!(
        "{}{}, {}{role}{}",
        first.metric.name,
        unit_words(&scale, &first.metric.unit),
        direction(first.metric.better),
        so_far(comparisons.iter().copied())
    );
    let mut out = wrap(&page.letters(&caption), page.columns, "", "  ");
    out.push('\n');
    out.push_str(&headers(document, label + 10, cell, page));
    for (row, name) in rows.iter().zip(&labels) {
        let mut line = format!("{}{}", left(mean_of.name(), 10), left(&shorten(name, label), label));
        line.push_str(&right(&number(mean_of.of(&row[0].baseline)), values));
        line.push_str(" (   0.00%)");
        for arm in &document.analysis.arms[1..] {
            match row.iter().find(|c| c.candidate.arm == *arm) {
                Some(c) => {
                    line.push_str(&right(&number(mean_of.of(&c.candidate)), values));
                    line.push_str(&gain_cell(c, mean_of));
                }
                None => line.push_str(&right("-", cell)),
            }
        }
        out.push_str(&page.letters(&line));
        out.push('\n');
    }
    out
}

/// The arithmetic or the harmonic mean.
#[derive(Clone, Copy)]
enum MeanOf {
    Amean,
    Hmean,
}

impl MeanOf {
    fn name(self) -> &'static str {
        match self {
            MeanOf::Amean => "Amean",
            MeanOf::Hmean => "Hmean",
        }
    }

    fn of(self, summary: &ArmSummary) -> f64 {
        match self {
            MeanOf::Amean => summary.mean,
            MeanOf::Hmean => summary.harmonic_mean,
        }
    }
}

/// Rates have a harmonic mean unless some value is not positive; times have an arithmetic one.
fn mean_kind<'s>(first: &Comparison, mut summaries: impl Iterator<Item = &'s ArmSummary>) -> MeanOf {
    if first.metric.better == Better::Higher && summaries.all(|s| s.n == 0 || s.harmonic_mean.is_finite()) {
        MeanOf::Hmean
    } else {
        MeanOf::Amean
    }
}

/// The gain over the baseline in percent of it, positive when better.
fn gain(comparison: &Comparison, mean_of: MeanOf) -> f64 {
    let (base, cand) = (mean_of.of(&comparison.baseline), mean_of.of(&comparison.candidate));
    let percent = match comparison.metric.better {
        _ if base == cand => 0.0,
        Better::Higher => (cand - base) / base * 100.0,
        Better::Lower => (base - cand) / base * 100.0,
    };
    if percent.abs() < 0.005 { 0.0 } else { percent }
}

fn gain_cell(comparison: &Comparison, mean_of: MeanOf) -> String {
    let gain = gain(comparison, mean_of);
    // Failed trials are in the verdict, not in the means.
    if !gain.is_finite() || comparison.caveats.contains(&Caveat::FailuresAsWorst) {
        return format!(" ({:>7} )", "-");
    }
    match comparison.is_better() {
        None => format!(" ({gain:>7.2}%)"),
        Some(_) if is_beyond_delta(&comparison.verdict) => format!(" *{gain:>7.2}%!"),
        Some(_) => format!(" *{gain:>7.2}%*"),
    }
}

/// Two lines above the columns: the factor and the level, or for bare labels what comes before and after the
/// first dash (as mmtests splits `5.9-vanilla`).
fn headers(document: &Document<'_>, label: usize, cell: usize, page: &Page) -> String {
    let (mut first, mut second) = (" ".repeat(label), " ".repeat(label));
    let arms: Vec<String> = document.analysis.arms.iter().map(|arm| document.arm(arm)).collect();
    let parts = |full: &'_ str| {
        let cut = full.split_once('=').or_else(|| full.split_once('-'));
        cut.map_or((document.run.name.clone(), full.to_owned()), |(a, b)| (a.to_owned(), b.to_owned()))
    };
    let (above, below): (Vec<String>, Vec<String>) = arms.iter().map(|full| parts(full)).unzip();
    let below = told_apart(&below.iter().map(String::as_str).collect::<Vec<_>>(), cell - 1);
    for (above, below) in above.iter().zip(&below) {
        first.push_str(&right(&shorten(above, cell - 1), cell));
        second.push_str(&right(below, cell));
    }
    page.letters(&format!("{}\n{}\n", first.trim_end(), second.trim_end())).into_owned()
}

/// The levels of a row that not all rows have, joined with dashes as mmtests names its sub-operations. A row alone has no others, and
/// is named by all of its own.
fn row_name(comparison: &Comparison, names: &Names<'_>) -> String {
    let RowKey { levels, job } = &comparison.row;
    let is_alone = job.is_empty() && levels.iter().all(|(factor, _)| names.is_fixed(factor));
    let told = levels.iter().filter(|(factor, _)| is_alone || !names.is_fixed(factor));
    let mut parts: Vec<&str> = told.map(|(_, level)| level.as_str()).collect();
    if !job.is_empty() {
        parts.push(job);
    }
    parts.join("-")
}

fn footer(out: &mut String, document: &Document<'_>, page: &Page) {
    use crate::analyse::Method;
    // Where there is no verdict so far there is no star.
    let comparisons = document.analysis.comparisons.iter().filter(|c| c.so_far().is_none());
    let has = |wanted: &[Method]| comparisons.clone().any(|c| wanted.contains(&c.method));
    out.push('\n');
    page.words(out, "Positive is better.", "", "");
    let alpha = plain_percent(document.run.design.stop.alpha);
    if has(&[Method::SequentialT, Method::SequentialSignedRank]) {
        let text = format!(
            "*  the interval of assay's own test excludes 0: signed rank (few rounds: t) on differences paired \
             within rounds, looked at after every round, false claims at most {alpha} over all looks"
        );
        page.words(out, &text, "", "   ");
    }
    if has(&[Method::Anytime]) {
        let text = format!(
            "*  the interval of assay's own test excludes 0: bets on the signs of differences paired within \
             rounds, false claims at most {alpha} over any number of looks"
        );
        page.words(out, &text, "", "   ");
    }
    if has(&[Method::FixedSignedRank, Method::FixedT]) {
        let text = format!(
            "*  the interval of assay's own test excludes 0: exact signed rank (few rounds: t) on \
             differences paired within rounds, one look, level {alpha}"
        );
        page.words(out, &text, "", "   ");
    }
    if has(&[Method::CarryOverAdjusted]) {
        let text = format!(
            "*  the interval of assay's own test excludes 0: t on differences paired within rounds, adjusted for what the \
             trial before left behind, one look, level {alpha}"
        );
        page.words(out, &text, "", "   ");
    }
    if has(&[Method::MannWhitney]) {
        let text = format!(
            "*  assay's own test: exact Mann-Whitney U, adjusted over the rows by Holm, level {alpha}"
        );
        page.words(out, &text, "", "   ");
    }
    if has(&[Method::ClusterSignedRank, Method::ClusterT, Method::ClusterMannWhitney, Method::ClusterWelch]) {
        let text = format!(
            "*  the interval of assay's own test excludes 0: boots, hosts or sessions judged by their means, adjusted over \
             the rows by Holm, level {alpha}"
        );
        page.words(out, &text, "", "   ");
    }
    if document.analysis.comparisons.iter().any(|c| is_beyond_delta(&c.verdict)) {
        let delta = plain_percent(document.analysis.delta);
        let text =
            format!("!  all of that interval lies beyond {delta} (delta): a difference larger than that");
        page.words(out, &text, "", "   ");
    }
    if has(&[Method::ChangeOnly]) {
        page.words(
            out,
            "Rows with fewer than 4 repeats, or too few operations for a quantile, have no test and no star.",
            "",
            "",
        );
    }
    if let Some(SoFar { rounds, of }) = document.analysis.so_far() {
        let text = format!("So far {rounds} of {of} rounds: no test and no star before the last.");
        page.words(out, &text, "", "");
    }
    for section in document.sections.iter().filter(|section| section.weight != Weight::Figures) {
        page.brief_section(out, document, section);
    }
    out.push('\n');
    page.words(out, &document.summary, "", "");
}
