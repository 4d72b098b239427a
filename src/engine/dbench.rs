//! The dbench engine: file-server load of a number of clients in the trial's directory.
//!
//! Enters: [`Task::settings`]: `clients` (1), `time` in seconds (10), `loadfile`, `sync`, `sync_dir`, `fsync`, `xattr`,
//! `rate` in MB/s, `clients_per_process`. Leaves: throughput, latencies over all and of each operation, and what the whole
//! command used. It must not know how dbench prints them (that is the catalog's).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::tool::{find_tool, is_set, program, run, run_until, setting, unsupported};
use super::{Engine, EngineError, EngineKind, Probe, Task};
use crate::catalog::outcomes_from_dbench;
use crate::record::Outcome;

/// Where packages put the description of the load.
const LOADFILES: [&str; 5] = [
    "/usr/share/dbench/client.txt",
    "/usr/share/dbench/loadfiles/client.txt",
    "/usr/local/share/dbench/client.txt",
    "/usr/local/share/client.txt",
    "/usr/share/client.txt",
];

/// How long none of the clients that are missing may come.
const LAUNCH_S: u64 = 30;

/// The dbench engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dbench;

impl Engine for Dbench {
    fn probe(&self) -> Result<Probe, EngineError> {
        probe_in(std::env::var_os("PATH").as_deref())
    }

    fn reads(&self, task: &Task) -> Result<Vec<PathBuf>, EngineError> {
        loadfile(task).map(|path| vec![path])
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let tool = find_tool(EngineKind::Dbench, std::env::var_os("PATH").as_deref())?;
        let loadfile = loadfile(task)?;
        let program = program(&tool, arguments(task, &loadfile), Some(&task.directory), task.timeout_s);
        let mut starting = Starting::of(clients(task));
        let (trials, usage) = run_until("dbench", &program, |line| starting.client_missing(line))?
            .read(&program, outcomes_from_dbench)?;
        let mut outcome = trials.into_iter().next_back().unwrap_or_default().outcome;
        outcome.samples.extend(usage);
        Ok(outcome)
    }
}

/// Clients on their way: dbench waits for all of them to be ready, and then warms up until all have moved bytes, also when one was
/// killed on its way; it says so each second. Many on a slow disk take long, but come one after another.
struct Starting {
    clients: u64,
    /// How many are there, and dbench's seconds when the last one came.
    ready: u64,
    since_s: u64,
}

impl Starting {
    fn of(clients: u64) -> Starting {
        Starting { clients, ready: 0, since_s: 0 }
    }

    /// That a client never comes.
    fn client_missing(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (ready, all, now_s) = match words[..] {
            [ready, "of", processes, "processes", "prepared", "for", "launch", now_s, "sec"] => {
                (ready, processes.parse().ok()?, now_s)
            }
            [active, _, _, "MB/sec", "warmup", now_s, "sec", ..] => (active, self.clients, now_s),
            _ => return None,
        };
        let (ready, now_s): (u64, u64) = (ready.parse().ok()?, now_s.parse().ok()?);
        // Each of the two waits counts its own clients and seconds.
        if ready != self.ready || now_s < self.since_s {
            (self.ready, self.since_s) = (ready, if ready > 0 { now_s } else { 0 });
        }
        let missing = u64::checked_sub(all, ready)?;
        let waited_s = now_s.saturating_sub(self.since_s);
        (missing > 0 && waited_s >= LAUNCH_S).then(|| {
            format!("dbench waited {waited_s} s for {missing} of its clients, which were killed or hang")
        })
    }
}

/// Clients in all processes.
fn clients(task: &Task) -> u64 {
    let number = |key| setting(task, key).and_then(|value| value.parse().ok()).unwrap_or(1_u64);
    number("clients").saturating_mul(number("clients_per_process"))
}

fn probe_in(path: Option<&OsStr>) -> Result<Probe, EngineError> {
    let tool = find_tool(EngineKind::Dbench, path)?;
    let program = program(&tool, vec!["--help".to_owned()], None, Some(10.0));
    let said = run("dbench --help", &program)?.output;
    let version = said.lines().find_map(|line| line.strip_prefix("dbench version "));
    match version.and_then(|rest| rest.split_whitespace().next()) {
        Some(number) => Ok(Probe { version: format!("dbench {number}"), path: Some(tool) }),
        None => unsupported(format!(
            "{} does not say 'dbench version …'; put the real dbench (Debian: apt-get install dbench) first on PATH",
            tool.display()
        )),
    }
}

