use super::*;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn rules(steps: usize, per_round: usize) -> Rules {
    Rules { steps, alpha: 0.05, delta: 0.02, per_round, ends_rounds: 60, max_rounds: 400 }
}

/// A round of a machine without noise whose change comes with step `change`.
fn exact(asked: &[usize], change: usize, effect: f64) -> Round {
    let level = |step: usize| if step >= change { effect } else { 0.0 };
    let asked = asked.iter().map(|step| (*step, level(*step))).collect();
    Round { good: Some(0.0), bad: Some(effect), asked, bad_second: true }
}

/// A whole search; leaves its end and how many steps were asked.
fn search(
    rules: Rules,
    skipped: &[usize],
    mut round: impl FnMut(&[usize]) -> Round,
) -> (Outcome, Vec<Vec<usize>>) {
    let (mut search, mut asked) = (Bisection::new(rules), Vec::new());
    skipped.iter().for_each(|step| search.skip(*step));
    loop {
        match search.next() {
            Next::Ends => search.add(round(&[])),
            Next::Ask(steps) => {
                search.add(round(&steps));
                asked.push(steps);
            }
            Next::Stop(outcome) => return (outcome, asked),
        }
    }
}

/// Box & Muller.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[test]
fn without_noise_it_asks_about_log2_n_steps() {
    for steps in [2, 3, 7, 64, 500] {
        let most = (steps as f64).log2().ceil() as usize + 3;
        for change in [1, 2, steps / 2 + 1, steps] {
            let (outcome, asked) = search(rules(steps, 1), &[], |asked| exact(asked, change, 0.2));
            let Outcome::Found(found) = outcome else { panic!("{steps} {change}: {outcome:?}") };
            assert_eq!((found.first, found.last), (change, change), "{steps}");
            assert!(found.probability > 0.95 && asked.len() <= most, "{steps} {change}: {}", asked.len());
        }
    }
}

#[test]
fn two_a_round_take_fewer_rounds() {
    let (outcome, asked) = search(rules(500, 2), &[], |asked| exact(asked, 317, 0.2));
    assert!(matches!(outcome, Outcome::Found(found) if found.first == 317 && found.last == 317));
    assert!(asked.len() <= 8 && asked.iter().all(|asked| asked.len() == 2), "{asked:?}");
}

#[test]
fn steps_that_cannot_be_run_are_merged_with_the_next() {
    let (outcome, asked) = search(rules(16, 1), &[6, 7], |asked| exact(asked, 7, 0.2));
    assert!(asked.iter().flatten().all(|step| ![6, 7].contains(step)), "{asked:?}");
    let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
    assert_eq!((found.first, found.last), (6, 8));
    // With nothing left to run, the answer is everything.
    let all: Vec<usize> = (1..16).collect();
    let (outcome, asked) = search(rules(16, 1), &all, |asked| exact(asked, 7, 0.2));
    assert!(matches!(outcome, Outcome::Found(found) if (found.first, found.last) == (1, 16)), "{outcome:?}");
    assert!(asked.is_empty());
}

#[test]
fn equal_or_better_ends_stop_before_any_step() {
    let (outcome, asked) = search(rules(64, 1), &[], |asked| exact(asked, 65, 0.0));
    assert!(matches!(outcome, Outcome::NotWorse(_)) && asked.is_empty(), "{outcome:?}");
    let (outcome, _) = search(rules(64, 1), &[], |asked| exact(asked, 3, -0.1));
    assert!(matches!(outcome, Outcome::Better(_)), "{outcome:?}");
}

#[test]
fn noise_leaves_the_ends_unclear_when_rounds_are_few() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let few = Rules { ends_rounds: 8, ..rules(64, 1) };
    let (outcome, _) = search(few, &[], |_| Round {
        good: Some(normal(&mut rng)),
        bad: Some(0.3 + normal(&mut rng)),
        asked: Vec::new(),
        bad_second: true,
    });
    assert!(matches!(outcome, Outcome::EndsUnclear(Some(_))), "{outcome:?}");
}

