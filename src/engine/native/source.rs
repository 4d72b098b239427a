//! The next transfer of an instance: which file, which direction, where; when to sync; when to begin again.

use std::fs::File;

use super::failure::Failure;
use super::method::{Operation, RangesWritten};
use super::opened::end_of;
use super::verify;
use crate::workload::{
    Access, DataDirection, DirectionChoice, FileChoice, Instance, IoMethod, Job, Mix, Offsets, SeedRule,
};

/// One transfer to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    /// Index into the instance's files.
    pub(super) file: usize,
    pub(super) operation: Operation,
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl Default for Next {
    fn default() -> Next {
        Next { file: 0, operation: Operation::Read, offset: 0, length: 0 }
    }
}

/// Makes the transfers of one instance until its amount is done; for ever when it is time based.
pub(super) struct Source {
    seed: u64,
    choice: DirectionChoice,
    files: Vec<FileSource>,
    /// The file whose turn it is (fio's round robin).
    turn: usize,
    /// `file_service_type`, when that is not one after the other, an I/O each.
    file_choice: Option<Box<FileChoice>>,
    /// Of this loop.
    bytes_left: u64,
    bytes_a_loop: u64,
    loops_left: u32,
    /// Regions are begun again within a loop: only with `io_size`, as in fio.
    begins_again: bool,
    max_block: u64,
    /// The length of every I/O, when all are alike: one file, one direction, one size, no syncs.
    alike: Option<u64>,
    endless: bool,
    /// No amount ends it or begins its files again, only their ends do: as in fio where a job fills its time.
    boundless: bool,
    /// Ends where the files were gone through once: see [`Source::next_pass`].
    one_pass: bool,
    sync_every: [(u32, Operation); 2],
    writes_since_sync: [u32; 2],
    sync_due: Option<Operation>,
    /// `sync_file_range`: what was written since each file was synced.
    ranges: Option<Box<RangesWritten>>,
    /// Each file begins again by itself where it ends: as in fio, where nothing else ends a job, one that is alone, or any file of
    /// random I/O.
    wraps: bool,
    began_again: Option<Again>,
}

/// What was begun again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// One file, which stayed open.
    File(usize),
    /// All files: fio closes and opens them.
    All,
}

struct FileSource {
    offsets: Offsets,
    done: bool,
}

impl Source {
    /// For the regions of `instance`; a region without a length ends where its file or device does.
    pub(super) fn new(
        job: &Job,
        instance: &Instance,
        files: &[File],
        trial_seed: u64,
    ) -> Result<Source, Failure> {
        let seed = seed(job, instance, trial_seed);
        let mut total = 0_u64;
        let mut sources = Vec::new();
        for (number, (region, file)) in instance.files.iter().zip(files).enumerate() {
            let length = match region.length {
                Some(length) => length,
                None => end_of(file, &region.path)?.saturating_sub(region.offset),
            };
            if job.method != IoMethod::Null && !job.pattern.mix.writes() {
                large_enough(file, region.offset + length, &region.path)?;
            }
            zones_fit(job, length, &region.path)?;
            total = total.saturating_add(length);
            let seed = seed.wrapping_add((number as u64).wrapping_mul(0xa076_1d64_78bd_642f));
            sources.push(FileSource { offsets: Offsets::new(job, region.offset, length, seed), done: false });
        }
        let once = instance.io_size.unwrap_or(total);
        let endless = job.time_based && job.runtime.is_some();
        let reads_back = verify::reads_back(job);
        Ok(Source {
            seed,
            choice: DirectionChoice::new(job.pattern.mix, seed ^ 0x5851_f42d_4c95_7f2d),
            files: sources,
            turn: 0,
            file_choice: FileChoice::new(
                job.file_service,
                instance.files.len(),
                seed ^ 0x2545_f491_4f6c_dd1d,
            )
            .map(Box::new),
            bytes_left: once,
            bytes_a_loop: once,
            loops_left: job.loops.max(1) - 1,
            begins_again: job.io_size.is_some(),
            max_block: job.max_block(),
            alike: alike(job, instance).then(|| job.max_block()),
            endless,
            boundless: endless && !reads_back,
            one_pass: reads_back && !endless,
            sync_every: [(job.fsync, Operation::Fsync), (job.fdatasync, Operation::Fdatasync)],
            writes_since_sync: [0, 0],
            sync_due: None,
            ranges: job.sync_file_range.map(|sync| Box::new(RangesWritten::new(sync, files.len()))),
            wraps: endless
                && !reads_back
                && (instance.files.len() == 1 || job.pattern.access == Access::Random),
            began_again: None,
        })
    }

