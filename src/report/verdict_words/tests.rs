//! Words of judgements.

use super::*;
use crate::analyse::Interval;

#[test]
fn what_is_less_is_held_against_a_smaller_share() {
    let (_, analysis) = crate::report::section_tests::made_up();
    let of = |estimate: f64, delta: f64| {
        let mut c = analysis.comparisons[0].clone();
        let effect = Interval { estimate, low: estimate - 0.05, high: estimate + 0.05 };
        (c.effect, c.verdict) = (Some(effect), Verdict::Slower { beyond_delta: true });
        c.delta = delta;
        claim(&c, &Names::of_factor("direct")).unwrap().replace(NBSP, " ")
    };
    assert!(of(-0.358, 0.35).ends_with("by more than 25.9 %"), "{}", of(-0.358, 0.35));
    assert!(of(0.41, 0.35).ends_with("by more than 35 %"));
    assert!(of(-0.3, 0.05).ends_with("by more than 4.76 %"));
    assert!(of(-0.3, 0.02).ends_with("by more than 2 %"), "1.96 % is printed as δ");
}

#[test]
fn more_merges_are_more_and_not_worse() {
    let of = |name: &str| {
        let mut c = crate::report::operation_times::tests::observed(name, [1.0, 2.0]);
        (c.metric.unit, c.metric.better) = (crate::units::Unit::Count, crate::units::Better::Lower);
        c.verdict = Verdict::Slower { beyond_delta: true };
        (verdict_word(&c), tone_of_row(&c))
    };
    assert_eq!(of("dev.write_merges_per_op"), ("more by > δ", None));
    assert_eq!(of("dev.in_flight"), ("more by > δ", None));
    assert_eq!(of("dev.write_ios"), ("worse by > δ", Some(Tone::Worse)));
}

#[test]
fn one_difference_in_every_round_is_no_maybe() {
    let (_, analysis) = crate::report::section_tests::made_up();
    let mut c = analysis.comparisons[0].clone();
    (c.verdict, c.caveats) = (Verdict::Slower { beyond_delta: false }, Vec::new());
    let told = |c: &Comparison| sentence(c, &Names::of_factor("c")).replace(NBSP, " ");
    assert!(told(&c).contains("maybe by less than 2 %"), "{}", told(&c));
    for (arm, value) in [(&mut c.baseline, 1.0), (&mut c.candidate, 2.0)] {
        arm.values.iter_mut().for_each(|point| point.3 = value);
    }
    assert!(told(&c).starts_with("c=off is slower than c=on: bw "), "{}", told(&c));
    assert!(told(&c).ends_with("5 rounds, the same difference in every round"), "{}", told(&c));
    assert_eq!(verdict_word(&c), "slower");
    c.caveats.push(Caveat::Steps { step: 1.0, refused: false });
    assert!(told(&c).ends_with("every round (its size is known to the metric's steps of 100 %)"));
}

#[test]
fn more_than_a_thousand_rounds_are_not_named() {
    let needed = |claim, none| needed(claim, none, "rounds", "2 %");
    assert!(needed(Some(13_749), None).starts_with("; not on this machine: "));
    assert!(needed(Some(13_749), Some(1_001)).contains("in 1000 rounds"));
    assert_eq!(needed(Some(40), Some(9_000)), "; about 40 rounds would probably show this difference");
    assert!(needed(Some(5_000), Some(90)).starts_with("; about 90 rounds"));
    assert!(needed(Some(40), Some(619)).ends_with(" (--rounds 619)"), "--max-rounds refuses more than 120");
    assert!(needed(None, None).starts_with("; not on this machine: "));
}
