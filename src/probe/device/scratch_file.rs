//! A file without a name, full of bytes that do not compress.
//!
//! Enters: a directory. Leaves: an open file that nobody else can reach and that is gone with the process, however that ends. Where the
//! filesystem has no such files it has a name until it is open, some microseconds; a kill within these leaves an empty file.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::super::memory::Memory;
use super::super::random::Random;

/// Bytes written at once to fill it.
const PIECE: usize = 1 << 20;
/// Names that are tried where a file needs one.
const NAMES: u32 = 16;

/// The file.
pub(super) struct ScratchFile {
    pub(super) file: File,
    pub(super) length: usize,
}

impl ScratchFile {
    /// A file that is read and written past the page cache.
    ///
    /// # Errors
    /// EINVAL where that cannot be; no such directory, no permission, no room.
    pub(super) fn direct(directory: &Path, length: usize) -> std::io::Result<ScratchFile> {
        ScratchFile::filled(open(directory, OFlags::DIRECT)?, length)
    }

    /// A file that is read and written through the page cache.
    ///
    /// # Errors
    /// No such directory, no permission, no room.
    pub(super) fn cached(directory: &Path, length: usize) -> std::io::Result<ScratchFile> {
        ScratchFile::filled(open(directory, OFlags::empty())?, length)
    }

    /// Written from end to end, so that no later write finds a hole or an extent that was never written.
    fn filled(file: File, length: usize) -> std::io::Result<ScratchFile> {
        let piece = Memory::filled(PIECE.min(length), length as u64)?;
        for at in (0..length).step_by(piece.len()) {
            file.write_all_at(&piece, at as u64)?;
        }
        file.sync_all()?;
        Ok(ScratchFile { file, length })
    }

    /// A place for `bytes` that begins at a multiple of `bytes`.
    pub(super) fn place(&self, bytes: usize, random: &mut Random) -> u64 {
        random.below((self.length / bytes) as u64) * bytes as u64
    }
}

fn open(directory: &Path, how: OFlags) -> std::io::Result<File> {
    let (how, mode) = (how | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    // EXCL: it cannot be given a name later.
    match openat(CWD, directory, how | OFlags::TMPFILE | OFlags::EXCL, mode) {
        Ok(file) => Ok(file.into()),
        // No files without a name here, or no direct I/O, in the same words on some kernels.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => named(directory, how, mode),
        Err(error) => Err(error.into()),
    }
}

fn named(directory: &Path, how: OFlags, mode: Mode) -> std::io::Result<File> {
    // What is removed lies in the very directory in which it was made, whatever its path leads to by then.
    let directory = openat(CWD, directory, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for attempt in 0..NAMES {
        let name = format!(".assay-probe-{}-{attempt}", std::process::id());
        match openat(&directory, &name, OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC, mode)
        {
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
            Ok(made) => {
                // Some filesystems make a file and refuse direct I/O then: it is asked for when the file is there.
                let opened = openat(&directory, &name, how | OFlags::NOFOLLOW, mode);
                unlinkat(&directory, &name, AtFlags::empty())?;
                let opened = File::from(opened?);
                // Whoever may rename in the directory could have put another file in its place.
                let is_made = File::from(made).metadata()?.ino() == opened.metadata()?.ino();
                return if is_made { Ok(opened) } else { Err(Errno::EXIST.into()) };
            }
        }
    }
    Err(Errno::EXIST.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_full_and_has_no_name_either_way() {
        let directory = tempfile::tempdir().unwrap();
        let (how, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        for file in [open(directory.path(), OFlags::empty()), named(directory.path(), how, mode)] {
            let scratch = ScratchFile::filled(file.unwrap(), 3 * PIECE / 2).unwrap();
            assert!(scratch.file.metadata().unwrap().len() >= 3 * PIECE as u64 / 2);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
            let mut random = Random(1);
            for _ in 0..1000 {
                let place = scratch.place(4096, &mut random);
                assert!(place.is_multiple_of(4096) && place + 4096 <= scratch.length as u64);
            }
        }
    }
}