    /// The seed of this instance.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes that are still to be transferred.
    pub(super) fn bytes_left(&self) -> u64 {
        self.bytes_left.saturating_add(self.bytes_a_loop.saturating_mul(u64::from(self.loops_left)))
    }

    /// The next transfer, or `None` when the amount is done.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Next> {
        self.next_steered(|drawn| drawn)
    }

    /// The same, in the direction that `steer` makes of the one drawn.
    #[inline]
    pub(super) fn next_steered(
        &mut self,
        steer: impl FnOnce(DataDirection) -> DataDirection,
    ) -> Option<Next> {
        if self.bytes_left == 0 && !self.boundless && (self.one_pass || !self.next_loop()) {
            // As in fio, a sync that the very last write made due is not issued.
            return None;
        }
        if let Some(operation) = self.sync_due.take() {
            let file = self.whose_turn();
            let (offset, length) = self.ranges.as_mut().map_or((0, 0), |ranges| ranges.take(file, operation));
            return Some(Next { file, operation, offset, length });
        }
        let direction = steer(self.choice.draw());
        let (file, offset, length) = match self.place(direction) {
            Some(place) => place,
            None if self.one_pass => return None,
            None => {
                self.begin_again()?;
                self.place(direction)?
            }
        };
        self.bytes_left = self.bytes_left.saturating_sub(length);
        let operation = match direction {
            DataDirection::Read => Operation::Read,
            DataDirection::Write => Operation::Write,
            DataDirection::Trim => Operation::Trim,
        };
        if operation == Operation::Write {
            self.count_write();
            if let Some(ranges) = &mut self.ranges {
                let due = ranges.note(file, offset, length);
                self.sync_due = self.sync_due.or(due);
            }
        }
        Some(Next { file, operation, offset, length: length as u32 })
    }

    /// Begins the files again after a pass in which `read_back` bytes were read back, which fio counts towards
    /// `io_size`; false when the amount is done.
    pub(super) fn next_pass(&mut self, read_back: u64) -> bool {
        self.bytes_left = self.bytes_left.saturating_sub(read_back);
        self.begin_again().is_some()
    }

    /// The file that a sync goes to: as in fio the one whose turn it is, which with that has had its turn.
    fn whose_turn(&mut self) -> usize {
        if let Some(choice) = &mut self.file_choice {
            return choice.draw(|at| !self.files[at].done).unwrap_or(0);
        }
        let count = self.files.len();
        let at = (self.turn..self.turn + count).map(|at| at % count).find(|at| !self.files[*at].done);
        let at = at.unwrap_or(self.turn);
        self.turn = (at + 1) % count;
        at
    }

    /// Appends up to `most` offsets of transfers that differ in nothing else from the `next` one just drawn; none where
    /// that cannot be known without looking at each.
    pub(super) fn more_alike(&mut self, next: &Next, most: usize, into: &mut Vec<u64>) {
        let Some(length) = self.alike else { return };
        let affordable = if self.boundless { u64::MAX } else { self.bytes_left.div_ceil(length) };
        let direction = match next.operation {
            Operation::Read => DataDirection::Read,
            Operation::Write => DataDirection::Write,
            _ => return,
        };
        let before = into.len();
        self.files[0].offsets.fill(
            direction,
            most.min(usize::try_from(affordable).unwrap_or(usize::MAX)),
            into,
        );
        self.bytes_left = self.bytes_left.saturating_sub((into.len() - before) as u64 * length);
    }

    /// The next place in the file whose turn it is, or in the next that is not done.
    #[inline]
    fn place(&mut self, direction: DataDirection) -> Option<(usize, u64, u64)> {
        if self.file_choice.is_some() {
            return self.place_chosen(direction);
        }
        for _ in 0..self.files.len() {
            let at = self.turn;
            self.turn = if at + 1 == self.files.len() { 0 } else { at + 1 };
            let file = &mut self.files[at];
            if file.done {
                continue;
            }
            match file.offsets.draw(direction) {
                Some((offset, length)) => return Some((at, offset, length)),
                None if self.wraps => {
                    // As in fio: such a file stays open, and a direction that came to its end goes on at its start.
                    file.offsets.wrap(direction);
                    match file.offsets.draw(direction) {
                        Some((offset, length)) => {
                            self.began_again = Some(Again::File(at));
                            return Some((at, offset, length));
                        }
                        // Not one block fits into it.
                        None => file.done = true,
                    }
                }
                None => file.done = true,
            }
        }
        None
    }

    /// The next place in the file that is chosen. As in fio a file of a skewed choice begins again by itself.
    fn place_chosen(&mut self, direction: DataDirection) -> Option<(usize, u64, u64)> {
        let choice = self.file_choice.as_mut()?;
        loop {
            let at = choice.draw(|at| !self.files[at].done)?;
            let file = &mut self.files[at];
            let mut place = file.offsets.draw(direction);
            if place.is_none() && (choice.is_skewed() || self.wraps) {
                file.offsets.restart();
                self.began_again = self.wraps.then_some(Again::File(at));
                place = file.offsets.draw(direction);
            }
            match place {
                Some((offset, length)) => return Some((at, offset, length)),
                None => file.done = true,
            }
        }
    }

    /// fio's `keep_running` when all files are done: within a loop only with `io_size` and a block or more to go.
    fn begin_again(&mut self) -> Option<()> {
        if self.begins_again && self.bytes_left >= self.max_block {
            self.restart();
            return Some(());
        }
        self.next_loop().then_some(())
    }

    fn next_loop(&mut self) -> bool {
        if !self.endless && self.loops_left == 0 {
            return false;
        }
        self.loops_left = self.loops_left.saturating_sub(1);
        self.bytes_left = self.bytes_a_loop;
        self.restart();
        true
    }

    /// What was begun again since this was last asked.
    #[inline]
    pub(super) fn began_again(&mut self) -> Option<Again> {
        self.began_again.take()
    }

    fn restart(&mut self) {
        self.began_again = Some(Again::All);
        for file in &mut self.files {
            file.offsets.restart();
            file.done = false;
        }
    }

    #[inline]
    fn count_write(&mut self) {
        for (count, (every, operation)) in self.writes_since_sync.iter_mut().zip(self.sync_every) {
            *count += 1;
            if every > 0 && *count >= every {
                *count = 0;
                // Where both are due fio makes the first, and that is all.
                self.sync_due = self.sync_due.or(Some(operation));
            }
        }
    }
}

