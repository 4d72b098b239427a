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
    pair.places(RULE.name, CPU_AT, |part| {
        (part != COPY).then(|| (What::Subsystem(part.to_owned()), Some(BudgetPart::Kernel)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::What;
    use super::super::super::made_pair::{found, ns};

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
    fn parts_that_do_not_differ_and_samples_nobody_took_are_silent() {
        assert_eq!(found(&[WATCHED, ("cpu.at.xfs", 0.1, 0.1), ("cpu.at.copy", 0.0, 0.2)], "subsystem"), []);
        assert_eq!(found(&[], "subsystem"), []);
    }
}
