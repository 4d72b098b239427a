//! `numa_mem_policy`: from which nodes the memory of a thread comes.
//!
//! Enters: a job's policy. Leaves: the calling thread under it, or one clear error. It must be set before anything is
//! allocated that it shall hold for.

use super::failure::{Failure, errno_text};
use crate::workload::{Job, NumaMemory};

/// Modes of set_mempolicy(2).
const MPOL_PREFERRED: libc::c_int = 1;
const MPOL_BIND: libc::c_int = 2;
const MPOL_INTERLEAVE: libc::c_int = 3;
const MPOL_LOCAL: libc::c_int = 4;

/// Nodes that a mask has room for; Linux has at most 1024.
const MOST_NODES: u32 = 1024;

/// Sets the policy of the calling thread.
///
/// # Errors
/// [`Failure::Setting`] when there is no such node, or the kernel refuses.
pub(super) fn apply(job: &Job) -> Result<(), Failure> {
    let failed = |what: String| Failure::Setting { job: job.name.clone(), what };
    let Some((mode, nodes)) = policy(job)? else { return Ok(()) };
    let mut mask = [0_u64; MOST_NODES as usize / 64];
    for node in nodes {
        mask[*node as usize / 64] |= 1 << (node % 64);
    }
    // The kernel takes one bit less than it is told.
    let bits = if nodes.is_empty() { 0 } else { u64::from(MOST_NODES) + 1 };
    let address = if nodes.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    #[expect(unsafe_code, reason = "neither std nor rustix has set_mempolicy")]
    // SAFETY: the kernel reads `bits` − 1 bits from the mask, which has as many and outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, address, bits) };
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    let text = rustix::io::Errno::from_io_error(&error).map_or_else(|| error.to_string(), errno_text);
    Err(failed(format!("numa_mem_policy: {text}")))
}

/// The mode of set_mempolicy(2) and its nodes; `None`: as it is.
///
/// # Errors
/// [`Failure::Setting`] when there is no such node.
pub(super) fn policy(job: &Job) -> Result<Option<(libc::c_int, &[u32])>, Failure> {
    let (mode, nodes): (_, &[u32]) = match &job.numa_memory {
        NumaMemory::Default => return Ok(None),
        NumaMemory::Local => (MPOL_LOCAL, &[]),
        NumaMemory::Prefer(node) => (MPOL_PREFERRED, std::slice::from_ref(node)),
        NumaMemory::Bind(nodes) => (MPOL_BIND, nodes),
        NumaMemory::Interleave(nodes) => (MPOL_INTERLEAVE, nodes),
    };
    let known = nodes_of(&online());
    match nodes.iter().find(|node| !known.contains(node)) {
        Some(node) => {
            let what = format!("numa_mem_policy: there is no node {node}; this machine has {}", online());
            Err(Failure::Setting { job: job.name.clone(), what })
        }
        None => Ok(Some((mode, nodes))),
    }
}

/// The nodes with memory, as the kernel lists them; `0` where it has no notion of nodes.
fn online() -> String {
    let list = std::fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    let list = list.trim();
    if list.is_empty() { "0".to_owned() } else { list.to_owned() }
}

/// `0-1,4` → 0, 1, 4.
fn nodes_of(list: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|node| *node < MOST_NODES);
    list.split(',')
        .filter_map(|part| match part.split_once('-') {
            Some((first, last)) => Some(number(first)?..=number(last)?),
            None => Some(number(part)?..=number(part)?),
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_read() {
        assert_eq!(nodes_of("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(nodes_of("0"), [0]);
        assert_eq!(nodes_of(""), [0_u32; 0]);
        assert_eq!(nodes_of("2000"), [0_u32; 0]);
        assert!(nodes_of(&online()).contains(&0));
    }
}
