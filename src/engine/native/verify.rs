//! `verify`: what is written proves itself, and what is read is judged.
//!
//! Enters: each write before it is issued, each transfer once it ended. Leaves: stamped blocks, the reads of the
//! read-back, and one failure for all that is wrong. It must not know how transfers are made. fio's rules: a job that
//! only reads judges every block; a job that writes reads back what it wrote (`do_verify`), after the writes of a pass
//! or in between (`verify_backlog`); the reads of a mixed job are not judged.

use std::path::{Path, PathBuf};

use super::content::{fill_random, mixed};
use super::failure::Failure;
use super::method::Operation;
use super::source::Next;
use super::verify_block::{BlockProof, Stamp, Wrong};
use super::verify_history::{Expected, History};
use crate::workload::{Access, FileOrder, Instance, IoMethod, Job, Verify};

/// Proves and judges the blocks of one instance.
pub(super) struct Verifier {
    proof: BlockProof,
    paths: Vec<PathBuf>,
    /// Share of each block's random content that compresses away, percent.
    compress_percent: u64,
    seed: u64,
    writer: u16,
    writes: u64,
    history: Option<History>,
    judges_every_read: bool,
    /// The number of the write is known: a block is of one write, and no other job's.
    knows_number: bool,
    /// Nothing is transferred: every block is right, as in fio.
    pretends: bool,
    fatal: bool,
    backlog: Backlog,
    reading_back: bool,
    bytes_read_back: u64,
    wrong: u64,
    first: Option<(PathBuf, Wrong)>,
}

/// `verify_backlog`: a batch of read-backs after so many writes.
#[derive(Clone, Copy, Debug, Default)]
struct Backlog {
    every: u64,
    batch: u64,
    /// Of the current batch.
    left: u64,
    last_was_read: bool,
}

impl Verifier {
    /// For the job's `verify`; `None` when it has none.
    pub(super) fn new(job: &Job, instance: &Instance, seed: u64) -> Option<Verifier> {
        let verify = job.verify.as_ref()?;
        let mix = job.pattern.mix;
        let sizes = job.block_sizes.write;
        Some(Verifier {
            proof: BlockProof::new(job, verify),
            paths: instance.files.iter().map(|region| region.path.clone()).collect(),
            compress_percent: u64::from(job.redundancy.compress_percent.min(100)),
            seed: mixed(seed),
            writer: (instance.number + 1) as u16,
            writes: 0,
            history: keeps_history(job, verify).then(|| History::new(writes_once(job))),
            judges_every_read: mix.reads() && !mix.writes(),
            knows_number: sizes.is_fixed() && !job.time_based,
            pretends: job.method == IoMethod::Null,
            fatal: verify.fatal,
            backlog: Backlog {
                every: verify.backlog,
                batch: if verify.backlog_batch == 0 { verify.backlog } else { verify.backlog_batch },
                ..Backlog::default()
            },
            reading_back: false,
            bytes_read_back: 0,
            wrong: 0,
            first: None,
        })
    }

    /// Puts into a buffer what will be written there.
    pub(super) fn write(&mut self, block: &mut [u8], next: &Next) {
        let number = self.writes;
        self.writes += 1;
        if let Some(history) = &mut self.history {
            history.issue(next.file, next.offset, next.length, number);
        }
        let seed = mixed(self.seed.wrapping_add(number));
        if !self.proof.has_pattern() {
            let random = block.len() as u64 * (100 - self.compress_percent) / 100;
            let (random, zeroes) = block.split_at_mut(random as usize);
            fill_random(random, seed);
            zeroes.fill(0);
        }
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        let stamp = Stamp {
            seed,
            seconds: now.tv_sec as u32,
            nanoseconds: now.tv_nsec as u32,
            writer: self.writer,
            number: number as u16,
        };
        self.proof.stamp(block, next.offset, &stamp);
    }

