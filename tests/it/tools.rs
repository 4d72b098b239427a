//! What a test needs of this machine, and what it says past the harness. Where something is missing the test is left out,
//! which is said here and nowhere else: in CI that is a failure, but for what no package and no setting brings.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Characters of a failure that are said at once.
const LONGEST_FAILURE: usize = 2000;

/// Says that a test, or a part of it, is left out; in CI nothing is.
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}, and CI skips nothing");
    say("SKIPPED", why);
}

/// So many parts of tests may be impossible on a machine that CI runs on; here none is.
const MOST_IMPOSSIBLE: usize = 4;

/// Says that a part of a test cannot be on this machine, whatever is installed (its kernel, its processor), in CI, too. A machine on which
/// much of it cannot be is none for CI.
pub(crate) fn impossible_here(why: &str) {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    say("NOT POSSIBLE HERE", why);
    let is_one_too_many = SAID.fetch_add(1, Ordering::Relaxed) >= MOST_IMPOSSIBLE;
    assert!(!(is_one_too_many && std::env::var_os("CI").is_some()), "{why}, and that is one too many for CI");
}

/// Says that a measurement held only after several that did not.
pub(crate) fn often_spoiled(complaints: &[String]) {
    let thread = std::thread::current();
    let (name, last) = (thread.name().unwrap_or("a thread"), complaints.last().map_or("", String::as_str));
    say("SPOILED", &format!("{name}: {} times, at last: {last}", complaints.len()));
}

/// The harness keeps back what a test that passes has printed, but not what goes to standard error directly.
fn say(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "{what}: {why}");
}

/// From now on a test that fails says why as it fails, too, on one line: the harness tells it at the end, where a log may
/// have been cut.
pub(crate) fn failures_are_said_at_once() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let harness = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |failure| {
            let thread = std::thread::current();
            let why: String =
                failure.to_string().replace('\n', " | ").chars().take(LONGEST_FAILURE).collect();
            say("FAILS", &format!("{}: {why}", thread.name().unwrap_or("a thread")));
            harness(failure);
        }));
    });
}

/// Whether `tool` can be run here.
pub(crate) fn available(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skipped(&format!("{tool} is missing (scripts/packages.sh installs it)"));
    }
    found
}

/// Whether a program of the system's administrator is here.
pub(crate) fn installed(tool: &str) -> bool {
    let found = assay::sys::find_system_program(tool).is_some();
    if !found {
        skipped(&format!("{tool} is missing (scripts/packages.sh installs it)"));
    }
    found
}

pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("only root can do this");
    }
    root
}

/// Experiments that are no part of `make test`, since a busy machine spoils them; make why-real runs them.
const ELSEWHERE: &str = "#[ignore = \"an experiment that a busy machine spoils: make why-real\"]";

#[test]
fn tests_are_left_out_in_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut directories, mut others) = (vec![root.join("tests")], Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with(file!()) {
                let text = std::fs::read_to_string(&path).unwrap().replace(ELSEWHERE, "").to_lowercase();
                let own =
                    ["println!(\"skipped", "\"ci\"", "#[ignore"].iter().any(|words| text.contains(words));
                others.extend(own.then_some(path));
            }
        }
    }
    assert_eq!(others, Vec::<std::path::PathBuf>::new(), "call tools::skipped");
}
