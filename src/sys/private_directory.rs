//! Directories that only this user, or root, can change: where assay keeps what it later acts on.
//!
//! Enters: a path. Leaves: the directory, opened component by component without following a link, or the first component that
//! somebody else may rename or replace. The rule is that of sshd's `StrictModes`: each component belongs to root or to this user, and
//! neither group nor others may write to it unless it is sticky. A group that is the user's own primary group counts as the user.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// Only to walk through; reading its entries is not needed and may not be allowed.
const PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const STICKY: u32 = 0o1000;

/// Why a directory is not trusted, or cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// Somebody else can change it.
    #[error("{place} {why}")]
    Others {
        /// The component.
        place: PathBuf,
        /// Who can.
        why: String,
    },
    /// The system's words.
    #[error("{place}: {source}")]
    Io {
        /// The component.
        place: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl Untrusted {
    /// Whether it is only that something is not there, which another process may just have removed.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Untrusted::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }
}

/// Opens a directory that nobody but root and this user can rename or replace, nor any directory above it.
///
/// # Errors
/// [`Untrusted`]: the first component that somebody else can change.
pub fn trusted_directory(path: &Path) -> Result<OwnedFd, Untrusted> {
    let real = path.canonicalize().map_err(at(path))?;
    walk(&real, &Trusted::now())
}

/// Refuses a file that somebody else than root and this user (behind sudo, whoever typed it) has made, can write to, or can replace.
///
/// # Errors
/// Who else can change it, as a clause.
pub fn trusted_file(path: &Path) -> Result<(), String> {
    let found = path.symlink_metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err(if found.is_symlink() { "it is a link" } else { "it is no regular file" }.to_owned());
    }
    let trusted = Trusted::now();
    if !trusted.users.contains(&found.uid()) {
        return Err("it belongs to another user".to_owned());
    }
    if found.mode() & 0o002 != 0 || (found.mode() & 0o020 != 0 && !trusted.groups.contains(&found.gid())) {
        return Err("others can write to it".to_owned());
    }
    let place = path.parent().unwrap_or(path);
    trusted_directory(place).map(drop).map_err(|untrusted| untrusted.to_string())
}

/// Whether it is root, this user, or the one for whom root acts behind sudo.
#[must_use]
pub fn is_trusted_owner(user: u32) -> bool {
    Trusted::now().users.contains(&user)
}

/// Looks at a directory and all above it; what is not there yet is left out.
///
/// # Errors
/// As [`trusted_directory`].
pub fn check(path: &Path) -> Result<(), Untrusted> {
    let absolute = std::path::absolute(path).map_err(at(path))?;
    walk(&deepest(&absolute)?.0, &Trusted::now()).map(drop)
}

/// Opens a directory in which nobody but root and this user can rename or replace anything, made with its parents where it is missing; what
/// is made only this user can enter.
///
/// # Errors
/// As [`trusted_directory`], or it cannot be made.
pub fn made_directory(path: &Path) -> Result<OwnedFd, Untrusted> {
    made(path).map(|(directory, _)| directory)
}

fn made(path: &Path) -> Result<(OwnedFd, PathBuf), Untrusted> {
    let trusted = Trusted::now();
    let absolute = std::path::absolute(path).map_err(at(path))?;
    let (mut here, missing) = deepest(&absolute)?;
    let mut directory = walk(&here, &trusted)?;
    for name in missing {
        here.push(&name);
        match mkdirat(&directory, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(at(&here)(error.into())),
        }
        directory = step(&directory, &here, Path::new(&name), &trusted)?;
    }
    Ok((directory, here))
}

/// Opens a directory that only this user can enter (mode 0700), made with its parents where it is missing.
///
/// # Errors
/// [`Untrusted`]: somebody else's, or open to others, or it cannot be made.
pub fn private_directory(path: &Path) -> Result<OwnedFd, Untrusted> {
    let (directory, here) = made(path)?;
    let found = fstat(&directory).map_err(|error| at(&here)(error.into()))?;
    let others = |why: &str| Untrusted::Others { place: here.clone(), why: why.to_owned() };
    if found.st_uid != geteuid().as_raw() {
        return Err(others(&format!("belongs to user {}", found.st_uid)));
    }
    if found.st_mode & 0o077 != 0 {
        return Err(others("is open to other users; chmod 700 closes it"));
    }
    Ok(directory)
}

/// The part of a path that exists, without links, and the names below it that do not.
fn deepest(path: &Path) -> Result<(PathBuf, Vec<std::ffi::OsString>), Untrusted> {
    let mut missing = Vec::new();
    let mut here = path;
    loop {
        match here.canonicalize() {
            Ok(real) => {
                missing.reverse();
                return Ok((real, missing));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(here)(error)),
        }
        let (Some(parent), Some(name)) = (here.parent(), here.file_name()) else {
            return Err(at(path)(std::io::ErrorKind::NotFound.into()));
        };
        missing.push(name.to_owned());
        here = parent;
    }
}

