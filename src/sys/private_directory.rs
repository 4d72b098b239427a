//! Whether only this user and root decide what lies in a directory: asked of every directory on the way, as ssh does.
//!
//! Enters: a path. Leaves: why somebody else may change what is there, or nothing. It must not know what the directory is for.

use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Sticky bit: entries are removed and renamed by their owners only.
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o022;

/// A directory that is not used, and why.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {why}", path.display())]
pub struct NotPrivate {
    path: PathBuf,
    why: String,
}

/// Makes a directory, with those above it, which only this user may enter, unless it is there; then looks at the whole way.
///
/// # Errors
/// [`NotPrivate`]: it cannot be made, or somebody else may change what is in it.
pub fn made(path: &Path) -> Result<(), NotPrivate> {
    // Before, too: nothing is made below a directory of somebody else.
    check(path)?;
    let failed =
        |error: std::io::Error| NotPrivate { path: path.to_owned(), why: format!("cannot be made: {error}") };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    check(path)
}

/// Looks at a directory and all above it, links on the way included; what is not there yet is left out.
///
/// # Errors
/// [`NotPrivate`] names the first that somebody else may change.
pub fn check(path: &Path) -> Result<(), NotPrivate> {
    let failed =
        |path: &Path, error: std::io::Error| NotPrivate { path: path.to_owned(), why: error.to_string() };
    let absolute = std::path::absolute(path).map_err(|error| failed(path, error))?;
    let mut on_the_way = PathBuf::new();
    for part in absolute.components() {
        on_the_way.push(part);
        match std::fs::symlink_metadata(&on_the_way) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(&on_the_way, error)),
            Ok(found) if found.is_symlink() => {
                owned(&on_the_way, &found)?;
                let leads_to = on_the_way.canonicalize().map_err(|error| failed(&on_the_way, error))?;
                check(&leads_to)?;
            }
            Ok(found) => ours(&on_the_way, &found)?,
        }
    }
    Ok(())
}

fn owned(path: &Path, found: &Metadata) -> Result<(), NotPrivate> {
    let me = rustix::process::geteuid().as_raw();
    if found.uid() == 0 || found.uid() == me {
        return Ok(());
    }
    let why = format!("belongs to user {}, who is neither root nor you", found.uid());
    Err(NotPrivate { path: path.to_owned(), why })
}

fn ours(path: &Path, found: &Metadata) -> Result<(), NotPrivate> {
    owned(path, found)?;
    let mode = found.mode() & 0o7777;
    if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        let why = format!("can be written by others (mode {mode:04o})");
        return Err(NotPrivate { path: path.to_owned(), why });
    }
    Ok(())
}

/// The link on the way to a path that somebody else may have laid: one in a directory that everybody may write to, owned neither by
/// this user nor by the owner of that directory (as `fs.protected_symlinks` of the kernel has it). The last part counts, too.
#[must_use]
pub fn laid_link(path: &Path) -> Option<PathBuf> {
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
        // What it leads to may lead on.
        if let Some(link) = std::fs::read_link(&on_the_way).ok().and_then(|to| laid_link(&above.join(to))) {
            return Some(link);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn place() -> tempfile::TempDir {
        // Below the build: who can write to directories above it is the developer's own affair.
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_named() {
        let place = place();
        if check(place.path()).is_err() {
            // The checkout itself lies where others may write: nothing more can be said here.
            return;
        }
        let (above, below) = (place.path().join("above"), place.path().join("above/below"));
        assert_eq!(made(&below), Ok(()));
        assert_eq!(std::fs::metadata(&below).unwrap().mode() & 0o777, 0o700);
        for open in [0o775, 0o757, 0o777] {
            mode(&above, open);
            let said = check(&below).unwrap_err().to_string();
            assert_eq!(said, format!("{} can be written by others (mode {open:04o})", above.display()));
            let link = place.path().join(format!("link-{open}"));
            symlink(&below, &link).unwrap();
            assert!(check(&link.join("more")).is_err(), "through a link");
        }
        mode(&above, 0o1777);
        assert_eq!(check(&below), Ok(()), "others cannot rename what is in a sticky directory");
    }

    #[test]
    fn a_link_of_ones_own_is_followed() {
        let place = place();
        let link = place.path().join("link");
        symlink("/etc", &link).unwrap();
        assert_eq!(laid_link(&link.join("passwd")), None);
        assert_eq!(laid_link(Path::new("/etc/passwd")), None);
    }
}
