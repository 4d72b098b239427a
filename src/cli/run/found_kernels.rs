//! Kernels and sources that an experiment does not name by their file: `newest`, and a release.
//!
//! Enters: an experiment. Leaves: the same one with the files that were found. Where such files lie, `launch` knows.

use std::path::Path;

use crate::cli::Failure;
use crate::cli::recipes::{SOURCE_HINT, no_kernel};
use crate::experiment::Experiment;
use crate::launch::{NoSource, known_releases, newest_kernel, newest_kernel_of, newest_source};
use crate::workload::nearest;

/// Finds the source and the kernel that an experiment calls `newest`, and kernels that it names by their release.
///
/// # Errors
/// A [`Failure`] with exit code 2: there is none, or none that may be built.
pub(super) fn find(experiment: &mut Experiment) -> Result<(), Failure> {
    if experiment.wants_newest_source() {
        let found = newest_source().map_err(|none| {
            let hint = match &none {
                NoSource::Absent => SOURCE_HINT.to_owned(),
                NoSource::PassedOver { path, .. } => format!("--source {} names it", path.display()),
            };
            Failure::request(none.to_string()).hint(hint)
        })?;
        experiment.newest_source(&found);
    }
    if experiment.wants_newest_kernel() {
        // Modules are of one version only: a newer kernel in /boot is of another source.
        let of_source = experiment.target.guest.build.source.as_deref().and_then(newest_kernel_of);
        let found = of_source.or_else(newest_kernel).ok_or_else(no_kernel)?;
        experiment.newest_kernel(&found);
    }
    let releases = experiment.kernel_releases();
    if releases.is_empty() {
        return Ok(());
    }
    let known = known_releases(Path::new("."));
    for release in releases {
        let Some((_, path)) = known.iter().find(|(name, _)| *name == release) else {
            let near = nearest(&release, known.iter().map(|(name, _)| name.as_str()), 1);
            let hint = near.first().map_or_else(
                || "`assay doctor` lists the kernels that are found; a file is named by its path".to_owned(),
                |near| format!("did you mean kernel={near}? `assay doctor` lists all that are found"),
            );
            let reason =
                format!("kernel={release}: there is no such file, and no kernel of this release is found");
            return Err(Failure::request(reason).hint(hint));
        };
        experiment.kernel_of_release(&release, path);
    }
    Ok(())
}
