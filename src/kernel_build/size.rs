//! About how much there is to build of a whole kernel, from its configuration alone, before anything is known of it.
//!
//! Enters: a configuration. Leaves: objects and MiB. Both are estimates: which objects an option stands for, only make knows.

use super::config::Configuration;

/// How much there is to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Files that are compiled or assembled.
    pub(super) objects: u64,
    /// What its objects need.
    pub(super) mib: u64,
}

/// Of assay's small configuration: 1400 objects of 6.12 with 290 MiB.
const SMALL_OBJECTS: u64 = 1500;
/// Objects an option that is on: 2.2 with the small configuration, more where most are drivers.
const OBJECTS_AN_OPTION: u64 = 3;
/// An object and its part of what is linked, in KiB; with what debuggers want it is as many times as large.
const OBJECT_KIB: u64 = 200;
const WITH_DEBUG_INFO: u64 = 6;
/// What puts it in: a whole configuration has the first, a fragment asks for one of the others.
const DEBUG_INFO: [&str; 4] =
    ["DEBUG_INFO", "DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT", "DEBUG_INFO_DWARF4", "DEBUG_INFO_DWARF5"];

impl Size {
    /// Of assay's small configuration.
    pub(super) const SMALL: Size = Size::of_objects(SMALL_OBJECTS, 1);

    /// Of any configuration.
    pub(super) fn of(configuration: &Configuration) -> Size {
        // The kernel's own defaults are on besides what a fragment sets.
        let objects = match configuration.is_whole {
            true => configuration.options_on() * OBJECTS_AN_OPTION,
            false => SMALL_OBJECTS,
        };
        let debug = DEBUG_INFO.iter().any(|name| configuration.is_on(name))
            && !configuration.is_on("DEBUG_INFO_REDUCED");
        Size::of_objects(objects, if debug { WITH_DEBUG_INFO } else { 1 })
    }

    const fn of_objects(objects: u64, times: u64) -> Size {
        Size { objects, mib: (objects * OBJECT_KIB * times) >> 10 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_distributions_configuration_is_larger_than_the_small_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("debian.config");
        let size = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Size::of(&Configuration::read(Some(&path), &BTreeSet::new()).unwrap())
        };
        assert_eq!(size("CONFIG_XFS_RT=y\n"), Size::SMALL);
        let with_debug_info = size("CONFIG_DEBUG_INFO_DWARF5=y\n");
        assert!(with_debug_info.mib >= 6 * Size::SMALL.mib && with_debug_info.objects == Size::SMALL.objects);
        // As many options as Debian's 6.12 for amd64 has.
        let always =
            ["BLK_DEV_INITRD", "DEVTMPFS", "VIRTIO_PCI", "VIRTIO_CONSOLE", "BINFMT_ELF", "DEBUG_INFO"];
        let always: String = always.iter().map(|name| format!("CONFIG_{name}=y\n")).collect();
        let drivers: String = (0..6692).map(|at| format!("CONFIG_DRIVER_{at}=m\n")).collect();
        let all = format!("{always}{drivers}# CONFIG_NOT is not set\nCONFIG_HZ=250\n");
        let debian = size(&all);
        assert_eq!(debian.objects, 20_094);
        assert!((22_000..30_000).contains(&debian.mib), "{debian:?}");
        let without = size(&all.replace("CONFIG_DEBUG_INFO=y\n", "# CONFIG_DEBUG_INFO is not set\n"));
        assert!((3_000..6_000).contains(&without.mib), "{without:?}");
        let reduced = size(&format!("{all}CONFIG_DEBUG_INFO_REDUCED=y\n"));
        assert!(reduced.mib < 6_000, "{reduced:?}");
    }
}
