//! io_uring(7): what is queued is handed over by one call, what has ended is taken from memory shared with the kernel.
//!
//! Enters: transfers, and what the job asks of the ring (polling, registered files and buffers, a submission thread).
//! Leaves: completions. It must not know when to submit or to wait.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Flags};
use io_uring::{opcode, types};
use rustix::io::Errno;

use super::ring::{errno_of, make, result_of};
use super::{ALARM, Asynchronous, Completion, Operation, Transfer};
use crate::engine::native::buffers::Buffers;
use crate::workload::{Job, MethodOptions};

/// A ring with room for every slot.
pub(in super::super) struct IoUring {
    ring: io_uring::IoUring,
    options: MethodOptions,
    /// Submitted in batches, and reaped with all that has ended.
    batched: bool,
    /// One a slot, for registered buffers and for READV and WRITEV.
    vectors: Vec<libc::iovec>,
    queued: u32,
    /// Transfers pushed whose completions were not yet taken.
    outstanding: usize,
    alarm: Alarm,
    /// Read by the kernel when it takes the alarm from the queue.
    alarm_time: Box<types::Timespec>,
}

/// `IORING_ENTER_GETEVENTS` of linux/io_uring.h: the kernel also posts what has ended.
const POST: u32 = 1;

/// Whether the caller wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    None,
    /// By a timeout in the ring.
    Queued,
    /// By a look at the clock: the ring is polled anyway.
    Polled(Instant),
}

impl IoUring {
    /// A ring of at least `depth` entries, set up and registered with as `job` asks.
    ///
    /// # Errors
    /// ENOSYS or EPERM where io_uring is disabled, ENOMEM over the memory lock limit, EINVAL for what the kernel lacks.
    pub(in super::super) fn new(
        job: &Job,
        depth: u32,
        files: &[File],
        buffers: &Buffers,
    ) -> Result<IoUring, Errno> {
        let options = job.method_options;
        // Polled transfers end only where the ring is entered for them.
        let batched = job.depth.submit > 1 && job.depth.complete_max >= job.depth.iodepth && !options.polled;
        let ring = make(options, depth, batched).map_err(|error| errno_of(&error))?;
        let vectors: Vec<libc::iovec> = (0..depth.max(1) as usize)
            .map(|slot| libc::iovec {
                iov_base: buffers.address(slot).cast(),
                iov_len: job.max_block() as usize,
            })
            .collect();
        let submitter = ring.submitter();
        if options.fixed_buffers {
            #[expect(unsafe_code, reason = "the kernel keeps the addresses")]
            // SAFETY: every slot has a buffer of that length, and the buffers outlive the ring.
            let registered = unsafe { submitter.register_buffers(&vectors) };
            registered.map_err(|error| errno_of(&error))?;
        }
        if options.registered_files {
            let numbers: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
            submitter.register_files(&numbers).map_err(|error| errno_of(&error))?;
        }
        Ok(IoUring {
            ring,
            options,
            batched,
            vectors,
            queued: 0,
            outstanding: 0,
            alarm: Alarm::None,
            alarm_time: Box::default(),
        })
    }

