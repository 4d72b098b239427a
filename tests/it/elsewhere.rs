//! A job that places its files itself: facts and counters are those of that place, not of where assay was started.

use crate::sandbox::Sandbox;

#[test]
fn facts_are_of_the_place_that_the_job_names() {
    let memory = std::path::Path::new("/dev/shm");
    let Ok(place) = tempfile::tempdir_in(memory) else {
        return crate::tools::skipped("/dev/shm cannot be written to");
    };
    let sandbox = Sandbox::new();
    let file = place.path().join("file");
    sandbox.write("job.fio", &format!("[a]\nrw=write\nsize=64k\nfilename={}\n", file.display()));
    sandbox.write("own.fio", "[a]\nrw=write\nsize=64k\n");
    let kind = |job: &str, run: &str| {
        sandbox.succeed(&["run", job, "--vary", "bs=4k,8k", "--rounds", "1", "-q"]);
        let run = sandbox.export(run);
        let kinds: Vec<String> =
            run.facts.iter().filter_map(|facts| facts.get("fs.type").map(str::to_owned)).collect();
        assert!(kinds.windows(2).all(|pair| pair[0] == pair[1]), "{kinds:?}");
        kinds[0].clone()
    };
    assert_eq!(kind("job.fio", "1"), "tmpfs");
    // Where the build itself lies in memory, both are the same.
    let beside = std::fs::metadata(sandbox.path()).unwrap();
    let same = std::os::unix::fs::MetadataExt::dev(&beside)
        == std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(memory).unwrap());
    assert!(same || kind("own.fio", "2") != "tmpfs");
    assert!(!file.exists());
}
