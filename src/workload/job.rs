//! One job as the native engine understands it: plain typed values, fio's defaults filled in.
//!
//! Enters: nothing. Leaves: the structs that `resolve` fills and engines read. Names are fio's; sizes are bytes.

use std::path::PathBuf;
use std::time::Duration;

/// What an engine is asked to do: the jobs of one file, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Jobs in file order; clones (`numjobs`) are not expanded here, see [`Workload::instances`](crate::workload::Workload::instances).
    pub jobs: Vec<Job>,
}

/// How I/O is issued (`ioengine`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoMethod {
    /// pread(2)/pwrite(2): fio's default on Linux.
    Psync,
    /// lseek(2) and read(2)/write(2).
    Sync,
    /// io_uring(7).
    IoUring,
    /// io_submit(2)/io_getevents(2).
    Libaio,
    /// Nothing is transferred and no file is touched: measures the loop itself.
    Null,
}

impl IoMethod {
    /// fio's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IoMethod::Psync => "psync",
            IoMethod::Sync => "sync",
            IoMethod::IoUring => "io_uring",
            IoMethod::Libaio => "libaio",
            IoMethod::Null => "null",
        }
    }

    /// Whether more than one I/O can be in flight; the others run at depth 1 whatever `iodepth` says, as in fio.
    #[must_use]
    pub fn is_asynchronous(self) -> bool {
        matches!(self, IoMethod::IoUring | IoMethod::Libaio)
    }
}

/// Queue depth and batching. The counts are I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// `iodepth`: most I/Os in flight.
    pub iodepth: u32,
    /// `iodepth_batch`: I/Os submitted in one go (fio's 0 is already replaced by `iodepth`).
    pub submit: u32,
    /// `iodepth_batch_complete_min`: I/Os waited for when events are reaped; 0 only polls.
    pub complete_min: u32,
    /// `iodepth_batch_complete_max`: most I/Os reaped in one go.
    pub complete_max: u32,
    /// `iodepth_low`: once full, no submission until so few are in flight (fio's 0 is already replaced by `iodepth`).
    pub low: u32,
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

/// What is in the buffers that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferFill {
    /// Random bytes made once, a few words changed in every block (fio's default, `scramble_buffers=1`).
    Scrambled,
    /// Random bytes made once and used again unchanged (`scramble_buffers=0`).
    Fixed,
    /// Zeroes (`zero_buffers`).
    Zero,
    /// New random bytes for every write (`refill_buffers`).
    Refill,
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
    /// `rw` and `rwmixread`.
    pub pattern: Pattern,
    /// `bs`, `bsrange`.
    pub block_sizes: BlockSizes,
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
    /// `overwrite`: the files are written in full before the job starts.
    pub overwrite: bool,
    /// `fallocate`.
    pub fallocate: Fallocate,
    /// `fadvise_hint`: tell the kernel with posix_fadvise(2) whether access is sequential or random (fio's default).
    pub fadvise_hint: bool,
    /// `invalidate`: drop a file's cached pages before the job starts.
    pub invalidate: bool,
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
    /// `thinktime`: pause after every I/O.
    pub thinktime: Duration,
    /// `cpus_allowed`; empty: any.
    pub cpus_allowed: Vec<u32>,
    /// `group_reporting`: results of the jobs of a group are added up.
    pub group_reporting: bool,
    /// `stonewall`: wait for all jobs above to end.
    pub stonewall: bool,
    /// `new_group`: a new reporting group that does not wait.
    pub new_group: bool,
}

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

    /// Whether its files must hold data before it starts: it reads, or overwrites.
    #[must_use]
    pub fn needs_layout(&self) -> bool {
        let mix = self.pattern.mix;
        mix.reads() || (mix.writes() && self.overwrite)
    }

    fn used_blocks(&self) -> impl Iterator<Item = BlockRange> {
        let mix = self.pattern.mix;
        let sizes = self.block_sizes;
        [(mix.reads(), sizes.read), (mix.writes(), sizes.write), (mix.trims(), sizes.trim)]
            .into_iter()
            .filter_map(|(used, range)| used.then_some(range))
    }
}
