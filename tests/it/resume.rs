//! The real program, killed and interrupted: nothing is lost, nothing repeated, nothing left.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use assay::record::{Run, RunState, Status};

use crate::attacks::sql;
use crate::fixtures::Noise;
use crate::sandbox::{Sandbox, errors};
use crate::spoiled::{expect, unless_spoiled};
use crate::tools::available;

const JOB: &str = "[w]\nrw=randwrite\nbs=${BS}\nsize=1m\nioengine=psync\ntime_based\nruntime=150ms\n";
/// The order of `--seed 1`, which a resumed run has to keep.
const ORDER: [[u32; 2]; 4] = [[0, 1], [0, 1], [1, 0], [0, 1]];
/// Rounds that have no lead-ins, as nothing is judged.
const FEW: &str = "3";
/// Rounds that have.
const LED: &str = "4";
/// The agent ends its own within half a second of SIGTERM; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);

fn arguments(engine: &str) -> Vec<&str> {
    in_rounds(FEW, engine)
}

fn in_rounds<'a>(rounds: &'a str, engine: &'a str) -> Vec<&'a str> {
    vec!["run", "job.fio", "--vary", "BS=4k,8k", "--rounds", rounds, "--engine", engine, "--seed", "1"]
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    sandbox
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended just before; then there is nothing to signal.
    let _ = rustix::process::kill_process(pid, signal);
}

fn kill(mut child: Child) {
    send(child.id(), Signal::KILL);
    child.wait().unwrap();
}

