//! Workers that are ready to run and have no processor.
//!
//! Needs: the budget with `/proc/PID/schedstat`. Concludes: the wait for a processor, all being busy or after a wake-up, a part of the sum. How
//! often workers lost their processor, which only busy ones take away, stands beside it where that moves the same way. Silent where it
//! differs by less than what matters, or is not counted.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, What};
use super::super::pair::Pair;
use super::rule::{Rule, agrees};
use crate::record::Unit;

pub(super) const RULE: Rule = Rule { name: "waiting_to_run", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let part = BudgetPart::WaitingToRun;
    let Some(time) = pair.part(part).filter(|time| pair.matters(time)) else { return Vec::new() };
    let mut cause = pair.part_cause(RULE.name, What::WaitingToRun, part, time);
    let lost = pair.own.each("ctx.involuntary", Unit::Count);
    cause.evidence.extend(lost.filter(|lost| agrees(&cause, lost)));
    vec![cause]
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::Grade;
    use super::super::super::made_pair::{found, ns};

    #[test]
    fn waiting_for_a_processor_is_a_part_of_the_sum() {
        let causes =
            found(&[("workers.run_wait", 0.05, 0.65), ("ctx.involuntary", 10.0, 500.0)], "waiting_to_run");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!((cause.grade, cause.evidence.len()), (Grade::AccountsFor, 1));
        assert!((ns(cause) - 6000).abs() < 60, "{cause:?}");
    }

    #[test]
    fn what_moves_the_other_way_is_no_evidence() {
        let causes =
            found(&[("workers.run_wait", 0.65, 0.05), ("ctx.involuntary", 315.0, 461.0)], "waiting_to_run");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!(cause.evidence, []);
    }

    #[test]
    fn as_much_waiting_in_both_arms_is_silent() {
        assert_eq!(found(&[], "waiting_to_run"), []);
    }
}
