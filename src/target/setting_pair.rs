//! Two settings of the kernel for one limit, of which only the last one written holds: the other is made 0
//! (Linux's mm/page-writeback.c and mm/util.c, Documentation/admin-guide/sysctl/vm.rst).
//!
//! Enters: one of the two. Leaves: both, as they were. Neither can be put back by itself: 0 is not a value for `dirty_bytes`,
//! and written to `dirty_ratio` it is a limit of nothing.

use std::path::{Path, PathBuf};

use super::error::TargetError;

/// (as an amount, as a share).
const PAIRS: [[&str; 2]; 3] = [
    ["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"],
    ["/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"],
    ["/proc/sys/vm/overcommit_kbytes", "/proc/sys/vm/overcommit_ratio"],
];

/// The pair a setting belongs to: the amount, the share.
pub(super) fn of(path: &Path) -> Option<[PathBuf; 2]> {
    let pair = PAIRS.iter().find(|pair| pair.iter().any(|one| Path::new(one) == path))?;
    Some(pair.map(PathBuf::from))
}

/// What the two say now.
pub(super) fn read(pair: &[PathBuf; 2]) -> Result<[String; 2], TargetError> {
    let one = |path: &PathBuf| crate::host::read_knob(path).map_err(TargetError::io("cannot read", path));
    Ok([one(&pair[0])?, one(&pair[1])?])
}

/// What is written, in this order, to come from `now` to `before`: (which of the two, what).
pub(super) fn steps<'b>(now: &[String; 2], before: &'b [String; 2]) -> Vec<(usize, &'b str)> {
    if now == before {
        return Vec::new();
    }
    if before[0] != "0" {
        return vec![(0, &before[0])];
    }
    // The kernel looks at the amount only when the share has changed.
    if now[1] == before[1] {
        let other = if before[1] == "1" { "2" } else { "1" };
        return vec![(1, other), (1, &before[1])];
    }
    vec![(1, &before[1])]
}

/// Puts both back; what they say afterwards is compared.
pub(super) fn put_back(pair: &[PathBuf; 2], before: &[String; 2]) -> Result<(), TargetError> {
    if !pair.iter().all(|path| path.exists()) {
        return Ok(());
    }
    let now = read(pair)?;
    for (which, value) in steps(&now, before) {
        crate::host::write_knob(&pair[which], value)
            .map_err(|error| not_put_back(&pair[which], value, &error))?;
    }
    let now = read(pair)?;
    match (0..2).find(|one| now[*one] != before[*one]) {
        Some(one) => Err(not_put_back(&pair[one], &before[one], &format!("it says {}", now[one]))),
        None => Ok(()),
    }
}

/// The failure, with what a person can do.
pub(super) fn not_put_back(path: &Path, before: &str, why: &str) -> TargetError {
    let path = path.display();
    TargetError::Failed {
        reason: format!("{path} was {before} and could not be put back: {why}"),
        command: String::new(),
        output: String::new(),
        hint: format!("write it yourself (echo {before} >{path}), then `assay cleanup`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As mm/page-writeback.c has it, which takes less than two pages for no amount.
    fn kernel(mut now: [u64; 2], steps: &[(usize, &str)]) -> [u64; 2] {
        for (which, value) in steps {
            let value: u64 = value.parse().unwrap();
            assert!(*which == 1 || value >= 8192, "EINVAL");
            if now[*which] != value {
                now[*which] = value;
                now[1 - which] = 0;
            }
        }
        now
    }

    #[test]
    fn every_state_is_come_back_to_from_every_other() {
        let states = [[0, 20], [0, 10], [0, 1], [0, 0], [1 << 24, 0], [1 << 30, 0]];
        let text = |state: [u64; 2]| state.map(|value| value.to_string());
        for now in states {
            for before in states {
                let before_text = text(before);
                let steps = steps(&text(now), &before_text);
                assert_eq!(kernel(now, &steps), before, "{now:?}: {steps:?}");
            }
        }
    }

    #[test]
    fn either_leads_to_both() {
        let pair = of(Path::new("/proc/sys/vm/dirty_ratio")).unwrap();
        assert_eq!(of(Path::new("/proc/sys/vm/dirty_bytes")), Some(pair));
        assert_eq!(of(Path::new("/proc/sys/vm/swappiness")), None);
    }
}
