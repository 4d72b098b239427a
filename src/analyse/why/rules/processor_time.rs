//! Processor time of the workers, outside the kernel and in it.
//!
//! Needs: the budget. Concludes: what named causes leave of user time and of the kernel's time, or of both together where trials have too few
//! ticks to tell them apart. Silent where that is less than what matters.

use super::super::super::budget::BudgetPart;
use super::super::cause::{Cause, What};
use super::super::pair::Pair;
use super::rule::{Rule, is_noise, rest};
use crate::record::Unit;

pub(super) const RULE: Rule = Rule { name: "processor_time", find };

fn find(pair: &Pair<'_>, causes: &[Cause]) -> Vec<Cause> {
    let of = |part: BudgetPart, what: fn(bool) -> What| {
        let (left, is_rest) = rest(part, pair.part(part)?, causes);
        let is_time = !(is_rest && is_noise(&left));
        (is_time && pair.matters(&left)).then(|| pair.part_cause(RULE.name, what(is_rest), part, left))
    };
    let user = of(BudgetPart::User, |rest| What::UserTime { rest });
    let kernel = of(BudgetPart::Kernel, |rest| What::KernelTime { rest });
    let mut both = of(BudgetPart::Processor, |rest| What::ProcessorTime { rest });
    if let Some(cause) = &mut both {
        // Ticks tell them apart only roughly in a short trial, which is why neither is a cause.
        let each = |name| pair.own.each(name, Unit::Seconds);
        cause.evidence.extend(each("usr_cpu").into_iter().chain(each("sys_cpu")));
    }
    [user, kernel, both].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::What;
    use super::super::super::made_pair::{found, ns};

    #[test]
    fn user_and_kernel_time_are_parts_of_the_sum() {
        let causes = found(&[("usr_cpu", 0.1, 0.4)], "processor_time");
        let named: Vec<(&What, i64)> =
            causes.iter().map(|cause| (&cause.what, (ns(cause) + 50) / 100)).collect();
        assert_eq!(named, [(&What::UserTime { rest: false }, 30), (&What::KernelTime { rest: false }, 20)]);
    }

    #[test]
    fn of_a_few_ticks_only_the_sum_is_named() {
        let short = [("usr_cpu", 0.01, 0.02), ("sys_cpu", 0.03, 0.2)];
        let causes = found(&short, "processor_time");
        assert_eq!((causes.len(), &causes[0].what), (1, &What::ProcessorTime { rest: false }), "{causes:?}");
        let beside: Vec<&str> = causes[0].evidence.iter().map(|shown| shown.metric.as_str()).collect();
        assert_eq!(beside, ["usr_cpu an operation", "sys_cpu an operation"]);
        let copied = [short[0], short[1], ("cpu.samples", 400.0, 600.0), ("cpu.at.copy", 0.0, 0.12)];
        let causes = found(&copied, "processor_time");
        assert_eq!((causes.len(), &causes[0].what), (1, &What::ProcessorTime { rest: true }), "{causes:?}");
        assert!((ns(&causes[0]) - 600).abs() < 20, "{causes:?}");
    }

    #[test]
    fn of_the_kernels_time_what_is_left_of_named_parts() {
        let copied = [("cpu.samples", 400.0, 600.0), ("cpu.at.copy", 0.0, 0.12)];
        let causes = found(&copied, "processor_time");
        assert_eq!((causes.len(), &causes[0].what), (1, &What::KernelTime { rest: true }), "{causes:?}");
        assert!((ns(&causes[0]) - 800).abs() < 20, "{causes:?}");
        let all = [("cpu.samples", 400.0, 600.0), ("cpu.at.copy", 0.0, 0.2)];
        assert_eq!(found(&all, "processor_time"), []);
    }

    #[test]
    fn small_changes_are_silent() {
        // δ of 2 % of 10 µs are 200 ns.
        assert_eq!(found(&[("sys_cpu", 0.3, 0.31), ("usr_cpu", 0.1, 0.115)], "processor_time"), []);
    }
}
