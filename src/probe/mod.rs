//! What this machine can do at most: copies, locks, calls into the kernel, and the device under a directory.
//!
//! Enters: which groups to measure, where, and for how long. Leaves: for each probe one value a round, in a base unit, and for whatever
//! could not be measured here the reason. It must not know runs, the store or verdicts: what a ceiling means for a trial is `analyse`'s.
//!
//! The probes take turns: a round measures each of them once for a slice of time, so that what disturbs the machine for a while falls on
//! all alike. Everything runs outside the kernel: the locks are stand-ins for the kernel's own, made of the same instructions.

mod calls;
mod copies;
mod copy_ways;
mod crowd;
mod device;
mod locks;
mod memory;
mod random;
mod rounds;
mod timed;

use std::path::PathBuf;
use std::time::Duration;

use crate::units::Unit;

pub use rounds::{Progress, measure};

named! {
    /// What is measured together.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Group {
        /// Bytes copied in memory.
        Copies = "copies",
        /// Grabs of locks.
        Locks = "locks",
        /// A system call, a context switch, a page fault, a wake-up.
        Calls = "calls",
        /// The device and filesystem under the directory.
        Device = "device",
    }
}

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The groups.
    pub groups: Vec<Group>,
    /// Where the device's file is made; it has no name and is gone with this process.
    pub directory: PathBuf,
    /// Why files there cannot be read and written past the page cache; `None`: they can.
    pub no_direct: Option<String>,
    /// Rounds.
    pub rounds: u32,
    /// What all rounds together should take.
    pub time: Duration,
    /// When no further round begins, whatever was planned.
    pub longest: Duration,
}

/// One figure of this machine, measured again and again.
struct Probe {
    /// The group that it belongs to.
    group: Group,
    /// Its name within the group.
    name: String,
    /// The base unit of its values.
    unit: Unit,
    /// Measures for about so long, at least once. An error is what the kernel refused; the probe is left out then.
    sample: Box<dyn FnMut(Duration) -> std::io::Result<f64>>,
}

impl Probe {
    fn new(
        group: Group,
        name: impl Into<String>,
        unit: Unit,
        sample: impl FnMut(Duration) -> std::io::Result<f64> + 'static,
    ) -> Probe {
        Probe { group, name: name.into(), unit, sample: Box::new(sample) }
    }
}

/// The values of one probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The group.
    pub group: Group,
    /// Its name within the group.
    pub name: String,
    /// Base unit of the values.
    pub unit: Unit,
    /// One a round; all finite and above 0.
    pub values: Vec<f64>,
}

/// Something that could not be measured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// In the order of reports; each has as many values.
    pub measured: Vec<Measured>,
    /// What could not be measured.
    pub left_out: Vec<LeftOut>,
    /// Rounds that were measured to their end.
    pub rounds: u32,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No file can be made in the directory.
    #[error("cannot make a file in {directory}: {source}")]
    Place {
        /// The directory.
        directory: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
}

/// How many threads measure at once: 1, powers of two, and `most`; at most six of these.
fn thread_counts(most: usize) -> Vec<usize> {
    /// More levels take time and tell nothing more.
    const MOST_LEVELS: usize = 6;
    let most = most.max(1);
    let mut factor = 2;
    loop {
        let powers = std::iter::successors(Some(1_usize), |count| Some(count * factor));
        let mut counts: Vec<usize> = powers.take_while(|count| *count < most).collect();
        counts.push(most);
        if counts.len() <= MOST_LEVELS {
            return counts;
        }
        factor *= 2;
    }
}

/// Processors that this process may run on.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_in_powers_of_two_to_all_processors() {
        assert_eq!(thread_counts(0), [1]);
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(32), [1, 2, 4, 8, 16, 32]);
        assert_eq!(thread_counts(128), [1, 4, 16, 64, 128]);
        assert!(thread_counts(4096).len() <= 6);
    }
}
