//! The metric that decides when nobody names one and the bandwidth would say nothing.
//!
//! Enters: the cells. Leaves: a metric's name, one for each section with a pace, or none, where analyse takes the bandwidth. A section
//! with a rate or pauses (`rate`, `rate_iops`, `thinktime`) moves what its pace says, whatever the storage does: what differs is how long
//! an I/O takes. `lat_ns` counts from the time an I/O was due, and its mean, unlike a quantile, needs no least number of I/Os. fio's
//! begins only at the issue, and is another quantity under the same name: where any cell is fio's, `clat_ns` decides, which both begin
//! there, as it does where pauses alone make the pace: then no I/O is due. Where each write is durable by itself (`sync=`, or a
//! sync behind each), the time until it is decides (`durable.lat_ns`): it has the sync, which the latency of a write has only with `sync=`.
//! Behind several writes, or several in flight, it would have the pace. A job that reads back what it wrote is there for
//! the writes: bandwidth of both together would mix the two.

use std::collections::BTreeSet;
use std::path::Path;

use super::cell_spec::CellSpec;
use crate::catalog::EngineKind;
use crate::workload::{Job, Mix, Workload};

fn is_fio(cells: &[CellSpec]) -> bool {
    cells.iter().any(|cell| cell.engine == EngineKind::Fio)
}

/// For all cells together.
pub(super) fn primary(cells: &[CellSpec]) -> Option<String> {
    let sections: Vec<(String, Job)> = cells.iter().flat_map(sections).collect();
    if sections.is_empty() {
        return None;
    }
    let fio = is_fio(cells);
    let measured = !(fio && cells.iter().any(has_no_latency));
    let all: Vec<&Job> = sections.iter().map(|(_, job)| job).collect();
    let of_all = latencies(&all, fio);
    if measured && !of_all.is_empty() && agree_on_syncs(&sections) {
        return Some(of_all.join(","));
    }
    let by_section = if measured { wishes_of(&sections, fio) } else { Vec::new() };
    // No section has a pace, and all are there for their writes.
    if all.into_iter().all(reads_back) && by_section.iter().all(|wish| wish.ends_with(":write.bw")) {
        return Some("write.bw".to_owned());
    }
    (!by_section.is_empty()).then(|| by_section.join(","))
}

/// Whether fio is told to measure no latency.
fn has_no_latency(cell: &CellSpec) -> bool {
    let Some(file) = &cell.job else { return false };
    let of = |name: &str| matches!(name, "gtod_reduce" | "disable_clat");
    // A flag without a value is set.
    file.settings().any(|setting| of(setting.canonical()) && setting.value.as_deref() != Some("0"))
}

/// What says whether a section has a pace, which way its I/O goes, and what it reports as.
const OF_PACE: [&str; 9] =
    ["rate", "rate_iops", "thinktime", "rw", "group_reporting", "numjobs", "stonewall", "new_group", "name"];

/// That much of a job that has a meaning only to fio; `None`: not even that has one to assay.
fn paces_only(cell: &CellSpec) -> Option<Workload> {
    let mut file = cell.job.clone()?;
    for section in &mut file.sections {
        section.settings.retain(|setting| OF_PACE.contains(&setting.canonical()));
        for setting in section.settings.iter_mut().filter(|setting| setting.canonical() == "rw") {
            // `randwrite:8` goes the way of `randwrite`.
            let value = setting.value.take();
            setting.value = value.map(|value| value.split(':').next().unwrap_or_default().to_owned());
        }
    }
    file.set_where_missing("size", "1m");
    Workload::resolve(&file).ok()
}

/// Whether a job writes, and then reads what it wrote.
fn reads_back(job: &Job) -> bool {
    writes(job) && !job.pattern.mix.reads() && job.verify.is_some()
}

/// The sections with a pace in any cell.
pub(super) fn paced(cells: &[CellSpec]) -> Vec<String> {
    let with_pace = |(name, job): (String, Job)| has_pace(&job).then_some(name);
    let names: BTreeSet<String> = cells.iter().flat_map(sections).filter_map(with_pace).collect();
    names.into_iter().collect()
}

