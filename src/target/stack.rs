//! A device, a filesystem on it, a mount: made step by step, each written down before it is made.
//!
//! Enters: the settings and the directory that holds it. Leaves: below that directory a link to the device, and the
//! filesystem mounted; facts that nobody can read from the result.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::identity::DeviceIdentity;
use super::journal::Journal;
use super::made::Made;
use super::obstacles::taken;
use super::overwrite::may_overwrite;
use super::{
    device_mapper, guest_disk, log_device, loop_device, mkfs, mount, null_blk, pmem, ramdisk, scsi_debug,
    second_device, superblock, zram,
};
use crate::catalog::LogDevice;
use crate::experiment::{
    BELOW_LINK, DEVICE_LINK, Device, DeviceKind, FileState, Filesystem, LOG_LINK, MOUNT_POINT, TargetSettings,
};

/// The file behind the target's loop device.
const IMAGE: &str = "image";
/// The same of the log's.
const LOG_IMAGE: &str = "log-image";

/// Facts by name.
type Facts = BTreeMap<String, String>;

/// A stack that was built.
#[derive(Debug, Default)]
pub(super) struct Built {
    pub(super) facts: Facts,
    /// What the kernel warned of.
    pub(super) notes: Vec<String>,
}

/// A stack being built.
pub(super) struct Builder<'b> {
    pub(super) journal: &'b mut Journal,
    pub(super) settings: &'b TargetSettings,
    /// What may be overwritten.
    pub(super) named: &'b [PathBuf],
    /// Its directory, without links in the path.
    pub(super) directory: &'b Path,
    /// The name it has in the journal.
    pub(super) name: &'b str,
}

