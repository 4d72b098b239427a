//! How I/Os are handed to the kernel: the method, the depth, and what a method can be told.
//!
//! Enters: nothing. Leaves: plain values that `draft` fills and the engine's methods follow.

named! {
    /// How I/O is issued (`ioengine`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum IoMethod {
        /// pread(2)/pwrite(2): fio's default on Linux.
        Psync = "psync",
        /// lseek(2) and read(2)/write(2).
        Sync = "sync",
        /// preadv(2)/pwritev(2).
        Pvsync = "pvsync",
        /// preadv2(2)/pwritev2(2), with `hipri` polled.
        Pvsync2 = "pvsync2",
        /// memcpy to and from a mapping; msync(2) where fsync is asked.
        Mmap = "mmap",
        /// io_uring(7).
        IoUring = "io_uring",
        /// io_submit(2)/io_getevents(2).
        Libaio = "libaio",
        /// Nothing is transferred and no file is touched: measures the loop itself.
        Null = "null",
    }
}

impl IoMethod {
    /// Whether more than one I/O can be in flight; the others run at depth 1 whatever `iodepth` says, as in fio.
    #[must_use]
    pub fn is_asynchronous(self) -> bool {
        matches!(self, IoMethod::IoUring | IoMethod::Libaio)
    }

    /// The option without which a kernel lacks its system calls, as in `CONFIG_AIO`; `None`: every kernel has them.
    #[must_use]
    pub fn kernel_option(self) -> Option<&'static str> {
        match self {
            IoMethod::IoUring => Some("IO_URING"),
            IoMethod::Libaio => Some("AIO"),
            IoMethod::Psync | IoMethod::Sync | IoMethod::Pvsync | IoMethod::Pvsync2 => None,
            IoMethod::Mmap | IoMethod::Null => None,
        }
    }
}

/// Queue depth and batching. The counts are I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// `iodepth`: most I/Os in flight.
    pub iodepth: u32,
    /// `iodepth` as written, also where the method has one I/O in flight whatever it says.
    pub asked: u32,
    /// `iodepth_batch`: I/Os submitted in one go (fio's 0 is already replaced by `iodepth`).
    pub submit: u32,
    /// `iodepth_batch_complete_min`: I/Os waited for when events are reaped; 0 only polls.
    pub complete_min: u32,
    /// `iodepth_batch_complete_max`: most I/Os reaped in one go, at least `complete_min` and 1.
    pub complete_max: u32,
    /// `iodepth_low`: once full, no submission until so few are in flight (fio's 0 is already replaced by `iodepth`).
    pub low: u32,
}

/// What io_uring, libaio and pvsync2 can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodOptions {
    /// `hipri`: completions are polled for (RWF_HIPRI, IORING_SETUP_IOPOLL).
    pub polled: bool,
    /// `hipri_percentage`: of pvsync2's I/Os; 100 by default.
    pub polled_percent: u8,
    /// `fixedbufs`: buffers are registered with the ring.
    pub fixed_buffers: bool,
    /// `registerfiles`: files are registered with the ring.
    pub registered_files: bool,
    /// `sqthread_poll`: a kernel thread takes submissions.
    pub submission_thread: bool,
    /// `sqthread_poll_cpu`: where it runs.
    pub submission_cpu: Option<u32>,
    /// `nonvectored=0`: IORING_OP_READV and WRITEV in place of READ and WRITE (the default where the kernel has them).
    pub vectored: bool,
    /// `force_async`: every so many I/Os is left to the kernel's workers (IOSQE_ASYNC); 0 never.
    pub force_async: u32,
    /// `nowait`: RWF_NOWAIT.
    pub no_wait: bool,
}
