//! Tests of what the loop hands to a method, and when: 16 reads of 4 KiB at a depth of 4. What fio 3.33 does was seen by
//! strace(1).

use std::fs::{File, OpenOptions};
use std::path::Path;

use super::super::buffers::Buffers;
use super::super::clock::Clock;
use super::super::job_counts::JobCounts;
use super::super::method::{IoUring, Libaio};
use super::super::start_line::Wave;
use super::*;
use crate::workload::{JobFile, Workload};

/// libaio, but that one transfer has a file that cannot be read from: the kernel refuses it, and what comes after it.
struct RefusedAt {
    inner: Libaio,
    left: u32,
    unreadable: File,
}

impl Asynchronous for RefusedAt {
    const IN_PLACE: &'static [Operation] = Libaio::IN_PLACE;
    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        let file = if self.left == 0 { self.unreadable.as_fd() } else { transfer.file };
        self.left = self.left.wrapping_sub(1);
        self.inner.queue(&Transfer { file, ..*transfer }, buffers)
    }
    fn submit(&mut self) -> Result<(), Errno> {
        self.inner.submit()
    }
    fn submit_one(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        self.queue(transfer, buffers)?;
        self.submit()
    }
    fn reap_one(&mut self) -> Result<(Completion, bool), Errno> {
        self.inner.reap_one()
    }
    fn refused(&self) -> Option<usize> {
        self.inner.refused()
    }
    fn reap(&mut self, min: usize, max: usize, done: &mut Vec<Completion>) -> Result<bool, Errno> {
        self.inner.reap(min, max, done)
    }
    fn set_alarm(&mut self, after: Duration) -> Result<(), Errno> {
        self.inner.set_alarm(after)
    }
    fn alarm_is_set(&self) -> bool {
        self.inner.alarm_is_set()
    }
    fn reap_or_alarm(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.inner.reap_or_alarm(done)
    }
}

/// A method that counts: transfers in each submission, completions in each reaping.
struct Counted<M> {
    inner: M,
    queued: usize,
    submitted: Vec<usize>,
    reaped: Vec<usize>,
}

impl<M: Asynchronous> Asynchronous for Counted<M> {
    const IN_PLACE: &'static [Operation] = M::IN_PLACE;
    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        self.queued += 1;
        self.inner.queue(transfer, buffers)
    }
    fn submit(&mut self) -> Result<(), Errno> {
        self.submitted.push(std::mem::take(&mut self.queued));
        self.inner.submit()
    }
    fn submit_one(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        self.submitted.push(1);
        self.inner.submit_one(transfer, buffers)
    }
    fn reap_one(&mut self) -> Result<(Completion, bool), Errno> {
        self.reaped.push(1);
        self.inner.reap_one()
    }
    fn reap(&mut self, min: usize, max: usize, done: &mut Vec<Completion>) -> Result<bool, Errno> {
        let before = done.len();
        let reaped = self.inner.reap(min, max, done);
        self.reaped.push(done.len() - before);
        reaped
    }
    fn set_alarm(&mut self, after: Duration) -> Result<(), Errno> {
        self.inner.set_alarm(after)
    }
    fn alarm_is_set(&self) -> bool {
        self.inner.alarm_is_set()
    }
    fn reap_or_alarm(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.inner.reap_or_alarm(done)
    }
}

