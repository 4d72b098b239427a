//! A kind of guest: what its trials need, the kernel it boots, the guest that runs.
//!
//! Enters: settings and needs of trials. Leaves: a booted [`Guest`], and in replies what only the host knows of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::accelerator::{ACCELERATOR, Accelerator, Mishap};
use super::error::GuestError;
use super::guest::{Ended, Guest};
use super::initramfs;
use super::kernel_image::KernelImage;
use super::machine::{self, Machine};
use super::modules::{ModuleSet, Need};
use super::needs::Needs;
use super::room;
use super::vmlinux;
use crate::launch::{Answer, Reply};
use crate::record::{HostFacts, KeptFile};
use crate::sys::{cache, regular_file};
use crate::target::GuestSettings;

/// A kind of guest: all trials with the same settings share it, as far as they want the same persistent memory.
#[derive(Default)]
pub(super) struct Kind {
    pub(super) settings: GuestSettings,
    /// Bytes of persistent memory; `None`: no trial has wanted any so far.
    pub(super) pmem: Option<u64>,
    pub(super) needs: Needs,
    pub(super) kernel: Option<KernelImage>,
    /// Digest of the image when it was first looked at.
    image_digest: Option<String>,
    /// Digest of the modules that trials need.
    pub(super) modules_digest: Option<String>,
    /// The drivers for which they were found, when they were first looked at.
    found_for: Option<Vec<(String, Need)>>,
    /// Whether another kernel of the run has its modules from the same directory.
    pub(super) shares_modules: bool,
    initramfs: Option<PathBuf>,
    pub(super) running: Option<Guest>,
    /// How many cells are run in it.
    pub(super) cells: u32,
    /// It was learned of or booted since the last round ended.
    pub(super) of_this_round: bool,
    /// Whether the text of its kernel's patches came with one of its trials.
    has_given_patches: bool,
    /// What the last one that died in this round died of, where nothing was measured in it and the emulator may be why.
    pub(super) booted_again: Option<Mishap>,
}

/// How a guest is booted.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) accelerator: Accelerator,
    /// How many kernels are kept decompressed, where they are decompressed beforehand.
    pub(super) decompressed: Option<usize>,
    /// How long it may take.
    pub(super) patience: Duration,
}

impl Kind {
    /// One of which nothing is known but what it is asked for with.
    pub(super) fn new(settings: &GuestSettings, pmem: Option<u64>) -> Kind {
        Kind {
            settings: settings.clone(),
            pmem,
            needs: Needs::of(settings),
            of_this_round: true,
            ..Kind::default()
        }
    }

    /// Whether trials with these settings that want so much persistent memory are run in it: of several the first one.
    pub(super) fn holds(&self, settings: &GuestSettings, pmem: Option<u64>) -> bool {
        self.settings == *settings && (pmem.is_none() || self.pmem == pmem)
    }

