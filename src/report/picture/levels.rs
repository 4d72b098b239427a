//! Runs in time: a dot each, a line for each level, and where the newest was expected.

use plotters::prelude::*;

use super::axis::{Axis, padded, round_ticks, tick_decimals, tick_text};
use super::canvas::{Area, Drawn, draw, line, mesh, px};
use super::palette::{self, AXIS, BAND, INK, TONES};
use super::{Picture, title};
use crate::history::Series;
use crate::report::verdict_words::Tone;
use crate::units::Scale;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 220.0;
/// Width for a page as narrow as a phone.
const NARROW: f64 = 350.0;
/// Width of a run's number with a gap.
const LABEL: f64 = 34.0;

/// The runs of one series; `newest` is what the last is to the reader.
pub(in crate::report) fn levels(series: &Series, row: &str, newest: Tone) -> Option<Picture> {
    let medians = || series.points.iter().map(|point| point.median);
    let (low, high) = padded(medians().chain(series.expected().into_iter().flatten()), 0.08)?;
    let scale = Scale::for_column(&series.metric.unit, medians());
    let title = title(row, &series.metric.name, &scale.symbol);
    let range = (low / scale.divisor, high / scale.divisor);
    let runs: Vec<&str> = series.points.iter().map(|point| point.label()).collect();
    let label = format!(
        "{title} of {} runs, from run {} to run {}; changes at: {}",
        runs.len(),
        runs.first().unwrap_or(&""),
        runs.last().unwrap_or(&""),
        match series.changes.as_slice() {
            [] => "none".to_owned(),
            some => some.iter().map(|change| runs[change.at]).collect::<Vec<_>>().join(", "),
        }
    );
    let chart = Chart { series, range, scale: &scale, runs: &runs, newest: TONES[newest as usize] };
    let drawn = |width: f64| draw((width, HEIGHT), &title, &label, |area| chart.paint(area, width));
    let (svg, narrow) = (drawn(WIDTH), Some(drawn(NARROW)));
    let caption = "A dot a run, in the order of time, with the number of the run; lines: the mean of each level; the band: where the \
                   newest run is expected if its level is still the last one.";
    Some(Picture { title, caption: caption.to_owned(), arms: Vec::new(), svg, narrow })
}

struct Chart<'a> {
    series: &'a Series,
    range: (f64, f64),
    scale: &'a Scale,
    runs: &'a [&'a str],
    newest: RGBColor,
}

impl Chart<'_> {
    fn paint(&self, area: &Area<'_>, width: f64) -> Drawn {
        let runs = self.runs.len();
        let shown = (((width - 90.0) / LABEL) as usize).max(1);
        let every = runs.div_ceil(shown).max(1);
        // Counted from the newest, whose number is always there.
        let places =
            (0..runs).filter(|at| (runs - 1 - at).is_multiple_of(every)).map(|at| at as f64).collect();
        let ticks = round_ticks(self.range.0, self.range.1, 5);
        let decimals = tick_decimals(&ticks);
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(10.0))
            .margin_right(px(14.0))
            .x_label_area_size(px(28.0))
            .y_label_area_size(px(64.0))
            .build_cartesian_2d(
                Axis::linear(-0.6..runs as f64 - 0.4, places, |x| self.runs[x.round() as usize].to_owned()),
                Axis::linear(self.range.0..self.range.1, ticks, |y| tick_text(y, decimals)),
            )?;
        mesh(&mut chart, 12.0).disable_x_mesh().draw()?;
        let last = runs as f64 - 1.0;
        if let Some([low, high]) = self.series.expected() {
            let [low, high] = [low, high].map(|value| value / self.scale.divisor);
            chart.draw_series([Rectangle::new([(last - 0.4, low), (last + 0.4, high)], BAND.filled())])?;
        }
        for level in self.series.levels() {
            let [from, to] = [level.start as f64 - 0.5, level.end as f64 - 0.5];
            if level.start > 0 {
                let whole = vec![(from, self.range.0), (from, self.range.1)];
                chart.draw_series([PathElement::new(whole, line(AXIS, 1.0))])?;
            }
            let logs = self.series.points[level.clone()].iter().map(|point| point.median.ln());
            let mean = (logs.sum::<f64>() / level.len() as f64).exp() / self.scale.divisor;
            if mean.is_finite() {
                chart.draw_series([PathElement::new(vec![(from, mean), (to, mean)], line(INK, 1.5))])?;
            }
        }
        let colour = |at: usize| if at + 1 == runs { self.newest } else { palette::arm(0) };
        chart.draw_series(self.series.points.iter().enumerate().map(|(at, point)| {
            let size = if at + 1 == runs { 4.5 } else { 3.0 };
            Circle::new((at as f64, point.median / self.scale.divisor), px(size), colour(at).filled())
        }))?;
        Ok(())
    }
}
