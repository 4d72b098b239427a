//! What a trial works on, as the agent is told.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::identity::ClaimedDevice;
use crate::catalog::LauncherKind;
use crate::experiment::{BELOW_LINK, DEVICE_LINK, Device, DeviceKind, TargetSettings};

/// Where a trial works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// A directory of assay's own, or the mount point of a filesystem that is made for the trial; it is emptied before
    /// each trial.
    pub directory: PathBuf,
    /// Drop the page cache before each trial (needs root; without it, that is said in a note).
    pub drop_caches: bool,
    /// Longest wait for an idle device, in milliseconds; `None`: two seconds, 0: no wait.
    #[serde(default)]
    pub settle_ms: Option<u64>,
    /// The device or file whose device the trial works on, where that is not the directory's.
    #[serde(default)]
    pub elsewhere: Option<PathBuf>,
    /// What is made and set for the trial; `None`: nothing.
    #[serde(default)]
    pub setup: Option<Setup>,
    /// Devices that may be overwritten, and which those were when the run was begun.
    #[serde(default)]
    pub claimed: Vec<ClaimedDevice>,
    /// Those that the job itself names: before each trial nobody may use them.
    #[serde(default)]
    pub written: Vec<PathBuf>,
}

/// What is made and set for a trial, and where that is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The directory of assay's own, with the mark in it, that holds the journal.
    pub work: PathBuf,
    /// Below `work`: what belongs to one device and filesystem; `None`: only settings are set.
    pub stack: Option<PathBuf>,
    /// What is wanted.
    pub settings: TargetSettings,
    /// Paths that may be overwritten.
    #[serde(default)]
    pub named: Vec<PathBuf>,
    /// Trials with the same text share what is made, unless it is made anew for each.
    pub epoch: String,
}

impl Setup {
    /// The disk under a device that the device mapper makes; `None`: nothing is put above it.
    #[must_use]
    pub fn below(&self) -> Option<PathBuf> {
        self.settings.dm.as_ref().and(self.stack.as_ref()).map(|stack| stack.join(BELOW_LINK))
    }
}

impl TargetSpec {
    /// What facts, counters and disturbances are about.
    #[must_use]
    pub fn watched(&self) -> PathBuf {
        self.device().or_else(|| self.elsewhere.clone()).unwrap_or_else(|| self.directory.clone())
    }

    /// Where the trial runs.
    #[must_use]
    pub fn launcher(&self) -> LauncherKind {
        self.setup.as_ref().map_or(LauncherKind::Local, |setup| setup.settings.launcher())
    }

    /// The directory of assay's own whose record says what is made.
    #[must_use]
    pub fn work(&self) -> &Path {
        self.setup.as_ref().map_or(&self.directory, |setup| &setup.work)
    }

    /// The link to the device, where the job works on that itself.
    #[must_use]
    pub fn device(&self) -> Option<PathBuf> {
        let setup = self.setup.as_ref()?;
        let stack: &Path = setup.stack.as_deref().filter(|_| setup.settings.fs.is_none())?;
        Some(stack.join(DEVICE_LINK))
    }

    /// What the job's own device is, where it is made for the run and gives what was never written without any storage.
    #[must_use]
    pub fn answers_from_nothing(&self) -> Option<DeviceKind> {
        let settings = &self.setup.as_ref()?.settings;
        let Some(Device::Made { kind, .. }) = &settings.device else { return None };
        let is_empty = settings.fs.is_none() && settings.state.is_none();
        // The others are memory all over.
        Some(*kind).filter(|kind| is_empty && !matches!(kind, DeviceKind::Pmem | DeviceKind::ScsiDebug))
    }

    /// Whether its filesystem or device was asked to compress what is written.
    #[must_use]
    pub fn compresses(&self) -> bool {
        let Some(settings) = self.setup.as_ref().map(|setup| &setup.settings) else { return false };
        let asks = |option: &String| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            matches!(name, "compress" | "compress-force" | "compress_extension")
                && !matches!(value, "no" | "none")
        };
        let by_device = match &settings.device {
            Some(Device::Made { kind: DeviceKind::Zram, options, .. }) => {
                options.iter().any(|(name, _)| name == "algorithm")
            }
            _ => false,
        };
        by_device || settings.mount.iter().any(asks)
    }

    /// The device as hooks find it: the link, or where a filesystem is on it the kernel's own name, to look at; `None`: there is none.
    #[must_use]
    pub fn device_of_hooks(&self) -> Option<PathBuf> {
        let below = || {
            let setup = self.setup.as_ref().filter(|setup| setup.settings.device.is_some())?;
            setup.stack.as_ref()?.join(DEVICE_LINK).canonicalize().ok()
        };
        self.device().or_else(below)
    }
}
