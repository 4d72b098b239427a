//! What is said of processes that cannot be ended.

/// Says that these processes are left.
pub(super) fn cannot_be_ended(pids: &[i32]) -> String {
    let numbers = pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    match pids {
        [_] => format!("process {numbers} cannot be ended: it hangs in the kernel"),
        _ => format!("processes {numbers} cannot be ended: they hang in the kernel"),
    }
}
