//! Where a trial executes: always a fresh `assay agent` process, which reads one [`Request`] as JSON on
//! standard input and answers with one [`Reply`].
//!
//! Enters: a [`Request`]. Leaves: a [`Reply`]. It must not know plans, rounds or stores.

mod agent;
mod descendants;
mod endings;
mod everywhere;
mod hook;
mod hook_files;
mod hook_metrics;
mod last_duty;
mod local;
mod protocol;
mod qemu;
mod stall;
mod time_limit;

pub use crate::engine::{EngineKind, SimulatedCell, Task};
pub use crate::observe::KEEPS_TRACES;
pub use crate::target::{Disturbance, Setup, TargetSpec};

use crate::record::HostFacts;
pub use agent::serve;
pub use endings::{as_it_was_sent, ending_signals, reserved_signals_are_sigterm, signal_name};
pub use everywhere::everywhere;
pub use local::{Local, adopt_orphans};
pub use protocol::{Answer, PROTOCOL, Reply, Request, Why};
use qemu::Guests;
pub use qemu::{
    Forecast, GuestError, GuestOffer, NoSource, OpenedKernel, Unpacked, guest_part, guests_offered,
    kernel_options, known_releases, loaded_modules, module_digests, newest_kernel, newest_kernel_of,
    newest_source, opened_kernel, readable_copy, remove_unpacked, unpacked_in_cache, unreadable_kernel,
};

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The agent could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The agent's program.
        program: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Cancelled {
        /// Processes that hang in the kernel and so are left.
        left: Vec<i32>,
    },
}

impl LaunchError {
    /// What is left running, in words; `None`: nothing.
    #[must_use]
    pub fn left(&self) -> Option<String> {
        match self {
            LaunchError::Cancelled { left } if !left.is_empty() => Some(descendants::cannot_be_ended(left)),
            _ => None,
        }
    }
}

/// Why a launcher cannot run what was asked of it, before any trial.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unready {
    /// A clause: what is missing.
    pub reason: String,
    /// What helps; empty where nothing is known.
    pub hint: String,
}

/// Starts trials somewhere.
pub trait Launcher {
    /// Learns what a cell will need, or that it is run by another launcher; called for each before the first trial.
    ///
    /// # Errors
    /// Something it needs is not on this machine.
    fn expect(&mut self, _request: &Request) -> Result<(), Unready> {
        Ok(())
    }

    /// Learns facts of earlier trials of the run: later ones are run by the same.
    ///
    /// # Errors
    /// That is not here any more.
    fn goes_on(&mut self, _earlier: &HostFacts) -> Result<(), Unready> {
        Ok(())
    }

    /// Whether all that was expected can be had, with room in `place`; called once, after [`Launcher::expect`].
    ///
    /// # Errors
    /// The first thing that is missing.
    fn check(&mut self, _place: &std::path::Path) -> Result<(), Unready> {
        Ok(())
    }

    /// What starting its machines will cost; `None`: it starts none.
    fn forecast(&self) -> Option<Forecast> {
        None
    }

    /// Runs one trial to its end; `cancelled` ends it early with everything of it stopped.
    ///
    /// # Errors
    /// [`LaunchError`]. An agent that dies is a reply with [`Answer::Failed`], not an error.
    fn launch(
        &mut self,
        request: &Request,
        cancelled: &std::sync::atomic::AtomicBool,
    ) -> Result<Reply, LaunchError>;

    /// A trial has ended, and these are left of its round: what none of them needs can go.
    fn round_goes_on(&mut self, _left: &mut dyn Iterator<Item = Request>) {}

    /// All trials of a round have ended; what was kept for them can go.
    fn round_ends(&mut self) {}
}
