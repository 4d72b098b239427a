//! A job of which nothing is said: fio's defaults.
//!
//! Enters: the section's name and line. Leaves: a [`Job`].

use std::time::Duration;

use super::{DEFAULT_BLOCK, FIO_SEED};
use crate::workload::content::{BufferFill, BufferMemory, Redundancy};
use crate::workload::issue::{Depth, IoMethod, MethodOptions};
use crate::workload::job::{
    Access, BlockSizes, CpuPolicy, Fallocate, Job, Mix, NumaMemory, Pattern, SeedRule, SyncMode,
};
use crate::workload::pace::{Rate, ThinkTime};
use crate::workload::placement::{Distribution, FileService};

/// Bytes of a chunk that compresses by itself (`buffer_compress_chunk`).
const COMPRESS_CHUNK: u32 = 512;

pub(super) fn default_job(section: &str, line: u32) -> Job {
    Job {
        name: section.to_owned(),
        section: section.to_owned(),
        line,
        method: IoMethod::Psync,
        depth: Depth { iodepth: 1, asked: 1, submit: 1, complete_min: 1, complete_max: 0, low: 0 },
        method_options: MethodOptions { polled_percent: 100, ..MethodOptions::default() },
        pattern: Pattern { access: Access::Sequential, mix: Mix::Read },
        block_sizes: BlockSizes { read: DEFAULT_BLOCK, write: DEFAULT_BLOCK, trim: DEFAULT_BLOCK },
        block_split: [const { Vec::new() }; 3],
        percentage_random: [100; 3],
        distribution: Distribution::Uniform,
        size: None,
        io_size: None,
        filesize: None,
        offset: 0,
        offset_increment: 0,
        filenames: Vec::new(),
        directories: Vec::new(),
        nrfiles: 1,
        file_service: FileService::default(),
        numjobs: 1,
        thread: false,
        direct: false,
        sync: SyncMode::None,
        fsync: 0,
        fdatasync: 0,
        end_fsync: false,
        sync_file_range: None,
        fsync_on_close: false,
        create_on_open: false,
        unlink: false,
        file_append: false,
        overwrite: false,
        fallocate: Fallocate::Native,
        fadvise_hint: true,
        invalidate: true,
        pre_read: false,
        runtime: None,
        time_based: false,
        ramp_time: Duration::ZERO,
        start_delay: (Duration::ZERO, Duration::ZERO),
        loops: 1,
        random_map: true,
        seed: SeedRule::Repeat(FIO_SEED),
        buffers: BufferFill::Scrambled,
        redundancy: Redundancy { compress_chunk: COMPRESS_CHUNK, ..Redundancy::default() },
        memory: BufferMemory::default(),
        verify: None,
        thinktime: ThinkTime::default(),
        rate: Rate::default(),
        latency_target: None,
        cpus_allowed: Vec::new(),
        cpu_policy: CpuPolicy::Shared,
        numa_cpu_nodes: Vec::new(),
        numa_memory: NumaMemory::Default,
        exitall: false,
        io_log: None,
        group_reporting: false,
        stonewall: false,
        new_group: false,
    }
}
