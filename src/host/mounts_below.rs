//! Which mounts lie below a directory, and who keeps one of them busy.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::roots::Roots;
use crate::sys::mountinfo::{Mount, mounts};

/// So many users are named.
const MOST_NAMED: usize = 5;

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
    let using = processes().filter(|(process, _)| uses(process, path));
    using.map(|(process, pid)| with_name(&process, &pid)).take(MOST_NAMED).collect()
}

/// Who sees a device mounted that nobody has mounted here: processes in mount namespaces of their own, as those of containers, one of
/// each, as `mounted at /data for 1234 sh`; at most five. A namespace is a copy of the mounts that were there when it began, and keeps them.
#[must_use]
pub fn mounted_for_others(device: &Path) -> Vec<String> {
    let number = std::fs::metadata(device).map_or(0, |found| found.rdev());
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let is_on_it = |mount: &Mount| mount.device == number || Path::new(&mount.source) == device;
    let mut seen: Vec<PathBuf> = std::fs::read_link("/proc/self/ns/mnt").into_iter().collect();
    let mut found = Vec::new();
    for (process, pid) in processes() {
        let Some(namespace) =
            std::fs::read_link(process.join("ns/mnt")).ok().filter(|own| !seen.contains(own))
        else {
            continue;
        };
        seen.push(namespace);
        let table = std::fs::read(process.join("mountinfo")).unwrap_or_default();
        if let Some(mount) = mounts(&String::from_utf8_lossy(&table)).into_iter().find(is_on_it) {
            found.push(format!("mounted at {} for {}", mount.point.display(), with_name(&process, &pid)));
        }
        if found.len() == MOST_NAMED {
            break;
        }
    }
    found
}

/// Their directories in /proc and their numbers.
fn processes() -> impl Iterator<Item = (PathBuf, String)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))
        .filter(|(_, name)| name.bytes().all(|byte| byte.is_ascii_digit()))
}

fn with_name(process: &Path, pid: &str) -> String {
    let command = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    format!("{pid} {}", command.trim())
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
