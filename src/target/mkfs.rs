//! Filesystems made by their own mkfs, recognised, and wiped from devices that are not assay's.
//!
//! Enters: a filesystem, a device, arguments. Leaves: the filesystem, or what mkfs said.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::TargetError;
use crate::catalog::{Filesystem, Mkfs, Program};

/// Bytes at either end that carry every signature assay looks for.
const ENDS: u64 = 1 << 20;
/// btrfs keeps a second superblock here.
const BTRFS_MIRROR: u64 = 64 << 20;

/// Whether the program is here.
pub(super) fn obstacle(fs: Filesystem) -> Option<TargetError> {
    let Program { name: program, package } = fs.mkfs()?.program;
    crate::sys::find_system_program(program).is_none().then(|| {
        TargetError::unavailable(
            format!("there is no {program} to make {} with", fs.name()),
            format!("install {package} (Debian, Ubuntu: apt-get install {package})"),
        )
    })
}

/// Makes the filesystem; returns the command and the tool's version.
pub(super) fn make(
    fs: Filesystem,
    arguments: &[String],
    device: &Path,
) -> Result<(String, String), TargetError> {
    let Some(mkfs) = fs.mkfs() else { return Ok((String::new(), String::new())) };
    let program = program(mkfs);
    said(mkfs, arguments, device).map(|(command, _)| (command, version(&program)))
}

fn program(mkfs: Mkfs) -> PathBuf {
    let name = mkfs.program.name;
    crate::sys::find_system_program(name).unwrap_or_else(|| PathBuf::from(name))
}

/// Runs mkfs; returns the command, and what it printed.
pub(super) fn said(mkfs: Mkfs, arguments: &[String], device: &Path) -> Result<(String, String), TargetError> {
    let (name, program) = (mkfs.program.name, program(mkfs));
    let shown = device.to_string_lossy();
    let words = std::iter::once(name).chain(arguments.iter().map(String::as_str)).chain([shown.as_ref()]);
    let command = shlex::try_join(words).unwrap_or_default();
    let output = run(Command::new(&program).args(arguments).arg(device))
        .map_err(TargetError::io("cannot start", &program))?;
    if output.status.success() {
        return Ok((command, String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    let mut words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.push_str(&String::from_utf8_lossy(&output.stderr));
    let words = words.trim().to_owned();
    let said = telling(&output).join("; ");
    Err(TargetError::Failed {
        reason: format!("{command} failed ({}): {said}{}", output.status, size_of(device)),
        command,
        output: words,
        hint: format!("man {name} lists its arguments; --target mkfs=default goes without any"),
    })
}

/// Lines of a failed mkfs that say why: those before its list of all options, without its name and version.
pub(super) fn telling(output: &std::process::Output) -> Vec<String> {
    /// Lines told.
    const MOST: usize = 3;
    const BANNERS: [&str; 3] = ["mke2fs 1.", "btrfs-progs v", "F2FS-tools:"];
    let of = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let said = text.lines().map(str::trim).take_while(|line| !begins_usage(line));
        let telling = said.filter(|line| {
            let banner = BANNERS.iter().any(|start| line.starts_with(start)) || line.starts_with("See http");
            !line.is_empty() && !banner
        });
        telling.map(str::to_owned).take(MOST).collect()
    };
    let mut said = of(&output.stderr);
    if said.is_empty() {
        said = of(&output.stdout);
    }
    said
}

/// Whether a program lists all its options from this line on.
#[must_use]
pub fn begins_usage(line: &str) -> bool {
    line.trim_start().get(..6).is_some_and(|start| start.eq_ignore_ascii_case("usage:"))
}

/// What was given, in words: what a filesystem needs at least is mkfs's to say.
fn size_of(device: &Path) -> String {
    let end = File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0)));
    end.map_or_else(|_| String::new(), |bytes| format!("; {} has {bytes} bytes", device.display()))
}

/// Its output; it ends with this process.
pub(super) fn run(command: &mut Command) -> std::io::Result<std::process::Output> {
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    #[expect(unsafe_code, reason = "pre_exec is the only way to set a parent-death signal before exec")]
    // SAFETY: the closure makes one async-signal-safe system call and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
                .map_err(Into::into)
        });
    }
    command.output()
}

