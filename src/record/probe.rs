//! Runs that are no experiment: what `assay probe` has measured of a machine.
//!
//! Enters: a run, or its engine. Leaves: whether it is one. Such a run has one arm, a trial a round, and a metric a probe, whose job is the
//! probe's group; so that record and store have no place for it, and nobody compares it by mistake.

use super::Run;

/// The engine of such runs; no experiment can name it.
pub const PROBE_ENGINE: &str = "probe";

/// Whether a run with this engine and version is one.
#[must_use]
pub fn is_probe(engine: &str) -> bool {
    engine.split(' ').next() == Some(PROBE_ENGINE)
}

impl Run {
    /// Whether it is what `assay probe` has measured.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        is_probe(&self.engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_says_whether_it_is_a_probe() {
        assert!(is_probe("probe 0.1.0") && is_probe("probe"));
        assert!(!is_probe("native 0.1.0") && !is_probe("") && !is_probe("probes 1"));
    }
}
