//! Tracepoints as the kernel describes them: their numbers and where their fields lie.
//!
//! Enters: a tracepoint's name, `lock/contention_begin`. Leaves: a [`Tracepoint`]. It must not know what its fields mean.
//!
//! Where nobody has mounted tracefs it is mounted for this process alone, at no place (fsmount(2)): the mount ends with its descriptor.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, DirEntry, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::refused::Refused;

/// Where it is mounted, if it is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracepoint of this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Tracepoint {
    /// The number that perf_event_open(2) takes.
    pub(in crate::observe) id: u64,
    fields: Vec<Field>,
}

/// Where a field lies in the raw bytes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
    /// Not an array, nor a text elsewhere (`__data_loc char[]`).
    is_number: bool,
}

/// The filesystem that describes tracepoints.
pub(in crate::observe) struct Tracefs(OwnedFd);

impl Tracefs {
    /// Opens it where it is mounted, else mounts it for this process alone.
    ///
    /// # Errors
    /// The kernel's word: EPERM without the right to mount.
    pub(in crate::observe) fn open() -> Result<Tracefs, Errno> {
        let directory = |path: &str| {
            let events = Path::new(path).join("events");
            let opened =
                rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            opened.ok().filter(|_| events.is_dir())
        };
        if let Some(found) = PLACES.iter().find_map(|path| directory(path)) {
            return Ok(Tracefs(found));
        }
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(context.as_fd())?;
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags).map(Tracefs)
    }

    /// The tracepoint of this name.
    ///
    /// # Errors
    /// ENOENT: the kernel has none; EACCES: it does not describe it to this user.
    pub(in crate::observe) fn tracepoint(&self, name: &str) -> Result<Tracepoint, Errno> {
        let id = self.text(&format!("events/{name}/id"))?;
        let format = self.text(&format!("events/{name}/format"))?;
        Ok(Tracepoint { id: id.trim().parse().map_err(|_| Errno::INVAL)?, fields: fields(&format) })
    }

    /// The same, with what is said of one that cannot be watched.
    ///
    /// # Errors
    /// The kernel has none of this name, or refuses.
    pub(in crate::observe) fn wanted(&self, name: &str) -> Result<Tracepoint, Refused> {
        self.tracepoint(name).map_err(|errno| match errno {
            Errno::NOENT => Refused::NoTracepoint(name.replace('/', ":")),
            errno => Refused::Kernel(errno),
        })
    }

    /// A text below it, such as `events/block/block_split/format`.
    ///
    /// # Errors
    /// As [`Tracefs::tracepoint`].
    pub(in crate::observe) fn text(&self, path: &str) -> Result<String, Errno> {
        let file = openat(&self.0, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).map_err(|_| Errno::IO)?;
        Ok(text)
    }

    /// The names of the directories in one below it.
    ///
    /// # Errors
    /// As [`Tracefs::tracepoint`].
    pub(in crate::observe) fn directories(&self, path: &str) -> Result<Vec<String>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = Dir::new(openat(&self.0, path, flags, Mode::empty())?)?;
        let named = |entry: DirEntry| {
            let name = entry.file_name().to_str().ok()?;
            (entry.file_type() == FileType::Directory && !name.starts_with('.')).then(|| name.to_owned())
        };
        Ok(entries.filter_map(|entry| named(entry.ok()?)).collect())
    }
}

impl Tracepoint {
    /// The fields of its own that are numbers, in their order.
    pub(in crate::observe) fn numbers(&self) -> impl Iterator<Item = &str> {
        let own = self.fields.iter().filter(|field| field.is_number && !field.name.starts_with("common_"));
        own.map(|field| field.name.as_str())
    }

    /// Where a field of up to eight bytes lies.
    ///
    /// # Errors
    /// ENOENT: the tracepoint has no such field in this kernel.
    pub(in crate::observe) fn field(&self, name: &str) -> Result<Place, Errno> {
        let field = self.fields.iter().find(|field| field.name == name && field.size <= 8);
        field.map(|field| Place { offset: field.offset, size: field.size }).ok_or(Errno::NOENT)
    }
}

/// Where a number lies in the raw bytes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Place {
    offset: usize,
    size: usize,
}

impl Place {
    /// A place that a test knows.
    #[cfg(test)]
    pub(in crate::observe) fn at(offset: usize, size: usize) -> Place {
        Place { offset, size }
    }

    /// The number there, in this machine's order of bytes; `None`: the event is shorter.
    pub(in crate::observe) fn of(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset + self.size)?;
        let mut whole = [0_u8; 8];
        if cfg!(target_endian = "little") {
            whole[..self.size].copy_from_slice(bytes);
        } else {
            whole[8 - self.size..].copy_from_slice(bytes);
        }
        Some(u64::from_ne_bytes(whole))
    }
}

/// The fields of a format file, whose lines are `field:void * lock_addr; offset:8; size:8; signed:0;` with tabs.
fn fields(format: &str) -> Vec<Field> {
    let of_line = |line: &str| {
        let mut parts = line.trim().split(';').map(str::trim);
        let declared = parts.next()?.strip_prefix("field:")?;
        let name = declared.rsplit([' ', '*']).next()?.split('[').next()?;
        let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
        let is_number = !declared.contains('[');
        Some(Field { name: name.to_owned(), offset: number("offset:")?, size: number("size:")?, is_number })
    };
    format.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.18, x86_64.
    const FORMAT: &str = "name: contention_begin\nID: 1234\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:20;\tsize:16;\tsigned:0;\n\n\
        print fmt: \"%p (flags=%s)\", REC->lock_addr, REC->flags\n";

    #[test]
    fn fields_are_found_by_name() {
        let point = Tracepoint { id: 1234, fields: fields(FORMAT) };
        assert_eq!(point.field("lock_addr"), Ok(Place { offset: 8, size: 8 }));
        assert_eq!(point.field("flags"), Ok(Place { offset: 16, size: 4 }));
        assert_eq!(point.field("common_type"), Ok(Place { offset: 0, size: 2 }));
        assert_eq!(point.field("comm"), Err(Errno::NOENT), "no number");
        assert_eq!(point.field("ret"), Err(Errno::NOENT));
        assert_eq!(point.numbers().collect::<Vec<_>>(), ["lock_addr", "flags"]);
    }

    #[test]
    fn numbers_of_any_size_are_read_and_short_events_are_not() {
        let raw = [0x34, 0x12, 0xff, 0, 1, 0, 0, 0];
        let place = |offset, size| Place { offset, size }.of(&raw);
        if cfg!(target_endian = "little") {
            assert_eq!((place(0, 2), place(4, 4)), (Some(0x1234), Some(1)));
        }
        assert_eq!(place(4, 8), None);
    }
}
