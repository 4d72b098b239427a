//! What counts work, and for what of the load: such a metric has forms, `usr_cpu_per_op` or `dev.write_bytes_per_byte`, which say more
//! where arms did different amounts of work.
//!
//! Enters: a metric's name. Leaves: its forms. fsync and its like are no operations.

const OPERATIONS: [&str; 3] = ["read.total_ios", "write.total_ios", "trim.total_ios"];
const BYTES: [&str; 3] = ["read.io_bytes", "write.io_bytes", "trim.io_bytes"];

/// One form of a metric: its value for each of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How its name ends, behind the metric's.
    pub end: &'static str,
    /// What it is divided by: the sum of these of the load.
    pub amounts: &'static [&'static str],
    /// Where it is listed; it can decide everywhere.
    pub listed: Listed,
}

impl Form {
    /// Whether it is for each of what the engine itself calls an operation, or a file.
    #[must_use]
    pub fn is_of_the_engine(&self) -> bool {
        self.amounts == COUNTED.amounts
    }
}

/// Where a form says something of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Everywhere.
    Always,
    /// Where operations had different sizes.
    WhereSizesDiffer,
    /// Where it is asked for by name.
    OnRequest,
}

/// For each operation of any direction.
const PER_OPERATION: Form = Form { end: "_per_op", amounts: &OPERATIONS, listed: Listed::Always };

/// The same where the engine counts operations itself (dbench), or the files that it made (fs_mark).
const COUNTED: Form = Form { amounts: &["operations", "files"], ..PER_OPERATION };

/// For each operation, whoever counts it.
pub const OF_ANY: [Form; 2] = [PER_OPERATION, COUNTED];
const OF_ANY_SIZE: [Form; 3] =
    [PER_OPERATION, COUNTED, Form { end: "_per_byte", amounts: &BYTES, listed: Listed::WhereSizesDiffer }];
const PER_READ: Form = Form { end: "_per_op", amounts: &["read.total_ios"], listed: Listed::Always };
const PER_WRITE: Form = Form { end: "_per_op", amounts: &["write.total_ios"], listed: Listed::Always };
const READS: [Form; 2] = [PER_READ, COUNTED];
const WRITES: [Form; 2] = [PER_WRITE, COUNTED];
const READ_BYTES: [Form; 3] = [
    COUNTED,
    Form { end: "_per_byte", amounts: &["read.io_bytes"], listed: Listed::Always },
    Form { listed: Listed::OnRequest, ..PER_READ },
];
const WRITTEN_BYTES: [Form; 3] = [
    COUNTED,
    Form { end: "_per_byte", amounts: &["write.io_bytes"], listed: Listed::Always },
    Form { listed: Listed::OnRequest, ..PER_WRITE },
];

/// What observers count whose names are fixed.
const WATCHED: [&str; 18] = [
    "locks.wait_time", "locks.waits", "cpu.user_time", "cpu.kernel_time", "waits.sleep_time",
    "waits.storage_time", "waits.wakeup_time", "waits.sleeps", "blocks.read_bios", "blocks.write_bios",
    "blocks.read_requests", "blocks.write_requests", "blocks.merges", "blocks.flushes", "blocks.flush_time",
    "blocks.fua_writes", "blocks.metadata_bytes", "blocks.journal_bytes",
];

/// How the names begin of what the device, the machine and observers count: it includes a ramp (`ramp_time`), which operations do not.
const WITH_RAMP: [&str; 8] = ["dev.", "machine.", "blocks.", "locks.", "waits.", "cpu.", "fs.", "events"];

/// Whether a count of a trial with a ramp includes it, so that nothing may be divided by what the job did.
#[must_use]
pub fn includes_a_ramp(metric: &str) -> bool {
    WITH_RAMP.iter().any(|beginning| metric.starts_with(beginning))
}

/// The forms of a metric with a fixed name.
#[must_use]
pub fn forms_of(metric: &str) -> &'static [Form] {
    match metric {
        "usr_cpu" | "sys_cpu" | "ctx" | "ctx.voluntary" | "ctx.involuntary" | "dev.flushes" => &OF_ANY_SIZE,
        "dev.read_ios" => &READS,
        "dev.write_ios" => &WRITES,
        "dev.read_bytes" => &READ_BYTES,
        "dev.write_bytes" => &WRITTEN_BYTES,
        watched if WATCHED.contains(&watched) => &OF_ANY,
        _ => &[],
    }
}
