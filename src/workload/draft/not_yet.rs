//! Options that are read but that the native engine does not follow yet: they are refused as before.
//!
//! Whoever makes one work takes its line out, and its defaults out of `tolerated`.

/// `option`, or `option=value` where only that value is missing.
const NOT_YET: &[&str] = &[
    // Methods and what they can be told.
    "ioengine=pvsync",
    "ioengine=pvsync2",
    "ioengine=mmap",
    "hipri",
    "hipri_percentage",
    "nowait",
    // Files, memory, processors.
    "sync_file_range",
    "fsync_on_close",
    "create_on_open",
    "unlink",
    "file_append",
    "exitall",
    "cpus_allowed_policy",
    "numa_cpu_nodes",
];

/// Whether this option, or with a value `option=value`, does not work yet.
pub(in crate::workload) fn is_not_yet(option: &str) -> bool {
    NOT_YET.contains(&option)
}
