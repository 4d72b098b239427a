//! Facts of a machine as flat names and values, so that two can be compared line by line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts by dotted name: `kernel.release`, `cpu.governor`, `queue.scheduler`, `mount.options` …
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostFacts(pub BTreeMap<String, String>);

impl HostFacts {
    /// The value of one fact.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets one fact.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }
}
