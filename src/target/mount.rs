//! Filesystems mounted and unmounted through the kernel's mount API (fsopen(2), fsconfig(2), fsmount(2)).
//!
//! Enters: a filesystem, a device, options as mount(8) takes them. Leaves: a mount, or the kernel's own words about what it
//! did not take: from the context's log, and from the kernel's log where a filesystem writes only there.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

use super::busy::while_busy;
use super::error::TargetError;
use crate::host::KernelLog;

/// Levels of the kernel's log (syslog(2)).
const WARNING: u32 = 4;
const INFORMATION: u32 = 6;
/// Lines of the kernel's log that are shown at most.
const MOST_LINES: usize = 8;

/// Options that belong to the mount and not to the filesystem (mount_setattr(2)); empty: the default.
fn attribute(option: &str) -> Option<MountAttrFlags> {
    Some(match option {
        "nosuid" => MountAttrFlags::MOUNT_ATTR_NOSUID,
        "nodev" => MountAttrFlags::MOUNT_ATTR_NODEV,
        "noexec" => MountAttrFlags::MOUNT_ATTR_NOEXEC,
        "noatime" => MountAttrFlags::MOUNT_ATTR_NOATIME,
        "strictatime" => MountAttrFlags::MOUNT_ATTR_STRICTATIME,
        "nodiratime" => MountAttrFlags::MOUNT_ATTR_NODIRATIME,
        "nosymfollow" => MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW,
        "defaults" | "rw" | "suid" | "dev" | "exec" | "relatime" | "atime" | "diratime" | "async" => {
            MountAttrFlags::empty()
        }
        _ => return None,
    })
}

/// A filesystem being configured, with the place in the kernel's log where that began.
struct Context {
    fs: &'static str,
    fd: OwnedFd,
    log: Option<KernelLog>,
    attributes: MountAttrFlags,
}

impl Context {
    fn open(fs: &'static str, options: &[String]) -> Result<Context, TargetError> {
        let log = KernelLog::from_now();
        let fd = fsopen(fs, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|error| {
            TargetError::unavailable(
                format!("cannot mount {fs}: {}", std::io::Error::from(error)),
                format!("{} (as root)", crate::host::missing_driver(fs)),
            )
        })?;
        let mut context = Context { fs, fd, log, attributes: MountAttrFlags::empty() };
        for option in options {
            match attribute(option) {
                Some(attribute) => context.attributes |= attribute,
                None => context.option(option)?,
            }
        }
        Ok(context)
    }

    fn option(&mut self, option: &str) -> Result<(), TargetError> {
        let set = match option.split_once('=') {
            Some((key, value)) => fsconfig_set_string(&self.fd, key, value),
            None => fsconfig_set_flag(&self.fd, option),
        };
        set.map_err(|error| self.refused(&format!("mount option {option} is refused"), error))
    }

    /// The failure with the kernel's words.
    fn refused(&mut self, what: &str, error: rustix::io::Errno) -> TargetError {
        let mut words = self.messages();
        words.extend(self.kernel_lines(INFORMATION));
        let fs = self.fs;
        let said = words.first().cloned().unwrap_or_else(|| std::io::Error::from(error).to_string());
        TargetError::Failed {
            reason: format!("{what}: {said}"),
            command: String::new(),
            output: words.join("\n"),
            hint: format!("man 5 {fs}, or the kernel's Documentation, lists the mount options of {fs}"),
        }
    }

    /// Each read of the context gives one message: `e `, `w ` or `i ` and the text.
    fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        let mut buffer = [0_u8; 1024];
        while let Ok(length) = rustix::io::read(&self.fd, &mut buffer) {
            if length == 0 || messages.len() == MOST_LINES {
                break;
            }
            let text = String::from_utf8_lossy(&buffer[..length]).trim().to_owned();
            let text =
                text.strip_prefix(|c| "ewi".contains(c)).map_or(text.clone(), |rest| rest.trim().to_owned());
            messages.push(text);
        }
        messages
    }

    /// What this filesystem has written to the kernel's log since, at this level or a graver one.
    fn kernel_lines(&mut self, level: u32) -> Vec<String> {
        let records = self.log.as_mut().map(KernelLog::records).unwrap_or_default();
        let own = |text: &str| text.to_lowercase().contains(self.fs);
        let mut lines: Vec<_> = records
            .into_iter()
            .filter(|record| record.level <= level && own(&record.text))
            .take(MOST_LINES)
            .collect();
        // The gravest first: that is why it failed.
        lines.sort_by_key(|record| record.level);
        lines.into_iter().map(|record| record.text).collect()
    }
}

/// Whether the kernel knows the filesystem and its options; nothing is mounted. Some options are judged only when they
/// meet a device.
pub(super) fn rehearse(fs: &'static str, options: &[String]) -> Result<(), TargetError> {
    Context::open(fs, options).map(drop)
}

/// Mounts `device` (none for tmpfs) at `point`; returns what the kernel warned of, as when it leaves an option out.
pub(super) fn mount(
    fs: &'static str,
    device: Option<&Path>,
    options: &[String],
    point: &Path,
) -> Result<Vec<String>, TargetError> {
    let mut context = Context::open(fs, options)?;
    let source = device.map_or_else(|| "assay".into(), |path| path.to_string_lossy());
    let what = format!("cannot mount {fs} from {source}");
    let made = fsconfig_set_string(&context.fd, "source", source.as_ref())
        .and_then(|()| fsconfig_create(&context.fd));
    made.map_err(|error| context.refused(&with_options(&what, options), error))?;
    let mounted = fsmount(&context.fd, FsMountFlags::FSMOUNT_CLOEXEC, context.attributes)
        .and_then(|mounted| move_mount(&mounted, "", CWD, point, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH));
    mounted.map_err(|error| context.refused(&with_options(&what, options), error))?;
    let mut warnings = context.messages();
    warnings.extend(context.kernel_lines(WARNING));
    Ok(warnings.into_iter().map(|said| format!("the kernel said on mounting: {said}")).collect())
}

fn with_options(what: &str, options: &[String]) -> String {
    if options.is_empty() { what.to_owned() } else { format!("{what} with {}", options.join(",")) }
}

/// Unmounts everything at or below a directory, the last first; a busy one is named with who keeps it so.
pub(super) fn unmount_below(directory: &Path) -> Result<(), TargetError> {
    for point in crate::host::mounts_below(directory).iter().rev() {
        let tried = while_busy(|| match unmount(point, UnmountFlags::empty()) {
            // Gone meanwhile.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => Ok(()),
            other => other.map_err(Into::into),
        });
        if let Err(error) = tried {
            let users = crate::host::users_of(point);
            let by = if users.is_empty() { String::new() } else { format!(", used by {}", users.join(", ")) };
            return Err(TargetError::failed(format!("cannot unmount {}: {error}{by}", point.display())));
        }
    }
    Ok(())
}
