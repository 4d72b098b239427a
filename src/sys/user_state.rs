//! What assay keeps for a user from one day to the next: `/var/lib/assay` for root, `~/.local/state/assay` for others (XDG base
//! directories). `ASSAY_STATE_DIR` names another place.
//!
//! Enters: nothing. Leaves: a secret that only this user can read, made when it is first asked for.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::private_directory::{Untrusted, private_directory};
use super::random::{random_bytes, random_digits};

const VARIABLE: &str = "ASSAY_STATE_DIR";
const SECRET: &str = "secret";
const BYTES: usize = 32;

/// Where it is; `None`: this user has no home.
fn place() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(named) = absolute(VARIABLE) {
        return Some(named);
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/assay"));
    }
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("assay"))
}

/// Whether a file of that name in the place is the secret, or one that is being made.
#[must_use]
pub fn is_kept(name: &str) -> bool {
    name.strip_prefix(SECRET).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// 32 random bytes, always the same for this user on this machine.
///
/// # Errors
/// [`Untrusted`]: somebody else can change the place, or it cannot be written.
pub fn user_secret() -> Result<[u8; BYTES], Untrusted> {
    let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "this user has no home directory");
    let place = place().ok_or_else(|| Untrusted::Io { place: PathBuf::from("~"), source: missing() })?;
    let failed = |source: std::io::Error| Untrusted::Io { place: place.join(SECRET), source };
    let directory = private_directory(&place)?;
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if let Ok(file) = openat(&directory, SECRET, read, Mode::empty()) {
        return whole(File::from(file)).map_err(failed);
    }
    let secret = random_bytes::<BYTES>().map_err(failed)?;
    // Made aside and put in place whole. Of two that do so at once the first one wins, and both read what is there.
    let aside = format!("{SECRET}.{}", random_digits().map_err(failed)?);
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(&directory, &aside, new, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(made.map_err(|error| failed(error.into()))?);
    let placed = file
        .write_all(&secret)
        .and_then(|()| file.sync_all())
        .and_then(|()| linked(&directory, &aside).map_err(Into::into));
    let _ = unlinkat(&directory, &aside, AtFlags::empty());
    placed.map_err(failed)?;
    let file = openat(&directory, SECRET, read, Mode::empty()).map_err(|error| failed(error.into()))?;
    whole(File::from(file)).map_err(failed)
}

/// Gives the file its name unless another has it.
fn linked(directory: &std::os::fd::OwnedFd, aside: &str) -> rustix::io::Result<()> {
    match linkat(directory, aside, directory, SECRET, AtFlags::empty()) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        // Filesystems without links.
        Err(_) => renameat(directory, aside, directory, SECRET),
    }
}

fn whole(mut file: File) -> std::io::Result<[u8; BYTES]> {
    let found = file.metadata()?;
    let mine = found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    if !mine || found.mode() & 0o077 != 0 {
        return Err(std::io::Error::other("it is not this user's alone; remove it"));
    }
    let mut secret = [0; BYTES];
    file.read_exact(&mut secret)?;
    Ok(secret)
}