/// Whose directories count as this user's.
struct Trusted {
    users: Vec<u32>,
    groups: Vec<u32>,
}

impl Trusted {
    /// Root behind sudo acts for the user who typed it, in that user's directories.
    fn now() -> Trusted {
        let me = geteuid();
        let (mut users, mut groups) = (vec![0, me.as_raw()], vec![0, getegid().as_raw()]);
        if me.is_root() {
            let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
            users.extend(number("SUDO_UID"));
            groups.extend(number("SUDO_GID"));
        }
        Trusted { users, groups }
    }

    /// Who else can rename what lies in a directory; `None`: nobody.
    fn others(&self, found: &Stat) -> Option<String> {
        if !self.users.contains(&found.st_uid) {
            return Some(format!("belongs to user {}", found.st_uid));
        }
        if found.st_mode & STICKY != 0 {
            return None;
        }
        if found.st_mode & 0o002 != 0 {
            return Some("can be written by everyone and is not sticky".to_owned());
        }
        (found.st_mode & 0o020 != 0 && !self.groups.contains(&found.st_gid))
            .then(|| format!("can be written by group {}", found.st_gid))
    }
}

/// Opens an absolute path without links from the root on.
fn walk(real: &Path, trusted: &Trusted) -> Result<OwnedFd, Untrusted> {
    let mut here = PathBuf::from("/");
    let mut directory = open("/", READ, Mode::empty()).map_err(|error| at(&here)(error.into()))?;
    for part in real.components() {
        if let Component::Normal(name) = part {
            here.push(name);
            directory = step(&directory, &here, Path::new(name), trusted)?;
        }
    }
    Ok(directory)
}

fn step(parent: &OwnedFd, here: &Path, name: &Path, trusted: &Trusted) -> Result<OwnedFd, Untrusted> {
    let opened = openat(parent, name, READ, Mode::empty());
    let opened = match opened {
        Err(Errno::ACCESS) => openat(parent, name, PASS, Mode::empty()),
        other => other,
    };
    let directory = opened.map_err(|error| at(here)(error.into()))?;
    let found = fstat(&directory).map_err(|error| at(here)(error.into()))?;
    match trusted.others(&found) {
        Some(why) => Err(Untrusted::Others { place: here.to_owned(), why }),
        None => Ok(directory),
    }
}

fn at(place: &Path) -> impl FnOnce(std::io::Error) -> Untrusted {
    let place = place.to_owned();
    move |source| Untrusted::Io { place, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn with_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_missing_directory_is_made_for_this_user_alone() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b");
        private_directory(&path).unwrap();
        private_directory(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        with_mode(&path, 0o750);
        assert!(private_directory(&path).unwrap_err().to_string().ends_with("chmod 700 closes it"));
    }

    #[test]
    fn a_parent_that_others_may_rename_in_is_not_trusted() {
        let base = tempfile::tempdir().unwrap();
        let (shared, inner) = (base.path().join("shared"), base.path().join("shared/inner"));
        std::fs::create_dir_all(&inner).unwrap();
        trusted_directory(&inner).unwrap();
        for (mode, trusted) in [(0o777, false), (0o1777, true), (0o755, true)] {
            with_mode(&shared, mode);
            assert_eq!(trusted_directory(&inner).is_ok(), trusted, "{mode:o}");
            assert_eq!(private_directory(&inner.join("new")).is_ok(), trusted, "{mode:o}");
        }
    }

    #[test]
    fn a_directory_of_another_user_is_not_trusted() {
        let base = tempfile::tempdir().unwrap();
        let theirs = base.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        let mut foreign = rustix::fs::stat(&theirs).unwrap();
        foreign.st_uid = 4242;
        let said = Trusted { users: vec![0], groups: vec![0] }.others(&foreign);
        assert_eq!(said.as_deref(), Some("belongs to user 4242"));
    }

    #[test]
    fn a_link_leads_where_it_leads_and_that_is_judged() {
        let base = tempfile::tempdir().unwrap();
        let open_to_all = base.path().join("open");
        std::fs::create_dir_all(open_to_all.join("inner")).unwrap();
        with_mode(&open_to_all, 0o777);
        let link = base.path().join("link");
        std::os::unix::fs::symlink(open_to_all.join("inner"), &link).unwrap();
        assert!(trusted_directory(&link).unwrap_err().to_string().contains("written by everyone"));
    }
}
