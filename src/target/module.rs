//! Kernel modules: loaded with parameters, unloaded again.
//!
//! Enters: a module's name. Leaves: the module in the kernel, written down if it was not there before.

use std::path::Path;
use std::process::{Command, Stdio};

use super::error::TargetError;
use super::journal::Journal;
use super::made::Made;
use super::undo::while_busy;
use super::{null_blk, zram};
use crate::host::Driver;

/// Loads a module that is not there yet, with `name=value` parameters.
pub(super) fn load(
    journal: &mut Journal,
    stack: &str,
    name: &str,
    parameters: &[String],
) -> Result<(), TargetError> {
    journal.begin(Some(stack), Made::Module { name: name.to_owned() })?;
    let mut words = vec![name.to_owned()];
    words.extend_from_slice(parameters);
    run(&words)
}

/// Loads a driver that others may come to use as well, as the kernel itself loads a filesystem's; it stays.
pub(super) fn load_for_all(name: &str) -> Result<(), TargetError> {
    match crate::host::driver(name) {
        Driver::Loadable => run(&[name.to_owned()]),
        _ => Ok(()),
    }
}

/// Unloads a module; one that is gone, or part of the kernel, is no error. One that others use meanwhile stays: the note
/// says so.
pub(super) fn unload(name: &str) -> Result<Option<String>, TargetError> {
    let stays = || Some(format!("the module {name} was loaded for this run and stays: others use it now"));
    let (mut last, mut others) = (None, false);
    let tried = while_busy(|| {
        // Nobody adds a zram device between the look and the unloading, which would take it away with all in it.
        let _alone = (name == "zram").then(zram::alone);
        others = has_devices(name);
        if others || crate::host::driver(name) != Driver::Loaded {
            return Ok(());
        }
        run(&["-r".to_owned(), name.to_owned()]).map_err(|error| {
            last = Some(error);
            std::io::ErrorKind::ResourceBusy.into()
        })
    });
    match (tried, last) {
        (Ok(()), _) if others => Ok(stays()),
        (Ok(()), _) => Ok(None),
        (Err(_), _) if users(name) > 0 => Ok(stays()),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(TargetError::io("cannot unload", name)(error)),
    }
}

/// Whether a driver has devices; assay's own are removed before its module is.
fn has_devices(name: &str) -> bool {
    match name {
        "zram" => zram::any(),
        "null_blk" => null_blk::any(),
        _ => false,
    }
}

/// How many users the kernel counts.
fn users(name: &str) -> u64 {
    let text = std::fs::read_to_string(Path::new("/sys/module").join(name).join("refcnt"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn run(words: &[String]) -> Result<(), TargetError> {
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
