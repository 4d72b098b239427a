//! The kernel's own asynchronous I/O: io_submit(2) and io_getevents(2), called directly.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::{ALARM, Asynchronous, Completion, Operation, Transfer};
use crate::engine::native::aio_abi::{
    AioContext, IOCB_CMD_POLL, IOCB_CMD_PREAD, IOCB_CMD_PWRITE, IoEvent, Iocb, io_getevents, io_submit,
};
use crate::engine::native::buffers::Buffers;
use crate::workload::MethodOptions;

/// How often, and with what pause, a submission is tried again that the kernel refused with nothing in flight.
const MOST_REFUSALS: u32 = 100;
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// An AIO context with a control block a slot.
pub(in super::super) struct Libaio {
    context: AioContext,
    /// `nowait`: RWF_NOWAIT for every transfer.
    flags: i32,
    blocks: Box<[Iocb]>,
    /// Of a transfer that is handed over by itself.
    only: Iocb,
    queued: Vec<*mut Iocb>,
    events: Vec<IoEvent>,
    /// What ended while a submission waited for room.
    done: Vec<Completion>,
    /// Transfers that the kernel has.
    outstanding: usize,
    /// Goes off into the queue of completions: it is polled for like a file. Made when first set.
    timer: Option<OwnedFd>,
    alarm_block: Box<Iocb>,
    alarm: bool,
}

impl Libaio {
    /// A context for `depth` transfers in flight, and an alarm.
    ///
    /// # Errors
    /// EAGAIN over /proc/sys/fs/aio-max-nr, ENOSYS without CONFIG_AIO.
    pub(in super::super) fn new(depth: u32, options: MethodOptions) -> Result<Libaio, Errno> {
        let depth = depth.max(1);
        let slots = depth as usize;
        Ok(Libaio {
            context: AioContext::new(depth + 1)?,
            flags: if options.no_wait { libc::RWF_NOWAIT } else { 0 },
            blocks: vec![Iocb::default(); slots].into_boxed_slice(),
            only: Iocb::default(),
            queued: Vec::with_capacity(slots),
            events: vec![IoEvent::default(); slots],
            done: Vec::new(),
            outstanding: 0,
            timer: None,
            alarm_block: Box::default(),
            alarm: false,
        })
    }
}

