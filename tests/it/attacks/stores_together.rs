//! Several processes on one store: nothing fails, nothing is lost, and a run has one owner.

use std::collections::BTreeSet;
use std::process::Output;
use std::time::{Duration, Instant};

use assay::record::{RunState, Status};
use assay::store::{Store, StoreError};

use crate::sandbox::{Sandbox, errors, failure};

const ROUNDS: u32 = 4;
const EXPERIMENT: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 4\n\
                          [simulated]\ncv = 0.01\neffects = { \"bs=8k\" = 0.5 }\n\
                          [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", EXPERIMENT);
    sandbox
}

/// Starts the command so many times at once, and waits for all.
fn at_once(sandbox: &Sandbox, times: usize, arguments: &[&str]) -> Vec<Output> {
    let children: Vec<_> = (0..times).map(|_| sandbox.start(arguments)).collect();
    children.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

fn is_whole(sandbox: &Sandbox, run: usize) {
    let run = sandbox.export(&run.to_string());
    let places: BTreeSet<(u32, u32)> = run.trials.iter().map(|t| (t.round, t.position)).collect();
    assert_eq!((places.len(), run.trials.len()), (2 * ROUNDS as usize, 2 * ROUNDS as usize));
    assert!(run.trials.iter().all(|trial| trial.status == Status::Done && !trial.values.is_empty()));
    assert_eq!(run.state, RunState::Finished);
}

#[test]
fn sixteen_runs_on_one_new_store_all_complete() {
    for _ in 0..3 {
        let sandbox = sandbox();
        for output in at_once(&sandbox, 16, &["run", "s.toml", "--quiet"]) {
            assert!(output.status.success(), "{}", failure(&[], &output));
        }
        assert_eq!(sandbox.succeed(&["list"]).lines().count(), 17);
        (1..=16).for_each(|run| is_whole(&sandbox, run));
        assert_eq!(sandbox.names().len(), 2, "{:?}", sandbox.names());
    }
}

/// As a slow disk makes it: one commit holds the store for longer than the ten seconds that were waited once.
#[test]
fn a_commit_of_many_seconds_fails_nobody_else() {
    let sandbox = sandbox();
    sandbox.succeed(&["run", "s.toml", "--quiet"]);
    let slow = rusqlite::Connection::open(sandbox.path().join("assay.db")).unwrap();
    slow.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let began = Instant::now();
    let mut all: Vec<_> = (0..3).map(|_| sandbox.start(&["run", "s.toml", "--quiet"])).collect();
    all.push(sandbox.start(&["list"]));
    all.push(sandbox.start(&["report", "1"]));
    while began.elapsed() < Duration::from_secs(12) {
        std::thread::sleep(Duration::from_millis(100));
    }
    slow.execute_batch("COMMIT").unwrap();
    for child in all {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", failure(&[], &output));
    }
    (1..=4).for_each(|run| is_whole(&sandbox, run));
}

/// Run 1 as it is when its process was killed after three trials.
fn killed(sandbox: &Sandbox) {
    sandbox.succeed(&["run", "s.toml", "--quiet"]);
    let store = rusqlite::Connection::open(sandbox.path().join("assay.db")).unwrap();
    for table in ["trial", "value", "histogram", "series"] {
        store.execute_batch(&format!("DELETE FROM {table} WHERE trial >= 3")).unwrap();
    }
    store.execute_batch("UPDATE run SET state = '\"running\"', owner = '4194999 17'").unwrap();
}

#[test]
fn of_eight_resumes_at_once_one_goes_on() {
    let sandbox = sandbox();
    killed(&sandbox);
    let ended = at_once(&sandbox, 8, &["run", "--resume", "1", "--quiet"]);
    let (went_on, others): (Vec<_>, Vec<_>) = ended.iter().partition(|output| output.status.success());
    for output in &others {
        let said = errors(output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        // One that starts late finds it finished.
        let refused =
            said.contains("run 1 is being executed by process ") || said.contains("run 1 is finished");
        assert!(refused && said.contains("hint: "), "{said}");
    }
    assert_eq!(went_on.len(), 1, "{:?}", ended.iter().map(errors).collect::<Vec<_>>());
    is_whole(&sandbox, 1);
    assert_eq!(sandbox.names().len(), 2, "{:?}", sandbox.names());
}

#[test]
fn a_run_is_taken_over_from_the_expected_owner_only() {
    let sandbox = sandbox();
    killed(&sandbox);
    let path = sandbox.path().join("assay.db");
    let stores: Vec<Store> = (0..8).map(|_| Store::open_existing(&path).unwrap()).collect();
    let start = std::sync::Barrier::new(8);
    let taken: Vec<Result<(), StoreError>> = std::thread::scope(|scope| {
        let start = &start;
        let take = |(number, store): (usize, Store)| {
            scope.spawn(move || {
                start.wait();
                store.take_over(1, "4194999 17", &format!("process {number}"))
            })
        };
        let threads: Vec<_> = stores.into_iter().enumerate().map(take).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 1);
    let winner = format!("process {}", taken.iter().position(Result::is_ok).unwrap());
    for other in taken.into_iter().filter_map(Result::err) {
        assert!(matches!(&other, StoreError::TakenOver { run: 1, owner } if *owner == winner), "{other}");
    }
    let store = Store::open_existing(&path).unwrap();
    assert!(matches!(store.take_over(7, "", "me"), Err(StoreError::UnknownRun { run: 7, .. })));
    store.take_over(1, &winner, "").unwrap();
    assert_eq!(store.owner(1).unwrap(), "");
}
