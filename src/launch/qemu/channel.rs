//! What host and guest say to each other over the serial port between them: a line of JSON each.
//!
//! Enters: the emulator's standard output, which is the port's other end. Leaves: messages, as they come.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::launch::Reply;

/// The name of the port.
pub(super) const PORT: &str = "assay";
/// A guest says this often that it lives.
pub(super) const BEAT: Duration = Duration::from_secs(5);

/// What a guest says. The host says nothing but requests.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromGuest {
    /// It is up and takes requests.
    Ready {
        /// Seconds since its kernel started.
        uptime_s: f64,
        /// Drivers that could not be loaded, with the kernel's words.
        missing: Vec<String>,
    },
    /// It lives.
    Beat,
    /// The answer to the request before.
    Reply(Box<Reply>),
}

/// Reads messages on a thread of its own; the receiver is disconnected where the stream ends.
pub(super) fn listen(stream: Option<impl Read + Send + 'static>) -> Receiver<FromGuest> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let Some(stream) = stream else { return };
        for line in BufReader::new(stream).split(b'\n') {
            let Ok(line) = line else { return };
            // A line cut short by a guest's death is followed by the end.
            let Ok(message) = serde_json::from_slice(&line) else { continue };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

/// One message as it goes over the wire.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let mut bytes = line(&FromGuest::Ready { uptime_s: 1.5, missing: vec!["a\nb".to_owned()] });
        bytes.extend(line(&FromGuest::Beat));
        bytes.extend(b"{\"reply\":");
        let messages = listen(Some(std::io::Cursor::new(bytes)));
        match messages.recv().unwrap() {
            FromGuest::Ready { uptime_s, missing } => assert_eq!((uptime_s, missing.len()), (1.5, 1)),
            other => unreachable!("{other:?}"),
        }
        assert!(matches!(messages.recv(), Ok(FromGuest::Beat)));
        assert!(messages.recv().is_err(), "half a line is no message");
    }
}
