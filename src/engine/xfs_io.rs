//! The xfs_io engine: a script of pwrite, pread, fsync, sync … on one file.
//!
//! Enters: [`Task::settings`]: `commands` and `prepare`, a command a line; `file`, in the trial's directory or absolute
//! ("file"); `direct`, `sync`. `prepare` is run before the observers start, without `direct` and `sync`. Leaves: what was
//! read and written a second, and what the whole command used: its `runtime` holds the syncs, which xfs_io does not time.
//! It must not know how xfs_io prints its results (that is the catalog's).

use std::ffi::OsStr;

use super::child::Program;
use super::tool::{Ran, find_tool, is_set, program, run, setting, unsupported};
use super::{Engine, EngineError, EngineKind, Probe, Task};
use crate::catalog::{XfsIoTransfer, xfs_io_outcome, xfs_io_transfers};
use crate::record::Outcome;

/// The xfs_io engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct XfsIo;

impl Engine for XfsIo {
    fn probe(&self) -> Result<Probe, EngineError> {
        probe_in(std::env::var_os("PATH").as_deref())
    }

    fn prepare(&self, task: &Task) -> Result<(), EngineError> {
        match setting(task, "prepare") {
            Some(commands) => run_script(task, commands, &[]).map(|_| ()),
            None => Ok(()),
        }
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let Some(commands) = setting(task, "commands") else {
            return unsupported("the xfs_io engine was given no commands".to_owned());
        };
        let flags = [("direct", "-d"), ("sync", "-s")].into_iter().filter(|(key, _)| is_set(task, key));
        let flags: Vec<&str> = flags.map(|(_, flag)| flag).collect();
        run_script(task, commands, &flags)
    }
}

fn probe_in(path: Option<&OsStr>) -> Result<Probe, EngineError> {
    let tool = find_tool(EngineKind::XfsIo, path)?;
    let program = program(&tool, vec!["-V".to_owned()], None, Some(10.0));
    let said = run("xfs_io -V", &program)?.output;
    match said.lines().find_map(|line| line.strip_prefix("xfs_io version ")) {
        Some(number) => Ok(Probe { version: format!("xfs_io {}", number.trim()), path: Some(tool) }),
        None => unsupported(format!(
            "{} does not say 'xfs_io version …'; put the real xfs_io (Debian: apt-get install xfsprogs) first on PATH",
            tool.display()
        )),
    }
}

fn run_script(task: &Task, commands: &str, flags: &[&str]) -> Result<Outcome, EngineError> {
    let tool = find_tool(EngineKind::XfsIo, std::env::var_os("PATH").as_deref())?;
    let program = program(&tool, arguments(task, commands, flags), Some(&task.directory), task.timeout_s);
    let ran = run("xfs_io", &program)?;
    if let Some(reason) = trouble(commands, &ran.output) {
        return Err(ran.failed(&program, reason));
    }
    let (transfers, usage) = transfers(ran, &program)?;
    let mut outcome = xfs_io_outcome(&transfers);
    outcome.samples.extend(usage);
    Ok(outcome)
}

fn transfers(
    ran: Ran,
    program: &Program<'_>,
) -> Result<(Vec<XfsIoTransfer>, Vec<crate::record::Sample>), EngineError> {
    let (transfers, usage) = ran.read(program, xfs_io_transfers)?;
    Ok((transfers.into_iter().map(|(_, transfer)| transfer).collect(), usage))
}

fn arguments(task: &Task, commands: &str, flags: &[&str]) -> Vec<String> {
    let file = task.directory.join(setting(task, "file").unwrap_or("file"));
    let mut words: Vec<String> =
        std::iter::once("-f").chain(flags.iter().copied()).map(str::to_owned).collect();
    for command in commands.lines() {
        words.extend(["-c".to_owned(), command.to_owned()]);
    }
    words.push(file.to_string_lossy().into_owned());
    words
}

