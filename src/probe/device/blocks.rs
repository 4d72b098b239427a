//! 4 KiB blocks at random places of a file, past the page cache, so many at a time, by io_uring(7).
//!
//! Enters: a file and a depth. Leaves: I/Os a second. The loop is the plainest there is: an entry a block, one call for whatever is to be
//! submitted and the next completion. It is not the native engine's, which belongs to a layer that this one may not use.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};

use super::super::memory::Memory;
use super::super::random::Random;
use super::super::{Group, Probe};
use super::BLOCK;
use super::scratch_file::ScratchFile;
use crate::units::Unit;

/// Reads or writes, `depth` at a time.
///
/// # Errors
/// io_uring is not there or not allowed; ENOMEM.
pub(super) fn probe(file: Arc<ScratchFile>, writes: bool, depth: u32) -> std::io::Result<Probe> {
    let mut blocks = Blocks::new(file, writes, depth)?;
    let name = format!("{}.4k.d{depth}", if writes { "write" } else { "read" });
    Ok(Probe::new(Group::Device, name, Unit::PerSecond, move |slice| blocks.sample(slice)))
}

/// What it works with.
struct Blocks {
    ring: IoUring,
    /// A block for each slot; taken away when the kernel may still write to it.
    buffers: Option<Memory>,
    file: Arc<ScratchFile>,
    writes: bool,
    depth: u32,
    random: Random,
}

impl Blocks {
    fn new(file: Arc<ScratchFile>, writes: bool, depth: u32) -> std::io::Result<Blocks> {
        let random = Random(u64::from(depth) << 1 | u64::from(writes));
        let buffers = Some(Memory::filled(BLOCK * depth as usize, random.0)?);
        Ok(Blocks { ring: IoUring::new(depth)?, buffers, file, writes, depth, random })
    }

    /// Puts the next block of this slot into the queue.
    fn queue(&mut self, slot: u64) -> std::io::Result<()> {
        let Some(buffers) = &mut self.buffers else {
            return Err(std::io::Error::other("the ring has failed"));
        };
        let buffer = &mut buffers[slot as usize * BLOCK..][..BLOCK];
        let file = types::Fd(self.file.file.as_raw_fd());
        let place = self.file.place(BLOCK, &mut self.random);
        let entry = match self.writes {
            true => opcode::Write::new(file, buffer.as_ptr(), BLOCK as u32).offset(place).build(),
            false => opcode::Read::new(file, buffer.as_mut_ptr(), BLOCK as u32).offset(place).build(),
        };
        #[expect(unsafe_code, reason = "the kernel reads and writes memory by address")]
        // SAFETY: the slot's block lives until its completion: `sample` reaps all of them or gives the memory up, and nobody touches it
        // meanwhile. The file is open as long as this probe.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot)) };
        pushed.map_err(std::io::Error::other)
    }

    /// Takes what has ended, after at least one; the slots.
    fn reap(&mut self, free: &mut Vec<u64>) -> std::io::Result<()> {
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The kernel may still have blocks: they are never given back.
                    std::mem::forget(self.buffers.take());
                    return Err(error);
                }
                Ok(_) => break,
            }
        }
        let mut failed = Ok(());
        for event in self.ring.completion() {
            free.push(event.user_data());
            match event.result() {
                moved if moved == BLOCK as i32 => {}
                error if error < 0 => failed = Err(std::io::Error::from_raw_os_error(-error)),
                _ => failed = Err(std::io::Error::other("a block was moved in part")),
            }
        }
        failed
    }

    fn sample(&mut self, slice: Duration) -> std::io::Result<f64> {
        let mut free: Vec<u64> = (0..u64::from(self.depth)).collect();
        let (begun, mut done, mut in_flight) = (Instant::now(), 0_u64, 0_usize);
        let mut failed = Ok(());
        loop {
            let goes_on = failed.is_ok() && self.buffers.is_some() && (done == 0 || begun.elapsed() < slice);
            while goes_on && let Some(slot) = free.pop() {
                if let Err(error) = self.queue(slot) {
                    // What was queued before is still to be waited for.
                    failed = Err(error);
                    free.push(slot);
                    break;
                }
                in_flight += 1;
            }
            if in_flight == 0 {
                break;
            }
            let reaped = self.reap(&mut free);
            let ended = free.len();
            // Every slot that is free again has ended.
            let now_free = self.depth as usize - in_flight;
            done += (ended - now_free) as u64;
            in_flight = self.depth as usize - ended;
            if let Err(error) = reaped {
                failed = Err(error);
                if self.buffers.is_none() {
                    break;
                }
            }
        }
        failed.map(|()| done as f64 / begun.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_depth_moves_blocks_and_a_failure_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = Arc::new(ScratchFile::cached(directory.path(), 1 << 20).unwrap());
        for (writes, depth) in [(false, 1), (true, 1), (false, 64), (true, 64)] {
            let mut probe = match probe(Arc::clone(&file), writes, depth) {
                Ok(probe) => probe,
                Err(error) => {
                    assert!(std::env::var_os("CI").is_none(), "io_uring: {error}, and CI skips nothing");
                    return eprintln!("SKIPPED: io_uring: {error}");
                }
            };
            for _ in 0..3 {
                let rate = (probe.sample)(Duration::from_millis(2)).unwrap();
                assert!(rate > 0.0 && rate.is_finite(), "{}: {rate}", probe.name);
            }
        }
        // The file has become too short: blocks are read in part or not at all.
        file.file.set_len(0).unwrap();
        let mut probe = probe(Arc::clone(&file), false, 8).unwrap();
        let told = (probe.sample)(Duration::from_millis(2)).unwrap_err();
        assert_eq!(told.to_string(), "a block was moved in part");
    }
}