    fn entry(&mut self, transfer: &Transfer<'_>, buffers: &Buffers) -> Result<Entry, Errno> {
        let Transfer { slot, length, offset, .. } = *transfer;
        let options = self.options;
        let file = match options.registered_files {
            true => types::Fd(transfer.number as i32),
            false => types::Fd(transfer.file.as_raw_fd()),
        };
        let (address, index) = (buffers.address(slot), slot as u16);
        let flags = if options.no_wait { libc::RWF_NOWAIT } else { 0 };
        if options.vectored {
            self.vectors[slot].iov_len = length as usize;
        }
        let vector = &raw const self.vectors[slot];
        let entry = match (transfer.operation, options.fixed_buffers, options.vectored) {
            (Operation::Read, true, _) => {
                opcode::ReadFixed::new(file, address, length, index).offset(offset).rw_flags(flags).build()
            }
            (Operation::Write, true, _) => {
                opcode::WriteFixed::new(file, address, length, index).offset(offset).rw_flags(flags).build()
            }
            (Operation::Read, false, true) => {
                opcode::Readv::new(file, vector, 1).offset(offset).rw_flags(flags).build()
            }
            (Operation::Write, false, true) => {
                opcode::Writev::new(file, vector, 1).offset(offset).rw_flags(flags).build()
            }
            (Operation::Read, false, false) => {
                opcode::Read::new(file, address, length).offset(offset).rw_flags(flags).build()
            }
            (Operation::Write, false, false) => {
                opcode::Write::new(file, address, length).offset(offset).rw_flags(flags).build()
            }
            (Operation::Fsync, ..) => opcode::Fsync::new(file).build(),
            (Operation::Fdatasync, ..) => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            (Operation::Trim | Operation::SyncRange, ..) => return Err(Errno::NOSYS),
        };
        let mut flags = Flags::empty();
        flags.set(Flags::FIXED_FILE, options.registered_files);
        self.queued = self.queued.wrapping_add(1);
        flags.set(Flags::ASYNC, options.force_async > 0 && self.queued.is_multiple_of(options.force_async));
        Ok(entry.flags(flags).user_data(slot as u64))
    }

    /// Puts an entry into the queue. A submission thread may not have taken all of those before: then waits for room.
    #[inline]
    fn push(&mut self, entry: &Entry) -> Result<(), Errno> {
        loop {
            #[expect(unsafe_code, reason = "the ring reads and writes memory by address")]
            // SAFETY: what an entry points to is a slot's buffer or vector, which nobody touches until its completion
            // is reaped, or the alarm's time (see `set_alarm`); `drop` waits for all of them.
            let pushed = unsafe { self.ring.submission().push(entry) };
            match pushed {
                Ok(()) => return Ok(()),
                Err(_) if self.options.submission_thread => self.wait_for_room()?,
                Err(_) => return Err(Errno::BUSY),
            }
        }
    }

    #[cold]
    fn wait_for_room(&self) -> Result<(), Errno> {
        // Wakes the thread, should it sleep.
        self.wait_for(0)?;
        unless_interrupted(self.ring.submitter().squeue_wait())
    }

    /// Waits for the transfers that the kernel has: none is left when a job ended well.
    fn drain(&mut self) -> Result<(), Errno> {
        // What was not submitted never will be; a submission thread takes all there is.
        let kept = if self.options.submission_thread { 0 } else { self.ring.submission().len() };
        let mut done = Vec::new();
        while self.outstanding > kept {
            self.reap(1, usize::MAX, &mut done)?;
            done.clear();
        }
        Ok(())
    }

    /// Hands over so many entries and waits for `min` completions: the one call for both. `flags` is `POST`, or none.
    #[inline]
    fn enter(&self, entries: usize, min: usize, flags: u32) -> std::io::Result<usize> {
        #[expect(unsafe_code, reason = "the library's safe call sets the flag only where it waits")]
        // SAFETY: no argument is passed. What an entry points to is valid until its completion is reaped: see `push`.
        unsafe {
            self.ring.submitter().enter::<libc::sigset_t>(entries as u32, min as u32, flags, None)
        }
    }

    /// Whether the kernel should also post what has ended when it takes the `queued` entries.
    ///
    /// One by one as in fio, which always asks for it: nothing but time is lost where all that it had is posted already. Of a
    /// batch it would post the first few, for which another small batch would be made while the device runs dry:
    /// bench/uring-loop.toml shows it.
    fn is_something_to_post(&mut self, queued: usize) -> bool {
        let posted = self.ring.completion().len();
        !self.batched && (self.alarm != Alarm::None || self.outstanding > queued + posted)
    }

    /// Waits for `min` completions and hands nothing over; a submission thread is woken, should it sleep.
    fn wait_for(&self, min: usize) -> Result<(), Errno> {
        unless_interrupted(match self.options.submission_thread {
            true => self.ring.submitter().submit_and_wait(min),
            false => self.enter(0, min, POST),
        })
    }
}

