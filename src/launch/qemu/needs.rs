//! What trials need in a guest: disks, memory set aside, drivers, programs.
//!
//! Enters: requests of all trials that one machine will run. Leaves: the sum of their needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::error::GuestError;
use super::modules::Need;
use crate::launch::Request;
use crate::target::{Device, DeviceKind, Filesystem, GuestSettings, TargetSettings};
use crate::target::{find_program, find_system_program};

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
    /// Bytes that devices in memory may take.
    pub(super) memory_bytes: u64,
    /// Programs, by their path on the host, which is theirs in the guest as well.
    pub(super) programs: BTreeSet<PathBuf>,
}

impl Needs {
    /// What every guest needs.
    pub(super) fn of(settings: &GuestSettings) -> Needs {
        let mut needs = Needs::default();
        needs.at_start(&["virtio_pci", "virtio_console"]);
        settings.modules.iter().for_each(|name| needs.at_start(&[name]));
        needs
    }

    /// Adds those of a trial.
    ///
    /// # Errors
    /// A program is not on this machine.
    pub(super) fn add(&mut self, request: &Request) -> Result<(), GuestError> {
        if let Some(setup) = &request.target.setup {
            self.target(&setup.settings)?;
        }
        // Engines that are programs bear their program's name.
        let engine = serde_json::to_value(request.engine).unwrap_or_default();
        self.programs.extend(engine.as_str().and_then(find_program));
        let hooks = [&request.before, &request.after];
        if !request.task.command.is_empty() || hooks.iter().any(|hook| hook.is_some()) {
            self.program("sh", "run commands in the guest", "install dash")?;
        }
        let texts = request.task.command.iter().chain(hooks.into_iter().flatten());
        texts.for_each(|text| self.named_in(text));
        Ok(())
    }

    fn target(&mut self, settings: &TargetSettings) -> Result<(), GuestError> {
        if let Some(fs) = settings.fs {
            let (drivers, tool, package): (&[&str], &str, &str) = match fs {
                Filesystem::Xfs => (&["crc32c_generic", "crc32c_intel"], "mkfs.xfs", "xfsprogs"),
                Filesystem::Ext4 => (&["crc32c_generic", "crc32c_intel"], "mkfs.ext4", "e2fsprogs"),
                Filesystem::Btrfs => (
                    &[
                        "crc32c_generic",
                        "crc32c_intel",
                        "xxhash_generic",
                        "sha256_generic",
                        "blake2b_generic",
                    ],
                    "mkfs.btrfs",
                    "btrfs-progs",
                ),
                Filesystem::F2fs => (&["crc32_generic", "crc32_pclmul"], "mkfs.f2fs", "f2fs-tools"),
                Filesystem::Tmpfs => (&[], "", ""),
            };
            if !tool.is_empty() {
                self.driver(fs.name(), Need::Must);
                drivers.iter().for_each(|name| self.driver(name, Need::May));
                self.program(
                    tool,
                    &format!("make {} in the guest", fs.name()),
                    &format!("install {package}"),
                )?;
            }
        }
        for knob in settings.knobs.iter().filter(|knob| knob.path == "queue/scheduler") {
            match knob.value.as_str() {
                "bfq" => self.driver("bfq", Need::May),
                "kyber" => self.driver("kyber_iosched", Need::May),
                "mq-deadline" => self.driver("mq_deadline", Need::May),
                _ => {}
            }
        }
        if let Some(Device::Made { kind, bytes, options }) = &settings.device {
            self.device(*kind, *bytes, options);
        }
        Ok(())
    }

    fn device(&mut self, kind: DeviceKind, bytes: u64, options: &[(String, String)]) {
        let option =
            |name: &str| options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let in_memory = match kind {
            DeviceKind::Ram | DeviceKind::Zram | DeviceKind::Loop | DeviceKind::ScsiDebug => bytes,
            DeviceKind::NullBlk if option("memory_backed") == Some("1") => bytes,
            _ => 0,
        };
        self.memory_bytes = self.memory_bytes.max(in_memory);
        match kind {
            DeviceKind::Loop => self.driver("loop", Need::Must),
            DeviceKind::Zram => {
                self.driver("zram", Need::Must);
                ["lzo_rle", "lzo", "lz4", "zstd"].iter().for_each(|name| self.driver(name, Need::May));
            }
            DeviceKind::Ram => self.driver("brd", Need::Must),
            DeviceKind::Pmem => {
                self.at_start(&["nd_e820", "nd_pmem"]);
                self.pmem_bytes = self.pmem_bytes.max(bytes.next_multiple_of(128 << 20));
            }
            DeviceKind::NullBlk => self.driver("null_blk", Need::Must),
            DeviceKind::ScsiDebug => {
                self.driver("scsi_debug", Need::Must);
                self.driver("sd_mod", Need::Must);
            }
            DeviceKind::VirtioBlk => self.at_start(&["virtio_blk"]),
            DeviceKind::Nvme => self.at_start(&["nvme"]),
        }
        if kind.only_in_guests() {
            let disk = Disk { kind, bytes, cache: option("cache").unwrap_or("none").to_owned() };
            if !self.disks.contains(&disk) {
                self.disks.push(disk);
            }
        }
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

    /// Every word of a command that is a program here may be one that it calls.
    fn named_in(&mut self, text: &str) {
        let words = text.split(|c: char| !(c.is_alphanumeric() || "_-./+".contains(c)));
        for word in words.filter(|word| word.starts_with(|c: char| c.is_alphanumeric() || c == '/')) {
            let path = Path::new(word);
            self.programs.extend(if path.is_absolute() {
                path.is_file().then(|| path.to_owned())
            } else {
                find_system_program(word)
            });
        }
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
        assert!(needs.drivers.contains(&("kyber_iosched".to_owned(), Need::May)));
        assert_eq!(needs.disks.len(), 2);
        assert_eq!((needs.pmem_bytes, needs.memory_bytes), (128 << 20, 8 << 20));
        needs.named_in("sh -c 'true; cat $x'");
        let names: Vec<_> = needs.programs.iter().filter_map(|path| path.file_name()).collect();
        for program in ["sh", "true", "cat"] {
            assert!(names.iter().any(|name| *name == program), "{program}: {names:?}");
        }
    }
}
