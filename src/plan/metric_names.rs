//! The metrics that trials will report, as far as the job tells them beforehand.
//!
//! Enters: an experiment and its cells. Leaves: sections with names of metrics, and what is wrong with a `--primary` that is
//! none of them. What engines and observers report is repeated here in names only; a test of the whole program compares
//! both.

use std::collections::BTreeSet;
use std::path::Path;

use super::cell_spec::CellSpec;
use super::observed_names::observed;
use crate::catalog::{
    EngineKind, MetricDelta, MetricPattern, Runs, forms_of, includes_a_ramp, metrics_of_tracepoint, server_of,
};
use crate::experiment::{Experiment, Fresh};
use crate::workload::{Job, JobFile, deciding_metrics, metric_advice, nearest, other_direction};

/// What getrusage(2) counts of a whole trial, and /proc/stat of the machine meanwhile.
const OF_TRIAL: [&str; 7] =
    ["usr_cpu", "sys_cpu", "ctx.voluntary", "ctx.involuntary", "majf", "minf", "machine.steal"];
/// Of these the ones that are counted where a server works for a command.
const OF_SERVED: [&str; 3] = ["usr_cpu", "sys_cpu", "machine.steal"];
/// What the kernel counts of a device.
const OF_DEVICE: [&str; 16] = [
    "dev.read_ios", "dev.read_merges", "dev.read_bytes", "dev.read_time", "dev.write_ios",
    "dev.write_merges", "dev.write_bytes", "dev.write_time", "dev.discards", "dev.discard_bytes", "dev.busy",
    "dev.queue_time", "dev.in_flight", "dev.flushes", "dev.flush_time", "dev.flushes_per_op",
];
/// The same for each fsync of a job that has them, or of dbench's clients.
const PER_SYNC: &str = "dev.flushes_per_sync";
/// What it takes to undo a target that is made for each trial; without a filesystem the first is not there.
const OF_TARGET: [&str; 2] = ["target.umount", "target.teardown"];
/// What the names of metrics begin with that hooks report.
const OF_HOOKS: &str = "hook.";
/// What every section reports besides its directions.
const OF_SECTION: [&str; 8] =
    ["runtime", "usr_cpu", "sys_cpu", "ctx", "ctx.voluntary", "ctx.involuntary", "majf", "minf"];
/// What its workers, or those of a command, were counted for; what they waited for only where the kernel counts it.
const OF_WORKERS: [&str; 3] = ["workers.wall", "workers.run_wait", "workers.storage_wait"];
const OF_DIRECTION: [&str; 5] = ["bw", "iops", "total_ios", "io_bytes", "runtime"];
const OF_LATENCY: [&str; 8] = ["mean", "max", "p50", "p90", "p95", "p99", "p99.9", "p99.99"];
/// Of those the ones that fio has where it keeps no percentiles.
const WITHOUT_PERCENTILES: usize = 2;
/// fio's options that change which latencies it reports.
const LATENCY_OPTIONS: [&str; 8] = [
    "percentile_list", "lat_percentiles", "clat_percentiles", "slat_percentiles", "disable_lat",
    "disable_clat", "disable_slat", "gtod_reduce",
];

/// All metrics that can be foreseen; the section of the whole trial is the empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricNames {
    known: Vec<(String, String)>,
    /// Percentiles and the like are fio's to choose.
    any_latency: bool,
    /// Hooks may report what they like, as [`OF_HOOKS`].
    hooks: bool,
    /// A tool may name more of them than are known: a `*` in a name stands for its word.
    open: bool,
}

/// Whether any job of a cell runs before it counts.
fn has_a_ramp(cell: &CellSpec) -> bool {
    cell.workload.iter().flat_map(|workload| &workload.jobs).any(|job| !job.ramp_time.is_zero())
}

/// Whether a count is for each operation, byte or fsync.
fn is_for_each(name: &str) -> bool {
    ["_per_op", "_per_byte", "_per_sync"].iter().any(|end| name.contains(end))
}

