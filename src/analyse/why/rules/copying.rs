//! Processor time in copying between the program's memory and the kernel's.
//!
//! Needs: `--observe cpu`. Concludes: the samples in functions that copy, a part of the kernel's processor time. Silent where they
//! differ by less than what matters, or nobody took samples inside the kernel.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, What};
use super::super::names::{COPY, CPU_AT};
use super::super::pair::Pair;
use super::rule::Rule;

pub(super) const RULE: Rule = Rule { name: "copying", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    pair.places(RULE.name, CPU_AT, |part| (part == COPY).then_some((What::Copying, Some(BudgetPart::Kernel))))
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::{Grade, What};
    use super::super::super::made_pair::{found, ns};

    const WATCHED: (&str, f64, f64) = ("cpu.samples", 400.0, 600.0);

    #[test]
    fn samples_in_copying_are_a_part_of_the_kernels_time() {
        let causes = found(&[WATCHED, ("cpu.at.copy", 0.05, 0.20), ("cpu.lost", 0.0, 0.0)], "copying");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!((&cause.what, cause.grade), (&What::Copying, Grade::AccountsFor));
        // 0.15 s of 100,000 operations, of 10 µs in all.
        assert!((ns(cause) - 1500).abs() < 20, "{cause:?}");
        assert!(cause.share.is_some_and(|share| (share - 0.15).abs() < 0.002), "{cause:?}");
        assert_eq!(cause.evidence[0].metric, "cpu.at.copy an operation");
    }

    #[test]
    fn as_much_copying_in_both_arms_explains_nothing() {
        assert_eq!(found(&[WATCHED, ("cpu.at.copy", 0.2, 0.2)], "copying"), []);
        assert_eq!(found(&[], "copying"), []);
    }
}
