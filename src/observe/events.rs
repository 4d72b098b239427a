//! How often the kernel hits a tracepoint of the user's choice, as `perf stat -a -e GROUP:EVENT --filter FILTER` counts it.
//!
//! Enters: a [`CountedEvent`] as written. Leaves: a count. It must not know what any tracepoint means.
//! The whole machine is counted, because kernel threads do much of a trial's work.

use rustix::io::Errno;

use super::perf::{Counting, Refused, Tracefs, Tracepoint};
use super::waited::count;
use super::{Observer, Unseen};
use crate::catalog::{CountedEvent, metrics_of_tracepoint};
use crate::record::Outcome;

/// Counts one tracepoint.
pub struct EventsObserver {
    /// As written.
    name: String,
    /// As perf(1) writes it.
    tracepoint: String,
    filter: Option<String>,
    /// The kernel's number for it.
    id: Result<u64, Refused>,
    counting: Option<Result<Counting, Refused>>,
}

impl EventsObserver {
    /// Looks up the tracepoint, which takes longer than a start may. `None`: it is not the name of one.
    #[must_use]
    pub fn prepared(name: &str) -> Option<EventsObserver> {
        let counted = CountedEvent::of(name)?;
        Some(EventsObserver {
            name: name.to_owned(),
            tracepoint: counted.tracepoint(),
            filter: counted.filter.map(str::to_owned),
            id: looked_up(&counted.tracepoint()).map(|point| point.id),
            counting: None,
        })
    }
}

/// What this kernel surely cannot count.
pub enum Uncountable {
    /// It lacks the tracepoint; the others of its group.
    NoTracepoint(Vec<String>),
    /// It does not take the filter; the fields of the tracepoint that are numbers.
    Filter(Vec<String>),
}

/// Why this kernel surely cannot count it. An unknown group may come with a module that is not loaded yet.
#[must_use]
pub fn uncountable(name: &str) -> Option<Uncountable> {
    let counted = CountedEvent::of(name)?;
    match looked_up(&counted.tracepoint()) {
        Ok(point) => {
            let refused = matches!(Counting::start(point.id, Some(counted.filter?)), Err(Refused::Filter(_)));
            refused.then(|| Uncountable::Filter(point.numbers().map(str::to_owned).collect()))
        }
        Err(Refused::NoTracepoint(_)) => {
            let group = counted.group;
            let names = Tracefs::open().ok()?.directories(&format!("events/{group}")).ok()?;
            Some(Uncountable::NoTracepoint(
                names.into_iter().map(|event| format!("{group}:{event}")).collect(),
            ))
        }
        Err(_) => None,
    }
}

fn looked_up(tracepoint: &str) -> Result<Tracepoint, Refused> {
    Tracefs::open().map_err(Refused::NoTracefs)?.wanted(&tracepoint.replace(':', "/"))
}

impl Observer for EventsObserver {
    fn start(&mut self) {
        let filter = self.filter.as_deref();
        self.counting = Some(self.id.clone().and_then(|id| Counting::start(id, filter)));
    }

    fn end(&mut self) {
        if let Some(Ok(counting)) = &mut self.counting {
            counting.end();
        }
    }

    /// `events.GROUP.EVENT`, or `events.NAME`.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let counting = self.counting.take().unwrap_or(Err(Refused::Kernel(Errno::INVAL)));
        let met = counting.and_then(Counting::stop);
        let met =
            met.map_err(|refused| Unseen::watched(&format!("{} is", self.tracepoint), refused.words()))?;
        let [metric, _] = metrics_of_tracepoint(&self.name).unwrap_or_default();
        Ok(Outcome { samples: vec![count(&metric, met)], ..Outcome::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_kernel_does_not_have_is_a_reason_with_its_name() {
        let mut observer = EventsObserver::prepared("block:no_such_event").unwrap();
        observer.start();
        let reason = observer.stop().unwrap_err();
        assert!(reason.to_string().starts_with("block:no_such_event is not watched: "), "{reason}");
        // Another group may come with a module.
        assert!(uncountable("no_such_group:event").is_none());
    }
}
