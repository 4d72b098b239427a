//! What a block device has done, from `/sys/block/*/stat` (Documentation/block/stat.rst).
//!
//! Enters: the text of that file. Leaves: its counters, sectors as bytes. It must not know which device.

/// The counters of `/sys/block/*/stat` (Documentation/block/stat.rst): everything the device did since it appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Reads completed.
    pub read_ios: u64,
    /// Reads merged into others.
    pub read_merges: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Milliseconds that reads took, added up.
    pub read_ms: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Writes merged into others.
    pub write_merges: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Milliseconds that writes took, added up.
    pub write_ms: u64,
    /// I/Os on their way now.
    pub in_flight: u64,
    /// Milliseconds with any I/O on its way.
    pub busy_ms: u64,
    /// Milliseconds times I/Os on their way.
    pub queue_ms: u64,
    /// Discards completed; 0 before Linux 4.18.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Flushes completed; `None` before Linux 5.5.
    pub flushes: Option<u64>,
    /// Milliseconds that flushes took, added up.
    pub flush_ms: Option<u64>,
}

impl DeviceCounters {
    /// What the file holds; `None` when it is not such a file.
    #[must_use]
    pub fn parse(stat: &str) -> Option<DeviceCounters> {
        let fields: Vec<u64> = stat.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let field = |index: usize| fields.get(index).copied();
        // A sector here is 512 bytes whatever the device's own is.
        let bytes = |index: usize| field(index).map(|sectors| sectors.saturating_mul(512));
        Some(DeviceCounters {
            read_ios: field(0)?,
            read_merges: field(1)?,
            read_bytes: bytes(2)?,
            read_ms: field(3)?,
            write_ios: field(4)?,
            write_merges: field(5)?,
            write_bytes: bytes(6)?,
            write_ms: field(7)?,
            in_flight: field(8)?,
            busy_ms: field(9)?,
            queue_ms: field(10)?,
            discards: field(11).unwrap_or(0),
            discard_bytes: bytes(13).unwrap_or(0),
            flushes: field(15),
            flush_ms: field(16),
        })
    }
}
