//! What an agent is asked, and what it answers.
//!
//! It knows no launcher, so that each can import it.

use serde::{Deserialize, Serialize};

use crate::engine::{EngineKind, Task};
use crate::record::{FailureKind, HostFacts, KeptFile, Outcome, Sample};
use crate::target::{Disturbance, TargetSpec};

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
    /// Why it failed, as far as it is known.
    #[serde(default)]
    pub why: Why,
    /// What hooks left and printed, whatever came of the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
}

/// What is known about why a trial failed, so that nobody has to read it from the words of the reason.
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

    /// A failure that may pass, and is retried; `output` is what was printed last.
    pub(super) fn failed(reason: impl Into<String>, output: String) -> Reply {
        let (kind, command) = (FailureKind::Passing, String::new());
        Reply::of(Answer::Failed { kind, reason: reason.into(), command, output, so_far: Vec::new() })
    }

    /// The same failure as one that is certainly not the trial's own.
    pub(super) fn caused_outside(mut self) -> Reply {
        if let Answer::Failed { kind, .. } = &mut self.answer {
            *kind = FailureKind::Outside;
        }
        self
    }
}
