//! `write_iolog`: every I/O of an instance, noted in fio's iolog format, version 2.
//!
//! Enters: each transfer as it is made ready. Leaves: lines `file add|open|close` and `file action offset length`,
//! appended to the job's log when it ends (fio's `read_iolog` replays them). It must not know how transfers are made.
//!
//! fio 3.33 itself writes version 3, which is the same with a time in front of each line; version 2 needs no clock
//! read. As in fio all clones of a job append to one file, each part begins with the version line; fio's own parts can
//! mix when they are longer than its buffer of 8 KiB, these never do.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use super::failure::Failure;
use super::method::{Operation, bytes_synced};
use super::source::Next;
use crate::workload::{Instance, Job};

/// Of fio's own making: the first line of a log without times.
const VERSION: &str = "fio version 2 iolog";
/// fio reads names of at most so many bytes.
const LONGEST_NAME: usize = 256;

/// The notes of one instance, in memory until it ends: 24 bytes an I/O.
pub(super) struct IoLog {
    path: PathBuf,
    /// As fio names them: relative to the directory that the job's files lie in.
    names: Vec<String>,
    notes: Vec<Next>,
}

impl IoLog {
    /// The log of `instance`; `None` when its job asks for none.
    ///
    /// # Errors
    /// [`Failure::Setting`] when a file's name does not fit into the format.
    pub(super) fn new(job: &Job, instance: &Instance) -> Result<Option<IoLog>, Failure> {
        let Some(path) = job.io_log.clone() else { return Ok(None) };
        let names: Vec<String> = (0..instance.files.len() as u32)
            .map(|number| job.file_name(instance.clone, number).to_string_lossy().into_owned())
            .collect();
        let unfit = |name: &&String| name.len() > LONGEST_NAME || name.contains(char::is_whitespace);
        if let Some(name) = names.iter().find(unfit) {
            let what = format!(
                "write_iolog cannot name '{name}': names are at most {LONGEST_NAME} bytes without blanks"
            );
            return Err(Failure::Setting { job: job.name.clone(), what });
        }
        Ok(Some(IoLog { path, names, notes: Vec::with_capacity(4096) }))
    }

    /// Notes one transfer.
    pub(super) fn note(&mut self, next: Next) {
        self.notes.push(next);
    }

    /// Appends everything noted to the log.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub(super) fn write(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::file("cannot write the iolog", &self.path, &error);
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).map_err(failed)?;
        // In one call: clones that end at the same moment do not mix.
        file.write_all(self.text().as_bytes()).map_err(failed)
    }

    fn text(&self) -> String {
        let mut text = format!("{VERSION}\n");
        let mut line = |name: &str, rest: &str| {
            text.push_str(name);
            text.push(' ');
            text.push_str(rest);
            text.push('\n');
        };
        self.names.iter().for_each(|name| line(name, "add"));
        let mut opened = vec![false; self.names.len()];
        for note in &self.notes {
            let name = &self.names[note.file];
            if !std::mem::replace(&mut opened[note.file], true) {
                line(name, "open");
            }
            let length = match note.operation {
                Operation::SyncRange => bytes_synced(note.length),
                _ => u64::from(note.length),
            };
            line(name, &format!("{} {} {length}", action(note.operation), note.offset));
        }
        for (name, _) in self.names.iter().zip(&opened).filter(|(_, opened)| **opened) {
            line(name, "close");
        }
        text
    }
}

/// fio's word for it.
fn action(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Trim => "trim",
        Operation::Fsync => "sync",
        Operation::Fdatasync => "datasync",
        Operation::SyncRange => "sync_file_range",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(file: usize, operation: Operation, offset: u64, length: u32) -> Next {
        Next { file, operation, offset, length }
    }

    #[test]
    fn the_lines_are_fios_and_parts_follow_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let names = ["a.0.0", "a.0.1", "a.0.2"].map(str::to_owned).to_vec();
        let mut log = IoLog { path: path.clone(), names, notes: Vec::new() };
        log.note(next(1, Operation::Write, 4096, 512));
        log.note(next(0, Operation::Read, 0, 4096));
        log.note(next(1, Operation::Fdatasync, 0, 0));
        log.note(next(1, Operation::Trim, 8192, 512));
        // 4 pages above the flags.
        log.note(next(1, Operation::SyncRange, 16_384, (4 << 3) | 2));
        log.write().unwrap();
        let part = "fio version 2 iolog\na.0.0 add\na.0.1 add\na.0.2 add\na.0.1 open\na.0.1 write 4096 512\n\
                    a.0.0 open\na.0.0 read 0 4096\na.0.1 datasync 0 0\na.0.1 trim 8192 512\n\
                    a.0.1 sync_file_range 16384 16384\na.0.0 close\na.0.1 close\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), part);
        log.notes = vec![next(0, Operation::Fsync, 0, 0)];
        log.write().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.strip_prefix(part).unwrap().lines().count(), 7);
        log.path = directory.path().join("none/log");
        let error = log.write().unwrap_err().to_string();
        assert!(error.contains("cannot write the iolog") && error.contains("ENOENT"), "{error}");
    }
}
