//! How near the arms of a run came to what their machine can do.
//!
//! Enters: a run and the probes of its machine, the latest first. Leaves: a [`Limit`] an arm and ceiling that can be compared: 4 KiB blocks
//! that reached the device, against the depth at which it saturates; bytes that never reached it, against what the machine copies; a sync
//! after each page, against the fsync of the probe. It must not know how it is worded. A limit is called a cause only within 15 % of it, and only where the time of the workers agrees: they sleep while
//! the device is the limit, and are in the kernel while copying is.

use serde::{Deserialize, Serialize};

use super::comparison::RowKey;
use super::layout::Layout;
use super::options::Options;
use super::probed::{self, Ceiling, ceilings, is_same_device, is_same_machine};
use super::table::Table;
use crate::record::{HostFacts, Run, Trial};
use crate::stats::descriptive::median;
use crate::units::Unit;

/// As near as this to a limit it may be the cause.
const NEAR: f64 = 0.15;
/// The part of the workers' time that must agree.
const AGREES: f64 = 0.5;
/// Of the bytes at least so much reached the device, or at most that.
const REACHED: f64 = 0.9;
const NOT_REACHED: f64 = 0.01;
/// Workers must have been in the kernel for this part of their processor time, or nothing was copied.
const COPIED: f64 = 0.2;
/// The block that probes use, in bytes.
const BLOCK: f64 = 4096.0;
const DIRECTIONS: [(&str, &str); 2] = [("read", "write"), ("write", "read")];

/// What is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// 4 KiB reads of the device at saturation.
    DeviceReads,
    /// 4 KiB writes of the device at saturation.
    DeviceWrites,
    /// Copies out of memory, as reads from the page cache are.
    CopiesOut,
    /// Copies into memory, as writes to the page cache are.
    CopiesIn,
    /// The time of an fsync after one page was changed.
    Fsync,
}

/// How near one arm of a row came to a ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The row.
    pub row: RowKey,
    /// The arm's label.
    pub arm: String,
    /// What is compared with.
    pub kind: LimitKind,
    /// Base unit of both figures.
    pub unit: Unit,
    /// Median over the arm's trials.
    pub value: f64,
    /// The ceiling.
    pub limit: f64,
    /// The depth or the threads at which the ceiling was measured.
    pub at: u32,
    /// The value as a share of the ceiling.
    pub share: f64,
    /// Within 15 % of it, and the workers' time agrees.
    pub is_cause: bool,
    /// When the probe began.
    pub probed_unix_ns: u64,
}

/// `value` as a share of `limit`; `None` where one of them is no positive number.
#[must_use]
pub fn share_of_limit(value: f64, limit: f64) -> Option<f64> {
    let is_one = |number: f64| number.is_finite() && number > 0.0;
    (is_one(value) && is_one(limit)).then(|| value / limit)
}

/// Whether a share is so near the limit that this may be the cause.
#[must_use]
pub fn is_near_limit(share: f64) -> bool {
    (share - 1.0).abs() <= NEAR
}

/// The limits of all arms in rows of the whole trial. `probes` come latest first; those of other machines are passed over.
#[must_use]
pub fn limits(run: &Run, options: &Options, probes: &[Run]) -> Vec<Limit> {
    if probes.is_empty() || run.cells.is_empty() {
        return Vec::new();
    }
    let table = Table::new(run);
    let layout = Layout::new(run, options, &table);
    let known: Vec<Probed> = probes.iter().filter_map(Probed::of).collect();
    let mut found = Vec::new();
    // The device's counters are of the whole trial: they do not fit the rows of single jobs.
    for row in layout.rows.iter().filter(|row| row.key.job.is_empty()) {
        for (arm, cell) in row.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let of_cell = |trial: &&&Trial| trial.cell == *cell && trial.counts();
            let trials: Vec<&Trial> = table.latest().iter().filter(of_cell).copied().collect();
            let seen = Seen { run, trials };
            let of_transfers = DIRECTIONS.iter().find_map(|direction| seen.limit(*direction, &known));
            let limits = of_transfers.into_iter().chain(seen.fsync(&known));
            found.extend(limits.map(|limit| Limit {
                row: row.key.clone(),
                arm: layout.arms[arm].clone(),
                ..limit
            }));
        }
    }
    found
}

/// A probe, summed up.
struct Probed<'p> {
    run: &'p Run,
    facts: &'p HostFacts,
    ceilings: Vec<Ceiling>,
}

impl<'p> Probed<'p> {
    fn of(run: &'p Run) -> Option<Probed<'p>> {
        Some(Probed { run, facts: run.facts.first()?, ceilings: ceilings(run) })
    }
}

/// The trials of one cell that count.
struct Seen<'r> {
    run: &'r Run,
    trials: Vec<&'r Trial>,
}

