//! Facts of the machine, kernel, device and queue; bringing them to the same state before each trial; what else ran.
//!
//! Enters: `/proc` and `/sys` (under any [`Roots`], so that tests can use a tree of their own) and a path that will be
//! written. Leaves: [`HostFacts`], [`Quiet`], [`Disturbance`] and doctor's [`doctor::Finding`]s.
//! It must not know jobs, trials or verdicts. Facts under `now.` are of the moment: they differ between any two looks and
//! are not compared between arms; all others should be equal in all trials unless they were varied on purpose.

mod arm;
mod busy;
mod cgroup;
mod descendants;
mod device;
mod direct_io;
mod disks;
pub mod doctor;
mod interference;
mod kernel;
mod kernel_log;
mod knob;
mod machine_id;
mod mark;
mod memory;
mod mounts_below;
mod offers;
mod out_of_memory;
mod place;
mod processor;
mod quiesce;
mod roots;
mod run_group;
mod virtualisation;

pub use busy::Moment;
pub use descendants::{
    AFTER_KILL, children, descendants, end_children, kill_descendants, own_children, reaped,
    signal_descendants, that_hang, unnoticed_death,
};
pub use device::{BlockDevice, DeviceCounters, device_or_part_under, device_under, device_under_in};
pub use direct_io::{FALLS_BACK, WRITES_FALL_BACK, direct_io_tried};
pub use disks::Disks;
pub use interference::{Disturbance, Interference, Limits, moment};
pub use kernel_log::KernelLog;
pub use knob::{is_setting, read_knob, write_knob};
pub use mark::{MARK_VARIABLE, inherit_run_mark, kill_marked, marked_lives, run_mark};
pub use mounts_below::{is_unique, mounted_at, mounted_for_others, mounts_below, point_of, users_of};
pub use offers::{Driver, boot_id, driver, has_filesystem, may_administer, missing_driver};
pub use out_of_memory::oom_kills;
pub use place::{path_facts, path_facts_in};
pub use quiesce::{Idle, PageCache, Quiet, caches_are_kept, quiesce};
pub use roots::Roots;
pub use run_group::RunGroup;

pub use crate::record::HostFacts;

/// The prefix of facts of the moment.
pub const MOMENTARY: &str = HostFacts::MOMENTARY;

/// Facts of this machine and its kernel, without any path.
#[must_use]
pub fn facts() -> HostFacts {
    let mut facts = facts_in(&Roots::default());
    facts.set("io_uring", kernel::try_io_uring());
    facts.set_known("cpu.allowed", processor::allowed());
    facts.set_known("machine.id", machine_id::machine_id());
    facts
}

/// The same from other roots; `io_uring` is then what the sysctl says, as nothing can be tried there.
#[must_use]
pub fn facts_in(roots: &Roots) -> HostFacts {
    let mut facts = HostFacts::default();
    kernel::add(roots, &mut facts);
    processor::add(roots, &mut facts);
    memory::add(roots, &mut facts);
    cgroup::add(roots, &mut facts);
    interference::add(roots, &mut facts);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_facts() {
        let facts = facts();
        for name in ["kernel.release", "cpu.count", "memory.total", "io_uring", "now.load1"] {
            assert!(facts.get(name).is_some_and(|value| !value.is_empty()), "{name}: {facts:?}");
        }
        let cpus: usize = facts.get("cpu.count").unwrap().parse().unwrap();
        assert!(cpus >= std::thread::available_parallelism().unwrap().get());
    }

    #[test]
    fn an_empty_tree_has_none_and_is_no_error() {
        let tree = tempfile::tempdir().unwrap();
        let facts = facts_in(&Roots::under(tree.path()));
        assert_eq!(facts.count(), 0, "{facts:?}");
    }

    #[test]
    fn stable_facts_are_the_same_twice() {
        let stable = |facts: HostFacts| -> Vec<(String, String)> {
            facts.into_iter().filter(|(name, _)| !name.starts_with(MOMENTARY)).collect()
        };
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(stable(facts()), stable(facts()));
        assert_eq!(stable(path_facts(directory.path())), stable(path_facts(directory.path())));
    }
}
