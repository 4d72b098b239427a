//! Passes over the files: all is written, then read back where `verify` asks it, then perhaps written again.
//!
//! Enters: an instance that runs, and what transfers everything it plans. Leaves: all its passes made. It must not know
//! what makes a block right.

use super::failure::Failure;
use super::meter::Moments;
use super::method::Operation;
use super::opened;
use super::running::Running;
use super::source::{Again, Next};
use super::start_line::StartLine;
use crate::workload::{IoMethod, Job};

impl Running<'_> {
    /// Transfers everything; with `verify`, reads back what was written after each pass over the files.
    pub(super) fn transfer_passes(
        &mut self,
        line: &StartLine,
        mut transfer_all: impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            transfer_all(self)?;
            if syncs_at_end(self.job) {
                self.sync_files()?;
            }
            if self.verifier.is_none() {
                return Ok(());
            }
            self.begun_ns = self.clock.now_ns();
            let in_time = self.keep_going(self.begun_ns) && !line.stopped();
            let reads = in_time && self.verifier.as_mut().is_some_and(|verifier| verifier.begin_read_back());
            if reads {
                let since = self.begun_ns;
                self.sync_files()?;
                if self.job.method != IoMethod::Null {
                    self.files.iter().for_each(opened::drop_cached_pages);
                }
                self.begun_ns = self.clock.now_ns();
                // Neither rates nor pauses hold for it.
                let tempo = self.tempo.take();
                let done = transfer_all(self);
                self.tempo = tempo;
                done?;
                self.begun_ns = self.clock.now_ns();
                if let Some(tempo) = &mut self.tempo {
                    tempo.held_up_until(self.begun_ns);
                }
                self.read_back_ns += self.begun_ns.saturating_sub(since);
            }
            let read_back = self.verifier.as_mut().map_or(0, |verifier| verifier.end_pass());
            if !(in_time && self.ahead.next_pass(read_back)) {
                return Ok(());
            }
        }
    }

    /// Puts into the buffer of `slot` what will be written; false when that takes no time.
    #[inline]
    pub(super) fn prepare_write(&mut self, slot: usize, next: &Next) -> bool {
        if let Some(verifier) = &mut self.verifier {
            verifier.write(self.buffers.slice(slot, next.length as usize), next);
            return true;
        }
        let changes = self.buffers.change();
        if changes {
            self.buffers.prepare_write(slot, next.length, next.offset);
        }
        changes
    }

    /// Whether blocks are judged, which takes time.
    #[inline]
    pub(super) fn judges(&self) -> bool {
        self.verifier.is_some()
    }

    /// Whether what was planned last begins another pass, and the one before ends with syncs, which all its writes must precede.
    #[inline]
    pub(super) fn syncs_between(&self) -> bool {
        self.ahead.begins_again() == Some(Again::All) && syncs_at_end(self.job)
    }

    /// Where what was planned last begins something again, does what fio does there; false when it failed.
    #[inline]
    pub(super) fn begin_again(&mut self) -> bool {
        self.ahead.take_again().is_none_or(|again| self.reopen(again))
    }

    /// A pass ends as the job does: with the syncs of its end, with closing and opening the files.
    #[cold]
    fn reopen(&mut self, again: Again) -> bool {
        if again == Again::All && syncs_at_end(self.job) {
            self.not_closed = self.sync_files().err();
        }
        if self.job.invalidate && self.job.method != IoMethod::Null {
            match again {
                Again::All => self.files.iter().for_each(opened::drop_cached_pages),
                Again::File(at) => opened::drop_cached_pages(&self.files[at]),
            }
        }
        self.not_closed.is_none()
    }

    fn sync_files(&mut self) -> Result<(), Failure> {
        if self.job.method == IoMethod::Null {
            return Ok(());
        }
        for (number, (file, region)) in self.files.iter().zip(&self.instance.files).enumerate() {
            if let Some(log) = &mut self.io_log {
                log.note(Next { file: number, operation: Operation::Fsync, offset: 0, length: 0 });
            }
            let begun_ns = self.clock.now_ns();
            file.sync_all().map_err(|error| Failure::file("cannot fsync", &region.path, &error))?;
            let complete_ns = self.clock.now_ns();
            self.meter.synced(&Moments { start_ns: begun_ns, issue_ns: begun_ns, complete_ns });
        }
        Ok(())
    }
}

/// As in fio a sync before closing is made at the end, too, where the files are still open.
fn syncs_at_end(job: &Job) -> bool {
    (job.end_fsync || job.fsync_on_close) && job.pattern.mix.writes()
}
