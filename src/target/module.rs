//! Kernel modules, loaded with parameters. `unload.rs` unloads them.
//!
//! Enters: a module's name. Leaves: the module in the kernel, written down if it was not there before.

use std::path::Path;
use std::process::{Command, Stdio};

use super::error::TargetError;
use super::journal::Journal;
use super::made::{Inode, Made, Seen};
use crate::host::Driver;

/// Loads a module that is not there yet, with `name=value` parameters.
pub(super) fn load(
    journal: &mut Journal,
    stack: &str,
    name: &str,
    parameters: &[String],
) -> Result<(), TargetError> {
    let made = |loaded| Made::Module { name: name.to_owned(), loaded };
    journal.begin(Some(stack), made(None))?;
    // Without it one that somebody loads at the same time would be taken for the run's own.
    let mut words = vec!["--first-time".to_owned(), name.to_owned()];
    words.extend_from_slice(parameters);
    match run(&words) {
        Ok(()) => journal.now_known(made(loading_of(name))),
        // Somebody was faster, and will unload it.
        Err(_) if crate::host::driver(name) == Driver::Loaded => journal.not_made(),
        Err(error) => Err(error),
    }
}

/// Which loading of a module is in the kernel: its directory is made anew with each, under the next number.
pub(super) fn loading_of(name: &str) -> Option<Inode> {
    Some(Seen::of(&Path::new("/sys/module").join(name.replace('-', "_"))).ok()?.inode)
}

/// Loads a driver that others may come to use as well, as the kernel itself loads a filesystem's; it stays.
pub(super) fn load_for_all(name: &str) -> Result<(), TargetError> {
    match crate::host::driver(name) {
        Driver::Loadable => run(&[name.to_owned()]),
        _ => Ok(()),
    }
}

/// Runs modprobe with these words.
pub(super) fn run(words: &[String]) -> Result<(), TargetError> {
    let Some(program) = crate::sys::find_system_program("modprobe") else {
        return Err(TargetError::unavailable(
            "there is no modprobe to load a module with",
            "install kmod (Debian: apt-get install kmod)",
        ));
    };
    let command =
        format!("modprobe {}", shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default());
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(TargetError::io("cannot start", "modprobe"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TargetError::Failed {
        reason: format!("{command} failed ({}): {words}", output.status),
        command,
        output: words,
        hint: String::new(),
    })
}

/// Whether a driver can be had; `Err` says what is missing.
pub(super) fn obstacle(driver: &str, instead: &str) -> Option<TargetError> {
    (crate::host::driver(driver) == Driver::Missing).then(|| {
        let reason = format!("{driver} is not offered here: {}", crate::host::missing_driver(driver));
        TargetError::unavailable(reason, instead)
    })
}
