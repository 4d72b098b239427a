//! Where requests spent their time on the way to the device and back, where the block layer was watched.
//!
//! Enters: the times of requests that analyse found. Leaves: a table a pair, a picture of it, values for programs. It must not compute: means
//! and differences are analyse's.

use super::Material;
use super::budget::{signed, with_unit};
use crate::analyse::{BudgetLine, Evidence, Interval, RequestStage, RequestTimes, Standing, Why};
use crate::record::Direction;
use crate::report::document::Document;
use crate::report::format::Detail;
use crate::report::json::written;
use crate::report::picture::{self, Bar, Form, Picture};
use crate::report::pictures::{MOST_ROWS, index_of};
use crate::report::section::{Block, Drawings, Heading, Section, Weight};
use crate::report::table::{Head, Of, Table, TableRow};
use crate::report::verdict_words::Tone;
use crate::report::words::Names;
use crate::units::Scale;

/// What is under the picture.
const CAPTION: &str = "From the baseline's mean time of a request to the candidate's: what each stage adds or takes. Stages are those of \
                       requests, the whole is that of bios: what they leave, as where bios are merged or split, is the last part.";

/// Stages whose sum is so near to the whole are told as its parts.
const ADDS_UP: f64 = 0.02;

/// An interval wider than so many times the larger value says nothing of the difference.
const TOO_WIDE: f64 = 10.0;
/// A stage of less than this share of the whole time is small, however little is known of it.
const SMALL: f64 = 0.01;
/// What stands there instead.
const NOT_KNOWN: &str = "not known";
/// Why.
const WHY_NOT_KNOWN: &str = "not known: the interval is more than ten times the value; on a device that others use, their requests are \
                             counted, too";

/// The section: a table where more than a screen is asked for, a picture on pages.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { options, names, why, request_times, .. } = material;
    let told: Vec<&RequestTimes> = request_times.iter().filter(|times| is_told(why, times)).collect();
    let mut blocks = Vec::new();
    if options.detail > Detail::Screen {
        blocks.extend(told.iter().map(|times| Block::Table(table(times, names))));
        let is_hidden = |times: &&RequestTimes| {
            let whole = larger(&times.whole);
            is_too_wide(&times.whole, whole) || times.stages.iter().any(|(_, of)| is_too_wide(of, whole))
        };
        let remark = || Block::Remarks(vec![WHY_NOT_KNOWN.to_owned()]);
        blocks.extend(told.iter().any(is_hidden).then(remark));
    }
    if !told.is_empty() {
        blocks.push(Block::folded_pictures("The time of a request by stage, drawn", drawn));
    }
    if !request_times.is_empty() {
        blocks.push(Block::Raw { name: "request_times", json: |document| written(document.request_times()) });
    }
    Section::new("stages", Heading::OnPage("the time of a request".to_owned()), blocks)
        .of_weight(Weight::Figures)
}

/// Whether the arms of the pair differ.
fn is_told(why: &[Why], times: &RequestTimes) -> bool {
    why.iter().any(|why| {
        why.standing == Standing::Differs
            && why.row.levels == times.row.levels
            && (&why.baseline, &why.candidate) == (&times.baseline, &times.candidate)
    })
}

fn table(times: &RequestTimes, names: &Names<'_>) -> Table {
    let scale = scale(times);
    let stages = times.stages.iter().map(|(stage, of)| row(name(*stage), of, larger(&times.whole), &scale));
    let whole = row("from the bio to its end (Q2C)", &times.whole, larger(&times.whole), &scale);
    let columns = [names.arm(&times.baseline), names.arm(&times.candidate), "change".to_owned()];
    Table {
        caption: format!("{}, {}{}", mean_time(times), pair(times, names), of_what(times)),
        labels: vec![Head::new("stage", Of::Names)],
        columns: Head::values(columns.iter().map(String::as_str)).collect(),
        rows: stages.chain([whole]).collect(),
    }
}

fn row(label: &str, of: &Evidence, whole: f64, scale: &Scale) -> TableRow {
    let change = match of.difference {
        None => "-".to_owned(),
        Some(_) if is_too_wide(of, whole) => NOT_KNOWN.to_owned(),
        Some(Interval { estimate, low, high }) => {
            let [estimate, low, high] = [estimate, low, high].map(|end| signed(ns(end), scale));
            format!("{estimate} [{low}, {high}]")
        }
    };
    let cells = vec![with_unit(ns(of.baseline), scale), with_unit(ns(of.candidate), scale), change];
    TableRow::new(vec![label.to_owned()], cells)
}

/// Whether the interval of the difference is so wide that neither end says anything of these values, beside those of the whole time.
fn is_too_wide(of: &Evidence, whole: f64) -> bool {
    let least = larger(of).max(SMALL * whole);
    of.difference.is_some_and(|difference| difference.high - difference.low > TOO_WIDE * least)
}