impl Asynchronous for IoUring {
    // A queued discard came with Linux 6.12; fio waits for it, too.
    const IN_PLACE: &'static [Operation] = &[Operation::Trim, Operation::SyncRange];

    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        let entry = self.entry(transfer, buffers)?;
        self.push(&entry)?;
        self.outstanding += 1;
        Ok(())
    }

    fn submit(&mut self) -> Result<(), Errno> {
        if self.options.submission_thread {
            return unless_interrupted(self.ring.submit());
        }
        loop {
            let queued = self.ring.submission().len();
            if queued == 0 {
                return Ok(());
            }
            let flags = if self.is_something_to_post(queued) { POST } else { 0 };
            match self.enter(queued, 0, flags) {
                Ok(taken) if taken == queued => return Ok(()),
                taken => unless_interrupted(taken)?,
            }
        }
    }

    fn reap(&mut self, min: usize, max: usize, done: &mut Vec<Completion>) -> Result<bool, Errno> {
        let before = done.len();
        let mut entered = false;
        loop {
            let room = max.saturating_sub(done.len() - before);
            for event in self.ring.completion().take(room) {
                if event.user_data() == ALARM {
                    self.alarm = Alarm::None;
                    continue;
                }
                self.outstanding -= 1;
                done.push(Completion { slot: event.user_data() as usize, result: result_of(&event) });
            }
            let taken = done.len() - before;
            let missing = min.saturating_sub(taken);
            // Where batches end as they are submitted nobody would wait, and what ends later would never be posted.
            let unposted = self.batched && !entered && taken < max && self.ring.submission().taskrun();
            // A look alone does not show what the kernel posts only when it is entered.
            if missing == 0 && !unposted && (taken > 0 || entered) {
                // Only a ring of one thread posts nothing between two calls: others (before Linux 6.1, or with a submission
                // thread) may have posted after the clock was read.
                return Ok(entered || !self.ring.params().is_setup_single_issuer());
            }
            self.wait_for(missing)?;
            entered = true;
        }
    }

    #[inline]
    fn submit_one(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        self.queue(transfer, buffers)?;
        self.submit()
    }

    #[inline]
    fn reap_one(&mut self) -> Result<(Completion, bool), Errno> {
        let mut entered = !self.ring.params().is_setup_single_issuer();
        loop {
            let first = self.ring.completion().next();
            match first {
                Some(event) if event.user_data() == ALARM => self.alarm = Alarm::None,
                Some(event) => {
                    self.outstanding -= 1;
                    let slot = event.user_data() as usize;
                    return Ok((Completion { slot, result: result_of(&event) }, entered));
                }
                None => {
                    self.wait_for(1)?;
                    entered = true;
                }
            }
        }
    }

    fn set_alarm(&mut self, after: Duration) -> Result<(), Errno> {
        if self.ring.params().is_setup_iopoll() {
            // Such a ring takes nothing but reads and writes.
            self.alarm = Alarm::Polled(Instant::now() + after);
            return Ok(());
        }
        // The kernel must have read the time before it changes; only a thread of its own may not have.
        while !self.ring.submission().is_empty() {
            self.submit()?;
            std::thread::yield_now();
        }
        *self.alarm_time = types::Timespec::from(after);
        let entry = opcode::Timeout::new(&raw const *self.alarm_time).build().user_data(ALARM);
        self.push(&entry)?;
        self.alarm = Alarm::Queued;
        self.submit()
    }

    fn alarm_is_set(&self) -> bool {
        match self.alarm {
            Alarm::None => false,
            Alarm::Queued => true,
            Alarm::Polled(at) => Instant::now() < at,
        }
    }

    fn reap_or_alarm(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let before = done.len();
        self.reap(0, usize::MAX, done)?;
        while done.len() == before && self.alarm_is_set() {
            self.wait_for(usize::from(self.alarm == Alarm::Queued))?;
            self.reap(0, usize::MAX, done)?;
        }
        Ok(())
    }
}

