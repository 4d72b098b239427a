//! The table mmtests' `compare-kernels.sh` prints: two header lines, one line a mean and row, positive is better.
//!
//! Layout: gormanm/mmtests, `bin/lib/MMTests/Compare.pm` and the tables its users post: the value, then the
//! gain over the first column in `(   0.00%)`, or `*   8.81%*` where it is significant.

use super::comparisons::{group, has_change, of_role, shown};
use super::document::Document;
use super::footnotes::{Footnotes, common_caveats};
use super::layout::{left, printable, right, shorten, told_apart, width, wrap};
use super::page::Page;
use super::section::{Block, Weight};
use super::verdict_words::{is_beyond_delta, is_too_short, so_far};
use super::words::{Names, direction, plain_percent, unit_words};
use crate::analyse::{ArmSummary, Caveat, Comparison, Method, Role, RowKey, Verdict};
use crate::record::SoFar;
use crate::units::{Better, Scale, Unit};

/// Columns of the first cell's value and of the others', as mmtests has them; wider values widen all.
const VALUE: usize = 13;
/// Columns of ` (   0.00%)`.
const GAIN: usize = 11;

/// Writes the document as mmtests would, below the verdict.
pub(super) fn render(document: &Document<'_>) -> String {
    let page = Page { columns: 80, colour: false, plain: true, each_verdict: false };
    let mut out = String::new();
    page.words(&mut out, &document.title, "", "  ");
    for block in document.blocks() {
        if let Block::Verdicts(verdicts) = block {
            page.unmarked_verdicts(&mut out, verdicts);
        }
    }
    page.keys(&mut out, document);
    let listed = shown(document.run, document.analysis, &document.options);
    // A metric has all its rows, and a row a cell for each arm, also where the difference is not clear.
    let is_listed = |c: &&Comparison| listed.iter().any(|of| table_of(of) == table_of(c));
    let shown: Vec<&Comparison> = document.analysis.comparisons.iter().filter(is_listed).collect();
    let primary: Vec<&Comparison> = of_role(document.analysis, Role::Primary).collect();
    let mut notes = Footnotes::besides(common_caveats(&primary), document.options.detail);
    for rows in group(&shown, table_of) {
        out.push('\n');
        out.push_str(&section(document, &rows, &page, &mut notes));
    }
    legend(&mut out, document, &shown, &page);
    page.footnotes(&mut out, &notes.into_texts());
    for section in document.sections.iter().filter(|section| section.weight != Weight::Figures) {
        page.brief_section(&mut out, section);
    }
    out.push('\n');
    page.words(&mut out, &document.summary, "", "");
    printable(&out)
}

/// What the rows of a table have in common.
fn table_of(c: &Comparison) -> (&str, &Unit, Role) {
    (&c.metric.name, &c.metric.unit, c.role)
}

/// One metric: its heading, two header lines, one line a row.
fn section(
    document: &Document<'_>,
    comparisons: &[&Comparison],
    page: &Page,
    notes: &mut Footnotes<'_>,
) -> String {
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
        let mut line = format!("{}{}", left(mean_of.name(), 10), left(&short(name, label), label));
        line.push_str(&right(&number(mean_of.of(&row[0].baseline)), values));
        line.push_str(" (   0.00%)");
        let mut marks = Vec::new();
        for arm in &document.analysis.arms[1..] {
            match row.iter().find(|c| c.candidate.arm == *arm) {
                Some(c) => {
                    line.push_str(&right(&number(mean_of.of(&c.candidate)), values));
                    line.push_str(&gain_cell(c, mean_of));
                    marks.extend(notes.of(c, &names));
                    marks.extend(turned(c, mean_of).map(|text| notes.number(text)));
                }
                None => line.push_str(&right("-", cell)),
            }
        }
        marks.sort_unstable();
        marks.dedup();
        line.push_str(&page.mark(&marks));
        out.push_str(&page.letters(&line));
        out.push('\n');
    }
    out
}

/// Shortened in the middle with one sign of ASCII, so that it is as wide as measured.
fn short(text: &str, columns: usize) -> String {
    shorten(text, columns).replace('…', "~")
}

