//! The experiment file reader on arbitrary text, with and without a `--vary` from its last line. Nothing may panic.
#![no_main]

use std::path::Path;

use assay::experiment::{CommandLine, Experiment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let base = Path::new("/nonexistent");
    // Absolute names and includes open files: the fuzzer must not make them up.
    if text.contains("include") || text.contains("/") || text.contains("\\u") || text.contains("\\U") {
        return;
    }
    let _ = Experiment::from_toml(text, "fuzz.toml", base, &CommandLine::default());
    if let Some(last) = text.lines().last() {
        let line = CommandLine {
            vary: vec![last.to_owned()],
            delta: Some(last.to_owned()),
            time_budget: Some(last.to_owned()),
            metrics: vec![last.to_owned()],
            ..CommandLine::default()
        };
        let _ = Experiment::from_toml(text, "fuzz.toml", base, &line);
        let _ = Experiment::from_command(&["true".to_owned()], &line);
    }
});
