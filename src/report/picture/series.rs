//! Values over the time within a trial: some trials of each arm thin, their mean bold.

use plotters::prelude::*;

use super::axis::{Axis, padded, round_ticks, tick_decimals, tick_text};
use super::canvas::{Area, Drawn, draw, line, mesh, px};
use super::palette;
use super::{Picture, title};
use crate::record::Series;
use crate::units::{Scale, Unit};

const WIDTH: f64 = 450.0;
const HEIGHT: f64 = 250.0;
/// Points of a line; longer series are averaged down to these.
const MOST_POINTS: usize = 120;

/// Shorter series show nothing that the trial's own value does not say.
const LEAST_POINTS: usize = 3;

/// A trial's points: seconds, value.
type Line = Vec<(f64, f64)>;

/// One arm's series: its index, label, and the trials to draw.
pub(in crate::report) struct ArmSeries<'a> {
    /// Index among the run's arms.
    pub(in crate::report) index: usize,
    /// As the reader knows it.
    pub(in crate::report) label: String,
    /// The trials' series, all of one name.
    pub(in crate::report) trials: Vec<&'a Series>,
}

/// The series of one row; `unit` is that of the metric of the same name.
pub(in crate::report) fn series(
    arms: &[ArmSeries<'_>],
    name: &str,
    unit: &Unit,
    row: &str,
) -> Option<Picture> {
    // All alike, however long each is: lines are averaged point by point.
    let most = arms.iter().flat_map(|arm| &arm.trials).map(|series| series.values.len()).max().unwrap_or(0);
    let chunk = most.div_ceil(MOST_POINTS).max(1);
    let of_arm =
        |arm: &ArmSeries<'_>| (arm.index, arm.trials.iter().map(|series| thinned(series, chunk)).collect());
    let lines: Vec<(usize, Vec<Line>)> = arms.iter().map(of_arm).collect();
    let values = || lines.iter().flat_map(|(_, trials)| trials.iter().flatten());
    let (low, high) = padded(values().map(|(_, y)| *y), 0.06)?;
    let end = values().map(|(x, _)| *x).fold(0.0, f64::max);
    let longest = lines.iter().flat_map(|(_, trials)| trials.iter().map(Vec::len)).max().unwrap_or(0);
    if end <= 0.0 || longest < LEAST_POINTS {
        return None;
    }
    let scale = Scale::for_column(unit, values().map(|(_, y)| *y));
    let title = title(row, name, &scale.symbol);
    let words: Vec<String> =
        arms.iter().map(|arm| format!("{}: {} trials", arm.label, arm.trials.len())).collect();
    let label = format!("Over the time within a trial: {title}. {}", words.join("; "));
    let svg =
        draw((WIDTH, HEIGHT), &title, &label, |area| paint(area, &lines, (low.max(0.0), high), end, &scale));
    let caption = "Over the seconds of a trial: each thin line a trial, bold their mean.".to_owned();
    Some(Picture { title, caption, arms: arms.iter().map(|arm| arm.index).collect(), svg, narrow: None })
}

/// (seconds, value) in the middle of each interval, so many neighbours averaged.
fn thinned(series: &Series, chunk: usize) -> Line {
    series
        .values
        .chunks(chunk)
        .enumerate()
        .map(|(at, values)| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            ((at * chunk) as f64 * series.interval_s + values.len() as f64 * series.interval_s / 2.0, mean)
        })
        .filter(|(_, value)| value.is_finite())
        .collect()
}

/// The mean of all lines at each place that at least half of them reach.
fn mean_line(trials: &[Line]) -> Line {
    let longest = trials.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .map_while(|at| {
            let here: Vec<(f64, f64)> = trials.iter().filter_map(|line| line.get(at).copied()).collect();
            let n = here.len() as f64;
            (here.len() * 2 >= trials.len()).then(|| {
                (here.iter().map(|p| p.0).sum::<f64>() / n, here.iter().map(|p| p.1).sum::<f64>() / n)
            })
        })
        .collect()
}

fn paint(
    area: &Area<'_>,
    lines: &[(usize, Vec<Line>)],
    (low, high): (f64, f64),
    end: f64,
    scale: &Scale,
) -> Drawn {
    let scaled: Vec<f64> = round_ticks(low / scale.divisor, high / scale.divisor, 5);
    let decimals = tick_decimals(&scaled);
    let heights: Vec<f64> = scaled.iter().map(|tick| tick * scale.divisor).collect();
    let times = round_ticks(0.0, end, 6);
    let time_decimals = tick_decimals(&times);
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(10.0))
        .margin_right(px(18.0))
        .x_label_area_size(px(34.0))
        .y_label_area_size(px(58.0))
        .build_cartesian_2d(
            Axis::linear(0.0..end * 1.02, times, |x| format!("{x:.time_decimals$} s")),
            Axis::linear(low..high, heights, |y| tick_text(y / scale.divisor, decimals)),
        )?;
    mesh(&mut chart, 11.5).disable_x_mesh().draw()?;
    for (arm, trials) in lines {
        let colour = palette::arm(*arm);
        let thin = ShapeStyle { color: colour.mix(0.28), filled: false, stroke_width: px(1.0) as u32 };
        chart.draw_series(trials.iter().map(|line| PathElement::new(line.clone(), thin)))?;
    }
    for (arm, trials) in lines {
        chart.draw_series([PathElement::new(mean_line(trials), line(palette::arm(*arm), 2.5))])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_of_unlike_length_are_averaged_at_the_same_seconds() {
        let one = MOST_POINTS - 1;
        let trials: Vec<Series> = [one, one + 2]
            .map(|length| Series {
                job: String::new(),
                name: "write.bw".to_owned(),
                interval_s: 1.0,
                values: (0..length).map(|at| at as f64).collect(),
            })
            .into();
        let chunk = (one + 2).div_ceil(MOST_POINTS);
        let lines: Vec<Line> = trials.iter().map(|series| thinned(series, chunk)).collect();
        let mean = mean_line(&lines);
        assert!(mean.is_sorted_by(|a, b| a.0 < b.0), "{mean:?}");
        let arm = ArmSeries { index: 0, label: "a".to_owned(), trials: trials.iter().collect() };
        assert!(series(&[arm], "write.bw", &Unit::BytesPerSecond, "").is_some());
    }
}
