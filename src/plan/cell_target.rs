//! What a cell works on: where its directory and device will be, and what that asks of its job.
//!
//! Enters: the settings of the cell, the directory of assay's own. Leaves: a [`Place`], and the job with the options that
//! point it there. The names are fixed here, before anything is made, so that job and messages can use them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::cell_spec::CellSpec;
use crate::experiment::{DEVICE_LINK, Device, FileState, Fresh, GuestSettings, MOUNT_POINT, TargetSettings};
use crate::workload::{Hint, JobFile};

/// A complaint and what helps against it.
type Complaint = (String, Option<Hint>);

/// Where a cell works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The directory of assay's own that is made first and removed last.
    pub(super) work: PathBuf,
    /// Where files go that the job does not place; also where the engine runs.
    pub(super) directory: PathBuf,
    /// Below `work`: all that belongs to this device and filesystem. `None`: nothing is made.
    pub(super) stack: Option<PathBuf>,
    /// What the job's files are that have no name: a device or a file.
    pub(super) file: Option<PathBuf>,
}

impl Place {
    /// For settings that make something, the directory `own` of assay's below `base` holds it.
    pub(super) fn of(settings: &TargetSettings, base: &Path, own: &str) -> Place {
        let base = match &settings.device {
            Some(Device::Directory(directory)) => directory,
            _ => base,
        };
        let work = base.join(own);
        if settings.makes() {
            let stack = work.join(stack_name(settings));
            let on_device = settings.fs.is_none();
            let directory = if on_device { stack.clone() } else { stack.join(MOUNT_POINT) };
            let file = on_device.then(|| stack.join(DEVICE_LINK));
            return Place { work, directory, stack: Some(stack), file };
        }
        let file = match &settings.device {
            Some(Device::File(path)) => Some(path.clone()),
            _ => None,
        };
        Place { directory: work.clone(), work, stack: None, file }
    }

    /// A complaint where no file of the job would lie on the filesystem that is made. A guest has no other files, and those of this machine are
    /// refused there in other words.
    pub(super) fn outside(&self, settings: &TargetSettings, job: &JobFile) -> Option<Complaint> {
        let fs = settings.fs.filter(|_| self.stack.is_some() && !settings.is_elsewhere())?;
        let path = job.elsewhere_than(&self.directory)?;
        let device = settings.device.as_ref().filter(|_| !settings.is_in_memory());
        let on = device.map(|device| format!(" on {device}")).unwrap_or_default();
        let hint = "take directory=, opendir= and filename=/… out of the job: its files go onto the target; a relative name stays below it";
        let problem = format!(
            "the job's files are at {}, so that none would lie on the {} that is made{on}",
            path.display(),
            fs.name()
        );
        Some((problem, Some(hint.into())))
    }

    /// Points the job to its file or device and sets the state its files start in.
    pub(super) fn direct(&self, settings: &TargetSettings, job: &mut JobFile) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        if let Some(file) = &self.file {
            let hint = "a device without a filesystem, and a file, are the job's one file; take directory= and \
                        filename= out of the job, or give the device a filesystem: fs=xfs";
            if job.sets("directory") {
                complaints.push((
                    "the job's directory= and a device as its file do not go together".to_owned(),
                    Some(hint.into()),
                ));
            } else if !job.set_where_missing("filename", &file.to_string_lossy().replace(':', "\\:")) {
                let what = settings.device.as_ref().map(ToString::to_string).unwrap_or_default();
                complaints.push((
                    format!("every job names a file of its own, so none would use {what}"),
                    Some(hint.into()),
                ));
            }
        }
        let options: &[(&str, &str)] = match settings.state {
            None => &[],
            // A device is filled by whoever makes it.
            Some(_) if settings.makes() && settings.fs.is_none() => &[],
            Some(FileState::New) => &[("fallocate", "none"), ("overwrite", "0")],
            Some(FileState::Allocate) => &[("fallocate", "posix"), ("overwrite", "0")],
            Some(FileState::Overwrite) => &[("overwrite", "1")],
        };
        for (option, value) in options {
            let set = job.set_everywhere(option, value);
            complaints.extend(set.err().map(|errors| (errors.to_string(), Some(errors.hint()))));
        }
        complaints
    }
}

/// `xfs-on-loop-1a2b3c4d`: readable, and different for settings that make something different.
fn stack_name(settings: &TargetSettings) -> String {
    let mut hasher = DefaultHasher::new();
    settings.stack().hash(&mut hasher);
    let device = match &settings.device {
        Some(Device::Made { kind, .. }) => kind.name().to_owned(),
        Some(Device::Block(path)) => {
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        }
        _ => "memory".to_owned(),
    };
    let fs = settings.fs.map(|fs| format!("{}-on-", fs.name())).unwrap_or_default();
    format!("{fs}{device}-{:08x}", hasher.finish() as u32)
}

/// What no cell shows alone: one block device cannot hold two things that both last longer than a trial.
pub(super) fn shared_devices(cells: &[CellSpec]) -> Option<String> {
    // A guest has one disk of each kind and size.
    let named = |cell: &CellSpec| -> Vec<(String, Option<GuestSettings>)> {
        let one = |device: &Device| match device {
            Device::Block(path) => Some((path.display().to_string(), None)),
            Device::Made { kind, .. } if kind.only_in_guests() => {
                Some((device.to_string(), Some(cell.target.guest.clone())))
            }
            _ => None,
        };
        cell.target.devices().filter_map(one).collect()
    };
    let lasting = cells.iter().filter(|cell| !matches!(cell.target.fresh, None | Some(Fresh::Trial)));
    let kept: Vec<_> =
        lasting.flat_map(|cell| named(cell).into_iter().map(|device| (device, cell.stack.clone()))).collect();
    let ((clash, _), _) = kept.iter().find(|(device, stack)| {
        let others = cells.iter().filter(|cell| named(cell).contains(device));
        others.into_iter().any(|other| other.stack != *stack)
    })?;
    Some(format!(
        "{clash} cannot hold what several levels put on it beyond a trial; fresh=trial makes it anew for each"
    ))
}
