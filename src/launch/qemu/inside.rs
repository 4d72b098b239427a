//! The guest's side: assay as the first process of a kernel.
//!
//! Enters: requests, a line each, over the serial port. Leaves: replies. Each is answered by a fresh agent, as on a host.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rustix::mount::{MountFlags, mount};

use super::channel::{BEAT, FromGuest, PORT, line};
use super::{initramfs, modprobe};
use crate::launch::{LaunchError, Launcher, Local, Reply, Request};
use crate::target::{MARK, WorkDirectory};

/// Where programs are.
const SEARCHED: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Plays the part of init or modprobe when started as one of these in a guest; returns the exit code, or `None` to a program
/// that was started by a user.
#[must_use]
pub fn guest_part() -> Option<u8> {
    // What is not UTF-8 is a user's, and no name of a module.
    let mut arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let name = arguments.next()?;
    if name == "/init" && std::process::id() == 1 {
        return Some(init());
    }
    // In a guest alone is there a link of this name to assay.
    if name.ends_with("/modprobe") {
        let arguments: Vec<String> = arguments.collect();
        let quiet = arguments.iter().any(|word| word == "-q");
        return match modprobe::run(&arguments) {
            Ok(()) => Some(0),
            Err(message) => {
                if !quiet {
                    let _ = writeln!(std::io::stderr(), "modprobe: {message}");
                }
                Some(1)
            }
        };
    }
    None
}

/// Never returns while the guest lives: the kernel would panic.
fn init() -> u8 {
    if std::env::var("PATH").as_deref() != Ok(SEARCHED) {
        // Children find programs by this process's environment, which can be set only for a new program.
        let error = std::process::Command::new("/init")
            .arg0("/init")
            .env_clear()
            .env("PATH", SEARCHED)
            .env("HOME", "/root")
            .exec();
        say(&format!("cannot start again: {error}"));
    }
    if let Err(error) = live() {
        say(&error);
    }
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    1
}

/// A word on the console, where the host looks for the last ones.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "assay: {text}");
}

fn live() -> Result<(), String> {
    for (kind, place) in [
        ("devtmpfs", "/dev"),
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("tmpfs", "/run"),
        ("tmpfs", "/dev/shm"),
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
        ("configfs", "/sys/kernel/config"),
    ] {
        let _ = std::fs::create_dir_all(place);
        // What a kernel does not have is missed by whoever needs it.
        let _ = mount(kind, place, kind, MountFlags::empty(), None);
    }
    // Commands that name files relative to it find them.
    if let Ok(directory) = std::fs::read_to_string(initramfs::DIRECTORY) {
        std::env::set_current_dir(&directory).map_err(|error| format!("{directory}: {error}"))?;
    }
    let wanted = std::fs::read_to_string(initramfs::LOADED).unwrap_or_default();
    let missing: Vec<String> = wanted.lines().filter_map(|name| modprobe::load(name, "").err()).collect();
    missing.iter().for_each(|message| say(message));
    if missing.is_empty() {
        wait_for_disks(Path::new("/sys/block"));
    }
    let port = port()?;
    let failed = |error| format!("{}: {error}", port.display());
    // A port can be opened once only; its two directions share it.
    let writer = OpenOptions::new().read(true).write(true).open(&port).map_err(failed)?;
    let reader = writer.try_clone().map_err(failed)?;
    converse(reader, writer, missing)
}

