//! What else ran: stolen processor time, pressure, and I/O on the device that was not the trial's.
//!
//! Two looks make a [`Disturbance`]. [`Limits`] is the rule, fixed before the run, by which a round is thrown out. It uses
//! only what the trial cannot cause itself, so that it cannot see the outcome: stolen time, and reads of others on the
//! device. Pressure of a trial is mostly its own doing (direct I/O waits, that is what it is for): it is only reported.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::device::BlockDevice;
use super::disks::Disks;
use super::roots::Roots;
use crate::record::HostFacts;
use crate::sys::usage;

/// Ticks of `/proc/stat` a second, as Linux shows them to user space everywhere.
pub(super) const TICKS_PER_S: f64 = 100.0;

/// One look at the counters.
#[derive(Clone, Debug)]
pub struct Interference {
    at: std::time::Instant,
    busy_ticks: u64,
    steal_ticks: u64,
    pressure_us: [Option<u64>; 3],
    /// By device; `None`: it is gone.
    device_read_bytes: Vec<Option<u64>>,
    /// `None`: this kernel does not count what a process reads.
    own_read_bytes: Option<u64>,
    /// What the target is on, and what shares its disks.
    devices: Vec<BlockDevice>,
}

/// What happened between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Seconds between the looks.
    pub elapsed_s: f64,
    /// Seconds of processor time that the hypervisor gave to others while a processor here wanted to run.
    pub steal_s: f64,
    /// The same as a share of all time that processors here ran or wanted to.
    pub steal_share: f64,
    /// Whether the processors are emulated ones, in a guest.
    #[serde(default)]
    pub emulated: bool,
    /// Share of the time in which some task waited for a processor; `None` without PSI.
    pub psi_cpu: Option<f64>,
    /// Share of the time in which some task waited for I/O.
    pub psi_io: Option<f64>,
    /// Share of the time in which some task waited for memory.
    pub psi_memory: Option<f64>,
    /// Bytes read from the device by processes that are not this one's ended children; `None` without a device, and where the kernel does
    /// not count what a process reads (`CONFIG_TASK_IO_ACCOUNTING`).
    /// Writes cannot be told apart: the kernel writes for everyone.
    pub foreign_read_bytes: Option<u64>,
}

/// Above which a trial's round is thrown out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Largest share of stolen time.
    pub steal_share: f64,
    /// The same in an emulated guest, whose times scatter more by themselves.
    pub emulated_steal_share: f64,
    /// Stolen time below this never counts: a few ticks are the grain of the counter.
    pub steal_s: f64,
    /// Largest rate of foreign reads from the device, bytes a second.
    pub foreign_read_bytes_per_s: f64,
    /// Foreign reads below this never count: dropping the page cache makes everyone read a little again.
    pub foreign_read_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steal_share: 0.05,
            emulated_steal_share: 0.1,
            steal_s: 0.1,
            foreign_read_bytes_per_s: 33_554_432.0,
            foreign_read_bytes: 16_777_216,
        }
    }
}

impl Disturbance {
    /// By which rule the trial's round is thrown out, in words that are the same for every round; `None` when it counts.
    #[must_use]
    pub fn over(&self, limits: &Limits) -> Option<String> {
        let share = if self.emulated { limits.emulated_steal_share } else { limits.steal_share };
        if self.steal_share > share && self.steal_s >= limits.steal_s {
            let limit = share * 100.0;
            return Some(format!("the hypervisor stole more than {limit:.0} % of the processor time"));
        }
        let foreign = self.foreign_read_bytes.unwrap_or(0);
        let rate = foreign as f64 / self.elapsed_s.max(0.1);
        if rate > limits.foreign_read_bytes_per_s && foreign > limits.foreign_read_bytes {
            let limit = limits.foreign_read_bytes_per_s / 1_048_576.0;
            return Some(format!("others read more than {limit:.0} MiB/s from the device"));
        }
        None
    }
}

impl Interference {
    /// Looks at the machine, at the devices under `path` and at others on the same disks.
    #[must_use]
    pub fn look(path: &Path) -> Interference {
        Interference::look_in(&Roots::default(), Disks::under(path).unwrap_or_default().counted())
    }