impl Drop for IoUring {
    /// Closing a ring does not wait for what is in flight: a worker of the kernel could still write to a buffer that
    /// is given back.
    fn drop(&mut self) {
        // Where even waiting fails there is nothing left to try.
        let _ = self.drain();
    }
}

/// A call that a signal interrupted is made again by the loop around it.
fn unless_interrupted(result: std::io::Result<usize>) -> Result<(), Errno> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::Interrupted => Err(errno_of(&error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{BufferFill, JobFile, Workload};
    use std::io::Write;
    use std::os::fd::AsFd;

    fn job(options: &str) -> Job {
        let text = format!("[a]\nioengine=io_uring\nrw=read\nbs=4k\nsize=1m\n{options}\n");
        let file = JobFile::parse(&text, "test.fio", std::path::Path::new(".")).unwrap();
        Workload::resolve(&file).unwrap().jobs.remove(0)
    }

    fn read_of(slot: usize, file: &File) -> Transfer<'_> {
        Transfer { slot, operation: Operation::Read, number: 0, file: file.as_fd(), offset: 0, length: 4096 }
    }

    /// What is read from each waits until something is written to it.
    fn two_pipes() -> ([File; 2], [std::io::PipeWriter; 2]) {
        let (first, second) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let files = [first.0, second.0].map(|reader| File::from(std::os::fd::OwnedFd::from(reader)));
        (files, [first.1, second.1])
    }

    #[test]
    fn a_ring_that_is_dropped_waits_for_what_is_in_flight() {
        for options in ["", "sqthread_poll=1"] {
            let (reader, mut writer) = std::io::pipe().unwrap();
            let files = [File::from(std::os::fd::OwnedFd::from(reader))];
            let mut buffers = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
            let mut ring = IoUring::new(&job(options), 2, &files, &buffers).unwrap();
            ring.queue(&read_of(0, &files[0]), &mut buffers).unwrap();
            ring.submit().unwrap();
            let late = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                writer.write_all(&[7; 4096]).unwrap();
            });
            drop(ring);
            assert!(buffers.slice(0, 4096).iter().all(|byte| *byte == 7), "{options:?}");
            late.join().unwrap();
        }
    }

    #[test]
    fn a_submission_also_posts_what_has_ended_meanwhile() {
        let (files, writers) = two_pipes();
        let mut buffers = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
        let mut ring = IoUring::new(&job(""), 2, &files, &buffers).unwrap();
        ring.queue(&read_of(0, &files[0]), &mut buffers).unwrap();
        ring.submit().unwrap();
        for mut writer in writers {
            writer.write_all(&[7; 4096]).unwrap();
        }
        // Nobody waits for the first, which has ended now; the second ends as it is submitted.
        ring.queue(&read_of(1, &files[1]), &mut buffers).unwrap();
        ring.submit().unwrap();
        assert_eq!(ring.ring.completion().len(), 2);
    }

    #[test]
    fn what_had_ended_is_taken_without_the_kernel_and_what_had_not_is_not() {
        let (files, [mut ready, mut late]) = two_pipes();
        let mut buffers = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
        let mut ring = IoUring::new(&job(""), 2, &files, &buffers).unwrap();
        ready.write_all(&[7; 4096]).unwrap();
        for slot in [0, 1] {
            ring.queue(&read_of(slot, &files[slot]), &mut buffers).unwrap();
            ring.submit().unwrap();
        }
        let mut done = Vec::new();
        let entered = ring.reap(1, 1, &mut done).unwrap();
        let older_kernel = !ring.ring.params().is_setup_single_issuer();
        assert_eq!(
            entered, older_kernel,
            "its time is that of the submission, where the ring posts only in calls"
        );
        late.write_all(&[7; 4096]).unwrap();
        assert!(ring.reap(1, 1, &mut done).unwrap(), "time has passed in the kernel");
        assert_eq!(done.iter().map(|completion| completion.slot).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn what_ends_late_is_reaped_beside_batches_that_end_at_once() {
        let (files, [mut late, mut ready]) = two_pipes();
        let mut buffers = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
        let all = "iodepth=2\niodepth_batch=2\niodepth_batch_complete_max=2";
        let mut ring = IoUring::new(&job(all), 2, &files, &buffers).unwrap();
        assert!(ring.batched);
        ring.queue(&read_of(0, &files[0]), &mut buffers).unwrap();
        ring.submit().unwrap();
        late.write_all(&[7; 4096]).unwrap();
        ready.write_all(&[7; 4096]).unwrap();
        ring.queue(&read_of(1, &files[1]), &mut buffers).unwrap();
        ring.submit().unwrap();
        let mut done = Vec::new();
        ring.reap(1, usize::MAX, &mut done).unwrap();
        let mut slots: Vec<_> = done.iter().map(|completion| completion.slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1]);
    }

    #[test]
    fn what_ends_late_is_reaped_also_by_who_reaps_one_by_one() {
        let (files, [mut late, mut ready]) = two_pipes();
        let mut buffers = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
        let mut ring = IoUring::new(&job("iodepth=2\niodepth_batch=2"), 2, &files, &buffers).unwrap();
        ring.queue(&read_of(0, &files[0]), &mut buffers).unwrap();
        ring.submit().unwrap();
        late.write_all(&[7; 4096]).unwrap();
        let mut slots = Vec::new();
        for _ in 0..8 {
            // The other one always ends as it is submitted.
            ready.write_all(&[7; 4096]).unwrap();
            ring.queue(&read_of(1, &files[1]), &mut buffers).unwrap();
            ring.submit().unwrap();
            let mut done = Vec::new();
            ring.reap(1, 1, &mut done).unwrap();
            slots.extend(done.iter().map(|completion| completion.slot));
        }
        assert!(slots.contains(&0), "{slots:?}");
    }

    /// Files and buffers that the kernel has registered with the ring.
    fn registered(options: &str) -> (u32, u32) {
        let files = [File::open("/dev/zero").unwrap()];
        let buffers = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
        let ring = IoUring::new(&job(options), 2, &files, &buffers).unwrap();
        let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", ring.ring.as_raw_fd())).unwrap();
        let count = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        (count("UserFiles:").unwrap(), count("UserBufs:").unwrap())
    }

    #[test]
    fn only_what_the_job_asks_for_is_registered() {
        assert_eq!(registered("iodepth=2"), (0, 0));
        assert_eq!(registered("iodepth=2\nregisterfiles=1"), (1, 0));
        assert_eq!(registered("iodepth=2\nfixedbufs=1\nregisterfiles=0"), (0, 2));
    }

    #[test]
    fn what_was_not_submitted_is_not_waited_for() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let files = [File::from(std::os::fd::OwnedFd::from(reader))];
        let mut buffers = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
        let mut ring = IoUring::new(&job(""), 2, &files, &buffers).unwrap();
        ring.queue(&read_of(0, &files[0]), &mut buffers).unwrap();
        drop(ring);
    }

    #[test]
    fn a_full_queue_waits_for_the_submission_thread() {
        let files = [File::open("/dev/zero").unwrap()];
        let mut buffers = Buffers::new(1, 4096, BufferFill::Zero, 1).unwrap();
        let mut ring = IoUring::new(&job("sqthread_poll=1"), 1, &files, &buffers).unwrap();
        let mut done = Vec::new();
        for _ in 0..1000 {
            // As with a rate: the alarm is set, and at once the transfer is due.
            ring.set_alarm(Duration::from_millis(1)).unwrap();
            ring.queue(&read_of(0, &files[0]), &mut buffers).unwrap();
            ring.submit().unwrap();
            ring.reap(1, 1, &mut done).unwrap();
        }
        assert_eq!(done.len(), 1000);
        assert!(done.iter().all(|completion| completion.result == Ok(4096)));
    }
}
