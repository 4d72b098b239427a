//! Processor time in a part of the kernel: a filesystem, the page cache, the block layer …
//!
//! Needs: `--observe cpu`. Concludes: the samples in functions of that part, as `observe/subsystems.txt` sorts them, a part of the kernel's
//! processor time. Silent about copying, which has a rule, and where they differ by less than what matters.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, What};
use super::super::names::{COPY, CPU_AT};
use super::super::pair::Pair;
use super::rule::Rule;

pub(super) const RULE: Rule = Rule { name: "subsystem", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    pair.places(RULE.name, CPU_AT, |part| if part == COPY { None } else { what(part) })
}

fn what(part: &str) -> Option<(What, Option<BudgetPart>)> {
    let what = if part == COPY { What::Copying } else { What::Subsystem(part.to_owned()) };
    Some((what, Some(BudgetPart::Kernel)))
}

/// Parts of the kernel, and copying, that surely differ and are not named as causes, the largest first.
pub(in super::super) fn smaller(pair: &Pair<'_>) -> Vec<Cause> {
    let mut found = pair.smaller_places(RULE.name, CPU_AT, what);
    found.sort_by(|a, b| b.size_ns().total_cmp(&a.size_ns()));
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::What;
    use super::super::super::made_pair::{explained, found, ns, run_with};

    const WATCHED: (&str, f64, f64) = ("cpu.samples", 400.0, 600.0);

    #[test]
    fn each_part_of_the_kernel_that_differs_is_named() {
        let parts =
            [WATCHED, ("cpu.at.ext4", 0.1, 0.05), ("cpu.at.block", 0.05, 0.25), ("cpu.at.vfs", 0.1, 0.1)];
        let causes = found(&parts, "subsystem");
        let of = |part: &str| What::Subsystem(part.to_owned());
        let [block, ext4] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!((&block.what, &ext4.what), (&of("block"), &of("ext4")));
        assert!((ns(block) - 2000).abs() < 20 && (ns(ext4) + 500).abs() < 10, "{causes:?}");
        assert!(ext4.share.is_some_and(|share| share < 0.0), "it works against the difference");
    }

    #[test]
    fn what_is_less_than_a_cause_is_kept_beside_them() {
        // Of 100,000 operations: 20 ns and 100 ns of at least 200.
        let parts =
            [WATCHED, ("cpu.at.copy", 0.05, 0.052), ("cpu.at.ext4", 0.05, 0.04), ("cpu.at.vfs", 0.1, 0.1)];
        let why = explained(&run_with(&parts));
        let kept: Vec<&What> = why.smaller.iter().map(|cause| &cause.what).collect();
        assert_eq!(kept, [&What::Subsystem("ext4".to_owned()), &What::Copying], "{:?}", why.smaller);
        assert!(why.causes.iter().all(|cause| !matches!(cause.what, What::Copying | What::Subsystem(_))));
    }

    #[test]
    fn parts_that_do_not_differ_and_samples_nobody_took_are_silent() {
        assert_eq!(found(&[WATCHED, ("cpu.at.xfs", 0.1, 0.1), ("cpu.at.copy", 0.0, 0.2)], "subsystem"), []);
        assert_eq!(found(&[], "subsystem"), []);
    }
}
