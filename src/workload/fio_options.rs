//! Every option of fio, so that a name nobody knows is told from one that only the native engine lacks.
//!
//! Enters: a name as written in a job. Leaves: its canonical name and whether it may stand without a value. Taken from
//! `fio --cmdhelp`, `fio --enghelp=ENGINE` of fio 3.33, and what later releases added.

use Takes::{Flag, Value};

/// Whether an option may stand without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Empty or 0 or 1.
    Flag,
    /// A value is needed.
    Value,
}

/// One option of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioOption {
    /// The name fio's help lists.
    pub name: &'static str,
    /// The other name, empty when there is none.
    pub alias: &'static str,
    /// Whether it may stand without a value.
    pub takes: Takes,
}

/// The option of this name or alias. Names are case-sensitive, as in fio.
#[must_use]
pub fn fio_option(name: &str) -> Option<FioOption> {
    OPTIONS
        .iter()
        .find(|(known, alias, _)| *known == name || (!alias.is_empty() && *alias == name))
        .map(|&(name, alias, takes)| FioOption { name, alias, takes })
}

/// All names and aliases.
pub fn fio_option_names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().flat_map(|&(name, alias, _)| [name, alias]).filter(|name| !name.is_empty())
}

/// The known names nearest to `name`, best first, at most `count`; names too far away are left out.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let wanted = name.to_ascii_lowercase();
    let mut scored: Vec<(usize, &str)> = known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (wanted.len().max(candidate.len()) / 2).clamp(1, 3))
        .collect();
    scored.sort();
    scored.dedup();
    scored.truncate(count);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