    fn look_in(roots: &Roots, devices: Vec<BlockDevice>) -> Interference {
        let (busy_ticks, steal_ticks) = processor_ticks(roots).unwrap_or((0, 0));
        let pressure_us =
            ["cpu", "io", "memory"].map(|what| pressure(roots, what).map(|(_, total_us)| total_us));
        let read_bytes = |device: &BlockDevice| device.counters().map(|counters| counters.read_bytes);
        let device_read_bytes = devices.iter().map(read_bytes).collect();
        Interference {
            at: std::time::Instant::now(),
            busy_ticks,
            steal_ticks,
            pressure_us,
            device_read_bytes,
            own_read_bytes: roots.proc("self/io").map(|_| own_read_bytes()),
            devices,
        }
    }

    /// What happened since: looks again at the same device.
    #[must_use]
    pub fn since(&self) -> Disturbance {
        self.until(&Interference::look_in(&Roots::default(), self.devices.clone()))
    }

    fn until(&self, later: &Interference) -> Disturbance {
        let elapsed_s = later.at.duration_since(self.at).as_secs_f64();
        let steal = later.steal_ticks.saturating_sub(self.steal_ticks) as f64;
        let busy = later.busy_ticks.saturating_sub(self.busy_ticks) as f64;
        let share = |at: usize| {
            let waited_us = later.pressure_us[at]?.saturating_sub(self.pressure_us[at]?);
            Some(waited_us as f64 / 1e6 / elapsed_s.max(1e-6))
        };
        let difference = |after: Option<u64>, before: Option<u64>| Some(after?.saturating_sub(before?));
        let own = difference(later.own_read_bytes, self.own_read_bytes);
        // The first is the target's own; others may come and go.
        let by_device = self.device_read_bytes.iter().zip(&later.device_read_bytes);
        let mut by_device = by_device.map(|(before, after)| difference(*after, *before));
        let all = by_device.next().flatten().map(|own| own + by_device.flatten().sum::<u64>());
        Disturbance {
            elapsed_s,
            steal_s: steal / TICKS_PER_S,
            steal_share: if steal > 0.0 { steal / (busy + steal) } else { 0.0 },
            emulated: false,
            psi_cpu: share(0),
            psi_io: share(1),
            psi_memory: share(2),
            foreign_read_bytes: all.zip(own).map(|(all, own)| all.saturating_sub(own)),
        }
    }
}

/// (ticks in which processors ran something, stolen ticks) since boot, all processors (proc(5), `/proc/stat`).
pub(super) fn processor_ticks(roots: &Roots) -> Option<(u64, u64)> {
    let stat = roots.proc("stat")?;
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    // user nice system (idle iowait) irq softirq steal; guest time is in user already.
    Some((at(0) + at(1) + at(2) + at(5) + at(6), at(7)))
}

/// (average over ten seconds in percent, total in µs) of `some` pressure (Documentation/accounting/psi.rst).
pub(super) fn pressure(roots: &Roots, what: &str) -> Option<(f64, u64)> {
    let text = roots.proc(&format!("pressure/{what}"))?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let field = |name: &str| some.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    Some((field("avg10")?.parse().ok()?, field("total")?.parse().ok()?))
}

/// Bytes that this process and its ended children read from devices.
fn own_read_bytes() -> u64 {
    let blocks = |who| u64::try_from(usage(who).ru_inblock).unwrap_or(0);
    (blocks(libc::RUSAGE_SELF) + blocks(libc::RUSAGE_CHILDREN)) * 512
}

/// The same of this machine, for trials that run in a guest of it.
#[must_use]
pub fn moment() -> HostFacts {
    let mut facts = HostFacts::default();
    add(&Roots::default(), &mut facts);
    facts
}