#[test]
fn a_drift_of_the_machine_says_nothing() {
    // Each round is slower than all before it by more than the change makes.
    let mut drift = 0.0;
    let (outcome, asked) = search(rules(64, 1), &[], |asked| {
        drift += 0.5;
        let mut round = exact(asked, 40, 0.2);
        round.good = round.good.map(|value| value + drift);
        round.bad = round.bad.map(|value| value + drift);
        round.asked.iter_mut().for_each(|(_, value)| *value += drift);
        round
    });
    assert!(matches!(outcome, Outcome::Found(found) if found.first == 40 && found.last == 40));
    assert!(asked.len() <= 9, "{}", asked.len());
}

#[test]
fn a_stall_does_not_settle_anything() {
    // One trial of a good step is four times as slow as any other.
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut rounds = 0;
    let (outcome, _) = search(rules(64, 1), &[], |asked| {
        rounds += 1;
        let mut round = exact(asked, 50, 0.05);
        let mut noisy = |value: f64| value + 0.02 * normal(&mut rng);
        round.good = round.good.map(&mut noisy);
        round.bad = round.bad.map(&mut noisy);
        let stall = if rounds % 7 == 0 { 1.4 } else { 0.0 };
        round.asked.iter_mut().for_each(|(_, value)| *value = noisy(*value) + stall);
        round
    });
    assert!(matches!(outcome, Outcome::Found(found) if found.first == 50 && found.last == 50), "{outcome:?}");
}

#[test]
fn spent_rounds_leave_a_range() {
    let few = Rules { max_rounds: 6, ..rules(64, 1) };
    let (outcome, asked) = search(few, &[], |asked| exact(asked, 40, 0.2));
    let Outcome::Among(found) = outcome else { panic!("{outcome:?}") };
    assert_eq!(asked.len(), 2);
    assert!(found.first <= 40 && 40 <= found.last && found.last - found.first == 15, "{found:?}");
}

#[test]
fn a_round_that_was_lost_asks_the_same_again() {
    let mut search = Bisection::new(rules(64, 1));
    (0..4).for_each(|_| search.add(exact(&[], 9, 0.2)));
    let asked = search.next();
    assert_eq!(asked, Next::Ask(vec![32]));
    search.lost();
    assert_eq!(search.next(), asked);
    // A trial of the good end failed: the others still say something.
    search.add(Round { good: None, ..exact(&[32], 9, 0.2) });
    assert!(search.range().last <= 32, "{:?}", search.range());
}

proptest! {
    #[test]
    fn any_change_is_found_without_noise(steps in 2_usize..200, at in 0.0_f64..1.0, effect in 0.03_f64..2.0) {
        let change = 1 + (at * steps as f64) as usize;
        let (outcome, asked) = search(rules(steps, 1), &[], |asked| exact(asked, change, effect));
        prop_assert!(matches!(outcome, Outcome::Found(found) if (found.first, found.last) == (change, change)));
        prop_assert!(asked.len() <= (steps as f64).log2().ceil() as usize + 3, "{} of {steps}", asked.len());
    }

    #[test]
    fn probabilities_add_up(seed in 0_u64..1000) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut search = Bisection::new(rules(20, 2));
        for _ in 0..30 {
            let asked = match search.next() {
                Next::Ends => Vec::new(),
                Next::Ask(asked) => asked,
                Next::Stop(_) => break,
            };
            let mut round = exact(&asked, 7, 0.05);
            round.good = Some(0.03 * normal(&mut rng));
            round.asked.iter_mut().for_each(|(_, value)| *value += 0.03 * normal(&mut rng));
            search.add(round);
            let whole: f64 = search.likeliest().iter().map(|found| found.probability).sum();
            prop_assert!((0.0..=1.0 + 1e-9).contains(&whole));
        }
    }
}
