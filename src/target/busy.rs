//! Patience with a device, a mount or a module that somebody holds for a moment.
//!
//! Enters: an action. Leaves: its result. Errors other than "busy" are returned at once.

use std::time::{Duration, Instant};

/// Others (udev, a dying agent) may hold a device or a mount for a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries until it works, the error is not "busy", or ten seconds are over.
pub(super) fn while_busy(mut act: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    let begun = Instant::now();
    loop {
        match act() {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}
