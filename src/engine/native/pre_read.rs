//! `pre_read=1`: the files of a wave's jobs are read once before it starts, so that its transfers find them in the page
//! cache. fio's `pre_read_file`: a file's region, through the page cache, in the largest blocks that the job reads, up to 1 MiB.
//!
//! Enters: instances whose files were laid out. Leaves: nothing but a warm cache. It must not know how transfers are
//! made: it opens each file by itself.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use super::failure::Failure;
use crate::workload::{FileRegion, Instance, IoMethod, Workload};

/// Most bytes a read: a block may be 1 GiB, also one that the job never reads.
const MOST: u64 = 1 << 20;

/// Reads what the jobs of `wave` ask to be read beforehand.
///
/// # Errors
/// [`Failure::File`] naming the first file that cannot be read.
pub(super) fn wave(workload: &Workload, instances: &[Instance], wave: u32) -> Result<(), Failure> {
    let asks = |instance: &&Instance| {
        let job = &workload.jobs[instance.job];
        instance.wave == wave && job.pre_read && job.method != IoMethod::Null
    };
    let mut buffer = Vec::new();
    for instance in instances.iter().filter(asks) {
        // The size of the reads decides how large the folios are that the kernel reads ahead, and a transfer from a large
        // folio takes less time.
        let block = workload.jobs[instance.job].block_sizes.read.max.clamp(1, MOST);
        buffer.resize(block as usize, 0);
        instance.files.iter().try_for_each(|region| read(region, &mut buffer))?;
    }
    Ok(())
}

/// Reads a region, or what of it is there: a job that writes may make its file only later.
fn read(region: &FileRegion, buffer: &mut [u8]) -> Result<(), Failure> {
    let path = region.path.as_path();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::file("cannot open", path, &error)),
    };
    let end = region.file_size().unwrap_or(u64::MAX);
    let mut at = region.offset;
    while at < end {
        let most = (end - at).min(buffer.len() as u64) as usize;
        match file.read_at(&mut buffer[..most], at) {
            Ok(0) => break,
            Ok(count) => at += count as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::file("cannot read beforehand", path, &error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{JobFile, Workload};

    /// Calls of read(2) and its like that this thread has made.
    fn calls() -> u64 {
        let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        io.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap().parse().unwrap()
    }

    #[test]
    fn files_are_read_in_the_largest_blocks_that_the_job_reads() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), vec![7; 1 << 20]).unwrap();
        for (options, expected) in
            [("bs=4k", 256), ("bsrange=4k-16k", 64), ("bs=4k,1m", 256), ("rw=write\nbs=1g,4k", 1)]
        {
            let text = format!("[a]\nrw=randread\nsize=1m\nfilename=file\npre_read=1\n{options}\n");
            let file = JobFile::parse(&text, "test.fio", directory.path()).unwrap();
            let workload = Workload::resolve(&file).unwrap();
            let instances = workload.instances(directory.path());
            let before = calls();
            wave(&workload, &instances, 0).unwrap();
            // Besides, only the counter was read.
            let made = calls() - before;
            assert!((expected..expected + 8).contains(&made), "{options}: {made} calls");
        }
    }
}
