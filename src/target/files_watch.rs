//! Files that an engine puts in the place of the run's own: fio unlinks a file that is too short and makes another (`extend_file` in its
//! filesetup.c). They are the run's own then, and a kill at any moment must find them known.
//!
//! Enters: a work directory, while an engine runs. Leaves: its record with the files that are there now.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::TargetError;
use super::ledger::{Contents, Ledger};
use super::own_file;

/// How long a file may be unknown.
const INTERVAL: Duration = Duration::from_millis(10);
/// Time stamps of files are those of the last tick of the kernel's clock, which is older by 10 ms at most.
const TICK: Duration = Duration::from_millis(10);

/// Looks until it is ended.
#[derive(Debug)]
pub(super) struct FilesWatch {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl FilesWatch {
    /// Starts to look; `None`: there is no record.
    pub(super) fn start(work: &Path) -> Result<Option<FilesWatch>, TargetError> {
        let Some((ledger, mut contents)) = Ledger::of(work)? else { return Ok(None) };
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
        let began = (began.as_secs() as i64, began.subsec_nanos());
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            while matches!(ended.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout)) {
                look(&ledger, &mut contents, began);
            }
            look(&ledger, &mut contents, began);
        });
        Ok(Some(FilesWatch { end, thread }))
    }

    /// Looks once more and ends.
    pub(super) fn end(self) {
        drop(self.end);
        let _ = self.thread.join();
    }
}

fn look(ledger: &Ledger, contents: &mut Contents, began: (i64, u32)) {
    let adopted =
        contents.files.iter_mut().filter_map(|file| own_file::adopt(file, began).then_some(())).count();
    if adopted > 0 {
        // What could not be written now is said at the end: the file is another one then.
        let _ = ledger.write(contents);
    }
}
