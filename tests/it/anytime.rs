//! `--anytime` and `--more` through the real program: rounds add up in one run, and only where an interval holds at
//! any number of looks.

use assay::analyse::{self, Method, Role, Verdict};
use assay::record::{Run, RunState, Status};

use crate::sandbox::{Sandbox, errors};

/// Prints 101 and 202 or so: a ratio that is never the same, and always near 2.
const COMMAND: [&str; 5] = ["--", "sh", "-c", "echo x=${n}0$(($$ % 8))", "sh"];

fn measured(sandbox: &Sandbox, options: &[&str]) -> Run {
    let fixed = ["run", "--quiet", "--vary", "n=1,2", "--metric", "x=x=([0-9]+)"];
    sandbox.succeed(&[&fixed, options, &COMMAND].concat());
    let number = sandbox.succeed(&["list"]).lines().count() - 1;
    sandbox.export(&number.to_string())
}

fn rounds(run: &Run) -> Vec<(u32, u32)> {
    run.trials.iter().map(|trial| (trial.round, trial.position)).collect()
}

fn all(rounds: u32) -> Vec<(u32, u32)> {
    (0..rounds).flat_map(|round| [(round, 0), (round, 1)]).collect()
}

/// Exit code and message of a command that must be refused.
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", errors(&output));
    errors(&output)
}

#[test]
fn more_rounds_go_on_with_the_same_run() {
    let sandbox = Sandbox::new();
    let first = measured(&sandbox, &["--anytime", "--max-rounds", "4"]);
    assert_eq!((first.state, rounds(&first)), (RunState::Finished, all(4)));
    assert!(first.design.stop.anytime);
    let verdict = |run: &Run| {
        let analysis = analyse::analyse(run, &analyse::Options::default());
        let primary = analysis.comparisons.into_iter().find(|c| c.role == Role::Primary).unwrap();
        assert_eq!(primary.method, Method::Anytime);
        primary.verdict
    };
    assert!(matches!(verdict(&first), Verdict::Undecided { .. }), "four rounds have no interval");

    // All of them are done, although seven rounds are enough for the verdict.
    let said = sandbox.succeed(&["run", "--more", "6", "1", "--quiet"]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("x +") && said.contains(", 10 rounds"), "{said}");
    let second = sandbox.export("1");
    assert_eq!((second.state, rounds(&second)), (RunState::Finished, all(10)));
    assert_eq!(second.trials[..8], first.trials);
    assert!(second.trials.iter().all(|trial| trial.status == Status::Done && trial.attempt == 0));
    assert_eq!((second.design.stop.max_rounds, second.seed), (10, first.seed));
    assert_ne!(verdict(&second), verdict(&first));

    // The longer run is this user's as the shorter one was.
    sandbox.succeed(&["run", "--more", "1", "1", "--quiet"]);
    let third = sandbox.export("1");
    assert_eq!((rounds(&third), third.design.stop.max_rounds), (all(11), 11));
    let message = refused(&sandbox, &["run", "--resume", "1"]);
    assert!(message.contains("assay run --more 10 1 adds rounds"), "{message}");
    let mut command = sandbox.assay(&["run", "--more", "1", "1"]);
    let another = command.env("ASSAY_STATE_DIR", sandbox.state_of_another_user()).output().unwrap();
    assert_eq!(another.status.code(), Some(2));
    assert!(errors(&another).contains("was not begun by you"), "{}", errors(&another));
    assert_eq!(sandbox.export("1"), third, "a refusal changes nothing");
    assert_eq!(sandbox.names().len(), 1, "the store only");
}

#[test]
fn a_run_that_has_spent_its_error_rate_is_not_extended() {
    let sandbox = Sandbox::new();
    let options = ["--max-rounds", "4"];
    measured(&sandbox, &options);
    let message = refused(&sandbox, &["run", "--more", "3", "1"]);
    assert!(message.contains("run 1 was not made with --anytime"), "{message}");
    assert!(message.contains("hint: run it anew"), "{message}");
    assert_eq!(sandbox.export("1").design.stop.max_rounds, 4);

    let none = refused(&sandbox, &["run", "--more", "0", "1"]);
    assert!(none.contains("--more is 0 rounds; write 1 to 10000"), "{none}");
    refused(&sandbox, &["run", "--more", "3", "7"]);
    refused(&sandbox, &["run", "--more", "3"]);
    refused(&sandbox, &["run", "--more", "3", "1", "--anytime"]);
    for other in [&["--rounds", "5"][..], &["--exact"], &["--aa"]] {
        refused(&sandbox, &[&["run", "--anytime"], other, &["--vary", "n=1,2"], &COMMAND].concat());
    }
}
