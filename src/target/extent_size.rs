//! XFS's extent-size hint: how much is allocated at once for a file that grows (xfsctl(3), XFS_XFLAG_EXTSZINHERIT).
//!
//! Enters: a directory and bytes. Leaves: a directory whose new files inherit the hint, or the kernel's word.

use std::fs::File;
use std::path::Path;

use rustix::ioctl::{Getter, Opcode, Setter, ioctl};

use super::error::TargetError;

/// `_IOR('X', 31, struct fsxattr)`.
const FS_IOC_FSGETXATTR: Opcode = 0x801c_581f;
/// `_IOW('X', 32, struct fsxattr)`.
const FS_IOC_FSSETXATTR: Opcode = 0x401c_5820;
/// New files below the directory get its hint.
const INHERIT: u32 = 0x1000;

/// `struct fsxattr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    flags: u32,
    extent_bytes: u32,
    extents: u32,
    project: u32,
    copy_extent_bytes: u32,
    padding: [u8; 8],
}

/// Gives a directory the hint; returns the bytes that the filesystem has kept.
pub(super) fn hint(directory: &Path, bytes: u64) -> Result<u32, TargetError> {
    let refused = |error: rustix::io::Errno| {
        TargetError::Failed {
        reason: format!("extsize={bytes} is refused: {}", std::io::Error::from(error)),
        command: String::new(),
        output: String::new(),
        hint: "write a multiple of the filesystem's block size, at most half of an allocation group (a small device has \
               small ones)"
            .to_owned(),
    }
    };
    let opened = File::open(directory).map_err(TargetError::io("cannot open", directory))?;
    let mut attributes = get(&opened).map_err(refused)?;
    attributes.flags |= INHERIT;
    attributes.extent_bytes = u32::try_from(bytes).map_err(|_| refused(rustix::io::Errno::INVAL))?;
    set(&opened, attributes).map_err(refused)?;
    get(&opened).map(|kept| kept.extent_bytes).map_err(refused)
}

fn get(directory: &File) -> rustix::io::Result<Attributes> {
    #[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
    // SAFETY: FS_IOC_FSGETXATTR writes one `struct fsxattr`, which Attributes is laid out as.
    unsafe {
        ioctl(directory, Getter::<FS_IOC_FSGETXATTR, Attributes>::new())
    }
}

fn set(directory: &File, attributes: Attributes) -> rustix::io::Result<()> {
    #[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
    // SAFETY: FS_IOC_FSSETXATTR reads one `struct fsxattr`, which Attributes is laid out as; it is not kept.
    unsafe {
        ioctl(directory, Setter::<FS_IOC_FSSETXATTR, Attributes>::new(attributes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_struct_has_the_kernels_size() {
        assert_eq!(size_of::<Attributes>(), 28);
    }

    #[test]
    fn where_there_is_no_hint_it_is_refused() {
        let directory = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
        let error = hint(directory.path(), 1 << 20).unwrap_err();
        assert!(error.to_string().starts_with("extsize=1048576 is refused: "), "{error}");
        assert!(error.hint().contains("block size"));
    }
}
