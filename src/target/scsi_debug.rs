//! scsi_debug, a SCSI disk in memory (Linux's drivers/scsi/scsi_debug.c): the module is loaded for the run.
//!
//! Enters: a size and module parameters; besides those, `write_cache=0` makes the disk say that it has no volatile write
//! cache. Leaves: a block device. A module that somebody else has loaded is left alone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::TargetError;
use super::journal::Journal;
use super::module;
use crate::host::Driver;

/// `SDEBUG_OPT_N_WCE` of the parameter `opts`.
const NO_WRITE_CACHE: u32 = 0x1000;
/// The disk is looked for by the kernel in the background.
const PATIENCE: Duration = Duration::from_secs(10);
const PARAMETERS: &str = "/sys/module/scsi_debug/parameters";

/// Whether scsi_debug can be loaded here.
pub(super) fn obstacle() -> Option<TargetError> {
    match crate::host::driver("scsi_debug") {
        Driver::Loadable => None,
        Driver::Missing => {
            module::obstacle("scsi_debug", "boot a kernel that has it: Debian's have it as a module")
        }
        Driver::Loaded => Some(TargetError::unavailable(
            "scsi_debug is loaded already, and its disk may be somebody else's",
            "modprobe -r scsi_debug, if it is not needed",
        )),
        Driver::BuiltIn => Some(TargetError::unavailable(
            "scsi_debug is part of this kernel, so its size and delays are fixed at boot",
            "name its disk: --destroy /dev/sdX",
        )),
    }
}

/// Loads the module and waits for its disk.
pub(super) fn make(
    journal: &mut Journal,
    stack: &str,
    bytes: u64,
    options: &[(String, String)],
) -> Result<PathBuf, TargetError> {
    let parameters = parameters(bytes, options)?;
    // The driver of SCSI disks: without udev nobody loads it when one comes up.
    module::load_for_all("sd_mod")?;
    module::load(journal, stack, "scsi_debug", &parameters)?;
    // The kernel loads the module and only logs a parameter it does not know.
    let unknown = parameters.iter().filter_map(|text| text.split('=').next());
    if let Some(name) = unknown.into_iter().find(|name| !Path::new(PARAMETERS).join(name).exists()) {
        return Err(TargetError::unavailable(
            format!("scsi_debug of this kernel has no option '{name}'"),
            "modinfo -p scsi_debug lists them",
        ));
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(device) = disk() {
            return Ok(device);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(TargetError::failed("scsi_debug was loaded, but no disk of it came up in 10 s"))
}

fn parameters(bytes: u64, options: &[(String, String)]) -> Result<Vec<String>, TargetError> {
    let mut bits = 0;
    let mut parameters = vec![format!("dev_size_mb={}", bytes.div_ceil(1 << 20))];
    for (name, value) in options {
        let wrong =
            || TargetError::unavailable(format!("scsi_debug: {name}={value} cannot be"), "write a number");
        match name.as_str() {
            "write_cache" => match value.as_str() {
                "0" => bits |= NO_WRITE_CACHE,
                "1" => {}
                _ => {
                    return Err(TargetError::unavailable(
                        format!("scsi_debug: write_cache={value}"),
                        "write 0 or 1",
                    ));
                }
            },
            "opts" => {
                let number = value
                    .strip_prefix("0x")
                    .map_or_else(|| value.parse(), |hex| u32::from_str_radix(hex, 16));
                bits |= number.map_err(|_| wrong())?;
            }
            _ => parameters.push(format!("{name}={value}")),
        }
    }
    if bits != 0 {
        parameters.push(format!("opts={bits:#x}"));
    }
    Ok(parameters)
}

/// The disk of the pseudo bus that scsi_debug's hosts are on.
fn disk() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let place = entry.path().canonicalize().unwrap_or_default();
        place.components().any(|part| part.as_os_str().to_string_lossy().starts_with("adapter"))
            && std::fs::read_to_string(entry.path().join("device/model"))
                .is_ok_and(|m| m.trim() == "scsi_debug")
    });
    ours.map(|entry| Path::new("/dev").join(entry.file_name())).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_cache_is_one_bit_of_opts() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            parameters(64 << 20, &pairs).map(|words| words.join(" "))
        };
        assert_eq!(of(&[("ndelay", "50000")]).unwrap(), "dev_size_mb=64 ndelay=50000");
        assert_eq!(of(&[("write_cache", "0"), ("opts", "0x1")]).unwrap(), "dev_size_mb=64 opts=0x1001");
        assert!(of(&[("write_cache", "yes")]).is_err());
    }
}