fn loadfile(task: &Task) -> Result<PathBuf, EngineError> {
    match setting(task, "loadfile") {
        Some(path) => Ok(PathBuf::from(path)),
        None => found_loadfile(&LOADFILES.map(Path::new)),
    }
}

fn found_loadfile(places: &[&Path]) -> Result<PathBuf, EngineError> {
    let found = places.iter().find(|path| path.is_file());
    found.map_or_else(
        || unsupported("no load file client.txt was found where packages put it; name one: [dbench] loadfile = \"…\"".to_owned()),
        |path| Ok(path.to_path_buf()),
    )
}

fn arguments(task: &Task, loadfile: &Path) -> Vec<String> {
    let mut words = vec![
        "-D".to_owned(),
        task.directory.to_string_lossy().into_owned(),
        "-t".to_owned(),
        setting(task, "time").unwrap_or("10").to_owned(),
        "-c".to_owned(),
        loadfile.to_string_lossy().into_owned(),
    ];
    for (key, flag) in [("sync", "-s"), ("sync_dir", "-S"), ("fsync", "-F"), ("xattr", "-x")] {
        words.extend(is_set(task, key).then(|| flag.to_owned()));
    }
    if let Some(rate) = setting(task, "rate") {
        words.extend(["-R".to_owned(), rate.to_owned()]);
    }
    words.extend(setting(task, "clients_per_process").map(|n| format!("--clients-per-process={n}")));
    words.push(setting(task, "clients").unwrap_or("1").to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[String]) -> Option<String> {
        let mut starting = Starting::of(3);
        lines.iter().find_map(|line| starting.client_missing(line))
    }

    #[test]
    fn a_client_that_never_comes_is_waited_for_half_a_minute() {
        let prepared = |ready: u32, s: u32| format!("{ready} of 3 processes prepared for launch {s:3} sec");
        let warming = |active: u32, s: u32| {
            format!("   {active}  40471   689.02 MB/sec  warmup {s:3} sec  latency 1.818 ms")
        };
        let wait = |of: &dyn Fn(u32, u32) -> String, ready: u32, seconds: std::ops::RangeInclusive<u32>| {
            seconds.map(|s| of(ready, s)).collect::<Vec<String>>()
        };
        for well in [wait(&prepared, 2, 1..=15), wait(&prepared, 3, 1..=40), wait(&warming, 2, 1..=29)] {
            assert_eq!(said(&well), None, "{well:?}");
        }
        for never in [wait(&prepared, 2, 0..=30), wait(&warming, 2, 0..=30), wait(&warming, 0, 1..=30)] {
            let reason = said(&never).unwrap();
            assert!(reason.contains("waited 30 s for "), "{reason}");
        }
        // One more comes each half minute: that is slow, and none is lost.
        let slow =
            [wait(&warming, 0, 1..=29), wait(&warming, 1, 30..=59), wait(&warming, 2, 60..=89)].concat();
        assert_eq!(said(&slow), None);
        // The second wait begins anew.
        let both = [wait(&prepared, 2, 1..=25), wait(&warming, 2, 1..=25)].concat();
        assert_eq!(said(&both), None);
        let working = [
            "   2     77959   676.12 MB/sec  execute  60 sec  latency 40.265 ms",
            "   2  cleanup  60 sec",
            "0    cleanup  61 sec",
            "",
        ];
        assert_eq!(said(&working.map(str::to_owned)), None);
    }

    #[test]
    fn settings_are_dbenchs_options() {
        let settings = [("clients", "8"), ("time", "30"), ("sync", "1"), ("xattr", "0"), ("rate", "2.5")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let task = Task { settings, directory: "/d".into(), ..Task::default() };
        let words = arguments(&task, Path::new("/l"));
        assert_eq!(words.join(" "), "-D /d -t 30 -c /l -s -R 2.5 8");
        let plain = arguments(&Task { directory: "/d".into(), ..Task::default() }, Path::new("/l"));
        assert_eq!(plain.join(" "), "-D /d -t 10 -c /l 1");
    }

    #[test]
    fn the_load_file_is_found_or_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let (none, one) = (directory.path().join("none"), directory.path().join("client.txt"));
        assert!(
            matches!(found_loadfile(&[&none]), Err(EngineError::Unsupported { reason }) if reason.contains("loadfile ="))
        );
        std::fs::write(&one, "").unwrap();
        assert_eq!(found_loadfile(&[&none, &one]).unwrap(), one);
    }
}
