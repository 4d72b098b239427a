//! Data that was not named with `--destroy` survives every way a job can point at it.

use crate::sandbox::{Sandbox, errors};
use crate::tools::available;

/// Runs `job` with `engine` in a sandbox that holds `precious`; it must be refused before anything is touched.
fn refused(name: &str, engine: &str, job: &str, word: &str) {
    let sandbox = Sandbox::new();
    let file = sandbox.path().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "precious").unwrap();
    sandbox.write("job.fio", &job.replace("HERE", &sandbox.path().to_string_lossy()));
    let output =
        sandbox.run(&["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1", "-q", "--engine", engine]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{job}\n{said}");
    assert!(said.contains(word) && said.contains("hint: "), "{job}\n{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious", "{job}");
    assert!(!sandbox.path().join("assay.db").exists(), "{job}: nothing was touched");
}

const EXISTS: &str = "exists, and the job would overwrite it";

#[test]
fn a_name_that_climbs_out_of_the_work_directory_is_refused() {
    for rw in ["write", "read"] {
        let job = format!("[a]\nfilename=../precious\nrw={rw}\nsize=64k\n");
        refused("precious", "native", &job, "goes up with '..'");
        for elsewhere in [vec!["-d", "place"], vec!["--vary", "target.directory=place"]] {
            let sandbox = Sandbox::new();
            std::fs::create_dir(sandbox.path().join("place")).unwrap();
            let precious = sandbox.write("place/precious", "precious");
            sandbox.write("job.fio", &job);
            let mut arguments = vec!["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1"];
            arguments.extend(&elsewhere);
            let output = sandbox.run(&arguments);
            assert_eq!(output.status.code(), Some(2), "{elsewhere:?} {}", errors(&output));
            assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
        }
    }
}

#[test]
fn a_namesake_beside_the_work_directory_is_not_touched() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("place")).unwrap();
    sandbox.write("job.fio", "[a]\nrw=write\nsize=64k\n");
    // It comes while the run goes on.
    let copy = "cp job.fio place/a.0.0";
    sandbox
        .succeed(&["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1", "-d", "place", "--after", copy]);
    let file = sandbox.path().join("place/a.0.0");
    assert!(file.exists(), "only what the run made is removed");
    sandbox.succeed(&["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1", "-d", "place"]);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("[a]"));
}

#[test]
fn jobs_that_only_fio_understands_are_looked_through() {
    if !available("fio") {
        return;
    }
    let only_fio = "rw=write\nsize=64k\nwrite_bw_log=log\n";
    for (name, settings, word) in [
        ("x:y", "filename=HERE/x\\:y", EXISTS),
        ("data/a.0.0", "directory=HERE/data", EXISTS),
        ("data/sub/x", "directory=HERE/data\nfilename=/sub/x", EXISTS),
        ("data/f_3", "directory=HERE/data\nfilename_format=f_$filenum", EXISTS),
        ("data/sub/x", "opendir=HERE/data", EXISTS),
        ("logs/run_bw.1.log", "write_lat_log=HERE/logs/run", EXISTS),
        ("precious", "filename=../precious", "goes up with '..'"),
        ("trace", "read_iolog=HERE/trace", "cannot know in advance"),
    ] {
        refused(name, "fio", &format!("[a]\n{settings}\n{only_fio}"), word);
    }
}

#[test]
fn a_file_that_came_between_two_sessions_is_not_overwritten() {
    let sandbox = Sandbox::new();
    let data = sandbox.path().join("data");
    sandbox.write("job.fio", &format!("[a]\nfilename={}\nrw=write\nsize=64k\n", data.display()));
    let begin =
        ["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "2", "-q", "--after", "kill $PPID; sleep 9"];
    let output = sandbox.run(&begin);
    assert!(!output.status.success(), "{}", errors(&output));
    assert!(!data.exists(), "what the run made is removed");
    std::fs::write(&data, "precious").unwrap();
    let output = sandbox.run(&["run", "--resume", "1", "-q"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains(EXISTS), "{}", errors(&output));
    assert_eq!(std::fs::read_to_string(&data).unwrap(), "precious");
}

#[test]
fn an_iolog_grows_and_nothing_else_of_its_name_is_touched() {
    let iolog = "[a]\nrw=write\nsize=64k\nwrite_iolog=HERE/log\n";
    refused("log", "native", iolog, EXISTS);
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", &iolog.replace("HERE", &sandbox.path().to_string_lossy()));
    let run = ["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1", "-q"];
    for trials in [2, 4] {
        sandbox.succeed(&run);
        let log = std::fs::read_to_string(sandbox.path().join("log")).unwrap();
        assert_eq!(log.lines().filter(|line| *line == "fio version 2 iolog").count(), trials, "{log}");
        assert_eq!(log.lines().filter(|line| line.contains(" write ")).count(), trials * 12, "{log}");
    }
}
