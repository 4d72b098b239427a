//! Throughput by number of workers, all arms together: the measured points, each with the range of its trials, and behind them the law
//! where one was fitted.

use std::collections::BTreeSet;

use plotters::prelude::*;

use super::axis::{Axis, round_ticks, tick_decimals, tick_text};
use super::canvas::{Area, Drawn, draw, font, line, mesh, px};
use super::palette;
use super::{Form, Picture, title};
use crate::analyse::{ScalingCurve, ScalingLaw};
use crate::report::layout::shorten;
use crate::units::{Scale, Unit, format_number};

const WIDTH: f64 = 450.0;
const HEIGHT: f64 = 270.0;
/// Levels that reach further than this are drawn on a logarithmic axis.
const LOG_FROM: f64 = 8.0;
/// A law is drawn up to this many times the last level that was fitted, at most.
const HORIZON: f64 = 2.0;
/// Most letters of a curve's name.
const LABEL: usize = 32;
/// Straight pieces of a curve.
const PIECES: u32 = 80;
/// Numbers along the axis.
const MOST_TICKS: usize = 6;
/// Height of a line of the legend.
const LINE: f64 = 15.0;

/// One arm's curve: its colour's index, its name, and the numbers.
pub(in crate::report) struct ScalingArm<'a> {
    /// Index of the colour.
    pub(in crate::report) index: usize,
    /// As the reader knows it.
    pub(in crate::report) label: String,
    /// Points and law.
    pub(in crate::report) curve: &'a ScalingCurve,
}

