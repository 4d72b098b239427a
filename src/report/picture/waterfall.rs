//! A sum as bars: from the baseline's time over the part of each cause to the candidate's.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::{padded, round_ticks, tick_decimals, tick_text};
use super::canvas::{Area, Drawn, anchored, draw, fitting, line, px};
use super::palette::{self, AXIS, GRID, INK, MUTED, TONES};
use super::{Form, Picture};
use crate::report::layout::shorten;
use crate::report::verdict_words::Tone;
use crate::units::Scale;

const TOP: f64 = 8.0;
const BOTTOM: f64 = 30.0;
const SIZE: f64 = 13.0;
/// Height of a bar.
const BAR: f64 = 12.0;
/// A change too small to be seen is drawn this wide.
const LEAST_WIDTH: f64 = 1.5;
/// A label of the axis that is nearer to an end of the picture stands beside its tick.
const BESIDE: f64 = 34.0;

/// One part of the sum.
pub(in crate::report) struct Bar {
    /// What it is.
    pub(in crate::report) label: String,
    /// What it adds, in ns.
    pub(in crate::report) ns: f64,
    /// The same in words.
    pub(in crate::report) value: String,
    /// Its colour.
    pub(in crate::report) tone: Tone,
}

/// The bars between two ends, which are arms with their times in words, on an axis in the unit of all of them; `None` where there is nothing to draw.
pub(in crate::report) fn waterfall(
    baseline_ns: f64,
    bars: &[Bar],
    ends: &[(String, String); 2],
    arms: [usize; 2],
    title: &str,
    form: Form,
    scale: &Scale,
) -> Option<Picture> {
    let sum = baseline_ns + bars.iter().map(|bar| bar.ns).sum::<f64>();
    if !sum.is_finite() {
        return None;
    }
    let mut rows = vec![Row::of_arm(&ends[0], arms[0], baseline_ns)];
    let mut reached = baseline_ns;
    for bar in bars {
        let colour = TONES[bar.tone as usize];
        rows.push(Row { label: &bar.label, value: &bar.value, from: reached, to: reached + bar.ns, colour });
        reached += bar.ns;
    }
    rows.push(Row::of_arm(&ends[1], arms[1], sum));
    let frame = Frame::around(&rows, form, scale.clone())?;
    let words: Vec<String> = rows.iter().map(|row| format!("{} {}", row.label, row.value)).collect();
    let height = TOP + frame.row() * rows.len() as f64 + BOTTOM;
    let svg = draw((frame.width(), height), title, &format!("{title}: {}", words.join("; ")), |area| {
        frame.paint_axis(area, height)?;
        for (at, row) in rows.iter().enumerate() {
            let next = rows.get(at + 1).map(|_| row.to);
            frame.paint_row(area, TOP + frame.row() * at as f64, row, next)?;
        }
        Ok(())
    });
    let caption = format!(
        "From the baseline's time to the candidate's, in {}: what each cause adds or takes, then what is too small or unclear to name, \
         and what is unexplained. The last bar is the baseline's time and the difference.",
        frame.scale.symbol
    );
    Some(Picture { title: title.to_owned(), caption, arms: Vec::new(), svg, narrow: None })
}

/// One line of the picture.
struct Row<'a> {
    label: &'a str,
    value: &'a str,
    from: f64,
    to: f64,
    colour: RGBColor,
}

