//! The processes of a server that runs already, found by what people call it.
//!
//! Enters: a program's name, a process number, a file that holds one, or a unit of systemd. Leaves: the processes that it means now. It
//! must not know what is done with them: none is ever signalled.

use std::path::Path;

use super::regular_file;
use super::task::{number_of, own_line, tasks_of};

/// The kernel keeps so many letters of a program's name.
const LONGEST_NAME: usize = 15;
/// A file with a process number is not longer.
const MOST_BYTES: u64 = 4096;
/// How the names of systemd's units end that have processes.
const UNITS: [&str; 3] = [".service", ".scope", ".slice"];

/// The processes that a name means, this one left out.
///
/// # Errors
/// A clause: there is none.
pub fn processes_of(name: &str) -> Result<Vec<i32>, String> {
    let found = if let Ok(process) = name.parse::<i32>() {
        Some(process).filter(|process| Path::new(&format!("/proc/{process}")).exists()).into_iter().collect()
    } else if name.contains('/') {
        vec![in_file(Path::new(name))?]
    } else if UNITS.iter().any(|end| name.ends_with(end)) {
        all(|process| is_in_unit(process, name))
    } else {
        all(|process| is_called(process, name))
    };
    // Whoever has started this process would bring it and the command with it.
    let own = own_line();
    let found: Vec<i32> = found
        .into_iter()
        .filter(|process| !own.contains(process) && !tasks_of(*process).is_empty())
        .collect();
    if found.is_empty() { Err(format!("no process of '{name}' runs")) } else { Ok(found) }
}

/// The number in the first line of a file, as servers write them.
fn in_file(path: &Path) -> Result<i32, String> {
    let wrong = |why: &str| format!("{} {why}", path.display());
    let text =
        regular_file::read_text(path, MOST_BYTES).map_err(|error| format!("{}: {error}", path.display()))?;
    let process = text.lines().next().and_then(|line| line.trim().parse().ok());
    process.filter(|process| *process > 0).ok_or_else(|| wrong("holds no process number"))
}

/// The processes for which this holds.
fn all(holds: impl Fn(&Path) -> bool) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .filter(|path| number_of(path).is_some() && holds(path))
        .filter_map(|path| number_of(&path))
        .collect()
}

fn is_called(process: &Path, name: &str) -> bool {
    let kept: String = name.chars().take(LONGEST_NAME).collect();
    std::fs::read_to_string(process.join("comm")).is_ok_and(|found| found.trim_end() == kept)
}

/// Whether one of its control groups is the unit's, or below it.
fn is_in_unit(process: &Path, unit: &str) -> bool {
    let groups = std::fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    groups
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .any(|path| path.split('/').any(|part| part == unit))
}

#[cfg(test)]
mod tests {
    use super::super::task::parent_of;
    use super::*;

    #[test]
    fn a_server_is_found_by_its_number_its_name_and_its_file() {
        let directory = tempfile::tempdir().unwrap();
        // The kernel cuts what follows the fifteenth letter.
        let program = directory.path().join("assay-a-server-of-a-test");
        // By another process: while this one has it open for writing, a child of another test may inherit that, and it could not be run.
        let copied = std::process::Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap();
        assert!(copied.success());
        let mut server = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let process = i32::try_from(server.id()).unwrap();
        let file = directory.path().join("server.pid");
        std::fs::write(&file, format!("{process}\n/var/lib/data\n")).unwrap();
        let found = [process.to_string(), file.display().to_string()].map(|name| processes_of(&name));
        // Another run of this test may have one of the same name, and the kernel gives it a moment after the program has begun.
        let begun = std::time::Instant::now();
        let is_named =
            || processes_of("assay-a-server-of-a-test").is_ok_and(|named| named.contains(&process));
        while !is_named() && begun.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let is_named = is_named();
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(found, [Ok(vec![process]), Ok(vec![process])]);
        assert!(is_named);
        let gone = processes_of(&process.to_string());
        assert_eq!(gone, Err(format!("no process of '{process}' runs")));
    }

    #[test]
    fn what_is_no_server_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("empty.pid");
        std::fs::write(&file, "starting\n").unwrap();
        let said = processes_of(&file.display().to_string()).unwrap_err();
        assert!(said.ends_with("empty.pid holds no process number"), "{said}");
        let said = processes_of(&directory.path().join("absent.pid").display().to_string()).unwrap_err();
        assert!(said.contains("absent.pid: "), "{said}");
        let own = std::process::id().to_string();
        assert_eq!(processes_of(&own), Err(format!("no process of '{own}' runs")), "not itself");
        let parent = parent_of(i32::try_from(std::process::id()).unwrap()).unwrap().to_string();
        assert_eq!(
            processes_of(&parent),
            Err(format!("no process of '{parent}' runs")),
            "nor what started it"
        );
        assert_eq!(processes_of("no-such.service"), Err("no process of 'no-such.service' runs".to_owned()));
    }
}
