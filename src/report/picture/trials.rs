//! Every trial as a dot: by arm at the left, over time at the right, on one scale.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, padded, round_ticks, tick_decimals, tick_text};
use super::canvas::{Area, Drawn, anchored, draw, fitting, line, mesh, px};
use super::palette::{self, MUTED};
use super::{Picture, title};
use crate::analyse::{ArmSummary, Comparison};
use crate::report::layout::shorten;
use crate::units::Scale;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 250.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
const SCALE: f64 = 64.0;
const GAP: f64 = 28.0;
/// Width for a page as narrow as a phone, where the halves stand one below the other.
const NARROW: f64 = 350.0;

/// One arm's values under its label.
pub(in crate::report) struct Arm<'a> {
    /// Index among the run's arms.
    pub(in crate::report) index: usize,
    /// As the reader knows it.
    pub(in crate::report) label: String,
    /// Its values.
    pub(in crate::report) summary: &'a ArmSummary,
}

/// Trials of one row; at most `most` dots an arm.
pub(in crate::report) fn trials(
    comparison: &Comparison,
    arms: &[Arm<'_>],
    row: &str,
    most: usize,
) -> Option<Picture> {
    let all = arms.iter().flat_map(|arm| arm.summary.values.iter().map(|v| v.3));
    let (low, high) = padded(all.clone(), 0.06)?;
    let scale = Scale::for_column(&comparison.metric.unit, all);
    let (low, high) = (low / scale.divisor, high / scale.divisor);
    let clock = Clock::of(arms);
    let points: Vec<Vec<Point>> = arms.iter().map(|arm| thinned(arm.summary, &clock, &scale, most)).collect();
    let title = title(row, &comparison.metric.name, &scale.symbol);
    let words: Vec<String> = arms
        .iter()
        .map(|arm| {
            let s = arm.summary;
            format!(
                "{}: {} trials from {} to {}, median {}",
                arm.label,
                s.n,
                scale.number(s.min),
                scale.number(s.max),
                scale.with_unit(s.median)
            )
        })
        .collect();
    let label = format!("Every trial of {title}. {}", words.join("; "));
    let chart = Chart { low, high, clock: &clock, arms, scale: &scale };
    let svg = draw((WIDTH, HEIGHT), &title, &label, |area| chart.paint(area, &points));
    let narrow = draw((NARROW, 2.0 * HEIGHT), &title, &label, |area| chart.paint_narrow(area, &points));
    let mut caption = format!("Every trial as a dot, by arm (bar: median) and {}.", clock.words());
    let (drawn, total) = (
        points.iter().map(Vec::len).sum::<usize>(),
        arms.iter().map(|a| a.summary.values.len()).sum::<usize>(),
    );
    if drawn < total {
        caption.push_str(&format!(
            " {drawn} of {total} trials are drawn, evenly chosen, with each arm's extremes."
        ));
    }
    Some(Picture {
        title,
        caption,
        arms: arms.iter().map(|arm| arm.index).collect(),
        svg,
        narrow: Some(narrow),
    })
}

/// A trial in the units of the axes.
struct Point {
    x: f64,
    y: f64,
}

/// What the right half counts: minutes when starts are known, else rounds.
struct Clock {
    first_ns: Option<u64>,
    divisor: f64,
    unit: &'static str,
    end: f64,
}

impl Clock {
    fn of(arms: &[Arm<'_>]) -> Clock {
        let starts = || arms.iter().flat_map(|arm| arm.summary.values.iter().map(|v| v.2));
        let (first, last) = (starts().min().unwrap_or(0), starts().max().unwrap_or(0));
        if first == 0 || first == last {
            let end = arms.iter().flat_map(|arm| arm.summary.values.iter().map(|v| v.0)).max().unwrap_or(0);
            return Clock { first_ns: None, divisor: 1.0, unit: "round", end: f64::from(end) + 1.0 };
        }
        let seconds = (last - first) as f64 / 1e9;
        let (divisor, unit) = match seconds {
            s if s < 180.0 => (1.0, "s"),
            s if s < 3.0 * 3600.0 => (60.0, "min"),
            _ => (3600.0, "h"),
        };
        Clock { first_ns: Some(first), divisor, unit, end: seconds / divisor }
    }

    fn at(&self, value: &(u32, u32, u64, f64)) -> f64 {
        match self.first_ns {
            Some(first) => (value.2 - first) as f64 / 1e9 / self.divisor,
            None => f64::from(value.0) + 1.0,
        }
    }

    fn words(&self) -> &'static str {
        if self.first_ns.is_some() { "over the time since the first trial" } else { "by round" }
    }
}

/// At most `most` points, evenly chosen in the order of time, the smallest and the largest always among them.
fn thinned(summary: &ArmSummary, clock: &Clock, scale: &Scale, most: usize) -> Vec<Point> {
    let n = summary.values.len();
    let stride = n.div_ceil(most.max(1)).max(1);
    summary
        .values
        .iter()
        .enumerate()
        .filter(|(at, v)| {
            v.3.is_finite() && (at % stride == 0 || n > most && (v.3 == summary.min || v.3 == summary.max))
        })
        .take(most + 2)
        .map(|(_, v)| Point { x: clock.at(v), y: v.3 / scale.divisor })
        .collect()
}

struct Chart<'a> {
    low: f64,
    high: f64,
    clock: &'a Clock,
    arms: &'a [Arm<'a>],
    scale: &'a Scale,
}

