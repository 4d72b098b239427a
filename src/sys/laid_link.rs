//! Links that somebody else may have laid on the way to a path.
//!
//! Enters: a path. Leaves: the first such link. It must not know what the path is for.

use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Sticky bit: entries are removed and renamed by their owners only.
const STICKY: u32 = 0o1000;

/// Links that the kernel follows on the way to a file (MAXSYMLINKS).
const MOST_LINKS: u32 = 40;

/// The link on the way to a path that somebody else may have laid: one in a directory that everybody may write to, owned neither by
/// this user nor by the owner of that directory (as `fs.protected_symlinks` of the kernel has it). The last part counts, too.
#[must_use]
pub fn laid_link(path: &Path) -> Option<PathBuf> {
    laid(path, &mut 0)
}

fn laid(path: &Path, followed: &mut u32) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let me = rustix::process::geteuid().as_raw();
    let mut on_the_way = PathBuf::new();
    for part in absolute.components() {
        let above = on_the_way.clone();
        on_the_way.push(part);
        if !matches!(part, Component::Normal(_)) {
            continue;
        }
        let found = std::fs::symlink_metadata(&on_the_way).ok()?;
        if !found.is_symlink() {
            continue;
        }
        let around = std::fs::metadata(&above).ok()?;
        let open = around.mode() & STICKY != 0 && around.mode() & 0o002 != 0;
        if open && found.uid() != me && found.uid() != around.uid() {
            return Some(on_the_way);
        }
        // What it leads to may lead on; the kernel gives up after as many, and so does whoever opens the path.
        *followed += 1;
        if *followed > MOST_LINKS {
            return None;
        }
        let to = std::fs::read_link(&on_the_way).ok();
        if let Some(link) = to.and_then(|to| laid(&above.join(to), followed)) {
            return Some(link);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_of_ones_own_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("link");
        symlink("/etc", &link).unwrap();
        assert_eq!(laid_link(&link.join("passwd")), None);
        assert_eq!(laid_link(Path::new("/etc/passwd")), None);
    }

    #[test]
    fn links_that_lead_in_a_circle_end() {
        let place = tempfile::tempdir().unwrap();
        symlink("b", place.path().join("a")).unwrap();
        symlink("a", place.path().join("b")).unwrap();
        assert_eq!(laid_link(&place.path().join("a")), None);
    }
}
