//! What a trial writes to: now a directory; made, brought to the same state before each trial, and removed.
//!
//! Enters: a [`TargetSpec`]. Leaves: a directory in a known state, and facts about where it lies. It must not know
//! engines or jobs. It removes only what carries assay's mark.

mod directory;
mod overwrite;

pub use directory::{MARK, TargetError, TargetSpec, WorkDirectory, facts, prepare, remove};
pub use overwrite::{Refusal, may_overwrite};

// What others do to the machine is seen by `host`; launchers reach it through the target they disturb.
pub use crate::host::{Disturbance, Interference};
