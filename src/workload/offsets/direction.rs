//! Which direction the next I/O has.
//!
//! Enters: a mix and a seed. Leaves: a direction a draw. It must not know offsets.

use super::SplitMix;
use crate::workload::Mix;

/// fio's `ddir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataDirection {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
}

/// Which direction the next I/O has.
#[derive(Clone, Debug)]
pub struct DirectionChoice {
    mix: Mix,
    random: SplitMix,
}

impl DirectionChoice {
    /// For a job's mix.
    #[must_use]
    pub fn new(mix: Mix, seed: u64) -> DirectionChoice {
        DirectionChoice { mix, random: SplitMix::new(seed) }
    }

    /// A draw for each I/O of a mixed job, as in fio: shares are met on average.
    #[inline]
    pub fn draw(&mut self) -> DataDirection {
        match self.mix {
            Mix::Read => DataDirection::Read,
            Mix::Write => DataDirection::Write,
            Mix::Trim => DataDirection::Trim,
            Mix::ReadWrite { read_percent } if self.random.below(100) < u64::from(read_percent) => {
                DataDirection::Read
            }
            Mix::ReadWrite { .. } => DataDirection::Write,
        }
    }
}
