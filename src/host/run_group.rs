//! A control group (version 2) of a run's own, so that whoever survives can end all of the run's processes at once.
//!
//! Enters: a run's token, processes. Leaves: a group below the caller's, named after the token, while the run lasts. It exists
//! only where it can be made and has no controllers: then it costs nothing and limits nothing. Where there is none, the mark in
//! the environment (`mark.rs`) is all there is.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::roots::text;
use crate::sys::Program;
use crate::sys::spawn_in_group::spawn_in_group;

/// What groups' names begin with.
const PREFIX: &str = "assay-";
/// Groups are looked for no deeper.
const DEEPEST: usize = 16;
/// How long processes that were killed or moved may be counted as members.
const PATIENCE: Duration = Duration::from_secs(1);

/// The group of a run; dropping it removes it, and leaves processes that still live to the group above.
#[derive(Debug)]
pub struct RunGroup {
    path: PathBuf,
}

impl RunGroup {
    /// Makes the group; `None` where that is not possible, or would change what the processes may use.
    #[must_use]
    pub fn create(token: &str) -> Option<RunGroup> {
        let own = own_group()?;
        // Controllers that are passed on would count and limit the new group apart from the caller's.
        if !std::fs::read_to_string(own.join("cgroup.subtree_control")).ok()?.trim().is_empty() {
            return None;
        }
        sweep(&own);
        let path = own.join(format!("{PREFIX}{token}"));
        std::fs::create_dir(&path).ok()?;
        Some(RunGroup { path })
    }

    /// Starts a program inside the group, as [`spawn_in_group`] does; `None` where that cannot be.
    #[must_use]
    pub fn spawn(&self, command: &Command, signal: Signal) -> Option<Program> {
        let open = || File::open(&self.path);
        let group = open().or_else(|_| std::fs::create_dir(&self.path).and_then(|()| open())).ok()?;
        spawn_in_group(command, group.as_fd(), signal).ok()
    }

    /// Moves a process into the group; what it starts from now on is in it, too. Where that fails, its mark is left.
    pub fn add(&self, pid: u32) {
        let write = || std::fs::write(self.path.join("cgroup.procs"), pid.to_string());
        // Between two trials it is empty, and another run may have swept it away.
        let _ = write().or_else(|_| std::fs::create_dir(&self.path).and_then(|()| write()));
    }

    /// The group of a run that this process is in, for an agent whose run is dead: it leaves the group, and the last one
    /// removes it.
    pub fn leave(token: &str) {
        let inside = own_group().filter(|path| is_of(path, token));
        drop(inside.map(|path| RunGroup { path }));
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        dissolve(&self.path);
    }
}

/// Removes groups without members that killed runs have left beside this one's.
fn sweep(above: &Path) {
    for path in subgroups(above) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.strip_prefix(PREFIX).is_some_and(super::mark::is_token) {
            // The kernel keeps one that has members.
            let _ = std::fs::remove_dir(&path);
        }
    }
}

fn is_of(path: &Path, token: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy() == format!("{PREFIX}{token}"))
}

/// Where version 2 is mounted: alone, or beside version 1.
fn base() -> Option<PathBuf> {
    let usual = Path::new("/sys/fs/cgroup");
    let found = [usual.join("unified"), usual.to_owned()];
    found
        .into_iter()
        .find(|path| path.join("cgroup.procs").exists() && path.join("cgroup.controllers").exists())
}

fn own_group() -> Option<PathBuf> {
    let membership = text(Path::new("/proc/self/cgroup"))?;
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
    Some(base()?.join(path.trim_start_matches('/')))
}

/// Kills all of a run's group, unless this process is in it.
pub(super) fn kill(token: &str) {
    for path in groups_of(token) {
        if own_group().is_some_and(|own| own.starts_with(&path)) {
            continue;
        }
        // Since Linux 5.14; before it, the marks are left.
        let _ = std::fs::write(path.join("cgroup.kill"), "1");
    }
}

