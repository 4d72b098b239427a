//! Executes a plan and emits [`Event`]s: the terminal, the store and a log are sinks.
//!
//! Enters: a plan and a launcher. Leaves: events, and a [`Run`](crate::record::Run) with every trial. It prints nothing and knows
//! no statistics: when to stop is asked of a function that the caller supplies.

mod design;
mod disturbed;
mod event;
mod execute;
mod remaining;
mod request;
mod settle;

pub use design::{cells, design};
pub use event::{Event, Sink, SinkError};
pub use execute::{Ending, Execution, Limits, RunError, now_unix_ns};
pub use request::{Surroundings, request};