    /// What it needs room for.
    pub(super) fn resident(&self) -> room::Resident<'_> {
        room::Resident { settings: &self.settings, needs: &self.needs, is_last: self.cells < 2 }
    }

    /// Whether its kernel is not built yet.
    pub(super) fn is_to_be_built(&self) -> bool {
        self.settings.build.source.is_some() && self.settings.facts.is_empty()
    }

    /// Whether its kernel is there, with the modules that trials need. Of one that is not built yet, the kernel is looked at whose modules
    /// are replaced.
    pub(super) fn look(&mut self) -> Result<(), GuestError> {
        if self.is_to_be_built() {
            return self.base_modules().map(drop);
        }
        self.modules()?;
        self.same_image()
    }

    /// The modules that trials need. Refuses those that have become others since the run began, as [`Kind::same_image`] does.
    fn modules(&mut self) -> Result<ModuleSet, GuestError> {
        let kernel = self.kernel()?.clone();
        let set = ModuleSet::of(&kernel, &self.needs.drivers)?;
        let (before, now) = (self.modules_digest.take(), set.digest());
        let is_known = self.found_for.as_ref() == Some(&self.needs.drivers);
        if is_known && before != now {
            self.modules_digest = before;
            return Err(GuestError::ChangedModules { place: kernel.modules_place() });
        }
        (self.modules_digest, self.found_for) = (now, Some(self.needs.drivers.clone()));
        Ok(set)
    }

    /// The modules that trials need of a kernel for which modules are to be built; `None`: a whole one is.
    pub(super) fn base_modules(&self) -> Result<Option<ModuleSet>, GuestError> {
        let Some(base) = &self.settings.kernel else { return Ok(None) };
        ModuleSet::of(&KernelImage::open(base)?, &self.needs.drivers).map(Some)
    }

    pub(super) fn kernel(&mut self) -> Result<&KernelImage, GuestError> {
        let opened = match self.kernel.take() {
            Some(kernel) => kernel,
            None => KernelImage::open(self.settings.kernel.as_deref().unwrap_or(Path::new("")))?,
        };
        Ok(self.kernel.insert(opened))
    }

    /// Whether both boot an image of the same contents with modules of the same contents.
    pub(super) fn boots_as(&self, other: &Kind) -> bool {
        // Of a kernel with modules a trial may load none.
        let modules = |kind: &Kind| {
            let has_some = kind.kernel.as_ref().is_some_and(|kernel| kernel.modules.is_some());
            has_some.then(|| kind.modules_digest.clone().unwrap_or_default()).or(kind.modules_digest.clone())
        };
        let of = |kind: &Kind| kind.image_digest.clone().zip(modules(kind));
        let rest = |kind: &Kind| {
            let mut settings = GuestSettings { kernel: None, facts: Vec::new(), ..kind.settings.clone() };
            settings.build = GuestSettings::default().build;
            settings
        };
        of(self).is_some() && of(self) == of(other) && rest(self) == rest(other)
    }

    /// Refuses an image that has become another one since the run began: its tree was built again.
    pub(super) fn same_image(&mut self) -> Result<(), GuestError> {
        let image = self.kernel()?.image.clone();
        let now = cache::digest_of(&image).map_err(GuestError::unfit("cannot read", &image))?;
        match &self.image_digest {
            Some(before) if *before != now => Err(GuestError::Changed { path: image }),
            _ => {
                self.image_digest = Some(now);
                Ok(())
            }
        }
    }

    /// Boots one; its files lie in a directory and bear a name.
    pub(super) fn boot(
        &mut self,
        how: How,
        (directory, name): (&Path, &str),
        cancelled: &AtomicBool,
    ) -> Result<Guest, Ended> {
        let kernel = self.kernel().map_err(Ended::Dead)?.clone();
        self.same_image().map_err(Ended::Dead)?;
        let initramfs = match &self.initramfs {
            // It may have been removed from the cache meanwhile.
            Some(path) if path.exists() => path.clone(),
            _ => {
                let modules = self.modules().map_err(Ended::Dead)?;
                initramfs::packed(&kernel, &self.needs, &modules).map_err(Ended::Dead)?
            }
        };
        self.initramfs = Some(initramfs.clone());
        let alone = how.decompressed.and_then(|kept| vmlinux::unpacked(&kernel.image, kept));
        let machine = Machine {
            kernel: alone.as_deref().unwrap_or(&kernel.image),
            initramfs: &initramfs,
            settings: &self.settings,
            needs: &self.needs,
            accelerator: how.accelerator,
            loud: self.booted_again == Some(Mishap::Stuck),
            directory,
            name,
        };
        Guest::boot(&machine, how.patience, cancelled)
    }

    /// Adds what only the host knows.
    pub(super) fn tell(&mut self, guest: &Guest, reply: &mut Reply) {
        let facts = &mut reply.facts;
        if *facts != HostFacts::default() {
            facts.set(ACCELERATOR, guest.accelerator.name());
            facts.set("guest.image", guest.image);
            facts.set("guest.memory", format!("{} MiB", machine::memory(&self.settings, &self.needs) >> 20));
            facts.set("now.guest.boot_s", format!("{:.1}", guest.boot_s));
            // The guest's own load says nothing of who else uses the machine under it.
            for (name, value) in crate::host::moment() {
                facts.set(name.replacen("now.", "now.host.", 1), value);
            }
            self.settings.facts.iter().for_each(|(name, value)| facts.set(name, value));
            if let Some(config) = self.kernel.as_ref().and_then(|kernel| kernel.config.as_deref()) {
                facts.set("kernel.config_digest", config);
            }
            facts.set_known("kernel.modules.digest", self.modules_digest.as_deref());
        }
        let is_built = self.settings.build.source.is_some();
        match &mut reply.answer {
            Answer::Done(outcome) => {
                // With the first of them: it is the same text for all.
                let image = self.settings.kernel.as_ref().filter(|_| is_built && !self.has_given_patches);
                reply.files.extend(image.map(|image| patches_of(image)).unwrap_or_default());
                self.has_given_patches = true;
                outcome.notes.extend(self.booted_again.map(|mishap| mishap.note().into()));
                let shared = self.kernel.as_ref().filter(|_| self.shares_modules);
                let shared =
                    shared.and_then(|kernel| Some(shared_modules(kernel.modules.as_ref()?, &kernel.image)));
                outcome.notes.extend(shared.map(Into::into));
                let doubt = self.kernel.as_ref().and_then(|kernel| kernel.doubt.clone());
                outcome.notes.extend(doubt.map(Into::into));
                outcome
                    .notes
                    .extend(guest.missing.iter().map(|message| format!("in the guest: {message}").into()));
            }
            Answer::Failed { output, .. } => {
                // What the kernel said meanwhile may be why, e.g. that memory ran out.
                let said = guest.said_since_asked();
                if !said.is_empty() {
                    output.push_str(&format!("\nlast lines of the guest's console:\n{said}"));
                }
                output.extend(guest.little_room().map(|words| format!("\n{words}")));
            }
            Answer::Unsupported { .. } => {}
        }
    }
}

