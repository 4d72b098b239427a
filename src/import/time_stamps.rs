//! Time stamps of tables, and sessions told from the gaps between them.
//!
//! Enters: names and fields of columns, or the times of trials. Leaves: nanoseconds since the Unix epoch, or the session of each
//! trial. It must not know arms or rows.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Columns of these names hold the start of a trial when all their fields are times.
const NAMES: [&str; 17] = [
    "timestamp", "time_stamp", "ts", "started", "start", "start_time", "started_at", "starttime", "datetime",
    "date_time", "date", "time", "when", "epoch", "unix_time", "started_unix_s", "started_unix_ns",
];

/// Whether a column of this name may hold time stamps.
pub(super) fn may_be(column: &str) -> bool {
    NAMES.contains(&column.trim().to_ascii_lowercase().replace(['-', ' '], "_").as_str())
}

/// The start of a trial in a column of this name. A number called `time` is rather how long something took.
pub(super) fn start(column: &str, field: &str) -> Option<u64> {
    let is_number = field.parse::<f64>().is_ok();
    if is_number && column.trim().eq_ignore_ascii_case("time") { None } else { parse(field) }
}

/// A time with its clock: seconds, milliseconds, microseconds or nanoseconds since the Unix epoch by their size (from September 2001
/// on), or as ISO 8601 and RFC 3339 write it, in UTC where it names no zone. A date alone is no time.
fn parse(field: &str) -> Option<u64> {
    if let Ok(number) = field.parse::<f64>() {
        let per_unit = match number {
            n if n < 1e9 => return None,
            n if n < 1e11 => 1e9,
            n if n < 1e14 => 1e6,
            n if n < 1e17 => 1e3,
            n if n < 1.8e19 => 1.0,
            _ => return None,
        };
        // A whole number of nanoseconds is more than an f64 holds.
        return if per_unit == 1.0 { field.parse().ok() } else { Some((number * per_unit) as u64) };
    }
    if !field.contains(':') {
        return None;
    }
    let zoned = field.parse::<Timestamp>().ok();
    let plain = || field.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
    u64::try_from(zoned.or_else(plain)?.as_nanosecond()).ok()
}

/// A gap is this many times as long as the middle step between trials …
const FACTOR: f64 = 3.0;
/// … this many times as long as the longest that is no gap …
const BREAK: f64 = 2.0;
/// … and no shorter than this, in seconds.
const SHORTEST_S: f64 = 10.0;
/// Fewer sessions are chance.
const FEWEST: u32 = 3;

/// Trials by session.
#[derive(Debug, PartialEq)]
pub(super) struct Sessions {
    /// The session of each trial, from 0 in the order of time.
    pub(super) of: Vec<u32>,
    /// How many there are.
    pub(super) count: u32,
    /// The shortest gap between two, in seconds.
    pub(super) gap_s: f64,
}

/// Sessions told from (start in ns, seconds it took). `None` where a time is unknown, where no gap stands out, or where a
/// session would have one trial.
pub(super) fn sessions(times: &[(u64, f64)]) -> Option<Sessions> {
    if times.len() < 2 * FEWEST as usize || times.iter().any(|(start, _)| *start == 0) {
        return None;
    }
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|at| times[*at].0);
    let pause = |pair: &[usize]| {
        let ((start, took), (next, _)) = (times[pair[0]], times[pair[1]]);
        let took = if took.is_finite() { took.max(0.0) } else { 0.0 };
        ((next - start) as f64 / 1e9 - took).max(0.0)
    };
    let pauses: Vec<f64> = order.windows(2).map(pause).collect();
    // Values of one moment (two arms in a line of a table) are no steps.
    let apart = order.windows(2).zip(&pauses).filter(|(pair, _)| times[pair[0]].0 != times[pair[1]].0);
    let gap_s = shortest_gap(apart.map(|(_, pause)| *pause).collect())?;
    let mut of = vec![0; times.len()];
    let (mut session, mut size) = (0, 1);
    for (pair, pause) in order.windows(2).zip(&pauses) {
        if *pause >= gap_s {
            if size < 2 {
                return None;
            }
            (session, size) = (session + 1, 0);
        }
        size += 1;
        of[pair[1]] = session;
    }
    (session + 1 >= FEWEST && size >= 2).then_some(Sessions { of, count: session + 1, gap_s })
}

/// The shortest of the steps that stand out: above the widest break between two successive ones.
fn shortest_gap(mut steps: Vec<f64>) -> Option<f64> {
    steps.sort_by(f64::total_cmp);
    let least = (FACTOR * *steps.get(steps.len() / 2)?).max(SHORTEST_S);
    let ratio = |pair: &[f64]| pair[1] / pair[0].max(1.0);
    let breaks = steps.windows(2).filter(|pair| pair[1] >= least && ratio(pair) >= BREAK);
    breaks.max_by(|a, b| ratio(a).total_cmp(&ratio(b))).map(|pair| pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_by_their_size_or_as_iso_8601() {
        let second = 1_700_000_000_000_000_000;
        for field in [
            "1700000000", "1700000000.0", "1700000000000", "1700000000000000", "1700000000000000000",
            "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "2023-11-14 22:13:20",
            "2023-11-14T22:13:20",
        ] {
            assert_eq!(parse(field), Some(second), "{field}");
        }
        for field in ["", "12.5", "2023-11-14", "10:30", "x:y", "nan", "-1700000000", "1e300"] {
            assert_eq!(parse(field), None, "{field}");
        }
        assert_eq!(start("time", "1700000000"), None);
        assert_eq!(start("time", "2023-11-14 22:13:20"), Some(second));
        assert!(may_be("Start Time") && may_be("timestamp") && !may_be("runtime"));
    }

    fn at(starts: &[u64], took_s: f64) -> Option<Sessions> {
        sessions(
            &starts
                .iter()
                .map(|s| (1_700_000_000_000_000_000 + s * 1_000_000_000, took_s))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn gaps_that_stand_out_end_a_session() {
        let found = at(&[0, 20, 41, 300, 322, 340, 700, 720, 741], 0.0).unwrap();
        assert_eq!((found.of, found.count), (vec![0, 0, 0, 1, 1, 1, 2, 2, 2], 3));
        assert_eq!(found.gap_s, 259.0);
        // Trials of 100 s with a pause of 5 s, and 60 s for a boot.
        let found = at(&[0, 105, 210, 370, 475, 580, 740, 845, 950], 100.0).unwrap();
        assert_eq!(found.count, 3);
        // The order of the file does not matter.
        let found = at(&[700, 0, 20, 300, 720, 322], 0.0).unwrap();
        assert_eq!(found.of, [2, 0, 0, 1, 2, 1]);
    }

    #[test]
    fn no_gap_a_single_one_or_a_lone_trial_make_no_sessions() {
        assert!(at(&[0, 20, 40, 60, 80, 100, 120], 0.0).is_none());
        assert!(at(&[0, 20, 40, 500, 520, 540], 0.0).is_none(), "two halves");
        assert!(at(&[0, 20, 40, 500, 1_000, 1_020, 1_040], 0.0).is_none(), "one alone");
        assert!(at(&[0, 5, 13, 22, 45, 60, 99, 120], 0.0).is_none(), "irregular");
        assert!(sessions(&[(0, 0.0); 10]).is_none() && sessions(&[]).is_none());
    }
}
