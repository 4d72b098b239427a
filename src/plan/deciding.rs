//! The metric that decides when nobody names one and the bandwidth would say nothing.
//!
//! Enters: the cells. Leaves: a metric's name, or none, where analyse takes the bandwidth. A job with a rate moves what its
//! rate says, whatever the storage does: what differs is how long an I/O takes. `lat_ns` counts from the time an I/O was
//! due, and its mean, unlike a quantile, needs no least number of I/Os. fio's begins only at the issue, and is another
//! quantity under the same name: where any cell is fio's, `clat_ns` decides, which both begin there. A job that reads back what it wrote is there for
//! the writes: bandwidth of both together would mix the two.

use std::path::Path;

use super::cell::CellSpec;
use crate::experiment::EngineChoice;
use crate::workload::{Job, JobFile, Workload};

/// For all cells together.
pub(super) fn primary(cells: &[CellSpec]) -> Option<String> {
    let jobs: Vec<Job> = cells.iter().flat_map(jobs).collect();
    if jobs.is_empty() {
        return None;
    }
    let writes = |job: &Job| job.pattern.mix.writes();
    if jobs.iter().all(|job| job.rate.is_limited() && !job.pattern.mix.trims()) {
        let direction = if jobs.iter().any(writes) { "write" } else { "read" };
        let fio = cells.iter().any(|cell| cell.engine == EngineChoice::Fio);
        return Some(format!("{direction}.{}.mean", if fio { "clat_ns" } else { "lat_ns" }));
    }
    let reads_back = |job: &Job| writes(job) && !job.pattern.mix.reads() && job.verify.is_some();
    jobs.iter().all(reads_back).then(|| "write.bw".to_owned())
}

/// The jobs of a cell; none where the engine has no job, or its job only a meaning to fio.
fn jobs(cell: &CellSpec) -> Vec<Job> {
    // The others have no latency from the due time, or none at all.
    let (true, Some(text)) =
        (matches!(cell.engine, EngineChoice::Native | EngineChoice::Fio), &cell.job_text)
    else {
        return Vec::new();
    };
    let file = JobFile::parse(text, &cell.job_origin, Path::new(""));
    file.and_then(|file| file.substitute(&cell.variables))
        .and_then(|file| Workload::resolve(&file))
        .map_or_else(|_| Vec::new(), |workload| workload.jobs)
}