fn alike(job: &Job, instance: &Instance) -> bool {
    let pure = matches!(job.pattern.mix, Mix::Read | Mix::Write);
    instance.files.len() == 1
        && pure
        && job.max_block() == job.min_block()
        && job.fsync == 0
        && job.fdatasync == 0
        && job.sync_file_range.is_none()
}

/// The same in every trial with `randrepeat`; another for every instance.
fn seed(job: &Job, instance: &Instance, trial_seed: u64) -> u64 {
    let base = match job.seed {
        SeedRule::Repeat(seed) => seed,
        SeedRule::Trial => trial_seed,
    };
    base.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (u64::from(instance.number) + 1).wrapping_mul(0xe703_7ed1_a0b4_28db)
}

/// As in fio, zones that reach beyond a file are an error.
fn zones_fit(job: &Job, length: u64, path: &std::path::Path) -> Result<(), Failure> {
    let needed = job.distribution.zoned_bytes();
    if needed > length {
        return Err(Failure::Setting {
            job: path.display().to_string(),
            what: format!(
                "the zones of random_distribution= take {needed} bytes, and its region has {length}"
            ),
        });
    }
    Ok(())
}

/// A read beyond the end would be short: better said before the first I/O.
fn large_enough(file: &File, needed: u64, path: &std::path::Path) -> Result<(), Failure> {
    let have = end_of(file, path)?;
    if have < needed {
        return Err(Failure::TooSmall { path: path.to_owned(), have, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{JobFile, Workload};

    /// The first transfers of a job that fills its time: what each does, its block of 4 KiB, and whether its file was begun again.
    fn transfers(options: &str, count: usize) -> Vec<(Operation, u64, bool)> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), vec![1_u8; 16 * 4096]).unwrap();
        let text = format!("[j]\nfilename=f\nbs=4k\nruntime=1\ntime_based\n{options}\n");
        let file = JobFile::parse(&text, "test", directory.path()).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instance = &workload.instances(directory.path())[0];
        let files = [File::open(&instance.files[0].path).unwrap()];
        let mut source = Source::new(&workload.jobs[0], instance, &files, 7).unwrap();
        let mut next = || {
            let next = source.next().unwrap();
            (next.operation, next.offset / 4096, source.began_again().is_some())
        };
        (0..count).map(|_| next()).collect()
    }

    fn passes_begun(options: &str, count: usize) -> usize {
        let all = transfers(&format!("size=64k\n{options}"), count);
        all.iter().filter(|(_, _, began_again)| *began_again).count()
    }

    fn source_of(text: &str, sizes: &[usize]) -> Source {
        let directory = tempfile::tempdir().unwrap();
        for (number, blocks) in sizes.iter().enumerate() {
            std::fs::write(directory.path().join(format!("f{number}")), vec![1_u8; blocks * 4096]).unwrap();
        }
        let file = JobFile::parse(text, "test", directory.path()).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instance = &workload.instances(directory.path())[0];
        let files: Vec<File> =
            instance.files.iter().map(|region| File::open(&region.path).unwrap()).collect();
        Source::new(&workload.jobs[0], instance, &files, 7).unwrap()
    }

    /// As fio: nothing else ends such a job, and each file goes on by itself; the turns stay equal.
    #[test]
    fn random_files_of_a_job_that_fills_its_time_begin_again_one_by_one() {
        let text = "[j]\nrw=randread\nbs=4k\nfilename=f0:f1\nnrfiles=2\nsize=32k\nruntime=1\ntime_based\n";
        let mut source = source_of(text, &[4, 4]);
        let turns: Vec<(usize, Option<Again>)> = (0..24)
            .map(|_| {
                let file = source.next().unwrap().file;
                (file, source.began_again())
            })
            .collect();
        assert_eq!(turns.iter().filter(|(file, _)| *file == 0).count(), 12);
        let again: Vec<Again> = turns.iter().filter_map(|(_, again)| *again).collect();
        assert_eq!(again, [Again::File(0), Again::File(1), Again::File(0), Again::File(1)]);
    }

    #[test]
    fn what_fills_its_time_goes_to_the_end_of_its_file() {
        // As fio's iolog shows it: no amount begins a file again before its end.
        for options in ["size=64k\nio_size=16k", "size=16k\nfilesize=64k"] {
            let blocks: Vec<u64> =
                transfers(&format!("rw=read\n{options}"), 40).iter().map(|(_, block, _)| *block).collect();
            let expected: Vec<u64> = (0..40).map(|at| at % 16).collect();
            assert_eq!(blocks, expected, "{options}");
        }
        let mixed = transfers("rw=rw\nrwmixread=70\nsize=64k", 200);
        for (operation, least) in [(Operation::Read, 100), (Operation::Write, 30)] {
            let of = mixed.iter().filter(|(done, _, _)| *done == operation);
            let blocks: Vec<u64> = of.map(|(_, block, _)| *block).collect();
            let expected: Vec<u64> = (0..blocks.len() as u64).map(|at| at % 16).collect();
            assert!(blocks.len() > least && blocks == expected, "{operation:?}: {blocks:?}");
        }
    }

    #[test]
    fn files_are_begun_again_only_where_a_map_or_a_sequence_ends() {
        assert_eq!(passes_begun("rw=randread", 160), 9);
        assert_eq!(passes_begun("rw=read", 160), 9);
        // Seen in fio: without a map the cached pages stay, however long it runs.
        assert_eq!(passes_begun("rw=randread\nnorandommap", 160), 0);
        assert_eq!(passes_begun("rw=randread\nrandom_distribution=zipf:1.2", 160), 0);
    }
}
