//! What is said of processes that cannot be ended.

/// Words that [`cannot_be_ended`] always has.
pub(super) const CANNOT_BE_ENDED: &str = "cannot be ended";

/// Says that these processes are left.
pub(super) fn cannot_be_ended(pids: &[i32]) -> String {
    let numbers = pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    match pids {
        [_] => format!("process {numbers} {CANNOT_BE_ENDED}: it hangs in the kernel"),
        _ => format!("processes {numbers} {CANNOT_BE_ENDED}: they hang in the kernel"),
    }
}
