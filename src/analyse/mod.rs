//! Records → paired (or unpaired) samples → [`Comparison`]s: effect, interval, verdict.
//!
//! Enters: a [`crate::record::Run`]. Leaves: an [`Analysis`]. It reads stored records only, so that an old run
//! can be judged again with no device at hand; it must not know how a trial was executed or how a report looks.

mod comparison;

pub use comparison::{
    Analysis, ArmSummary, Caveat, Comparison, FactDifference, Interval, Method, NoiseFloor, QuantileCurve,
    Role, RowKey, Verdict,
};
