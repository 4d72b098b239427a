//! What the steps of a search are.

use std::sync::atomic::AtomicBool;

use crate::cli::Failure;
use crate::launch::{LaunchError, Launcher, Request, Unready};

/// The factor whose levels are the steps.
pub(in crate::cli) const FACTOR: &str = "step";

/// What the steps of a search are: the one place where a step becomes something that trials run.
pub(in crate::cli) trait Arms {
    /// Makes a step ready, once a session, before its first trial. `trial` is that trial's request.
    ///
    /// # Errors
    /// Interrupted, or nothing can be started at all.
    fn make(
        &mut self,
        step: usize,
        trial: &Request,
        launcher: &mut dyn Launcher,
        cancelled: &AtomicBool,
    ) -> Result<Made, LaunchError>;

    /// The request for a trial of a step that is ready.
    fn trial(&self, step: usize, request: Request) -> Request;
}

/// What came of making a step ready.
pub(in crate::cli) enum Made {
    /// Its trials can be run.
    Ready,
    /// They cannot, for this reason: the search goes on without the step.
    Cannot(String),
    /// Nor can those of any other: the search ends.
    Ends(Failure),
    /// Nor can those of any other while the machine lacks this: the search ends, and may go on later.
    Lacks(Unready),
}