    /// A block to be read back between the writes, because a backlog is full.
    pub(super) fn of_backlog(&mut self) -> Option<Next> {
        let waiting = self.history.as_ref()?.len();
        if self.reading_back || !self.backlog.is_due(waiting) {
            return None;
        }
        let next = self.read_back()?;
        self.backlog.left = self.backlog.left.saturating_sub(1);
        Some(next)
    }

    /// The next block to be read back; `None` when there is none, or it is still being written.
    pub(super) fn read_back(&mut self) -> Option<Next> {
        let block = self.history.as_mut()?.take()?;
        self.bytes_read_back += u64::from(block.length);
        let (file, offset, length) = (block.file, block.offset, block.length);
        Some(Next { file, operation: Operation::Read, offset, length })
    }

    /// Whether only the read-back is left of this pass.
    pub(super) fn is_reading_back(&self) -> bool {
        self.reading_back
    }

    /// Begins the read-back phase; false when there is nothing to read back.
    pub(super) fn begin_read_back(&mut self) -> bool {
        self.reading_back = self.history.as_ref().is_some_and(|history| history.len() > 0);
        self.reading_back
    }

    /// Ends a pass: the bytes that were read back in it.
    pub(super) fn end_pass(&mut self) -> u64 {
        self.reading_back = false;
        self.backlog.left = 0;
        if let Some(history) = &mut self.history {
            history.clear();
        }
        std::mem::take(&mut self.bytes_read_back)
    }

