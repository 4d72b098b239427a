//! Options of what surrounds the I/O: files, memory, processors, nodes.
//!
//! Enters: an option and its value. Leaves: what it says, in the draft.

use std::path::PathBuf;

use super::Draft;
use crate::workload::job::{CpuPolicy, NumaMemory, RangeSync};
use crate::workload::named_values::choose;
use crate::workload::values::{Fault, Value, bad, cpus, number, size};

impl Draft {
    pub(super) fn apply_surroundings(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        let job = &mut self.job;
        Some(match name {
            "sync_file_range" => range_sync(text, kb).map(|sync| job.sync_file_range = sync),
            "write_iolog" => {
                job.io_log = Some(PathBuf::from(text));
                Ok(())
            }
            "mem" => memory(text).map(|(huge_pages, shared)| {
                job.memory.huge_pages = huge_pages;
                job.memory.shared = shared;
            }),
            "lockmem" => size(text, kb).map(|bytes| job.memory.locked_bytes = bytes),
            "cpus_allowed" => cpus(text).map(|cpus| job.cpus_allowed = cpus),
            "cpus_allowed_policy" => {
                choose(text, &[("shared", CpuPolicy::Shared), ("split", CpuPolicy::Split)])
                    .map(|policy| job.cpu_policy = policy)
            }
            "numa_cpu_nodes" => nodes(text).map(|nodes| job.numa_cpu_nodes = nodes),
            "numa_mem_policy" => numa_memory(text).map(|memory| job.numa_memory = memory),
            _ => return None,
        })
    }
}

/// `FLAG,…[:N]`.
fn range_sync(text: &str, kb: u64) -> Value<Option<RangeSync>> {
    let (flags, every) = text.split_once(':').unwrap_or((text, "1"));
    let mut sync = RangeSync { wait_before: false, write: false, wait_after: false, every: 1 };
    for flag in flags.split(',').map(str::trim) {
        match flag {
            "wait_before" => sync.wait_before = true,
            "write" => sync.write = true,
            "wait_after" => sync.wait_after = true,
            _ => {
                return bad(format!(
                    "'{text}' is not one of wait_before, write, wait_after; write e.g. wait_before,write:8"
                ));
            }
        }
    }
    sync.every = number(every.trim(), kb, 0, u64::from(u32::MAX))? as u32;
    // fio: after so many writes, and never with 0.
    Ok((sync.every > 0).then_some(sync))
}

/// `mem`: whether on huge pages, whether shared.
fn memory(text: &str) -> Value<(bool, bool)> {
    let (kind, file) = text.split_once(':').map_or((text, None), |(kind, file)| (kind, Some(file)));
    if kind == "cudamalloc" || (file.is_some() && kind.starts_with("mmap")) {
        return Err(Fault::NotNative(format!("'{text}': buffers on a graphics card or in a file")));
    }
    choose(
        text,
        &[
            ("malloc", (false, false)),
            ("mmap", (false, false)),
            ("mmaphuge", (true, false)),
            ("mmapshared", (false, true)),
            ("shm", (false, true)),
            ("shmhuge", (true, true)),
        ],
    )
}

/// Nodes as `0,2-5`; none for `all`.
fn nodes(text: &str) -> Value<Vec<u32>> {
    if text == "all" {
        return Ok(Vec::new());
    }
    cpus(text).or_else(|_| bad(format!("'{text}' names no nodes; write e.g. 0,2-5 or all")))
}

/// `numa_mem_policy`.
fn numa_memory(text: &str) -> Value<NumaMemory> {
    let (policy, list) = text.split_once(':').map_or((text, None), |(policy, list)| (policy, Some(list)));
    match (policy, list) {
        ("default", None) => Ok(NumaMemory::Default),
        ("local", None) => Ok(NumaMemory::Local),
        ("default" | "local", Some(_)) => bad(format!("'{text}': {policy} has no nodes")),
        ("prefer", Some(node)) => match nodes(node)?.as_slice() {
            [node] => Ok(NumaMemory::Prefer(*node)),
            _ => bad(format!("'{text}': only one node can be preferred")),
        },
        ("bind", Some(list)) => nodes(list).map(NumaMemory::Bind),
        ("prefer" | "bind", None) => bad(format!("'{text}' needs nodes; write e.g. {policy}:0")),
        ("interleave", list) => nodes(list.unwrap_or("all")).map(NumaMemory::Interleave),
        _ => bad(format!("'{policy}' is none of default, prefer, bind, interleave, local")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_synced() {
        let sync = RangeSync { wait_before: true, write: true, wait_after: false, every: 8 };
        assert_eq!(range_sync("wait_before,write:8", 1024), Ok(Some(sync)));
        assert_eq!(range_sync("write:0", 1024), Ok(None));
        assert_eq!(range_sync("wait_after", 1024).unwrap().unwrap().every, 1);
        for text in ["", "read", "write:8,wait_after", "write:"] {
            assert!(range_sync(text, 1024).is_err(), "{text}");
        }
    }

    #[test]
    fn memory_of_buffers() {
        assert_eq!(memory("malloc"), Ok((false, false)));
        assert_eq!(memory("shmhuge"), Ok((true, true)));
        assert!(matches!(memory("mmap:/tmp/x"), Err(Fault::NotNative(_))));
        assert!(matches!(memory("stack"), Err(Fault::Bad(_))));
    }

    #[test]
    fn nodes_of_memory() {
        assert_eq!(numa_memory("prefer:1"), Ok(NumaMemory::Prefer(1)));
        assert_eq!(numa_memory("bind:0-1"), Ok(NumaMemory::Bind(vec![0, 1])));
        assert_eq!(numa_memory("interleave"), Ok(NumaMemory::Interleave(Vec::new())));
        for text in ["local:0", "bind", "prefer", "prefer:0-1", "best", "bind:x"] {
            assert!(numa_memory(text).is_err(), "{text}");
        }
    }
}
