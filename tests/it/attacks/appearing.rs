//! A file that was not there when the run was announced and appears later is somebody's: it is neither written to nor removed.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::sandbox::{Sandbox, errors};

const JOB: &str = "[w]\nrw=write\nbs=${BS}\nsize=64k\nioengine=psync\n";

/// A job on files beside its work directory.
fn on(sandbox: &Sandbox, options: &str, name: &str) -> String {
    let path = sandbox.path().join(name);
    sandbox.write("job.fio", &format!("{JOB}{options}\nfilename={}\n", path.display()));
    path.to_string_lossy().into_owned()
}

fn words<'w>(engine: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    [&["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "2", "--engine", engine][..], more].concat()
}

fn engines() -> Vec<&'static str> {
    if crate::tools::available("fio") { vec!["native", "fio"] } else { vec!["native"] }
}

#[test]
fn what_a_hook_puts_in_the_way_is_not_overwritten() {
    for engine in engines() {
        for (make, of) in [
            ("printf precious > placed", "a file"),
            ("ln -s victim placed", "a link"),
            ("ln -f victim placed", "a hard link"),
            ("mkfifo placed", "a FIFO"),
        ] {
            let sandbox = Sandbox::new();
            let victim = sandbox.write("victim", "precious");
            let placed = on(&sandbox, "", "placed");
            // The hook runs before the second trial too, after the first one's file was looked at.
            let hook = format!("test -e once && {{ rm -f placed; {make}; }}; touch once");
            for when in ["--before", "--after"] {
                let _ = std::fs::remove_file(sandbox.path().join("once"));
                let _ = std::fs::remove_file(&placed);
                let output = sandbox.run(&words(engine, &[when, &hook]));
                let said = errors(&output);
                assert_eq!(output.status.code(), Some(1), "{engine}, {of}, {when}: {said}");
                assert!(
                    said.contains("appeared since the run was announced"),
                    "{engine}, {of}, {when}: {said}"
                );
                assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "{engine}, {of}, {when}");
                assert!(std::fs::symlink_metadata(&placed).is_ok(), "{engine}, {of}, {when}: it was removed");
                assert!(said.contains("it stays"), "{engine}, {of}, {when}: {said}");
            }
        }
    }
}

/// The store is locked while it starts, and the file comes meanwhile; an empty one is no more assay's than a full one.
#[test]
fn what_came_between_the_look_and_the_start_is_in_the_way() {
    for content in ["precious", ""] {
        let sandbox = Sandbox::new();
        sandbox.succeed(&["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--", "true", "${n}"]);
        let placed = on(&sandbox, "", "placed");
        let store = rusqlite::Connection::open(sandbox.path().join("assay.db")).unwrap();
        store.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let child = sandbox.start(&words("native", &[]));
        // It has looked when it asks for the store, and waits there.
        let opened = || {
            let files = std::fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
            files
                .filter_map(|file| std::fs::read_link(file.path()).ok())
                .any(|file| file.ends_with("assay.db"))
        };
        let begun = Instant::now();
        while !opened() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the store is not opened");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(2));
        std::fs::write(&placed, content).unwrap();
        store.execute_batch("COMMIT").unwrap();
        let output = child.wait_with_output().unwrap();
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("appeared since the run was announced"), "{said}");
        assert_eq!(std::fs::read_to_string(&placed).unwrap(), content, "{said}");
        assert_eq!(sandbox.succeed(&["cleanup"]), "nothing was left behind\n");
    }
}

#[test]
fn a_job_that_removes_its_file_finds_it_again_and_leaves_none() {
    for engine in engines() {
        for options in ["unlink=1", "unlink=0", "create_on_open=1", "overwrite=1"] {
            let sandbox = Sandbox::new();
            let placed = on(&sandbox, options, "placed");
            let output = sandbox.run(&words(engine, &[]));
            assert!(output.status.success(), "{engine}, {options}: {}", errors(&output));
            assert!(!Path::new(&placed).exists(), "{engine}, {options}");
            assert_eq!(sandbox.export("1").trials.len(), 4);
        }
    }
}

#[test]
fn a_killed_runs_file_is_removed_and_another_in_its_place_stays() {
    for exchanged in [false, true] {
        let sandbox = Sandbox::new();
        let placed = on(&sandbox, "time_based\nruntime=60", "placed");
        let mut child = sandbox.start(&words("native", &[]));
        let begun = Instant::now();
        while !std::fs::metadata(&placed).is_ok_and(|found| found.len() > 0) {
            assert!(begun.elapsed() < Duration::from_secs(20), "the job never began");
            std::thread::sleep(Duration::from_millis(5));
        }
        crate::target_bench::kill_all(&sandbox);
        child.wait().unwrap();
        sandbox.no_process_left(Duration::from_secs(30));
        if exchanged {
            std::fs::rename(&placed, sandbox.path().join("kept")).unwrap();
            std::fs::write(&placed, "precious").unwrap();
        }
        let output = sandbox.run(&["cleanup"]);
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(Path::new(&placed).exists(), exchanged);
        if exchanged {
            assert_eq!(std::fs::read_to_string(&placed).unwrap(), "precious");
            assert!(errors(&output).contains("is another file now"), "{}", errors(&output));
        }
    }
}
