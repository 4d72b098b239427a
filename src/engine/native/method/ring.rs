//! Making a ring of io_uring, and telling what the kernel takes of it.
//!
//! Enters: what a job asks of its ring. Leaves: a ring, or the kernel's errno. It must not know transfers.

use rustix::io::Errno;

use crate::record::{Note, NoteKind};
use crate::workload::MethodOptions;

/// How long a submission thread spins for more before it sleeps: the kernel's default, which fio uses.
const SUBMISSION_THREAD_IDLE_MS: u32 = 1000;

/// A ring with room for `depth` transfers.
pub(in super::super) fn make(
    options: MethodOptions,
    depth: u32,
    batched: bool,
) -> std::io::Result<io_uring::IoUring> {
    let entries = depth.max(1).next_power_of_two();
    let mut builder = io_uring::IoUring::builder();
    if options.polled {
        builder.setup_iopoll();
    }
    if options.submission_thread {
        builder.setup_sqpoll(SUBMISSION_THREAD_IDLE_MS);
        if let Some(cpu) = options.submission_cpu {
            builder.setup_sqpoll_cpu(cpu);
        }
        return builder.build(entries);
    }
    // As fio: completions interrupt nobody who is not waiting for them, and are posted when the ring is entered for them
    // (IORING_ENTER_GETEVENTS). Who submits batches does not ask for that, and is told by a flag that some wait to be posted.
    // Kernels before 6.1 lack it.
    let mut deferred = builder.clone();
    deferred.setup_coop_taskrun().setup_single_issuer().setup_defer_taskrun();
    if batched {
        deferred.setup_taskrun_flag();
    }
    deferred.build(entries).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => builder.build(entries),
        _ => Err(error),
    })
}

/// What is to be known of I/Os that the kernel gave to worker threads of its own, because they would have had to wait:
/// such a thread is a thread of this process, and stays for some seconds when it is idle.
pub(in super::super) fn workers_note() -> Option<Note> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let own = format!("iou-wrk-{}", rustix::thread::gettid().as_raw_nonzero());
    let workers = names.filter(|name| name.trim_end() == own).count();
    let text = "io_uring: the kernel gave I/Os to worker threads of its own: the file or device does not take them without waiting, \
                and a part of what is measured is the hand-over";
    (workers > 0).then(|| Note { text: text.to_owned(), kind: NoteKind::WorkerThreads })
}

/// Whether a ring can be made here at all.
///
/// # Errors
/// EPERM or ENOSYS where io_uring is switched off or not there, and what else io_uring_setup(2) says.
pub(in super::super) fn probe() -> Result<(), Errno> {
    io_uring::IoUring::new(1).map(drop).map_err(|error| errno_of(&error))
}

/// The errno of a library call that failed.
pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// What an entry of the completion queue brings: a number of bytes, or the errno.
#[inline]
pub(super) fn result_of(entry: &io_uring::cqueue::Entry) -> Result<u32, Errno> {
    u32::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()))
}