/// The first line of what `-V` prints, wherever it prints it.
fn version(program: &Path) -> String {
    let Ok(output) = run(Command::new(program).arg("-V")) else { return String::new() };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// The major and the minor number of the mkfs that is here; `None`: there is none, or it does not say.
#[must_use]
pub fn mkfs_release(fs: Filesystem) -> Option<(u32, u32)> {
    let program = crate::sys::find_system_program(fs.mkfs()?.program.name)?;
    release_in(&version(&program))
}

/// 5 and 19 in `mkfs.xfs version 5.19.0-rc1`, 6 and 2 in `mkfs.btrfs, part of btrfs-progs v6.2`.
fn release_in(said: &str) -> Option<(u32, u32)> {
    let starts_with_digit = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = said.split_whitespace().map(|word| word.strip_prefix('v').unwrap_or(word));
    let release = words.find(starts_with_digit)?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let (major, minor) = (numbers.next()?, numbers.next()?);
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The identity the filesystem on a device gave itself, as hexadecimal digits.
pub(super) fn identity(fs: Filesystem, device: &Path) -> Option<String> {
    let offset = fs.mkfs()?.identity_at;
    let mut file = File::open(device).ok()?;
    let mut bytes = [0_u8; 16];
    file.seek(SeekFrom::Start(offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{} {digits}", fs.name()))
}

/// The identity of what mkfs put on a device besides the filesystem's own. A log of XFS has none of its own, and at the place of one a
/// pattern that all new logs have: each of its records names the filesystem that it is of.
pub(super) fn identity_beside(fs: Filesystem, device: &Path) -> Option<String> {
    match fs {
        Filesystem::Xfs => xfs_log_of(device).or_else(|| identity(fs, device)),
        _ => identity(fs, device),
    }
}

/// The filesystem that the first record of an XFS log on a device is of (struct `xlog_rec_header`, fs/xfs/libxfs/xfs_log_format.h).
fn xfs_log_of(device: &Path) -> Option<String> {
    const MAGIC: [u8; 4] = 0xfeed_babe_u32.to_be_bytes();
    const UUID_AT: usize = 304;
    const SECTOR: usize = 512;
    /// Records are no further apart than the largest buffer of a log.
    const LOOKED_AT: u64 = 64 << 20;
    let mut file = File::open(device).ok()?.take(LOOKED_AT);
    let mut chunk = vec![0_u8; 1 << 20];
    loop {
        let read = file.read(&mut chunk).ok().filter(|read| *read > 0)?;
        let record = chunk[..read].chunks_exact(SECTOR).find(|sector| sector.starts_with(&MAGIC));
        if let Some(record) = record {
            let digits: String =
                record[UUID_AT..UUID_AT + 16].iter().map(|byte| format!("{byte:02x}")).collect();
            return Some(format!("log of xfs {digits}"));
        }
    }
}

/// Clears the device of the filesystem, or the log, of this identity; one that is not on it, or never was complete, stays. Whether it was there.
pub(super) fn wipe(device: &Path, identity_then: Option<&str>) -> Result<bool, TargetError> {
    // Nobody mounts it between the look and the zeroes.
    let held = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
    let _held = held.map_err(TargetError::io("cannot wipe", device))?;
    let now = |fs: &Filesystem| identity(*fs, device);
    let same = identity_then.is_some_and(|then| {
        Filesystem::ALL.iter().filter_map(now).chain(xfs_log_of(device)).any(|now| now == then)
    });
    if same {
        clear_ends(device).map_err(TargetError::io("cannot wipe", device))?;
    }
    Ok(same)
}

/// Zeroes where filesystems sign a device.
pub(super) fn clear_ends(device: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(device)?;
    let size = file.seek(SeekFrom::End(0))?;
    let zeroes = vec![0_u8; ENDS as usize];
    for (start, length) in [(0, ENDS), (BTRFS_MIRROR, 4096 + 65_536), (size.saturating_sub(ENDS), ENDS)] {
        let length = length.min(size.saturating_sub(start));
        if length == 0 {
            continue;
        }
        file.seek(SeekFrom::Start(start))?;
        file.write_all(&zeroes[..length as usize])?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_known_by_the_filesystem_of_its_records() {
        let place = tempfile::tempdir().unwrap();
        let device = place.path().join("log");
        let mut bytes = vec![1_u8; 4 << 20];
        let mut record = |at: usize, uuid: u8| {
            bytes[at..at + 4].copy_from_slice(&0xfeed_babe_u32.to_be_bytes());
            bytes[at + 304..at + 320].fill(uuid);
            std::fs::write(&device, &bytes).unwrap();
        };
        // Its first sector was written over as the log went round.
        record(10 * 512, 0xab);
        record(2 << 20, 0xcd);
        let identity = identity_beside(Filesystem::Xfs, &device).unwrap();
        assert_eq!(identity, format!("log of xfs {}", "ab".repeat(16)));
        assert!(!wipe(&device, Some(&identity.replace("ab", "ef"))).unwrap());
        assert!(wipe(&device, Some(&identity)).unwrap());
        assert!(std::fs::read(&device).unwrap()[..1 << 20].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn only_the_filesystem_that_was_made_is_wiped() {
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("device");
        let mut bytes = vec![0_u8; 4 << 20];
        bytes[..4].copy_from_slice(b"XFSB");
        bytes[32..48].copy_from_slice(b"0123456789abcdef");
        std::fs::write(&device, &bytes).unwrap();
        let mine = identity(Filesystem::Xfs, &device).unwrap();
        assert_eq!(mine, "xfs 30313233343536373839616263646566");
        wipe(&device, None).unwrap();
        wipe(&device, Some("xfs 00000000000000000000000000000000")).unwrap();
        assert_eq!(std::fs::read(&device).unwrap(), bytes, "another's, or half made: not touched");
        wipe(&device, Some(&mine)).unwrap();
        assert!(std::fs::read(&device).unwrap().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_release_is_read_from_the_version() {
        assert_eq!(release_in("mkfs.xfs version 5.19.0-rc1"), Some((5, 19)));
        assert_eq!(release_in("mkfs.btrfs, part of btrfs-progs v6.2"), Some((6, 2)));
        assert_eq!(release_in("mke2fs 1.47.0 (5-Feb-2023)"), Some((1, 47)));
        assert!(release_in("mkfs.xfs version 5.9.0") < Some((5, 19)), "numbers, not text");
        assert_eq!((release_in("mkfs.xfs"), release_in("version 6"), release_in("")), (None, None, None));
    }

    #[test]
    fn mkfs_that_fails_shows_its_command_and_words() {
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("de vice");
        if obstacle(Filesystem::Ext4).is_some() {
            assert!(std::env::var_os("CI").is_none(), "no mkfs.ext4, and CI skips nothing");
            eprintln!("SKIPPED: no mkfs.ext4");
            return;
        }
        let error = make(Filesystem::Ext4, &["-Z".to_owned()], &device).unwrap_err();
        let TargetError::Failed { command, output, reason, .. } = error else { panic!("{error}") };
        assert_eq!(command, format!("mkfs.ext4 -Z '{}'", device.display()));
        assert!(output.contains("invalid option"), "{output}");
        assert!(reason.contains("invalid option -- 'Z'") && !reason.contains("Usage"), "{reason}");
    }

    #[test]
    fn the_list_of_options_tells_nothing() {
        let said = |stdout: &str, stderr: &str| {
            let status = std::os::unix::process::ExitStatusExt::from_raw(256);
            let output = std::process::Output { status, stdout: stdout.into(), stderr: stderr.into() };
            telling(&output).join("; ")
        };
        assert_eq!(
            said("", "unknown option -m foo=1\nUsage: mkfs.xfs\n[-b size=num]\n"),
            "unknown option -m foo=1"
        );
        assert_eq!(said("", "mke2fs 1.47.0 (5-Feb-2023)\nx.img: too small\n"), "x.img: too small");
        assert_eq!(
            said("\n\tF2FS-tools: mkfs.f2fs Ver: 1.15\n\nError: Wrong features\n\nUsage: mkfs.f2fs\n", "\n"),
            "Error: Wrong features"
        );
        assert_eq!(said("", "usage: all of it\n"), "");
    }
}
