//! Options that are refused with a sentence of their own.
//!
//! Enters: an option and its value. Leaves: why not, and what to do.

use crate::workload::values::{Fault, Value, bad};

/// The refusal; `None`: it is another option, or says what holds anyway.
pub(super) fn refusal(name: &str, text: &str) -> Option<Value<()>> {
    let not_native = |why: &str| Some(Err(Fault::NotNative(why.to_owned())));
    match (name, text) {
        ("write_hint", "none") | ("flow", "0") | ("io_submit_mode", "inline") => Some(Ok(())),
        ("write_hint", _) => not_native(
            "hints of how long a write lives, which few filesystems and devices heed; leave it out",
        ),
        ("flow", _) => not_native(
            "jobs that are held at a ratio to each other; give each its own rate_iops=, or leave flow out",
        ),
        ("io_submit_mode", "offload") => not_native(
            "'offload', which adds the way to another thread to each latency; leave it at inline, and ask for \
             rate_iops= if I/Os shall be due at times of their own",
        ),
        ("io_submit_mode", other) => Some(bad(format!("'{other}' is none of inline, offload"))),
        ("allow_mounted_write", "0") => Some(Ok(())),
        ("allow_mounted_write", _) => Some(bad(
            "assay never writes to a device that is mounted; unmount it, or write to files on it with directory=",
        )),
        // fio takes any value of a flag with a meaning of its own as "yes".
        ("exitall", "0") => Some(bad("fio takes exitall=0 as exitall; leave the line out")),
        _ => None,
    }
}
