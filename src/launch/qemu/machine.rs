//! The emulator's command line, and its process.
//!
//! Enters: a kernel, its initramfs, settings, needs. Leaves: a running emulator whose standard input and output are the guest's port.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::accelerator::Accelerator;
use super::channel::PORT;
use super::error::GuestError;
use super::needs::{Disk, Needs};
use crate::target::{DeviceKind, GuestSettings, guest_disk_serial};

/// The emulator.
pub(super) const EMULATOR: &str = "qemu-system-x86_64";
/// Memory that lies below 4 GiB of addresses, whatever there is in all: the rest, and persistent memory, lie above.
const LOW: u64 = 1 << 30;
const HIGH_START: u64 = 4 << 30;
/// Guests have so many processors at most, unless told otherwise.
const MOST_CPUS: u32 = 4;

/// A machine to be started.
pub(super) struct Machine<'m> {
    /// The kernel as the emulator loads it.
    pub(super) kernel: &'m Path,
    pub(super) initramfs: &'m Path,
    pub(super) settings: &'m GuestSettings,
    pub(super) needs: &'m Needs,
    pub(super) accelerator: Accelerator,
    /// Whether the console shows all that the kernel says: an earlier boot ended without a word.
    pub(super) loud: bool,
    /// A directory of the run, for disks and console.
    pub(super) directory: &'m Path,
    /// What its files' names begin with.
    pub(super) name: &'m str,
}

/// Whether the emulator is here.
///
/// # Errors
/// It is not.
pub(super) fn emulator() -> Result<PathBuf, GuestError> {
    crate::sys::find_system_program(EMULATOR).ok_or_else(|| GuestError::NoProgram {
        program: EMULATOR.to_owned(),
        purpose: "boot a kernel".to_owned(),
        hint: "install it (Debian, Ubuntu: apt-get install qemu-system-x86)".to_owned(),
    })
}

/// How many processors a guest has.
pub(super) fn cpus(settings: &GuestSettings) -> u32 {
    let here = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    settings.cpus.unwrap_or(here.min(MOST_CPUS))
}

/// Bytes of memory without persistent memory.
pub(super) fn memory(settings: &GuestSettings, needs: &Needs) -> u64 {
    // A device in memory may be copied once more in the page cache.
    let usual = LOW + (2 * needs.memory_bytes).next_multiple_of(1 << 20);
    settings.memory.unwrap_or(usual)
}

/// Bytes of it that lie below 4 GiB of addresses.
fn low(settings: &GuestSettings, needs: &Needs) -> u64 {
    memory(settings, needs).min(LOW)
}

/// The caches of qemu that open their file with `O_DIRECT`.
const DIRECT: [&str; 2] = ["none", "directsync"];

/// Whether a disk's file can be opened as its cache asks for.
///
/// # Errors
/// [`GuestError::NoDirect`].
fn takes_cache(path: &Path, cache: &str) -> Result<(), GuestError> {
    if !DIRECT.contains(&cache) {
        return Ok(());
    }
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Err(rustix::io::Errno::INVAL) => {
            Err(GuestError::NoDirect { path: path.to_owned(), cache: cache.to_owned() })
        }
        // What else may be wrong the emulator says.
        _ => Ok(()),
    }
}

/// What stays free of a filesystem whose space disks are given.
const SPARE: u64 = 1 << 30;

/// Makes a disk's file. Its blocks are allocated now, where there is room and the filesystem can do that without writing them: a first
/// write in the guest does not wait for it, and does not find the place full. In memory a block is a page, which costs nothing until it is
/// written.
fn made(path: &Path, bytes: u64) -> std::io::Result<()> {
    const TMPFS: i64 = 0x0102_1994;
    let file = std::fs::File::create(path)?;
    let in_memory = rustix::fs::fstatfs(&file).is_ok_and(|place| place.f_type == TMPFS);
    // One that is full for a moment fails what others write.
    let free = rustix::fs::fstatvfs(&file).map_or(0, |place| place.f_bavail.saturating_mul(place.f_frsize));
    let fits = !in_memory && bytes > 0 && free.saturating_sub(SPARE) >= bytes;
    if fits && rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).is_ok() {
        return Ok(());
    }
    file.set_len(bytes)
}

