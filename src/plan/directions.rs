//! Arms that do I/O in no common direction: no bandwidth of theirs can be compared.
//!
//! Enters: a plan. Leaves: the first such pair. What only fio understands is not looked into.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Plan;
use super::cell_spec::CellSpec;

impl Plan {
    /// The labels of a baseline and a candidate, where nothing decides by name and no pair of the run has a section with a common
    /// direction.
    #[must_use]
    pub fn no_common_direction(&self) -> Option<[&str; 2]> {
        if self.primary.is_some() {
            return None;
        }
        let with_baseline =
            self.neighbours().filter(|(factor, levels, _)| *factor == self.compare && levels[0] == 0);
        let pairs: Vec<[&CellSpec; 2]> = with_baseline.map(|(.., pair)| pair).collect();
        let apart = pairs.iter().all(|[base, cand]| are_apart(base, cand) == Some(true));
        let label = |cell: &CellSpec| &*self.factors[self.compare].levels[cell.levels[self.compare] as usize];
        pairs.first().filter(|_| apart).map(|pair| pair.map(label))
    }
}

/// Whether no section that both have goes in a common direction; `None`: they have no common section, or it is not known.
fn are_apart(base: &CellSpec, cand: &CellSpec) -> Option<bool> {
    let (base, cand) = (directions(base)?, directions(cand)?);
    let common = base.iter().filter_map(|(name, of)| Some(of.is_disjoint(cand.get(name)?)));
    common.reduce(|all, apart| all && apart)
}

/// The directions of each section.
fn directions(cell: &CellSpec) -> Option<BTreeMap<String, BTreeSet<&'static str>>> {
    let workload = cell.workload.as_ref()?;
    let instances = workload.instances(Path::new("/"));
    let mut found: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for (at, instance) in instances.iter().enumerate() {
        let mix = workload.jobs[instance.job].pattern.mix;
        let used = [("read", mix.reads()), ("write", mix.writes()), ("trim", mix.trims())];
        let used = used.into_iter().filter(|(_, used)| *used).map(|(name, _)| name);
        found.entry(workload.section_of(&instances, at).to_owned()).or_default().extend(used);
    }
    Some(found)
}
