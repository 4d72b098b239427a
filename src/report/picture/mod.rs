//! Pictures as inline SVG in a few sentinel colours that the page's style sheet maps to the real ones, so that one picture serves light
//! and dark. All but flame graphs are drawn with plotters.
//!
//! Enters: comparisons, curves, series, stacks. Leaves: [`Picture`]s. It must not know the page around them.

mod axis;
mod canvas;
mod flame;
mod forest;
mod levels;
mod palette;
mod quantiles;
mod scaling;
mod series;
mod standalone;
mod trials;
mod waterfall;

pub(super) use flame::{FlameGraph, Flames};
pub(super) use forest::{Form, forest};
pub(super) use levels::levels;
pub(super) use palette::{arm_class, style_sheet};
pub(super) use quantiles::quantiles;
pub(super) use scaling::{ScalingArm, scaling};
pub(super) use series::{ArmSeries, series};
pub(super) use standalone::document;
pub use standalone::png;
pub(super) use trials::{Arm, trials};
pub(super) use waterfall::{Bar, waterfall};

/// A picture with the words that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    /// What it shows, a short heading.
    pub(super) title: String,
    /// How to read it, and what was left out.
    pub(super) caption: String,
    /// Arms drawn, by their index.
    pub(super) arms: Vec<usize>,
    /// The `<svg>` element.
    pub(super) svg: String,
    /// The same for a page as narrow as a phone.
    pub(super) narrow: Option<String>,
}

/// `row: what, unit`; row and unit may be empty.
fn title(row: &str, what: &str, unit: &str) -> String {
    let place = if row.is_empty() { String::new() } else { format!("{row}: ") };
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    format!("{place}{what}{unit}")
}
