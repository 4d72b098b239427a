//! One job as the native engine understands it: plain typed values, fio's defaults filled in.
//!
//! Enters: nothing. Leaves: the structs that `resolve` fills and engines read. Names are fio's; sizes are bytes.

use std::path::PathBuf;
use std::time::Duration;

use super::content::{BufferFill, BufferMemory, Redundancy, Verify};
use super::issue::{Depth, IoMethod, MethodOptions};
use super::pace::{LatencyTarget, Rate, ThinkTime};
use super::placement::{BlockShare, Distribution, FileService};

/// What an engine is asked to do: the jobs of one file, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Jobs in file order; clones (`numjobs`) are not expanded here, see [`Workload::instances`](crate::workload::Workload::instances).
    pub jobs: Vec<Job>,
}

/// Order of the offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Ascending, a position of its own for each direction.
    Sequential,
    /// Any order.
    Random,
}

/// Which directions, and in what shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mix {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Discards only.
    Trim,
    /// Reads and writes.
    ReadWrite {
        /// Percent of the I/Os that read (`rwmixread`), 0–100.
        read_percent: u8,
    },
}

impl Mix {
    /// Whether it reads.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Mix::Read | Mix::ReadWrite { .. })
    }

    /// Whether it writes.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Mix::Write | Mix::ReadWrite { .. })
    }

    /// Whether it discards.
    #[must_use]
    pub fn trims(self) -> bool {
        matches!(self, Mix::Trim)
    }
}

/// `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Sequential or random.
    pub access: Access,
    /// Read, write, trim or mixed.
    pub mix: Mix,
}

/// Smallest and largest block in bytes; both the same for a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRange {
    /// Smallest, also the granularity of offsets (fio's default `blockalign`).
    pub min: u64,
    /// Largest.
    pub max: u64,
}

impl BlockRange {
    /// Whether every block has the same size.
    #[must_use]
    pub fn is_fixed(self) -> bool {
        self.min == self.max
    }
}

/// Block sizes a direction (`bs=4k,64k`, `bsrange=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockSizes {
    /// Of reads.
    pub read: BlockRange,
    /// Of writes.
    pub write: BlockRange,
    /// Of trims.
    pub trim: BlockRange,
}

/// `sync`: how files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// Neither.
    None,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    Dsync,
}

/// What makes a job's writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// `sync=`: each is when it has ended.
    EachWrite,
    /// `fsync=`, `fdatasync=`: those before it are when a sync has ended.
    Sync,
}

/// `fallocate`: what is done to a file when it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallocate {
    /// Nothing.
    None,
    /// fallocate(2), and nothing where the filesystem cannot (the default).
    Native,
    /// posix_fallocate(3), which writes zeroes where the filesystem cannot.
    Posix,
    /// fallocate(2) with `FALLOC_FL_KEEP_SIZE`.
    Keep,
    /// ftruncate(2) to the final size.
    Truncate,
}

/// `sync_file_range`: flags of sync_file_range(2) and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RangeSync {
    /// `wait_before`: SYNC_FILE_RANGE_WAIT_BEFORE.
    pub wait_before: bool,
    /// `write`: SYNC_FILE_RANGE_WRITE.
    pub write: bool,
    /// `wait_after`: SYNC_FILE_RANGE_WAIT_AFTER.
    pub wait_after: bool,
    /// Writes between calls.
    pub every: u32,
}

/// `cpus_allowed_policy`: how clones share the allowed CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuPolicy {
    /// Every clone may use all of them.
    #[default]
    Shared,
    /// One CPU a clone, in turn.
    Split,
}

/// `numa_mem_policy`: where memory comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum NumaMemory {
    /// As the kernel does without being told.
    #[default]
    Default,
    /// The node of the CPU that asks.
    Local,
    /// This node if it has room.
    Prefer(u32),
    /// Only these nodes.
    Bind(Vec<u32>),
    /// In turn from these nodes.
    Interleave(Vec<u32>),
}

/// Where the randomness of a job comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeedRule {
    /// The same in every trial: `randrepeat=1` (fio's 0x89) or `randseed=N`. Differs between instances.
    Repeat(u64),
    /// `randrepeat=0`: from the trial's seed.
    Trial,
}