impl Builder<'_> {
    /// Makes everything; what was made until an error is in the journal.
    pub(super) fn build(&mut self) -> Result<Built, TargetError> {
        match std::fs::create_dir(self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(TargetError::io("cannot make", self.directory)(error));
            }
            _ => {}
        }
        let (mut facts, mut notes) = (Facts::new(), Vec::new());
        let device = match (&self.settings.device, self.settings.fs) {
            (None, _) => None,
            (Some(_), Some(fs)) if fs.is_in_memory() => None,
            (Some(device), _) => {
                facts.insert("target.device".to_owned(), device.to_string());
                Some(self.device(device, IMAGE, &mut notes)?)
            }
        };
        self.journal.reached("device");
        if let Some(device) = &device {
            own_facts(device, &mut facts);
        }
        let device = self.mapped(device, &mut facts)?;
        if let Some(device) = &device {
            self.link(device, DEVICE_LINK)?;
        }
        let log = match self.settings.log.as_ref().filter(|_| device.is_some()) {
            Some(log) => {
                facts.insert("target.log".to_owned(), log.to_string());
                let made = self.device(log, LOG_IMAGE, &mut notes)?;
                self.link(&made, LOG_LINK)?;
                Some(made)
            }
            None => None,
        };
        match (self.settings.fs, &device) {
            (Some(fs), device) => {
                notes.extend(self.filesystem(fs, device.as_deref(), log.as_deref(), &mut facts)?);
            }
            (None, Some(device)) if self.settings.state == Some(FileState::Overwrite) => {
                fill(device).map_err(TargetError::io("cannot fill", device))?;
                facts.insert("target.filled".to_owned(), "yes".to_owned());
            }
            (None, _) => {}
        }
        if matches!(self.settings.device, Some(Device::Made { kind: DeviceKind::Loop, .. }))
            && device.is_some()
        {
            let is_whole = loop_device::is_allocated(&self.directory.join(IMAGE));
            facts.insert("loop.fallocate".to_owned(), u8::from(is_whole).to_string());
        }
        self.journal.reached("stack");
        Ok(Built { facts, notes })
    }

    /// `image`: what the file behind it is called, where there is one.
    fn device(
        &mut self,
        device: &Device,
        image: &str,
        notes: &mut Vec<String>,
    ) -> Result<PathBuf, TargetError> {
        let (kind, bytes, options) = match device {
            Device::Block(path) => {
                may_overwrite(path, std::slice::from_ref(path))?;
                return path.canonicalize().map_err(TargetError::io("cannot look at", path));
            }
            Device::Directory(path) | Device::File(path) => {
                return Err(TargetError::failed(format!("{} is not a device", path.display())));
            }
            Device::Made { kind, bytes, options } => (*kind, *bytes, options.as_slice()),
        };
        match kind {
            DeviceKind::Loop => {
                let image = self.directory.join(image);
                let wish = loop_device::Wish::read(bytes, options)?;
                self.journal.begin(Some(self.name), Made::Loop { image: image.clone(), inode: None })?;
                let (file, inode) = loop_device::make_image(&image, wish)?;
                self.journal.now_known(Made::Loop { image: image.clone(), inode: Some(inode) })?;
                self.journal.reached("image");
                if wish.allocated {
                    loop_device::allocate(&file, &image, wish.bytes)?;
                }
                let made = loop_device::attach(&file, wish)?;
                notes.extend(loop_device::not_as_wished(&made, wish));
                Ok(made)
            }
            DeviceKind::Zram => {
                let algorithm = options.iter().find(|(name, _)| name == "algorithm");
                let algorithm = algorithm.map(|(_, value)| value.as_str());
                zram::make(self.journal, self.name, bytes, algorithm, notes)
            }
            DeviceKind::Ram => {
                ramdisk::make(self.journal, self.name, bytes, taken(self.settings, self.named))
            }
            DeviceKind::Pmem => pmem::take(bytes, taken(self.settings, self.named)),
            DeviceKind::NullBlk => {
                // Names in configfs are seen by all; the session's digits are like no other. A disk has 31 letters at most.
                let digits: String = self.journal.session().chars().take(14).collect();
                let last: String =
                    self.name.chars().skip(self.name.chars().count().saturating_sub(8)).collect();
                let name = format!("nullb-{digits}-{last}");
                let keeps = self.settings.fs.is_some();
                null_blk::make(self.journal, self.name, &name, bytes, options, keeps, notes)
            }
            DeviceKind::ScsiDebug => scsi_debug::make(self.journal, self.name, bytes, options),
            DeviceKind::VirtioBlk | DeviceKind::Nvme => {
                guest_disk::take(kind, bytes, device.cache().unwrap_or_default())
            }
        }
    }

    /// What the device mapper makes of the device, where it is asked to.
    fn mapped(&mut self, device: Option<PathBuf>, facts: &mut Facts) -> Result<Option<PathBuf>, TargetError> {
        let (Some(below), Some(mapping)) = (&device, &self.settings.dm) else { return Ok(device) };
        facts.insert("target.dm".to_owned(), mapping.to_string());
        self.link(below, BELOW_LINK)?;
        let above = device_mapper::make(self.journal, self.name, mapping, below, self.is_foreign())?;
        self.journal.reached("mapped");
        Ok(Some(above))
    }

    /// Whether the device stays when the run has ended, so that nothing may be left on it.
    fn is_foreign(&self) -> bool {
        !matches!(
            self.settings.device,
            Some(Device::Made { kind: DeviceKind::Loop | DeviceKind::Zram | DeviceKind::NullBlk, .. })
        )
    }

    /// mkfs discards its device first, which makes holes in the file behind a loop device.
    fn fill_holes(&self) -> Result<(), TargetError> {
        for (device, name) in [(&self.settings.device, IMAGE), (&self.settings.log, LOG_IMAGE)] {
            let bytes = device.as_ref().map_or(0, Device::allocated_bytes);
            if bytes > 0 {
                let image = self.directory.join(name);
                let file = OpenOptions::new().write(true).open(&image);
                let file = file.map_err(TargetError::io("cannot open", &image))?;
                loop_device::allocate(&file, &image, bytes)?;
            }
        }
        Ok(())
    }

    /// The job finds the device under a name that is known before it is made.
    fn link(&self, device: &Path, name: &str) -> Result<(), TargetError> {
        let link = self.directory.join(name);
        match std::fs::remove_file(&link) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(TargetError::io("cannot remove", link)(error));
            }
            _ => {}
        }
        std::os::unix::fs::symlink(device, &link).map_err(TargetError::io("cannot make", link))
    }

    fn filesystem(
        &mut self,
        fs: Filesystem,
        device: Option<&Path>,
        log: Option<&Path>,
        facts: &mut Facts,
    ) -> Result<Vec<String>, TargetError> {
        let way = log.zip(fs.descriptor().log_device);
        let named = way.map(|(log, way)| log_device::named(self.settings, way, log));
        let settings = named.as_ref().unwrap_or(self.settings);
        if let Some(device) = device {
            self.mkfs(fs, settings, (device, log), facts)?;
        }
        let point = self.directory.join(MOUNT_POINT);
        match std::fs::create_dir(&point) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(TargetError::io("cannot make", point)(error));
            }
            _ => {}
        }
        self.journal.begin(Some(self.name), Made::Mount { point: point.clone(), mount: None })?;
        let warned = mount::mount(fs.name(), device, &mount_options(settings), &point)?;
        let mount = crate::host::mounted_at(&point);
        self.journal.now_known(Made::Mount { point, mount })?;
        Ok(warned)
    }

    /// `settings`: with the log's device in them.
    fn mkfs(
        &mut self,
        fs: Filesystem,
        settings: &TargetSettings,
        (device, log): (&Path, Option<&Path>),
        facts: &mut Facts,
    ) -> Result<(), TargetError> {
        // What lies under a mapping of the run's own goes with that.
        let foreign = self.is_foreign() && self.settings.dm.is_none();
        let mut others = second_device::of_mkfs(settings);
        others.retain(|other| other != device);
        for other in &others {
            // A log of the trial before is no filesystem to assay, but mkfs would stop at it.
            mkfs::clear_ends(other).map_err(TargetError::io("cannot clear", other))?;
        }
        if let Some((log, way)) = log.zip(fs.descriptor().log_device) {
            // What was made for this run goes as a whole.
            others.retain(|other| other != log || matches!(settings.log, Some(Device::Block(_))));
            if !way.made_first.is_empty() {
                self.log_first(fs, way, [device, log])?;
                others.retain(|other| other != log);
            }
        }
        let disk = DeviceIdentity::of(device);
        let made = |identity| Made::Filesystem { device: device.to_owned(), disk: disk.clone(), identity };
        if foreign {
            self.journal.begin(Some(self.name), made(None))?;
        }
        self.journal.reached("mkfs");
        let (command, version) = mkfs::make(fs, &settings.mkfs, device)?;
        self.fill_holes()?;
        if foreign {
            self.journal.now_known(made(mkfs::identity(fs, device)))?;
        }
        for device in others {
            let (identity, disk) = (mkfs::identity_beside(fs, &device), DeviceIdentity::of(&device));
            self.journal.begin(Some(self.name), Made::Filesystem { device, disk, identity })?;
        }
        facts.insert("mkfs.command".to_owned(), log_device::without_names(&command, device, log));
        facts.insert("mkfs.version".to_owned(), version);
        facts.extend(superblock::facts(fs, device));
        Ok(())
    }

    /// The log of a filesystem whose mkfs wants it to be there.
    fn log_first(&mut self, fs: Filesystem, way: LogDevice, on: [&Path; 2]) -> Result<(), TargetError> {
        let (log, disk) = (on[1], DeviceIdentity::of(on[1]));
        let made = |identity| Made::Filesystem { device: log.to_owned(), disk: disk.clone(), identity };
        let foreign = matches!(self.settings.log, Some(Device::Block(_)));
        if foreign {
            self.journal.begin(Some(self.name), made(None))?;
        }
        log_device::make_first(fs, way, &self.settings.mkfs, on)?;
        if foreign {
            self.journal.now_known(made(mkfs::identity(fs, log)))?;
        }
        self.journal.reached("log");
        Ok(())
    }
}

