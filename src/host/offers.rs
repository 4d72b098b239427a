//! What the running kernel has or could load: filesystems, modules; what this process may do.

use std::path::Path;

use super::roots::{Roots, text};

/// Where a driver of the kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Loaded as a module.
    Loaded,
    /// Part of the kernel itself.
    BuiltIn,
    /// A module that can be loaded.
    Loadable,
    /// Not there.
    Missing,
}

/// The state of the driver with this module name (`-` and `_` are the same).
#[must_use]
pub fn driver(name: &str) -> Driver {
    driver_in(&Roots::default(), Path::new("/"), name)
}

fn driver_in(roots: &Roots, root: &Path, name: &str) -> Driver {
    let same = |other: &str| other.replace('-', "_") == name.replace('-', "_");
    let loaded = roots.proc("modules").unwrap_or_default();
    if loaded.lines().any(|line| line.split(' ').next().is_some_and(same)) {
        return Driver::Loaded;
    }
    if roots.sys.join("module").join(name).exists() {
        return Driver::BuiltIn;
    }
    let Some(release) = roots.proc("sys/kernel/osrelease") else { return Driver::Missing };
    let directory = root.join("lib/modules").join(release);
    let listed = |file: &str| {
        text(&directory.join(file)).is_some_and(|list| {
            let paths = list.lines().filter_map(|line| line.split(':').next());
            paths.filter_map(|path| path.rsplit('/').next()?.split('.').next()).any(same)
        })
    };
    match () {
        () if listed("modules.builtin") => Driver::BuiltIn,
        () if listed("modules.dep") => Driver::Loadable,
        () => Driver::Missing,
    }
}

/// Whether the running kernel has this filesystem or a module of it.
#[must_use]
pub fn has_filesystem(name: &str) -> bool {
    let known = Roots::default().proc("filesystems").unwrap_or_default();
    known.lines().any(|line| line.split_whitespace().next_back() == Some(name))
        || driver(name) != Driver::Missing
}

/// What running kernel has no driver of this name, in a sentence's words: `no module brd for 6.12.1`.
#[must_use]
pub fn missing_driver(name: &str) -> String {
    let release = Roots::default().proc("sys/kernel/osrelease").unwrap_or_default();
    format!("kernel {release} has neither {name} built in nor a module of it in /lib/modules/{release}")
}

/// Whether this process may mount and set up devices (`CAP_SYS_ADMIN`, capability 21 of capabilities(7)).
#[must_use]
pub fn may_administer() -> bool {
    let status = Roots::default().proc("self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << 21) != 0)
}

/// Which start of the machine this is: kernel objects of another one are gone.
#[must_use]
pub fn boot_id() -> String {
    Roots::default().proc("sys/kernel/random/boot_id").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_found_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        for (path, value) in [
            ("proc/modules", "null_blk 65536 0 - Live 0x0\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("sys/module/brd/parameters/rd_nr", "16\n"),
            ("lib/modules/6.1.0/modules.builtin", "kernel/fs/ext4/ext4.ko\n"),
            (
                "lib/modules/6.1.0/modules.dep",
                "kernel/drivers/scsi/scsi_debug.ko.xz: kernel/lib/x.ko\nk/dm-delay.ko:\n",
            ),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value).unwrap();
        }
        let roots = Roots::under(root.path());
        let driver = |name: &str| driver_in(&roots, root.path(), name);
        assert_eq!(driver("null_blk"), Driver::Loaded);
        assert_eq!(driver("brd"), Driver::BuiltIn);
        assert_eq!(driver("ext4"), Driver::BuiltIn);
        assert_eq!(driver("scsi_debug"), Driver::Loadable);
        assert_eq!(driver("dm_delay"), Driver::Loadable);
        assert_eq!(driver("zram"), Driver::Missing);
    }

    #[test]
    fn this_kernel_has_proc_and_a_boot() {
        assert!(has_filesystem("proc") && !has_filesystem("nosuchfs"));
        assert_eq!(boot_id().len(), 36);
    }
}