/// Loading a driver does not mean that its disks are there: nvme and nd_pmem look for them on threads of their own. One that does not
/// come within ten seconds is missed by the trial that wants it, in its own words.
fn wait_for_disks(blocks: &Path) {
    let wanted = std::fs::read_to_string(initramfs::DISKS).unwrap_or_default();
    for _ in 0..500 {
        if are_there(&wanted, &disks(blocks)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    say(&format!("of these disks some did not come: {}", wanted.trim().replace('\n', ", ")));
}

/// Names of the disks that have a size and a file below `/dev`.
fn disks(blocks: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(blocks).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let usable = |name: &String| {
        let size = std::fs::read_to_string(blocks.join(name).join("size")).unwrap_or_default();
        !matches!(size.trim(), "" | "0") && Path::new("/dev").join(name).exists()
    };
    names.filter(usable).collect()
}

/// Whether there are at least as many of each name as a line `nvme 2` says.
fn are_there(wanted: &str, found: &[String]) -> bool {
    wanted.lines().filter_map(|line| line.split_once(' ')).all(|(prefix, count)| {
        let has = found.iter().filter(|name| name.starts_with(prefix)).count();
        count.parse().is_ok_and(|count: usize| has >= count)
    })
}

/// The device of the port, which may be there a moment after its driver.
fn port() -> Result<PathBuf, String> {
    for _ in 0..100 {
        for entry in std::fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            let name = std::fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim() == PORT {
                return Ok(Path::new("/dev").join(entry.file_name()));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Err("there is no virtio serial port named assay: the kernel has no virtio_console, or no virtio_pci"
        .to_owned())
}

fn converse(reader: File, writer: File, missing: Vec<String>) -> Result<(), String> {
    let writer = Arc::new(Mutex::new(writer));
    let tell = |writer: &Mutex<File>, message: &FromGuest| match writer.lock() {
        Ok(mut port) => port.write_all(&line(message)).map_err(|error| format!("the port: {error}")),
        Err(_) => Err("the port is lost".to_owned()),
    };
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime_s = uptime.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
    tell(&writer, &FromGuest::Ready { uptime_s, missing })?;
    let beating = Arc::clone(&writer);
    std::thread::spawn(move || {
        while tell(&beating, &FromGuest::Beat).is_ok() {
            std::thread::sleep(BEAT);
        }
    });
    let mut local = Local::new().map_err(|error| format!("cannot find my own program: {error}"))?;
    let never = AtomicBool::new(false);
    for text in BufReader::new(reader).split(b'\n') {
        let text = text.map_err(|error| format!("the port: {error}"))?;
        let request: Request =
            serde_json::from_slice(&text).map_err(|error| format!("the request is not one: {error}"))?;
        let reply = match work_directory(&request).map(|()| local.launch(&request, &never)) {
            Ok(Ok(reply)) => reply,
            Ok(Err(LaunchError::Cancelled { .. })) => Reply::failed("interrupted", String::new()),
            Ok(Err(error)) => Reply::failed(error.to_string(), String::new()),
            Err(error) => Reply::failed(error, String::new()),
        };
        tell(&writer, &FromGuest::Reply(Box::new(reply)))?;
    }
    Ok(())
}

/// The directory that a host makes before its first trial; here it lies in memory and lasts as long as the guest.
fn work_directory(request: &Request) -> Result<(), String> {
    let work = request.target.setup.as_ref().map_or(&request.target.directory, |setup| &setup.work);
    if work.join(MARK).exists() {
        return Ok(());
    }
    if let Some(parent) = work.parent() {
        std::fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    }
    // It ends with the guest, not with this scope.
    WorkDirectory::create(work).map(std::mem::forget).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_disks_are_waited_for() {
        let wanted = "vd 1\nnvme 2\npmem 0\n";
        let are_there =
            |found: &[&str]| are_there(wanted, &found.iter().map(|&name| name.into()).collect::<Vec<_>>());
        assert!(!are_there(&["vda", "nvme0n1", "sda"]));
        assert!(are_there(&["vda", "nvme0n1", "nvme1n1"]));
        assert!(!are_there(&["nvme0n1", "nvme1n1"]));
        let blocks = tempfile::tempdir().unwrap();
        for (name, size) in [("null", "0\n"), ("zero", "8\n"), ("no-such-device", "8\n")] {
            std::fs::create_dir(blocks.path().join(name)).unwrap();
            std::fs::write(blocks.path().join(name).join("size"), size).unwrap();
        }
        assert_eq!(disks(blocks.path()), ["zero"], "one without a size, one without a file in /dev");
    }
}