/// One `[section]` with everything inherited from the globals above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name in results: `name=` if given, else the section's.
    pub name: String,
    /// The section's name: generated file names begin with it.
    pub section: String,
    /// Line of its section in the job file, from 1.
    pub line: u32,
    /// `ioengine`.
    pub method: IoMethod,
    /// `iodepth` and the batches.
    pub depth: Depth,
    /// `hipri`, `fixedbufs`, `registerfiles`, `sqthread_poll`…
    pub method_options: MethodOptions,
    /// `rw` and `rwmixread`.
    pub pattern: Pattern,
    /// `bs`, `bsrange`.
    pub block_sizes: BlockSizes,
    /// `bssplit` of reads, writes and trims; empty: sizes are drawn from `block_sizes`, which also bound a split.
    pub block_split: [Vec<BlockShare>; 3],
    /// `percentage_random` of reads, writes and trims: how many of a random job's I/Os are random, 0–100.
    pub percentage_random: [u8; 3],
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `size`: bytes over all files of an instance; `None`: as large as the files are.
    pub size: Option<u64>,
    /// `io_size`: bytes to transfer when that is not `size`.
    pub io_size: Option<u64>,
    /// `filesize`: smallest and largest size of one file.
    pub filesize: Option<(u64, u64)>,
    /// `offset`: where I/O starts in each file.
    pub offset: u64,
    /// `offset_increment`: added to the offset once for each clone before this one.
    pub offset_increment: u64,
    /// `filename`; empty: names are generated.
    pub filenames: Vec<PathBuf>,
    /// `directory`; empty: the engine's own default directory. With several, clones take turns.
    pub directories: Vec<PathBuf>,
    /// Files an instance has (`nrfiles`, or the number of `filename`s).
    pub nrfiles: u32,
    /// `file_service_type`.
    pub file_service: FileService,
    /// `numjobs`: clones.
    pub numjobs: u32,
    /// `thread`: threads instead of processes. Recorded; the native engine always uses threads.
    pub thread: bool,
    /// `direct`: `O_DIRECT`.
    pub direct: bool,
    /// `sync`.
    pub sync: SyncMode,
    /// `fsync`: fsync(2) after so many writes; 0 never.
    pub fsync: u32,
    /// `fdatasync`: fdatasync(2) after so many writes; 0 never.
    pub fdatasync: u32,
    /// `end_fsync`: fsync(2) every file when the job ends.
    pub end_fsync: bool,
    /// `sync_file_range`: sync_file_range(2) of what was written since, after so many writes.
    pub sync_file_range: Option<RangeSync>,
    /// `fsync_on_close`: fsync(2) a file before it is closed.
    pub fsync_on_close: bool,
    /// `create_on_open`: files are not laid out but made when the job opens them.
    pub create_on_open: bool,
    /// `unlink`: files are removed when the job is done with them.
    pub unlink: bool,
    /// `file_append`: writes begin behind the end of what a file holds already.
    pub file_append: bool,
    /// `overwrite`: the files are written in full before the job starts.
    pub overwrite: bool,
    /// `fallocate`.
    pub fallocate: Fallocate,
    /// `fadvise_hint`: tell the kernel with posix_fadvise(2) whether access is sequential or random (fio's default).
    pub fadvise_hint: bool,
    /// `invalidate`: drop a file's cached pages before the job starts.
    pub invalidate: bool,
    /// `pre_read`: read the files into the page cache before the job starts.
    pub pre_read: bool,
    /// `runtime`; `None`: until the amount of I/O is done.
    pub runtime: Option<Duration>,
    /// `time_based`: start over until the runtime is up.
    pub time_based: bool,
    /// `ramp_time`: run so long before anything is counted.
    pub ramp_time: Duration,
    /// `startdelay`: shortest and longest wait before the start.
    pub start_delay: (Duration, Duration),
    /// `loops`: the whole amount so many times.
    pub loops: u32,
    /// Whether every block is hit once before any is hit again (`norandommap=0`); means nothing when sequential.
    pub random_map: bool,
    /// `randrepeat`, `randseed`.
    pub seed: SeedRule,
    /// `zero_buffers`, `refill_buffers`, `scramble_buffers`.
    pub buffers: BufferFill,
    /// `buffer_compress_percentage`, `dedupe_percentage`.
    pub redundancy: Redundancy,
    /// `mem`, `lockmem`.
    pub memory: BufferMemory,
    /// `verify`; `None`: nothing is proven.
    pub verify: Option<Verify>,
    /// `thinktime` and its kin.
    pub thinktime: ThinkTime,
    /// `rate`, `rate_iops`, `rate_process`.
    pub rate: Rate,
    /// `latency_target`; `None`: the depth is `iodepth`.
    pub latency_target: Option<LatencyTarget>,
    /// `cpus_allowed`; empty: any.
    pub cpus_allowed: Vec<u32>,
    /// `cpus_allowed_policy`.
    pub cpu_policy: CpuPolicy,
    /// `numa_cpu_nodes`: only the CPUs of these nodes; empty: any.
    pub numa_cpu_nodes: Vec<u32>,
    /// `numa_mem_policy`.
    pub numa_memory: NumaMemory,
    /// `exitall`: when this job ends, all others of its wave are ended.
    pub exitall: bool,
    /// `write_iolog`: every I/O is noted in this file, in fio's format, version 2.
    pub io_log: Option<PathBuf>,
    /// `group_reporting`: results of the jobs of a group are added up.
    pub group_reporting: bool,
    /// `stonewall`: wait for all jobs above to end.
    pub stonewall: bool,
    /// `new_group`: a new reporting group that does not wait.
    pub new_group: bool,
}