/// Runs the job with a method of `made`, which is handed back; the directory holds the file.
fn ran<M: Asynchronous>(options: &str, made: impl FnOnce(&Running<'_>, &Path) -> M) -> (M, JobCounts) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![7; 65536]).unwrap();
    let text = format!("[a]\nrw=read\nbs=4k\nsize=64k\nfilename=file\niodepth=4\n{options}\n");
    let file = JobFile::parse(&text, "test.fio", directory.path()).unwrap();
    let workload = Workload::resolve(&file).unwrap();
    let (job, instances) = (&workload.jobs[0], workload.instances(directory.path()));
    let wave = Wave::new(1, 1).unwrap();
    let line = wave.line(0);
    let mut running = Running::new(job, &instances[0], 1, Clock::new(), 4).unwrap();
    let mut method = made(&running, &path);
    let failure = running.run(&line, |running| run(running, &mut method, &line));
    (method, running.finish(failure))
}

impl<M> Counted<M> {
    fn new(inner: M) -> Counted<M> {
        Counted { inner, queued: 0, submitted: Vec::new(), reaped: Vec::new() }
    }

    /// What was counted of a job that read everything.
    fn after(self, counts: &JobCounts) -> (Vec<usize>, Vec<usize>) {
        assert_eq!((counts.failure.as_ref(), counts.directions[0].ios), (None, 16));
        (self.submitted, self.reaped)
    }
}

/// Transfers in each submission and completions in each reaping: of both methods, which are alike in it.
fn batches(options: &str) -> [(Vec<usize>, Vec<usize>); 2] {
    let (ring, of_ring) = ran(&format!("ioengine=io_uring\n{options}"), |running, _| {
        Counted::new(IoUring::new(running.job, 4, &running.files, &running.buffers).unwrap())
    });
    let (context, of_context) = ran(&format!("ioengine=libaio\n{options}"), |running, _| {
        Counted::new(Libaio::new(4, running.job.method_options).unwrap())
    });
    [ring.after(&of_ring), context.after(&of_context)]
}

#[test]
fn what_is_not_asked_for_is_not_batched() {
    for (submitted, reaped) in batches("") {
        assert_eq!(submitted, [1; 16]);
        assert_eq!(reaped, [1; 16]);
    }
}

#[test]
fn batches_are_as_large_as_the_job_asks() {
    for (submitted, reaped) in batches("iodepth_batch=4\niodepth_batch_complete_min=4") {
        assert_eq!((submitted, reaped), (vec![4; 4], vec![4; 4]));
    }
    // Before fio waits for completions it submits what is queued: once the queue is full, one by one all the same.
    for (submitted, reaped) in batches("iodepth_batch=2") {
        assert_eq!(submitted, [vec![2; 2], vec![1; 12]].concat());
        assert_eq!(reaped, [1; 16]);
    }
    // A wait submits three early; they count for the batch, so that the next one fills it and is submitted alone.
    let threes = "iodepth_batch=4\niodepth_batch_complete_min=3\niodepth_batch_complete_max=3";
    for (submitted, reaped) in batches(threes) {
        assert_eq!(reaped, [3, 3, 3, 3, 3, 1]);
        assert_eq!(submitted, [4, 3, 1, 2, 2, 1, 3]);
    }
    // 0 is all that there is room for.
    for (submitted, _) in batches("iodepth_batch=0\niodepth_batch_complete_min=4") {
        assert_eq!(submitted, [4; 4]);
    }
    for (submitted, reaped) in batches("iodepth_low=1") {
        assert_eq!((submitted, reaped), (vec![1; 16], vec![1; 16]));
    }
}

#[test]
fn what_the_kernel_took_before_a_refusal_counts() {
    // One by one; and a first batch of four with the half of the second.
    for batch in ["", "\niodepth_batch_submit=4\niodepth_batch_complete_min=4"] {
        let (_, counts) = ran(&format!("ioengine=libaio{batch}"), |running, path| RefusedAt {
            inner: Libaio::new(4, running.job.method_options).unwrap(),
            left: 6,
            unreadable: OpenOptions::new().write(true).open(path).unwrap(),
        });
        assert!(counts.failure.is_some(), "{batch}");
        let read = &counts.directions[0];
        assert_eq!((read.ios, read.bytes), (6, 6 * 4096), "{batch}");
    }
}

#[test]
fn reads_writes_and_syncs_that_are_in_flight_together_count_as_what_they_are() {
    let options = "ioengine=io_uring\nrw=randrw\nbsrange=4k-8k\nfsync=2\nsize=64k";
    let (_, counts) =
        ran(options, |running, _| IoUring::new(running.job, 4, &running.files, &running.buffers).unwrap());
    assert_eq!(counts.failure, None);
    let bytes: Vec<u64> = counts.directions.iter().map(|direction| direction.bytes).collect();
    let writes = counts.directions[1].ios;
    assert!(bytes.len() == 2 && bytes.iter().all(|bytes| *bytes > 0) && bytes.iter().sum::<u64>() == 65536);
    let syncs = counts.sync.as_ref().map(|sync| sync.unpack().unwrap().len());
    assert_eq!(syncs, (writes >= 2).then_some(writes / 2));
    for direction in &counts.directions {
        for histogram in &direction.histograms {
            assert_eq!(histogram.unpack().unwrap().len(), direction.ios, "{:?}", histogram.kind);
        }
    }
}
