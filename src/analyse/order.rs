//! Which cell ran before each trial.
//!
//! Enters: the trials of a run. Leaves: the cell before each of them, and before each round. It must not know arms or metrics.

use std::collections::HashMap;

use crate::record::Trial;

/// The order of the trials of a paired run.
#[derive(Debug)]
pub(super) struct Order {
    before: HashMap<(u32, u32), u32>,
    last: HashMap<u32, u32>,
}

impl Order {
    /// Of the attempts that count, in any order.
    pub(super) fn of(trials: &[&Trial]) -> Order {
        let mut places: Vec<(u32, u32, u32)> =
            trials.iter().map(|trial| (trial.round, trial.position, trial.cell)).collect();
        places.sort_unstable();
        let (mut before, mut last) = (HashMap::new(), HashMap::new());
        for pair in places.windows(2) {
            let ((earlier, _, cell), (round, position, _)) = (pair[0], pair[1]);
            before.insert((round, position), cell);
            if earlier < round {
                last.insert(round, cell);
            }
        }
        Order { before, last }
    }

    /// The cell that ran before the trial at this place.
    pub(super) fn before(&self, round: u32, position: u32) -> Option<u32> {
        self.before.get(&(round, position)).copied()
    }

    /// The cell that ran last before this round.
    pub(super) fn before_round(&self, round: u32) -> Option<u32> {
        self.last.get(&round).copied()
    }
}
