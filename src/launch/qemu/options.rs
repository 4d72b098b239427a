//! What a kernel that is built for a guest must have, in the names of its configuration.
//!
//! Enters: the settings of a target. Leaves: options without `CONFIG_`; what every guest needs, whoever builds kernels knows.

use std::collections::BTreeSet;

use crate::target::{Device, DeviceKind, TargetSettings};

/// Options that trials on a target need.
#[must_use]
pub fn kernel_options(settings: &TargetSettings) -> BTreeSet<String> {
    let mut options: BTreeSet<String> = BTreeSet::new();
    if let Some(fs) = settings.fs {
        // XFS_FS, EXT4_FS, BTRFS_FS, F2FS_FS; the one in memory has no such end.
        let name = fs.name().to_uppercase();
        options.insert(if fs.is_in_memory() { name } else { format!("{name}_FS") });
    }
    if settings.mount.iter().any(|option| option == "dax" || option.starts_with("dax=")) {
        options.insert("FS_DAX".to_owned());
    }
    if let Some(Device::Made { kind, .. }) = settings.device.as_ref().filter(|_| !settings.is_in_memory()) {
        let of_device: &[&str] = match kind {
            DeviceKind::Loop => &["BLK_DEV_LOOP"],
            DeviceKind::Zram => &["ZSMALLOC", "CRYPTO", "CRYPTO_LZO", "ZRAM"],
            DeviceKind::Ram => &["BLK_DEV_RAM"],
            DeviceKind::Pmem => &["BLK_DEV_PMEM", "X86_PMEM_LEGACY"],
            DeviceKind::NullBlk => &["BLK_DEV_NULL_BLK", "CONFIGFS_FS"],
            DeviceKind::ScsiDebug => &["SCSI", "SCSI_LOWLEVEL", "BLK_DEV_SD", "SCSI_DEBUG"],
            DeviceKind::VirtioBlk => &["VIRTIO_BLK"],
            DeviceKind::Nvme => &["BLK_DEV_NVME"],
        };
        options.extend(of_device.iter().map(|name| (*name).to_owned()));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn filesystem_and_device_ask_for_their_options() {
        let of = |pairs: &[(&str, &str)]| {
            let mut settings = TargetSettings::default();
            pairs.iter().for_each(|(key, value)| settings.set(key, value, Path::new("/")).unwrap());
            kernel_options(&settings).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&[("fs", "xfs"), ("device", "virtio_blk:1g")]), ["VIRTIO_BLK", "XFS_FS"]);
        assert_eq!(of(&[("fs", "tmpfs"), ("device", "loop:1g")]), ["TMPFS"]);
        let dax = of(&[("fs", "ext4"), ("device", "pmem:1g"), ("mount", "dax=always")]);
        assert_eq!(dax, ["BLK_DEV_PMEM", "EXT4_FS", "FS_DAX", "X86_PMEM_LEGACY"]);
        assert_eq!(of(&[]), Vec::<String>::new());
    }
}
