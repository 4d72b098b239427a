//! What does not fit together in a job, or is missing from it.
//!
//! Enters: the job as put together. Leaves: what is wrong, each with what would be right.

use crate::workload::errors::ProblemKind;
use crate::workload::issue::IoMethod;
use crate::workload::job::Job;

/// What does not fit together, or is missing.
pub(super) fn contradictions(job: &Job) -> Vec<(ProblemKind, String)> {
    let mut found = Vec::new();
    let mut add = |kind, message: String| found.push((kind, message));
    if job.size.is_none() && job.filesize.is_none() && job.filenames.is_empty() {
        add(ProblemKind::Inconsistent, "needs size=, e.g. size=64m".to_owned());
    }
    let least = job.size.into_iter().chain(job.filesize.map(|(low, _)| low)).min();
    if let Some(bytes) = least.filter(|bytes| *bytes < job.min_block()) {
        let message = format!("a size of {bytes} bytes is below its block of {} bytes", job.min_block());
        add(ProblemKind::Inconsistent, message);
    }
    let moved = job.offset_increment.saturating_mul(u64::from(job.numjobs.max(1) - 1));
    if job.filesize.is_some_and(|(low, _)| low <= job.offset.saturating_add(moved)) {
        let what = if moved > 0 { "offset, with offset_increment for the last clone," } else { "offset" };
        add(ProblemKind::Inconsistent, format!("{what} is behind the end of its files (filesize)"));
    }
    let increments = job.offset_increment.checked_mul(u64::from(job.numjobs));
    let end = increments.and_then(|moved| moved.checked_add(job.offset)?.checked_add(job.size.unwrap_or(0)));
    if end.is_none_or(|end| end > i64::MAX as u64) {
        add(ProblemKind::BadValue, "offset and size reach beyond the largest file".to_owned());
    }
    if job.time_based && job.runtime.is_none() {
        add(ProblemKind::Inconsistent, "time_based needs runtime=, e.g. runtime=10s".to_owned());
    }
    if job.loops > 1 && job.io_size.is_some() {
        // fio's amount is then neither loops·io_size nor loops·size, and differs between its own engines.
        add(ProblemKind::NotNative, "the native engine does not have loops together with io_size".to_owned());
    }
    if job.filenames.is_empty() && job.section.contains('/') {
        add(
            ProblemKind::NotNative,
            "the native engine makes no directories from a job's name; set filename=".to_owned(),
        );
    }
    if job.pre_read && job.direct {
        // fio's trial fails with EIO: it reads into a buffer that direct I/O does not take.
        let message = "pre_read=1 fills the page cache, which direct=1 goes past; leave one of them out";
        add(ProblemKind::Inconsistent, message.to_owned());
    }
    if job.file_append && job.size.is_none() {
        add(
            ProblemKind::Inconsistent,
            "file_append needs size=, how much to write behind the end".to_owned(),
        );
    }
    if job.file_append && job.method == IoMethod::Mmap {
        // As in fio: a mapping ends where its file does.
        add(
            ProblemKind::Inconsistent,
            "ioengine=mmap cannot write behind a file's end (file_append)".to_owned(),
        );
    }
    found
}
