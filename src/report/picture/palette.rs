//! Sentinel colours of the drawings, and the style sheet that gives each its colour in light and dark.

use plotters::style::RGBColor;

/// Text and marks.
pub(super) const INK: RGBColor = RGBColor(1, 1, 1);
/// Labels of axes.
pub(super) const MUTED: RGBColor = RGBColor(1, 1, 2);
/// Lines of the grid.
pub(super) const GRID: RGBColor = RGBColor(1, 1, 3);
/// The zero line and axes.
pub(super) const AXIS: RGBColor = RGBColor(1, 1, 4);
/// The band ±δ.
pub(super) const BAND: RGBColor = RGBColor(1, 1, 5);
/// The page behind.
pub(super) const PAPER: RGBColor = RGBColor(1, 1, 6);
/// Better, worse, same, unclear: in the order of [`super::super::verdict_words::Tone`].
pub(super) const TONES: [RGBColor; 4] =
    [RGBColor(1, 2, 0), RGBColor(1, 2, 1), RGBColor(1, 2, 2), RGBColor(1, 2, 3)];

/// The page's names of the tones.
const TONE_NAMES: [&str; 4] = ["better", "worse", "same", "unclear"];
/// The page's names of the others.
const NAMED: [(RGBColor, &str); 6] =
    [(INK, "ink"), (MUTED, "muted"), (GRID, "grid"), (AXIS, "axis"), (BAND, "band"), (PAPER, "paper")];

/// Colours of arms; further arms begin again at the first candidate's.
const ARMS: usize = 10;

/// A colour as SVG writes it.
pub(super) fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// The colour of an arm, the baseline being 0.
pub(super) fn arm(index: usize) -> RGBColor {
    RGBColor(1, 3, slot(index) as u8)
}

fn slot(index: usize) -> usize {
    if index < ARMS { index } else { 1 + (index - 1) % (ARMS - 1) }
}

/// The class that gives an element of the page the colour of an arm.
pub(in crate::report) fn arm_class(index: usize) -> String {
    format!("arm{}", slot(index))
}

/// Rules that map every sentinel to a custom property of the page.
pub(in crate::report) fn style_sheet() -> String {
    let mut rules = String::new();
    let mut rule = |colour: RGBColor, property: &str| {
        let hex = hex(colour);
        rules.push_str(&format!(
            "svg [fill=\"{hex}\"]{{fill:var(--{property})}}svg [stroke=\"{hex}\"]{{stroke:var(--{property})}}\n"
        ));
    };
    for (colour, property) in NAMED {
        rule(colour, property);
    }
    for (colour, property) in TONES.into_iter().zip(TONE_NAMES) {
        rule(colour, property);
    }
    for index in 0..ARMS {
        rule(arm(index), &arm_class(index));
    }
    rules
}

/// A drawing in the page's light colours, for files that have no style sheet.
pub(super) fn in_light(svg: &str) -> String {
    let mut coloured = svg.to_owned();
    let mut give = |colour: RGBColor, property: &str| {
        let hex = hex(colour);
        coloured = coloured.replace(&hex, light(property));
    };
    for (colour, property) in NAMED {
        give(colour, property);
    }
    for (colour, property) in TONES.into_iter().zip(TONE_NAMES) {
        give(colour, property);
    }
    for index in 0..ARMS {
        give(arm(index), &arm_class(index));
    }
    coloured
}

/// The first value that the page gives a custom property: that of light pages.
fn light(property: &str) -> &'static str {
    let page = include_str!("../html/page.css");
    let value = page.split_once(&format!("--{property}: ")).map(|(_, rest)| rest);
    value.and_then(|rest| rest.split(';').next()).unwrap_or("#000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_colours_of_the_light_page() {
        assert_eq!((light("ink"), light("better"), light("arm0")), ("#1c1f24", "#12704a", "#6a7282"));
        let all = TONE_NAMES.into_iter().chain(NAMED.map(|(_, name)| name));
        assert!(all.chain(["arm6", "arm9"]).all(|name| light(name) != "#000000"));
        assert_eq!(
            in_light("<a fill=\"#010101\" stroke=\"#010300\"/>"),
            "<a fill=\"#1c1f24\" stroke=\"#6a7282\"/>"
        );
    }

    #[test]
    fn every_arm_has_a_colour_and_only_the_baseline_its_own() {
        assert_eq!(arm_class(0), "arm0");
        assert_eq!(arm_class(9), "arm9");
        assert_eq!(arm_class(10), "arm1");
        assert!((1..100).all(|index| arm_class(index) != "arm0"));
        assert!(style_sheet().contains("svg [fill=\"#010300\"]{fill:var(--arm0)}"));
    }
}