impl MetricNames {
    /// Those of all cells together; `None`: some engine's are known only once it has run.
    #[must_use]
    pub fn of(experiment: &Experiment, cells: &[CellSpec]) -> Option<MetricNames> {
        let hooks = experiment.before.is_some() || experiment.after.is_some();
        let mut names = MetricNames { hooks, ..MetricNames::default() };
        for cell in cells {
            names.add_cell(cell)?;
            let each_trial = cell.target.fresh.unwrap_or_default() == Fresh::Trial;
            if cell.target.makes() && each_trial {
                let mounted = cell.target.fs.is_some();
                names.add("", if mounted { &OF_TARGET } else { &OF_TARGET[1..] });
            }
        }
        for pattern in &experiment.metrics {
            names.add("", &[MetricPattern::name_in(pattern)]);
        }
        let has_server = cells.iter().flat_map(|cell| &cell.observe).any(|name| server_of(name).is_some());
        match has_server {
            true => names.add("", &OF_SERVED),
            false => names.add("", &OF_TRIAL),
        }
        names.add("", &OF_DEVICE);
        for observer in cells.iter().flat_map(|cell| &cell.observe) {
            match observed(observer) {
                Some(metrics) => names.add("", metrics),
                None if metrics_of_tracepoint(observer).is_some() => {}
                None if server_of(observer).is_some() => {
                    names.add("", &OF_WORKERS);
                    for name in OF_TRIAL[..4].iter().chain(&OF_WORKERS) {
                        names.add("", &[&format!("client.{name}")]);
                    }
                }
                // What another one reports, only the run tells.
                None => {
                    names.open = true;
                    names.add("", &[&format!("{observer}.*")]);
                }
            }
        }
        for cell in cells {
            let counts_operations = cell.engine.descriptor().runs == Runs::Job;
            for [count, per_op] in cell.observe.iter().filter_map(|name| metrics_of_tracepoint(name)) {
                names.add("", &[&count]);
                if counts_operations {
                    names.add("", &[&per_op]);
                }
            }
        }
        names.add_forms();
        if cells.iter().any(has_a_ramp) {
            names.known.retain(|(_, name)| !(includes_a_ramp(name) && is_for_each(name)));
        }
        Some(names)
    }

    /// Whether these are all.
    #[must_use]
    pub fn are_all(&self) -> bool {
        !self.open
    }

