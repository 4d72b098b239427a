//! One thing that was made or changed, with what makes it recognisable as assay's own.
//!
//! Enters: what is about to be made. Leaves: a value for the record; [`super::undo`] undoes it. A number or a path alone is never enough
//! to undo anything: numbers are given out again, and paths lead elsewhere when somebody renames a directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxFlags, openat, statat, statx};
use serde::{Deserialize, Serialize};

use super::error::TargetError;
use super::identity::DeviceIdentity;
use super::{loop_users, mapped_device};

/// The file in a work directory that says whose it is, for people and for comparison with the record.
pub const MARK: &str = ".assay-work";
/// How its text begins; the digits of the run follow.
pub(super) const MARK_BEGINS: &str = "made by assay; `assay cleanup` removes it\n";

/// One file or directory, whatever it is called. A filesystem gives an inode's number out again as soon as it is free, so that the time at
/// which it was made belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inode {
    /// The filesystem's device number.
    pub(super) device: u64,
    /// The inode's number in it.
    pub(super) number: u64,
    /// When it was made: seconds and nanoseconds; `None` where the filesystem does not keep that.
    pub(super) born: Option<(i64, u32)>,
}

/// What is known of a path itself, not of what a link leads to.
pub(super) struct Seen {
    pub(super) inode: Inode,
    pub(super) is_file: bool,
    pub(super) links: u32,
    pub(super) owner: u32,
    pub(super) bytes: u64,
    /// When it was made or, where that is not kept, last changed.
    pub(super) since: (i64, u32),
}

impl Seen {
    /// Of a name in an open directory; of the directory itself, where the name is empty.
    pub(super) fn at(directory: impl AsFd, name: &OsStr) -> rustix::io::Result<Seen> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let found = statx(directory, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        let kept = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let born = kept.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec));
        let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
        Ok(Seen {
            inode: Inode { device, number: found.stx_ino, born },
            is_file: FileType::from_raw_mode(found.stx_mode.into()).is_file(),
            links: found.stx_nlink,
            owner: found.stx_uid,
            bytes: found.stx_size,
            since: born.unwrap_or((found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec)),
        })
    }

    /// Of a path.
    pub(super) fn of(path: &Path) -> std::io::Result<Seen> {
        Ok(Seen::at(rustix::fs::CWD, path.as_os_str())?)
    }

    /// Of what is open.
    pub(super) fn opened(file: impl AsFd) -> std::io::Result<Seen> {
        Ok(Seen::at(file, OsStr::new(""))?)
    }
}

/// One thing that is made, or was there and was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Made {
    /// Loop devices on this file, and the file.
    Loop {
        /// The backing file.
        image: PathBuf,
        /// Which file that is, once it is made; nothing is attached before.
        inode: Option<Inode>,
    },
    /// A zram device.
    Zram {
        /// Those that were there before.
        before: Vec<u32>,
        /// Its number, once known.
        number: Option<u32>,
        /// Whether it was added; else one that was there, and unused, is reset.
        added: bool,
        /// Its size.
        bytes: u64,
        /// The kernel's number for this disk and no other (`diskseq`, since Linux 5.15), once known.
        sequence: Option<u64>,
    },
    /// A null_blk device of this name in configfs, which has the run's random digits in it.
    NullBlk {
        /// The name.
        name: String,
    },
    /// A device of the device mapper, whose name and uuid have the run's random digits in them.
    Mapped {
        /// The name.
        name: String,
        /// The device below and which disk that is, where it is not of this run's making.
        below: Option<(PathBuf, DeviceIdentity)>,
    },
    /// A module that was loaded.
    Module {
        /// Its name.
        name: String,
        /// Which loading of it that is, once it is loaded; another one is somebody else's.
        #[serde(default)]
        loaded: Option<Inode>,
    },
    /// A filesystem made on a device that is not assay's.
    Filesystem {
        /// The device.
        device: PathBuf,
        /// Which disk that is.
        disk: Option<DeviceIdentity>,
        /// The filesystem's own identity, once it is complete; without it nothing is wiped.
        identity: Option<String>,
    },
    /// A mount.
    Mount {
        /// Where.
        point: PathBuf,
        /// The kernel's number for it and what is mounted, once it is mounted.
        mount: Option<(u64, String)>,
    },
    /// Two settings of which one is 0, of which one was changed.
    Pair {
        /// The amount, the share.
        paths: [PathBuf; 2],
        /// What they said before.
        before: [String; 2],
    },
    /// A setting that was changed.
    Knob {
        /// The file.
        path: PathBuf,
        /// What it said before.
        before: String,
        /// The `diskseq` of the disk whose setting it is.
        sequence: Option<u64>,
    },
}

/// Names of all actions that undoing knows, as they stand in a record.
pub const UNDO_ACTIONS: [&str; 9] =
    ["loop", "zram", "null_blk", "mapped", "module", "filesystem", "mount", "pair", "knob"];