/// Waits until the sandbox runs a process whose command line has `words`.
fn wait_for(sandbox: &Sandbox, words: &str) -> u32 {
    let begun = Instant::now();
    loop {
        if let Some((pid, _)) = sandbox.processes().into_iter().find(|(_, line)| line.contains(words)) {
            return pid;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no process with {words:?} came up");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every planned trial once, in the planned order, and what leads into each round before it.
fn is_whole(run: &Run) {
    assert_eq!(run.state, RunState::Finished);
    let places: Vec<(u32, u32, u32)> = run.trials.iter().map(|t| (t.round, t.position, t.cell)).collect();
    let rounds = run.design.stop.rounds.unwrap();
    let planned: Vec<(u32, u32, u32)> = (0..rounds)
        .flat_map(|round| (0..2).map(move |at| (round, at, ORDER[round as usize][at as usize])))
        .collect();
    assert_eq!(places, planned);
    assert_eq!(run.design.lead_in, rounds.to_string() == LED);
    let mut led: Vec<(u32, u32)> = run.lead_ins.iter().map(|lead_in| (lead_in.round, lead_in.cell)).collect();
    // One that was killed before its round's first trial ended is run again.
    led.dedup();
    let lead = |round: u32| (round, ORDER[round as usize][0]);
    assert_eq!(led, if run.design.lead_in { (0..rounds).map(lead).collect() } else { Vec::new() });
    assert!(run.lead_ins.iter().all(|lead_in| lead_in.failed.is_none() && !lead_in.values.is_empty()));
    assert!(run.trials.iter().all(|t| t.status == Status::Done && t.attempt == 0));
    assert!(
        run.trials
            .windows(2)
            .all(|pair| (pair[0].round, pair[0].position) < (pair[1].round, pair[1].position))
    );
    assert!(run.trials.iter().all(|t| !t.values.is_empty()));
}

fn only_the_store_is_left(sandbox: &Sandbox) {
    sandbox.no_process_left(PATIENCE);
    assert_eq!(sandbox.names(), BTreeSet::from(["assay.db".to_owned(), "job.fio".to_owned()]));
    assert_eq!(sandbox.succeed(&["cleanup"]), "nothing was left behind\n");
}

/// Kills runs at random moments, a resumed one perhaps again, and goes on until they end.
fn killed_at_random(rounds: &str, engine: &str, moments: u32) {
    let seed = std::env::var("ASSAY_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("{engine}: ASSAY_TEST_SEED={seed}");
    let mut chance = Noise::new(seed);
    for _ in 0..4 {
        chance.uniform();
    }
    let (mut killed, mut met) = (0, 0);
    let has_agent = |sandbox: &Sandbox| sandbox.processes().iter().any(|(_, line)| line.ends_with(" agent "));
    while killed < moments {
        let sandbox = sandbox();
        let mut stored: Option<Run> = None;
        let mut next = in_rounds(rounds, engine);
        let mut kills_left = 3;
        loop {
            let mut child = sandbox.start(&next);
            let begun = Instant::now();
            // Every other kill comes soon after a trial began.
            let soon = killed % 2 == 0;
            while soon && kills_left > 0 && child.try_wait().unwrap().is_none() && !has_agent(&sandbox) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let latest = if soon { 0.15 } else { 2.0 };
            let moment = begun.elapsed() + Duration::from_secs_f64(chance.uniform() * latest);
            while kills_left > 0 && begun.elapsed() < moment && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let in_trial = has_agent(&sandbox);
            if kills_left > 0 && killed < moments && child.try_wait().unwrap().is_none() {
                println!("  killed after {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
                kill(child);
                killed += 1;
                met += u32::from(in_trial);
                kills_left -= 1;
                if !sandbox.path().join("assay.db").exists() || sandbox.succeed(&["list"]).lines().count() < 2
                {
                    // Killed before the run was written down: nothing was begun.
                    assert!(!sandbox.names().iter().any(|name| name.starts_with("assay-")));
                    continue;
                }
                let now = sandbox.export("1");
                if let Some(before) = &stored {
                    assert_eq!(now.trials[..before.trials.len()], before.trials, "a stored trial changed");
                }
                if now.state == RunState::Finished {
                    // Killed between the last trial and the report: only putting back can be left to do.
                    is_whole(&now);
                    let again = sandbox.run(&["run", "--resume", "1"]);
                    let nothing = errors(&again).contains("run 1 is finished");
                    assert_eq!(again.status.code(), Some(if nothing { 2 } else { 0 }), "{}", errors(&again));
                    assert_eq!(sandbox.export("1").trials, now.trials);
                    break;
                }
                stored = Some(now);
                // At once: what the kill left may still be ending.
                next = vec!["run", "--resume", "1"];
                continue;
            }
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}: {}", output.status, errors(&output));
            let whole = sandbox.export("1");
            if let Some(before) = &stored {
                assert_eq!(whole.trials[..before.trials.len()], before.trials, "a stored trial changed");
            }
            is_whole(&whole);
            break;
        }
        only_the_store_is_left(&sandbox);
    }
    assert!(met >= moments / 4, "{met} of {killed} kills met a trial");
}

#[test]
fn killed_at_ten_random_moments_the_native_engine() {
    killed_at_random(LED, "native", 10);
}

#[test]
fn killed_at_ten_random_moments_the_fio_engine() {
    if available("fio") {
        killed_at_random(FEW, "fio", 10);
    }
}

/// A session may be killed when it has made its directory and does not have the run yet.
#[test]
fn what_a_session_left_without_the_run_goes_with_the_next() {
    let sandbox = sandbox();
    let child = sandbox.start(&arguments("native"));
    wait_for(&sandbox, " agent");
    kill(child);
    assay::store::Store::open(&sandbox.path().join("assay.db")).unwrap().set_owner(1, "").unwrap();
    assert!(sandbox.names().iter().any(|name| name.starts_with("assay-")));
    sandbox.succeed(&["run", "--resume", "1"]);
    is_whole(&sandbox.export("1"));
    only_the_store_is_left(&sandbox);
}

#[test]
fn a_killed_agent_is_a_failed_trial_that_is_tried_again() {
    for (engine, sign) in [("native", "agent"), ("fio", "bin/fio")] {
        if engine == "fio" && !available("fio") {
            continue;
        }
        // The agent may have ended when the signal comes.
        unless_spoiled(|| {
            let sandbox = sandbox();
            let child = sandbox.start(&arguments(engine));
            wait_for(&sandbox, sign);
            let agent = wait_for(&sandbox, " agent");
            send(agent, Signal::KILL);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", errors(&output));
            let run = sandbox.export("1");
            let failed = run.trials.iter().filter(|t| matches!(t.status, Status::Failed { .. })).count();
            expect(failed > 0, || format!("no trial was killed: {}", errors(&output)))?;
            let told = errors(&output).contains("failed, will be tried once more: the agent was killed");
            assert!(told, "{}", errors(&output));
            assert_eq!((failed, run.trials.len()), (1, 7));
            only_the_store_is_left(&sandbox);
            Ok(())
        });
    }
}

#[test]
fn a_run_goes_on_where_it_was_begun_and_with_its_engine() {
    let sandbox = sandbox();
    sandbox.write("job.fio", JOB);
    sandbox.succeed(&[
        "run", "job.fio", "--vary", "BS=4k,8k", "--rounds", "3", "--time-budget", "1ms", "--quiet",
    ]);
    let elsewhere = sandbox.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let resume = ["run", "--resume", "1", "--db", "../assay.db", "--quiet"];
    let refused = sandbox.assay(&resume).current_dir(&elsewhere).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", errors(&refused));
    let there = sandbox.path().canonicalize().unwrap();
    assert!(
        errors(&refused).contains(&format!("run 1 was begun in {}", there.display())),
        "{}",
        errors(&refused)
    );
    // Another release would measure the other rounds.
    let other = sandbox.path().join("other.db");
    std::fs::copy(sandbox.path().join("assay.db"), &other).unwrap();
    sql(&other, "UPDATE run SET engine = 'native 0.0.9'");
    let refused = sandbox.run(&["run", "--resume", "1", "--db", "other.db", "--quiet", "--trust"]);
    assert_eq!(refused.status.code(), Some(2), "{}", errors(&refused));
    assert!(errors(&refused).contains("run 1 was measured by native 0.0.9"), "{}", errors(&refused));
    let before = sandbox.export("1").trials.len();
    sandbox.succeed(&["run", "--resume", "1", "--quiet"]);
    assert_eq!(sandbox.export("1").trials.len(), before + 1, "each session ends with its first trial");
}

#[test]
fn interrupted_it_cleans_up_and_prints_verdict_and_way_on() {
    let fio = available("fio");
    let cases =
        [("native", Signal::INT), ("native", Signal::TERM), ("fio", Signal::INT), ("fio", Signal::TERM)];
    for (engine, signal) in cases {
        if engine == "fio" && !fio {
            continue;
        }
        let sandbox = sandbox();
        sandbox.write("job.fio", &JOB.replace("150ms", "2s"));
        let child = sandbox.start(&arguments(engine));
        // Two rounds are whole; the third takes four seconds more.
        let trials = || {
            let exported = sandbox.run(&["export", "1", "--format", "json"]);
            serde_json::from_slice::<Run>(&exported.stdout).map_or(0, |run| run.trials.len())
        };
        let begun = Instant::now();
        while trials() < 4 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} trials ended", trials());
            std::thread::sleep(Duration::from_millis(50));
        }
        send(child.id(), signal);
        let output = child.wait_with_output().unwrap();
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(130), "{engine} {signal:?}: {said}");
        let by = if signal == Signal::INT { "SIGINT" } else { "SIGTERM" };
        assert!(said.contains(&format!("run 1 was interrupted ({by}); everything was put back")), "{said}");
        assert!(said.contains("hint: assay run --resume 1 goes on with it"), "{said}");
        let report = String::from_utf8(output.stdout).unwrap();
        assert!(report.contains("BS=8k against BS=4k"), "{report}");
        let stored = sandbox.export("1");
        assert_eq!(stored.state, RunState::Interrupted);
        only_the_store_is_left(&sandbox);
        sandbox.succeed(&["run", "--resume", "1"]);
        let whole = sandbox.export("1");
        is_whole(&whole);
        assert_eq!(whole.trials[..stored.trials.len()], stored.trials);
    }
}

#[test]
fn ctrl_c_to_a_whole_process_group_is_one_interruption() {
    use std::os::unix::process::CommandExt;
    let sandbox = sandbox();
    let mut command = sandbox.assay(&arguments("native"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.process_group(0).spawn().unwrap();
    wait_for(&sandbox, " agent");
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", errors(&output));
    assert!(sandbox.export("1").trials.iter().all(|t| t.status == Status::Done));
    only_the_store_is_left(&sandbox);
}

#[test]
fn a_killed_process_group_leaves_no_process() {
    use std::os::unix::process::CommandExt;
    for engine in ["native", "fio"] {
        if engine == "fio" && !available("fio") {
            continue;
        }
        let sandbox = sandbox();
        let mut command = sandbox.assay(&arguments(engine));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.process_group(0).spawn().unwrap();
        wait_for(&sandbox, if engine == "fio" { "bin/fio" } else { " agent" });
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process_group(group, Signal::KILL).unwrap();
        child.wait().unwrap();
        sandbox.no_process_left(PATIENCE);
    }
}

#[test]
fn what_a_kill_left_is_listed_and_removed_by_cleanup() {
    let sandbox = sandbox();
    // A file outside the work directory that the job itself places.
    let placed = sandbox.path().join("placed.dat");
    let long = JOB.replace("runtime=150ms", "runtime=30");
    let job = format!("{long}filename={}\n", placed.display());
    sandbox.write("job.fio", &job);
    let child = sandbox.start(&arguments("native"));
    let begun = Instant::now();
    while !placed.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the job never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(child);
    sandbox.no_process_left(PATIENCE);
    let directory =
        sandbox.names().into_iter().find(|name| name.starts_with("assay-")).expect("a work directory");
    let left = [placed.clone(), sandbox.path().join(&directory)];

    let listed = sandbox.succeed(&["cleanup", "--dry-run"]);
    for path in &left {
        assert!(listed.contains(&format!("would remove {}", path.display())), "{listed}");
        assert!(path.exists(), "--dry-run removes nothing");
    }
    // The next start says so and goes on; its own files are its own.
    sandbox.write("other.fio", JOB);
    let next = ["run", "other.fio", "--vary", "BS=4k,8k", "--rounds", "1"];
    let output = sandbox.run(&next);
    assert!(output.status.success(), "{}", errors(&output));
    for path in &left {
        let line = format!("run 1 was killed and left {}; `assay cleanup` removes it", path.display());
        assert!(errors(&output).contains(&line), "{}", errors(&output));
        assert!(path.exists());
    }

    let elsewhere = tempfile::tempdir().unwrap();
    let nothing = sandbox.succeed(&["cleanup", &elsewhere.path().to_string_lossy()]);
    assert_eq!(nothing, "nothing was left behind there\n");
    assert!(left[1].exists());
    let removed = sandbox.succeed(&["cleanup", &sandbox.path().to_string_lossy()]);
    for path in &left {
        assert!(removed.contains(&format!("removed {}", path.display())), "{removed}");
        assert!(!path.exists());
    }
    assert_eq!(sandbox.export("1").state, RunState::Interrupted);
    assert_eq!(sandbox.succeed(&["cleanup"]), "nothing was left behind\n");
    assert!(!errors(&sandbox.run(&next)).contains("was killed"));
    let expected = ["assay.db", "job.fio", "other.fio"].map(str::to_owned);
    assert_eq!(sandbox.names(), BTreeSet::from(expected));
}

#[test]
fn a_run_that_another_process_executes_is_not_resumed() {
    let sandbox = sandbox();
    sandbox.write("job.fio", &JOB.replace("runtime=150ms", "runtime=2"));
    let child = sandbox.start(&arguments("native"));
    wait_for(&sandbox, " agent");
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("run 1 is being executed by process"), "{}", errors(&output));
    assert_eq!(sandbox.succeed(&["cleanup"]), "nothing was left behind\n");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    is_whole(&sandbox.export("1"));
    only_the_store_is_left(&sandbox);
}

#[test]
fn what_failed_for_good_is_made_good_when_its_cause_is_gone() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[r]\nrw=read\nbs=4k\nsize=64k\nioengine=psync\nfilename=${F}\n");
    let data = "x".repeat(64 << 10);
    for name in ["a", "b", "c"] {
        sandbox.write(name, &data);
    }
    // A directory cannot be read as a file, today or tomorrow.
    let before = "[ -e mended ] || { rm -rf b && mkdir b; }";
    let vary = format!("F={0}/a,{0}/b,{0}/c", sandbox.path().display());
    let words = ["run", "job.fio", "--vary", &vary, "--rounds", "2", "--before", before];
    let output = sandbox.run(&words);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let run = sandbox.export("1");
    assert_eq!((run.state, run.trials.len(), run.failures().count()), (RunState::Finished, 5, 1));
    let hint = "once their cause is gone, assay run --resume 1 tries again";
    assert!(errors(&output).contains(hint), "{}", errors(&output));
    // Tried once a session, and no more.
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert_eq!(sandbox.export("1").trials.len(), 6);
    std::fs::remove_dir(sandbox.path().join("b")).unwrap();
    sandbox.write("b", &data);
    sandbox.write("mended", "");
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let run = sandbox.export("1");
    // The last round has what it lacked; instead of the first there is a new one of all three.
    let rounds: Vec<u32> = run.trials[6..].iter().map(|trial| trial.round).collect();
    assert_eq!((rounds, run.failures().count()), (vec![1, 2, 2, 2], 0));
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("run 1 is finished"), "{}", errors(&output));
}