/// What is said where the mean goes the other way than what the star is of.
fn turned(c: &Comparison, mean_of: MeanOf) -> Option<&'static str> {
    let is_told = c.caveats.iter().any(|caveat| matches!(caveat, Caveat::MeanDisagrees { .. }));
    let gain = gain(c, mean_of);
    match c.is_better() {
        Some(true) if gain < 0.0 && !is_told => {
            Some("the star is of the typical trial, which is better; the mean is worse")
        }
        Some(false) if gain > 0.0 && !is_told => {
            Some("the star is of the typical trial, which is worse; the mean is better")
        }
        _ => None,
    }
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
    let has_gain = gain.is_finite() && has_change(comparison);
    if !has_gain || comparison.caveats.contains(&Caveat::FailuresAsWorst) {
        return format!(" ({:>7} )", "-");
    }
    let is_claimed = comparison.is_better().is_some();
    let before = if is_claimed { '*' } else { '(' };
    let behind = match comparison.verdict {
        Verdict::NoDifference { .. } => '=',
        _ if is_beyond_delta(&comparison.verdict) => '!',
        _ if is_claimed => '*',
        _ => ')',
    };
    format!(" {before}{gain:>7.2}%{behind}")
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
        first.push_str(&right(&short(above, cell - 1), cell));
        second.push_str(&right(&below.replace('…', "~"), cell));
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

/// What the signs beside the gains mean.
fn legend(out: &mut String, document: &Document<'_>, shown: &[&Comparison], page: &Page) {
    // Where there is no verdict so far there is no star.
    let judged = |role: Role| shown.iter().filter(move |c| c.role == role && c.so_far().is_none());
    out.push('\n');
    page.words(out, "Positive is better.", "", "");
    let alpha = plain_percent(document.analysis.alpha);
    for (methods, how) in STARS {
        if judged(Role::Primary).any(|c| methods.contains(&c.method)) {
            page.words(out, &format!("*  {}", how.replace("ALPHA", &alpha)), "", "   ");
        }
    }
    if judged(Role::Exploratory).any(|c| c.method != Method::ChangeOnly) {
        let text = "*  in exploratory rows: the same test looked at once, adjusted by Benjamini-Hochberg: of all \
                    stars there together at most 5 % are expected to be false";
        page.words(out, text, "", "   ");
    }
    let has = |of: fn(&Verdict) -> bool| shown.iter().any(|c| of(&c.verdict));
    let delta = match document.analysis.deltas.is_empty() {
        true => format!("{} (delta)", plain_percent(document.analysis.delta)),
        false => "the delta of its metric".to_owned(),
    };
    if has(is_beyond_delta) {
        let text = format!("!  all of that interval lies beyond {delta}: a difference larger than that");
        page.words(out, &text, "", "   ");
    }
    if has(|verdict| matches!(verdict, Verdict::NoDifference { .. })) {
        let text = format!("=  all of that interval lies within {delta}: no difference larger than that");
        page.words(out, &text, "", "   ");
    }
    let has_few = |c: &Comparison| c.so_far().is_none() && c.method == Method::ChangeOnly && !is_too_short(c);
    if shown.iter().any(|c| has_few(c)) {
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
}

/// What a star of a deciding row means, by how the row was judged.
const STARS: [(&[Method], &str); 6] = [
    (
        &[Method::SequentialT, Method::SequentialSignedRank],
        "the interval of assay's own test excludes 0: signed rank (few rounds: t) on differences paired within rounds, looked \
         at after every round, false claims at most ALPHA over all looks",
    ),
    (
        &[Method::Anytime],
        "the interval of assay's own test excludes 0: bets on the signs of differences paired within rounds, false claims at \
         most ALPHA over any number of looks",
    ),
    (
        &[Method::FixedSignedRank, Method::FixedT],
        "the interval of assay's own test excludes 0: exact signed rank (few rounds: t) on differences paired within rounds, \
         one look, level ALPHA",
    ),
    (
        &[Method::CarryOverAdjusted],
        "the interval of assay's own test excludes 0: t on differences paired within rounds, adjusted for what the trial \
         before left behind, one look, level ALPHA",
    ),
    (
        &[Method::MannWhitney],
        "assay's own test: exact Mann-Whitney U, adjusted over the rows by Holm, level ALPHA",
    ),
    (
        &[Method::ClusterSignedRank, Method::ClusterT, Method::ClusterMannWhitney, Method::ClusterWelch],
        "the interval of assay's own test excludes 0: boots, hosts or sessions judged by their means, adjusted over the rows \
         by Holm, level ALPHA",
    ),
];
