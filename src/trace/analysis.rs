//! What a trace says, device by device, while it is read once.
//!
//! Enters: items in order, and what is known beside the trace. Leaves: a [`Summary`]. Holes in the trace make latencies that span
//! them unknown, and a trace of which too much is missing is refused.

use std::collections::BTreeMap;

use super::audit::Audit;
use super::class::Class;
use super::counts::Counts;
use super::error::TraceError;
use super::event::{Action, Device, Event};
use super::flags::Operation;
use super::in_flight::{Completed, InFlight};
use super::seen::Seen;
use super::source::{Item, Lost, Names};
use super::summary::{DeviceSummary, Settings, Summary, Totals};
use super::times::{AllTimes, Stage};
use super::unwritten::Unwritten;
use super::verdict::JournalRange;

/// Devices that are analysed; of more only the events are counted.
const MOST_DEVICES: usize = 64;
/// Calls in progress at once; of more, some are taken to have begun before their device's first event.
const MOST_CALLS: usize = 1 << 14;
/// Completions without an issue that are never too many: what was in flight when the trace began.
const FEW_ORPHANS: u64 = 16;

/// One device while the trace is read.
#[derive(Default)]
struct OneDevice {
    device: Device,
    events: u64,
    counts: Counts,
    times: AllTimes,
    in_flight: InFlight,
    audit: Audit,
    issues: u64,
    completions: u64,
    orphans: u64,
}

/// The analysis while the trace is read.
#[derive(Default)]
pub struct Analysis {
    settings: Settings,
    devices: Vec<OneDevice>,
    /// The place of the device that had the last event.
    last: usize,
    by_device: BTreeMap<Device, u64>,
    seen: Seen,
    holes: u64,
    /// Of the holes so far the one that ends last, and one whose end is not known: devices without an event yet have them, too.
    known_holes: [Option<Lost>; 2],
    /// What was seen beside the latest hole is forgotten at its end.
    hole_until_ns: Option<u64>,
    lost_events: u64,
    lost_unknown: bool,
    unwritten_events: u64,
    /// The events of calls in progress, by task, for devices whose first event comes within the call.
    open_calls: BTreeMap<u32, Vec<Event>>,
}

impl Analysis {
    /// Begins.
    #[must_use]
    pub fn new(settings: Settings) -> Analysis {
        Analysis { settings, ..Analysis::default() }
    }

    /// Takes the next item.
    pub fn feed(&mut self, item: &Item) {
        match item {
            Item::Event(event) => {
                self.seen.add(event);
                self.event(event);
            }
            Item::Lost(lost) => self.lost(lost),
            Item::Unwritten(unwritten) => self.unwritten(*unwritten),
        }
    }

    fn lost(&mut self, lost: &Lost) {
        self.holes += 1;
        self.lost_events = self.lost_events.saturating_add(lost.count.unwrap_or(0));
        self.lost_unknown |= lost.count.is_none();
        let of_its_kind = &mut self.known_holes[usize::from(lost.until_ns == 0)];
        if of_its_kind.is_none_or(|known| known.until_ns < lost.until_ns) {
            *of_its_kind = Some(*lost);
        }
        self.hole_until_ns = self.hole_until_ns.max(Some(lost.until_ns));
        for one in &mut self.devices {
            one.in_flight.forget();
            one.audit.lost(lost);
        }
    }

    fn unwritten(&mut self, unwritten: Unwritten) {
        self.unwritten_events =
            self.unwritten_events.saturating_add(unwritten.ends).saturating_add(unwritten.others);
        self.devices.iter_mut().for_each(|one| one.audit.unwritten(unwritten));
    }

    fn event(&mut self, event: &Event) {
        // Most traces have no partition, and are large.
        let mapped;
        let event = match self.settings.partitions.is_empty() {
            true => event,
            false => {
                mapped = self.settings.on_disk(event);
                &mapped
            }
        };
        // What other processors have told of within the hole may have ended in it.
        if self.hole_until_ns.is_some_and(|until| event.time_ns >= until) {
            self.hole_until_ns = None;
            for one in &mut self.devices {
                one.in_flight.forget();
                one.audit.forget();
            }
        }
        match event.action {
            Action::Enter(_) | Action::Exit(_) | Action::FileSync(_) | Action::FileSyncEnd => {
                self.call(event);
            }
            Action::Marker | Action::Message | Action::Other(_) => {}
            _ if event.device.is_some() => self.block(event),
            _ => {}
        }
    }

