//! CSV, one line a comparison; raw base units, ratios minus 1, full precision.

use super::document::Document;
use super::footnotes::caveat_text;
use super::words::Names;
use crate::analyse::{ArmSummary, Comparison, Role, Verdict};
use crate::sys::csv_cell::written;

/// Heads behind the columns of the factors.
const HEADS: [&str; 33] = [
    "job",
    "metric",
    "unit",
    "better",
    "role",
    "baseline",
    "candidate",
    "baseline_n",
    "candidate_n",
    "baseline_mean",
    "candidate_mean",
    "baseline_median",
    "candidate_median",
    "baseline_stddev",
    "candidate_stddev",
    "baseline_stall_rate",
    "candidate_stall_rate",
    "method",
    "n",
    "change",
    "change_low",
    "change_high",
    "mean_change",
    "mean_change_low",
    "mean_change_high",
    "p",
    "p_adjusted",
    "verdict",
    "rounds_to_claim",
    "rounds_for_no_difference",
    "delta",
    "run",
    "caveats",
];

/// Writes all comparisons, whatever was asked to be hidden.
pub(super) fn render(document: &Document<'_>, raw: bool) -> String {
    let cell = |cell: String| if raw { cell } else { written(&cell).into_owned() };
    let mut writer = ::csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    let factors: Vec<&str> = document
        .analysis
        .comparisons
        .first()
        .map(|c| c.row.levels.iter().map(|(factor, _)| factor.as_str()).collect())
        .unwrap_or_default();
    let heads =
        factors.iter().map(|factor| format!("row.{factor}")).chain(HEADS.iter().map(|&head| head.to_owned()));
    // Writing records into memory cannot fail.
    let _ = writer.write_record(heads.map(cell));
    for comparison in &document.analysis.comparisons {
        let _ = writer.write_record(record(document, comparison).into_iter().map(cell));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn record(document: &Document<'_>, c: &Comparison) -> Vec<String> {
    let names = Names::new(document.run, &document.analysis.factor);
    let role = if c.role == Role::Primary { "primary" } else { "exploratory" };
    let better = match c.metric.better {
        crate::units::Better::Higher => "higher",
        crate::units::Better::Lower => "lower",
    };
    let (base, cand) = (&c.baseline, &c.candidate);
    let mut cells: Vec<String> = c.row.levels.iter().map(|(_, level)| level.clone()).collect();
    cells.extend(
        [&c.row.job, &c.metric.name, c.metric.unit.symbol(), better, role, &base.arm, &cand.arm]
            .map(str::to_owned),
    );
    cells.extend([base.n.to_string(), cand.n.to_string()]);
    let pairs: [fn(&ArmSummary) -> f64; 4] = [|s| s.mean, |s| s.median, |s| s.stddev, |s| s.stall_rate];
    cells.extend(pairs.iter().flat_map(|of| [number(of(base)), number(of(cand))]));
    cells.extend([name(&c.method), c.n.to_string()]);
    cells.extend(match c.effect {
        Some(i) => [number(i.estimate), number(i.low), number(i.high)],
        None => [String::new(), String::new(), String::new()],
    });
    cells.extend([c.mean_change.estimate, c.mean_change.low, c.mean_change.high].map(number));
    cells.extend([c.p, c.p_adjusted].map(|p| p.map_or(String::new(), number)));
    let (word, claim, none) = verdict(&c.verdict);
    let rounds = |n: Option<u32>| n.map_or(String::new(), |n| n.to_string());
    cells.extend([word.to_owned(), rounds(claim), rounds(none)]);
    cells.push(number(document.analysis.delta));
    cells.push(document.run.id.map_or(String::new(), |id| id.to_string()));
    let so_far =
        c.so_far().map(|s| format!("so far, {} of {} rounds: no verdict before the last", s.rounds, s.of));
    let caveats = c.caveats.iter().map(|caveat| caveat_text(caveat, Some(c), &names));
    let caveats: Vec<String> = so_far.into_iter().chain(caveats).collect();
    cells.push(super::layout::printable(&caveats.join("; ")));
    cells
}

/// The verdict as one word without blanks, with the rounds of an undecided one.
fn verdict(verdict: &Verdict) -> (&'static str, Option<u32>, Option<u32>) {
    match verdict {
        Verdict::Faster { beyond_delta: true } => ("faster_beyond_delta", None, None),
        Verdict::Faster { beyond_delta: false } => ("faster_maybe_below_delta", None, None),
        Verdict::Slower { beyond_delta: true } => ("slower_beyond_delta", None, None),
        Verdict::Slower { beyond_delta: false } => ("slower_maybe_below_delta", None, None),
        Verdict::NoDifference { real_but_below_delta: false } => ("no_difference", None, None),
        Verdict::NoDifference { real_but_below_delta: true } => ("real_but_below_delta", None, None),
        Verdict::Undecided { rounds_to_claim, rounds_for_no_difference } => {
            ("undecided", *rounds_to_claim, *rounds_for_no_difference)
        }
        Verdict::SoFar { .. } => ("so_far", None, None),
        Verdict::NotComparable => ("not_comparable", None, None),
        Verdict::TooFew { .. } => ("too_few", None, None),
        Verdict::NotMeasured(_) => ("not_measured", None, None),
    }
}

/// Shortest digits that read back to the same number; nothing for what is not a number.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// The name serde writes for a method.
fn name(method: &crate::analyse::Method) -> String {
    serde_json::to_value(method).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
