//! The loop devices that lie on a file (Linux's include/uapi/linux/loop.h).
//!
//! Enters: the file's filesystem and inode numbers, which cannot be given out again as long as a device lies on it. Leaves: the devices,
//! open.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::ioctl::{Getter, Opcode, ioctl};

const LOOP_GET_STATUS64: Opcode = 0x4C05;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct LoopInfo {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) rdevice: u64,
    pub(super) offset: u64,
    pub(super) size_limit: u64,
    pub(super) number: u32,
    pub(super) encrypt_type: u32,
    pub(super) encrypt_key_size: u32,
    pub(super) flags: u32,
    pub(super) file_name: [u8; 64],
    pub(super) crypt_name: [u8; 64],
    pub(super) encrypt_key: [u8; 32],
    pub(super) init: [u64; 2],
}

/// Loop devices whose backing file this is, open. The kernel itself is asked of the very device that is open: a name or a path could lead to
/// another one by now.
pub(super) fn on_file(filesystem: u64, inode: u64) -> Vec<(PathBuf, File)> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let attached = entries.filter(|entry| entry.path().join("loop/backing_file").exists());
    let opened = attached.filter_map(|entry| {
        let path = Path::new("/dev").join(entry.file_name());
        File::open(&path).ok().map(|file| (path, file))
    });
    opened.filter(|(_, device)| backing(device) == Some((filesystem, inode))).collect()
}

/// Whether the kernel names this path, or one that begins so (it adds that a file was deleted), as what a loop device lies on.
pub(super) fn is_named(image: &Path) -> bool {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let image = image.to_string_lossy();
    entries.into_iter().any(|entry| {
        let named = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        named.is_ok_and(|path| path.starts_with(image.as_ref()))
    })
}

/// A loop device on this file. Whoever may not open the device is told by the path of its file, which anybody may read: good enough to
/// leave a file alone, never to undo something.
pub(super) fn lies_on(filesystem: u64, inode: u64) -> Option<PathBuf> {
    if let Some((device, _)) = on_file(filesystem, inode).into_iter().next() {
        return Some(device);
    }
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let is_on_it = |entry: &std::fs::DirEntry| {
        let named = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        let file = named.ok().and_then(|path| std::fs::metadata(path.trim_end_matches('\n')).ok());
        file.is_some_and(|file| (file.dev(), file.ino()) == (filesystem, inode))
    };
    entries.into_iter().find(is_on_it).map(|entry| Path::new("/dev").join(entry.file_name()))
}

/// The filesystem and inode number of an open loop device's backing file.
fn backing(device: &File) -> Option<(u64, u64)> {
    #[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
    // SAFETY: LOOP_GET_STATUS64 writes one `struct loop_info64`, which LoopInfo is laid out as, plain numbers all.
    let info = unsafe { ioctl(device, Getter::<LOOP_GET_STATUS64, LoopInfo>::new()) }.ok()?;
    Some((info.device, info.inode))
}
