//! What the device and the filesystem under a directory do: 4 KiB blocks by depth, flushes, a write that is stable when it returns, and
//! fsync(2) of one page.
//!
//! Enters: a directory, and whether files there go past the page cache. Leaves: probes that share a file without a name. It writes to that
//! file and to nothing else.

mod blocks;
mod scratch_file;
mod stable;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{LeftOut, Probe};
use scratch_file::ScratchFile;

/// Bytes of the file that is read and written past the page cache.
const LENGTH: usize = 64 << 20;
/// What is read and written at once.
const BLOCK: usize = 4096;
/// Depths, the last far beyond what saturates most devices.
const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Deeper than this only a fast device is measured: to wait for all that is in flight takes a slow one seconds, in each round.
const DEEP: u32 = 64;
/// I/Os a second of a fast one.
const FAST: f64 = 2000.0;
/// How long it is tried at that depth.
const TRIED: Duration = Duration::from_millis(10);

/// All of them.
///
/// # Errors
/// No file can be made and filled in the directory.
pub(super) fn probes(
    directory: &Path,
    no_direct: Option<&str>,
    left_out: &mut Vec<LeftOut>,
) -> std::io::Result<Vec<Probe>> {
    let mut probes = Vec::new();
    let mut not_here = |why: &str| {
        let what = "reads, writes and flushes of the device".to_owned();
        left_out.push(LeftOut { what, why: why.to_owned() });
    };
    match no_direct {
        Some(why) => not_here(why),
        None => match ScratchFile::direct(directory, LENGTH) {
            Ok(file) => past_the_cache(&Arc::new(file), &mut probes, left_out),
            // A device with larger blocks, or a filesystem that has changed its mind.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                not_here("4 KiB cannot be written past the page cache here");
            }
            Err(error) => return Err(error),
        },
    }
    probes.push(stable::fsync_one_page(directory)?);
    Ok(probes)
}

fn past_the_cache(file: &Arc<ScratchFile>, probes: &mut Vec<Probe>, left_out: &mut Vec<LeftOut>) {
    for writes in [false, true] {
        let direction = if writes { "writes" } else { "reads" };
        let not_from =
            |depth: u32, why| LeftOut { what: format!("4 KiB {direction} from depth {depth} on"), why };
        for depth in DEPTHS {
            match blocks::probe(Arc::clone(file), writes, depth) {
                Ok(mut probe) => {
                    let rate = if depth == DEEP { (probe.sample)(TRIED).ok() } else { None };
                    probes.push(probe);
                    if let Some(rate) = rate.filter(|rate| *rate < FAST) {
                        left_out
                            .push(not_from(2 * depth, format!("at {rate:.0} a second they take too long")));
                        break;
                    }
                }
                Err(error) => {
                    left_out.push(not_from(depth, format!("io_uring: {error}")));
                    break;
                }
            }
        }
    }
    let flush = |dirty: (&'static str, usize)| {
        (format!("a flush after {}", dirty.0), stable::flush(Arc::clone(file), dirty))
    };
    let write = ("a stable write".to_owned(), stable::write(Arc::clone(file)));
    for (what, probe) in stable::DIRTY.map(flush).into_iter().chain([write]) {
        match probe {
            Ok(probe) => probes.push(probe),
            Err(error) => left_out.push(LeftOut { what, why: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_leave_nothing_behind_and_say_what_they_cannot_do() {
        let directory = tempfile::tempdir().unwrap();
        let mut left_out = Vec::new();
        for no_direct in [None, Some("it is memory")] {
            // In memory the kernel refuses direct I/O, or takes it and uses the cache: both are seen by who calls, not here.
            let all = probes(directory.path(), no_direct, &mut left_out).unwrap();
            for mut probe in all {
                assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
                let value = (probe.sample)(Duration::from_millis(1)).unwrap();
                assert!(value.is_finite() && value > 0.0, "{}: {value}", probe.name);
            }
        }
        assert!(left_out.iter().any(|left| left.why == "it is memory"), "{left_out:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let missing = directory.path().join("missing");
        assert_eq!(probes(&missing, None, &mut left_out).err().unwrap().kind(), ErrorKind::NotFound);
    }
}
