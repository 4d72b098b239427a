//! What host and guest say to each other over the serial port between them: a line of JSON each.
//!
//! Enters: the emulator's standard input and output, which are the port's other end. Leaves: messages, as they come and go.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
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

/// Writes lines on a thread of its own: a guest that has stopped reads nothing, and a pipe holds no large request. Nothing is
/// taken any more where the stream has ended.
pub(super) fn speak(stream: Option<impl Write + Send + 'static>) -> Sender<Vec<u8>> {
    let (sender, receiver) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        for line in receiver {
            if stream.write_all(&line).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    });
    sender
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

    #[test]
    fn who_reads_nothing_holds_up_nobody() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let large = vec![b'x'; 1 << 20];
        let speaker = speak(Some(writer));
        // Were it written here, this would never return: a pipe holds 64 KiB.
        speaker.send(large.clone()).unwrap();
        speaker.send(b"end\n".to_vec()).unwrap();
        drop(speaker);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(read.len() == large.len() + 4 && read.ends_with(b"end\n"));
    }
}