/// Whether every cell has jobs, and all of them ask for direct I/O.
pub(super) fn direct(cells: &[CellSpec]) -> bool {
    cells.iter().all(|cell| {
        let sections = sections(cell);
        !sections.is_empty() && sections.iter().all(|(_, job)| job.direct)
    })
}

/// Whether each write of these jobs is made durable by itself; `None`: none writes.
fn writes_are_synced<'j>(jobs: impl Iterator<Item = &'j Job>) -> Option<bool> {
    jobs.filter(|job| writes(job)).map(Job::syncs_each_write).reduce(|all, one| all && one)
}

/// Whether each write is durable by itself in all sections that write, or in none.
fn agree_on_syncs(sections: &[(String, Job)]) -> bool {
    let of = |name: &String| {
        writes_are_synced(sections.iter().filter(|(other, _)| other == name).map(|(_, job)| job))
    };
    // What decides a section of such a name cannot be said of it alone.
    if sections.iter().any(|(name, _)| name.contains(',')) {
        return true;
    }
    let mut all = sections.iter().filter_map(|(name, _)| of(name));
    let first = all.next();
    all.all(|other| Some(other) == first)
}

fn has_pace(job: &Job) -> bool {
    job.rate.is_limited() || pauses(job)
}

fn pauses(job: &Job) -> bool {
    !job.thinktime.pause.is_zero()
}

fn writes(job: &Job) -> bool {
    job.pattern.mix.writes()
}

/// The latencies that decide for these jobs, where each of them has a pace in every cell; none: not so. A job that reads and writes has
/// one each, as either may change alone.
fn latencies(jobs: &[&Job], fio: bool) -> Vec<String> {
    if !jobs.iter().all(|job| has_pace(job)) {
        return Vec::new();
    }
    let does = |of: fn(Mix) -> bool| jobs.iter().any(|job| of(job.pattern.mix));
    let is_mixed = does(|mix| mix.reads() && mix.writes());
    let directions: &[&str] = match (does(Mix::writes), does(Mix::reads)) {
        _ if is_mixed => &["read", "write"],
        (true, _) => &["write"],
        (_, true) => &["read"],
        _ => &["trim"],
    };
    let due = jobs.iter().all(|job| job.rate.is_limited()) && !fio;
    let kind = if due { "lat_ns" } else { "clat_ns" };
    let durable = due && writes_are_synced(jobs.iter().copied()) == Some(true);
    let named = |direction: &&str| match *direction {
        "write" if durable => "durable.lat_ns.mean".to_owned(),
        direction => format!("{direction}.{kind}.mean"),
    };
    directions.iter().map(named).collect()
}

/// `SECTION:METRIC` for each section that has a pace, or reads back what it wrote, beside others of which neither holds.
fn wishes_of(sections: &[(String, Job)], fio: bool) -> Vec<String> {
    let mut seen: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for (name, _) in sections {
        // A comma would end the name.
        if seen.contains(&name.as_str()) || name.contains(',') {
            continue;
        }
        seen.push(name);
        let own: Vec<&Job> = sections.iter().filter(|(other, _)| other == name).map(|(_, job)| job).collect();
        let mut metrics = latencies(&own, fio);
        if metrics.is_empty() && own.into_iter().all(reads_back) {
            metrics.push("write.bw".to_owned());
        }
        found.extend(metrics.into_iter().map(|metric| format!("{name}:{metric}")));
    }
    found
}

/// The jobs of a cell with the names they report as: under `group_reporting` that of the first of the group. None where the engine
/// has no job.
fn sections(cell: &CellSpec) -> Vec<(String, Job)> {
    // The others have no latency from the due time, or none at all.
    let workload = match cell.engine {
        EngineKind::Native => cell.workload.clone(),
        EngineKind::Fio => cell.workload.clone().or_else(|| paces_only(cell)),
        _ => None,
    };
    let Some(workload) = workload else { return Vec::new() };
    let instances = workload.instances(Path::new("/"));
    let named = |at: usize| {
        (workload.section_of(&instances, at).to_owned(), workload.jobs[instances[at].job].clone())
    };
    (0..instances.len()).filter(|at| instances[*at].clone == 0).map(named).collect()
}
