//! Jobs that fio lists one by one (`numjobs` without `group_reporting`, several clients) made into one as
//! `group_reporting` would: sums of counts, the longest run time, merged histograms; percentiles are never averaged.

use super::super::Note;
use super::wire::{Bins, Document, Job, Latency, Percentiles, Side, Sync};

/// The document's jobs, one a (group, name, host), with names that tell them apart. In client/server mode fio's own
/// sum over all clients comes last and stands for the whole trial.
pub(super) fn merged_jobs(document: Document, notes: &mut Vec<Note>) -> Vec<Job> {
    let mut whole = None;
    let mut jobs: Vec<Job> = Vec::new();
    let mut merged_percentiles = false;
    for mut job in document.jobs.into_iter().chain(document.client_stats) {
        for side in [&mut job.read, &mut job.write, &mut job.trim, &mut job.mixed].into_iter().flatten() {
            side.normalise();
        }
        if job.jobname == "All clients" {
            job.all_clients = true;
            whole = Some(job);
            continue;
        }
        let same = |known: &&mut Job| {
            (known.groupid, &known.jobname, &known.hostname) == (job.groupid, &job.jobname, &job.hostname)
        };
        match jobs.iter_mut().find(same) {
            Some(known) => {
                merge(known, &job);
                merged_percentiles |= has_percentiles(&job) && !has_percentiles(known);
            }
            None => jobs.push(job),
        }
    }
    if merged_percentiles {
        notes.push(
            "percentiles of jobs with the same name were left out: they cannot be averaged; \
             use --output-format=json+ or group_reporting"
                .into(),
        );
    }
    name_apart(&mut jobs);
    jobs.extend(whole);
    jobs
}

/// Names that occur more than once get the host, and if need be the group, behind them.
fn name_apart(jobs: &mut [Job]) {
    let hosts: Vec<String> = jobs.iter().map(|job| job.hostname.clone()).collect();
    if hosts.iter().any(|host| *host != hosts[0]) {
        for job in jobs.iter_mut().filter(|job| !job.hostname.is_empty()) {
            job.jobname = format!("{}@{}", job.jobname, job.hostname);
        }
    }
    let names: Vec<String> = jobs.iter().map(|job| job.jobname.clone()).collect();
    for job in jobs.iter_mut() {
        if names.iter().filter(|name| **name == job.jobname).count() > 1 {
            job.jobname = format!("{}#{}", job.jobname, job.groupid);
        }
    }
}

fn has_percentiles(job: &Job) -> bool {
    [&job.read, &job.write, &job.trim, &job.mixed]
        .into_iter()
        .flatten()
        .flat_map(|side| [&side.slat_ns, &side.clat_ns, &side.lat_ns])
        .flatten()
        .any(|latency| !latency.percentile.0.is_empty())
}

fn merge(into: &mut Job, from: &Job) {
    if into.error == 0 {
        into.error = from.error;
    }
    merge_side(&mut into.read, from.read.as_ref());
    merge_side(&mut into.write, from.write.as_ref());
    merge_side(&mut into.trim, from.trim.as_ref());
    merge_side(&mut into.mixed, from.mixed.as_ref());
    into.total_err += from.total_err;
    if into.first_error == 0 {
        into.first_error = from.first_error;
    }
    let syncs = |job: &Job| job.sync.as_ref().map_or(0.0, |sync| sync.total_ios);
    let sync = merge_latency(
        into.sync.as_ref().and_then(|sync| sync.lat_ns.as_ref()),
        from.sync.as_ref().and_then(|sync| sync.lat_ns.as_ref()),
        [syncs(into), syncs(from)],
    );
    into.sync = sync.map(|lat_ns| Sync { total_ios: syncs(into) + syncs(from), lat_ns: Some(lat_ns) });
    // Where run times are not known, those of all jobs are taken for alike.
    let weights = match (into.job_runtime, from.job_runtime) {
        (Some(a_ms), Some(b_ms)) if a_ms + b_ms > 0.0 => [a_ms, b_ms],
        _ => [1.0 + into.merged, 1.0 + from.merged],
    };
    into.usr_cpu = merge_percent([into.usr_cpu, from.usr_cpu], weights);
    into.sys_cpu = merge_percent([into.sys_cpu, from.sys_cpu], weights);
    into.merged += 1.0 + from.merged;
    into.job_runtime = sum(into.job_runtime, from.job_runtime);
    into.ctx = sum(into.ctx, from.ctx);
    into.majf = sum(into.majf, from.majf);
    into.minf = sum(into.minf, from.minf);
}

fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

/// Percent of one run time and of another → percent of their sum.
fn merge_percent([a, b]: [Option<f64>; 2], weights: [f64; 2]) -> Option<f64> {
    Some((a? * weights[0] + b? * weights[1]) / (weights[0] + weights[1]))
}

fn merge_side(into: &mut Option<Side>, from: Option<&Side>) {
    let Some(from) = from.filter(|side| side.did_io()) else { return };
    let Some(into) = into.as_mut().filter(|side| side.did_io()) else {
        *into = Some(from.clone());
        return;
    };
    let ios = [into.total_ios, from.total_ios];
    merge_amounts(into, from);
    into.short_ios += from.short_ios;
    into.drop_ios += from.drop_ios;
    into.slat_ns = merge_latency(into.slat_ns.as_ref(), from.slat_ns.as_ref(), ios);
    into.clat_ns = merge_latency(into.clat_ns.as_ref(), from.clat_ns.as_ref(), ios);
    into.lat_ns = merge_latency(into.lat_ns.as_ref(), from.lat_ns.as_ref(), ios);
}

/// Adds what another job did, or the same job in another direction.
pub(super) fn merge_amounts(into: &mut Side, from: &Side) {
    let runtime = into.runtime.max(from.runtime);
    let (io_bytes, total_ios) = (into.io_bytes() + from.io_bytes(), into.total_ios + from.total_ios);
    // As fio's group_reporting does: all bytes over the longest run time, not the sum of the jobs' own rates.
    let rate = |amount: f64, rates: f64| if runtime > 0.0 { amount * 1e3 / runtime } else { rates };
    into.bw_bytes = Some(rate(io_bytes, into.bw_bytes() + from.bw_bytes()));
    into.iops = rate(total_ios, into.iops + from.iops);
    (into.io_bytes, into.total_ios, into.runtime) = (io_bytes, total_ios, runtime);
}

/// `ios`: how many I/Os each has, where it does not say how many it measured.
fn merge_latency(a: Option<&Latency>, b: Option<&Latency>, ios: [f64; 2]) -> Option<Latency> {
    let taken = |latency: &&Latency| latency.n != Some(0.0) && latency.mean > 0.0;
    match (a.filter(taken), b.filter(taken)) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (Some(a), Some(b)) => {
            let (n_a, n_b) = (a.n.unwrap_or(ios[0].max(1.0)), b.n.unwrap_or(ios[1].max(1.0)));
            let whole = !a.bins.0.is_empty() && !b.bins.0.is_empty();
            // The list of percentiles survives only as what to compute from the merged bins.
            let percentile = if whole { a.percentile.clone() } else { Percentiles::default() };
            Some(Latency {
                max: a.max.max(b.max),
                mean: (a.mean * n_a + b.mean * n_b) / (n_a + n_b),
                n: Some(n_a + n_b),
                percentile,
                bins: if whole { merge_bins(&a.bins, &b.bins) } else { Bins::default() },
            })
        }
    }
}

fn merge_bins(a: &Bins, b: &Bins) -> Bins {
    let mut all: Vec<(u64, u64)> = a.0.iter().chain(&b.0).copied().collect();
    all.sort_unstable_by_key(|(ns, _)| *ns);
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    Bins(all)
}
