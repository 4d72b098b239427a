//! Units of measure: what a number means, how it is read ("4k", "10s", "2%") and how it is printed.
//!
//! Enters: text a person wrote, or a raw number in a base unit. Leaves: a base-unit number, or text with
//! one scale for a whole column. A leaf: it must not know metrics, jobs or reports.

mod bytes;
mod count;
mod duration;
mod ratio;
mod scale;
mod unit;

pub use bytes::{ParseSizeError, parse_bytes};
pub use count::counted;
pub use duration::{parse_duration_s, pretty_duration};
pub use ratio::parse_ratio;
pub use scale::{Scale, format_number};
pub use unit::{Better, Unit};