impl Made {
    /// The name of the step that makes it.
    pub(super) fn step(&self) -> &'static str {
        match self {
            Made::Loop { .. } => "loop",
            Made::Zram { .. } => "zram",
            Made::NullBlk { .. } => "null_blk",
            Made::Mapped { .. } => "dm",
            Made::Module { .. } => "module",
            Made::Filesystem { .. } => "filesystem",
            Made::Mount { .. } => "mount",
            Made::Knob { .. } | Made::Pair { .. } => "knob",
        }
    }

    /// Whether it outlives the kernel that has made it.
    pub(super) fn is_on_disk(&self) -> bool {
        matches!(self, Made::Loop { .. } | Made::Filesystem { .. })
    }

    /// Whether nothing is there any more that undoing could change.
    pub(super) fn is_gone(&self) -> bool {
        let in_sys = |place: &str, name: &str| is_nothing(&Path::new("/sys").join(place).join(name));
        match self {
            Made::Loop { image, .. } => is_nothing(image) && !loop_users::is_named(image),
            Made::Zram { number: Some(number), .. } => in_sys("block", &format!("zram{number}")),
            Made::Zram { .. } => in_sys("module", "zram"),
            // Without the module nothing is in configfs, wherever that is mounted.
            Made::NullBlk { .. } => in_sys("module", "null_blk"),
            Made::Mapped { name, .. } => !mapped_device::is_there(name),
            Made::Module { name, .. } => in_sys("module", name),
            Made::Filesystem { device, .. } => is_nothing(device),
            Made::Mount { point, .. } => is_nothing(point),
            Made::Pair { paths, .. } => paths.iter().all(|path| is_nothing(path)),
            Made::Knob { path, .. } => is_nothing(path),
        }
    }

    /// What undoing it does, for people.
    pub(super) fn undoing(&self) -> String {
        match self {
            Made::Loop { image, .. } => {
                format!("detach the loop device of {} and remove it", image.display())
            }
            Made::Zram { number: Some(number), added: true, .. } => format!("remove /dev/zram{number}"),
            Made::Zram { number: Some(number), .. } => format!("reset /dev/zram{number}"),
            Made::Zram { .. } => "remove a zram device that has no size yet".to_owned(),
            Made::NullBlk { name } => format!("remove the null_blk device {name}"),
            Made::Mapped { name, below: None } => format!("remove the device mapper's {name}"),
            Made::Mapped { name, below: Some((below, _)) } => {
                format!("remove the device mapper's {name} and clear the ends of {}", below.display())
            }
            Made::Module { name, .. } => format!("unload the module {name}"),
            Made::Filesystem { device, .. } => format!("wipe the filesystem made on {}", device.display()),
            Made::Mount { point, .. } => format!("unmount {}", point.display()),
            Made::Pair { paths, before } => {
                let [amount, share] = paths;
                format!(
                    "write {} to {} and {} to {}",
                    before[0],
                    amount.display(),
                    before[1],
                    share.display()
                )
            }
            Made::Knob { path, before, .. } => format!("write {before} to {}", path.display()),
        }
    }
}

/// Whether nothing has this name; what cannot be looked at may be there.
pub(super) fn is_nothing(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// A file that was made for a job that names it, outside the work directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnFile {
    /// Without links in the path.
    pub(super) path: PathBuf,
    /// Which file that is, once it is made.
    pub(super) inode: Option<Inode>,
}

/// A work directory: where, and which directory that is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorkPlace {
    /// Without links in the path.
    pub(super) path: PathBuf,
    inode: Option<Inode>,
    /// Random digits that its mark has, too.
    token: String,
}

