//! Debian packages of kernels: unpacked into the cache, never installed.
//!
//! Enters: the path of a package, which anybody may have made. Leaves: a directory with its image and modules, the same for the same
//! content. Of the package only the archive of its files is read, by dpkg-deb; what is taken out of that is [`super::tar`]'s.

use std::io::{BufReader, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::error::GuestError;
use super::{tar, unpacked_before};
use crate::sys::cache;

/// How long a directory that nobody holds may have been made by somebody who is about to.
const ABANDONED: Duration = Duration::from_secs(60);
/// Of what dpkg-deb says.
const MOST_WORDS: u64 = 4096;

/// The directory a package is unpacked in; done once for each content.
pub(super) fn unpacked(package: &Path) -> Result<PathBuf, GuestError> {
    let digest = cache::digest_of(package).map_err(GuestError::unfit("cannot read", package))?;
    let place = cache::directory("kernels")?;
    let root = place.join(&digest);
    if unpacked_before::used(&root) {
        return Ok(root);
    }
    cache::remove_abandoned(&place, ABANDONED);
    // Whole or not there: two assays may unpack the same package at the same time.
    let partial =
        tempfile::tempdir_in(&place).map_err(GuestError::io("cannot make a directory in", &place))?;
    // Held until it has its name: who finds it unlocked may take it for left behind.
    let held = cache::hold(partial.path()).map_err(GuestError::io("cannot lock", partial.path()))?;
    unpack(package, partial.path())?;
    // It has its name when all of it is on the disk: after a power loss the name alone is believed.
    rustix::fs::syncfs(&held)
        .map_err(|error| GuestError::io("cannot write", partial.path())(error.into()))?;
    let partial = partial.keep();
    if let Err(error) = std::fs::rename(&partial, &root) {
        if !root.is_dir() {
            return Err(GuestError::io("cannot make", &root)(error));
        }
        // Another one was faster; its work is as good.
        let _ = std::fs::remove_dir_all(partial);
    }
    // It is held alone, which would be in the way of holding it with others.
    drop(held);
    if !unpacked_before::used(&root) {
        return Err(GuestError::io("cannot open", &root)(ErrorKind::NotFound.into()));
    }
    unpacked_before::prune(&place);
    Ok(root)
}

fn unpack(package: &Path, root: &Path) -> Result<(), GuestError> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--fsys-tarfile").arg(package);
    // A file, not a pipe: nobody reads it meanwhile.
    let mut said =
        tempfile::tempfile().map_err(GuestError::io("cannot make a file in", std::env::temp_dir()))?;
    let errors = said.try_clone().map_err(GuestError::io("cannot read", package))?;
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn();
    let mut child = child.map_err(|_| GuestError::NoProgram {
        program: "dpkg-deb".to_owned(),
        purpose: format!("unpack {}", package.display()),
        hint: "install dpkg, or unpack the package elsewhere and give the path of its vmlinuz".to_owned(),
    })?;
    let command = || format!("dpkg-deb --fsys-tarfile {}", package.display());
    let taken = child.stdout.take().map_or(Ok(()), |archive| tar::unpack(BufReader::new(archive), root));
    // Behind the end of the archive there is nothing to wait for.
    if taken.is_err() {
        let _ = child.kill();
    }
    child.wait().map_err(GuestError::io("cannot read", package))?;
    let mut words = Vec::new();
    let read = said.rewind().and_then(|()| said.take(MOST_WORDS).read_to_end(&mut words));
    read.map_err(GuestError::io("cannot read the words of dpkg-deb about", package))?;
    let said = String::from_utf8_lossy(&words).trim().to_owned();
    match taken {
        // What is no package gives no archive: the program's own words are better. Of what was refused here it may say that
        // its pipe was closed.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && !said.is_empty() => {
            Err(GuestError::Failed { command: command(), output: said })
        }
        Err(error) => Err(GuestError::NoKernel {
            path: package.to_owned(),
            found: format!("no package that can be unpacked: {error}"),
        }),
        Ok(()) => Ok(()),
    }
}
