//! `--metric` of every command that has it.

use super::failure::Failure;
use crate::catalog::MetricPattern;

/// Reads them.
///
/// # Errors
/// A [`Failure`] with exit code 2: one is wrong.
pub(super) fn metric_patterns(written: &[String]) -> Result<Vec<MetricPattern>, Failure> {
    let all = written.iter().map(|text| MetricPattern::parse(text)).collect::<Result<Vec<_>, _>>();
    all.map_err(|message| {
        Failure::request(message).hint("--metric 'tps=tps = ([0-9.]+):/s:higher', the group being the value")
    })
}
