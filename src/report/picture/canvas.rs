//! A drawing in CSS pixels. Plotters places everything at whole units, so a unit is half a pixel here.

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::{self, MUTED};
use crate::report::html_text::escape;

/// Units a CSS pixel.
const UNITS: f64 = 2.0;
/// Plotters divides a font's size by this before it writes it.
const FONT: f64 = 1.24;

/// What plotters draws on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What goes wrong in drawing: nothing that a user can cause.
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// CSS pixels in units.
pub(super) fn px(pixels: f64) -> i32 {
    (pixels * UNITS).round() as i32
}

/// A font of this many CSS pixels in a colour.
pub(super) fn font(pixels: f64, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", pixels * UNITS * FONT).into_font().color(&colour)
}

/// A font anchored at its left, centre or right, vertically centred.
pub(super) fn anchored(pixels: f64, colour: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    font(pixels, colour).pos(Pos::new(horizontal, VPos::Center))
}

/// Width of a letter of an ordinary sans-serif, as a share of its size.
const LETTER: f64 = 0.56;

/// Columns of text that fit into this many CSS pixels at a font size.
pub(super) fn fitting(pixels: f64, size: f64) -> usize {
    (pixels / (size * LETTER)) as usize
}

/// CSS pixels that a text takes at a font size, about.
pub(super) fn words_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// A line of this many CSS pixels.
pub(super) fn line(colour: RGBColor, pixels: f64) -> ShapeStyle {
    ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width: px(pixels).max(1) as u32 }
}

/// Draws an SVG element of `width` × `height` CSS pixels that `label` describes to those who cannot see it.
pub(super) fn draw(
    (width, height): (f64, f64),
    title: &str,
    label: &str,
    paint: impl FnOnce(&Area<'_>) -> Drawn,
) -> String {
    let mut svg = String::new();
    let outcome = {
        let area =
            SVGBackend::with_string(&mut svg, (px(width) as u32, px(height) as u32)).into_drawing_area();
        paint(&area).and_then(|()| area.present().map_err(Into::into))
    };
    if let Err(error) = outcome {
        return format!("<p>this picture could not be drawn: {}</p>", escape(&error.to_string()));
    }
    let body = svg.split_once('>').map_or("", |(_, body)| body.trim_start());
    format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" width=\"{width}\" height=\"{height}\">\n\
         <title>{}</title>\n{body}",
        escape(label),
        px(width),
        px(height),
        escape(title)
    )
    .replace(" opacity=\"1\"", "")
    .replace(" font-family=\"sans-serif\"", "")
}

/// The lines behind a chart, and the numbers beside it in this size; whoever draws it can still leave out parts.
pub(super) fn mesh<'a, 'b, X, Y, XT, YT, Backend>(
    chart: &'b mut ChartContext<'a, Backend, Cartesian2d<X, Y>>,
    letters: f64,
) -> MeshStyle<'a, 'b, X, Y, Backend>
where
    Backend: DrawingBackend + 'a,
    X: Ranged<ValueType = XT> + ValueFormatter<XT>,
    Y: Ranged<ValueType = YT> + ValueFormatter<YT>,
{
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(line(palette::GRID, 1.0))
        .light_line_style(TRANSPARENT)
        .axis_style(TRANSPARENT)
        .set_all_tick_mark_size(px(3.0))
        .x_label_style(font(letters, MUTED))
        .y_label_style(anchored(letters, MUTED, HPos::Right));
    mesh
}