impl Asynchronous for Libaio {
    const IN_PLACE: &'static [Operation] =
        &[Operation::Fsync, Operation::Fdatasync, Operation::SyncRange, Operation::Trim];

    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        let block = &mut self.blocks[transfer.slot];
        *block = control_block(transfer, buffers, self.flags)?;
        self.queued.push(std::ptr::from_mut(block));
        Ok(())
    }

    fn submit(&mut self) -> Result<(), Errno> {
        let mut from = 0;
        let result = self.submit_from(&mut from);
        // What is left is what the kernel has refused.
        if from == self.queued.len() {
            self.queued.clear();
        } else {
            self.queued.drain(..from);
        }
        result
    }

    fn refused(&self) -> Option<usize> {
        let alarm = std::ptr::from_ref(&*self.alarm_block);
        Some(self.queued.iter().filter(|block| !std::ptr::eq(**block, alarm)).count())
    }

    fn reap(&mut self, min: usize, max: usize, done: &mut Vec<Completion>) -> Result<bool, Errno> {
        // Those of a submission that had to wait come first.
        let have = self.done.len();
        if have > 0 {
            done.append(&mut self.done);
        }
        self.collect(min.saturating_sub(have), max.saturating_sub(have), done).map(|()| true)
    }

    #[inline]
    fn submit_one(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        // The kernel has copied it when the call returns: one is enough, and stays in the processor's caches.
        self.only = control_block(transfer, buffers, self.flags)?;
        if hand_over(&self.context, &mut [&raw mut self.only]) == Ok(1) {
            self.outstanding += 1;
            return Ok(());
        }
        // Once more, on the road that knows what to do about it.
        self.queue(transfer, buffers)?;
        self.submit()
    }

    #[inline]
    fn reap_one(&mut self) -> Result<(Completion, bool), Errno> {
        if let Some(completion) = self.done.pop() {
            return Ok((completion, true));
        }
        loop {
            match self.fill(1, 1, None) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    if let Some(completion) = self.completion(0) {
                        return Ok((completion, true));
                    }
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    fn set_alarm(&mut self, after: Duration) -> Result<(), Errno> {
        let timer = match self.timer.take() {
            Some(timer) => timer,
            None => timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
        };
        let timer = self.timer.insert(timer);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec {
            tv_sec: after.as_secs() as _,
            // All zero would stop the timer.
            tv_nsec: i64::from(after.subsec_nanos().max(1)),
        };
        let time = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(&*timer, TimerfdTimerFlags::empty(), &time)?;
        if !self.alarm {
            *self.alarm_block = Iocb {
                data: ALARM,
                opcode: IOCB_CMD_POLL,
                file: timer.as_raw_fd() as u32,
                buffer: libc::POLLIN as u64,
                ..Iocb::default()
            };
            self.queued.push(std::ptr::from_mut(&mut *self.alarm_block));
            self.alarm = true;
        }
        self.submit()
    }

    fn alarm_is_set(&self) -> bool {
        self.alarm
    }

    fn reap_or_alarm(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let before = done.len();
        done.append(&mut self.done);
        while done.len() == before && self.alarm {
            match self.get_events(1, self.events.len(), None, done) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

impl Libaio {
    /// Hands over what is queued from a number on, which grows with what the kernel takes.
    fn submit_from(&mut self, from: &mut usize) -> Result<(), Errno> {
        let mut refused = 0;
        while *from < self.queued.len() {
            match hand_over(&self.context, &mut self.queued[*from..]) {
                Ok(n) if n > 0 => {
                    let taken = &self.queued[*from..*from + n];
                    self.outstanding += taken.len();
                    // An alarm is queued only while it is set.
                    if self.alarm {
                        let alarm = std::ptr::from_ref(&*self.alarm_block);
                        self.outstanding -= taken.iter().filter(|block| std::ptr::eq(**block, alarm)).count();
                    }
                    *from += n;
                }
                // The kernel takes at least one or says why not.
                Ok(_) => return Err(Errno::IO),
                Err(Errno::INTR) => {}
                // The device's queue is full: wait for one to end, as fio does.
                Err(Errno::AGAIN) if self.outstanding > 0 => {
                    let mut done = std::mem::take(&mut self.done);
                    let collected = self.collect(1, 1, &mut done);
                    self.done = done;
                    collected?;
                }
                // Nothing of this job is in the way: others may make room, but are not waited for any longer.
                Err(Errno::AGAIN) if refused < MOST_REFUSALS => {
                    refused += 1;
                    std::thread::sleep(REFUSAL_PAUSE);
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn collect(&mut self, min: usize, max: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let (mut min, mut max) = (min, max.min(self.events.len()));
        while max > 0 {
            let got = match self.get_events(min, max, (min == 0).then_some(Duration::ZERO), done) {
                Ok(got) => got,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            if got >= min {
                return Ok(());
            }
            (min, max) = (min - got, max - got);
        }
        Ok(())
    }

    /// One call of io_getevents, which waits until `min` are there or the time is up: how many were.
    fn get_events(
        &mut self,
        min: usize,
        max: usize,
        most: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, Errno> {
        let got = self.fill(min, max, most)?;
        let before = done.len();
        done.extend((0..got).filter_map(|at| self.completion(at)));
        Ok(done.len() - before)
    }

    /// Fills the first of `events`: how many.
    #[inline]
    fn fill(&mut self, min: usize, max: usize, most: Option<Duration>) -> Result<usize, Errno> {
        let time = most.map(|most| libc::timespec {
            tv_sec: most.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(most.subsec_nanos()),
        });
        let room = max.min(self.events.len());
        io_getevents(&self.context, min, &mut self.events[..room], time.as_ref())
    }

    /// What one of `events` tells; `None`: it is the alarm's.
    #[inline]
    fn completion(&mut self, at: usize) -> Option<Completion> {
        let event = self.events[at];
        if event.data == ALARM {
            self.alarm = false;
            return None;
        }
        self.outstanding -= 1;
        let result = u32::try_from(event.result).map_err(|_| Errno::from_raw_os_error(-event.result as i32));
        Some(Completion { slot: event.data as usize, result })
    }
}

/// The control block of a transfer.
#[inline]
fn control_block(transfer: &Transfer<'_>, buffers: &Buffers, flags: i32) -> Result<Iocb, Errno> {
    let opcode = match transfer.operation {
        Operation::Read => IOCB_CMD_PREAD,
        Operation::Write => IOCB_CMD_PWRITE,
        _ => return Err(Errno::NOSYS),
    };
    Ok(Iocb {
        data: transfer.slot as u64,
        opcode,
        rw_flags: flags,
        file: transfer.file.as_raw_fd() as u32,
        buffer: buffers.address(transfer.slot) as u64,
        length: u64::from(transfer.length),
        offset: transfer.offset as i64,
        ..Iocb::default()
    })
}

/// Hands over blocks of a [`Libaio`], and says how many of them, the first ones, were taken.
#[inline]
fn hand_over(context: &AioContext, blocks: &mut [*mut Iocb]) -> Result<usize, Errno> {
    #[expect(unsafe_code, reason = "the kernel writes to buffers behind its back")]
    // SAFETY: its blocks live as long as it does, and nobody touches a slot's buffer until its completion is reaped.
    unsafe {
        io_submit(context, blocks)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::fd::AsFd;

    use super::*;
    use crate::workload::BufferFill;

    #[test]
    fn of_a_batch_refused_in_its_middle_the_start_is_in_flight() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![7; 16384]).unwrap();
        let readable = std::fs::File::open(&path).unwrap();
        let writable = OpenOptions::new().write(true).open(&path).unwrap();
        let mut buffers = Buffers::new(4, 4096, BufferFill::Zero, 1).unwrap();
        let mut method = Libaio::new(4, MethodOptions::default()).unwrap();
        // The third cannot be read from: the kernel takes two and refuses the rest.
        for (slot, file) in [&readable, &readable, &writable, &readable].into_iter().enumerate() {
            let transfer = Transfer {
                slot,
                operation: Operation::Read,
                number: 0,
                file: file.as_fd(),
                offset: 4096 * slot as u64,
                length: 4096,
            };
            method.queue(&transfer, &mut buffers).unwrap();
        }
        assert_eq!(method.submit(), Err(Errno::BADF));
        assert_eq!((method.refused(), method.outstanding), (Some(2), 2));
        let mut done = Vec::new();
        method.reap(2, usize::MAX, &mut done).unwrap();
        let mut ended: Vec<_> = done.iter().map(|done| (done.slot, done.result)).collect();
        ended.sort_by_key(|(slot, _)| *slot);
        assert_eq!(ended, [(0, Ok(4096)), (1, Ok(4096))]);
    }
}