    /// Calls are of all devices, also of those that have no event yet.
    fn call(&mut self, event: &Event) {
        let open = self.open_calls.entry(event.pid).or_default();
        match event.action {
            Action::Enter(_) => *open = vec![*event],
            Action::FileSync(_) if open.len() < 4 => open.push(*event),
            Action::FileSyncEnd if open.iter().any(|first| matches!(first.action, Action::Enter(_))) => {}
            Action::FileSync(_) => {}
            _ => open.clear(),
        }
        if open.is_empty() || self.open_calls.len() > MOST_CALLS {
            self.open_calls.remove(&event.pid);
        }
        self.devices.iter_mut().for_each(|one| one.audit.call(event));
    }

    fn block(&mut self, event: &Event) {
        if self.devices.get(self.last).is_none_or(|one| one.device != event.device) {
            let place = self.devices.iter().position(|one| one.device == event.device);
            let Some(place) = place.or_else(|| self.add(event.device)) else {
                *self.by_device.entry(event.device).or_default() += 1;
                return;
            };
            self.last = place;
        }
        let journal = self.settings.journal;
        self.devices[self.last].block(event, journal);
    }

    /// Begins to analyse a device, unless another one was asked for or there are too many.
    fn add(&mut self, device: Device) -> Option<usize> {
        let wanted = self.settings.device.is_none_or(|wanted| wanted == device);
        if !wanted || self.devices.len() >= MOST_DEVICES {
            return None;
        }
        let audit = Audit::new(device, &self.settings);
        self.devices.push(OneDevice { device, audit, ..OneDevice::default() });
        let place = self.devices.len() - 1;
        self.known_holes.iter().flatten().for_each(|lost| self.devices[place].audit.lost(lost));
        self.open_calls.values().flatten().for_each(|event| self.devices[place].audit.call(event));
        Some(place)
    }

    /// What the trace says.
    ///
    /// # Errors
    /// There is no event; none of the device that was asked for; or too much is missing for any number.
    pub fn finish(mut self, names: &Names) -> Result<Summary, TraceError> {
        let seen = std::mem::take(&mut self.seen);
        if seen.events == 0 {
            return Err(TraceError::Empty);
        }
        for one in &self.devices {
            self.by_device.insert(one.device, one.events);
        }
        let present = || {
            let mut devices: Vec<(&Device, &u64)> = self.by_device.iter().collect();
            devices.sort_by_key(|(_, events)| std::cmp::Reverse(**events));
            let shown: Vec<String> = devices
                .iter()
                .take(8)
                .map(|(device, events)| format!("{device} ({events} events)"))
                .collect();
            if shown.is_empty() { "no block events at all".to_owned() } else { shown.join(", ") }
        };
        // Of devices with equally many events the first is taken.
        let chosen = match self.settings.device {
            Some(wanted) => self.devices.iter().position(|one| one.device == wanted),
            None => (0..self.devices.len()).rev().max_by_key(|place| self.devices[*place].events),
        };
        let Some(chosen) = chosen else {
            return Err(match self.settings.device {
                Some(wanted) => TraceError::OtherDevice { wanted, present: present() },
                None => TraceError::NoBlockEvents { events: seen.events },
            });
        };
        let by_device = self.by_device.iter().map(|(device, events)| (device.to_string(), *events)).collect();
        let one = self.devices.swap_remove(chosen);
        // What is known to be missing explains completions without an issue; without one a whole CPU, or the like, is missing.
        if self.holes == 0
            && self.unwritten_events == 0
            && one.issues > 0
            // As many as are in flight at once may have been when the trace began.
            && one.orphans > FEW_ORPHANS.max(one.in_flight.deepest)
            && one.orphans > one.completions / 10
        {
            return Err(TraceError::Incomplete {
                device: one.device,
                orphans: one.orphans,
                completions: one.completions,
            });
        }
        let totals = Totals {
            events: seen.events,
            duration_ns: seen.last_ns - seen.first_ns,
            cpus: seen.cpus.count(),
            holes: self.holes,
            lost_events: self.lost_events,
            lost_unknown: self.lost_unknown,
            unwritten_events: self.unwritten_events,
            by_kind: seen.by_kind(names),
            by_device,
        };
        let device = one.finish(&self.settings, seen.first_ns);
        Ok(Summary { totals, device })
    }
}

