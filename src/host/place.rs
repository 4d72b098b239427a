//! Facts of the place that will be written: filesystem, mount, room, direct I/O, and the device and queue below.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::statvfs;

use super::device::device_under_in;
use super::direct_io::direct_io;
use super::disks::Disks;
use super::roots::{Roots, text};
use crate::record::HostFacts;
use crate::sys::mountinfo::mount_of;

/// Facts of the filesystem and the device under `path`, which must exist: `fs.*`, `mount.*`, `device.*`, `queue.*`,
/// `o_direct`, and `now.fs.*` for the room left. A path that cannot be looked at has the one fact `path.error`.
#[must_use]
pub fn path_facts(path: &Path) -> HostFacts {
    path_facts_in(&Roots::default(), path)
}

/// The same with other roots.
#[must_use]
pub fn path_facts_in(roots: &Roots, path: &Path) -> HostFacts {
    let mut facts = HostFacts::default();
    let (path, meta) = match path.canonicalize().and_then(|path| path.metadata().map(|meta| (path, meta))) {
        Ok(found) => found,
        Err(error) => {
            facts.set("path.error", error.to_string());
            return facts;
        }
    };
    let is_device = meta.file_type().is_block_device();
    if !is_device {
        if let Some(mount) = mount_of(&roots.mountinfo(), &path) {
            facts.set("fs.type", mount.kind);
            facts.set("mount.source", mount.source);
            facts.set("mount.options", mount.options);
        }
        room(&path, &mut facts);
    }
    facts.set("o_direct", direct_io(&path));
    match device_under_in(roots, &path) {
        Ok(device) => {
            device.add(&mut facts);
            let disks = Disks::under_in(roots, &path).unwrap_or_default();
            disks.add_facts(&mut facts);
            numbers(&disks, &mut facts);
        }
        Err(reason) => facts.set("device.none", reason.rsplit(" is on ").next().unwrap_or_default()),
    }
    facts
}

/// Major and minor numbers of the device and of those that it is built on, by which a control group names them. They are chance for
/// most devices: facts of the moment.
fn numbers(disks: &Disks, facts: &mut HostFacts) {
    let numbers: Vec<String> = disks.all.iter().filter_map(|device| text(&device.sys.join("dev"))).collect();
    if !numbers.is_empty() {
        facts.set("now.device.numbers", numbers.join(" "));
    }
}

fn room(path: &Path, facts: &mut HostFacts) {
    let Ok(fs) = statvfs(path) else { return };
    facts.set("fs.size_bytes", (fs.f_blocks * fs.f_frsize).to_string());
    facts.set("fs.block_size", fs.f_bsize.to_string());
    facts.set("now.fs.free_bytes", (fs.f_bavail * fs.f_frsize).to_string());
    // As df counts: what an ordinary user can still have, of what he could have had.
    let used = fs.f_blocks.saturating_sub(fs.f_bfree);
    if used + fs.f_bavail > 0 {
        let percent = 100.0 * used as f64 / (used + fs.f_bavail) as f64;
        facts.set("now.fs.used_percent", format!("{percent:.1}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_directory_has_a_filesystem_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let facts = path_facts(directory.path());
        for name in ["fs.type", "mount.options", "fs.size_bytes", "now.fs.free_bytes", "o_direct"] {
            assert!(facts.get(name).is_some(), "{name}: {facts:?}");
        }
        assert!(facts.get("device").is_some() != facts.get("device.none").is_some(), "{facts:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_filesystem_without_a_device_says_so() {
        let facts = path_facts(Path::new("/proc"));
        assert_eq!(facts.get("fs.type"), Some("proc"));
        assert_eq!(facts.get("device.none"), Some("proc, which has no block device of its own"));
    }

    #[test]
    fn a_path_that_is_not_there_is_one_fact() {
        let facts = path_facts(Path::new("/no/such/path"));
        assert_eq!(facts.count(), 1);
        assert!(facts.get("path.error").unwrap().contains("No such file"));
    }
}
