//! Where a program is.
//!
//! Enters: a name or a path. Leaves: the file that would be started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where Debian keeps what ordinary users do not have on their PATH.
const SYSTEM_PATH: &str = "/usr/sbin:/sbin:/usr/local/sbin";

/// Where a program would be found: itself when it has a slash, else on `PATH`.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_in(name, std::env::var_os("PATH").as_deref())
}

/// A program of the system administrator: on `PATH`, or where Debian keeps those.
#[must_use]
pub fn find_system_program(name: &str) -> Option<PathBuf> {
    find_system_in(name, std::env::var_os("PATH").as_deref())
}

/// As [`find_system_program`], with another `PATH`.
#[must_use]
pub fn find_system_in(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    find_in(name, path).or_else(|| find_in(name, Some(OsStr::new(SYSTEM_PATH))))
}

/// As [`find_program`], with another `PATH`.
#[must_use]
pub fn find_in(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let executable =
        |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if name.contains('/') {
        return executable(Path::new(name)).then(|| PathBuf::from(name));
    }
    std::env::split_paths(path?).map(|directory| directory.join(name)).find(|path| executable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path_only() {
        assert!(find_program("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(find_program("no-such-program-anywhere"), None);
        assert_eq!(find_program("/etc/passwd"), None, "not executable");
        assert_eq!(find_in("sh", Some(OsStr::new("/nowhere"))), None);
        assert_eq!(find_in("sh", None), None);
    }
}