/// The text of the patches with which a kernel was built, as it lies beside its image's directory.
fn patches_of(image: &Path) -> Vec<KeptFile> {
    const MOST_BYTES: u64 = 1 << 20;
    let Some(place) = image.parent().and_then(Path::parent) else { return Vec::new() };
    let entries = std::fs::read_dir(place.join("patches")).into_iter().flatten().flatten();
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok().filter(|name| KeptFile::is_name(name))?;
        Some(KeptFile { name, bytes: regular_file::read(&entry.path(), MOST_BYTES).ok()? })
    };
    let mut files: Vec<KeptFile> = entries.filter_map(file).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// What two images with the modules of one directory mean.
fn shared_modules(place: &Path, image: &Path) -> String {
    format!(
        "{} has its modules from {}, as another kernel of this run has: a change in a module is in both, or in none",
        image.display(),
        place.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_a_built_kernel_are_found_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("boot/vmlinuz-6.12");
        assert!(patches_of(&image).is_empty());
        std::fs::create_dir(place.path().join("patches")).unwrap();
        for name in ["patch-2-b.patch", "patch-1-a.patch", ".hidden"] {
            std::fs::write(place.path().join("patches").join(name), name).unwrap();
        }
        let names: Vec<String> = patches_of(&image).into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["patch-1-a.patch", "patch-2-b.patch"]);
    }

    #[test]
    fn modules_that_are_built_again_meanwhile_are_others() {
        let place = tempfile::tempdir().unwrap();
        let module = place.path().join("kernel/xfs.ko");
        std::fs::create_dir(place.path().join("kernel")).unwrap();
        std::fs::write(place.path().join("image"), "image").unwrap();
        std::fs::write(&module, "one").unwrap();
        let kernel = KernelImage {
            image: place.path().join("image"),
            release: "6.12.0+".to_owned(),
            modules: Some(place.path().to_owned()),
            config: None,
            doubt: None,
        };
        let mut kind = Kind { kernel: Some(kernel), ..Kind::default() };
        kind.needs.drivers.push(("xfs".to_owned(), Need::Must));
        assert!(kind.look().is_ok() && kind.look().is_ok());
        // Trials that need more may come.
        kind.needs.drivers.push(("f2fs".to_owned(), Need::May));
        std::fs::write(place.path().join("kernel/f2fs.ko"), "f2fs").unwrap();
        assert!(kind.look().is_ok());
        std::fs::write(&module, "two").unwrap();
        for refused in [kind.look().unwrap_err(), kind.modules().unwrap_err()] {
            let said =
                format!("the modules in {} are others now than when the run began", place.path().display());
            assert_eq!(refused.to_string(), said);
        }
        std::fs::write(&module, "one").unwrap();
        assert!(kind.look().is_ok());
    }

    #[test]
    fn a_kernel_that_is_built_again_meanwhile_is_another_one() {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("bzImage");
        std::fs::write(&image, "one").unwrap();
        let kernel = KernelImage {
            image: image.clone(),
            release: "6.12.0+".to_owned(),
            modules: None,
            config: None,
            doubt: None,
        };
        let mut kind = Kind { kernel: Some(kernel), ..Kind::new(&GuestSettings::default(), None) };
        assert!(!kind.boots_as(&kind), "nothing is known of it");
        assert!(kind.same_image().is_ok() && kind.same_image().is_ok());
        assert!(!kind.boots_as(&kind), "it has no modules that a trial may lack");
        kind.modules_digest = Some("0".to_owned());
        assert!(kind.boots_as(&kind));
        std::fs::write(&image, "two").unwrap();
        let refused = kind.same_image().unwrap_err();
        assert!(
            refused.to_string().ends_with("bzImage is another kernel now than when the run began"),
            "{refused}"
        );
        assert!(refused.hint().contains("a copy of the image"));
    }
}
