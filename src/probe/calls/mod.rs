//! What a call into the kernel takes: a file each.
//!
//! Enters: nothing. Leaves: probes in ns a call.

mod context_switch;
mod futex_wake;
mod page_fault;
mod pinned;
mod system_call;

use super::{LeftOut, Probe};

/// All of them.
pub(super) fn probes(left_out: &mut Vec<LeftOut>) -> Vec<Box<dyn Probe>> {
    let mut probes: Vec<Box<dyn Probe>> = vec![
        Box::new(system_call::SystemCall),
        Box::new(context_switch::ContextSwitch),
        Box::new(page_fault::PageFault),
    ];
    match futex_wake::FutexWake::new() {
        Some(probe) => probes.push(Box::new(probe)),
        None => left_out.push(LeftOut {
            what: "a wake-up from one processor to another".to_owned(),
            why: "this process may run on one processor only".to_owned(),
        }),
    }
    probes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_call_takes_longer_than_ten_ns() {
        let mut left_out = Vec::new();
        for mut probe in probes(&mut left_out) {
            let took = probe.sample(Duration::from_millis(2)).unwrap();
            assert!(took.is_finite() && took > 10.0, "{}: {took}", probe.name());
        }
    }
}
