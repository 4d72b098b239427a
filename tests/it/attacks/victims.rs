//! What must not change, and how that is seen: files by checksum, devices, mounts and settings by what the kernel says.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::Sandbox;

/// A checksum of a file's or device's bytes.
pub(super) fn sum(path: &Path) -> u64 {
    twox_hash::XxHash64::oneshot(0, &std::fs::read(path).unwrap())
}

/// A directory with a file and a subdirectory, as one somebody would miss.
pub(super) fn precious(sandbox: &Sandbox, name: &str) -> PathBuf {
    let directory = sandbox.path().join(name);
    std::fs::create_dir_all(directory.join("below")).unwrap();
    std::fs::write(directory.join("file"), "precious").unwrap();
    std::fs::write(directory.join("below/file"), "precious, too").unwrap();
    directory
}

/// Whether nothing is missing of it.
pub(super) fn is_whole(directory: &Path) -> bool {
    let reads = |name: &str, text: &str| {
        std::fs::read_to_string(directory.join(name)).is_ok_and(|found| found == text)
    };
    reads("file", "precious") && reads("below/file", "precious, too")
}

/// A tmpfs with a file on it, unmounted when this goes.
pub(super) struct Mounted {
    pub(super) point: PathBuf,
}

impl Mounted {
    pub(super) fn new(sandbox: &Sandbox, name: &str) -> Mounted {
        let point = sandbox.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&point).unwrap();
        let status = Command::new("mount").args(["-t", "tmpfs", "victim"]).arg(&point).status().unwrap();
        assert!(status.success());
        std::fs::write(point.join("file"), "precious").unwrap();
        Mounted { point }
    }

    pub(super) fn is_whole(&self) -> bool {
        std::fs::read_to_string(self.point.join("file")).is_ok_and(|text| text == "precious")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).status();
    }
}

/// Runs SQL in a store, as anybody with a file can.
pub(crate) fn sql(store: &Path, statements: &str) {
    let connection = rusqlite::Connection::open(store).unwrap();
    connection.execute_batch(statements).unwrap();
}

/// A text as SQL has it.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "''"))
}
