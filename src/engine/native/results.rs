//! Counts of instances → samples, histograms and series of jobs, in fio's names and by fio's rules.

use hdrhistogram::Histogram;

use super::job_counts::JobCounts;
use super::meter::SERIES_INTERVAL_NS;
use crate::record::{Direction, LatencyHistogram, LatencyKind, Note, Outcome, Sample, Series};
use crate::units::{Better, Unit};
use crate::workload::{Instance, Workload};

/// Percentiles that become samples; the histograms keep all.
const PERCENTILES: [(f64, &str); 6] =
    [(50.0, "50"), (90.0, "90"), (95.0, "95"), (99.0, "99"), (99.9, "99.9"), (99.99, "99.99")];

/// Results of all `finished` (number of the instance, its counts): one set a report of fio's, named after its
/// first job; clones and jobs of the same name are added up.
pub(super) fn outcome(
    workload: &Workload,
    instances: &[Instance],
    finished: &[(usize, JobCounts)],
) -> Outcome {
    let mut outcome = Outcome::default();
    for (name, members) in reports(workload, instances, finished) {
        report(&name, &members, &mut outcome);
    }
    let noted = |counts: &JobCounts, at: &usize| {
        let job = &workload.jobs[instances[*at].job].name;
        counts.note.as_ref().map(|note| Note::from(format!("job {job}: {note}")))
    };
    for note in finished.iter().filter_map(|(at, counts)| noted(counts, at)) {
        // Clones say the same.
        if !outcome.notes.contains(&note) {
            outcome.notes.push(note);
        }
    }
    outcome
}

type Report<'c> = (String, Vec<&'c JobCounts>);

fn reports<'c>(
    workload: &Workload,
    instances: &[Instance],
    finished: &'c [(usize, JobCounts)],
) -> Vec<Report<'c>> {
    let mut reports: Vec<(String, Option<u32>, Vec<&JobCounts>)> = Vec::new();
    for (number, counts) in finished {
        let instance = &instances[*number];
        let job = &workload.jobs[instance.job];
        let group = job.group_reporting.then_some(instance.report);
        let same = |(name, known, _): &&mut (String, Option<u32>, Vec<&JobCounts>)| match group {
            Some(_) => *known == group,
            None => *name == job.name && known.is_none(),
        };
        match reports.iter_mut().find(|r| same(r)) {
            Some((_, _, members)) => members.push(counts),
            None => reports.push((job.name.clone(), group, vec![counts])),
        }
    }
    reports.into_iter().map(|(name, _, members)| (name, members)).collect()
}

fn report(job: &str, members: &[&JobCounts], outcome: &mut Outcome) {
    let runtime_ns = members.iter().map(|m| m.elapsed_ns).max().unwrap_or(0).max(1);
    let runtime_s = runtime_ns as f64 / 1e9;
    let mut totals = (0, 0, 0);
    for direction in Direction::ALL {
        let sides: Vec<_> = members
            .iter()
            .flat_map(|m| &m.directions)
            .filter(|c| c.direction == direction && c.ios > 0)
            .collect();
        if sides.is_empty() {
            continue;
        }
        let ios: u64 = sides.iter().map(|s| s.ios).sum();
        let bytes: u64 = sides.iter().map(|s| s.bytes).sum();
        // As fio: a job that did nothing in this direction has no run time in it.
        let moves = |m: &&&JobCounts| m.directions.iter().any(|c| c.direction == direction && c.ios > 0);
        let own = members.iter().filter(moves).map(|m| m.elapsed_of(direction));
        let elapsed_ns = own.max().unwrap_or(0).max(1);
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let (bw, iops) = (bytes as f64 / elapsed_s, ios as f64 / elapsed_s);
        totals = (totals.0 + 1, totals.1 + bytes, totals.2 + ios);
        let name = direction.name();
        push(outcome, job, &format!("{name}.bw"), Unit::BytesPerSecond, bw);
        push(outcome, job, &format!("{name}.iops"), Unit::PerSecond, iops);
        push(outcome, job, &format!("{name}.total_ios"), Unit::Count, ios as f64);
        push(outcome, job, &format!("{name}.io_bytes"), Unit::Bytes, bytes as f64);
        push(outcome, job, &format!("{name}.runtime"), Unit::Seconds, elapsed_s);
        for kind in [LatencyKind::Slat, LatencyKind::Clat, LatencyKind::Lat] {
            let packed = sides.iter().flat_map(|s| &s.histograms).filter(|h| h.kind == kind);
            latency(outcome, job, &format!("{name}.{}", kind.name()), direction, kind, packed);
        }
        outcome.series.push(throughput(job, direction, sides.iter().map(|s| s.series.as_slice())));
    }
    // What is read back after it was written went at no rate together with the writes.
    if totals.0 > 1 && !members.iter().any(|member| member.reads_apart) {
        push(outcome, job, "bw", Unit::BytesPerSecond, totals.1 as f64 / runtime_s);
        push(outcome, job, "iops", Unit::PerSecond, totals.2 as f64 / runtime_s);
    }
    let syncs = members.iter().filter_map(|m| m.sync.as_ref());
    let sync_count: u64 = syncs.clone().filter_map(|h| h.unpack().ok()).map(|h| h.len()).sum();
    if sync_count > 0 {
        push(outcome, job, "sync.total_ios", Unit::Count, sync_count as f64);
    }
    latency(outcome, job, "sync.lat_ns", Direction::Write, LatencyKind::Sync, syncs);
    let durable = members.iter().filter_map(|m| m.durable.as_ref());
    latency(outcome, job, "durable.lat_ns", Direction::Write, LatencyKind::Durable, durable);
    push(outcome, job, "runtime", Unit::Seconds, runtime_s);
    if members.len() > 1 {
        // fio's name of the sum, of which it prints processor time in percent.
        let all_ns: u64 = members.iter().map(|m| m.elapsed_ns).sum();
        push(outcome, job, "job_runtime", Unit::Seconds, all_ns as f64 / 1e9);
    }
    depth_found(outcome, job, members);
    for note in members.iter().flat_map(|member| &member.notes) {
        if !outcome.notes.contains(note) {
            outcome.notes.push(note.clone());
        }
    }
    usage(outcome, job, members);
}

