//! Why there is no guest.

use std::path::{Path, PathBuf};

use crate::sys::cache::CacheError;
use crate::sys::regular_file::Unfit;

/// What kept a guest from being made or from answering.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A file could not be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A program that is needed is missing.
    #[error("there is no {program}, which is needed to {purpose}")]
    NoProgram {
        /// Its name.
        program: String,
        /// What for.
        purpose: String,
        /// What to install.
        hint: String,
    },
    /// The file is no kernel, or no package of one.
    #[error("{} is {found}", path.display())]
    NoKernel {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The kernel neither has a driver nor is there a module of it.
    #[error("kernel {release} has no {module}: it is neither built in nor in {}", place.display())]
    NoModule {
        /// The driver.
        module: String,
        /// Of which kernel.
        release: String,
        /// Where modules were looked for.
        place: PathBuf,
    },
    /// A module lies in a kernel's tree, and no list of what its build has made has it.
    #[error("{} may be of an earlier build: modules.order of {} is missing or cut", file.display(), tree.display())]
    NotListed {
        /// The module.
        file: PathBuf,
        /// The tree.
        tree: PathBuf,
    },
    /// A package of an image alone.
    #[error("{} has no modules, and there is no linux-modules-{release}_*.deb beside it", package.display())]
    NoModules {
        /// The package.
        package: PathBuf,
        /// Of which kernel.
        release: String,
    },
    /// Earlier trials of the run were not emulated, and these would be.
    #[error("the earlier trials ran under KVM, and here guests are {now}")]
    NoKvm {
        /// What runs guests now, with the reason.
        now: String,
    },
    /// The image has become another one.
    #[error("{} is another kernel now than when the run began", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The modules that trials load have become others.
    #[error("the modules in {} are others now than when the run began", place.display())]
    ChangedModules {
        /// Their directory.
        place: PathBuf,
    },
    /// Two kernels differ in nothing that is loaded.
    #[error("{} and {} boot alike: their images and the modules that the trials load have the same contents", one.display(), other.display())]
    Alike {
        /// The one.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// What is asked for does not fit.
    #[error("{what}")]
    NoRoom {
        /// What does not fit where.
        what: String,
        /// What helps.
        hint: String,
    },
    /// A disk is to be used past the host's page cache, and that cannot be.
    #[error("{} cannot be opened for direct I/O, which cache={cache} asks for: its filesystem has no O_DIRECT", path.display())]
    NoDirect {
        /// The disk's file.
        path: PathBuf,
        /// How it was to be used.
        cache: String,
    },
    /// A command names what is not copied into guests.
    #[error("{what}")]
    NotCopied {
        /// What, and why.
        what: String,
    },
    /// A program failed.
    #[error("{command} failed: {output}")]
    Failed {
        /// The command.
        command: String,
        /// What it said.
        output: String,
    },
    /// The machine was started and did not come up.
    #[error("the guest {what}")]
    Dead {
        /// What became of it.
        what: String,
        /// Whether it had taken requests.
        came_up: bool,
        /// Whether it was running without anything on its console.
        mute: bool,
        /// Whether it was still running when it had not come up in time.
        late: bool,
        /// The signal that the emulator itself died of; none where it was ended.
        crashed: Option<i32>,
        /// The emulator's words and the last lines of the console.
        console: String,
    },
}

/// How to have a copy of an image that only its owner may read.
#[must_use]
pub fn readable_copy(image: &Path) -> String {
    format!(
        "mkdir -p ~/.cache/assay/kernels && sudo install -o $USER -m 644 {} ~/.cache/assay/kernels/",
        image.display()
    )
}

impl From<CacheError> for GuestError {
    fn from(CacheError { what, path, source }: CacheError) -> GuestError {
        GuestError::Io { what, path, source }
    }
}

impl GuestError {
    pub(super) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> GuestError {
        let path = path.into();
        move |source| GuestError::Io { what, path, source }
    }

    /// The same of a file that somebody named.
    pub(super) fn unfit(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(Unfit) -> GuestError {
        let io = GuestError::io(what, path);
        move |unfit| io(unfit.into())
    }

    /// Whether the kernel ran into a breakpoint that it knew nothing of. It puts them into its text while it changes that
    /// (`text_poke_bp`, arch/x86/kernel/alternative.c) and takes them out again. The processors of an emulator are threads of their
    /// own: seen under qemu's tcg (7.2), where one executed a breakpoint that was gone by the time the kernel looked for it.
    pub(super) fn ran_into_a_breakpoint(&self) -> bool {
        matches!(self, GuestError::Dead { console, .. } if console.contains("int3: 0000 [#"))
    }

    /// Whether the kernel found no timer that ticks (`check_timer`, arch/x86/kernel/apic/io_apic.c, and its like). It counts ticks
    /// over a short time of its own clock, in which an interpreter on a busy host may deliver none.
    pub(super) fn missed_its_timer(&self) -> bool {
        let of_timer = |line: &str| line.contains("Kernel panic - not syncing") && line.contains("timer");
        matches!(self, GuestError::Dead { console, came_up: false, .. } if console.lines().any(of_timer))
    }

    /// The same error of a guest that was still running when it had not come up in time.
    pub(super) fn late(self) -> GuestError {
        match self {
            GuestError::Dead { what, came_up, mute, crashed, console, .. } => {
                GuestError::Dead { what, came_up, mute, late: true, crashed, console }
            }
            other => other,
        }
    }

    /// Whether the guest ran without coming up. Seen under qemu's tcg (7.2) in one of some 400 boots: the same kernel came up in
    /// seconds before and after, and this time a processor of it span for as long as it was waited for.
    pub(super) fn got_stuck(&self) -> bool {
        matches!(self, GuestError::Dead { late: true, .. })
    }

    /// Whether the emulator crashed. Seen with qemu's tcg (7.2), which died of SIGSEGV in one of some thousand boots.
    pub(super) fn lost_its_emulator(&self) -> bool {
        matches!(self, GuestError::Dead { crashed: Some(_), .. })
    }

    /// What helps; may be empty.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            GuestError::NoProgram { hint, .. } | GuestError::NoRoom { hint, .. } => hint.clone(),
            GuestError::NotCopied { .. } => {
                "name single files, which are copied, or make them in the guest: --before 'seq 1000 > /tmp/data'".to_owned()
            }
            GuestError::NoDirect { .. } => {
                "cache=writeback (virtio_blk:SIZE:cache=writeback) goes through the page cache; --directory names another place".to_owned()
            }
            GuestError::NoKernel { .. } => {
                "a level of kernel is a vmlinuz or bzImage, or a linux-image .deb with one in it".to_owned()
            }
            GuestError::Alike { .. } => {
                "take a device or filesystem that loads what was changed (-t nvme:1g), or name the module: -t modules=NAME".to_owned()
            }
            GuestError::Changed { .. } => {
                "measure a copy of the image, which no later make replaces, and run it anew".to_owned()
            }
            GuestError::ChangedModules { .. } => {
                "bring the modules of that time back, or run it anew on a copy that nobody builds or installs into".to_owned()
            }
            GuestError::NoModule { .. } => {
                "build it in or install the modules: DIR/lib/modules/RELEASE is looked for beside the image, then /lib/modules"
                    .to_owned()
            }
            GuestError::NotListed { .. } => "make modules writes it".to_owned(),
            GuestError::NoKvm { .. } => {
                "make /dev/kvm work again, or run it anew: emulated trials are not compared with those".to_owned()
            }
            GuestError::NoModules { release, .. } => {
                format!("put it there: apt-get download linux-modules-{release}")
            }
            GuestError::Dead { .. } if self.ran_into_a_breakpoint() => {
                "under qemu's tcg several processors may be why: cpus=1 shows whether it is the kernel".to_owned()
            }
            GuestError::Dead { .. } if self.missed_its_timer() => {
                "under qemu's tcg a busy host may be why; kernel_args=no_timer_check leaves the check out".to_owned()
            }
            GuestError::Dead { came_up: false, .. } => {
                "kernel_args=loglevel=7 makes its console tell more; the kernel needs virtio_pci and virtio_console"
                    .to_owned()
            }
            GuestError::Io { path, source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                readable_copy(path)
            }
            GuestError::Io { .. } | GuestError::Failed { .. } | GuestError::Dead { .. } => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(console: &str) -> GuestError {
        GuestError::Dead {
            what: "died".to_owned(),
            came_up: false,
            mute: false,
            late: false,
            crashed: None,
            console: console.to_owned(),
        }
    }

    #[test]
    fn a_breakpoint_is_told_from_what_else_a_kernel_dies_of() {
        for console in
            ["[ 2.3] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI", "[ 2.3] int3: 0000 [#1] PREEMPT SMP NOPTI"]
        {
            assert!(dead(console).ran_into_a_breakpoint(), "{console}");
            assert!(dead(console).hint().contains("cpus=1"));
        }
        for console in
            ["[ 2.3] Oops: general protection fault: 0000 [#1]", "[ 1.0] Kernel panic - not syncing: VFS", ""]
        {
            assert!(!dead(console).ran_into_a_breakpoint(), "{console}");
            assert!(dead(console).hint().contains("loglevel=7"));
        }
    }

    #[test]
    fn a_crash_of_the_emulator_is_told_from_what_a_kernel_dies_of() {
        let GuestError::Dead { what, came_up, mute, late, console, .. } = dead("") else { return };
        let crashed = GuestError::Dead { what, came_up, mute, late, crashed: Some(11), console };
        assert!(crashed.lost_its_emulator() && !dead("").lost_its_emulator());
    }

    #[test]
    fn an_image_that_may_not_be_read_has_a_way_to_be_read() {
        let denied =
            |kind: std::io::ErrorKind| GuestError::io("cannot open", "/boot/vmlinuz-6")(kind.into()).hint();
        let hint = denied(std::io::ErrorKind::PermissionDenied);
        assert!(hint.ends_with("install -o $USER -m 644 /boot/vmlinuz-6 ~/.cache/assay/kernels/"), "{hint}");
        assert_eq!(denied(std::io::ErrorKind::NotFound), "");
    }

    #[test]
    fn a_timer_panic_is_told_from_other_panics() {
        for cause in [
            "IO-APIC + timer doesn't work!  Boot with apic=debug",
            "timer doesn't work through Interrupt-remapped IO-APIC",
        ] {
            let error = dead(&format!("[ 0.3] Kernel panic - not syncing: {cause}"));
            assert!(error.missed_its_timer() && error.hint().contains("no_timer_check"), "{cause}");
        }
        for console in ["[ 0.3] ..TIMER: vector=0x30 timer", "[ 1.0] Kernel panic - not syncing: VFS"] {
            assert!(!dead(console).missed_its_timer(), "{console}");
        }
    }
}