impl Machine<'_> {
    /// Where the console is written.
    pub(super) fn console(&self) -> PathBuf {
        self.directory.join(format!("{}.console", self.name))
    }

    fn disk(&self, number: usize) -> PathBuf {
        self.directory.join(format!("{}.disk{number}", self.name))
    }

    /// What the machine has written; all of it can go when it has ended.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        (0..self.needs.disks.len()).map(|number| self.disk(number)).chain([self.console()]).collect()
    }

    /// Starts it. It ends with this process.
    ///
    /// # Errors
    /// A disk cannot be made; the emulator cannot be started.
    pub(super) fn start(&self) -> Result<Child, GuestError> {
        let program = emulator()?;
        for (number, disk) in self.needs.disks.iter().enumerate() {
            let path = self.disk(number);
            made(&path, disk.bytes).map_err(GuestError::io("cannot make", &path))?;
            takes_cache(&path, &disk.cache)?;
        }
        let mut command = Command::new(&program);
        command.args(self.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        crate::sys::dies_with_its_parent(&mut command, Signal::KILL);
        command.spawn().map_err(GuestError::io("cannot start", program))
    }

    fn arguments(&self) -> Vec<String> {
        let (accelerator, processor) = match self.accelerator {
            Accelerator::Kvm => ("kvm", "host"),
            Accelerator::Tcg => ("tcg,thread=multi", "max"),
        };
        let all = memory(self.settings, self.needs) + self.needs.pmem_bytes;
        let text = |path: &Path| path.to_string_lossy().replace(',', ",,");
        let mut words: Vec<String> = Vec::new();
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        add("-machine", format!("q35,max-ram-below-4g={}", low(self.settings, self.needs)));
        add("-accel", accelerator.to_owned());
        add("-cpu", processor.to_owned());
        add("-smp", cpus(self.settings).to_string());
        add("-m", format!("{}M", all >> 20));
        add("-display", "none".to_owned());
        add("-kernel", self.kernel.to_string_lossy().into_owned());
        add("-initrd", self.initramfs.to_string_lossy().into_owned());
        add("-append", self.command_line());
        add("-chardev", format!("file,id=console,path={}", text(&self.console())));
        add("-serial", "chardev:console".to_owned());
        add("-chardev", "stdio,id=port,signal=off".to_owned());
        add("-device", "virtio-serial-pci".to_owned());
        add("-device", format!("virtserialport,chardev=port,name={PORT}"));
        for (number, Disk { kind, bytes, cache }) in self.needs.disks.iter().enumerate() {
            let file = text(&self.disk(number));
            // Errors are the guest's to see: otherwise qemu stops the whole machine where the host has no space left.
            let errors = "werror=report,rerror=report";
            add("-drive", format!("if=none,id=disk{number},format=raw,{errors},cache={cache},file={file}"));
            let device = if *kind == DeviceKind::Nvme { "nvme" } else { "virtio-blk-pci" };
            let serial = guest_disk_serial(*bytes, cache);
            add("-device", format!("{device},drive=disk{number},serial={serial}"));
        }
        words.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        words
    }

    /// The kernel's command line: assay's part, then the user's, which may override it. Self-tests of ciphers take an interpreter a second.
    fn command_line(&self) -> String {
        // Under KVM the console has to show that the kernel lives, from its first line (the version, level 5) on; an interpreter
        // is not asked, and each letter costs it time.
        let loudness = match self.accelerator {
            _ if self.loud => "loglevel=7",
            Accelerator::Kvm => "loglevel=6",
            Accelerator::Tcg => "quiet",
        };
        let mut words =
            vec![format!("console=ttyS0 {loudness} panic=-1 oops=panic cryptomgr.notests rdinit=/init")];
        if self.accelerator == Accelerator::Kvm {
            // A trial that spins in the kernel would never end. An emulated processor may be kept waiting as long without a fault.
            words.push("softlockup_panic=1".to_owned());
        } else {
            // An interpreter's counters go with the host's; a guest that finds them slow takes another clock, and not every guest does.
            words.push("tsc=reliable".to_owned());
        }
        if self.needs.pmem_bytes > 0 {
            // The last of all memory; all that is not low begins at HIGH_START.
            let start = HIGH_START + memory(self.settings, self.needs) - low(self.settings, self.needs);
            words.push(format!("memmap={}M!{}M", self.needs.pmem_bytes >> 20, start >> 20));
        }
        if self.needs.ram_bytes > 0 {
            words.push(format!("brd.rd_nr=1 brd.rd_size={}", self.needs.ram_bytes >> 10));
        }
        words.extend(self.settings.arguments.iter().cloned());
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(settings: &GuestSettings, needs: &Needs) -> String {
        line_under(Accelerator::Tcg, settings, needs)
    }

    fn line_under(accelerator: Accelerator, settings: &GuestSettings, needs: &Needs) -> String {
        let machine = Machine {
            kernel: Path::new("/k"),
            initramfs: Path::new("/i"),
            settings,
            needs,
            accelerator,
            loud: false,
            directory: Path::new("/w,x"),
            name: "guest-0",
        };
        machine.arguments().join(" ")
    }

    #[test]
    fn persistent_memory_is_the_last_of_all() {
        let settings = GuestSettings { memory: Some(1536 << 20), cpus: Some(3), ..GuestSettings::default() };
        let needs = Needs { pmem_bytes: 256 << 20, ..Needs::default() };
        let line = line(&settings, &needs);
        // 1536 + 256 MiB, of which 1024 lie below 4 GiB: 512 of the guest's own above, then the persistent ones.
        for part in ["-m 1792M", "memmap=256M!4608M", "-smp 3", "-accel tcg", "path=/w,,x/guest-0.console"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let small = GuestSettings { memory: Some(256 << 20), ..GuestSettings::default() };
        let line = self::line(&small, &needs);
        for part in ["-m 512M", "memmap=256M!4096M", "max-ram-below-4g=268435456"] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn disks_are_behind_their_controllers() {
        let disk = |kind, cache: &str| Disk { kind, bytes: 1 << 20, cache: cache.to_owned() };
        let disks = vec![disk(DeviceKind::VirtioBlk, "none"), disk(DeviceKind::Nvme, "unsafe")];
        let needs = Needs { disks, memory_bytes: 3 << 20, ..Needs::default() };
        let settings = GuestSettings { arguments: vec!["nosmt".to_owned()], ..GuestSettings::default() };
        let line = line(&settings, &needs);
        for part in [
            "werror=report,rerror=report,cache=none,file=/w,,x/guest-0.disk0 -device virtio-blk-pci,drive=disk0,serial=100-none ",
            "cache=unsafe,file=/w,,x/guest-0.disk1 -device nvme,drive=disk1,serial=100-unsafe ",
            "-m 1030M",
            "rdinit=/init tsc=reliable nosmt",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn a_ramdisk_that_is_built_in_has_the_size_that_is_asked_for() {
        let needs = Needs { ram_bytes: 64 << 20, ..Needs::default() };
        let settings = GuestSettings::default();
        assert!(line(&settings, &needs).contains(" brd.rd_nr=1 brd.rd_size=65536"));
        assert!(!line(&settings, &Needs::default()).contains("brd"));
    }

    #[test]
    fn a_kernel_under_kvm_says_that_it_lives() {
        let (settings, needs) = (GuestSettings::default(), Needs::default());
        let kvm = line_under(Accelerator::Kvm, &settings, &needs);
        assert!(kvm.contains(" loglevel=6 ") && !kvm.contains("quiet"), "{kvm}");
        assert!(line(&settings, &needs).contains(" quiet "));
        let machine = Machine {
            kernel: Path::new("/k"),
            initramfs: Path::new("/i"),
            settings: &settings,
            needs: &needs,
            accelerator: Accelerator::Tcg,
            loud: true,
            directory: Path::new("/w"),
            name: "guest-0",
        };
        let again = machine.command_line();
        assert!(again.contains(" loglevel=7 ") && !again.contains("quiet"), "{again}");
    }

    #[test]
    fn a_disk_has_its_blocks_before_the_guest_writes_to_it() {
        use std::os::unix::fs::MetadataExt;
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let [path, probe] = ["disk", "probe"].map(|name| directory.path().join(name));
        made(&path, 3 << 20).unwrap();
        let found = path.metadata().unwrap();
        assert_eq!(found.len(), 3 << 20);
        let probe = std::fs::File::create(probe).unwrap();
        let place = rustix::fs::fstatvfs(&probe).unwrap();
        let takes = place.f_bavail * place.f_frsize > 2 * SPARE
            && rustix::fs::fallocate(&probe, rustix::fs::FallocateFlags::empty(), 0, 4096).is_ok();
        assert!(!takes || found.blocks() * 512 >= 3 << 20, "{} blocks", found.blocks());
        // Larger than any filesystem, which stays as it is.
        let huge = directory.path().join("huge");
        made(&huge, 1 << 43).unwrap();
        let found = huge.metadata().unwrap();
        assert!(found.len() == 1 << 43 && found.blocks() < 100);
    }

    #[test]
    fn only_direct_caches_need_direct_io() {
        // A file of procfs can be opened for writing, never for direct I/O.
        let file = Path::new("/proc/self/comm");
        for cache in DIRECT {
            let error = takes_cache(file, cache).unwrap_err();
            assert!(error.to_string().contains(&format!("which cache={cache} asks for")), "{error}");
            assert!(error.hint().contains("cache=writeback"));
        }
        assert!(takes_cache(file, "writeback").is_ok() && takes_cache(file, "unsafe").is_ok());
    }
}
