//! The facts a report tells: of the machine, and of what the trials worked on.
//!
//! Enters: the facts of a run, the first as it began, and which of them trials have. Leaves: one value a fact; where trials differ, as with a filesystem that is varied, their values.

use std::collections::BTreeSet;

use crate::record::HostFacts;

/// More values of one fact than this are a measurement, not a setting.
const MOST_VALUES: usize = 4;
/// Facts of the moment are told as they were when the run began; those that the run did not have then (of guests, and of the
/// machine under them) as the range over its trials.
const MOMENTARY: &str = "now.";
/// Which recipe it is, and where that is run.
const RECIPE: &str = "recipe";

/// Name and value of every fact, sorted by name; `used` are the facts that trials point at.
pub(super) fn host_facts<'f>(all: &'f [HostFacts], used: &[u32]) -> Vec<(&'f str, String)> {
    let first = all.first();
    let of_trials: Vec<&HostFacts> = used.iter().filter_map(|at| all.get(*at as usize)).collect();
    let known = first.into_iter().chain(of_trials.iter().copied());
    let names = known.flat_map(|facts| facts.names());
    let names: BTreeSet<&str> = names.filter(|name| !HostFacts::names_cluster(name)).collect();
    let mut told = Vec::new();
    for name in names {
        let at_start = first.and_then(|facts| facts.get(name));
        let mut values: Vec<&str> = Vec::new();
        for value in of_trials.iter().filter_map(|facts| facts.get(name)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let momentary = name.starts_with(MOMENTARY);
        let value = match values.as_slice() {
            values if momentary => at_start.map(str::to_owned).or_else(|| range(values)),
            [] if of_trials.is_empty() => at_start.map(str::to_owned),
            // A choice made for all trials.
            [] if name.starts_with(RECIPE) => at_start.map(str::to_owned),
            // What the run began in is not where the trials worked.
            [] => None,
            values if values.len() > MOST_VALUES => at_start.map(str::to_owned),
            values => Some(values.join(" | ")),
        };
        told.extend(value.map(|value| (name, value)));
    }
    told
}

/// `0.42–3.1`: of what only trials know at their moment, the least and the most; `None`: these are no numbers.
fn range(values: &[&str]) -> Option<String> {
    let mut numbers: Vec<(f64, &str)> =
        values.iter().map(|text| Some((text.parse().ok()?, *text))).collect::<Option<_>>()?;
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (numbers.first()?.1, numbers.last()?.1);
    Some(if least == most { least.to_owned() } else { format!("{least}–{most}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> HostFacts {
        let mut facts = HostFacts::default();
        pairs.iter().for_each(|(name, value)| facts.set(*name, *value));
        facts
    }

    #[test]
    fn what_the_trials_worked_on_is_told() {
        let all = [
            facts(&[("cpu.count", "2"), ("fs.type", "ext4"), ("device.model", "Disk"), ("now.load1", "0")]),
            facts(&[("cpu.count", "2"), ("fs.type", "xfs"), ("now.load1", "1")]),
            facts(&[("cpu.count", "2"), ("fs.type", "btrfs"), ("now.load1", "2")]),
        ];
        let told = |used: &[u32]| {
            let told: Vec<String> =
                host_facts(&all, used).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            told.join(" ")
        };
        assert_eq!(told(&[1, 2, 1]), "cpu.count=2 fs.type=xfs | btrfs now.load1=0");
        assert_eq!(range(&["3.1", "0.42", "10"]).as_deref(), Some("0.42–10"));
        assert_eq!((range(&["2"]).as_deref(), range(&["loop1", "1"])), (Some("2"), None));
        assert_eq!(told(&[]), "cpu.count=2 device.model=Disk fs.type=ext4 now.load1=0", "nothing ran yet");
        assert_eq!(host_facts(&[], &[]), Vec::new());
    }
}