fn larger(of: &Evidence) -> f64 {
    of.baseline.abs().max(of.candidate.abs())
}

pub(super) fn name(stage: RequestStage) -> &'static str {
    match stage {
        RequestStage::Queued => "until the request is made (Q2I)",
        RequestStage::Waiting => "in the scheduler (I2D)",
        RequestStage::Issued => "until it goes to the driver (Q2D)",
        RequestStage::Device => "at the device (D2C)",
    }
}

fn mean_time(times: &RequestTimes) -> String {
    let one = match times.direction {
        Direction::Read => "read",
        Direction::Write => "write",
        Direction::Trim => "discard",
    };
    let distorted = if times.distorted { " (distorted by watching)" } else { "" };
    format!("mean time of a {one}{distorted}")
}

/// What the rows are means of, where they do not add up.
fn of_what(times: &RequestTimes) -> &'static str {
    let adds_up = |arm: fn(&Evidence) -> f64| {
        let sum: f64 = times.stages.iter().map(|(_, of)| arm(of)).sum();
        (sum - arm(&times.whole)).abs() <= ADDS_UP * arm(&times.whole)
    };
    match adds_up(|of| of.baseline) && adds_up(|of| of.candidate) {
        true => "",
        false => "; stages are means of requests, Q2C is one of bios, so they do not add up",
    }
}

fn pair(times: &RequestTimes, names: &Names<'_>) -> String {
    let row = names.before(&times.row);
    format!("{row}{} → {}", names.arm(&times.baseline), names.arm(&times.candidate))
}

fn ns(seconds: f64) -> f64 {
    seconds * 1e9
}

fn scale(times: &RequestTimes) -> Scale {
    let (baseline_ns, candidate_ns) = (ns(times.whole.baseline), ns(times.whole.candidate));
    let difference_ns = Interval { estimate: 0.0, low: 0.0, high: 0.0 };
    super::budget::scale(&BudgetLine { baseline_ns, candidate_ns, difference_ns })
}

fn drawn(document: &Document<'_>) -> Option<Drawings> {
    let told: Vec<&RequestTimes> =
        document.request_times().iter().filter(|times| is_told(document.why(), times)).collect();
    let picture = |times: &&RequestTimes| {
        let drawn = |form| waterfall(document, times, form);
        drawn(Form::Wide).map(|wide| Picture { narrow: drawn(Form::Narrow).map(|p| p.svg), ..wide })
    };
    let pictures: Vec<Picture> = told.iter().take(MOST_ROWS).filter_map(picture).collect();
    Drawings::of(pictures, true, told.len().saturating_sub(MOST_ROWS))
}

fn waterfall(document: &Document<'_>, times: &RequestTimes, form: Form) -> Option<Picture> {
    let (scale, names) = (scale(times), document.names());
    let bar = |label: &str, ns: f64, tone: Tone| Bar {
        label: label.to_owned(),
        ns,
        value: signed(ns, &scale),
        tone,
    };
    let change = |of: &Evidence| ns(of.candidate - of.baseline);
    let of_stage = |(stage, of): &(RequestStage, Evidence)| {
        let ns = change(of);
        bar(name(*stage), ns, if ns > 0.0 { Tone::Worse } else { Tone::Better })
    };
    let mut bars: Vec<Bar> = times.stages.iter().map(of_stage).collect();
    let left = change(&times.whole) - bars.iter().map(|bar| bar.ns).sum::<f64>();
    bars.push(bar(if times.merged { "merged and split bios" } else { "the rest" }, left, Tone::Unclear));
    let arms = [&times.baseline, &times.candidate];
    let whole = [times.whole.baseline, times.whole.candidate];
    let ends = [0, 1].map(|at| (names.arm(arms[at]), with_unit(ns(whole[at]), &scale)));
    let title = format!("{}, {}", pair(times, &names), mean_time(times));
    let places = arms.map(|arm| index_of(document, arm));
    picture::waterfall(ns(times.whole.baseline), &bars, &ends, places, &title, form, &scale)
        .map(|drawn| Picture { caption: CAPTION.to_owned(), ..drawn })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Unit;

    #[test]
    fn a_difference_with_a_very_wide_interval_is_not_known() {
        let scale = Scale::for_column(&Unit::Nanoseconds, [100_000.0, 200_000.0]);
        let change = |low: f64, high: f64| {
            let difference = Some(Interval { estimate: 450e-6, low, high });
            let of = Evidence {
                metric: "blocks.write.d2c.mean".to_owned(),
                unit: Unit::Seconds,
                baseline: 100e-6,
                candidate: 200e-6,
                difference,
            };
            row("at the device (D2C)", &of, larger(&of), &scale).cells[2].replace('\u{a0}', " ")
        };
        assert_eq!(change(-800e-6, 2700e-6), "not known");
        assert_eq!(change(-800e-6, 1100e-6), "+450 µs [−800 µs, +1100 µs]");
    }
}
