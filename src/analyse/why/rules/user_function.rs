//! Processor time in a function of the program.
//!
//! Needs: `--observe cpu`. Concludes: the samples whose innermost function it was, a part of the user time. Silent about functions that the
//! program's file has no names of, which are all one, and where they differ by less than what matters.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, What};
use super::super::names::USER_AT;
use super::super::pair::Pair;
use super::rule::Rule;

pub(super) const RULE: Rule = Rule { name: "user_function", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    pair.places(RULE.name, USER_AT, |function| {
        // `[fio]`: somewhere in it, which the user time says.
        let named = !function.starts_with('[');
        named.then(|| (What::UserFunction(function.to_owned()), Some(BudgetPart::User)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::What;
    use super::super::super::made_pair::{found, ns};
    use crate::analyse::BudgetPart;

    const WATCHED: (&str, f64, f64) = ("cpu.samples", 400.0, 600.0);
    /// Twice as much user time.
    const MORE: (&str, f64, f64) = ("usr_cpu", 0.1, 0.4);

    #[test]
    fn the_function_that_takes_longer_is_named_the_rest_is_left() {
        let watched = [WATCHED, MORE, ("cpu.user_at.crc32c", 0.05, 0.25), ("cpu.user_at.memcmp", 0.02, 0.02)];
        let causes = found(&watched, "user_function");
        let [crc] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!(crc.what, What::UserFunction("crc32c".to_owned()));
        assert!((ns(crc) - 2000).abs() < 20, "{causes:?}");
        let left = found(&watched, "processor_time");
        let of_user = left.iter().find(|cause| cause.what == What::UserTime { rest: true });
        assert!(of_user.is_some_and(|cause| (ns(cause) - 1000).abs() < 20), "{left:?}");
    }

    #[test]
    fn in_a_short_trial_it_is_a_part_of_all_processor_time() {
        let short = [("usr_cpu", 0.01, 0.2), ("sys_cpu", 0.01, 0.01), WATCHED];
        let watched = [short[0], short[1], short[2], ("cpu.user_at.crc32c", 0.01, 0.15)];
        let causes = found(&watched, "user_function");
        assert_eq!(causes.first().and_then(|cause| cause.part), Some(BudgetPart::Processor), "{causes:?}");
    }

    #[test]
    fn what_does_not_differ_and_what_has_no_name_is_silent() {
        assert_eq!(found(&[WATCHED, MORE, ("cpu.user_at.crc32c", 0.1, 0.1)], "user_function"), []);
        assert_eq!(found(&[WATCHED, MORE, ("cpu.user_at.[fio]", 0.1, 0.4)], "user_function"), []);
        assert_eq!(found(&[MORE], "user_function"), []);
    }
}