impl OneDevice {
    fn block(&mut self, event: &Event, journal: Option<JournalRange>) {
        self.events += 1;
        self.counts.add(event, journal);
        match event.action {
            Action::Queue => {
                let call = self.audit.queue(event);
                if self.in_flight.queue(event, Class::of(event.flags, event.sectors), call) {
                    self.audit.beside_another(event.pid);
                }
            }
            Action::Insert if event.sectors > 0 => self.in_flight.insert(event),
            Action::Issue => self.issue(event),
            Action::Requeue => {
                let was_issued = self.in_flight.requeue(event);
                self.counts.requeue(event, was_issued);
                self.audit.requeue(event);
            }
            Action::Complete | Action::BioComplete => self.complete(event),
            _ => {}
        }
    }

    fn issue(&mut self, event: &Event) {
        self.issues += 1;
        self.audit.issue(event);
        if event.sectors > 0
            && let Some(waited_ns) = self.in_flight.issue(event)
        {
            self.times.record(Class::of(event.flags, event.sectors), Stage::I2d, waited_ns);
        }
    }

    fn complete(&mut self, event: &Event) {
        if event.flags.operation == Operation::Flush {
            if let Some(took_ns) = self.audit.flush_complete(event) {
                self.times.record(Class::FlushCommand, Stage::D2c, took_ns);
            }
            return;
        }
        // Requests lose the flag in front of them before they are issued: with it, this is a bio's completion.
        let is_bio = event.action == Action::BioComplete || (event.flags.writes() && event.flags.preflush());
        let completed = self.in_flight.complete(event, is_bio);
        let mut served = None;
        if let Completed::Data(request) = completed {
            if !is_bio && event.flags.operation.moves_data() {
                self.completions += 1;
                self.orphans += u64::from(request.is_none());
            }
            served = request;
        }
        let data = matches!(completed, Completed::Data(_));
        if let Some(request) = served {
            let class = Class::of(event.flags, event.sectors);
            self.times.record(class, Stage::D2c, event.time_ns.saturating_sub(request.issued_ns));
        }
        for (bio, ended) in &self.in_flight.ended {
            self.audit.bio(bio, event, data, *ended, is_bio);
            if let Some(request) = served.filter(|_| data) {
                let after =
                    |time_ns: Option<u64>| time_ns.and_then(|time_ns| time_ns.checked_sub(bio.queued_ns));
                // A bio that was merged after the insertion has no such stage.
                if let Some(waited_ns) = after(request.inserted_ns) {
                    self.times.record(bio.class, Stage::Q2i, waited_ns);
                }
                if let Some(waited_ns) = after(Some(request.issued_ns)) {
                    self.times.record(bio.class, Stage::Q2d, waited_ns);
                }
            }
            if *ended {
                self.times.record(bio.class, Stage::Q2c, event.time_ns.saturating_sub(bio.queued_ns));
            }
        }
    }

    fn finish(self, settings: &Settings, first_ns: u64) -> DeviceSummary {
        let requests = self.counts.reads_issued + self.counts.writes_issued;
        let audit = self.audit.finish(first_ns, self.in_flight.write_beside_another);
        let calls = audit.calls + audit.failed_calls;
        let asked = settings.asked_bytes.filter(|asked| *asked > 0);
        DeviceSummary {
            device: self.device.to_string(),
            events: self.events,
            merge_ratio: self.counts.merge_ratio(),
            sequential_share: (requests > 0)
                .then(|| self.counts.sequential_requests as f64 / requests as f64),
            write_amplification: asked.map(|asked| self.counts.bytes_written() as f64 / asked as f64),
            flush_commands_per_call: (calls > 0).then(|| self.counts.flush_commands as f64 / calls as f64),
            latencies: self.times.summary(),
            reads: self.times.of(&Class::READS),
            writes: self.times.of(&Class::WRITES),
            unfinished: self.in_flight.unfinished() + self.in_flight.given_up,
            unfinished_beside_another: self.in_flight.unfinished_beside_another(),
            without_issue: self.orphans,
            audit,
            counts: self.counts,
        }
    }
}
