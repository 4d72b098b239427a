//! Latency quantiles of all arms of a row: the tail stretched so that each nine takes the same width.

use plotters::prelude::*;

use super::axis::{Axis, log_ticks};
use super::canvas::{Drawn, draw, mesh, px};
use super::palette;
use super::{Picture, title};
use crate::analyse::QuantileCurve;
use crate::units::{Unit, format_number};

const WIDTH: f64 = 450.0;
const HEIGHT: f64 = 270.0;
/// Operations that must lie beyond the last quantile drawn.
const LEAST_BEYOND: f64 = 10.0;

/// Curves of one row, direction and kind, each with its arm's index.
pub(in crate::report) fn quantiles(
    curves: &[(usize, &QuantileCurve)],
    row: &str,
    name_of: impl Fn(&str) -> String,
) -> Option<Picture> {
    let (_, first) = curves.first()?;
    let lines: Vec<(usize, Vec<(f64, f64)>)> =
        curves.iter().map(|(arm, curve)| (*arm, points(curve))).collect();
    let all = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let low = all().map(|(_, y)| y).fold(f64::INFINITY, f64::min);
    let high = all().map(|(_, y)| y).fold(0.0, f64::max);
    let end = all().map(|(x, _)| x).fold(0.0, f64::max);
    if !(low > 0.0 && low.is_finite() && high >= low && end > 0.0) {
        return None;
    }
    let title = title(row, &first.kind.metric(first.direction), "");
    let words: Vec<String> = curves.iter().map(|(_, curve)| describe(curve, &name_of(&curve.arm))).collect();
    let label = format!("Latency quantiles of {title}. {}", words.join("; "));
    let svg =
        draw((WIDTH, HEIGHT), &title, &label, |area| paint(area, &lines, (low / 1.15, high * 1.15), end));
    let caption =
        "Latency at each quantile, all trials of an arm together; a curve ends where fewer than ten \
                   operations are left. For the eye only: verdicts come from trials."
            .to_owned();
    Some(Picture { title, caption, arms: curves.iter().map(|(arm, _)| *arm).collect(), svg, narrow: None })
}

fn describe(curve: &QuantileCurve, arm: &str) -> String {
    let at = |wanted: f64| {
        let nearest =
            curve.points.iter().min_by(|a, b| (a.0 - wanted).abs().total_cmp(&(b.0 - wanted).abs()));
        nearest.map_or_else(|| "-".to_owned(), |(_, ns)| format_number(&Unit::Nanoseconds, *ns))
    };
    format!("{arm}: median {}, 99 percent {}, of {} operations", at(0.5), at(0.99), curve.count)
}

/// Where a quantile goes: −log10(1 − q), so that 90 %, 99 %, 99.9 % are equally far apart.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

fn points(curve: &QuantileCurve) -> Vec<(f64, f64)> {
    let last = 1.0 - LEAST_BEYOND / curve.count.max(1) as f64;
    let drawn = curve.points.iter().filter(|(q, ns)| *q < 1.0 && *q <= last && *ns > 0.0 && ns.is_finite());
    drawn.map(|(q, ns)| (nines(*q), *ns)).collect()
}

fn quantile_label(x: f64) -> String {
    if x < 0.01 {
        // The label would run into its neighbour's.
        String::new()
    } else if x < 0.5 {
        "50 %".to_owned()
    } else {
        let nines = x.round() as usize;
        format!("{:.*} %", nines.saturating_sub(2), 100.0 - 100.0 * 10f64.powi(-(nines as i32)))
    }
}

fn paint(
    area: &super::canvas::Area<'_>,
    lines: &[(usize, Vec<(f64, f64)>)],
    (low, high): (f64, f64),
    end: f64,
) -> Drawn {
    let mut ticks = vec![0.0, nines(0.5)];
    ticks.extend((1..=end.floor() as i32).map(f64::from));
    let heights = log_ticks(low, high, 7);
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(10.0))
        .margin_right(px(26.0))
        .x_label_area_size(px(34.0))
        .y_label_area_size(px(58.0))
        .build_cartesian_2d(
            Axis::linear(0.0..end, ticks, quantile_label),
            Axis::log(low..high, heights, short_time),
        )?;
    mesh(&mut chart, 11.5).draw()?;
    for (arm, points) in lines {
        chart
            .draw_series([PathElement::new(points.clone(), super::canvas::line(palette::arm(*arm), 2.0))])?;
    }
    Ok(())
}

/// `200 µs`: a round time without decimals.
fn short_time(ns: f64) -> String {
    let (value, unit) = match ns {
        n if n < 999.5 => (n, "ns"),
        n if n < 999_500.0 => (n / 1e3, "µs"),
        n if n < 999_500_000.0 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", (value * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_are_equally_far_apart() {
        assert!((nines(0.9) - 1.0).abs() < 1e-12 && (nines(0.999) - 3.0).abs() < 1e-9);
        assert_eq!(quantile_label(nines(0.5)), "50 %");
        assert_eq!(quantile_label(2.0), "99 %");
        assert_eq!(quantile_label(4.0), "99.99 %");
        assert_eq!(short_time(200_000.0), "200 µs");
    }
}
