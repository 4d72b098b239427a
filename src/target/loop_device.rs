//! A loop device on a file of its own (Linux's include/uapi/linux/loop.h, loop(4)).
//!
//! Enters: a file's path, its size, options. Leaves: a block device. The backing file is sparse unless its blocks are asked for; direct
//! I/O to it is asked for, as pages of the file would otherwise be cached a second time, and what the kernel made of that is a fact.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::ioctl::{Ioctl, IoctlOutput, NoArg, Opcode, Setter, ioctl};

use super::busy::while_busy;
use super::error::TargetError;
use super::loop_users::{LoopInfo, on_file};
use super::made::{Inode, Seen};
use super::module;
use super::overwrite::mounted_for_others;
use crate::host::Driver;

const CONTROL: &str = "/dev/loop-control";
const LOOP_CLR_FD: Opcode = 0x4C01;
const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Another program may take the free device first.
const ATTEMPTS: u32 = 64;

/// `struct loop_config`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// How the device is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) bytes: u64,
    pub(super) direct_io: bool,
    pub(super) block_size: u32,
    /// Whether all blocks of the file are allocated before anything is written.
    pub(super) allocated: bool,
}

impl Wish {
    pub(super) fn read(bytes: u64, options: &[(String, String)]) -> Result<Wish, TargetError> {
        let mut wish = Wish { bytes, direct_io: true, block_size: 0, allocated: false };
        for (name, value) in options {
            let wrong = || {
                TargetError::unavailable(
                    format!("loop: {name}={value} cannot be"),
                    "write direct_io=0 or 1, fallocate=0 or 1, block_size=512 to 4096",
                )
            };
            match (name.as_str(), value.parse::<u32>()) {
                ("direct_io", Ok(on @ 0..=1)) => wish.direct_io = on == 1,
                ("fallocate", Ok(on @ 0..=1)) => wish.allocated = on == 1,
                ("block_size", Ok(size)) if size.is_power_of_two() && (512..=65_536).contains(&size) => {
                    wish.block_size = size;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(wish)
    }
}

/// Whether this kernel has loop devices that can be made here.
pub(super) fn obstacle() -> Option<TargetError> {
    let there = Path::new(CONTROL).exists() || crate::host::driver("loop") == Driver::Loadable;
    (!there).then(|| {
        TargetError::unavailable(
            "there is no /dev/loop-control: the kernel has no loop devices here",
            "boot a kernel that has loop; in a container, hand in /dev/loop-control and /dev/loop*",
        )
    })
}

/// Makes the file, which must not be there.
pub(super) fn make_image(image: &Path, wish: Wish) -> Result<(File, Inode), TargetError> {
    let made = OpenOptions::new().read(true).write(true).create_new(true).open(image);
    let file = made.map_err(TargetError::io("cannot make", image))?;
    file.set_len(wish.bytes).map_err(TargetError::io("cannot size", image))?;
    let seen = Seen::opened(&file).map_err(TargetError::io("cannot look at", image))?;
    Ok((file, seen.inode))
}

/// Whether files in a directory can be given their blocks without being written.
pub(super) fn cannot_allocate(directory: &Path) -> Option<TargetError> {
    let file = tempfile::tempfile_in(directory).map_err(TargetError::io("cannot make a file in", directory));
    file.and_then(|file| allocate(&file, directory, 4096)).err()
}

/// Gives a file all its blocks; those that it has stay as they are. `image` is where it is, for messages.
pub(super) fn allocate(file: &File, image: &Path, bytes: u64) -> Result<(), TargetError> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes).map_err(|error| match error {
        rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS => TargetError::unavailable(
            format!(
                "loop: fallocate=1: the filesystem at {} cannot allocate blocks before they are written",
                image.display()
            ),
            "--directory names a place on another one, e.g. ext4 or XFS; or leave fallocate=1 out",
        ),
        other => TargetError::io("cannot allocate", image)(other.into()),
    })
}

/// Whether a file has all its blocks.
pub(super) fn is_allocated(image: &Path) -> bool {
    image.metadata().is_ok_and(|found| found.blocks().saturating_mul(512) >= found.len())
}

/// Makes the device on the file; the journal knows the file already.
pub(super) fn attach(file: &File, wish: Wish) -> Result<PathBuf, TargetError> {
    if !Path::new(CONTROL).exists() {
        module::load_for_all("loop")?;
    }
    let config = LoopConfig {
        fd: file.as_raw_fd() as u32,
        block_size: wish.block_size,
        info: LoopInfo {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: if wish.direct_io { LO_FLAGS_DIRECT_IO } else { 0 },
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    for _ in 0..ATTEMPTS {
        let device = free_device()?;
        let opened = OpenOptions::new().read(true).write(true).open(&device);
        let fd = opened.map_err(TargetError::io("cannot open", &device))?;
        match configure(&fd, config) {
            Ok(()) => return Ok(device),
            Err(rustix::io::Errno::BUSY) => {}
            Err(error) => return Err(TargetError::io("cannot set up", device)(error.into())),
        }
    }
    Err(TargetError::failed("no free loop device: others took each one first"))
}

/// What the kernel made otherwise: direct I/O needs a filesystem that has it.
pub(super) fn not_as_wished(device: &Path, wish: Wish) -> Option<String> {
    let sys = Path::new("/sys/block").join(device.file_name()?);
    let now = crate::host::read_knob(&sys.join("loop/dio")).ok()?;
    let wished = u8::from(wish.direct_io).to_string();
    (now != wished).then(|| format!("loop: direct_io={wished} was asked for; the kernel made it {now}"))
}

fn free_device() -> Result<PathBuf, TargetError> {
    let control = File::open(CONTROL).map_err(TargetError::io("cannot open", CONTROL))?;
    #[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
    // SAFETY: LOOP_CTL_GET_FREE takes no argument and returns the number.
    let number = unsafe { ioctl(control, GetFree) };
    let number = number.map_err(|e| TargetError::io("cannot ask", CONTROL)(e.into()))?;
    Ok(PathBuf::from(format!("/dev/loop{number}")))
}

/// `LOOP_CTL_GET_FREE`: the number is what the call itself returns.
struct GetFree;

#[expect(unsafe_code, reason = "the trait through which rustix makes ioctls")]
// SAFETY: the opcode takes no argument, so the null pointer is never read; the result is a plain number.
unsafe impl Ioctl for GetFree {
    type Output = IoctlOutput;
    const IS_MUTATING: bool = false;
    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }
    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        std::ptr::null_mut()
    }
    unsafe fn output_from_ptr(
        number: IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> rustix::io::Result<IoctlOutput> {
        Ok(number)
    }
}

fn configure(device: &File, config: LoopConfig) -> rustix::io::Result<()> {
    #[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, which LoopConfig is laid out as; it is not kept.
    unsafe {
        ioctl(device, Setter::<LOOP_CONFIGURE, LoopConfig>::new(config))
    }
}

/// Detaches every loop device on this file, whatever the file is called now, and waits until the kernel has let go of it.
pub(super) fn detach_all(image: &Path, inode: Inode) -> Result<(), TargetError> {
    let tried = while_busy(|| {
        for (_, opened) in on_file(inode.device, inode.number) {
            clear(&opened)?;
        }
        // Where somebody else has it open, the kernel detaches it when that one closes it.
        if on_file(inode.device, inode.number).is_empty() {
            Ok(())
        } else {
            Err(std::io::ErrorKind::ResourceBusy.into())
        }
    });
    tried.map_err(|error| {
        let left = on_file(inode.device, inode.number);
        match left.iter().find_map(|(device, _)| mounted_for_others(device).map(|by| (device, by))) {
            Some((device, by)) => TargetError::failed(format!(
                "cannot detach {} from {}: it is {by}",
                device.display(),
                image.display()
            )),
            None => TargetError::io("cannot detach the loop device of", image)(error),
        }
    })
}

fn clear(device: &File) -> std::io::Result<()> {
    #[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
    // SAFETY: LOOP_CLR_FD takes no argument.
    let cleared = unsafe { ioctl(device, NoArg::<LOOP_CLR_FD>::new()) };
    match cleared {
        // Somebody else was faster.
        Err(rustix::io::Errno::NXIO) => Ok(()),
        other => other.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structs_have_the_kernels_sizes() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }

    #[test]
    fn options_are_read() {
        let options =
            |text: &str| vec![text.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()];
        let usual = Wish { bytes: 1, direct_io: true, block_size: 0, allocated: false };
        assert_eq!(Wish::read(1, &[]).unwrap(), usual);
        assert!(Wish::read(1, &options("fallocate=1")).unwrap().allocated);
        assert!(Wish::read(1, &options("fallocate=yes")).is_err());
        assert!(!Wish::read(1, &options("direct_io=0")).unwrap().direct_io);
        assert_eq!(Wish::read(1, &options("block_size=4096")).unwrap().block_size, 4096);
        assert!(Wish::read(1, &options("block_size=1000")).is_err());
    }

    #[test]
    fn a_file_is_given_its_blocks_and_its_holes_again() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let image = place.path().join("image");
        let wish = Wish { bytes: 2 << 20, direct_io: true, block_size: 0, allocated: true };
        let (file, _) = make_image(&image, wish).unwrap();
        assert!(!is_allocated(&image), "sparse before it is allocated");
        if let Some(error) = cannot_allocate(place.path()) {
            assert!(error.to_string().contains("cannot allocate blocks before they are written"), "{error}");
            return;
        }
        allocate(&file, &image, wish.bytes).unwrap();
        assert!(is_allocated(&image));
        let punched = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punched, 1 << 20, 1 << 20).unwrap();
        assert!(!is_allocated(&image));
        allocate(&file, &image, wish.bytes).unwrap();
        assert!(is_allocated(&image));
    }

    #[test]
    fn a_file_without_a_loop_device_is_detached_at_once() {
        detach_all(Path::new("/nowhere/image"), Inode { device: 0, number: 0, born: None }).unwrap();
    }
}