/// The curves of one group, all of one unit; `None` where nothing was measured.
pub(in crate::report) fn scaling(arms: &[ScalingArm<'_>], factor: &str, row: &str) -> Option<Picture> {
    let points = || arms.iter().flat_map(|arm| &arm.curve.points);
    let first = points().map(|point| f64::from(point.level)).fold(f64::INFINITY, f64::min);
    let last = points().map(|point| f64::from(point.level)).fold(0.0, f64::max);
    let ends = arms.iter().filter_map(|arm| Some(end(arm.curve.law.as_ref()?)));
    let end = ends.fold(last, f64::max);
    let high =
        points().map(|point| point.max).chain(arms.iter().flat_map(|arm| highest(arm))).fold(0.0, f64::max);
    if first >= end || !(high > 0.0 && high.is_finite()) {
        return None;
    }
    let unit = &arms.first()?.curve.metric.unit;
    let scale = Scale::for_column(unit, points().map(|point| point.mean));
    let mut names: Vec<&str> = arms.iter().map(|arm| arm.curve.metric.name.as_str()).collect();
    names.dedup();
    let title = title(row, &format!("{} by {factor}", names.join(" or ")), &scale.symbol);
    let words: Vec<String> = arms.iter().map(|arm| describe(arm, unit)).collect();
    let label = format!("How it scales: {title}. {}", words.join("; "));
    let drawn = |width: f64| {
        draw((width, HEIGHT + legend(arms)), &title, &label, |area| {
            paint(area, arms, (first, end), high * 1.06, &scale)
        })
    };
    let (svg, narrow) = (drawn(WIDTH), Some(drawn(Form::Narrow.width())));
    let law = arms.iter().any(|arm| arm.curve.law.is_some());
    let behind = if law {
        " The line behind is the Universal Scalability Law, never beyond twice the last level that was fitted."
    } else {
        ""
    };
    let caption = format!(
        "Points: the mean of each number of {factor}, with the smallest and the largest trial.{behind}"
    );
    // The drawing has its own legend: curves may be other things than arms.
    Some(Picture { title, caption, arms: Vec::new(), svg, narrow })
}

/// Where the line of a law ends: at its last level, or behind its peak where that is not far.
fn end(law: &ScalingLaw) -> f64 {
    let last = f64::from(law.last);
    let horizon = HORIZON * last;
    if law.peak.estimate < horizon { last.max(1.15 * law.peak.estimate).min(horizon) } else { last }
}

fn at(law: &ScalingLaw, n: f64) -> f64 {
    let slowing = 1.0 + law.alpha.estimate * (n - 1.0) + law.beta.estimate * n * (n - 1.0);
    law.gamma.estimate * n / slowing
}

/// The law's line, in pieces that are alike on a logarithmic axis.
fn curve(curve: &ScalingCurve) -> Vec<(f64, f64)> {
    let (Some(law), Some(first)) = (&curve.law, curve.points.first()) else { return Vec::new() };
    let (first, end) = (f64::from(first.level), end(law));
    let step = (end / first).ln() / f64::from(PIECES);
    (0..=PIECES).map(|piece| first * (step * f64::from(piece)).exp()).map(|n| (n, at(law, n))).collect()
}

fn highest(arm: &ScalingArm<'_>) -> Option<f64> {
    curve(arm.curve).into_iter().map(|(_, x)| x).reduce(f64::max)
}

fn describe(arm: &ScalingArm<'_>, unit: &Unit) -> String {
    let points: Vec<String> = arm
        .curve
        .points
        .iter()
        .map(|point| format!("{} at {}", format_number(unit, point.mean), point.level))
        .collect();
    format!("{} {}", arm.label, points.join(", ")).trim_start().to_owned()
}

/// Height of the names above the plot, where no curve runs through them.
fn legend(arms: &[ScalingArm<'_>]) -> f64 {
    LINE * arms.iter().filter(|arm| !arm.label.is_empty()).count() as f64
}

fn paint(
    area: &Area<'_>,
    arms: &[ScalingArm<'_>],
    (first, end): (f64, f64),
    high: f64,
    scale: &Scale,
) -> Drawn {
    let scaled = round_ticks(0.0, high / scale.divisor, 5);
    let decimals = tick_decimals(&scaled);
    let heights: Vec<f64> = scaled.iter().map(|tick| tick * scale.divisor).collect();
    let number = |n: f64| format!("{n:.0}");
    let axis = if end / first >= LOG_FROM {
        Axis::log(first / 1.1..end * 1.1, doublings(first, end), number)
    } else {
        let margin = 0.04 * (end - first);
        Axis::linear(first - margin..end + margin, numbers_of_workers(arms, (first, end)), number)
    };
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(10.0 + legend(arms)))
        .margin_right(px(18.0))
        .x_label_area_size(px(34.0))
        .y_label_area_size(px(58.0))
        .build_cartesian_2d(
            axis,
            Axis::linear(0.0..high, heights, |y| tick_text(y / scale.divisor, decimals)),
        )?;
    mesh(&mut chart, 11.5).disable_x_mesh().draw()?;
    for arm in arms {
        let colour = palette::arm(arm.index).mix(0.45);
        let thin = ShapeStyle { color: colour, filled: false, stroke_width: px(1.5) as u32 };
        chart.draw_series([PathElement::new(curve(arm.curve), thin)])?;
    }
    for arm in arms {
        let colour = palette::arm(arm.index);
        for point in &arm.curve.points {
            let n = f64::from(point.level);
            chart.draw_series([PathElement::new(vec![(n, point.min), (n, point.max)], line(colour, 1.5))])?;
            chart.draw_series([Circle::new((n, point.mean), px(3.5), colour.filled())])?;
        }
    }
    for (place, arm) in arms.iter().filter(|arm| !arm.label.is_empty()).enumerate() {
        let style = font(11.5, palette::arm(arm.index));
        let at = (px(68.0), px(4.0 + LINE * place as f64));
        area.draw(&Text::new(shorten(&arm.label, LABEL), at, style))?;
    }
    Ok(())
}

/// The levels, where there is room for all, else round numbers; no part of a worker.
fn numbers_of_workers(arms: &[ScalingArm<'_>], (first, end): (f64, f64)) -> Vec<f64> {
    let levels: BTreeSet<u32> =
        arms.iter().flat_map(|arm| &arm.curve.points).map(|point| point.level).collect();
    if levels.len() <= MOST_TICKS {
        return levels.into_iter().map(f64::from).collect();
    }
    round_ticks(first, end, MOST_TICKS).into_iter().filter(|n| n.fract() == 0.0).collect()
}

/// `first` and its doublings.
fn doublings(first: f64, end: f64) -> Vec<f64> {
    std::iter::successors(Some(first), |n| Some(2.0 * n)).take_while(|n| *n <= end * 1.001).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Interval, ScalingPoint};
    use crate::record::Metric;
    use crate::units::Better;

    fn law(alpha: f64, beta: f64, last: u32) -> ScalingLaw {
        let known = |estimate: f64| Interval { estimate, low: estimate, high: estimate };
        let peak = known(((1.0 - alpha) / beta).sqrt());
        ScalingLaw {
            gamma: known(1e6),
            alpha: known(alpha),
            beta: known(beta),
            peak,
            ceiling: None,
            residual: 0.0,
            n: 8,
            last,
        }
    }

    fn measured(law: Option<ScalingLaw>, levels: &[u32]) -> ScalingCurve {
        let point = |level: &u32| ScalingPoint {
            level: *level,
            n: 8,
            mean: 1e6 * f64::from(*level).sqrt(),
            min: 0.9e6,
            max: 1.1e6 * f64::from(*level),
            fitted: true,
        };
        let metric = Metric::new("", "bw", Unit::BytesPerSecond, Better::Higher);
        let points = levels.iter().map(point).collect();
        ScalingCurve { of: Vec::new(), metric, points, law, refused: None }
    }

    #[test]
    fn a_law_is_never_drawn_beyond_twice_the_last_level() {
        for beta in [0.0, 1e-9, 1e-4, 1e-3, 1e-2, 0.1] {
            let found = curve(&measured(Some(law(0.02, beta, 16)), &[1, 2, 4, 8, 16, 64]));
            let last = found.last().unwrap().0;
            assert!((16.0 - 1e-9..=32.0 + 1e-9).contains(&last), "{beta}: {last}");
        }
        assert!(curve(&measured(None, &[1, 2, 4])).is_empty());
    }

    #[test]
    fn points_are_drawn_without_a_law() {
        let curves = [measured(None, &[1, 2, 4]), measured(Some(law(0.1, 0.001, 4)), &[1, 2, 4])];
        let arms: Vec<ScalingArm> = curves
            .iter()
            .enumerate()
            .map(|(index, curve)| ScalingArm { index, label: format!("arm {index}"), curve })
            .collect();
        let picture = scaling(&arms, "numjobs", "fs=xfs").unwrap();
        assert_eq!(picture.svg.matches("<circle").count(), 6);
        assert!(picture.title.starts_with("fs=xfs: bw by numjobs, "), "{}", picture.title);
        assert!(scaling(&[], "numjobs", "").is_none());
        assert_eq!(numbers_of_workers(&arms, (1.0, 4.0)), [1.0, 2.0, 4.0]);
        let many = measured(None, &[1, 2, 3, 4, 5, 6, 7]);
        let one = [ScalingArm { index: 0, label: String::new(), curve: &many }];
        assert_eq!(numbers_of_workers(&one, (1.0, 7.0)), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!((legend(&arms), legend(&one)), (2.0 * LINE, 0.0));
    }
}
