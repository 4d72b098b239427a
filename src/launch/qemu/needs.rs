//! What trials need in a guest: disks, memory set aside, drivers, programs.
//!
//! Enters: requests of all trials that one machine will run. Leaves: the sum of their needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::error::GuestError;
use super::modules::Need;
use crate::catalog::Filesystem;
use crate::engine;
use crate::launch::Request;
use crate::sys::{find_system_program, regular_file};
use crate::target::{Device, DeviceKind, GuestSettings, TargetSettings};

/// More bytes of files than this do not go into a guest's memory beside all else.
const MOST_COPIED: u64 = 256 << 20;
/// Directories in which a guest's kernel has files of its own.
const KERNELS: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Directories that a guest has besides.
const GUESTS_OWN: [&str; 5] = ["/tmp", "/run", "/root", "/var/tmp", "/"];

/// A disk on a file of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// Behind which controller.
    pub(super) kind: DeviceKind,
    /// Its size.
    pub(super) bytes: u64,
    /// How the emulator uses the host's page cache: `none`, `writeback`, `unsafe`…
    pub(super) cache: String,
}

/// The sum of what trials need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Drivers, each at most once.
    pub(super) drivers: Vec<(String, Need)>,
    /// Those of them that are loaded before the first trial.
    pub(super) loaded: Vec<String>,
    /// Disks, each size and kind once.
    pub(super) disks: Vec<Disk>,
    /// Bytes of persistent memory.
    pub(super) pmem_bytes: u64,
    /// Bytes of the kernel's ramdisk, whose size a kernel that has it built in is told when it is booted.
    pub(super) ram_bytes: u64,
    /// Bytes that devices in memory may take.
    pub(super) memory_bytes: u64,
    /// Programs, by their path on the host, which is theirs in the guest as well.
    pub(super) programs: BTreeSet<PathBuf>,
    /// Files they read, in the same way.
    pub(super) files: BTreeSet<PathBuf>,
    /// Where commands run that name files relative to it.
    pub(super) directory: Option<PathBuf>,
}

/// Bytes that are set aside for persistent memory of a size.
fn set_aside(bytes: u64) -> u64 {
    bytes.next_multiple_of(128 << 20)
}

/// Bytes of persistent memory that a trial is to find; `None`: it uses none. There is one such device in a guest, so trials that
/// want it in other sizes are run in other guests.
pub(super) fn wanted_pmem(settings: &TargetSettings) -> Option<u64> {
    match &settings.device {
        Some(Device::Made { kind: DeviceKind::Pmem, bytes, .. }) if !settings.is_in_memory() => {
            Some(set_aside(*bytes))
        }
        _ => None,
    }
}

impl Needs {
    /// What every guest needs.
    pub(super) fn of(settings: &GuestSettings) -> Needs {
        let mut needs = Needs::default();
        needs.at_start(&["virtio_pci", "virtio_console"]);
        for name in &settings.modules {
            // A filesystem's module asks the kernel for these as it is loaded.
            let others = Filesystem::named(name).map_or(&[][..], |fs| fs.descriptor().guest_modules);
            others.iter().for_each(|other| needs.driver(other, Need::May));
            needs.at_start(&[name]);
        }
        needs
    }

    /// Adds those of a trial.
    ///
    /// # Errors
    /// A program is not on this machine; a command names what cannot be copied.
    pub(super) fn add(&mut self, request: &Request) -> Result<(), GuestError> {
        if let Some(setup) = &request.target.setup {
            self.target(&setup.settings)?;
        }
        let engine = request.engine.descriptor().program;
        self.programs.extend(engine.and_then(|program| find_system_program(program.name)));
        // What it cannot say now it says in its trial.
        for path in engine::of(request.engine).reads(&request.task).unwrap_or_default() {
            self.copied(path)?;
        }
        let hooks = [&request.before, &request.after];
        if !request.task.command.is_empty() || hooks.iter().any(|hook| hook.is_some()) {
            self.program("sh", "run commands in the guest", "install dash")?;
        }
        let here = std::env::current_dir().unwrap_or_default();
        let texts = request.task.command.iter().chain(hooks.into_iter().flatten());
        for text in texts {
            self.named_in(text, &here)?;
        }
        Ok(())
    }

    fn target(&mut self, settings: &TargetSettings) -> Result<(), GuestError> {
        if let Some(fs) = settings.fs
            && let Some(mkfs) = fs.mkfs()
        {
            self.driver(fs.name(), Need::Must);
            fs.descriptor().guest_modules.iter().for_each(|name| self.driver(name, Need::May));
            self.program(
                mkfs.program.name,
                &format!("make {} in the guest", fs.name()),
                &format!("install {}", mkfs.program.package),
            )?;
        }
        for knob in settings.knobs.iter().filter(|knob| knob.path == "queue/scheduler") {
            if knob.value != "none" {
                self.driver(&knob.value, Need::Scheduler);
            }
        }
        match (&settings.device, settings.fs) {
            // It is as large as the device, and is made instead of that.
            (Some(Device::Made { bytes, .. }), Some(fs)) if fs.is_in_memory() => {
                self.memory_bytes = self.memory_bytes.max(*bytes);
            }
            (Some(device), fs) => self.device(device, fs.is_some()),
            (None, _) => {}
        }
        if let Some(mapping) = settings.dm.as_ref().filter(|_| !settings.is_in_memory()) {
            self.driver("dm_mod", Need::Must);
            self.driver(mapping.module(), Need::Must);
            mapping.guest_modules().iter().for_each(|name| self.driver(name, Need::May));
        }
        if let Some(log) = &settings.log {
            self.device(log, true);
        }
        Ok(())
    }

