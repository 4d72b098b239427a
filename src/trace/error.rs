//! Why a trace is not read, each with the place and what helps.

use std::path::PathBuf;

use super::event::Device;

/// Why a trace is not read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("cannot read {name}: {reason}")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system says.
        reason: String,
    },
    /// Not a trace.
    #[error("{name} is not a trace that assay knows: {reason}")]
    Foreign {
        /// The file.
        name: String,
        /// What was found instead.
        reason: String,
    },
    /// The file ends within a record.
    #[error("{name} is truncated: it ends within {what} at byte {at}")]
    Truncated {
        /// The file.
        name: String,
        /// What is cut.
        what: &'static str,
        /// Where that begins.
        at: u64,
    },
    /// A record or a line is not what it should be.
    #[error("{name} is damaged at {place}: {what}")]
    Damaged {
        /// The file.
        name: String,
        /// The byte or line.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// Time goes backwards.
    #[error("events of {name} are out of order: {place} is {by_ns} ns before the event in front of it")]
    OutOfOrder {
        /// The file.
        name: String,
        /// The byte or line.
        place: String,
        /// By how much.
        by_ns: u64,
    },
    /// A processor's file lies beside the others.
    #[error("the file of CPU {cpu} is missing: {}", path.display())]
    CpuLeftOut {
        /// The processor.
        cpu: u32,
        /// Its file.
        path: PathBuf,
        /// Whether the file exists and only was not named.
        exists: bool,
    },
    /// Two files are of one processor.
    #[error("{first} and {second} are both of CPU {cpu}")]
    CpuTwice {
        /// The processor.
        cpu: u32,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// Files of different tools.
    #[error("{first} is {first_form}, {second} is {second_form}: one trace has one form")]
    MixedForms {
        /// One file.
        first: String,
        /// What it is.
        first_form: &'static str,
        /// The other.
        second: String,
        /// What that is.
        second_form: &'static str,
    },
    /// Raw pages without the layouts of their events.
    #[error("{name} holds raw ring-buffer pages, and the layouts of its events are not there: {reason}")]
    NoFormats {
        /// The file.
        name: String,
        /// What was looked for.
        reason: String,
    },
    /// A directory that shall have layouts and has none.
    #[error("{name} has no event layouts: {reason}")]
    NoLayouts {
        /// The directory.
        name: String,
        /// What was looked for.
        reason: String,
    },
    /// A layout that cannot be read.
    #[error("the event layout {name} cannot be used: {what}")]
    BadFormat {
        /// The layout's file.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// No event at all.
    #[error("the trace has no events")]
    Empty,
    /// Events, but none of a block device.
    #[error("none of the trace's {events} events is of a block device")]
    NoBlockEvents {
        /// How many there are.
        events: u64,
    },
    /// A device that the trace does not have.
    #[error("the trace has no events of device {wanted}; it has {present}")]
    OtherDevice {
        /// What was asked for.
        wanted: Device,
        /// Devices with their counts.
        present: String,
    },
    /// Too much is missing for any number.
    #[error(
        "{orphans} of {completions} completions on {device} have no issue in the trace: events of a CPU or of a time are missing"
    )]
    Incomplete {
        /// The device.
        device: Device,
        /// Completions without an issue.
        orphans: u64,
        /// All completions.
        completions: u64,
    },
}

impl TraceError {
    /// What helps.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            TraceError::Unreadable { .. } => {
                "name a trace's files, or NAME of NAME.blktrace.0 …; `assay help traces` says how they are recorded".to_owned()
            }
            TraceError::Foreign { .. } => {
                "known are .blktrace.N, raw ring-buffer pages, and the text of blkparse, perf script and tracefs".to_owned()
            }
            TraceError::Truncated { .. } => "copy the file again, or record again with more room".to_owned(),
            TraceError::Damaged { .. } => "record the trace again".to_owned(),
            TraceError::OutOfOrder { .. } => {
                "sort it: blkparse -i writes in order; perf script without --max-events; one file a CPU".to_owned()
            }
            TraceError::CpuLeftOut { path, exists: true, .. } => format!("name {} too", path.display()),
            TraceError::CpuLeftOut { path, cpu, exists: false } => {
                format!("if CPU {cpu} was offline, an empty file {} says so", path.display())
            }
            TraceError::CpuTwice { .. } | TraceError::MixedForms { .. } => {
                "name the files of one trace only, each once".to_owned()
            }
            TraceError::NoFormats { .. } | TraceError::NoLayouts { .. } => {
                "copy header_page and events/*/*/format of the traced kernel beside it, or name their directory with --formats"
                    .to_owned()
            }
            TraceError::BadFormat { .. } => "copy it from events/*/*/format of the traced kernel again".to_owned(),
            TraceError::NoBlockEvents { .. } => "trace block:block_bio_queue, block_rq_issue and block_rq_complete".to_owned(),
            TraceError::Empty => "trace while the device is in use".to_owned(),
            TraceError::OtherDevice { .. } => "name one of these with --device".to_owned(),
            TraceError::Incomplete { .. } => "give the files of all CPUs, or record again with larger buffers".to_owned(),
        }
    }
}
