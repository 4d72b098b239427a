//! The files that a request names: read whole, and the job in them parsed once.
//!
//! Enters: a path, or a job's text. Leaves: a text, or a [`JobSource`] that needs no other file.

use std::path::{Path, PathBuf};

use super::described::JobSource;
use super::errors::{ExperimentErrors, Mistake};
use super::placed::Placed;
use super::written::WrittenJob;
use crate::sys::regular_file::{self, Unfit};
use crate::workload::JobFile;

/// A larger file is no experiment and no job.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads and parses the job so that a mistake in it is found now; its includes are written out.
///
/// # Errors
/// A job file that cannot be read, and all mistakes in it.
pub(super) fn read_job(
    job: Placed<WrittenJob>,
    origin: &str,
    base_dir: &Path,
) -> Result<JobSource, ExperimentErrors> {
    let (text, origin, base_dir) = match job.value {
        WrittenJob::Text(text) => (text, origin.to_owned(), base_dir.to_owned()),
        WrittenJob::File(path) => {
            let text = read_text(&path).map_err(|message| {
                let message = format!("job {}: {message}", path.display());
                let mistakes = vec![Mistake { place: job.place.clone(), message }];
                let hint = "job names a fio job file, relative to the experiment file".into();
                ExperimentErrors { mistakes, hint }
            })?;
            let parent = path.parent().map_or_else(PathBuf::new, Path::to_owned);
            (text, path.display().to_string(), parent)
        }
    };
    let file = JobFile::parse(&text, &origin, &base_dir)?;
    let has_includes = file.settings().any(|setting| setting.place.origin != file.origin);
    let text = if has_includes { file.to_fio_text() } else { text };
    Ok(JobSource { text, origin, base_dir })
}

/// A text file of at most 4 MiB.
///
/// # Errors
/// A clause that says why it cannot be read.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    regular_file::read_text(path, MAX_FILE_BYTES).map_err(|unfit| match unfit {
        Unfit::TooLarge { .. } => format!("{unfit}: no job and no experiment"),
        _ => unfit.to_string(),
    })
}
