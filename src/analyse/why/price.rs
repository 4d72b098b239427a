//! What watching costs: the time of an operation in watched trials beside that of their twins in the same rounds.
//!
//! Enters: the watched cells of both arms, and the cells of their twins. Leaves: of the two prices the one that is further from 0, as
//! ratio − 1.

use super::source::Source;

/// `None`: the twins have no time to compare with, in either arm.
pub(super) fn price(twins: &Source<'_>, watched: &Source<'_>) -> Option<f64> {
    let of_arm = |arm: usize| {
        let pair = Source { cells: [twins.cells[arm], watched.cells[arm]], ..*watched };
        let time = ["workers.wall", "runtime"].iter().find_map(|name| pair.time(name))?;
        (time.baseline_ns > 0.0).then(|| time.difference_ns.estimate / time.baseline_ns)
    };
    [0, 1].into_iter().filter_map(of_arm).max_by(|a, b| a.abs().total_cmp(&b.abs()))
}