    /// `filesystem`: one is made on it.
    fn device(&mut self, device: &Device, filesystem: bool) {
        let Device::Made { kind, bytes, options } = device else { return };
        let (kind, bytes) = (*kind, *bytes);
        let option =
            |name: &str| options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        // What is written to a null_blk is kept where a filesystem could not live without.
        let keeps = option("memory_backed").map_or(filesystem, |value| value == "1");
        let in_memory = match kind {
            DeviceKind::Ram | DeviceKind::Zram | DeviceKind::Loop | DeviceKind::ScsiDebug => bytes,
            DeviceKind::NullBlk if keeps => bytes,
            _ => 0,
        };
        self.memory_bytes = self.memory_bytes.max(in_memory);
        match kind {
            DeviceKind::Loop => self.driver("loop", Need::Must),
            DeviceKind::Zram => {
                self.driver("zram", Need::Must);
                ["lzo_rle", "lzo", "lz4", "zstd"].iter().for_each(|name| self.driver(name, Need::May));
            }
            DeviceKind::Ram => {
                self.driver("brd", Need::Must);
                self.ram_bytes = self.ram_bytes.max(bytes);
            }
            DeviceKind::Pmem => {
                self.at_start(&["nd_e820", "nd_pmem"]);
                self.pmem_bytes = self.pmem_bytes.max(set_aside(bytes));
            }
            DeviceKind::NullBlk => self.driver("null_blk", Need::Must),
            DeviceKind::ScsiDebug => {
                self.driver("scsi_debug", Need::Must);
                self.driver("sd_mod", Need::Must);
            }
            DeviceKind::VirtioBlk => self.at_start(&["virtio_blk"]),
            DeviceKind::Nvme => self.at_start(&["nvme"]),
        }
        if let Some(cache) = device.cache() {
            let disk = Disk { kind, bytes, cache: cache.to_owned() };
            if !self.disks.contains(&disk) {
                self.disks.push(disk);
            }
        }
    }