    /// Looks at a transfer that ended well.
    ///
    /// # Errors
    /// [`Failure::Verify`] for the first wrong block with `verify_fatal`.
    pub(super) fn completed(&mut self, block: &[u8], next: &Next) -> Result<(), Failure> {
        self.backlog.last_was_read = next.operation == Operation::Read;
        let expected = match (next.operation, &mut self.history) {
            (Operation::Write, Some(history)) => {
                history.complete(next.file, next.offset);
                return Ok(());
            }
            (Operation::Read, _) if self.judges_every_read => None,
            (Operation::Read, Some(history)) => match history.arrived(next.file, next.offset) {
                Some(Expected::Write(number)) => self.knows_number.then_some(number as u16),
                Some(Expected::Anything) | None => return Ok(()),
            },
            _ => return Ok(()),
        };
        if self.pretends {
            return Ok(());
        }
        let (wrong, first) = self.proof.judge(block, next.offset, expected);
        self.wrong += wrong;
        if let (Some(first), None) = (first, &self.first) {
            self.first = Some((self.paths[next.file].clone(), first));
        }
        if wrong > 0 && self.fatal { self.failure().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// All that was wrong.
    pub(super) fn failure(&self) -> Option<Failure> {
        let (path, first) = self.first.as_ref()?;
        Some(wrong_blocks(path, first, self.wrong))
    }
}

impl Backlog {
    /// fio's rule: whenever a multiple of `verify_backlog` blocks wait after a write, and until the batch is done.
    fn is_due(&mut self, waiting: usize) -> bool {
        if self.every == 0 || waiting == 0 {
            return false;
        }
        if self.left == 0 && !self.last_was_read && (waiting as u64).is_multiple_of(self.every) {
            self.left = self.batch;
        }
        self.left > 0
    }
}

/// Whether what is written will be read back: not when the time ends the job in any case, as in fio.
fn keeps_history(job: &Job, verify: &Verify) -> bool {
    let ever_read = verify.backlog > 0 || !job.time_based;
    job.pattern.mix.writes() && verify.read_back && ever_read
}

/// Whether no block is written twice in a pass. fio takes every job with a random map for one, and then finds blocks
/// wrong that sequential I/Os in between (`percentage_random`) or a file's second turn wrote again.
fn writes_once(job: &Job) -> bool {
    let ends =
        matches!(job.file_service.order, FileOrder::RoundRobin | FileOrder::Random | FileOrder::Sequential);
    let [_, random, _] = job.percentage_random;
    job.pattern.access == Access::Random && job.random_map && random == 100 && ends
}

/// Whether the instance reads back what it writes, so that its files must be readable, too.
pub(super) fn reads_back(job: &Job) -> bool {
    job.verify.as_ref().is_some_and(|verify| keeps_history(job, verify))
}

/// Whether the instance reads only in the phases in which it writes nothing.
pub(super) fn reads_apart(job: &Job) -> bool {
    let between = job.verify.as_ref().is_some_and(|verify| verify.backlog > 0);
    reads_back(job) && !job.pattern.mix.reads() && !between
}

fn wrong_blocks(path: &Path, first: &Wrong, count: u64) -> Failure {
    Failure::Verify {
        path: path.to_owned(),
        offset: first.offset,
        length: first.length as u64,
        what: first.what.clone(),
        more: count.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{JobFile, Workload};

    fn verifier(settings: &str) -> Verifier {
        let text = format!("[j]\nsize=64k\nverify=crc32c\n{settings}\n");
        let file = JobFile::parse(&text, "test.fio", Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instances = workload.instances(Path::new("."));
        Verifier::new(&workload.jobs[0], &instances[0], 7).unwrap()
    }

    fn transfer(operation: Operation, offset: u64) -> Next {
        Next { file: 0, operation, offset, length: 4096 }
    }

    /// Writes a block; what was written.
    fn write(verifier: &mut Verifier, offset: u64) -> Vec<u8> {
        let mut block = vec![0; 4096];
        let next = transfer(Operation::Write, offset);
        verifier.write(&mut block, &next);
        verifier.completed(&block, &next).unwrap();
        block
    }

    /// A device that lost a write still has a block that is right by itself.
    #[test]
    fn an_older_block_is_wrong() {
        let mut verifier = verifier("rw=randwrite\nnorandommap\nverify_fatal=1");
        let old = write(&mut verifier, 8192);
        let new = write(&mut verifier, 8192);
        assert_ne!(old, new);
        assert!(verifier.begin_read_back() && verifier.of_backlog().is_none());
        let next = verifier.read_back().unwrap();
        assert_eq!((next.operation, next.offset, next.length), (Operation::Read, 8192, 4096));
        let error = verifier.completed(&old, &next).unwrap_err().to_string();
        let says = "4096 bytes at offset 8192 of ./j.0.0 are wrong: it is write 0 of the job numbered 1, and this job's last one there was 1";
        assert!(error.contains(says), "{error}");
        assert!(verifier.read_back().is_none());
        assert_eq!(verifier.end_pass(), 4096);
    }

    #[test]
    fn wrong_blocks_are_counted_and_the_first_is_kept() {
        let mut verifier = verifier("rw=read");
        let block = vec![0; 4096];
        for offset in [4096, 0] {
            verifier.completed(&block, &transfer(Operation::Read, offset)).unwrap();
        }
        let error = verifier.failure().unwrap().to_string();
        assert!(
            error.contains("at offset 4096 of") && error.contains("2 blocks are wrong in all"),
            "{error}"
        );
    }

    #[test]
    fn reads_of_a_mixed_job_are_not_judged() {
        let mut verifier = verifier("rw=randrw");
        verifier.completed(&[0; 4096], &transfer(Operation::Read, 0)).unwrap();
        assert!(verifier.failure().is_none());
    }

    #[test]
    fn a_full_backlog_is_read_back_between_the_writes() {
        let mut verifier = verifier("rw=write\nverify_backlog=3\nverify_backlog_batch=2");
        let mut blocks = Vec::new();
        for number in 0..3 {
            assert!(verifier.of_backlog().is_none(), "{number} blocks wait");
            blocks.push(write(&mut verifier, number * 4096));
        }
        for block in &blocks[..2] {
            let next = verifier.of_backlog().unwrap();
            verifier.completed(block, &next).unwrap();
        }
        assert!(verifier.of_backlog().is_none(), "the batch is done");
        assert!(verifier.begin_read_back() && verifier.is_reading_back());
        assert_eq!(verifier.read_back().map(|next| next.offset), Some(2 * 4096));
        assert!(verifier.failure().is_none());
        assert_eq!(verifier.end_pass(), 3 * 4096);
    }
}
