//! io_uring(7) with plain reads and writes.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use io_uring::{opcode, squeue, types};
use rustix::io::Errno;

use super::{Asynchronous, Completion, Operation, Transfer};
use crate::engine::native::buffers::Buffers;

/// A ring with room for every slot.
pub(in super::super) struct IoUring {
    ring: io_uring::IoUring,
}

impl IoUring {
    /// A ring of at least `depth` entries.
    ///
    /// # Errors
    /// ENOSYS or EPERM where io_uring is disabled, ENOMEM over the memory lock limit.
    pub(in super::super) fn new(depth: u32) -> Result<IoUring, Errno> {
        let ring =
            io_uring::IoUring::new(depth.max(1).next_power_of_two()).map_err(|error| errno_of(&error))?;
        Ok(IoUring { ring })
    }
}

impl Asynchronous for IoUring {
    // A queued discard came with Linux 6.12; fio waits for it, too.
    const IN_PLACE: &'static [Operation] = &[Operation::Trim];

    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        let file = types::Fd(transfer.file.as_raw_fd());
        let address = buffers.address(transfer.slot);
        let entry: squeue::Entry = match transfer.operation {
            Operation::Read => {
                opcode::Read::new(file, address, transfer.length).offset(transfer.offset).build()
            }
            Operation::Write => {
                opcode::Write::new(file, address, transfer.length).offset(transfer.offset).build()
            }
            Operation::Fsync => opcode::Fsync::new(file).build(),
            Operation::Fdatasync => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            Operation::Trim => return Err(Errno::NOSYS),
        };
        let entry = entry.user_data(transfer.slot as u64);
        #[expect(unsafe_code, reason = "the ring reads and writes memory by address")]
        // SAFETY: the slot's buffer is at least `length` long and is not touched by anyone until its completion is
        // reaped; buffers and files outlive the ring, which the job loop owns.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| Errno::BUSY)
    }

    fn submit(&mut self) -> Result<(), Errno> {
        loop {
            match self.ring.submit() {
                Ok(_) if self.ring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(errno_of(&error)),
            }
        }
    }

    fn reap(&mut self, min: usize, max: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let before = done.len();
        loop {
            let room = max.saturating_sub(done.len() - before);
            done.extend(self.ring.completion().take(room).map(|event| Completion {
                slot: event.user_data() as usize,
                result: u32::try_from(event.result()).map_err(|_| Errno::from_raw_os_error(-event.result())),
            }));
            let missing = min.saturating_sub(done.len() - before);
            if missing == 0 {
                return Ok(());
            }
            match self.ring.submitter().submit_and_wait(missing) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(errno_of(&error)),
            }
        }
    }

    fn reap_within(&mut self, most: Duration, done: &mut Vec<Completion>) -> Result<(), Errno> {
        let before = done.len();
        self.reap(0, usize::MAX, done)?;
        if done.len() > before || most.is_zero() {
            return Ok(());
        }
        let parameters = self.ring.params();
        if parameters.is_setup_iopoll() || !parameters.is_feature_ext_arg() {
            // Neither a polled ring nor a kernel before 5.11 can wait for a time.
            let begun = Instant::now();
            while done.len() == before && begun.elapsed() < most {
                match self.ring.submitter().submit_and_wait(0) {
                    Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                        return Err(errno_of(&error));
                    }
                    _ => self.reap(0, usize::MAX, done)?,
                }
            }
            return Ok(());
        }
        let time = types::Timespec::from(most);
        let limit = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &limit) {
            Err(error) if !ended_early(&error) => Err(errno_of(&error)),
            _ => self.reap(0, usize::MAX, done),
        }
    }
}

/// The wait was over before there was a completion.
fn ended_early(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR))
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
