//! A picture as a file of its own: with its title and the arms' names above it, in light colours.
//!
//! Enters: a picture, the arms' labels. Leaves: an SVG document, and that as PNG. Where the files go is not known here.

use resvg::{tiny_skia, usvg};

use super::Picture;
use super::canvas::px;
use super::palette::{INK, PAPER, arm, in_light};
use crate::report::html_text::escape;

/// Room around everything.
const MARGIN: f64 = 16.0;
/// Height of the line of the title, and of that of the arms.
const LINE: f64 = 26.0;
const SIZE: f64 = 14.0;
/// Pixels of a PNG for one of the SVG.
const SHARPNESS: f32 = 2.0;
/// Fonts for a PNG, the first that is installed.
const FONTS: [&str; 6] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "FreeSans", "Arial", "Helvetica"];

/// The picture as an SVG document, `arms` being the label of every arm.
pub(in crate::report) fn document(picture: &Picture, heading: &str, arms: &[String]) -> String {
    let view = picture.svg.split_once("viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
    let mut sides = view.map_or("", |(view, _)| view).split(' ').filter_map(|side| side.parse::<i32>().ok());
    let (width, height) = (sides.next().unwrap_or(0), sides.next().unwrap_or(0));
    let margin = px(MARGIN);
    let title = if picture.title.is_empty() { heading } else { &picture.title };
    let mut top = margin + px(LINE);
    let mut body = text(margin, top - px(8.0), "font-weight=\"600\"", title);
    if !picture.arms.is_empty() {
        let mut x = margin;
        top += px(LINE);
        for index in &picture.arms {
            let label = arms.get(*index).map_or("", String::as_str);
            let colour = hex(arm(*index));
            body.push_str(&format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{colour}\"/>\n",
                x + px(5.0),
                top - px(13.0),
                px(5.0)
            ));
            body.push_str(&text(x + px(16.0), top - px(8.0), "", label));
            x += px(16.0 + 24.0 + label.chars().count() as f64 * SIZE * 0.6);
        }
    }
    let drawn = picture.svg.split_once('>').map_or("", |(_, drawn)| drawn);
    let drawn = drawn.trim_end().strip_suffix("</svg>").unwrap_or(drawn);
    let (all_width, all_height) = (width + 2 * margin, top + height + margin);
    in_light(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all_width} {all_height}\" width=\"{}\" height=\"{}\" \
         font-family=\"sans-serif\">\n<!-- made by assay -->\n<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n{body}\
         <g transform=\"translate({margin} {top})\">{drawn}</g>\n</svg>\n",
        all_width / px(1.0),
        all_height / px(1.0),
        hex(PAPER)
    ))
}

fn text(x: i32, y: i32, more: &str, words: &str) -> String {
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\" {more}>{}</text>\n",
        px(SIZE),
        hex(INK),
        escape(words)
    )
}

fn hex(colour: plotters::style::RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// An SVG document as PNG.
///
/// # Errors
/// Why it cannot be drawn: no font is installed, or there is no memory for it.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let has = |name: &&str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
    let any = fonts.faces().find_map(|face| face.families.first()).map(|(family, _)| family.clone());
    let family = FONTS.iter().find(|name| has(name)).map(|name| (*name).to_owned()).or(any);
    let family = family.ok_or("no font is installed; apt-get install fonts-dejavu-core")?;
    fonts.set_sans_serif_family(family);
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(SHARPNESS).ok_or("it has no size")?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("it has no size")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SHARPNESS, SHARPNESS), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