impl Chart<'_> {
    fn paint(&self, area: &Area<'_>, points: &[Vec<Point>]) -> Drawn {
        let strip = (110.0 * self.arms.len() as f64).clamp(180.0, 400.0);
        let (left, right) = area.split_horizontally(px(SCALE + strip + GAP / 2.0));
        self.paint_strip(&left, strip, points)?;
        self.paint_time(&right, points, false)
    }

    /// The halves one below the other.
    fn paint_narrow(&self, area: &Area<'_>, points: &[Vec<Point>]) -> Drawn {
        let (above, below) = area.split_vertically(px(HEIGHT));
        self.paint_strip(&above, NARROW - SCALE - GAP / 2.0, points)?;
        self.paint_time(&below, points, true)
    }

    fn ticks(&self) -> Vec<f64> {
        round_ticks(self.low, self.high, 6)
    }

    /// Arms side by side; dots spread sideways by the golden ratio, so that neighbours do not hide each other.
    fn paint_strip(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        strip: f64,
        points: &[Vec<Point>],
    ) -> Drawn {
        let ticks = self.ticks();
        let decimals = tick_decimals(&ticks);
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(TOP))
            .margin_right(px(GAP / 2.0))
            .x_label_area_size(px(BOTTOM))
            .y_label_area_size(px(SCALE))
            .build_cartesian_2d(
                0.0..self.arms.len() as f64,
                Axis::linear(self.low..self.high, ticks, |y| tick_text(y, decimals)),
            )?;
        mesh(&mut chart, 12.0).disable_x_mesh().disable_x_axis().x_labels(0).draw()?;
        let each = strip / self.arms.len() as f64;
        for (at, arm) in self.arms.iter().enumerate() {
            let colour = palette::arm(arm.index);
            let middle = at as f64 + 0.5;
            let opacity = if points[at].len() > 200 { 0.35 } else { 0.75 };
            chart.draw_series(points[at].iter().enumerate().map(|(i, point)| {
                let aside = ((i as f64 * 0.618_033_988_75).fract() - 0.5) * 0.5;
                Circle::new((middle + aside, point.y), px(3.0), colour.mix(opacity).filled())
            }))?;
            let median = arm.summary.median / self.scale.divisor;
            chart.draw_series([PathElement::new(
                vec![(middle - 0.34, median), (middle + 0.34, median)],
                line(colour, 2.5),
            )])?;
            let x = px(SCALE + each * middle);
            let short = shorten(&arm.label, fitting(each - 8.0, 12.0).max(4));
            area.draw(&Text::new(
                short,
                (x, px(HEIGHT - BOTTOM + 11.0)),
                anchored(12.0, MUTED, HPos::Center),
            ))?;
        }
        Ok(())
    }

    /// Over time; with a scale of its own where none stands beside it.
    fn paint_time(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        points: &[Vec<Point>],
        scaled: bool,
    ) -> Drawn {
        let end = self.clock.end.max(1e-9);
        let start = if self.clock.first_ns.is_some() { 0.0 } else { 1.0 };
        let pad = ((end - start) * 0.03).max(if start == end { 0.5 } else { 0.0 });
        let mut time_ticks = round_ticks(start, end, if scaled { 3 } else { 6 });
        if self.clock.first_ns.is_none() {
            time_ticks.retain(|tick| tick.fract() == 0.0);
        }
        let decimals = tick_decimals(&time_ticks).min(if self.clock.first_ns.is_none() { 0 } else { 6 });
        let unit = self.clock.unit;
        let (ticks, scale) = (self.ticks(), if scaled { SCALE } else { 0.0 });
        let of_scale = tick_decimals(&ticks);
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(TOP))
            .margin_right(px(8.0))
            .margin_left(px(if scaled { 0.0 } else { GAP / 2.0 }))
            .x_label_area_size(px(BOTTOM))
            .y_label_area_size(px(scale))
            .build_cartesian_2d(
                Axis::linear(start - pad..end + pad, time_ticks, |x| match unit {
                    "round" => format!("round {x:.0}"),
                    _ => format!("{x:.decimals$} {unit}"),
                }),
                Axis::linear(self.low..self.high, ticks, |y| match scaled {
                    true => tick_text(y, of_scale),
                    false => String::new(),
                }),
            )?;
        mesh(&mut chart, 12.0).disable_x_mesh().draw()?;
        for (at, arm) in self.arms.iter().enumerate() {
            let colour = palette::arm(arm.index);
            let few = points[at].len() <= 120;
            if few {
                let path = points[at].iter().map(|p| (p.x, p.y)).collect::<Vec<_>>();
                chart.draw_series([PathElement::new(path, line_of(colour.mix(0.45)))])?;
            }
            let opacity = if few { 0.9 } else { 0.45 };
            let size = if few { 3.0 } else { 2.0 };
            chart.draw_series(
                points[at].iter().map(|p| Circle::new((p.x, p.y), px(size), colour.mix(opacity).filled())),
            )?;
        }
        Ok(())
    }
}

fn line_of(colour: RGBAColor) -> ShapeStyle {
    ShapeStyle { color: colour, filled: false, stroke_width: px(1.2) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::section_tests::made_up;

    #[test]
    fn a_phone_has_trials_over_time_below_those_by_arm() {
        let c = made_up().1.comparisons.remove(0);
        let arms = [("on", &c.baseline), ("off", &c.candidate)];
        let arms: Vec<Arm<'_>> = arms
            .into_iter()
            .enumerate()
            .map(|(index, (label, summary))| Arm { index, label: label.to_owned(), summary })
            .collect();
        let picture = trials(&c, &arms, "", 100).unwrap();
        let narrow = picture.narrow.unwrap();
        assert!(narrow.contains("width=\"350\" height=\"500\""), "{narrow}");
        assert_eq!(narrow.matches("<circle").count(), picture.svg.matches("<circle").count());
    }
}
