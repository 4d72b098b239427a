//! Files that came with trials, written out: one directory a trial, by the number that `assay show` prints.
//!
//! Enters: a run with its files, and a directory that is not there yet. Leaves: the files. Their names are data from elsewhere: what is
//! no plain name is not written, and nothing is ever replaced.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Failure;
use crate::record::{KeptFile, Run};

/// Writes them.
///
/// # Errors
/// A directory that is there already or cannot be made; a file that cannot be written.
pub(super) fn write_out(run: &Run, directory: &Path) -> anyhow::Result<ExitCode> {
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::request(format!("{}: {error}", path.display()))
            .hint("--files names a directory that does not exist yet")
    };
    if run.trials.iter().all(|trial| trial.files.is_empty()) {
        return Err(Failure::request("no file came with a trial of this run")
            .hint("hooks leave files in $ASSAY_FILES; what they print is kept, too: `assay help jobs`; observers keep stacks, and with --keep-traces traces: `assay help observers`")
            .into());
    }
    std::fs::create_dir(directory).map_err(|error| cannot(directory, error))?;
    let mut written = 0;
    for (number, trial) in run.trials.iter().enumerate().filter(|(_, trial)| !trial.files.is_empty()) {
        let place = directory.join(number.to_string());
        std::fs::create_dir(&place).map_err(|error| cannot(&place, error))?;
        for KeptFile { name, bytes } in trial.files.iter().filter(|file| KeptFile::is_name(&file.name)) {
            let path = place.join(name);
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            file.and_then(|mut file| file.write_all(bytes)).map_err(|error| cannot(&path, error))?;
            written += 1;
        }
    }
    writeln!(crate::sys::terminal::err(), "assay: {written} files written below {}", directory.display())?;
    Ok(ExitCode::SUCCESS)
}