/// A filesystem in memory, beside others on a device of a size, is as large as that.
pub(super) fn mount_options(settings: &TargetSettings) -> Vec<String> {
    let mut options = settings.mount.clone();
    let sized_by = settings.fs.map_or(&[][..], |fs| fs.descriptor().sized_by);
    let says_it = |option: &String| sized_by.iter().any(|name| option.split('=').next() == Some(*name));
    if let (Some(name), Some(Device::Made { bytes, .. })) = (sized_by.first(), &settings.device)
        && !options.iter().any(says_it)
    {
        options.push(format!("{name}={bytes}"));
    }
    options
}

/// What the kernel made of the options of a device, beyond its queue's settings.
fn own_facts(device: &Path, facts: &mut Facts) {
    let Some(name) = device.file_name() else { return };
    let sys = Path::new("/sys/block").join(name);
    for (fact, file) in [("loop.direct_io", "loop/dio"), ("zram.algorithm", "comp_algorithm")] {
        if let Ok(value) = crate::host::read_knob(&sys.join(file)) {
            facts.insert(fact.to_owned(), value);
        }
    }
}

/// Writes the whole device once with data that does not compress, so that every later write overwrites.
fn fill(device: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(device)?;
    let mut left = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut chunk = vec![0_u8; 1 << 20];
    // xorshift64 (Marsaglia 2003): what is in it does not matter, only that it differs everywhere.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    while left > 0 {
        for word in chunk.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let now = left.min(chunk.len() as u64);
        file.write_all(&chunk[..now as usize])?;
        left -= now;
    }
    file.sync_all()
}