/// The facts of the moment: `now.load1`, `now.psi.*`, `now.steal_percent` (since boot).
pub(super) fn add(roots: &Roots, facts: &mut HostFacts) {
    facts.set_known("now.load1", roots.proc("loadavg").as_deref().and_then(|text| text.split(' ').next()));
    for what in ["cpu", "io", "memory"] {
        if let Some((percent, _)) = pressure(roots, what) {
            facts.set(format!("now.psi.{what}"), percent.to_string());
        }
    }
    if let Some((busy, steal)) = processor_ticks(roots).filter(|(busy, steal)| busy + steal > 0) {
        facts.set("now.steal_percent", format!("{:.2}", 100.0 * steal as f64 / (busy + steal) as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(stat: &str, io: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        std::fs::write(root.path().join("proc/stat"), stat).unwrap();
        std::fs::write(root.path().join("proc/loadavg"), "0.42 0.10 0.05 1/100 99\n").unwrap();
        std::fs::write(root.path().join("proc/pressure/io"), io).unwrap();
        root
    }

    const IO: &str = "some avg10=1.50 avg60=0.10 avg300=0.00 total=500000\nfull avg10=0.00 total=7\n";

    #[test]
    fn the_moment_is_read() {
        let root = tree("cpu  100 0 100 9000 50 0 0 50 30 0\ncpu0 1 2 3\n", IO);
        let mut facts = HostFacts::default();
        add(&Roots::under(root.path()), &mut facts);
        assert_eq!(facts.get("now.load1"), Some("0.42"));
        assert_eq!(facts.get("now.psi.io"), Some("1.5"));
        assert_eq!(facts.get("now.psi.cpu"), None);
        assert_eq!(facts.get("now.steal_percent"), Some("20.00"));
    }

    #[test]
    fn two_looks_make_shares() {
        let before = tree("cpu  100 0 100 9000 50 0 0 50\n", IO);
        let after = tree("cpu  160 0 120 9900 80 0 0 70\n", &IO.replace("500000", "750000"));
        let mut first = Interference::look_in(&Roots::under(before.path()), Vec::new());
        let mut second = Interference::look_in(&Roots::under(after.path()), Vec::new());
        second.at = first.at + std::time::Duration::from_secs(1);
        (first.device_read_bytes, second.device_read_bytes) =
            (vec![Some(1000), Some(5)], vec![Some(9000), None]);
        assert_eq!(first.own_read_bytes, None, "a kernel without this accounting");
        assert_eq!(first.until(&second).foreign_read_bytes, None, "what is one's own is not known there");
        (first.own_read_bytes, second.own_read_bytes) = (Some(0), Some(5000));
        let seen = first.until(&second);
        assert_eq!((seen.elapsed_s, seen.steal_s, seen.steal_share), (1.0, 0.2, 0.2));
        assert_eq!((seen.psi_io, seen.psi_cpu), (Some(0.25), None));
        assert_eq!(seen.foreign_read_bytes, Some(3000));
    }

    #[test]
    fn the_rule_needs_more_than_the_grain_of_the_counter() {
        let limits = Limits::default();
        let calm = Disturbance { elapsed_s: 1.0, ..Disturbance::default() };
        assert_eq!(calm.over(&limits), None);
        assert_eq!(Disturbance { steal_s: 0.05, steal_share: 0.5, ..calm }.over(&limits), None);
        let stolen = Disturbance { steal_s: 0.5, steal_share: 0.2, ..calm };
        assert!(stolen.over(&limits).unwrap().contains("stole more than 5 % of the processor time"));
        let emulated = Disturbance { emulated: true, ..stolen };
        assert!(emulated.over(&limits).unwrap().contains("stole more than 10 % of the processor time"));
        let (little, emulated) = (Disturbance { steal_share: 0.08, ..stolen }, true);
        assert!(little.over(&limits).is_some());
        assert_eq!(Disturbance { emulated, ..little }.over(&limits), None);
        let read = Disturbance { foreign_read_bytes: Some(50 << 20), ..calm };
        assert!(read.over(&limits).unwrap().contains("others read more than 32 MiB/s"));
        let little = Disturbance { elapsed_s: 0.1, foreign_read_bytes: Some(8 << 20), ..calm };
        assert_eq!(little.over(&limits), None, "fast, but little");
        // Waiting for I/O is what a storage trial does.
        assert_eq!(Disturbance { psi_io: Some(1.0), psi_cpu: Some(1.0), ..calm }.over(&limits), None);
    }

    #[test]
    fn a_real_look_counts_time() {
        let look = Interference::look(Path::new("/"));
        assert!(look.own_read_bytes.is_some(), "/proc/self/io is there on this machine");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let seen = look.since();
        assert!(seen.elapsed_s >= 0.02 && seen.steal_share <= 1.0, "{seen:?}");
    }
}
