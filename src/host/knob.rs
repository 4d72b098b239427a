//! A setting in sysfs or `/proc/sys`: read, written, put back.
//!
//! Enters: a path and a value. Leaves: the value there was, in the form in which it can be written again.

use std::path::Path;

use super::roots::chosen;

/// Filesystems in which the kernel shows its settings (linux/magic.h): proc, sysfs, configfs, debugfs, tracefs, cgroup2, cgroup.
const SETTINGS: [i64; 7] =
    [0x9fa0, 0x6265_6572, 0x6265_6570, 0x6462_6720, 0x7472_6163, 0x6367_7270, 0x0027_e0eb];

/// Whether a path is a file of one of the kernel's own filesystems.
#[must_use]
pub fn is_setting(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    is_file && rustix::fs::statfs(path).is_ok_and(|found| SETTINGS.contains(&found.f_type))
}

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
    fn only_files_of_the_kernel_are_settings() {
        assert!(is_setting(Path::new("/proc/sys/vm/swappiness")));
        assert!(!is_setting(Path::new("/proc/sys/vm")) && !is_setting(Path::new("/etc/passwd")));
    }

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
