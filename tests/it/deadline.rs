//! No test waits for ever: one that has not ended in an hour is named with its processes, and the whole ends.
//!
//! Without this a hang in a tool (fio has some) is a build that never ends and does not say where.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The tests that boot kernels wait for one another, and kernels are compiled on what all others leave of the processors.
const LIMIT: Duration = Duration::from_secs(3600);

/// Starts the watch; called by whatever a test begins with, as often as it likes.
pub(crate) fn watched() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let watch = std::thread::Builder::new().name("deadline".to_owned());
        watch.spawn(watch_the_tests).unwrap();
    });
}

/// The test harness gives each test a thread of the test's name (its first 15 letters).
fn watch_the_tests() {
    let mut seen: Vec<(u32, String, Instant)> = Vec::new();
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = test_threads();
        seen.retain(|(id, name, _)| now.iter().any(|(other, now)| other == id && now == name));
        for (id, name) in now {
            if !seen.iter().any(|(known, as_known, _)| *known == id && *as_known == name) {
                seen.push((id, name, Instant::now()));
            }
        }
        if let Some((_, name, _)) = seen.iter().find(|(.., since)| since.elapsed() > LIMIT) {
            say(format_args!(
                "deadline: the test '{name}…' has not ended in {} s; all is stopped",
                LIMIT.as_secs()
            ));
            end_all();
        }
    }
}

fn test_threads() -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = entries.filter_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned();
        let id = entry.file_name().to_string_lossy().parse().ok()?;
        name.contains("::").then_some((id, name))
    });
    named.collect()
}

/// Says what each descendant waits for, kills them, and ends the test program as failed.
fn end_all() -> ! {
    for id in descendants(std::process::id()) {
        let of = Path::new("/proc").join(id.to_string());
        let read = |name: &str| std::fs::read_to_string(of.join(name)).unwrap_or_default().replace('\0', " ");
        let state = read("stat")
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
        say(format_args!("  {id} {} in {}: {}", state.unwrap_or_default(), read("wchan"), read("cmdline")));
        if let Some(pid) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    std::process::exit(101);
}

fn descendants(of: u32) -> Vec<u32> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children =
            threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        let ids: Vec<u32> = children
            .flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>())
            .collect();
        found.extend(ids);
        next += 1;
    }
    found.split_off(1)
}

/// Past the harness, which keeps what a test's threads print until the test ends.
fn say(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{words}");
}
