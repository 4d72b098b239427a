//! Facts of a machine as flat names and values, so that two can be compared line by line.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Begins the names of facts of the moment.
const MOMENTARY: &str = HostFacts::MOMENTARY;
/// Facts that are looked through for equal ones: each cell of a run may have its own.
const LOOKED_THROUGH: usize = 256;

/// Facts by dotted name: `kernel.release`, `cpu.governor`, `queue.scheduler`, `mount.options` …
///
/// Those of the moment are kept apart from the others, which many trials share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct HostFacts {
    momentary: BTreeMap<String, String>,
    lasting: Arc<BTreeMap<String, String>>,
}

/// Begins the fact that names the cluster of an imported trial; the kind of cluster follows.
const CLUSTER: &str = "assay.cluster.";

impl HostFacts {
    /// Begins the names of facts of the moment (free memory, load), of which every trial has its own.
    pub const MOMENTARY: &str = "now.";

    /// The value of one fact.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let place = if name.starts_with(MOMENTARY) { &self.momentary } else { &*self.lasting };
        place.get(name).map(String::as_str)
    }

    /// Sets one fact.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.place(&name).insert(name, value.into());
    }

    /// Sets one fact, if its value is known.
    pub fn set_known(&mut self, name: impl Into<String>, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Takes one fact out.
    pub fn remove(&mut self, name: &str) {
        if self.get(name).is_some() {
            self.place(name).remove(name);
        }
    }

    /// Keeps those whose names fulfil a condition.
    pub fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        self.momentary.retain(|name, _| keeps(name));
        if !self.lasting.keys().all(|name| keeps(name)) {
            Arc::make_mut(&mut self.lasting).retain(|name, _| keeps(name));
        }
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let before = self.lasting.range(..MOMENTARY.to_owned());
        let behind = self.lasting.range(MOMENTARY.to_owned()..);
        let all = before.chain(&self.momentary).chain(behind);
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.momentary.len() + self.lasting.len()
    }

    /// Shares the memory of the lasting facts with the newest of `known` that has the same. False: none has.
    pub fn share(&mut self, known: &[HostFacts]) -> bool {
        let equal = known.iter().rev().take(LOOKED_THROUGH).find(|other| other.lasting == self.lasting);
        if let Some(other) = equal {
            self.lasting = Arc::clone(&other.lasting);
        }
        equal.is_some()
    }

    /// Names and values of the moment, which are never shared.
    pub fn momentary(&self) -> impl Iterator<Item = (&str, &str)> {
        self.momentary.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The cluster of a trial as (kind, label), e.g. (`boot`, `3`): trials of one cluster are no independent values.
    #[must_use]
    pub fn cluster(&self) -> Option<(&str, &str)> {
        let (name, label) = self.lasting.range(CLUSTER.to_owned()..).next()?;
        Some((name.strip_prefix(CLUSTER)?, label))
    }

    /// Sets the cluster; a trial has one.
    pub fn set_cluster(&mut self, kind: &str, label: &str) {
        self.drop_cluster();
        self.set(format!("{CLUSTER}{kind}"), label);
    }

    /// Takes every trial for itself.
    pub fn drop_cluster(&mut self) {
        self.retain(|name| !HostFacts::names_cluster(name));
    }

    /// Whether a fact of this name is a cluster, which says nothing of a machine.
    #[must_use]
    pub fn names_cluster(name: &str) -> bool {
        name.starts_with(CLUSTER)
    }

    fn place(&mut self, name: &str) -> &mut BTreeMap<String, String> {
        if name.starts_with(MOMENTARY) { &mut self.momentary } else { Arc::make_mut(&mut self.lasting) }
    }
}

impl From<BTreeMap<String, String>> for HostFacts {
    fn from(mut lasting: BTreeMap<String, String>) -> HostFacts {
        let momentary = lasting.extract_if(.., |name, _| name.starts_with(MOMENTARY)).collect();
        HostFacts { momentary, lasting: Arc::new(lasting) }
    }
}

impl From<HostFacts> for BTreeMap<String, String> {
    fn from(facts: HostFacts) -> BTreeMap<String, String> {
        let mut all = Arc::unwrap_or_clone(facts.lasting);
        all.extend(facts.momentary);
        all
    }
}

impl Extend<(String, String)> for HostFacts {
    fn extend<T: IntoIterator<Item = (String, String)>>(&mut self, more: T) {
        more.into_iter().for_each(|(name, value)| self.set(name, value));
    }
}

impl IntoIterator for HostFacts {
    type Item = (String, String);
    type IntoIter = std::collections::btree_map::IntoIter<String, String>;

    fn into_iter(self) -> Self::IntoIter {
        BTreeMap::from(self).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(load: &str) -> HostFacts {
        let mut facts = HostFacts::default();
        for (name, value) in [("now.load1", load), ("virt", "kvm"), ("cpu.count", "2")] {
            facts.set(name, value);
        }
        facts
    }

    #[test]
    fn facts_of_the_moment_are_kept_apart_and_seen_in_order() {
        let all = facts("0.5");
        let json = r#"{"cpu.count":"2","now.load1":"0.5","virt":"kvm"}"#;
        assert_eq!(serde_json::to_string(&all).unwrap(), json);
        assert_eq!(serde_json::from_str::<HostFacts>(json).unwrap(), all);
        assert_eq!(all.names().collect::<Vec<_>>(), ["cpu.count", "now.load1", "virt"]);
        assert_eq!(all.clone().into_iter().count(), all.count());
        assert_eq!((all.get("now.load1"), all.get("virt"), all.get("now")), (Some("0.5"), Some("kvm"), None));
        let mut fewer = all;
        fewer.remove("now.load1");
        fewer.retain(|name| name != "virt");
        assert_eq!(fewer.names().collect::<Vec<_>>(), ["cpu.count"]);
    }

    #[test]
    fn lasting_facts_are_shared_until_one_changes() {
        let (first, mut second) = (facts("0.5"), facts("0.7"));
        assert!(second.share(std::slice::from_ref(&first)));
        assert!(Arc::ptr_eq(&first.lasting, &second.lasting));
        assert_ne!(first, second);
        second.set("virt", "none");
        assert_eq!((first.get("virt"), second.get("virt")), (Some("kvm"), Some("none")));
        assert!(!second.share(&[first]));
    }
}
