//! Tools a test needs: missing ones are said, and in CI they are a failure, never a skip.

use std::process::Command;

/// Whether `tool` can be run here. Says so when it cannot; panics when that happens in CI.
pub(crate) fn available(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "{tool} is missing, and CI skips nothing: scripts/packages.sh {tool}"
        );
        eprintln!("SKIPPED: {tool} is missing; scripts/packages.sh {tool} installs it");
    }
    found
}
