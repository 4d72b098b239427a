//! Whether boots of two arms that bear the same number are the same boot. Whoever boots two kernels five times each counts to five twice.
//!
//! Enters: kind and label of each trial's cluster, its arm, its input, its start. Leaves: a yes or no. Taking boots that are the same for
//! different ones makes intervals too wide; taking different ones for the same pairs what has nothing in common, and does that, too.

use std::collections::HashMap;

/// Names of a factor whose levels never share a boot.
const KERNELS: [&str; 6] = ["kernel", "kernel_release", "kernel_version", "release", "uname", "linux"];

/// A trial with what its boot is called.
pub(super) struct Numbered<'a> {
    pub(super) label: &'a str,
    pub(super) arm: u32,
    pub(super) side: usize,
    pub(super) started_unix_ns: u64,
}

/// Whether each arm has numbers of its own, as the factor `arms` or the trials show.
pub(super) fn are_own(kind: &str, arms: Option<&str>, trials: &[Numbered<'_>]) -> bool {
    let kernels = arms.is_some_and(|arms| KERNELS.contains(&arms.trim().to_ascii_lowercase().as_str()));
    match kind {
        "boot" if kernels => true,
        "boot" | "session" => counted_in_each_input(trials) || left_and_come_back_to(trials),
        // Days, hosts and what nobody knows are what they are called.
        _ => false,
    }
}

/// Every input is an arm and counts for itself.
fn counted_in_each_input(trials: &[Numbered<'_>]) -> bool {
    let mut arm_of_side: HashMap<usize, u32> = HashMap::new();
    let apart = trials.iter().all(|trial| *arm_of_side.entry(trial.side).or_insert(trial.arm) == trial.arm);
    apart
        && arm_of_side.len() > 1
        && trials
            .iter()
            .all(|trial| trial.label.len() <= 4 && trial.label.bytes().all(|byte| byte.is_ascii_digit()))
}

/// In the order of time a number comes again after another, and with its arm never does.
fn left_and_come_back_to(trials: &[Numbered<'_>]) -> bool {
    if trials.iter().any(|trial| trial.started_unix_ns == 0) {
        return false;
    }
    let mut order: Vec<&Numbered> = trials.iter().collect();
    order.sort_by_key(|trial| trial.started_unix_ns);
    let stretches: Vec<(&str, u32)> = order
        .chunk_by(|a, b| (a.label, a.arm) == (b.label, b.arm))
        .map(|stretch| (stretch[0].label, stretch[0].arm))
        .collect();
    let mut last: HashMap<(&str, u32), usize> = HashMap::new();
    let each_once = stretches.iter().enumerate().all(|(at, stretch)| last.insert(*stretch, at).is_none());
    // Next to each other two stretches of one number may be one boot.
    let far = |((label, arm), at): (&(&str, u32), &usize)| {
        last.iter().any(|((other, of), there)| other == label && of != arm && there.abs_diff(*at) > 1)
    };
    each_once && last.iter().any(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(list: &[(&'static str, u32, usize, u64)]) -> Vec<Numbered<'static>> {
        let of = |(label, arm, side, started_unix_ns): &(&'static str, u32, usize, u64)| Numbered {
            label,
            arm: *arm,
            side: *side,
            started_unix_ns: *started_unix_ns,
        };
        list.iter().map(of).collect()
    }

    #[test]
    fn kernels_never_share_a_boot() {
        let same = trials(&[("1", 0, 0, 0), ("1", 1, 0, 0)]);
        assert!(are_own("boot", Some("Kernel"), &same));
        assert!(!are_own("boot", Some("mode"), &same) && !are_own("host", Some("kernel"), &same));
    }

    #[test]
    fn each_input_counts_for_itself() {
        let files = trials(&[("1", 0, 0, 0), ("2", 0, 0, 0), ("1", 1, 1, 0), ("2", 1, 1, 0)]);
        assert!(are_own("boot", None, &files) && !are_own("day", None, &files));
        let names = trials(&[("3f2c9a1e", 0, 0, 0), ("3f2c9a1e", 1, 1, 0)]);
        assert!(!are_own("boot", None, &names), "an identity is one boot wherever it is read");
    }

    #[test]
    fn a_boot_that_was_left_is_not_come_back_to() {
        let nested = trials(&[("1", 0, 0, 10), ("2", 0, 0, 20), ("1", 1, 0, 30), ("2", 1, 0, 40)]);
        assert!(are_own("boot", Some("mode"), &nested));
        let shared = trials(&[("1", 0, 0, 10), ("1", 1, 0, 20), ("2", 1, 0, 30), ("2", 0, 0, 40)]);
        assert!(!are_own("boot", Some("mode"), &shared));
        let mixed =
            trials(&[("1", 0, 0, 10), ("1", 1, 0, 20), ("1", 0, 0, 30), ("2", 0, 0, 40), ("2", 1, 0, 50)]);
        assert!(!are_own("boot", Some("mode"), &mixed));
    }
}
