//! Output of a program that decompresses, up to a limit.
//!
//! Enters: a command. Leaves: what it has written, or that it was too much; the program has ended either way.

use std::io::{Error, Read};
use std::process::{Command, ExitStatus, Stdio};

/// Most bytes of a module or kernel.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// Runs the command; its output, its errors, and how it ended.
///
/// # Errors
/// It cannot be started or read, or writes more than [`MOST_BYTES`].
pub(super) fn output(command: &mut Command) -> std::io::Result<(Vec<u8>, String, ExitStatus)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |out| out.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    let too_large = bytes.len() as u64 > MOST_BYTES;
    if too_large || read.is_err() {
        child.kill()?;
    }
    let ended = child.wait_with_output()?;
    read?;
    if too_large {
        return Err(Error::other(format!("over {} MiB when decompressed", MOST_BYTES >> 20)));
    }
    Ok((bytes, String::from_utf8_lossy(&ended.stderr).trim().to_owned(), ended.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_output_is_refused_and_its_program_ended() {
        let error = output(Command::new("cat").arg("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "over 256 MiB when decompressed");
        let (bytes, said, status) =
            output(Command::new("sh").args(["-c", "echo a; echo b >&2; exit 3"])).unwrap();
        assert_eq!((&*bytes, &*said, status.code()), (&b"a\n"[..], "b", Some(3)));
    }
}
