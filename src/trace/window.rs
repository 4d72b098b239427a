//! Reads a file in large pieces and shows it in small ones, without copying each.
//!
//! Enters: anything that can be read. Leaves: slices of its bytes with their places.

use std::io::Read;

use super::error::TraceError;

/// How much is read at once.
const PIECE: usize = 256 << 10;

/// A window that moves over a file.
pub(super) struct Window<R> {
    reader: R,
    name: String,
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    offset: u64,
}

impl<R: Read> Window<R> {
    pub(super) fn new(reader: R, name: String) -> Window<R> {
        Window { reader, name, bytes: vec![0; PIECE], begin: 0, end: 0, offset: 0 }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where in the file the next byte lies.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes: `wanted` of them, or fewer at the end of the file.
    pub(super) fn show(&mut self, wanted: usize) -> Result<&[u8], TraceError> {
        while self.end - self.begin < wanted {
            if !self.read_more(wanted)? {
                break;
            }
        }
        Ok(&self.bytes[self.begin..self.end.min(self.begin + wanted)])
    }

    /// The next line without its end, or nothing at the end of the file. A last line needs no end.
    pub(super) fn line(&mut self, longest: usize) -> Result<Option<&[u8]>, TraceError> {
        let mut searched = 0;
        loop {
            let shown = &self.bytes[self.begin..self.end];
            if let Some(at) = shown[searched..].iter().position(|byte| *byte == b'\n') {
                let (begin, length) = (self.begin, searched + at);
                self.consume(length + 1);
                return Ok(Some(&self.bytes[begin..begin + length]));
            }
            searched = shown.len();
            if searched > longest {
                return Err(TraceError::Foreign {
                    name: self.name.clone(),
                    reason: format!("a line is longer than {longest} bytes"),
                });
            }
            if !self.read_more(searched + 1)? {
                let begin = self.begin;
                self.consume(searched);
                return Ok((searched > 0).then(|| &self.bytes[begin..begin + searched]));
            }
        }
    }

    pub(super) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.begin);
        self.begin += count;
        self.offset += count as u64;
    }

    /// Makes room for `wanted` bytes and reads once. Returns whether anything came.
    fn read_more(&mut self, wanted: usize) -> Result<bool, TraceError> {
        if self.begin > 0 {
            self.bytes.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if self.bytes.len() < wanted.max(self.end + 1) {
            self.bytes.resize(wanted.max(self.bytes.len() * 2), 0);
        }
        loop {
            match self.reader.read(&mut self.bytes[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(TraceError::Unreadable {
                        name: self.name.clone(),
                        reason: error.to_string(),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Slow(Vec<u8>);

    impl Read for Slow {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() || to.is_empty() {
                return Ok(0);
            }
            to[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let mut window = Window::new(Slow(b"one\n\ntwo\nlast".to_vec()), "test".to_owned());
        let mut lines = Vec::new();
        while let Some(line) = window.line(10).unwrap() {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(lines, ["one", "", "two", "last"]);
        assert_eq!(window.offset(), 13);
        let mut long = Window::new(&b"0123456789abcdef"[..], "test".to_owned());
        assert!(long.line(10).unwrap_err().to_string().contains("longer than 10"));
    }

    #[test]
    fn slices_are_short_only_at_the_end() {
        let mut window = Window::new(Slow(b"abcdef".to_vec()), "test".to_owned());
        assert_eq!(window.show(4).unwrap(), b"abcd");
        window.consume(4);
        assert_eq!(window.show(4).unwrap(), b"ef");
        window.consume(4);
        assert_eq!((window.show(4).unwrap().len(), window.offset()), (0, 6));
    }
}
