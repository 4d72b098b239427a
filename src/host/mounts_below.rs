//! Which mounts lie below a directory, and who keeps one of them busy.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::roots::Roots;
use crate::sys::mountinfo::{Mount, mounts};

/// Mount points at or below a directory (absolute, without links), in the order they were mounted.
#[must_use]
pub fn mounts_below(directory: &Path) -> Vec<PathBuf> {
    mounts(&Roots::default().mountinfo())
        .into_iter()
        .map(|mount| mount.point)
        .filter(|at| at.starts_with(directory))
        .collect()
}

/// What was mounted last at a point (absolute, without links): the kernel's number for the mount, and what is mounted. The kernel gives
/// numbers out again, so that both together make one mount known.
#[must_use]
pub fn mounted_at(point: &Path) -> Option<(u64, String)> {
    let last = mounts(&Roots::default().mountinfo()).into_iter().rfind(|mount| mount.point == point)?;
    Some((last.id, described(&last)))
}

/// What is mounted and, since Linux 6.8, the number that the kernel gives to no other mount.
fn described(mount: &Mount) -> String {
    /// `STATX_MNT_ID_UNIQUE`.
    const UNIQUE: u32 = 0x4000;
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(CWD, &mount.point, flags, StatxFlags::from_bits_retain(UNIQUE)).ok();
    let unique =
        found.filter(|found| found.stx_mask & UNIQUE != 0).map(|found| format!(" {}", found.stx_mnt_id));
    what(mount) + &unique.unwrap_or_default()
}

fn what(mount: &Mount) -> String {
    format!("{} {}", mount.kind, mount.source)
}

/// Whether no other mount can be what [`mounted_at`] has named so: the kernel gave it a number for good (since Linux 6.8), the third
/// word.
#[must_use]
pub fn is_unique(mount: &(u64, String)) -> bool {
    mount.1.split(' ').nth(2).is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Where a mount that [`mounted_at`] has named is now; `None`: it is gone.
#[must_use]
pub fn point_of(mount: &(u64, String)) -> Option<PathBuf> {
    let all = mounts(&Roots::default().mountinfo());
    let at = all.iter().position(|known| known.id == mount.0)?;
    let found = &all[at];
    // Of one that something is mounted over, the kernel's number is that of what covers it.
    let covered = all[at + 1..].iter().any(|later| later.point == found.point);
    let as_then = if covered { mount.1.starts_with(&what(found)) } else { described(found) == mount.1 };
    as_then.then(|| found.point.clone())
}

/// Processes with a working directory, root or open file at or below a path, as `PID NAME`; at most five.
#[must_use]
pub fn users_of(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_process = name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        if is_process && uses(&entry.path(), path) {
            let command = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push(format!("{} {}", name.to_string_lossy(), command.trim()));
        }
        if found.len() == 5 {
            break;
        }
    }
    found
}

fn uses(process: &Path, path: &Path) -> bool {
    let leads_there = |link: PathBuf| std::fs::read_link(link).is_ok_and(|to| to.starts_with(path));
    let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    ["cwd", "root", "exe"].iter().any(|link| leads_there(process.join(link)))
        || files.map(|file| file.path()).any(leads_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_shows_who_uses_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        assert_eq!(users_of(&path), Vec::<String>::new());
        let file = std::fs::File::create(path.join("open")).unwrap();
        let me = std::process::id().to_string();
        assert!(users_of(&path).iter().any(|user| user.starts_with(&me)));
        drop(file);
    }

    #[test]
    fn the_root_holds_all_mounts_and_an_empty_directory_none() {
        assert!(mounts_below(Path::new("/")).iter().any(|point| point == Path::new("/proc")));
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(mounts_below(directory.path()), Vec::<PathBuf>::new());
    }
}
