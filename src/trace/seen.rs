//! What a trace has, whichever device it is of: events by kind and name, processors, time.
//!
//! Enters: events in order. Leaves: their counts.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Action, Event};
use super::source::Names;

/// Counts of all events of a trace.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) events: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) cpus: Processors,
    by_kind: Kinds,
    by_name: Vec<u64>,
}

/// Events by the place of their kind.
struct Kinds([u64; Action::KINDS]);

impl Default for Kinds {
    fn default() -> Kinds {
        Kinds([0; Action::KINDS])
    }
}

impl Seen {
    /// Counts an event.
    #[inline]
    pub(super) fn add(&mut self, event: &Event) {
        if self.events == 0 {
            self.first_ns = event.time_ns;
        }
        self.events += 1;
        self.last_ns = self.last_ns.max(event.time_ns);
        self.cpus.add(event.cpu);
        if let Some(kind) = event.action.index() {
            self.by_kind.0[kind] += 1;
        } else if let Action::Other(name) = event.action {
            let place = usize::from(name);
            if self.by_name.len() <= place {
                self.by_name.resize(place + 1, 0);
            }
            self.by_name[place] += 1;
        }
    }

    /// The counts by what they are called; of kinds only those that there were.
    pub(super) fn by_kind(&self, names: &Names) -> BTreeMap<String, u64> {
        let kinds = self.by_kind.0.iter().enumerate().filter(|(_, n)| **n > 0);
        let mut by_kind: BTreeMap<String, u64> =
            kinds.map(|(kind, n)| (Action::name_at(kind).to_owned(), *n)).collect();
        by_kind.extend(names.all().iter().zip(&self.by_name).map(|(name, n)| (name.clone(), *n)));
        by_kind
    }
}

/// The processors that had events: a bit each for the first 64, whose number is looked up with every event.
#[derive(Default)]
pub(super) struct Processors {
    first: u64,
    others: BTreeSet<u32>,
}

impl Processors {
    #[inline]
    fn add(&mut self, cpu: u32) {
        match 1_u64.checked_shl(cpu) {
            Some(bit) => self.first |= bit,
            None => drop(self.others.insert(cpu)),
        }
    }

    pub(super) fn count(&self) -> u64 {
        u64::from(self.first.count_ones()) + self.others.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_whatever_their_number() {
        let mut seen = Seen::default();
        for cpu in [0, 63, 63, 64, 1 << 20, 1 << 20, 5] {
            seen.add(&Event::at(7, cpu, 0, Action::Plug));
        }
        assert_eq!((seen.cpus.count(), seen.events), (5, 7));
    }
}
