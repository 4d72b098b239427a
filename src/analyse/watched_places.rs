//! Places that an observer names only where they matter: `locks.at.rwsem_W.ext4_buffered_write_iter`.
//!
//! Enters: a run's metrics and the values of a trial. Leaves: which places a trial does not name although the observer watched it. There the value is taken for 0:
//! it was less than at those that are named, mostly nothing. Otherwise an arm in which nobody waits at a place could not be compared with one in which
//! all do. It must not know what the observer watched.

use std::collections::HashMap;

use crate::record::Run;

/// A metric of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index into the run's metrics.
    pub(super) metric: u32,
    /// What the same observer reports in every trial that it watched.
    always: u32,
}

impl Place {
    /// Whether a trial with these values was watched and does not name it.
    pub(super) fn is_unnamed(&self, values: &HashMap<u32, f64>) -> bool {
        values.contains_key(&self.always) && !values.contains_key(&self.metric)
    }
}

/// What is counted, and the place: `locks.waits_at` and `mutex.f`; `None`: the metric is of no place.
pub(super) fn parts(metric: &str) -> Option<(&str, &str)> {
    let observer = metric.find('.')?;
    let counted = metric[observer + 1..].find('.')? + observer + 1;
    let (what, place) = (&metric[..counted], &metric[counted + 1..]);
    (what.ends_with(".at") || what.ends_with("_at")).then_some((what, place))
}

/// The places of a run.
pub(super) fn of(run: &Run) -> Vec<Place> {
    let named = (0_u32..).zip(&run.metrics);
    let place = |(metric, of): (u32, &crate::record::Metric)| {
        let (what, _) = parts(&of.name)?;
        let always = match what {
            // Not every kernel and user can tell who wakes.
            "waits.woken_at" => "waits.wakeup_time".to_owned(),
            _ => format!("{}.lost", what.split('.').next()?),
        };
        let always = run.metrics.iter().position(|known| known.job == of.job && known.name == always)?;
        Some(Place { metric, always: always as u32 })
    };
    named.filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::table::Table;
    use super::*;

    #[test]
    fn names_have_what_is_counted_and_a_place() {
        assert_eq!(parts("locks.at.rwsem_W.vfs_write"), Some(("locks.at", "rwsem_W.vfs_write")));
        assert_eq!(parts("locks.waits_at.mutex.f"), Some(("locks.waits_at", "mutex.f")));
        assert_eq!(parts("locks.of.mutex"), None);
        assert_eq!(parts("write.clat_ns.p99"), None);
        assert_eq!(parts("format"), None);
    }

    #[test]
    fn a_watched_trial_that_does_not_name_a_place_has_0_there() {
        let mut run = run_of(&Made::default(), 4);
        for (metric, name) in [(0, "locks.lost"), (1, "locks.at.mutex.f")] {
            run.metrics[metric].name = name.to_owned();
        }
        for trial in &mut run.trials {
            trial.values.retain(|(metric, _)| *metric == 0 || *metric == 1 && trial.cell == 0);
        }
        // Round 2 was not watched.
        run.trials.iter_mut().filter(|trial| trial.round == 2).for_each(|trial| trial.values.clear());
        let table = Table::new(&run);
        let rounds = |cell| table.column(cell, 1).iter().map(|point| point.round).collect::<Vec<_>>();
        assert_eq!((rounds(0), rounds(1)), (vec![0, 1, 3], vec![0, 1, 3]));
        assert!(table.column(1, 1).iter().all(|point| point.value == 0.0));
    }
}
