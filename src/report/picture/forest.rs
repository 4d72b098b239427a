//! The forest plot: every effect with its interval on one axis, the band ±δ behind.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::Picture;
use super::axis::round_ticks;
use super::canvas::{Area, Drawn, anchored, draw, fitting, line, px, words_width};
use super::palette::{AXIS, BAND, GRID, INK, MUTED, PAPER, TONES};
use crate::analyse::{Comparison, Interval};
use crate::record::Metric;
use crate::report::layout::shorten;
use crate::report::manner::manner;
use crate::report::raw_words::difference_words;
use crate::report::verdict_words::{Tone, so_far, tone_of_row};
use crate::report::words::{has_share, interval_of, percent, plain_percent, shown_cell, shown_change};
use crate::units::Better;

const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
const SIZE: f64 = 13.0;
/// Height of a line of words.
const LINE: f64 = 18.0;
/// Size of the words below the axis.
const TICK_SIZE: f64 = 12.0;
/// Most room for labels at the left of the bars, with what is left free behind them; a longer one has a line of its own.
const LONGEST_LABEL: f64 = 330.0;
const LABEL_GAP: f64 = 16.0;
/// Rows drawn at most.
const MOST: usize = 60;
/// Percents for ticks when effects are too far apart for equal steps; from 900 on they are told as factors.
const FAR: [f64; 21] = [
    -99.0, -95.0, -90.0, -75.0, -50.0, -25.0, -10.0, 0.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 900.0,
    1900.0, 4900.0, 9900.0, 99_900.0, 999_900.0, 9_999_900.0,
];
/// Between two ticks' labels.
const GAP: f64 = 10.0;

/// Where the words of a row stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Form {
    /// The label at the left of the bar and the figures at its right.
    Wide,
    /// Both above the bar, for a page as narrow as a phone.
    Narrow,
}

impl Form {
    /// Width of the whole in CSS pixels.
    pub(super) fn width(self) -> f64 {
        match self {
            Form::Wide => 920.0,
            Form::Narrow => 350.0,
        }
    }

    /// Height of a row.
    fn row(self) -> f64 {
        match self {
            Form::Wide => 30.0,
            Form::Narrow => 46.0,
        }
    }

    /// Room for the figures.
    fn values(self) -> f64 {
        match self {
            Form::Wide => 190.0,
            Form::Narrow => 160.0,
        }
    }

    /// How far above the bar's own line the words stand.
    fn words_above(self) -> f64 {
        match self {
            Form::Wide => 0.0,
            Form::Narrow => 18.0,
        }
    }
}

