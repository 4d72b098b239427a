//! Whether a filesystem takes changes, or lets who changes something wait for ever: it is frozen, or its device hangs.
//!
//! Enters: a path. Leaves: an error after a while. The wait cannot be ended from outside, so it is a child's, which is left.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer takes no change of a time stamp, however busy the device is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Changes a file's or a directory's times, in a process of its own.
///
/// # Errors
/// It has not come back.
pub(super) fn takes_changes(path: &Path) -> std::io::Result<()> {
    let mut command = Command::new("touch");
    command.args(["-c", "-h", "--"]).arg(path);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without the program nothing is known, and a refusal is told by whoever makes the change.
    let Ok(mut child) = quiet.spawn() else { return Ok(()) };
    let begun = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if begun.elapsed() >= PATIENCE {
            let _ = child.kill();
            let what = format!(
                "its filesystem takes no changes, who makes one hangs in the kernel (as process {} does)",
                child.id()
            );
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, what));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
