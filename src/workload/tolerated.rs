//! Options the native engine may pass over: they change no I/O, or they ask for what it does anyway.
//!
//! Enters: a canonical name and value. Leaves: yes or no. An option whose absence would change what is measured or
//! what is left behind is never passed over.

/// They shape fio's own output or log files' resolution, or permit what assay judges for itself. Those that spare fio
/// reading the clock spare the native engine nothing: it records every latency all the same.
const ALWAYS: &[&str] = &[
    "bwavgtime", "clat_percentiles", "clocksource", "create_serialize", "description",
    "disable_bw_measurement", "disable_clat", "disable_lat", "disable_slat", "disk_util", "gtod_reduce",
    "iopsavgtime", "kb_base", "lat_percentiles", "log_avg_msec", "log_compression", "log_hist_coarseness",
    "log_hist_msec", "log_max_value", "log_offset", "log_prio", "log_unix_epoch", "per_job_logs",
    "percentile_list", "slat_percentiles", "softrandommap", "unit_base",
];

/// Settings that only state fio's default, which is what the native engine does.
const DEFAULTS: &[(&str, &[&str])] = &[
    ("allow_file_create", &["1"]),
    ("atomic", &["0"]),
    ("bs_unaligned", &["0"]),
    ("continue_on_error", &["none"]),
    ("create_fsync", &["1"]),
    ("create_only", &["0"]),
    ("dedupe_mode", &["repeat"]),
    ("exit_what", &["group"]),
    ("exitall_on_error", &["0"]),
    ("experimental_verify", &["0"]),
    ("filename_format", &["$jobname.$jobnum.$filenum"]),
    ("fill_device", &["0"]),
    ("latency_run", &["0"]),
    ("lockfile", &["none"]),
    ("max_latency", &["0"]),
    ("nice", &["0"]),
    ("random_generator", &["tausworthe"]),
    ("rate_ignore_thinktime", &["0"]),
    ("rw_sequencer", &["sequential"]),
    ("serialize_overlap", &["0"]),
    ("thinktime_blocks_type", &["complete"]),
    ("thinktime_iotime", &["0"]),
    ("unified_rw_reporting", &["0", "none"]),
    ("unlink_each_loop", &["0"]),
    ("userspace_reap", &["0"]),
    ("verify_async", &["0"]),
    ("verify_dump", &["0"]),
    ("verify_offset", &["0"]),
    ("verify_state_load", &["0"]),
    ("verify_state_save", &["0"]),
    ("zonemode", &["none"]),
];

/// Whether the native engine does the same with and without this setting.
pub(super) fn is_tolerated(name: &str, value: Option<&str>) -> bool {
    ALWAYS.contains(&name)
        || DEFAULTS
            .iter()
            .any(|(known, values)| *known == name && value.is_some_and(|value| values.contains(&value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::fio_option;

    #[test]
    fn only_defaults_pass() {
        assert!(is_tolerated("description", Some("x")));
        assert!(is_tolerated("max_latency", Some("0")) && !is_tolerated("max_latency", Some("1")));
        assert!(!is_tolerated("unlink", Some("1")) && !is_tolerated("write_bw_log", Some("x")));
        assert!(!is_tolerated("exitall", None));
    }

    #[test]
    fn every_name_is_one_of_fios() {
        for name in ALWAYS.iter().chain(DEFAULTS.iter().map(|(name, _)| name)) {
            assert_eq!(fio_option(name).map(|option| option.name), Some(*name), "{name}");
        }
    }
}