/// The effects of these comparisons, each behind its label; `None` when no effect is a number.
pub(in crate::report) fn forest(rows: &[(&Comparison, String)], form: Form) -> Option<Picture> {
    let drawn: Vec<&(&Comparison, String)> = rows
        .iter()
        .filter(|(c, _)| shown_change(c) > -1.0 && shown_change(c).is_finite())
        .take(MOST)
        .collect();
    let first = drawn.first()?;
    let frame = Frame::around(&drawn, form);
    let height = TOP + frame.row() * drawn.len() as f64 + BOTTOM;
    let alike = |metric: &Metric| (metric.better, manner(metric, true).word, manner(metric, false).word);
    let same_words = drawn.iter().all(|(c, _)| alike(&c.metric) == alike(&first.0.metric));
    let so_far = so_far(drawn.iter().map(|(c, _)| *c));
    let sides = same_words.then(|| match alike(&first.0.metric) {
        // Which of them is faster is not said before the last round.
        _ if !so_far.is_empty() => ("← less".to_owned(), "more →".to_owned()),
        (Better::Higher, good, bad) => (format!("← {bad}"), format!("{good} →")),
        (Better::Lower, good, bad) => (format!("← {good}"), format!("{bad} →")),
    });
    let title = format!("Effects with their intervals{so_far}");
    let words: Vec<String> =
        drawn.iter().map(|(c, label)| format!("{label} {} {}", shown_words(c), interval_of(c))).collect();
    let label = format!("{title}: {}", words.join("; "));
    let svg = draw((form.width(), height), &title, &label, |area| {
        frame.paint_bands(area, &drawn)?;
        frame.paint_axis(
            area,
            height,
            sides.as_ref().map(|(left, right)| (left.as_str(), right.as_str())),
        )?;
        for (at, (comparison, label)) in drawn.iter().enumerate() {
            let middle =
                TOP + frame.row() * (at as f64 + 0.5) + (form.words_above() + frame.label_above) / 2.0;
            frame.paint_row(area, middle, comparison, label)?;
        }
        Ok(())
    });
    let meaning = if so_far.is_empty() {
        "an interval wholly inside it means no difference that matters, one wholly outside a difference of more than δ, \
         one that crosses the line at 0 is not proven"
    } else {
        "nothing is proven before the last round, wherever an interval lies"
    };
    let mut caption = format!(
        "Dot: the typical trial's change; bar: its interval. The shaded band is ±δ{}: {meaning}. A hollow dot has no \
         interval.",
        deltas(&drawn)
    );
    if drawn.iter().filter_map(|(c, _)| c.effect).any(|i| frame.cuts(i.low) || frame.cuts(i.high)) {
        caption.push_str(
            " An arrow: the interval goes on beyond the picture; without a dot, that lies beyond, too.",
        );
    }
    if drawn.len() < rows.len() {
        caption.push_str(&format!(" {} of {} comparisons are drawn.", drawn.len(), rows.len()));
    }
    // The section's heading already says what it is.
    Some(Picture { title: String::new(), caption, arms: Vec::new(), svg, narrow: None })
}

/// ` = 2 %`, or ` of each row, 2 to 10 %`.
fn deltas(rows: &[&(&Comparison, String)]) -> String {
    let all = || rows.iter().map(|(c, _)| c.delta);
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if least == most {
        return format!(" = {}", plain_percent(most));
    }
    format!(" of each row, {} to {}", plain_percent(least), plain_percent(most))
}

/// Where effects go: the logarithm of the ratio, so that halving is as far as doubling.
struct Frame {
    form: Form,
    /// How far above the figures a label stands that has no room beside them.
    label_above: f64,
    left: f64,
    right: f64,
    low: f64,
    high: f64,
}

/// How far the axis goes to either side, from the logarithms of effects that are not 0 and of those that may be: four times the way of the
/// farthest that is sure; where none is, what most of the others need.
fn reach(sure: &[f64], mut unsure: Vec<f64>) -> f64 {
    if !sure.is_empty() {
        return sure.iter().copied().fold(0.0, f64::max) * 4.0;
    }
    unsure.sort_by(f64::total_cmp);
    let middle = unsure.get((unsure.len().saturating_sub(1)) / 2).copied().unwrap_or(0.0);
    let most = (middle * 2.0).max(std::f64::consts::LN_2);
    unsure.into_iter().map(|way| way.min(most) * 2.0).fold(0.0, f64::max)
}

