//! Where the time of an operation goes: what every engine counts of its workers, and what a report says of it.

use assay::record::{Run, Trial};

use crate::sandbox::Sandbox;
use crate::spoiled::{expect, unless_spoiled};

const CLONES: &str =
    "[a]\nrw=randwrite\nbs=4k\nsize=256k\nnumjobs=2\ntime_based\nruntime=200ms\ngroup_reporting\n";

fn value(run: &Run, trial: &Trial, name: &str) -> Option<f64> {
    let metric = run.metrics.iter().position(|metric| metric.job.is_empty() && metric.name == name)?;
    trial.values.iter().find(|(known, _)| *known as usize == metric).map(|(_, value)| *value)
}

fn needed(run: &Run, trial: &Trial, name: &str) -> f64 {
    value(run, trial, name).unwrap_or_else(|| panic!("no {name}: {:?}", run.metrics))
}

#[test]
fn the_native_engine_and_fio_count_the_time_of_all_workers() {
    unless_spoiled(|| {
        let sandbox = Sandbox::new();
        sandbox.write("job.fio", CLONES);
        sandbox.succeed(&["run", "-q", "job.fio", "--vary", "engine=native,fio", "--rounds", "1"]);
        let run = sandbox.export("1");
        for trial in &run.trials {
            let wall = needed(&run, trial, "workers.wall");
            let runtime = needed(&run, trial, "runtime");
            // Two workers; fio counts in milliseconds.
            expect(wall > 1.8 * 0.2 && wall < 2.05 * runtime, || format!("{wall} {runtime}"))?;
            let ran = needed(&run, trial, "usr_cpu") + needed(&run, trial, "sys_cpu");
            let waited = needed(&run, trial, "workers.run_wait");
            assert!(ran > 0.0 && waited >= 0.0, "{ran} {waited}");
            if trial.cell == 0 {
                // A worker may lose its processor between the readings of the clock and of the counts.
                expect(ran + waited < wall + 0.02, || format!("{ran} {waited} {wall}"))?;
            }
        }
        Ok(())
    });
}

#[test]
fn processes_of_a_command_are_workers_unless_they_wait() {
    unless_spoiled(|| {
        let sandbox = Sandbox::new();
        let script = "sleep 2 & sleep 2 & wait";
        sandbox.succeed(&["run", "-q", "--aa", "--rounds", "1", "--", "sh", "-c", script]);
        let run = sandbox.export("1");
        for trial in &run.trials {
            let (wall, runtime) = (needed(&run, trial, "workers.wall"), needed(&run, trial, "runtime"));
            expect(wall > 1.5 * 2.0 && wall < 2.1 * runtime, || format!("{wall} {runtime}"))?;
        }
        Ok(())
    });
    // Too short to be followed: one worker, which lives as long as the command.
    unless_spoiled(|| {
        let sandbox = Sandbox::new();
        let script = "i=0; while [ $i -lt 60 ]; do dd if=/dev/zero of=/dev/null bs=256k count=40 2>/dev/null; i=$((i+1)); done";
        sandbox.succeed(&["run", "-q", "--aa", "--rounds", "1", "--", "sh", "-c", script]);
        let run = sandbox.export("1");
        for trial in &run.trials {
            let (wall, runtime) = (needed(&run, trial, "workers.wall"), needed(&run, trial, "runtime"));
            expect(wall <= runtime * 1.1, || format!("{wall} {runtime}"))?;
        }
        Ok(())
    });
}

#[test]
fn a_report_says_in_eight_lines_where_the_time_went() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", CLONES);
    sandbox.succeed(&["run", "-q", "job.fio", "--vary", "bs=4k,64k", "--rounds", "5"]);
    let text = sandbox.succeed(&["report", "1", "--verbose"]);
    let from = text
        .find("workers' time an operation, bs=4k → bs=64k (5 rounds)")
        .unwrap_or_else(|| panic!("{text}"));
    let budget = text[from..].split("\n\n").next().unwrap();
    assert!(budget.contains("all of it: ") && budget.contains("unexplained: "), "{budget}");
    assert!(budget.lines().count() <= 8, "{budget}");
    let short = sandbox.succeed(&["report", "1"]);
    assert!(!short.contains("all of it: "), "{short}");
    let json = sandbox.succeed(&["report", "1", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let budgets = report["analysis"]["budgets"].as_array().unwrap();
    assert_eq!(budgets.len(), 1);
    let estimate = |line: &serde_json::Value| line["difference_ns"]["estimate"].as_f64().unwrap();
    let parts: f64 = budgets[0]["parts"].as_array().unwrap().iter().map(|part| estimate(&part[1])).sum();
    let unexplained = budgets[0]["unexplained_ns"]["estimate"].as_f64().unwrap();
    let total = estimate(&budgets[0]["total"]);
    assert!((parts + unexplained - total).abs() < 1.0, "{parts} + {unexplained} is not {total}");
    let listed = |words: &[&str]| sandbox.succeed(words).contains("workers.run_wait");
    assert!(
        listed(&["metrics", "1"]) && listed(&["metrics", "job.fio"]) && json.contains("workers.run_wait")
    );
}