/// What is at a work directory's path.
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// The directory that was made.
    Ours(OwnedFd),
    /// Something else: why.
    Foreign(String),
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl WorkPlace {
    /// One that is about to be made.
    pub(super) fn planned(path: &Path) -> Result<WorkPlace, TargetError> {
        let token = crate::sys::random_digits().map_err(TargetError::io("cannot draw digits for", path))?;
        Ok(WorkPlace { path: path.to_owned(), inode: None, token })
    }

    /// Remembers which directory was made.
    pub(super) fn now_made(&mut self) -> std::io::Result<()> {
        self.inode = Some(Seen::of(&self.path)?.inode);
        Ok(())
    }

    /// Puts the mark into the directory.
    pub(super) fn mark(&self) -> std::io::Result<()> {
        let opened = rustix::fs::open(&self.path, DIRECTORY, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mark = openat(&opened, MARK, flags, Mode::from_raw_mode(0o644))?;
        let text = format!("{MARK_BEGINS}{}\n", self.token);
        std::io::Write::write_all(&mut std::fs::File::from(mark), text.as_bytes())
    }

    /// Looks at what is there now.
    pub(super) fn look(&self) -> Result<Found, TargetError> {
        let opened = match rustix::fs::open(&self.path, DIRECTORY, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(Found::Nothing),
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Ok(Found::Foreign("it is not a directory".to_owned()));
            }
            other => other.map_err(|error| TargetError::io("cannot open", &self.path)(error.into()))?,
        };
        let now = Seen::opened(&opened).map_err(TargetError::io("cannot look at", &self.path))?.inode;
        let ours = match self.inode {
            Some(inode) if inode != now => Err("it is another directory than the one that was made"),
            // Killed before it was written down, or while it was removed: with nothing in it nothing is lost.
            _ if is_empty(&opened) => Ok(()),
            Some(_) if self.carries_the_mark(&opened) => Ok(()),
            _ => Err("it does not carry the mark of this run"),
        };
        Ok(match ours {
            Ok(()) => Found::Ours(opened),
            Err(why) => Found::Foreign(why.to_owned()),
        })
    }

    /// Whether the mark in it has the same digits.
    fn carries_the_mark(&self, directory: &OwnedFd) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let Ok(mark) = openat(directory, MARK, flags, Mode::empty()) else { return false };
        let mut start = [0; 256];
        let length = rustix::io::read(&mark, &mut start).unwrap_or(0);
        let text = start[..length].split(|byte| *byte == b'\n').nth(1).map(OsStr::from_bytes);
        text.is_some_and(|text| text == OsStr::new(&self.token))
    }
}

/// Whether nothing is in a directory, or a mark into which nothing could be written.
fn is_empty(directory: &OwnedFd) -> bool {
    let blank = |name: &std::ffi::CStr| {
        name.to_bytes() == MARK.as_bytes()
            && statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| found.st_size == 0)
    };
    let nothing = |name: &std::ffi::CStr| matches!(name.to_bytes(), b"." | b"..") || blank(name);
    Dir::read_from(directory)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| nothing(entry.file_name()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each; a new kind does not compile without a place here.
    fn one_of_each() -> Vec<Made> {
        let path = PathBuf::from("/x");
        let mut all = vec![Made::Loop { image: path.clone(), inode: None }];
        while let Some(last) = all.last() {
            let next = match last {
                Made::Loop { .. } => {
                    Made::Zram { before: vec![], number: None, added: true, bytes: 1, sequence: None }
                }
                Made::Zram { .. } => Made::NullBlk { name: "n".to_owned() },
                Made::NullBlk { .. } => Made::Mapped { name: "d".to_owned(), below: None },
                Made::Mapped { .. } => Made::Module { name: "m".to_owned(), loaded: None },
                Made::Module { .. } => Made::Filesystem { device: path.clone(), disk: None, identity: None },
                Made::Filesystem { .. } => Made::Mount { point: path.clone(), mount: None },
                Made::Mount { .. } => Made::Pair {
                    paths: [path.clone(), path.clone()],
                    before: ["0".to_owned(), "1".to_owned()],
                },
                Made::Pair { .. } => {
                    Made::Knob { path: path.clone(), before: "1".to_owned(), sequence: None }
                }
                Made::Knob { .. } => break,
            };
            all.push(next);
        }
        all
    }

    #[test]
    fn every_action_is_listed_and_said() {
        let names: Vec<String> = one_of_each()
            .iter()
            .map(|made| {
                serde_json::to_value(made).unwrap().as_object().unwrap().keys().next().unwrap().clone()
            })
            .collect();
        assert_eq!(names, UNDO_ACTIONS);
        assert!(one_of_each().iter().all(|made| made.undoing().contains(' ')));
    }

    #[test]
    fn only_the_directory_that_was_made_is_recognised() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("work");
        let mut place = WorkPlace::planned(&path).unwrap();
        assert!(matches!(place.look().unwrap(), Found::Nothing));
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(place.look().unwrap(), Found::Ours(_)), "empty, and killed before it was known");
        place.now_made().unwrap();
        std::fs::write(path.join(MARK), "").unwrap();
        assert!(matches!(place.look().unwrap(), Found::Ours(_)), "the disk was full");
        std::fs::remove_file(path.join(MARK)).unwrap();
        place.mark().unwrap();
        assert!(matches!(place.look().unwrap(), Found::Ours(_)));
        // Renamed away, and another with the very same mark in its place.
        let moved = base.path().join("moved");
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::copy(moved.join(MARK), path.join(MARK)).unwrap();
        assert!(matches!(place.look().unwrap(), Found::Foreign(why) if why.contains("another directory")));
        std::fs::remove_dir_all(&path).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
        assert!(matches!(place.look().unwrap(), Found::Foreign(why) if why.contains("not a directory")));
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&moved, &path).unwrap();
        std::fs::write(path.join(MARK), "made by assay\n0\n").unwrap();
        assert!(matches!(place.look().unwrap(), Found::Foreign(why) if why.contains("the mark")));
    }
}
