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
mod qemu;
mod stall;
mod time_limit;

use serde::{Deserialize, Serialize};

pub use crate::engine::{EngineKind, MetricPattern, SimulatedCell, Task};
pub use crate::observe::KEEPS_TRACES;
use crate::record::{FailureKind, HostFacts, KeptFile, Outcome, Sample};
pub use crate::target::{Disturbance, Setup, TargetSpec};

pub use agent::serve;
pub use endings::{as_it_was_sent, ending_signals, reserved_signals_are_sigterm, signal_name};
pub use everywhere::everywhere;
pub use local::{Local, adopt_orphans};
use qemu::Guests;
pub use qemu::{
    Forecast, GuestError, GuestOffer, guest_part, guests_offered, newest_kernel, remove_private_cache,
};

/// Version of request and reply; an agent refuses another one.
pub const PROTOCOL: u32 = 1;

/// One trial, complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What does the I/O.
    pub engine: EngineKind,
    /// What it is asked to do.
    pub task: Task,
    /// What it works on.
    pub target: TargetSpec,
    /// Only make the target and put it back; no trial.
    #[serde(default)]
    pub rehearsal: bool,
    /// What is watched besides what always is: names of observers, as `observe::named` knows them.
    #[serde(default)]
    pub observe: Vec<String>,
    /// Shell hook before the trial.
    pub before: Option<String>,
    /// Shell hook after it, also when it failed.
    pub after: Option<String>,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It ran.
    Done(Outcome),
    /// It failed.
    Failed {
        /// Whether it may be tried again.
        #[serde(default)]
        kind: FailureKind,
        /// One line.
        reason: String,
        /// To repeat by hand.
        command: String,
        /// Last output.
        output: String,
        /// What was counted until then.
        so_far: Vec<Sample>,
    },
    /// The engine cannot do it here.
    Unsupported {
        /// Why.
        reason: String,
    },
}

/// The agent's answer with what was seen meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What came of it.
    pub answer: Answer,
    /// Facts of the host at the start of the trial.
    pub facts: HostFacts,
    /// What others did to the machine during the trial; `None` when the trial did not start.
    pub disturbance: Option<Disturbance>,
    /// What is known of why it came to nothing, besides the words.
    #[serde(default)]
    pub why: Why,
    /// What hooks left and printed, whatever came of the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
}

/// What is known of why a trial came to nothing, besides the reason's words: nobody has to read it from those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Why {
    /// What helps; empty where nothing is known.
    pub hint: String,
    /// It is about the place where the trial was to run, a guest; of its target nothing is said.
    pub of_place: bool,
    /// Processes that hang in the kernel and so are left; the reason names them.
    pub left: Vec<i32>,
}

impl Why {
    /// A reason with what helps, as it is stored.
    #[must_use]
    pub fn with(&self, reason: &str) -> String {
        if self.hint.is_empty() { reason.to_owned() } else { format!("{reason}\nhint: {}", self.hint) }
    }
}

impl Reply {
    /// An answer of which nothing else is known.
    #[must_use]
    pub fn of(answer: Answer) -> Reply {
        Reply {
            answer,
            facts: HostFacts::default(),
            disturbance: None,
            why: Why::default(),
            files: Vec::new(),
        }
    }

    /// That a trial came to nothing, which may be of the moment; `output` are last words.
    fn failed(reason: impl Into<String>, output: String) -> Reply {
        let (kind, command) = (FailureKind::Passing, String::new());
        Reply::of(Answer::Failed { kind, reason: reason.into(), command, output, so_far: Vec::new() })
    }

    /// The same failure as one that is certainly not the trial's own.
    fn caused_outside(mut self) -> Reply {
        if let Answer::Failed { kind, .. } = &mut self.answer {
            *kind = FailureKind::Outside;
        }
        self
    }
}

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
    /// Learns what a cell will need; called for each before the first trial.
    ///
    /// # Errors
    /// Something it needs is not on this machine.
    fn expect(&mut self, _request: &Request) -> Result<(), Unready> {
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

    /// All trials of a round have ended; what was kept for them can go.
    fn round_ends(&mut self) {}
}
