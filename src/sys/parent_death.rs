//! Programs that end when the process that started them does.
//!
//! Enters: a command. Leaves: the same one, which the kernel signals when its parent's thread ends.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;

/// Has the kernel send a program `signal` when the thread that starts it ends.
pub fn dies_with_its_parent(command: &mut Command, signal: Signal) {
    let parent = rustix::process::getpid();
    #[expect(unsafe_code, reason = "pre_exec is the only way to set a parent-death signal before exec")]
    // SAFETY: the closure makes two async-signal-safe system calls and touches no memory of the parent.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // The parent may have died before the kernel was told to watch it.
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(rustix::io::Errno::SRCH.into())
            }
        });
    }
}
