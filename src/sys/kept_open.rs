//! Files that a program keeps open which did not open them: a lock lasts as long as anybody has its file.
//!
//! Enters: a command, a file. Leaves: the same command, whose program has the file open, and so has every program that it starts.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// Has a program keep `file` open. flock(2) is of the open file: it ends with the last process that has it, so a lock on it outlives
/// this process for as long as anything of the program does.
pub fn keeps_open(command: &mut Command, file: &Arc<File>) {
    let file = Arc::clone(file);
    #[expect(unsafe_code, reason = "pre_exec is the only way to keep one file open in one program alone")]
    // SAFETY: the closure makes one async-signal-safe system call, on a file that it owns, and touches no memory of the parent.
    unsafe {
        command.pre_exec(move || {
            rustix::io::fcntl_setfd(&*file, rustix::io::FdFlags::empty())?;
            Ok(())
        });
    }
}