/// fio's `latency_depth`: of clones the mean.
fn depth_found(outcome: &mut Outcome, job: &str, members: &[&JobCounts]) {
    let found: Vec<(u32, bool)> = members.iter().filter_map(|m| m.latency_depth).collect();
    if found.is_empty() {
        return;
    }
    let sum: f64 = found.iter().map(|(depth, _)| f64::from(*depth)).sum();
    let mut sample = Sample::new(job, "latency_depth", Unit::Count, sum / found.len() as f64);
    sample.metric.better = Better::Higher;
    outcome.samples.push(sample);
    for (depth, ended) in found {
        let told = if ended {
            format!(
                "job {job}: latency_target is kept with up to {depth} I/Os in flight; its figures are of that depth"
            )
        } else {
            format!(
                "job {job}: it ended before latency_target's search did, at depth {depth}; its figures are of all \
                 depths tried"
            )
        };
        outcome.notes.push(told.into());
    }
}

fn usage(outcome: &mut Outcome, job: &str, members: &[&JobCounts]) {
    let seconds = |of: fn(&JobCounts) -> f64| members.iter().map(|m| of(m)).sum::<f64>();
    let count = |of: fn(&JobCounts) -> u64| members.iter().map(|m| of(m)).sum::<u64>() as f64;
    push(outcome, job, "usr_cpu", Unit::Seconds, seconds(|m| m.usage.user_s));
    push(outcome, job, "sys_cpu", Unit::Seconds, seconds(|m| m.usage.system_s));
    push(outcome, job, "ctx", Unit::Count, count(|m| m.usage.voluntary + m.usage.involuntary));
    push(outcome, job, "ctx.voluntary", Unit::Count, count(|m| m.usage.voluntary));
    push(outcome, job, "ctx.involuntary", Unit::Count, count(|m| m.usage.involuntary));
    push(outcome, job, "majf", Unit::Count, count(|m| m.usage.major_faults));
    push(outcome, job, "minf", Unit::Count, count(|m| m.usage.minor_faults));
    // A worker is an instance, from its common start to its own end.
    push(outcome, job, "workers.wall", Unit::Seconds, seconds(|m| m.elapsed_ns as f64 / 1e9));
    let known = |of: fn(&JobCounts) -> Option<f64>| members.iter().map(|m| of(m)).sum::<Option<f64>>();
    if let Some(run_wait_s) = known(|m| m.waits.run_wait_s) {
        push(outcome, job, "workers.run_wait", Unit::Seconds, run_wait_s);
    }
    if let Some(storage_s) = known(|m| m.waits.within(m.elapsed_ns as f64 / 1e9).storage_s) {
        push(outcome, job, "workers.storage_wait", Unit::Seconds, storage_s);
    }
}

fn latency<'h>(
    outcome: &mut Outcome,
    job: &str,
    name: &str,
    direction: Direction,
    kind: LatencyKind,
    packed: impl Iterator<Item = &'h LatencyHistogram>,
) {
    let mut merged: Option<Histogram<u64>> = None;
    for one in packed.filter_map(|h| h.unpack().ok()) {
        match &mut merged {
            // Same bounds everywhere: adding cannot fail.
            Some(all) => drop(all.add(&one)),
            None => merged = Some(one),
        }
    }
    let Some(histogram) = merged.filter(|h| !h.is_empty()) else { return };
    push(outcome, job, &format!("{name}.mean"), Unit::Nanoseconds, histogram.mean());
    push(outcome, job, &format!("{name}.max"), Unit::Nanoseconds, histogram.max() as f64);
    for (percent, label) in PERCENTILES {
        let value = histogram.value_at_percentile(percent) as f64;
        push(outcome, job, &format!("{name}.p{label}"), Unit::Nanoseconds, value);
    }
    outcome.histograms.push(LatencyHistogram::pack(job, direction, kind, &histogram));
}

fn throughput<'s>(job: &str, direction: Direction, sides: impl Iterator<Item = &'s [u64]>) -> Series {
    let mut total: Vec<f64> = Vec::new();
    for side in sides {
        total.resize(total.len().max(side.len()), 0.0);
        total.iter_mut().zip(side).for_each(|(sum, bytes)| *sum += *bytes as f64);
    }
    let interval_s = SERIES_INTERVAL_NS as f64 / 1e9;
    let values = total.into_iter().map(|bytes| bytes / interval_s).collect();
    Series { job: job.to_owned(), name: format!("{}.bw", direction.name()), interval_s, values }
}

fn push(outcome: &mut Outcome, job: &str, name: &str, unit: Unit, value: f64) {
    outcome.samples.push(Sample::new(job, name, unit, value));
}