/// Writes that may wait for one sync, whose times are kept meanwhile.
const MOST_AWAITING: u32 = 1 << 16;

impl Job {
    /// Smallest block of the directions it uses: the granularity of its region.
    #[must_use]
    pub fn min_block(&self) -> u64 {
        self.used_blocks().map(|range| range.min).min().unwrap_or(1)
    }

    /// Largest block of the directions it uses: the size of a buffer.
    #[must_use]
    pub fn max_block(&self) -> u64 {
        self.used_blocks().map(|range| range.max).max().unwrap_or(1)
    }

    /// Whether its files must hold data before it starts: it reads, overwrites, or maps them (fio's FIO_NOEXTEND).
    #[must_use]
    pub fn needs_layout(&self) -> bool {
        let mix = self.pattern.mix;
        let overwrites = (self.overwrite && !self.file_append) || self.method == IoMethod::Mmap;
        mix.reads() || (mix.writes() && overwrites)
    }

    /// What makes its writes durable, where a time until they are can be told. None with pauses, which lie between a write and its sync;
    /// nor of several files, where as in fio a sync goes to the one whose turn it is; nor with a backlog that is read back, or where
    /// very many writes wait for one.
    #[must_use]
    pub fn durability(&self) -> Option<Durability> {
        let backlog = self.verify.as_ref().is_some_and(|verify| verify.backlog > 0);
        let told =
            self.pattern.mix.writes() && self.thinktime.pause.is_zero() && self.nrfiles == 1 && !backlog;
        let syncs = [self.fsync, self.fdatasync].into_iter().filter(|every| *every > 0).min();
        let synced = syncs.is_some_and(|every| every <= MOST_AWAITING);
        match self.method {
            _ if !told => None,
            IoMethod::Null => None,
            // Stores go through no file that was opened with O_SYNC.
            IoMethod::Mmap => synced.then_some(Durability::Sync),
            _ if self.sync != SyncMode::None => Some(Durability::EachWrite),
            _ => synced.then_some(Durability::Sync),
        }
    }

    /// Whether each write is durable before the next one is begun.
    #[must_use]
    pub fn syncs_each_write(&self) -> bool {
        match self.durability() {
            Some(Durability::EachWrite) => true,
            Some(Durability::Sync) => self.depth.iodepth <= 1 && (self.fsync == 1 || self.fdatasync == 1),
            None => false,
        }
    }

    fn used_blocks(&self) -> impl Iterator<Item = BlockRange> {
        let mix = self.pattern.mix;
        let sizes = self.block_sizes;
        [(mix.reads(), sizes.read), (mix.writes(), sizes.write), (mix.trims(), sizes.trim)]
            .into_iter()
            .filter_map(|(used, range)| used.then_some(range))
    }
}
