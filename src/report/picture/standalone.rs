//! A picture as a file of its own: with its title and the arms' names above it, in light colours.
//!
//! Enters: a picture, the arms' labels. Leaves: an SVG document, and that as PNG. Where the files go is not known here.

use resvg::{tiny_skia, usvg};

use super::Picture;
use super::canvas::px;
use super::palette::{INK, PAPER, arm, hex, in_light};
use crate::report::html_text::escape;
use crate::report::layout::{shorten, told_apart};

/// Room around everything.
const MARGIN: f64 = 16.0;
/// Height of the line of the title, and of that of the arms.
const LINE: f64 = 26.0;
const SIZE: f64 = 14.0;
/// Width of most letters, of their size.
const LETTER: f64 = 0.6;
/// The dot of an arm with the room behind it, and the room behind its label.
const DOT: f64 = 16.0;
const GAP: f64 = 24.0;
/// Pixels of a PNG for one of the SVG.
const SHARPNESS: f32 = 2.0;
/// Fonts for a PNG, the first that is installed.
const FONTS: [&str; 6] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "FreeSans", "Arial", "Helvetica"];

/// The picture as an SVG document, `arms` being the label of every arm. What is wider than the picture is shortened.
pub(in crate::report) fn document(picture: &Picture, heading: &str, arms: &[String]) -> String {
    let view = picture.svg.split_once("viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
    let mut sides = view.map_or("", |(view, _)| view).split(' ').filter_map(|side| side.parse::<i32>().ok());
    let (width, height) = (sides.next().unwrap_or(0), sides.next().unwrap_or(0));
    let margin = px(MARGIN);
    let title = if picture.title.is_empty() { heading } else { &picture.title };
    let letters = |room: i32| (f64::from(room) / f64::from(px(SIZE * LETTER))).max(1.0) as usize;
    let mut top = margin + px(LINE);
    let mut body = text(margin, top - px(8.0), "font-weight=\"600\"", &shorten(title, letters(width)));
    let labels: Vec<&str> =
        picture.arms.iter().map(|arm| arms.get(*arm).map_or("", String::as_str)).collect();
    let mut x = margin + width;
    for (index, label) in picture.arms.iter().zip(told_apart(&labels, letters(width - px(DOT)))) {
        let takes = px(DOT + label.chars().count() as f64 * SIZE * LETTER);
        if x + takes > margin + width {
            (x, top) = (margin, top + px(LINE));
        }
        body.push_str(&format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>\n",
            x + px(5.0),
            top - px(13.0),
            px(5.0),
            hex(arm(*index))
        ));
        body.push_str(&text(x + px(DOT), top - px(8.0), "", &label));
        x += takes + px(GAP);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_label_is_wider_than_the_picture() {
        let svg = format!("<svg viewBox=\"0 0 {} {}\"></svg>", px(400.0), px(100.0));
        let (title, arms) = ("t".repeat(5000), vec![0, 1, 2]);
        let picture = Picture { title, caption: String::new(), arms, svg, narrow: None };
        let arms = ["/a/long/path/".repeat(300) + "one", "/a/long/path/".repeat(300) + "two", "c".to_owned()];
        let drawn = document(&picture, "heading", &arms);
        let widest = drawn.lines().filter_map(|line| line.strip_suffix("</text>")?.rsplit('>').next());
        let widest = widest.map(|words| words.chars().count()).max().unwrap();
        assert!((20..=48).contains(&widest), "{widest}");
        assert!(drawn.contains("one</text>") && drawn.contains("two</text>"), "{drawn}");
        let lines: std::collections::BTreeSet<&str> =
            drawn.lines().filter_map(|line| line.split_once("cy=\"")?.1.split('"').next()).collect();
        assert_eq!(lines.len(), 3, "{drawn}");
    }
}