impl<'a> Row<'a> {
    fn of_arm((label, value): &'a (String, String), arm: usize, ns: f64) -> Row<'a> {
        Row { label, value, from: 0.0, to: ns, colour: palette::arm(arm) }
    }
}

/// Where times go.
struct Frame {
    form: Form,
    low: f64,
    high: f64,
    scale: Scale,
}

impl Frame {
    fn around(rows: &[Row<'_>], form: Form, scale: Scale) -> Option<Frame> {
        let ends = rows.iter().flat_map(|row| [row.from, row.to]);
        let (low, high) = padded(ends, 0.0)?;
        Some(Frame { form, low: low.min(0.0), high, scale })
    }

    fn width(&self) -> f64 {
        match self.form {
            Form::Wide => 920.0,
            Form::Narrow => 350.0,
        }
    }

    /// Height of a row.
    fn row(&self) -> f64 {
        match self.form {
            Form::Wide => 24.0,
            Form::Narrow => 38.0,
        }
    }

    /// Where bars may be.
    fn sides(&self) -> (f64, f64) {
        match self.form {
            Form::Wide => (310.0, self.width() - 110.0),
            Form::Narrow => (4.0, self.width() - 4.0),
        }
    }

    fn x(&self, ns: f64) -> f64 {
        let (left, right) = self.sides();
        left + (ns - self.low) / (self.high - self.low) * (right - left)
    }

    fn paint_axis(&self, area: &Area<'_>, height: f64) -> Drawn {
        let (top, bottom) = (px(TOP), px(height - BOTTOM));
        let scaled = round_ticks(self.low / self.scale.divisor, self.high / self.scale.divisor, 5);
        let decimals = tick_decimals(&scaled);
        for tick in scaled {
            let at = self.x(tick * self.scale.divisor);
            // Lines would cross the words above the bars.
            let from = if self.form == Form::Wide { top } else { bottom - px(4.0) };
            let style = if tick == 0.0 { line(AXIS, 1.5) } else { line(GRID, 1.0) };
            area.draw(&PathElement::new([(px(at), from), (px(at), bottom)], style))?;
            let side = match at {
                at if at < BESIDE => HPos::Left,
                at if at > self.width() - BESIDE => HPos::Right,
                _ => HPos::Center,
            };
            let place = (px(at), bottom + px(14.0));
            let words = format!("{} {}", tick_text(tick, decimals), self.scale.symbol);
            area.draw(&Text::new(words, place, anchored(12.0, MUTED, side)))?;
        }
        Ok(())
    }

    /// A bar with its words, and where there is room for it a line down to the next row from where it ends.
    fn paint_row(&self, area: &Area<'_>, top: f64, row: &Row<'_>, next: Option<f64>) -> Drawn {
        let (words, middle, room) = match self.form {
            Form::Wide => (top + self.row() / 2.0, top + self.row() / 2.0, self.sides().0 - 12.0),
            Form::Narrow => (top + 10.0, top + 26.0, self.width() - 90.0),
        };
        let label = shorten(row.label, fitting(room, SIZE).max(8));
        area.draw(&Text::new(label, (0, px(words)), anchored(SIZE, INK, HPos::Left)))?;
        let value = anchored(SIZE, INK, HPos::Right);
        area.draw(&Text::new(row.value.to_owned(), (px(self.width()), px(words)), value))?;
        let (from, to) = (self.x(row.from.min(row.to)), self.x(row.from.max(row.to)));
        let to = to.max(from + LEAST_WIDTH);
        let corners = [(px(from), px(middle - BAR / 2.0)), (px(to), px(middle + BAR / 2.0))];
        area.draw(&Rectangle::new(corners, row.colour.filled()))?;
        if let Some(next) = next.filter(|_| self.form == Form::Wide) {
            let at = px(self.x(next));
            let ends = [(at, px(middle + BAR / 2.0)), (at, px(middle + self.row() - BAR / 2.0))];
            area.draw(&PathElement::new(ends, line(MUTED, 1.0)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, ns: f64, tone: Tone) -> Bar {
        Bar { label: label.to_owned(), ns, value: format!("{ns:+}"), tone }
    }

    fn microseconds() -> Scale {
        Scale::for_column(&crate::units::Unit::Nanoseconds, [10_000.0])
    }

    #[test]
    fn bars_lead_from_the_baseline_to_the_candidate() {
        let bars = [
            bar("waits", 8000.0, Tone::Worse),
            bar("kernel CPU", -1000.0, Tone::Better),
            bar("unexplained", 0.0, Tone::Unclear),
        ];
        let ends = [("a".to_owned(), "10 µs".to_owned()), ("b".to_owned(), "17 µs".to_owned())];
        for form in [Form::Wide, Form::Narrow] {
            let scale = microseconds();
            let picture = waterfall(10_000.0, &bars, &ends, [0, 1], "time", form, &scale).unwrap();
            assert!(picture.svg.contains("15 µs") || picture.svg.contains("10 µs\n"), "{}", picture.svg);
            assert_eq!(picture.svg.matches("<rect").count(), 5, "{}", picture.svg);
            assert!(picture.svg.contains("waits +8000; kernel CPU -1000; unexplained +0; b 17 µs"));
        }
    }

    #[test]
    fn times_that_are_no_numbers_are_not_drawn() {
        let ends = [("a".to_owned(), String::new()), ("b".to_owned(), String::new())];
        assert!(waterfall(f64::NAN, &[], &ends, [0, 1], "time", Form::Wide, &microseconds()).is_none());
    }
}
