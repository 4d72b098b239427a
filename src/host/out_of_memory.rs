//! How many processes the kernel has killed for want of memory.
//!
//! Enters: `/proc/vmstat`. Leaves: its counter `oom_kill` (Linux 4.13 and later), which counts those of control groups, too.

use super::Roots;

/// Processes killed so far; `None` where the kernel does not count them.
#[must_use]
pub fn oom_kills() -> Option<u64> {
    oom_kills_in(&Roots::default())
}

fn oom_kills_in(roots: &Roots) -> Option<u64> {
    let text = roots.proc("vmstat")?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_found_among_its_neighbours() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        assert_eq!(oom_kills_in(&Roots::under(root.path())), None);
        let text = "drop_slab 1\noom_kill 3\noom_kill_other 9\n";
        std::fs::write(root.path().join("proc/vmstat"), text).unwrap();
        assert_eq!(oom_kills_in(&Roots::under(root.path())), Some(3));
    }
}
