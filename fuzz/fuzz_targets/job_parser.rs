//! The job file parser on arbitrary text: parsed, its variables substituted, resolved, written for fio and parsed
//! again. Nothing may panic, and what was written must be readable.
#![no_main]

use std::path::Path;

use assay::workload::{JobFile, Workload};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // `include` opens files: the fuzzer must not make them up.
    if text.contains("include") {
        return;
    }
    let Ok(file) = JobFile::parse(text, "fuzz.fio", Path::new("/nonexistent")) else { return };
    let values: Vec<(String, String)> =
        file.variables().into_iter().map(|name| (name, "4k".to_owned())).collect();
    let Ok(file) = file.substitute(&values) else { return };
    if let Ok(workload) = Workload::resolve(&file)
        // A job may ask for billions of clones; laying out the few of sane files is enough here.
        && workload.jobs.len() < 64
        && workload.jobs.iter().all(|job| job.numjobs < 64)
    {
        let _ = workload.instances(Path::new("/tmp")).len();
    }
    let written = file.to_fio_text();
    assert!(
        JobFile::parse(&written, "written.fio", Path::new("/nonexistent")).is_ok(),
        "cannot read back:\n{written}"
    );
});
