//! A setting in sysfs or `/proc/sys`: read, written, put back.
//!
//! Enters: a path and a value. Leaves: the value there was, in the form in which it can be written again.

use std::path::Path;

use super::roots::chosen;

/// What the file says now; of several choices the one that holds.
///
/// # Errors
/// The system's words.
pub fn read_knob(path: &Path) -> std::io::Result<String> {
    Ok(chosen(std::fs::read_to_string(path)?.trim()).to_owned())
}

/// Writes a value and says what holds then, which the kernel may have rounded.
///
/// # Errors
/// The system's words and, where the file lists them, the values it takes.
pub fn write_knob(path: &Path, value: &str) -> Result<String, String> {
    let choices = || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let listed = text.contains('[').then(|| text.replace(['[', ']'], "").trim().to_owned());
        listed.map(|listed| format!("; it takes {}", listed.replace(' ', ", "))).unwrap_or_default()
    };
    // The kernel takes a value in one write; it must not make the file.
    let written = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, value.as_bytes()));
    written.map_err(|error| format!("cannot set {} to {value}: {error}{}", path.display(), choices()))?;
    Ok(read_knob(path).unwrap_or_else(|_| value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_set_and_can_be_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let knob = directory.path().join("scheduler");
        assert!(write_knob(&knob, "x").unwrap_err().contains("No such file"));
        assert!(!knob.exists(), "a setting that is not there is not made");
        std::fs::write(&knob, "none [mq-deadline] kyber\n").unwrap();
        assert_eq!(read_knob(&knob).unwrap(), "mq-deadline");
        std::fs::write(&knob, "128\n").unwrap();
        assert_eq!(write_knob(&knob, "256").unwrap(), "256");
    }

    #[test]
    fn what_the_kernel_does_not_take_is_told_with_what_it_takes() {
        // Read only for everyone, also for root: an O_WRONLY open of a directory fails.
        let directory = tempfile::tempdir().unwrap();
        let message = write_knob(directory.path(), "x").unwrap_err();
        assert!(message.starts_with("cannot set ") && message.contains(" to x: "), "{message}");
    }
}