#[rustfmt::skip]
const OPTIONS: &[(&str, &str, Takes)] = &[
    ("description", "", Value),
    ("name", "", Value),
    ("wait_for", "", Value),
    ("filename", "", Value),
    ("lockfile", "", Value),
    ("directory", "", Value),
    ("filename_format", "", Value),
    ("unique_filename", "", Value),
    ("opendir", "", Value),
    ("rw", "readwrite", Value),
    ("bs", "blocksize", Value),
    ("ba", "blockalign", Value),
    ("bsrange", "blocksize_range", Value),
    ("bssplit", "", Value),
    ("bs_unaligned", "blocksize_unaligned", Flag),
    ("randrepeat", "", Value),
    ("randseed", "", Value),
    ("norandommap", "", Flag),
    ("ignore_error", "", Value),
    ("rw_sequencer", "", Value),
    ("ioengine", "", Value),
    ("iodepth", "", Value),
    ("iodepth_batch", "iodepth_batch_submit", Value),
    ("iodepth_batch_complete_min", "iodepth_batch_complete", Value),
    ("iodepth_batch_complete_max", "", Value),
    ("iodepth_low", "", Value),
    ("serialize_overlap", "", Value),
    ("io_submit_mode", "", Value),
    ("size", "", Value),
    ("io_size", "io_limit", Value),
    ("fill_device", "fill_fs", Value),
    ("filesize", "", Value),
    ("file_append", "", Value),
    ("offset", "fileoffset", Value),
    ("offset_increment", "", Value),
    ("offset_align", "", Value),
    ("number_ios", "", Value),
    ("random_generator", "", Value),
    ("random_distribution", "", Value),
    ("percentage_random", "", Value),
    ("allrandrepeat", "", Value),
    ("nrfiles", "nr_files", Value),
    ("file_service_type", "", Value),
    ("openfiles", "", Value),
    ("fallocate", "", Value),
    ("fadvise_hint", "", Value),
    ("fsync", "", Value),
    ("fdatasync", "", Value),
    ("write_barrier", "", Value),
    ("sync_file_range", "", Value),
    ("direct", "", Value),
    ("atomic", "", Value),
    ("buffered", "", Value),
    ("overwrite", "", Value),
    ("loops", "", Value),
    ("numjobs", "", Value),
    ("startdelay", "", Value),
    ("runtime", "timeout", Value),
    ("time_based", "", Flag),
    ("verify_only", "", Flag),
    ("ramp_time", "", Value),
    ("clocksource", "", Value),
    ("mem", "iomem", Value),
    ("verify", "", Value),
    ("do_verify", "", Value),
    ("verify_interval", "", Value),
    ("verify_offset", "", Value),
    ("verify_pattern", "", Value),
    ("verify_fatal", "", Value),
    ("verify_dump", "", Value),
    ("verify_async", "", Value),
    ("verify_backlog", "", Value),
    ("verify_backlog_batch", "", Value),
    ("experimental_verify", "", Value),
    ("verify_state_load", "", Value),
    ("verify_state_save", "", Value),
    ("trim_percentage", "", Value),
    ("trim_verify_zero", "", Value),
    ("trim_backlog", "", Value),
    ("trim_backlog_batch", "", Value),
    ("write_iolog", "", Value),
    ("read_iolog", "", Value),
    ("read_iolog_chunked", "", Value),
    ("replay_no_stall", "", Value),
    ("replay_redirect", "", Value),
    ("replay_scale", "", Value),
    ("replay_align", "", Value),
    ("replay_time_scale", "", Value),
    ("replay_skip", "", Value),
    ("merge_blktrace_file", "", Value),
    ("merge_blktrace_scalars", "", Value),
    ("merge_blktrace_iters", "", Value),
    ("exec_prerun", "", Value),
    ("exec_postrun", "", Value),
    ("ioscheduler", "", Value),
    ("zonemode", "", Value),
    ("zonesize", "", Value),
    ("zonecapacity", "", Value),
    ("zonerange", "", Value),
    ("zoneskip", "", Value),
    ("read_beyond_wp", "", Value),
    ("max_open_zones", "", Value),
    ("job_max_open_zones", "", Value),
    ("ignore_zone_limits", "", Value),
    ("zone_reset_threshold", "", Value),
    ("zone_reset_frequency", "", Value),
    ("lockmem", "", Value),
    ("rwmixread", "", Value),
    ("rwmixwrite", "", Value),
    ("nice", "", Value),
    ("prio", "", Value),
    ("prioclass", "", Value),
    ("thinktime", "", Value),
    ("thinktime_spin", "", Value),
    ("thinktime_blocks", "", Value),
    ("thinktime_blocks_type", "", Value),
    ("thinktime_iotime", "", Value),
    ("rate", "", Value),
    ("rate_min", "ratemin", Value),
    ("rate_process", "", Value),
    ("rate_cycle", "ratecycle", Value),
    ("rate_ignore_thinktime", "", Value),
    ("rate_iops", "", Value),
    ("rate_iops_min", "", Value),
    ("max_latency", "", Value),
    ("latency_target", "", Value),
    ("latency_window", "", Value),
    ("latency_percentile", "", Value),
    ("latency_run", "", Value),
    ("invalidate", "", Value),
    ("sync", "", Value),
    ("write_hint", "", Value),
    ("create_serialize", "", Value),
    ("create_fsync", "", Value),
    ("create_on_open", "", Value),
    ("create_only", "", Value),
    ("allow_file_create", "", Value),
    ("allow_mounted_write", "", Value),
    ("pre_read", "", Value),
    ("cpumask", "", Value),
    ("cpus_allowed", "", Value),
    ("cpus_allowed_policy", "", Value),
    ("numa_cpu_nodes", "", Value),
    ("numa_mem_policy", "", Value),
    ("end_fsync", "", Value),
    ("fsync_on_close", "", Value),
    ("unlink", "", Value),
    ("unlink_each_loop", "", Value),
    ("exitall", "", Flag),
    ("exit_what", "", Value),
    ("exitall_on_error", "", Flag),
    ("stonewall", "wait_for_previous", Flag),
    ("new_group", "", Flag),
    ("thread", "", Flag),
    ("per_job_logs", "", Value),
    ("write_bw_log", "", Value),
    ("bwavgtime", "", Value),
    ("write_lat_log", "", Value),
    ("write_iops_log", "", Value),
    ("iopsavgtime", "", Value),
    ("log_entries", "", Value),
    ("log_avg_msec", "", Value),
    ("log_hist_msec", "", Value),
    ("log_hist_coarseness", "", Value),
    ("write_hist_log", "", Value),
    ("log_max_value", "", Value),
    ("log_offset", "", Value),
    ("log_prio", "", Value),
    ("log_compression", "", Value),
    ("log_compression_cpus", "", Value),
    ("log_store_compressed", "", Value),
    ("log_unix_epoch", "", Value),
    ("log_alternate_epoch", "", Value),
    ("log_alternate_epoch_clock_id", "", Value),
    ("block_error_percentiles", "", Value),
    ("group_reporting", "", Flag),
    ("stats", "", Value),
    ("zero_buffers", "", Flag),
    ("refill_buffers", "", Flag),
    ("scramble_buffers", "", Value),
    ("buffer_pattern", "", Value),
    ("buffer_compress_percentage", "", Value),
    ("buffer_compress_chunk", "", Value),
    ("dedupe_percentage", "", Value),
    ("dedupe_mode", "", Value),
    ("dedupe_working_set_percentage", "", Value),
    ("dedupe_global", "", Value),
    ("clat_percentiles", "", Value),
    ("lat_percentiles", "", Value),
    ("slat_percentiles", "", Value),
    ("percentile_list", "", Value),
    ("significant_figures", "", Value),
    ("disk_util", "", Value),
    ("gtod_reduce", "", Value),
    ("disable_lat", "", Value),
    ("disable_clat", "", Value),
    ("disable_slat", "", Value),
    ("disable_bw_measurement", "disable_bw", Value),
    ("gtod_cpu", "", Value),
    ("unified_rw_reporting", "", Value),
    ("continue_on_error", "", Value),
    ("error_dump", "", Value),
    ("profile", "", Value),
    ("cgroup", "", Value),
    ("cgroup_nodelete", "", Value),
    ("cgroup_weight", "", Value),
    ("uid", "", Value),
    ("gid", "", Value),
    ("kb_base", "", Value),
    ("unit_base", "", Value),
    ("flow_id", "", Value),
    ("flow", "", Value),
    ("flow_sleep", "", Value),
    ("steadystate", "ss", Value),
    ("steadystate_duration", "ss_dur", Value),
    ("steadystate_ramp_time", "ss_ramp", Value),
    ("hugepage-size", "", Value),
    // Accepted by fio, absent from its help.
    ("softrandommap", "", Value),
    ("verifysort", "", Value),
    ("verifysort_nr", "", Value),
    ("flow_watermark", "", Value),
    // Options of single I/O engines.
    ("single-instance", "", Value),
    ("arguments", "", Value),
    ("bindname", "", Value),
    ("brick", "", Value),
    ("busy_poll", "", Value),
    ("clientname", "", Value),
    ("clustername", "", Value),
    ("cmd_type", "", Value),
    ("cmdprio", "", Value),
    ("cmdprio_bssplit", "", Value),
    ("cmdprio_class", "", Value),
    ("cmdprio_percentage", "", Value),
    ("conf", "", Value),
    ("cpuchunks", "", Value),
    ("cpuload", "", Value),
    ("cpumode", "", Value),
    ("donorname", "", Value),
    ("exit_on_io_done", "", Value),
    ("fixedbufs", "", Flag),
    ("force_async", "", Value),
    ("grace_time", "", Value),
    ("hipri", "", Flag),
    ("hipri_percentage", "", Value),
    ("hostname", "", Value),
    ("inplace", "", Value),
    ("interface", "", Value),
    ("listen", "", Flag),
    ("mss", "", Value),
    ("nodelay", "", Value),
    ("nonvectored", "", Value),
    ("nowait", "", Value),
    ("pingpong", "", Flag),
    ("pool", "", Value),
    ("port", "", Value),
    ("program", "", Value),
    ("protocol", "proto", Value),
    ("rbdname", "", Value),
    ("readfua", "", Value),
    ("registerfiles", "", Flag),
    ("sg_write_mode", "", Value),
    ("skip_bad", "", Value),
    ("sqthread_poll", "", Flag),
    ("sqthread_poll_cpu", "", Value),
    ("stat_type", "", Value),
    ("std_redirect", "", Value),
    ("stream_id", "", Value),
    ("thp", "", Value),
    ("touch_objects", "", Value),
    ("ttl", "", Value),
    ("uncached", "", Value),
    ("uri", "", Value),
    ("userspace_reap", "", Flag),
    ("verb", "proto", Value),
    ("volume", "", Value),
    ("window_size", "", Value),
    ("writefua", "", Value),
    // Later than 3.33.
    ("steadystate_check_interval", "ss_interval", Value),
    ("recover_zbd_write_error", "", Value),
    ("fdp", "", Value),
    ("fdp_pli", "", Value),
    ("plid_select", "", Value),
    ("plids", "", Value),
    ("dataplacement", "", Value),
    ("dp_scheme", "", Value),
    ("num_range", "", Value),
    ("log_window_value", "", Value),
    ("verify_header_seed", "", Value),
    ("verify_pattern_interval", "", Value),
    ("verify_write_sequence", "", Value),
    ("write_mode", "", Value),
    ("verify_mode", "", Value),
    ("md_per_io_size", "", Value),
    ("pi_act", "", Value),
    ("pi_chk", "", Value),
    ("apptag", "", Value),
    ("apptag_mask", "", Value),
    ("deac", "", Value),
    ("log_issue_time", "", Value),
    ("cmdprio_hint", "", Value),
    ("cmdprio_hint_percentage", "", Value),
    ("http_mode", "", Value),
    ("http_host", "", Value),
    ("http_user", "", Value),
    ("http_pass", "", Value),
    ("https", "", Value),
    ("http_s3_key", "", Value),
    ("http_s3_keyid", "", Value),
    ("http_s3_region", "", Value),
    ("http_verbose", "", Value),
    ("namenode", "", Value),
    ("libblkio_driver", "", Value),
    ("libblkio_path", "", Value),
    ("libblkio_pre_connect_props", "", Value),
    ("memfree_immediate", "", Value),
    ("xnvme_async", "", Value),
    ("xnvme_sync", "", Value),
    ("xnvme_admin", "", Value),
    ("xnvme_dev_nsid", "", Value),
    ("xnvme_iovec", "", Value),
    ("sprandom", "", Value),
    ("prio_hint", "", Value),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_lead_to_the_option() {
        assert_eq!(fio_option("blocksize").map(|option| option.name), Some("bs"));
        assert_eq!(fio_option("wait_for_previous").map(|option| option.name), Some("stonewall"));
        assert_eq!(fio_option("stonewall").map(|option| option.takes), Some(Flag));
        assert_eq!(fio_option("direct").map(|option| option.takes), Some(Value));
        assert_eq!(fio_option("BS"), None);
        assert_eq!(fio_option(""), None);
    }

    #[test]
    fn no_name_stands_for_two_options() {
        let mut names: Vec<&str> = fio_option_names().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        // `proto` is the alias of an option of two network engines, as in fio.
        assert!(count - names.len() <= 1, "{names:?}");
        assert!(count > 270);
    }

    #[test]
    fn nearest_names_are_offered() {
        assert_eq!(nearest("iodpeth", fio_option_names(), 1), ["iodepth"]);
        assert_eq!(nearest("norandomap", fio_option_names(), 1), ["norandommap"]);
        assert!(nearest("zzzzzzzzzzzz", fio_option_names(), 3).is_empty());
    }
}