    /// How its disks are called there, and how many of each name the machine is given.
    pub(super) fn disks_by_name(&self) -> [(&'static str, usize); 3] {
        let count = |kind| self.disks.iter().filter(|disk| disk.kind == kind).count();
        [
            ("vd", count(DeviceKind::VirtioBlk)),
            ("nvme", count(DeviceKind::Nvme)),
            ("pmem", usize::from(self.pmem_bytes > 0)),
        ]
    }

    fn driver(&mut self, name: &str, need: Need) {
        if !self.drivers.iter().any(|(known, _)| known == name) {
            self.drivers.push((name.to_owned(), need));
        }
    }

    fn at_start(&mut self, names: &[&str]) {
        for name in names {
            self.driver(name, Need::Must);
            if !self.loaded.iter().any(|known| known == name) {
                self.loaded.push((*name).to_owned());
            }
        }
    }

    fn program(&mut self, name: &str, purpose: &str, hint: &str) -> Result<(), GuestError> {
        let missing = || GuestError::NoProgram {
            program: name.to_owned(),
            purpose: purpose.to_owned(),
            hint: hint.to_owned(),
        };
        self.programs.insert(find_system_program(name).ok_or_else(missing)?);
        Ok(())
    }

    /// Every word of a command that is a program or a file here may be one that it uses.
    fn named_in(&mut self, text: &str, here: &Path) -> Result<(), GuestError> {
        let words = text.split(|c: char| !(c.is_alphanumeric() || "_-./+".contains(c)));
        for word in words.filter(|word| word.starts_with(|c: char| c.is_alphanumeric() || "/.".contains(c))) {
            let path = here.join(word);
            if KERNELS.iter().any(|own| path.starts_with(own))
                || GUESTS_OWN.iter().any(|own| path == Path::new(own))
            {
                continue;
            }
            if path.is_file() {
                if Path::new(word).is_relative() {
                    self.directory = Some(here.to_owned());
                }
                self.copied(path)?;
            } else if path.is_dir() && word.contains('/') && word.chars().any(char::is_alphanumeric) {
                let what = format!("the command names the directory {word}, which is not copied into guests");
                return Err(GuestError::NotCopied { what });
            }
            // Also where a file of this name lies here: which of them is meant is the command's to know.
            self.programs.extend(if word.contains('/') { None } else { find_system_program(word) });
        }
        Ok(())
    }

    /// Programs that a script may call: every word of it that is one.
    fn called_by(&mut self, script: &Path, bytes: u64) {
        const MOST: u64 = 64 << 10;
        let text =
            if bytes <= MOST { regular_file::read(script, MOST).unwrap_or_default() } else { Vec::new() };
        if text.starts_with(b"#!") {
            let text = String::from_utf8_lossy(&text);
            let words = text.split(|c: char| !(c.is_alphanumeric() || "_-.+".contains(c)));
            self.programs.extend(words.filter(|word| !word.is_empty()).filter_map(find_system_program));
        }
    }

    /// A file that is to be in the guest: a program, which brings its libraries, or data.
    fn copied(&mut self, path: PathBuf) -> Result<(), GuestError> {
        use std::os::unix::fs::PermissionsExt;
        let found = path.metadata().map_err(GuestError::io("cannot read", &path))?;
        if found.permissions().mode() & 0o111 != 0 {
            self.called_by(&path, found.len());
            self.programs.insert(path);
            return Ok(());
        }
        self.files.insert(path.clone());
        let bytes: u64 =
            self.files.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum();
        if bytes > MOST_COPIED {
            let what = format!("{} is too large to be copied into a guest's memory", path.display());
            return Err(GuestError::NotCopied { what });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_add_up_once_each() {
        let mut needs =
            Needs::of(&GuestSettings { modules: vec!["brd".to_owned()], ..GuestSettings::default() });
        let mut add = |device: &str, scheduler: &str| {
            let mut settings = TargetSettings::default();
            settings.set("device", device, Path::new("/")).unwrap();
            settings.set("scheduler", scheduler, Path::new("/")).unwrap();
            needs.target(&settings).unwrap();
        };
        add("virtio_blk:64m", "none");
        add("virtio_blk:64m", "kyber");
        add("virtio_blk:64m:cache=unsafe", "kyber");
        add("pmem:100m", "none");
        add("ram:8m", "none");
        assert_eq!(needs.loaded, ["virtio_pci", "virtio_console", "brd", "virtio_blk", "nd_e820", "nd_pmem"]);
        assert_eq!(needs.drivers.last(), Some(&("nd_pmem".to_owned(), Need::Must)));
        assert!(needs.drivers.contains(&("kyber".to_owned(), Need::Scheduler)));
        assert_eq!(needs.disks.len(), 2);
        assert_eq!(needs.disks_by_name(), [("vd", 2), ("nvme", 0), ("pmem", 1)]);
        assert_eq!((needs.pmem_bytes, needs.memory_bytes), (128 << 20, 8 << 20));
        let memory = |pairs: &[(&str, &str)]| {
            let mut settings = TargetSettings::default();
            pairs.iter().for_each(|(key, value)| settings.set(key, value, Path::new("/")).unwrap());
            let mut needs = Needs::default();
            needs.target(&settings).unwrap();
            (needs.memory_bytes, needs.disks.len())
        };
        assert_eq!(memory(&[("device", "null_blk:2g")]), (0, 0));
        assert_eq!(memory(&[("device", "null_blk:2g:memory_backed=1")]), (2 << 30, 0));
        assert_eq!(memory(&[("device", "null_blk:2g"), ("fs", "ext4")]), (2 << 30, 0));
        assert_eq!(memory(&[("device", "null_blk:2g:memory_backed=0"), ("fs", "ext4")]), (0, 0));
        assert_eq!(memory(&[("device", "virtio_blk:64m"), ("fs", "tmpfs")]), (64 << 20, 0));
        assert_eq!(memory(&[("device", "virtio_blk:64m")]), (0, 1));
        needs.named_in("sh -c 'true; cat $x'", Path::new("/nowhere")).unwrap();
        let names: Vec<_> = needs.programs.iter().filter_map(|path| path.file_name()).collect();
        for program in ["sh", "true", "cat"] {
            assert!(names.iter().any(|name| *name == program), "{program}: {names:?}");
        }
    }

    #[test]
    fn files_of_a_command_are_copied_directories_are_refused() {
        let here = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        std::fs::create_dir(here.path().join("data")).unwrap();
        std::fs::write(here.path().join("data/words"), "x").unwrap();
        let mut needs = Needs::default();
        needs
            .named_in("cat <data/words ./data/words none /dev/null /proc/uptime /tmp/ .", here.path())
            .unwrap();
        assert_eq!(needs.files.len(), 1, "{:?}", needs.files);
        assert!(needs.files.iter().all(|path| path.starts_with(here.path()) && path.ends_with("data/words")));
        assert_eq!(needs.directory.as_deref(), Some(here.path()));
        let refused = needs.named_in("ls data/", here.path()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the command names the directory data/, which is not copied into guests"
        );
        let large = std::fs::File::create(here.path().join("large")).unwrap();
        large.set_len(MOST_COPIED + 1).unwrap();
        let refused = needs.named_in("wc large", here.path()).unwrap_err().to_string();
        assert!(refused.ends_with("large is too large to be copied into a guest's memory"), "{refused}");
    }
}
