//! `cpus_allowed`, `cpus_allowed_policy`, `numa_cpu_nodes`: on which processors an instance runs.
//!
//! Enters: a job and which of its instances this is. Leaves: the calling thread on these processors and no others, or
//! one clear error. It must be called before memory is touched, as pages come from the node of the processor that does.

use std::collections::BTreeSet;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::failure::{Failure, errno_text};
use crate::workload::{CpuPolicy, Instance, Job};

const NODES: &str = "/sys/devices/system/node";
const ONLINE_CPUS: &str = "/sys/devices/system/cpu/online";

/// Restricts the calling thread as `job` asks.
///
/// # Errors
/// [`Failure::Setting`] when there is no such processor or node, when none is left, or when the kernel gives less than was
/// asked for.
pub(super) fn apply(job: &Job, instance: &Instance) -> Result<(), Failure> {
    let failed = |what: String| Failure::Setting { job: job.name.clone(), what };
    processors(job, instance)?.map_or(Ok(()), |wanted| pin(&wanted).map_err(failed))
}

/// The processors that `instance` may run on; `None`: any.
///
/// # Errors
/// [`Failure::Setting`] when there is no such processor or node, or when none is left.
pub(super) fn processors(job: &Job, instance: &Instance) -> Result<Option<BTreeSet<u32>>, Failure> {
    let failed = |what: String| Failure::Setting { job: job.name.clone(), what };
    let listed = |path: &str| numbers_of(&std::fs::read_to_string(path).unwrap_or_default());
    let online = listed(ONLINE_CPUS);
    let mut wanted = wanted(job, instance, &online).map_err(failed)?;
    if !job.numa_cpu_nodes.is_empty() {
        let nodes = listed(&format!("{NODES}/online"));
        let mut near = BTreeSet::new();
        for node in &job.numa_cpu_nodes {
            if !nodes.contains(node) {
                return Err(failed(format!(
                    "numa_cpu_nodes: there is no node {node}; this machine has {}",
                    list_of(&nodes)
                )));
            }
            near.extend(listed(&format!("{NODES}/node{node}/cpulist")));
        }
        wanted = Some(match wanted {
            Some(cpus) => cpus.intersection(&near).copied().collect(),
            None => near,
        });
    }
    if wanted.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err(failed(
            "no CPU is left: the nodes of numa_cpu_nodes have none, or none of cpus_allowed".to_owned(),
        ));
    }
    Ok(wanted)
}

/// `cpus_allowed` for this instance; `None`: any.
fn wanted(job: &Job, instance: &Instance, online: &BTreeSet<u32>) -> Result<Option<BTreeSet<u32>>, String> {
    let allowed: BTreeSet<u32> = job.cpus_allowed.iter().copied().collect();
    if allowed.is_empty() {
        return Ok(None);
    }
    if let Some(cpu) = allowed.iter().find(|cpu| !online.is_empty() && !online.contains(cpu)) {
        return Err(format!("cpus_allowed: there is no CPU {cpu}; this machine has {}", list_of(online)));
    }
    Ok(Some(match job.cpu_policy {
        CpuPolicy::Shared => allowed,
        // As in fio: in turn over all clones of all jobs, and from the first again when there are more of them.
        CpuPolicy::Split => {
            let turn = instance.number as usize % allowed.len();
            allowed.into_iter().skip(turn).take(1).collect()
        }
    }))
}

fn pin(cpus: &BTreeSet<u32>) -> Result<(), String> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(format!("CPU {cpu}: at most {} are known", CpuSet::MAX_CPU));
        }
        set.set(*cpu as usize);
    }
    let refused = |what: String| format!("cannot run on CPU {}: {what}", list_of(cpus));
    sched_setaffinity(None, &set).map_err(|errno| refused(errno_text(errno)))?;
    // The kernel leaves out what a cpuset (a container, a systemd slice) does not have, without a word.
    let got = sched_getaffinity(None).map_err(|errno| refused(errno_text(errno)))?;
    match cpus.iter().find(|cpu| !got.is_set(**cpu as usize)) {
        Some(cpu) => Err(refused(format!("CPU {cpu} is not in the cpuset of this process"))),
        None => Ok(()),
    }
}

/// `0-1,4` → 0, 1, 4.
fn numbers_of(list: &str) -> BTreeSet<u32> {
    list.trim()
        .split(',')
        .filter_map(|part| match part.split_once('-') {
            Some((first, last)) => Some(first.parse().ok()?..=last.parse().ok()?),
            None => part.parse().ok().map(|one: u32| one..=one),
        })
        .flatten()
        .take(CpuSet::MAX_CPU)
        .collect()
}

/// 0, 1, 4 → `0-1,4`.
fn list_of(numbers: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{JobFile, Workload};

    fn job(options: &str) -> (Workload, Vec<Instance>) {
        let text = format!("[a]\nsize=1m\nnumjobs=5\n{options}\n");
        let file = JobFile::parse(&text, "test.fio", std::path::Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instances = workload.instances(std::path::Path::new("."));
        (workload, instances)
    }

    #[test]
    fn lists_are_read_and_written() {
        for list in ["0", "0-3", "0,2-4,9", ""] {
            assert_eq!(list_of(&numbers_of(list)), list);
        }
        assert_eq!(numbers_of("0-1,4\n"), BTreeSet::from([0, 1, 4]));
        assert!(numbers_of("x-y,z").is_empty());
    }

    #[test]
    fn split_gives_each_clone_a_cpu_in_turn() {
        let (workload, instances) = job("cpus_allowed=1,3,5\ncpus_allowed_policy=split");
        let online = (0..8).collect();
        let cpus: Vec<u32> = instances
            .iter()
            .map(|instance| {
                let own = wanted(&workload.jobs[0], instance, &online).unwrap().unwrap();
                assert_eq!(own.len(), 1);
                *own.first().unwrap()
            })
            .collect();
        assert_eq!(cpus, [1, 3, 5, 1, 3]);
        let (workload, instances) = job("cpus_allowed=1,3,5");
        assert_eq!(wanted(&workload.jobs[0], &instances[2], &online).unwrap().unwrap().len(), 3);
        let error = wanted(&workload.jobs[0], &instances[0], &BTreeSet::from([0, 1])).unwrap_err();
        assert_eq!(error, "cpus_allowed: there is no CPU 3; this machine has 0-1");
    }

    #[test]
    fn a_thread_is_put_on_the_cpus_of_a_node() {
        let (workload, instances) = job("cpus_allowed=0\nnuma_cpu_nodes=0");
        let on_a_thread = |job: &Job| {
            std::thread::scope(|scope| {
                scope
                    .spawn(|| {
                        apply(job, &instances[0]).map_err(|failure| failure.to_string())?;
                        let set = sched_getaffinity(None).unwrap();
                        Ok::<_, String>(
                            (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect::<Vec<_>>(),
                        )
                    })
                    .join()
                    .unwrap()
            })
        };
        assert_eq!(on_a_thread(&workload.jobs[0]).unwrap(), [0]);
        let (workload, _) = job("numa_cpu_nodes=77");
        let error = on_a_thread(&workload.jobs[0]).unwrap_err();
        assert!(error.contains("there is no node 77; this machine has 0"), "{error}");
        let (workload, _) = job("cpus_allowed=4000");
        let error = on_a_thread(&workload.jobs[0]).unwrap_err();
        assert!(error.contains("there is no CPU 4000"), "{error}");
    }
}
