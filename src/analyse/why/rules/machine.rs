//! Another speed of the processors: then it is the machine.
//!
//! Needs: the facts of the host; the budget; what the hypervisor took. Concludes: a setting of the processors differs undeclared between
//! the arms, or the hypervisor took surely more of the workers' time in the worse arm, and for each operation half of what is explained,
//! which both go with the difference; or user and kernel time both grew by the same share and nothing else did, which a slower processor
//! does and other things may do. Silent where settings are alike, nothing was taken and the shares differ.

use super::super::super::budget::{BudgetLine, BudgetPart};
use super::super::super::comparison::FactDifference;
use super::super::cause::{Cause, Evidence, Grade, What};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::Unit;

/// Facts that change how fast a processor is.
const SETTINGS: [&str; 10] = [
    "cpu.model", "cpu.governor", "cpu.boost", "cpu.frequency_driver", "cpu.smt", "cpu.idle_exit_us",
    "kernel.mitigations", "kernel.debugging", "clocksource", "power.supply",
];
/// Less of what is explained is not the answer.
const LEAST_STOLEN: f64 = 0.5;
/// What the hypervisor took during a trial.
const STEAL: &str = "machine.steal";
/// Shares by which user and kernel time grew are the same where they differ by less than this.
const SAME: f64 = 0.1;
/// Growth by less is not a matter of the processor.
const LEAST: f64 = 0.1;

pub(super) const RULE: Rule = Rule { name: "machine", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let settings: Vec<Cause> = pair.facts.iter().filter_map(|difference| setting(pair, difference)).collect();
    if !settings.is_empty() {
        return settings;
    }
    stolen_time(pair).or_else(|| slower_processor(pair)).into_iter().collect()
}

fn setting(pair: &Pair<'_>, difference: &FactDifference) -> Option<Cause> {
    let named = SETTINGS.contains(&difference.fact.as_str());
    let of_arm = |arm: &str| difference.values.iter().find(|(known, _)| known == arm).cloned();
    let values: Vec<(String, String)> = pair.arms.into_iter().filter_map(of_arm).collect();
    let differ = values.len() == 2 && values[0].1 != values[1].1;
    let what = || What::MachineSetting { fact: difference.fact.clone(), values };
    (named && differ).then(|| Cause::new(RULE.name, Grade::GoesWith, what(), Vec::new()))
}

/// Stolen time is not a part of the budget by itself: it is in processor time or, with `CONFIG_PARAVIRT_TIME_ACCOUNTING`, which takes it out of
/// that, in what is left as sleep; of a thread that waits to run it is in that wait.
fn stolen_time(pair: &Pair<'_>) -> Option<Cause> {
    let time = pair.own.time(STEAL)?;
    let shown = pair.own.each(STEAL, Unit::Seconds)?;
    // At an even rate, what takes longer loses more.
    let rate = pair.own.ratio(&[STEAL], &["workers.wall"], STEAL, Unit::Count)?;
    let whole = pair.budget?.total.difference_ns.estimate.abs();
    let much = time.difference_ns.estimate.abs() >= LEAST_STOLEN * whole;
    (much && pair.matters(&time) && pair.costs(&shown) && pair.costs(&rate))
        .then(|| Cause::new(RULE.name, Grade::GoesWith, What::StolenTime, vec![shown]))
}

/// All processor time grew alike, and waiting did not.
fn slower_processor(pair: &Pair<'_>) -> Option<Cause> {
    let [user, kernel] = [BudgetPart::User, BudgetPart::Kernel].map(|part| pair.part(part));
    let (user, kernel) = (user?, kernel?);
    let grew = |line: &BudgetLine| {
        let [better, worse] = match pair.worse {
            0 => [line.candidate_ns, line.baseline_ns],
            _ => [line.baseline_ns, line.candidate_ns],
        };
        worse / better - 1.0
    };
    let alike = (grew(&user) - grew(&kernel)).abs() < SAME * (1.0 + grew(&kernel));
    let both = pair.matters(&user) && pair.matters(&kernel) && grew(&user).min(grew(&kernel)) > LEAST;
    let others = [BudgetPart::WaitingToRun, BudgetPart::WaitingForStorage, BudgetPart::Asleep];
    let quiet = others.into_iter().filter_map(|part| pair.part(part)).all(|line| !pair.matters(&line));
    let evidence = |what: &str, line: &BudgetLine| Evidence {
        metric: format!("{what} CPU an operation"),
        unit: Unit::Nanoseconds,
        baseline: line.baseline_ns,
        candidate: line.candidate_ns,
        difference: Some(line.difference_ns),
    };
    let shown = vec![evidence("user", &user), evidence("kernel", &kernel)];
    (both && alike && quiet).then(|| Cause::new(RULE.name, Grade::May, What::SlowerProcessor, shown))
}

#[cfg(test)]
mod tests {
    use super::super::super::made_pair::{explained, found, run_with};
    use super::*;
    use crate::record::HostFacts;

    #[test]
    fn a_setting_that_differs_undeclared_is_named() {
        let mut run = run_with(&[]);
        let facts = |governor: &str| {
            let mut facts = HostFacts::default();
            facts.set("cpu.governor", governor);
            facts
        };
        run.facts = vec![facts("performance"), facts("powersave")];
        run.trials.iter_mut().for_each(|trial| trial.facts = Some(trial.cell));
        let why = explained(&run);
        let causes: Vec<&Cause> = why.causes.iter().filter(|cause| cause.rule == RULE.name).collect();
        let [Cause { what: What::MachineSetting { fact, values }, grade: Grade::GoesWith, .. }] = causes[..]
        else {
            panic!("{why:?}")
        };
        assert_eq!((fact.as_str(), values[1].1.as_str()), ("cpu.governor", "powersave"));
    }

    #[test]
    fn all_processor_time_that_grows_alike_may_be_the_machine() {
        let slower = [
            ("workers.wall", 0.4, 0.8),
            ("usr_cpu", 0.1, 0.2),
            ("sys_cpu", 0.3, 0.6),
            ("workers.run_wait", 0.0, 0.0),
        ];
        let causes = found(&slower, "machine");
        assert_eq!((causes.len(), causes[0].grade), (1, Grade::May), "{causes:?}");
    }

    #[test]
    fn time_that_the_hypervisor_took_is_the_machine() {
        let causes = found(&[(STEAL, 0.01, 0.9)], "machine");
        assert_eq!((causes.len(), causes[0].grade), (1, Grade::GoesWith), "{causes:?}");
        assert_eq!(causes[0].what, What::StolenTime);
        let other_way = found(&[(STEAL, 0.9, 0.01)], "machine");
        assert_eq!(other_way, [], "the better arm lost it");
        assert_eq!(found(&[(STEAL, 0.010, 0.013)], "machine"), [], "a tick or two");
        assert_eq!(
            found(&[(STEAL, 0.6, 1.2)], "machine"),
            [],
            "what takes twice as long loses twice as much"
        );
        assert_eq!(found(&[(STEAL, 0.01, 0.3)], "machine"), [], "a third of the difference");
    }

    #[test]
    fn time_that_grows_in_one_place_only_is_not_the_machine() {
        assert_eq!(found(&[], "machine"), []);
        assert_eq!(found(&[("workers.wall", 0.45, 0.65), ("usr_cpu", 0.1, 0.1)], "machine"), []);
    }
}
