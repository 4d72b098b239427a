//! How a session behaves, whatever it runs: how much it says, how long it waits, and in which store it keeps what it measures.

use std::path::Path;
use std::time::Duration;

use crate::analyse::Beyond;
use crate::cli::Failure;
use crate::units::parse_duration_s;

/// Nobody waits longer than a day.
const LONGEST_S: f64 = 86_400.0;

/// How a session behaves, whatever it runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Conduct<'c> {
    /// Nothing but failures is said.
    pub(in crate::cli) quiet: bool,
    /// What makes the machine busy was told a moment ago, of the run that is watched now.
    pub(in crate::cli) busy_told: bool,
    /// How long a quiet machine may be waited for.
    pub(in crate::cli) patience: Duration,
    /// What `--fail-if` must know before a run may end.
    pub(in crate::cli) beyond_delta: Beyond,
    /// The file of the store.
    pub(in crate::cli) db: &'c Path,
}

impl Conduct<'_> {
    /// ` --db FILE` for messages, unless it is the default.
    pub(in crate::cli) fn database_flag(&self) -> String {
        database_flag(self.db)
    }
}

/// ` --db FILE` for messages, unless it is the default.
pub(in crate::cli) fn database_flag(db: &Path) -> String {
    if db == Path::new("assay.db") { String::new() } else { format!(" --db {}", db.display()) }
}

/// How long a quiet machine may be waited for.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such time.
pub(super) fn patience(wait_idle: Option<&str>) -> Result<Duration, Failure> {
    let Some(text) = wait_idle else { return Ok(Duration::ZERO) };
    let wrong = |message: String| Failure::request(format!("--wait-idle: {message}")).hint("write e.g. 10m");
    match parse_duration_s(text, 1.0).map_err(wrong)? {
        seconds if (0.0..=LONGEST_S).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(wrong("a time of over a day".to_owned())),
    }
}