impl Seen<'_> {
    /// How near the trials came in one direction, when they went in no other.
    fn limit(&self, (direction, other): (&str, &str), known: &[Probed<'_>]) -> Option<Limit> {
        let of = |name: &str| self.median(&format!("{direction}.{name}"));
        let (ios, bytes) = (of("total_ios")?, of("io_bytes")?);
        if self.median(&format!("{other}.total_ios")).is_some_and(|others| others > NOT_REACHED * ios) {
            return None;
        }
        let reached = self.median(&format!("dev.{direction}_bytes"))?;
        let reads = direction == "read";
        if reached >= REACHED * bytes {
            let whole = self.median(&format!("dev.{direction}_ios"))? >= REACHED * ios;
            if (bytes / ios - BLOCK).abs() > 0.5 || !whole {
                return None;
            }
            let kind = if reads { LimitKind::DeviceReads } else { LimitKind::DeviceWrites };
            let name = if reads { "read.4k" } else { "write.4k" };
            let asleep = self.asleep().is_some_and(|share| share >= AGREES);
            return self.against(kind, of("iops")?, asleep, known, |probed, facts| {
                let same = is_same_device(probed.facts, facts);
                let found = same.then(|| probed::saturated(&probed.ceilings, "device", name)).flatten();
                // What still rises at the largest depth is no limit.
                found.filter(|found| found.is_reached).map(|found| found.ceiling)
            });
        }
        let (in_kernel, outside) = (self.share("sys_cpu")?, self.share("usr_cpu")?);
        if reached > NOT_REACHED * bytes || in_kernel < COPIED * (in_kernel + outside) || in_kernel == 0.0 {
            return None;
        }
        let kind = if reads { LimitKind::CopiesOut } else { LimitKind::CopiesIn };
        let name = if reads { "read" } else { "cached" };
        // The time of all of them by the time it took.
        let workers = share_of_limit(self.median("workers.wall")?, of("runtime").unwrap_or(0.0));
        let workers = workers.map(f64::round);
        self.against(kind, of("bw")?, in_kernel >= AGREES, known, |probed, _| {
            probed::best(&probed.ceilings, "copies", name, workers)
        })
    }

    /// How near the syncs of a worker came that changes one page before each.
    fn fsync(&self, known: &[Probed<'_>]) -> Option<Limit> {
        let (syncs, writes) = (self.median("sync.total_ios")?, self.median("write.total_ios")?);
        let each = (syncs / writes - 1.0).abs() <= 1.0 - REACHED;
        if !each || self.median("write.io_bytes")? > BLOCK * writes {
            return None;
        }
        // Several share the commits of a journal, which the probe does not.
        let workers = share_of_limit(self.median("workers.wall")?, self.median("write.runtime")?)?;
        if workers.round() > 1.0 {
            return None;
        }
        let asleep = self.asleep().is_some_and(|share| share >= AGREES);
        self.against(LimitKind::Fsync, self.median("sync.lat_ns.mean")?, asleep, known, |probed, facts| {
            let same = is_same_device(probed.facts, facts);
            probed.ceilings.iter().find(|ceiling| same && ceiling.name == "fsync.one_page")
        })
    }

    /// The comparison with the first probe of this machine that has the figure.
    fn against<'p>(
        &self,
        kind: LimitKind,
        value: f64,
        agrees: bool,
        known: &'p [Probed<'p>],
        figure: impl Fn(&'p Probed<'p>, &HostFacts) -> Option<&'p Ceiling>,
    ) -> Option<Limit> {
        let facts = self.facts()?;
        let mut here = known.iter().filter(|probed| is_same_machine(probed.facts, facts));
        let (probed, ceiling) = here.find_map(|probed| Some((probed, figure(probed, facts)?)))?;
        let share = share_of_limit(value, ceiling.median)?;
        Some(Limit {
            row: RowKey { levels: Vec::new(), job: String::new() },
            arm: String::new(),
            kind,
            unit: ceiling.unit.clone(),
            value,
            limit: ceiling.median,
            at: ceiling.level().unwrap_or(1),
            share,
            is_cause: agrees && is_near_limit(share),
            probed_unix_ns: probed.run.started_unix_ns,
        })
    }

    /// Facts of the machine that ran the trials; `None`: they ran on several.
    fn facts(&self) -> Option<&HostFacts> {
        let of = |trial: &&Trial| self.run.facts.get(trial.facts.unwrap_or(0) as usize);
        let first = of(self.trials.first()?)?;
        let alike = |facts: &HostFacts| {
            is_same_machine(first, facts) && (is_same_device(first, facts) || facts.get("device").is_none())
        };
        self.trials.iter().all(|trial| of(trial).is_some_and(alike)).then_some(first)
    }

    /// The median of a metric of the whole trial.
    fn median(&self, name: &str) -> Option<f64> {
        let metric = self.run.metrics.iter().position(|m| m.job.is_empty() && m.name == name)? as u32;
        let values: Vec<f64> = self.trials.iter().filter_map(|trial| trial.value(metric)).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// A part of the workers' time.
    fn share(&self, name: &str) -> Option<f64> {
        share_of_limit(self.median(name)?, self.median("workers.wall")?).or(Some(0.0))
    }

    /// The part of their time in which workers neither ran nor were ready to.
    fn asleep(&self) -> Option<f64> {
        let busy = self.share("usr_cpu")? + self.share("sys_cpu")?;
        Some(1.0 - busy - self.share("workers.run_wait").unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::probed::tests::probe_of;
    use super::*;
    use crate::record::Sample;

    fn facts() -> HostFacts {
        let mut facts = HostFacts::default();
        for (name, value) in [("kernel.release", "6.12"), ("cpu.model", "A"), ("device", "vda")] {
            facts.set(name, value);
        }
        facts
    }

    fn probe() -> Run {
        let mut probe = probe_of(&[
            ("device", "write.4k.d1", Unit::PerSecond, 10_000.0),
            ("device", "write.4k.d8", Unit::PerSecond, 50_000.0),
            ("device", "write.4k.d16", Unit::PerSecond, 51_000.0),
            ("copies", "cached.4k.t1", Unit::BytesPerSecond, 4e9),
            ("copies", "cached.16m.t2", Unit::BytesPerSecond, 5e9),
        ]);
        probe.facts = vec![facts()];
        probe.started_unix_ns = 7;
        probe
    }

    /// A run whose cells have these values in every trial.
    fn run(values: &[(&str, Unit, f64)]) -> Run {
        let mut run = run_of(&Made::default(), 4);
        run.facts = vec![facts()];
        run.metrics =
            values.iter().map(|(name, unit, _)| Sample::new("", name, unit.clone(), 0.0).metric).collect();
        for trial in &mut run.trials {
            trial.values = (0..).zip(values).map(|(at, (_, _, value))| (at, *value)).collect();
        }
        run
    }

    fn direct(iops: f64, in_kernel: f64) -> Run {
        let ios = iops * 2.0;
        run(&[
            ("write.iops", Unit::PerSecond, iops),
            ("write.bw", Unit::BytesPerSecond, iops * 4096.0),
            ("write.total_ios", Unit::Count, ios),
            ("write.io_bytes", Unit::Bytes, ios * 4096.0),
            ("dev.write_ios", Unit::Count, ios),
            ("dev.write_bytes", Unit::Bytes, ios * 4096.0),
            ("workers.wall", Unit::Seconds, 2.0),
            ("usr_cpu", Unit::Seconds, 0.1),
            ("sys_cpu", Unit::Seconds, 2.0 * in_kernel),
        ])
    }

    #[test]
    fn copies_are_those_of_as_many_threads_as_there_were_workers() {
        let mut run = buffered(1e9, 0.9);
        run.metrics.push(Sample::new("", "write.runtime", Unit::Seconds, 0.0).metric);
        for (runtime, limit) in [(2.0, 4e9), (1.0, 5e9), (0.25, 5e9)] {
            run.trials.iter_mut().for_each(|trial| {
                trial.values.truncate(9);
                trial.values.push((9, runtime));
            });
            assert_eq!(found(&run)[0].limit, limit, "two seconds of workers in {runtime} s");
        }
    }

    fn buffered(bw: f64, in_kernel: f64) -> Run {
        let mut run = direct(bw / 4096.0, in_kernel);
        run.trials.iter_mut().for_each(|trial| {
            (trial.values[4].1, trial.values[5].1) = (0.0, 0.0);
        });
        run
    }

    fn found(run: &Run) -> Vec<Limit> {
        limits(run, &Options::default(), &[probe()])
    }

    #[test]
    fn shares_are_of_positive_numbers() {
        assert_eq!(share_of_limit(83.0, 100.0), Some(0.83));
        for (value, limit) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0)] {
            assert_eq!(share_of_limit(value, limit), None, "{value} of {limit}");
        }
        assert!(is_near_limit(0.86) && is_near_limit(1.14) && !is_near_limit(0.84) && !is_near_limit(1.16));
    }

    #[test]
    fn blocks_at_the_device_are_compared_with_its_saturation() {
        let all = found(&direct(45_000.0, 0.2));
        assert_eq!(all.len(), 2, "one an arm: {all:?}");
        let Limit { kind, limit, at, share, is_cause, probed_unix_ns, .. } = all[0];
        assert_eq!((kind, limit, at, probed_unix_ns), (LimitKind::DeviceWrites, 50_000.0, 8, 7));
        assert!((share - 0.9).abs() < 1e-9 && is_cause);
        // What still rises at the largest depth is no limit.
        let mut rising = probe();
        rising.metrics[2].name = "write.4k.d4".to_owned();
        rising.trials.iter_mut().for_each(|trial| trial.values[2].1 = 20_000.0);
        assert_eq!(limits(&direct(45_000.0, 0.2), &Options::default(), &[rising]), []);
    }

    #[test]
    fn a_limit_is_a_cause_only_where_the_workers_time_agrees() {
        assert!(!found(&direct(45_000.0, 0.8))[0].is_cause, "they were busy in the kernel");
        assert!(!found(&direct(30_000.0, 0.2))[0].is_cause, "it is too far away");
        assert!(found(&buffered(4.5e9, 0.8))[0].is_cause);
        assert!(!found(&buffered(4.5e9, 0.3))[0].is_cause, "they were not in the kernel");
    }

    #[test]
    fn bytes_that_stay_in_memory_are_compared_with_copies() {
        let all = found(&buffered(1e9, 0.9));
        let Limit { kind, limit, at, share, .. } = all[0];
        assert_eq!((kind, limit, at), (LimitKind::CopiesIn, 5e9, 2));
        assert!((share - 0.2).abs() < 1e-9);
    }

    #[test]
    fn an_fsync_after_each_page_is_compared_with_that_of_the_probe() {
        let synced_by = |workers: f64, ns: f64, syncs: f64, bytes: f64| {
            let run = run(&[
                ("write.total_ios", Unit::Count, 1000.0),
                ("write.io_bytes", Unit::Bytes, bytes),
                ("sync.total_ios", Unit::Count, syncs),
                ("sync.lat_ns.mean", Unit::Nanoseconds, ns),
                ("workers.wall", Unit::Seconds, workers),
                ("write.runtime", Unit::Seconds, 1.0),
                ("usr_cpu", Unit::Seconds, 0.1),
                ("sys_cpu", Unit::Seconds, 0.1),
            ]);
            let mut probe = probe_of(&[("device", "fsync.one_page", Unit::Nanoseconds, 100_000.0)]);
            probe.facts = vec![facts()];
            limits(&run, &Options::default(), &[probe])
        };
        let synced = |ns: f64, syncs: f64, bytes: f64| synced_by(1.0, ns, syncs, bytes);
        assert_eq!(synced_by(8.0, 110_000.0, 1000.0, 4096.0 * 1000.0), [], "eight share commits");
        let all = synced(110_000.0, 1000.0, 4096.0 * 1000.0);
        assert_eq!((all.len(), all[0].kind, all[0].limit), (2, LimitKind::Fsync, 100_000.0));
        assert!((all[0].share - 1.1).abs() < 1e-9 && all[0].is_cause);
        assert!(!synced(200_000.0, 1000.0, 4096.0 * 1000.0)[0].is_cause, "it takes twice as long");
        assert_eq!(synced(110_000.0, 100.0, 4096.0 * 1000.0), [], "ten pages before each");
        assert_eq!(synced(110_000.0, 1000.0, 65536.0 * 1000.0), [], "larger blocks");
    }

    #[test]
    fn nothing_is_said_where_the_two_do_not_compare() {
        let silent = |change: &dyn Fn(&mut Run)| {
            let mut run = direct(45_000.0, 0.2);
            change(&mut run);
            assert_eq!(found(&run), Vec::new());
        };
        silent(&|run| run.facts[0].set("kernel.release", "6.13"));
        silent(&|run| run.facts[0].set("device", "vdb"));
        // Larger blocks, merged blocks, reads beside the writes.
        silent(&|run| run.trials.iter_mut().for_each(|trial| trial.values[2].1 /= 4.0));
        silent(&|run| run.trials.iter_mut().for_each(|trial| trial.values[4].1 /= 4.0));
        silent(&|run| run.metrics[0].job = "a job".to_owned());
        silent(&|run| run.metrics[5].name = "dev.other".to_owned());
        // Half of it stayed in the page cache.
        silent(&|run| run.trials.iter_mut().for_each(|trial| trial.values[5].1 /= 2.0));
        assert_eq!(found(&buffered(1e9, 0.01)), Vec::new(), "an engine that does nothing copies nothing");
        assert_eq!(limits(&direct(1.0, 0.1), &Options::default(), &[]), Vec::new());
    }
}