/// How xfs_io begins to say that a command was not done, where that is not the command's name.
const COMPLAINTS: [&str; 7] = [
    "bad argument count ", "non-numeric ", "foreign file active, ", "no mapped regions, ",
    "no mapping of range ", "XFS_IOC_", "fallocate: ",
];

/// What went wrong although the exit code is 0: xfs_io goes on after many errors, and says them as `pwrite: No space left`,
/// `command "x" not found` or in words of their own.
fn trouble(commands: &str, output: &str) -> Option<String> {
    let names: Vec<&str> = commands.lines().filter_map(|command| command.split_whitespace().next()).collect();
    let complains = |line: &str| {
        let unknown = line.starts_with("command \"") && line.ends_with("not found");
        let said = COMPLAINTS.iter().any(|start| line.starts_with(start));
        unknown
            || said
            || names.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": ")))
    };
    if let Some(line) = output.lines().map(str::trim).find(|line| complains(line)) {
        return Some(format!("xfs_io says: {line}"));
    }
    let moves = |name: &&&str| matches!(**name, "pwrite" | "w" | "pread" | "r");
    let wanted = names.iter().filter(moves).count();
    let found = match xfs_io_transfers(output) {
        Ok(transfers) => transfers,
        Err(error) => return Some(error.to_string()),
    };
    if let Some((_, nothing)) = found.iter().find(|(_, transfer)| transfer.ops == 0) {
        return Some(format!(
            "xfs_io moved nothing at offset {}: is that behind the file's end?",
            nothing.offset
        ));
    }
    let got = found.iter().filter(|(_, transfer)| matches!(transfer.kind, "write" | "read")).count();
    (got < wanted).then(|| {
        let last = output.lines().last().map(|line| format!("; its last words: {line}")).unwrap_or_default();
        format!("xfs_io reported the result of {got} of {wanted} pwrite and pread commands{last}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_given_one_by_one() {
        let settings = vec![("file".to_owned(), "x".to_owned())];
        let task = Task { settings, directory: "/d".into(), ..Task::default() };
        let words = arguments(&task, "pwrite 0 1m\nfsync", &["-d"]);
        assert_eq!(words, ["-f", "-d", "-c", "pwrite 0 1m", "-c", "fsync", "/d/x"]);
        let device = Task { settings: vec![("file".to_owned(), "/dev/x".to_owned())], ..task };
        assert_eq!(arguments(&device, "sync", &[]).last().unwrap(), "/dev/x");
    }

    #[test]
    fn errors_that_xfs_io_goes_on_after_are_failures() {
        let good =
            "wrote 8/8 bytes at offset 0\n8 bytes, 1 ops; 0.0001 sec (1 KiB/sec and 10000.0000 ops/sec)\n";
        let nothing = "read 0/8 bytes at offset 9\n0.000000 bytes, 0 ops; 0.0000 sec (0.0 bytes/sec and 0.0000 ops/sec)\n";
        assert_eq!(trouble("pwrite 0 8\nfsync", good), None);
        for (commands, output, words) in [
            (
                "pwrite 0 8\nfsync",
                format!("{good}fsync: Input/output error\n"),
                "says: fsync: Input/output error",
            ),
            ("pwrite 0 8\nbogus", format!("{good}command \"bogus\" not found\n"), "\"bogus\" not found"),
            (
                "pwrite 0 8\nfzero 0",
                format!("{good}bad argument count 1 to fzero\n"),
                "says: bad argument count",
            ),
            ("mw 0 8", "no mapped regions, try 'help mmap'\n".to_owned(), "no mapped regions"),
            (
                "extsize 1m",
                "foreign file active, extsize command is for XFS filesystems only\n".to_owned(),
                "is for XFS filesystems only",
            ),
            ("reflink x", "XFS_IOC_CLONE_RANGE: Operation not supported\n".to_owned(), "not supported"),
            ("pwrite 0 8\npwrite 8 8", good.to_owned(), "1 of 2"),
            ("pread 9 8", nothing.to_owned(), "moved nothing at offset 9"),
        ] {
            let reason = trouble(commands, &output).unwrap();
            assert!(reason.contains(words), "{reason}");
        }
    }
}
