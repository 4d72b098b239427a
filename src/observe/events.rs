//! How often the kernel hits a tracepoint of the user's choice, as `perf stat -a -e GROUP:EVENT` counts it.
//!
//! Enters: the tracepoint's name as perf(1) writes it, `block:block_plug`. Leaves: a count. It must not know what any tracepoint means.
//! The whole machine is counted, because kernel threads do much of a trial's work.

use rustix::io::Errno;

use super::perf::{Counting, Refused, Tracefs};
use super::waited::count;
use super::{Observer, Unseen};
use crate::catalog::{is_tracepoint, metrics_of_tracepoint};
use crate::record::Outcome;

/// Counts one tracepoint.
pub struct EventsObserver {
    name: String,
    /// The kernel's number for it.
    id: Result<u64, Refused>,
    counting: Option<Result<Counting, Refused>>,
}

impl EventsObserver {
    /// Looks up the tracepoint, which takes longer than a start may. `None`: it is not the name of one.
    #[must_use]
    pub fn prepared(name: &str) -> Option<EventsObserver> {
        is_tracepoint(name).then(|| EventsObserver {
            name: name.to_owned(),
            id: number_of(name),
            counting: None,
        })
    }
}

/// The other tracepoints of its group, where this kernel surely lacks it. An unknown group may come with a module that is not loaded yet.
#[must_use]
pub fn beside_missing(name: &str) -> Option<Vec<String>> {
    let (group, _) = name.split_once(':').filter(|_| is_tracepoint(name))?;
    if !matches!(number_of(name), Err(Refused::NoTracepoint(_))) {
        return None;
    }
    let names = Tracefs::open().ok()?.directories(&format!("events/{group}")).ok()?;
    Some(names.into_iter().map(|event| format!("{group}:{event}")).collect())
}

fn number_of(name: &str) -> Result<u64, Refused> {
    let tracefs = Tracefs::open().map_err(Refused::NoTracefs)?;
    match tracefs.tracepoint(&name.replace(':', "/")) {
        Ok(point) => Ok(point.id),
        Err(Errno::NOENT) => Err(Refused::NoTracepoint(name.to_owned())),
        Err(errno) => Err(Refused::Kernel(errno)),
    }
}

impl Observer for EventsObserver {
    fn start(&mut self) {
        self.counting = Some(self.id.clone().and_then(Counting::start));
    }

    /// `events.GROUP.EVENT`.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let counting = self.counting.take().unwrap_or(Err(Refused::Kernel(Errno::INVAL)));
        let met = counting.and_then(Counting::stop);
        let met = met.map_err(|refused| Unseen::watched(&format!("{} is", self.name), refused.words()))?;
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
        assert_eq!(beside_missing("no_such_group:event"), None);
    }
}
