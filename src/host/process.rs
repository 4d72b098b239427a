//! Where a program is.
//!
//! Enters: a name or a path. Leaves: the file that would be started.

use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path_only() {
        assert!(find_program("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(find_program("no-such-program-anywhere"), None);
        assert_eq!(find_program("/etc/passwd"), None, "not executable");
    }
}
