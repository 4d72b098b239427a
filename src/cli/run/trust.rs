//! Whether a stored run may go on: its experiment runs commands and overwrites files, and a store is a file that anybody can write.
//!
//! Enters: a stored run. Leaves: a seal that only this user on this machine can make (HMAC-SHA-256, RFC 2104, with a secret of the user),
//! or a refusal; with `--trust` a list of what the run would do, printed before any of it is done.

use std::io::Write;
use std::path::PathBuf;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::plan_text::{commands, fios_files};
use super::prepare::Prepared;
use crate::cli::Failure;
use crate::cli::database::wrong;
use crate::plan::Writes;
use crate::record::Run;
use crate::store::Store;
use crate::sys::terminal::visible_line;

/// Shows later that this user began this run on this machine; empty where the user's secret cannot be had, which is said.
pub(super) fn seal(run: &Run, devices: &[String]) -> String {
    match authenticator(run, devices) {
        Ok(mac) => mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(why) => {
            // The run itself goes on.
            crate::sys::terminal::tell(&format!(
                "note: assay cannot keep the key that would show who began this run, so --resume of it will ask for --trust: {why}"
            ));
            String::new()
        }
    }
}

/// All that decides what a run does: nothing in it may change between its sessions.
fn authenticator(run: &Run, devices: &[String]) -> Result<Hmac<Sha256>, String> {
    let secret = crate::sys::user_secret().map_err(|error| error.to_string())?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret).map_err(|error| error.to_string())?;
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    let sealed = serde_json::json!([
        "assay run 1",
        machine.trim(),
        user,
        run.command_line,
        run.seed,
        run.job_text,
        run.experiment,
        run.design,
        devices
    ]);
    mac.update(sealed.to_string().as_bytes());
    Ok(mac)
}

/// Whether this user began the run on this machine.
///
/// # Errors
/// A [`Failure`]: the store cannot be read.
pub(super) fn is_ours(store: &Store, run: &Run) -> Result<bool, Failure> {
    let Some(id) = run.id else { return Ok(true) };
    let seal = store.seal(id).map_err(|error| wrong(&error))?;
    let devices = store.devices(id).map_err(|error| wrong(&error))?;
    let digits = |at: usize| seal.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..seal.len()).step_by(2).map(digits).collect();
    let mac = authenticator(run, &devices).ok();
    Ok(mac.zip(bytes).is_some_and(|(mac, bytes)| mac.verify_slice(&bytes).is_ok()))
}

/// The refusal to go on with a run that somebody else may have written, or to add so many rounds to it.
pub(super) fn refusal(store: &Store, id: i64, more: Option<u32>) -> Failure {
    let goes_on = more.map_or_else(|| format!("--resume {id}"), |rounds| format!("--more {rounds} {id}"));
    not_ours(store, id).hint(format!(
        "`assay report {id}` reads it; {goes_on} --trust says what it would run and write, and goes on"
    ))
}

/// The refusal to run the cells again of a run that somebody else may have written.
pub(super) fn refusal_to_watch(store: &Store, id: i64) -> Failure {
    not_ours(store, id).hint(format!(
        "assay explain {id} --no-watch reads it; --trust says what it would run and write, and watches it"
    ))
}

fn not_ours(store: &Store, id: i64) -> Failure {
    let why = match store.seal(id) {
        Ok(seal) if seal.is_empty() => {
            "has no seal: it was imported, an older assay began it, or the user's secret could not be kept"
        }
        _ => "was not begun by you on this machine, or was changed since",
    };
    Failure::request(format!("run {id} {why}"))
}

/// Says every command, hook and path of a run before any of it is done.
///
/// # Errors
/// Standard error is closed.
pub(super) fn say_all(prepared: &Prepared) -> std::io::Result<()> {
    let mut out = crate::sys::terminal::err();
    writeln!(out, "--trust: this run is not known as yours; it would")?;
    for line in all(prepared) {
        writeln!(out, "  {}", visible_line(&line))?;
    }
    Ok(())
}

fn all(prepared: &Prepared) -> Vec<String> {
    let mut lines: Vec<String> = commands(prepared).iter().map(|line| format!("run: {line}")).collect();
    let built = prepared.run.design.bisects.as_ref().and_then(|bisects| bisects.build.as_ref());
    lines.extend(built.map(|build| format!("run, to build a step: {build}")));
    for cell in &prepared.plan.cells {
        lines.extend(cell.target.described().into_iter().map(|line| format!("make: {}", line.trim())));
        if let Some(kernel) = &cell.target.guest.kernel {
            lines.push(format!("boot: {}", kernel.display()));
        }
    }
    for (kind, probe) in &prepared.engines {
        let path = probe.path.as_ref().map_or_else(String::new, |path| format!(" ({})", path.display()));
        lines.push(format!("use the engine {}{path}", kind.name()));
    }
    for file in &prepared.plan.files {
        let what = if file.writes == Writes::Log { "add to" } else { "write" };
        lines.push(format!("{what}: {}", file.path.display()));
    }
    lines.extend(
        prepared.destroy.iter().map(|path| format!("overwrite, as --destroy says: {}", path.display())),
    );
    lines.extend(prepared.work.iter().map(|path: &PathBuf| format!("make and remove: {}/", path.display())));
    lines.extend(fios_files(prepared).into_iter().map(|(path, _)| format!("write, by fio: {path}")));
    let mut seen = std::collections::BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}