    /// Sections with their metrics, in the order they were found.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.known.iter().map(|(section, name)| (section.as_str(), name.as_str()))
    }

    /// What is wrong with a wish for the deciding metric: a clause that names what there is.
    ///
    /// # Errors
    /// A section or a metric that no trial will report.
    pub fn check(&self, primary: &str) -> Result<(), String> {
        let known = |name: &str| self.known.iter().any(|(_, known)| known == name);
        deciding_metrics(primary, known).into_iter().try_for_each(|(section, name)| self.one(section, name))
    }

    /// Whether trials may report a metric with this smallest difference.
    #[must_use]
    pub fn may_have(&self, own: &MetricDelta) -> bool {
        let name = own.metric.rsplit(':').next().unwrap_or_default();
        let is_percentile = |name: &str| {
            let number = name.rsplit_once(".p").map_or(name.strip_prefix('p'), |(_, number)| Some(number));
            number.is_some_and(|number| number.parse::<f64>().is_ok())
        };
        self.open
            || (self.hooks && (name.starts_with(OF_HOOKS) || format!("{name}.") == OF_HOOKS))
            || (self.any_latency && is_percentile(name))
            || self.iter().any(|(section, name)| own.is_of(section, name))
    }

    /// A wish for the only section is one for the trial: its results have no section. The phases of a tool are sections, however few there are.
    #[must_use]
    pub fn without_the_only_section(&self, primary: &str) -> String {
        let sections = self.sections();
        let only = sections.first().filter(|_| sections.len() == 1 && !self.open);
        let Some(only) = only else { return primary.to_owned() };
        let begins = format!("{only}:");
        let wishes = primary.split(',').map(str::trim);
        wishes.map(|wish| wish.strip_prefix(&begins).unwrap_or(wish)).collect::<Vec<_>>().join(",")
    }

    /// The names of the sections, without that of the whole trial.
    #[must_use]
    pub fn sections(&self) -> BTreeSet<&str> {
        self.iter().map(|(section, _)| section).filter(|section| !section.is_empty()).collect()
    }

    /// What decides in a row of these sections when `name` is wished: that metric or, in rows of the other direction, the same one of
    /// that. `None`: the row has neither.
    #[must_use]
    pub fn decides(&self, sections: &[&str], name: &str) -> Option<String> {
        let here: Vec<&str> =
            self.iter().filter(|(of, _)| sections.contains(of)).map(|(_, name)| name).collect();
        let of_hooks = self.hooks && sections.contains(&"") && name.starts_with(OF_HOOKS);
        if of_hooks { Some(name.to_owned()) } else { self.deciding(&here, name) }
    }

    fn deciding(&self, here: &[&str], name: &str) -> Option<String> {
        let there = self.has(here, name).then(|| name.to_owned());
        there.or_else(|| other_direction(name).filter(|other| self.has(here, other)))
    }

    /// Whether trials report `name` itself. Which latencies fio was asked for is not known, but none is of a direction without I/O.
    fn has(&self, here: &[&str], name: &str) -> bool {
        let moves = |asked: &str| {
            asked.split('.').next().is_some_and(|direction| here.contains(&&*format!("{direction}.bw")))
        };
        here.iter().any(|known| stands_for(known, name))
            || (self.any_latency && is_latency(name) && moves(name))
    }

    fn one(&self, section: Option<&str>, name: &str) -> Result<(), String> {
        if self.hooks && section.is_none() && name.starts_with(OF_HOOKS) {
            return Ok(());
        }
        let sections = self.sections();
        if let Some(asked) = section.filter(|asked| !sections.contains(asked)) {
            let all: Vec<&str> = sections.iter().copied().collect();
            let near =
                nearest(asked, all.iter().copied(), 1).first().map(|near| format!("; did you mean {near}?"));
            let advice = near.unwrap_or_else(|| match all.is_empty() {
                true => "; results have no sections here".to_owned(),
                false => format!("; there are {}", all.join(", ")),
            });
            return Err(format!("no section reports as '{asked}'{advice}"));
        }
        let here: Vec<&str> = self
            .iter()
            .filter(|(of, _)| section.is_none_or(|section| section == *of))
            .map(|(_, name)| name)
            .collect();
        if self.has(&here, name) {
            return Ok(());
        }
        let of = section.map(|section| format!(" of section {section}")).unwrap_or_default();
        let other = other_direction(name).filter(|other| self.has(&here, other));
        let advice =
            other.map_or_else(|| metric_advice(name, &here), |other| format!("; did you mean {other}?"));
        Err(format!("no metric '{name}'{of}{advice}"))
    }

    fn add_cell(&mut self, cell: &CellSpec) -> Option<()> {
        match cell.engine.descriptor().runs {
            // It counts nothing but what it was asked for.
            Runs::Job if cell.engine == EngineKind::Bare => return None,
            Runs::Job => {
                let workload = cell.workload.as_ref()?;
                let fio = cell.engine == EngineKind::Fio;
                let mut settings = cell.job.iter().flat_map(JobFile::settings);
                self.any_latency |= fio && settings.any(|set| LATENCY_OPTIONS.contains(&set.canonical()));
                let instances = workload.instances(Path::new("/"));
                for instance in &instances {
                    if instance.clone == 0 {
                        let section = workload.section_of(&instances, instance.number as usize);
                        self.add_job(section, &workload.jobs[instance.job], fio);
                    }
                }
            }
            Runs::Command => {
                self.add("", &["runtime", "max_rss"]);
                self.add("", &OF_WORKERS);
            }
            Runs::Anything => {
                self.add("", &["runtime", "write.bw", "write.iops", "write.total_ios", "write.io_bytes"]);
                self.add("", &["write.clat_ns.mean", "write.clat_ns.p50", "write.clat_ns.p99"]);
            }
            Runs::Settings => {
                let output = cell.engine.descriptor().output?;
                for (section, name) in (output.metrics)(&cell.settings) {
                    self.open |= name.contains('*');
                    self.add(section, &[&name]);
                }
                self.add("", &["runtime", "max_rss", PER_SYNC]);
                self.add("", &OF_WORKERS);
            }
        }
        Some(())
    }

    /// What counts work, for each operation or byte of the load that is counted beside it, or by all sections.
    fn add_forms(&mut self) {
        for (section, name) in self.known.clone() {
            for form in forms_of(&name) {
                let counts = |(of, known): (&str, &str)| {
                    (section.is_empty() || of == section) && form.amounts.contains(&known)
                };
                if self.iter().any(counts) {
                    self.add(&section, &[&format!("{name}{}", form.end)]);
                }
            }
        }
    }

    fn add_job(&mut self, section: &str, job: &Job, fio: bool) {
        let mix = job.pattern.mix;
        let reads = mix.reads() || (mix.writes() && job.verify.is_some());
        let used = [("read", reads), ("write", mix.writes()), ("trim", mix.trims())];
        let used: Vec<&str> = used.into_iter().filter(|(_, used)| *used).map(|(name, _)| name).collect();
        for direction in &used {
            self.add_below(section, direction, &OF_DIRECTION);
            let asynchronous = job.method.is_asynchronous();
            self.add_below(section, &format!("{direction}.clat_ns"), &OF_LATENCY);
            // The native engine counts from the time an I/O was due, fio from the issue, without percentiles.
            let totals = if fio { &OF_LATENCY[..WITHOUT_PERCENTILES] } else { &OF_LATENCY[..] };
            if fio || asynchronous || job.rate.is_limited() {
                self.add_below(section, &format!("{direction}.lat_ns"), totals);
            }
            if asynchronous {
                self.add_below(section, &format!("{direction}.slat_ns"), totals);
            }
        }
        // What is read back after it was written went at no rate together with the writes.
        let reads_apart = !mix.reads() && job.verify.as_ref().is_some_and(|verify| verify.backlog == 0);
        if used.len() > 1 && !reads_apart {
            self.add(section, &["bw", "iops"]);
        }
        if job.fsync > 0 || job.fdatasync > 0 || job.sync_file_range.is_some() || job.end_fsync {
            self.add("", &[PER_SYNC]);
            self.add(section, &["sync.total_ios"]);
            self.add_below(section, "sync.lat_ns", &OF_LATENCY);
        }
        if !fio && job.durability().is_some() {
            self.add_below(section, "durable.lat_ns", &OF_LATENCY);
        }
        self.add(section, &OF_SECTION);
        if fio || job.numjobs > 1 || job.group_reporting {
            self.add(section, &["job_runtime"]);
        }
        self.add(section, &OF_WORKERS[..1]);
        // Of fio's jobs only all together are followed.
        self.add(if fio { "" } else { section }, &OF_WORKERS[1..]);
        if job.latency_target.is_some() {
            self.add(section, &["latency_depth"]);
        }
    }

    fn add_below(&mut self, section: &str, head: &str, names: &[&str]) {
        names.iter().for_each(|name| self.add(section, &[&format!("{head}.{name}")]));
    }

    fn add(&mut self, section: &str, names: &[&str]) {
        for name in names {
            if !self.iter().any(|known| known == (section, *name)) {
                self.known.push((section.to_owned(), (*name).to_owned()));
            }
        }
    }
}

fn is_latency(name: &str) -> bool {
    let mut parts = name.splitn(3, '.');
    let direction = parts.next().is_some_and(|part| ["read", "write", "trim"].contains(&part));
    let kind = parts.next().is_some_and(|part| ["slat_ns", "clat_ns", "lat_ns"].contains(&part));
    let figure = parts.next().is_some_and(|part| {
        part == "mean" || part == "max" || part.strip_prefix('p').is_some_and(|p| p.parse::<f64>().is_ok())
    });
    direction && kind && figure
}

/// Whether a known name is the one that is asked for; a `*` in it stands for any word.
fn stands_for(known: &str, asked: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && !word.contains('.');
    match known.split_once('*') {
        Some((head, tail)) => {
            asked.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail)).is_some_and(is_word)
        }
        None => known == asked,
    }
}

#[cfg(test)]
mod tests;
