//! What an analysis is told beside the trace, and what it says at the end.
//!
//! Enters: nothing. Leaves: the types.

use std::collections::BTreeMap;

use serde::Serialize;

use super::class::Class;
use super::counts::Counts;
use super::event::{Device, Event, Filesystem};
use super::times::{Quantiles, Stage};
use super::verdict::{AuditSummary, JournalRange, WriteCache};

/// What is known beside the trace.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The device to report; without it the one with most events.
    pub device: Option<Device>,
    /// The filesystem on it.
    pub filesystem: Option<Filesystem>,
    /// Where its journal lies.
    pub journal: Option<JournalRange>,
    /// The sector of the disk at which it begins: the start of its partition.
    pub starts_at: u64,
    /// What its queue said of its cache.
    pub write_cache: Option<WriteCache>,
    /// Hardware queues of the device, where they are known.
    pub queues: Option<u32>,
    /// Bytes that programs asked to be written.
    pub asked_bytes: Option<u64>,
    /// Partitions and the disks they are on: bios name the one, requests the other.
    pub partitions: Vec<(Device, Device)>,
}

impl Settings {
    /// An event of a partition as one of its disk.
    #[must_use]
    pub fn on_disk(&self, event: &Event) -> Event {
        let disk = self.partitions.iter().find(|(part, _)| *part == event.device).map(|(_, disk)| *disk);
        Event { device: disk.unwrap_or(event.device), ..*event }
    }
}

/// What is counted of the whole trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Events, whatever they are.
    pub events: u64,
    /// Nanoseconds from the first to the last.
    pub duration_ns: u64,
    /// Processors with events.
    pub cpus: u64,
    /// Holes in the trace.
    pub holes: u64,
    /// Events lost in them, as far as it is known.
    pub lost_events: u64,
    /// Whether the size of some hole is not known.
    pub lost_unknown: bool,
    /// Events that the kernel counted and of which it wrote no record, nobody knows where.
    pub unwritten_events: u64,
    /// Events by what happened, those with names by their names.
    pub by_kind: BTreeMap<String, u64>,
    /// Events by device.
    pub by_device: BTreeMap<String, u64>,
}

/// What is said of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// `7:1`.
    pub device: String,
    /// Its events.
    pub events: u64,
    /// Bios, requests, bytes.
    pub counts: Counts,
    /// Bios with data a request with data.
    pub merge_ratio: Option<f64>,
    /// Share of requests with data that begin where the one before ended.
    pub sequential_share: Option<f64>,
    /// Bytes written to the device for each byte asked for, where that is known.
    pub write_amplification: Option<f64>,
    /// Flush commands for each audited call, where the trace has any.
    pub flush_commands_per_call: Option<f64>,
    /// By class and stage.
    pub latencies: BTreeMap<Class, BTreeMap<Stage, Quantiles>>,
    /// All reads taken together, by stage; JSON has the classes.
    #[serde(skip)]
    pub reads: BTreeMap<Stage, Quantiles>,
    /// All writes with data.
    #[serde(skip)]
    pub writes: BTreeMap<Stage, Quantiles>,
    /// Bios whose end is not in the trace.
    pub unfinished: u64,
    /// Of them those that had the sectors of another one in flight: the end of one may have been taken for that of the other.
    pub unfinished_beside_another: u64,
    /// Completions whose issue is not in the trace.
    pub without_issue: u64,
    /// The audit of flushes.
    pub audit: AuditSummary,
}

/// What a trace says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Of the whole trace.
    pub totals: Totals,
    /// Of the chosen device.
    pub device: DeviceSummary,
}