impl Frame {
    fn around(rows: &[&(&Comparison, String)], form: Form) -> Frame {
        let delta = rows.iter().map(|(c, _)| c.delta).fold(0.0, f64::max);
        let longest = rows.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let widest = LONGEST_LABEL - LABEL_GAP;
        let beside = match form {
            Form::Wide => fitting(widest, SIZE),
            Form::Narrow => fitting(form.width() - form.values(), SIZE),
        };
        let label_above = if longest > beside { LINE } else { 0.0 };
        let (left, right) = match form {
            Form::Wide if label_above > 0.0 => (LABEL_GAP, form.width() - form.values()),
            Form::Wide => {
                let label = longest as f64 * SIZE * 0.56 + LABEL_GAP;
                (label.clamp(60.0, LONGEST_LABEL), form.width() - form.values())
            }
            Form::Narrow => (4.0, form.width() - 4.0),
        };
        let log = |ratio: f64| ratio.max(-0.9999).ln_1p();
        // What is not known must not squeeze what is; what lies beyond the axis has an arrow there.
        let is_sure = |i: Interval| i.low > 0.0 || i.high < 0.0;
        let (sure, unsure): (Vec<_>, Vec<_>) = rows.iter().partition(|(c, _)| c.effect.is_some_and(is_sure));
        let ways = |rows: &[&&(&Comparison, String)]| -> Vec<f64> {
            rows.iter().map(|(c, _)| log(shown_change(c)).abs()).collect()
        };
        let reach = reach(&ways(&sure), ways(&unsure)).max(log(delta) * 8.0);
        let estimates = rows.iter().map(|(c, _)| log(shown_change(c)));
        let ends = rows.iter().filter_map(|(c, _)| c.effect).flat_map(|i| [log(i.low), log(i.high)]);
        let all = estimates
            .chain(ends)
            .map(|end| end.clamp(-reach, reach))
            .chain([-log(delta) * 1.6, log(delta) * 1.6]);
        let (low, high) = all.fold((0.0, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
        let pad = (high - low) * 0.06;
        Frame { form, label_above, left, right, low: low - pad, high: high + pad }
    }

    /// Height of a row.
    fn row(&self) -> f64 {
        self.form.row() + self.label_above
    }

    /// Whether it lies beyond an end of the axis.
    fn cuts(&self, ratio: f64) -> bool {
        let log = ratio.max(-0.9999).ln_1p();
        log < self.low || log > self.high
    }

    fn x(&self, ratio: f64) -> i32 {
        let log = ratio.max(-0.9999).ln_1p().clamp(self.low, self.high);
        px(self.left + (log - self.low) / (self.high - self.low) * (self.right - self.left))
    }

    /// Ticks in percent, far enough apart for their labels.
    fn ticks(&self) -> Vec<f64> {
        let (low, high) = (self.low.exp_m1() * 100.0, self.high.exp_m1() * 100.0);
        let candidates: Vec<f64> = if high < 60.0 {
            round_ticks(low, high, 8)
        } else {
            FAR.into_iter().filter(|tick| (low..=high).contains(tick)).collect()
        };
        let mut kept: Vec<f64> = vec![0.0];
        let mut by_distance = candidates;
        by_distance.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let half = |tick: f64| words_width(&tick_text(tick), TICK_SIZE) / 2.0;
        for tick in by_distance {
            let fits = |other: &f64| {
                let apart = (self.x(*other / 100.0) - self.x(tick / 100.0)).abs();
                apart >= px(half(*other) + half(tick) + GAP)
            };
            if kept.iter().all(fits) {
                kept.push(tick);
            }
        }
        kept
    }

    /// Rows with one δ share a band.
    fn paint_bands(&self, area: &Area<'_>, rows: &[&(&Comparison, String)]) -> Drawn {
        let mut top = TOP;
        for alike in rows.chunk_by(|(one, _), (other, _)| one.delta == other.delta) {
            let (delta, bottom) = (alike[0].0.delta, top + self.row() * alike.len() as f64);
            let low = 1.0 / (1.0 + delta) - 1.0;
            let corners = [(self.x(low), px(top)), (self.x(delta), px(bottom))];
            area.draw(&Rectangle::new(corners, BAND.filled()))?;
            top = bottom;
        }
        Ok(())
    }

    fn paint_axis(&self, area: &Area<'_>, height: f64, sides: Option<(&str, &str)>) -> Drawn {
        let (top, bottom) = (px(TOP), px(height - BOTTOM));
        for tick in self.ticks() {
            let x = self.x(tick / 100.0);
            let style = if tick == 0.0 { line(AXIS, 1.5) } else { line(GRID, 1.0) };
            area.draw(&PathElement::new([(x, top), (x, bottom)], style))?;
            let style = anchored(TICK_SIZE, MUTED, HPos::Center);
            area.draw(&Text::new(tick_text(tick), (x, bottom + px(14.0)), style))?;
        }
        if let Some((left, right)) = sides {
            let y = bottom + px(34.0);
            area.draw(&Text::new(left, (px(self.left), y), anchored(12.0, MUTED, HPos::Left)))?;
            area.draw(&Text::new(right, (px(self.right), y), anchored(12.0, MUTED, HPos::Right)))?;
        }
        Ok(())
    }

    fn paint_row(&self, area: &Area<'_>, y: f64, comparison: &Comparison, label: &str) -> Drawn {
        let colour = TONES[tone_of_row(comparison).unwrap_or(Tone::Unclear) as usize];
        let (y, words) = (px(y), px(y - self.form.words_above()));
        let room = match self.form {
            _ if self.label_above > 0.0 => self.form.width(),
            Form::Wide => self.left - LABEL_GAP,
            Form::Narrow => self.form.width() - self.form.values(),
        };
        let short = shorten(label, fitting(room, SIZE).max(8));
        if self.form == Form::Narrow || self.label_above > 0.0 {
            // No line of the axis runs through words.
            let last = if self.form == Form::Narrow { words } else { words - px(self.label_above) };
            let (top, bottom) = (words - px(self.label_above + LINE / 2.0), last + px(LINE / 2.0));
            area.draw(&Rectangle::new([(0, top), (px(self.form.width()), bottom)], PAPER.filled()))?;
        }
        let label = (0, words - px(self.label_above));
        area.draw(&Text::new(short, label, anchored(SIZE, INK, HPos::Left)))?;
        let change = shown_change(comparison);
        let dot = (self.x(change), y);
        let mut value = shown_words(comparison);
        if let Some(i) = comparison.effect {
            area.draw(&PathElement::new([(self.x(i.low), y), (self.x(i.high), y)], line(colour, 2.5)))?;
            for end in [i.low, i.high] {
                let x = self.x(end);
                if self.cuts(end) {
                    let tip = px(6.0) * if end < 0.0 { 1 } else { -1 };
                    let arrow = [(x + tip, y - px(4.0)), (x, y), (x + tip, y + px(4.0))];
                    area.draw(&PathElement::new(arrow, line(colour, 2.0)))?;
                    continue;
                }
                area.draw(&PathElement::new([(x, y - px(4.0)), (x, y + px(4.0))], line(colour, 2.0)))?;
            }
            if !self.cuts(change) {
                area.draw(&Circle::new(dot, px(5.0), colour.filled()))?;
            }
            if has_share(comparison) {
                value = format!("{value}  {}", interval_of(comparison));
            }
        } else if !self.cuts(change) {
            area.draw(&Circle::new(dot, px(5.0), PAPER.filled()))?;
            area.draw(&Circle::new(dot, px(4.5), line(colour, 1.5)))?;
        }
        area.draw(&Text::new(value, (px(self.form.width()), words), anchored(SIZE, INK, HPos::Right)))?;
        Ok(())
    }
}

/// The change of a comparison with its unit.
fn shown_words(c: &Comparison) -> String {
    if !has_share(c) {
        return difference_words(c);
    }
    let cell = shown_cell(c);
    if cell.starts_with('×') { cell } else { format!("{cell} %") }
}

/// `−50 %`, `+2.5 %`, `×100`.
fn tick_text(tick: f64) -> String {
    if tick == 0.0 {
        return "0 %".to_owned();
    }
    match tick / 100.0 {
        ratio if ratio >= 9.0 => format!("×{:.0}", ratio + 1.0),
        ratio => format!("{} %", percent(ratio, usize::from(tick.fract().abs() > 1e-9))),
    }
}

#[cfg(test)]
mod tests;