/// Removes a run's group.
pub(super) fn remove(token: &str) {
    groups_of(token).iter().for_each(|path| dissolve(path));
}

/// Groups of that name; a run may have been started anywhere in the tree.
fn groups_of(token: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level: Vec<PathBuf> = base().into_iter().collect();
    for _ in 0..DEEPEST {
        level = level.iter().flat_map(|path| subgroups(path)).collect();
        found.extend(level.iter().filter(|path| is_of(path, token)).cloned());
    }
    found
}

fn subgroups(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Removes a group and those below it; living members go to the group above.
fn dissolve(path: &Path) {
    subgroups(path).iter().for_each(|below| dissolve(below));
    let Some(above) = path.parent() else { return };
    let begun = Instant::now();
    loop {
        let members = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for member in members.lines() {
            let _ = std::fs::write(above.join("cgroup.procs"), member);
        }
        match std::fs::remove_dir(path) {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Past the capture of a test's output.
    fn not_possible(why: &str) {
        let _ = writeln!(std::io::stderr(), "NOT POSSIBLE HERE: {why}");
    }

    fn made(token: &str) -> Option<RunGroup> {
        let group = RunGroup::create(token);
        if group.is_none() {
            not_possible("no control group can be made");
        }
        group
    }

    #[test]
    fn a_program_begins_inside_its_group() {
        let token = "0123456789abcdef0123456789abc005";
        let Some(group) = made(token) else { return };
        let script = "read line; echo $line $1 $NEW ${HOME:-gone}; cat /proc/self/cgroup; cut -d' ' -f5 /proc/$$/stat >&2; exit 7";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "sh", "argument"]).env("NEW", "new").env_remove("HOME");
        let spawn = || group.spawn(&command, Signal::TERM);
        // Another test may have swept the empty group away between its opening and the start.
        let Some(mut program) = spawn().or_else(spawn) else {
            return not_possible("clone3 into a control group is refused");
        };
        program.stdin.take().unwrap().write_all(b"line\n").unwrap();
        let (mut out, mut errors) = (String::new(), String::new());
        program.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        program.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let begun = Instant::now();
        let status = loop {
            match program.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(begun.elapsed() < Duration::from_secs(30)),
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(status.code(), Some(7));
        assert_eq!(program.try_wait().unwrap(), Some(status), "told again, not waited for");
        assert_eq!(out.lines().next(), Some("line argument new gone"));
        assert!(out.lines().any(|line| line.starts_with("0::") && line.ends_with(token)), "{out}");
        assert_eq!(errors.trim(), program.pid().to_string(), "a process group of its own");
        // What cannot be started is no process, and whoever asks may try another way.
        assert!(group.spawn(&Command::new("/no/such/program"), Signal::TERM).is_none());
        let path = group.path.clone();
        drop(group);
        assert!(!path.exists());
    }

    #[test]
    fn a_group_is_killed_as_a_whole_and_removed() {
        let token = "0123456789abcdef0123456789abc003";
        let Some(group) = made(token) else { return };
        let sleeper = |seconds: &str| Command::new("sleep").arg(seconds).spawn().unwrap();
        let (mut first, mut second) = (sleeper("60"), sleeper("61"));
        group.add(first.id());
        assert!(RunGroup::create(token).is_none(), "it is there already");
        kill(token);
        assert!(!first.wait().unwrap().success());
        assert!(second.try_wait().unwrap().is_none(), "it is not in the group");
        group.add(second.id());
        let path = group.path.clone();
        let empty = path.with_file_name(format!("{PREFIX}0123456789abcdef0123456789abc004"));
        std::fs::create_dir(&empty).unwrap();
        sweep(path.parent().unwrap());
        assert!(path.exists() && !empty.exists(), "one of them has a member");
        drop(group);
        assert!(!path.exists());
        assert!(second.try_wait().unwrap().is_none(), "it was moved, not killed");
        second.kill().unwrap();
        second.wait().unwrap();
    }
}
