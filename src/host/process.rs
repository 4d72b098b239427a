//! Which process this is, in a way that a reused process number cannot fake.

use std::path::Path;

/// `"PID START_TICKS"` of this process.
#[must_use]
pub fn this_process() -> String {
    let pid = std::process::id();
    format!("{pid} {}", start_ticks(pid).unwrap_or(0))
}

/// `"PID START_TICKS"` of a living process.
#[must_use]
pub fn identity_of(pid: u32) -> Option<String> {
    start_ticks(pid).map(|ticks| format!("{pid} {ticks}"))
}

/// Whether the process that once called itself so still lives; never for an empty text.
#[must_use]
pub fn process_lives(identity: &str) -> bool {
    let mut words = identity.split_whitespace().map(str::parse::<u64>);
    match (words.next(), words.next()) {
        (Some(Ok(pid)), Some(Ok(started))) => {
            u32::try_from(pid).is_ok_and(|pid| start_ticks(pid) == Some(started))
        }
        _ => false,
    }
}

/// Where a program would be found: itself when it has a slash, else on `PATH`.
#[must_use]
pub fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let executable =
        |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if name.contains('/') {
        return executable(Path::new(name)).then(|| Path::new(name).to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| executable(path))
}

/// Field 22 of /proc/PID/stat, counted after the command's closing parenthesis; `None` for zombies, too.
fn start_ticks(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    if fields.first() == Some(&"Z") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_others_do_not() {
        assert!(process_lives(&this_process()));
        let (pid, ticks) = (std::process::id(), start_ticks(std::process::id()).unwrap());
        assert!(!process_lives(&format!("{pid} {}", ticks + 1)), "the number was reused");
        assert!(!process_lives(""));
        assert!(!process_lives("x y"));
    }

    #[test]
    fn programs_are_found_on_the_path_only() {
        assert!(find_program("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(find_program("no-such-program-anywhere"), None);
        assert_eq!(find_program("/etc/passwd"), None, "not executable");
    }
}
