//! Moments as this machine's clock shows them.
//!
//! Enters: nanoseconds since the Unix epoch. Leaves: a date and a time of day, or nothing where the moment is unknown.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `2026-11-24 21:41`.
pub(super) fn minute(unix_ns: u64) -> Option<String> {
    shown(unix_ns, "%Y-%m-%d %H:%M")
}

/// `2026-11-24 21:41:07 +01:00`.
pub(super) fn second(unix_ns: u64) -> Option<String> {
    shown(unix_ns, "%Y-%m-%d %H:%M:%S %:z")
}

fn shown(unix_ns: u64, format: &str) -> Option<String> {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).ok().filter(|_| unix_ns > 0)?;
    Some(time.to_zoned(TimeZone::system()).strftime(format).to_string())
}
