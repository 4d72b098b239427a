//! Facts of a machine as flat names and values, so that two can be compared line by line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts by dotted name: `kernel.release`, `cpu.governor`, `queue.scheduler`, `mount.options` …
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostFacts(pub BTreeMap<String, String>);

/// Begins the fact that names the cluster of an imported trial; the kind of cluster follows.
const CLUSTER: &str = "assay.cluster.";

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

    /// The cluster of a trial as (kind, label), e.g. (`boot`, `3`): trials of one cluster are no independent values.
    #[must_use]
    pub fn cluster(&self) -> Option<(&str, &str)> {
        let (name, label) = self.0.range(CLUSTER.to_owned()..).next()?;
        Some((name.strip_prefix(CLUSTER)?, label))
    }

    /// Sets the cluster; a trial has one.
    pub fn set_cluster(&mut self, kind: &str, label: &str) {
        self.drop_cluster();
        self.set(format!("{CLUSTER}{kind}"), label);
    }

    /// Takes every trial for itself.
    pub fn drop_cluster(&mut self) {
        self.0.retain(|name, _| !HostFacts::names_cluster(name));
    }

    /// Whether a fact of this name is a cluster, which says nothing of a machine.
    #[must_use]
    pub fn names_cluster(name: &str) -> bool {
        name.starts_with(CLUSTER)
    }
}
