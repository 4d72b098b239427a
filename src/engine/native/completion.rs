//! A transfer that ended: it is counted, its block judged, or what was wrong with it said.
//!
//! Enters: a transfer, its moments, and what the kernel said. Leaves: counts, or the failure that ends the job. It must
//! not know when to wait for the next one.

use rustix::io::Errno;

use super::failure::{Failure, errno_text};
use super::meter::Moments;
use super::method::Operation;
use super::opened;
use super::running::Running;
use super::source::Next;
use crate::record::Direction;
use crate::workload::IoMethod;

impl Running<'_> {
    /// Counts one transfer that ended, or says what was wrong with it.
    #[inline]
    pub(super) fn complete(
        &mut self,
        slot: usize,
        next: &Next,
        moments: &Moments,
        result: Result<u32, Errno>,
    ) -> Result<(), Failure> {
        let Some(direction) = next.operation.direction() else {
            return self.complete_sync(next, moments, result);
        };
        if result != Ok(next.length) {
            return Err(self.wrong(direction, *next, result));
        }
        // Within the ramp it counts for nothing: the meter begins anew when that is over.
        self.meter.transfer(direction, next.length, moments);
        if self.attended {
            return self.look_at(slot, next, moments);
        }
        Ok(())
    }

    /// What besides counting follows a transfer that ended well.
    #[cold]
    fn look_at(&mut self, slot: usize, next: &Next, moments: &Moments) -> Result<(), Failure> {
        if let Some(tempo) = &mut self.tempo {
            tempo.completed(moments.complete_ns.saturating_sub(moments.start_ns));
        }
        match &mut self.verifier {
            Some(verifier) => verifier.completed(self.buffers.slice(slot, next.length as usize), next),
            None => Ok(()),
        }
    }

    fn complete_sync(
        &mut self,
        next: &Next,
        moments: &Moments,
        result: Result<u32, Errno>,
    ) -> Result<(), Failure> {
        let path = &self.instance.files[next.file].path;
        result.map_err(|errno| Failure::file("cannot fsync", path, &std::io::Error::from(errno)))?;
        self.meter.sync(moments);
        // sync_file_range(2) neither writes metadata nor flushes.
        if next.operation != Operation::SyncRange {
            self.meter.synced(moments);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn wrong(&self, direction: Direction, next: Next, result: Result<u32, Errno>) -> Failure {
        let path = self.instance.files[next.file].path.clone();
        let (operation, offset, length) = (direction.name().to_owned(), next.offset, u64::from(next.length));
        match result {
            // A write that no longer fits is cut short before the next one fails.
            Ok(moved) if direction == Direction::Write && opened::is_full(&self.files[next.file]) => {
                let missing_bytes = self.ahead.bytes_left().saturating_add(length - u64::from(moved));
                Failure::NoSpace { path, missing_bytes }
            }
            Ok(moved) => Failure::Short { operation, path, offset, length, moved: u64::from(moved) },
            Err(Errno::NOSPC) => {
                Failure::NoSpace { path, missing_bytes: self.ahead.bytes_left().saturating_add(length) }
            }
            Err(errno) => {
                let hint = match (errno, self.job.method) {
                    (Errno::INVAL, _) if self.job.direct => {
                        "; with direct=1 offset and size must be multiples of the device's logical block"
                    }
                    (Errno::IO, IoMethod::Mmap) => {
                        " (SIGBUS): the mapped file was cut short, or its device gave an error"
                    }
                    (Errno::AGAIN, _) if self.job.method_options.no_wait => {
                        "; with nowait=1 an I/O that would have to wait fails"
                    }
                    (Errno::OPNOTSUPP, _) if self.job.method_options.no_wait => {
                        "; this file cannot be transferred to or from with nowait=1"
                    }
                    (Errno::OPNOTSUPP, _) if self.job.method_options.polled => {
                        "; hipri=1 needs a device with queues that are polled, and direct=1"
                    }
                    _ => "",
                };
                let error = format!("{}{hint}", errno_text(errno));
                let errno = errno.raw_os_error();
                Failure::Transfer { operation, path, offset, length, errno, error }
            }
        }
    }
}
