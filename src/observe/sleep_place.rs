//! Where in the kernel a thread sleeps, by the stack with which it left the processor.
//!
//! Enters: the kernel's functions, a stack. Leaves: the name of a place. It is the innermost function that neither changes tasks nor is a
//! way in which all wait (`GENERAL`).

use super::perf::Symbols;

/// How the names of functions begin in which anybody waits.
const GENERAL: [&str; 19] = [
    "schedule", "io_schedule", "blk_io_schedule", "bit_wait", "__wait_on_bit", "out_of_line_wait_on_bit",
    "folio_wait_bit", "__folio_lock", "folio_put_wait_locked",
    // Of these three before Linux 5.16.
    "wait_on_page_bit", "__lock_page", "put_and_wait_on_page", "wait_for_completion", "__wait_for_common",
    "do_wait_for_common", "hrtimer_nanosleep", "do_nanosleep", "rwsem_", "submit_bio_wait",
];

/// How the names of functions begin in which a thread waits because it has nothing to do: for a time, for another process, for a message.
const IDLE: [&str; 33] = [
    "do_wait", "kernel_wait4", "poll_schedule_timeout", "do_poll", "do_sys_poll", "do_select", "ep_poll",
    "common_nsleep", "futex_", "pipe_", "anon_pipe_", "do_sigtimedwait", "sigsuspend", "do_signal_stop",
    "unix_stream_", "io_wq_worker", "io_sq_thread", "msleep",
    // Of io_wq_worker until Linux 6.3.
    "io_wqe_worker", // ep_poll is mostly part of it.
    "do_epoll_wait", // Sockets, terminals, inotify.
    "wait_woken", "inet_csk_accept", "__skb_wait_for_more_packets", "__do_sys_pause", "__x64_sys_pause",
    "__arm64_sys_pause", // Semaphores of System V.
    "do_semtimedop", "__do_semtimedop",
    // What calls hrtimer_nanosleep, in which anybody waits, without common_nsleep.
    "__x64_sys_nanosleep", "__arm64_sys_nanosleep",
    // A parent in vfork(2) until its child runs another program or ends; the first is mostly part of one of the others.
    "wait_for_vfork_done", "kernel_clone", "_do_fork",
];

/// The function that a stack waits at.
pub(super) fn sleep_place<'s>(symbols: &'s Symbols, stack: &[u64]) -> &'s str {
    let outside = stack.iter().filter(|address| !symbols.takes_locks(**address));
    let functions = outside.filter_map(|address| symbols.function(*address));
    let is_general = |name: &str| GENERAL.iter().any(|beginning| name.starts_with(beginning));
    let mut names = functions.map(|function| symbols.name(function));
    names.find(|name| !is_general(name)).unwrap_or("unknown")
}

/// Whether a thread that waits there has nothing to do.
pub(super) fn is_idle(place: &str) -> bool {
    IDLE.iter().any(|beginning| place.starts_with(beginning))
}
