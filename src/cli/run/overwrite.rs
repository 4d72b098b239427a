//! Nothing that exists is written to unless it was named with `--destroy`.

use std::path::{Path, PathBuf};

use super::prepare::Prepared;
use crate::cli::Failure;
use crate::plan::Writes;
use crate::target::may_overwrite;
use crate::workload::JobFile;

/// Looks at every path the trials will write to.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names the first one that must not be written to, and how to allow it.
pub(super) fn check(prepared: &Prepared, destroy: &[PathBuf]) -> Result<(), Failure> {
    let refuse = |path: &Path| {
        may_overwrite(path, destroy).map_err(|refusal| Failure::request(&refusal).hint(refusal.hint()))
    };
    for file in &prepared.plan.files {
        let grows = || {
            let found = std::fs::metadata(&file.path);
            found.is_ok_and(|found| found.is_file() && file.bytes.is_some_and(|bytes| found.len() < bytes))
        };
        if file.writes == Writes::Content || grows() {
            refuse(&file.path)?;
        }
    }
    if !prepared.plan.files_known {
        for (target, cell) in prepared.surroundings.targets.iter().zip(&prepared.plan.cells) {
            let text = cell.job_text.as_deref().unwrap_or_default();
            for path in named_in(text, &target.directory) {
                refuse(&path)?;
            }
        }
    }
    Ok(())
}

/// Every `filename` of a job that only fio understands, whatever the job does with it.
fn named_in(text: &str, directory: &Path) -> Vec<PathBuf> {
    let Ok(file) = JobFile::parse(text, "job", directory) else { return Vec::new() };
    let values = |option: &str| -> Vec<String> {
        file.settings()
            .filter(|setting| setting.canonical() == option)
            .flat_map(|setting| {
                setting.value.clone().unwrap_or_default().split(':').map(str::to_owned).collect::<Vec<_>>()
            })
            .collect()
    };
    let mut directories: Vec<PathBuf> = values("directory").into_iter().map(PathBuf::from).collect();
    directories.push(directory.to_owned());
    values("filename").iter().flat_map(|name| directories.iter().map(move |at| at.join(name))).collect()
}
