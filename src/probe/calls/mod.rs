//! What a call into the kernel takes: a file each.
//!
//! Enters: nothing. Leaves: probes in ns a call.

mod context_switch;
mod futex_wake;
mod page_fault;
mod pinned;
mod system_call;

use std::time::Duration;

use super::{Group, LeftOut, Probe};
use crate::units::Unit;

/// All of them.
pub(super) fn probes(left_out: &mut Vec<LeftOut>) -> Vec<Probe> {
    let of_calls = |name, sample: fn(Duration) -> std::io::Result<f64>| {
        Probe::new(Group::Calls, name, Unit::Nanoseconds, sample)
    };
    let mut probes = vec![
        of_calls("system_call", system_call::sample),
        of_calls("context_switch", context_switch::sample),
        of_calls("page_fault", page_fault::sample),
    ];
    match pinned::allowed()[..] {
        [first, second, ..] => {
            let sample = move |slice| futex_wake::sample([first, second], slice);
            probes.push(Probe::new(Group::Calls, "futex_wake", Unit::Nanoseconds, sample));
        }
        _ => left_out.push(LeftOut {
            what: "a wake-up from one processor to another".to_owned(),
            why: "this process may run on one processor only".to_owned(),
        }),
    }
    probes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_takes_longer_than_ten_ns() {
        let mut left_out = Vec::new();
        for mut probe in probes(&mut left_out) {
            let took = (probe.sample)(Duration::from_millis(2)).unwrap();
            assert!(took.is_finite() && took > 10.0, "{}: {took}", probe.name);
        }
    }
}
