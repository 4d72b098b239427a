//! A kernel module that was loaded for the run, unloaded again.
//!
//! Enters: a module's name. Leaves: a note where the module stays because others use it now. Which drivers have devices is known here,
//! so that the drivers' own files can load their modules.

use std::path::Path;

use super::busy::while_busy;
use super::error::TargetError;
use super::made::Inode;
use super::{module, null_blk, zram};
use crate::host::Driver;

/// Unloads a module; one that is gone, or part of the kernel, is no error. One that others use meanwhile stays, and so does one that is not
/// that loading: the note says so.
pub(super) fn unload(name: &str, loaded: Option<Inode>) -> Result<Option<String>, TargetError> {
    let now = module::loading_of(name);
    if crate::host::driver(name) == Driver::Loaded && now.is_some() && now != loaded {
        return Ok(Some(match loaded {
            Some(_) => format!("the module {name} was loaded anew by somebody else and stays"),
            None => format!(
                "it is not known who loaded the module {name}: it stays; modprobe -r {name} unloads it"
            ),
        }));
    }
    let stays = || Some(format!("the module {name} was loaded for this run and stays: others use it now"));
    let (mut last, mut others) = (None, false);
    let tried = while_busy(|| {
        // Nobody adds a zram device between the look and the unloading, which would take it away with all in it.
        let _alone = (name == "zram").then(zram::alone);
        others = has_devices(name);
        if others || crate::host::driver(name) != Driver::Loaded {
            return Ok(());
        }
        module::run(&["-r".to_owned(), name.to_owned()]).map_err(|error| {
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
