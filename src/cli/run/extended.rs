//! Rounds added to a finished run: which runs may have more, and what is kept of that.

use crate::cli::Failure;
use crate::record::{Run, RunState};

/// A run whose end was moved and is not in the store yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extended {
    /// This user's own seal was on the run, and is put on it again.
    pub(super) sealed: bool,
}

/// Whether a stored run may be extended.
///
/// # Errors
/// A [`Failure`] with exit code 2: it was not made with `--anytime`, or has not ended.
pub(super) fn check(run: &Run, id: i64) -> Result<(), Failure> {
    if !run.design.stop.anytime {
        return Err(Failure::request(format!(
            "run {id} was not made with --anytime: it has spent its error rate, and rounds added now would make false \
             claims more frequent than it says"
        ))
        .hint("run it anew; with --anytime where more rounds may be wanted later"));
    }
    if run.state != RunState::Finished {
        return Err(Failure::request(format!("run {id} has not come to its end yet"))
            .hint(format!("assay run --resume {id} goes on with it")));
    }
    Ok(())
}
