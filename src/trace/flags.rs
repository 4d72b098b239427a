//! What a bio or request is to do: the kernel's `rwbs` letters.
//!
//! Enters: the letters of tracefs and perf (`blk_fill_rwbs`), those of blkparse, or blktrace's category bits. Leaves: [`Flags`],
//! the same whoever wrote them: a flush command is `FF` in tracefs and `FN` in blkparse.

use std::fmt;

/// The operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// None: plugs, unplugs, unknown.
    #[default]
    None,
    /// A read.
    Read,
    /// A write.
    Write,
    /// A discard.
    Discard,
    /// A secure erase.
    SecureErase,
    /// A flush command of the device's cache.
    Flush,
    /// Zeroes without a buffer.
    WriteZeroes,
    /// Anything with zones.
    Zone,
    /// A command of a driver or of user space, without data of a file.
    Passthrough,
}

impl Operation {
    /// A read or a write.
    #[inline]
    pub(super) fn moves_data(self) -> bool {
        matches!(self, Operation::Read | Operation::Write)
    }
}

/// Operation and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The operation.
    pub operation: Operation,
    bits: u8,
}

const PREFLUSH: u8 = 1;
const FUA: u8 = 2;
const AHEAD: u8 = 4;
const SYNC: u8 = 8;
const META: u8 = 16;
const ATOMIC: u8 = 32;

// Category bits of blktrace, include/uapi/linux/blktrace_api.h.
const READ_CATEGORY: u64 = 1;
const WRITE_CATEGORY: u64 = 1 << 1;
const FLUSH_CATEGORY: u64 = 1 << 2;
const SYNC_CATEGORY: u64 = 1 << 3;
const PASSTHROUGH_CATEGORY: u64 = 1 << 9;
const AHEAD_CATEGORY: u64 = 1 << 11;
const META_CATEGORY: u64 = 1 << 12;
const DISCARD_CATEGORY: u64 = 1 << 13;
const FUA_CATEGORY: u64 = 1 << 15;
const ZONE_CATEGORIES: u64 = 0b11_1111 << 16;
const WRITE_ZEROES_CATEGORY: u64 = 1 << 22;

impl Flags {
    /// The device's cache is flushed before the data.
    #[must_use]
    pub fn preflush(self) -> bool {
        self.bits & PREFLUSH != 0
    }

    /// The data are durable when the write completes.
    #[must_use]
    pub fn fua(self) -> bool {
        self.bits & FUA != 0
    }

    /// Read ahead.
    #[must_use]
    pub fn ahead(self) -> bool {
        self.bits & AHEAD != 0
    }

    /// Somebody waits for it.
    #[must_use]
    pub fn sync(self) -> bool {
        self.bits & SYNC != 0
    }

    /// Metadata or journal.
    #[must_use]
    pub fn meta(self) -> bool {
        self.bits & META != 0
    }

    /// Whether it puts data on the device.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self.operation, Operation::Write | Operation::WriteZeroes)
    }

    /// Reads the letters. Letters that a later kernel may add behind the operation change nothing.
    #[must_use]
    pub fn from_letters(letters: &[u8]) -> Flags {
        let mut rest = letters;
        let mut bits = 0;
        // An F in front of an operation asks for a flush before it; alone it is the operation.
        if let [b'F', b'W' | b'D' | b'R' | b'N' | b'F' | b'Z', ..] = rest {
            bits |= PREFLUSH;
            rest = &rest[1..];
        }
        let operation = match rest.first() {
            Some(b'R') => Operation::Read,
            Some(b'W') if rest.get(1) == Some(&b'Z') => Operation::WriteZeroes,
            Some(b'W') => Operation::Write,
            Some(b'D') if rest.get(1) == Some(&b'E') => Operation::SecureErase,
            Some(b'D') => Operation::Discard,
            Some(b'F') => Operation::Flush,
            Some(b'Z') => Operation::Zone,
            // blkparse has no letter for the flush command: FN.
            Some(b'N') if bits & PREFLUSH != 0 => Operation::Flush,
            _ => Operation::None,
        };
        // A zone command has a second letter of its own.
        let flags = rest.get(if operation == Operation::Zone { 2 } else { 1 }..).unwrap_or_default();
        for letter in flags {
            bits |= match letter {
                b'F' => FUA,
                b'A' => AHEAD,
                b'S' => SYNC,
                b'M' => META,
                b'U' => ATOMIC,
                _ => 0,
            };
        }
        Flags { operation, bits }
    }

    /// Reads the category bits of a blktrace record that moves this many bytes.
    #[must_use]
    pub fn from_categories(categories: u64, bytes: u32) -> Flags {
        let has = |category: u64| categories & category != 0;
        let mut bits = 0;
        for (category, bit) in [
            (FLUSH_CATEGORY, PREFLUSH),
            (FUA_CATEGORY, FUA),
            (AHEAD_CATEGORY, AHEAD),
            (SYNC_CATEGORY, SYNC),
            (META_CATEGORY, META),
        ] {
            bits |= if has(category) { bit } else { 0 };
        }
        let operation = if has(PASSTHROUGH_CATEGORY) {
            Operation::Passthrough
        } else if has(ZONE_CATEGORIES) {
            Operation::Zone
        } else if has(WRITE_ZEROES_CATEGORY) {
            Operation::WriteZeroes
        } else if has(DISCARD_CATEGORY) {
            Operation::Discard
        } else if has(WRITE_CATEGORY) {
            Operation::Write
        } else if has(FLUSH_CATEGORY) && bytes == 0 {
            Operation::Flush
        } else if has(READ_CATEGORY) && bytes > 0 {
            Operation::Read
        } else {
            Operation::None
        };
        Flags { operation, bits }
    }

    /// The category bits of a record of version 7, which has 16 of them: zones are not among them, and zeroes without a buffer are a write.
    #[must_use]
    pub(super) fn categories(self) -> u16 {
        let operation = match self.operation {
            // The kernel's own: what is no write is a read.
            Operation::None | Operation::Read | Operation::Zone => READ_CATEGORY,
            Operation::Write | Operation::WriteZeroes => WRITE_CATEGORY,
            Operation::Discard | Operation::SecureErase => DISCARD_CATEGORY | WRITE_CATEGORY,
            Operation::Flush => FLUSH_CATEGORY | READ_CATEGORY,
            Operation::Passthrough => PASSTHROUGH_CATEGORY | READ_CATEGORY,
        };
        let mut categories = operation;
        for (bit, category) in [
            (PREFLUSH, FLUSH_CATEGORY),
            (FUA, FUA_CATEGORY),
            (AHEAD, AHEAD_CATEGORY),
            (SYNC, SYNC_CATEGORY),
            (META, META_CATEGORY),
        ] {
            categories |= if self.bits & bit != 0 { category } else { 0 };
        }
        (categories & 0xffff) as u16
    }
}

impl fmt::Display for Flags {
    /// The kernel's letters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.preflush() {
            f.write_str("F")?;
        }
        f.write_str(match self.operation {
            Operation::None | Operation::Passthrough => "N",
            Operation::Read => "R",
            Operation::Write => "W",
            Operation::Discard => "D",
            Operation::SecureErase => "DE",
            Operation::Flush => "F",
            Operation::WriteZeroes => "WZ",
            Operation::Zone => "Z",
        })?;
        for (bit, letter) in [(FUA, "F"), (AHEAD, "A"), (SYNC, "S"), (META, "M"), (ATOMIC, "U")] {
            if self.bits & bit != 0 {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_letters_are_read_and_written() {
        for letters in [
            "R", "RA", "RM", "RSM", "W", "WS", "WM", "WSM", "WFS", "FWS", "FWSM", "FWFSM", "FF", "D", "DE",
            "N",
        ] {
            let flags = Flags::from_letters(letters.as_bytes());
            assert_eq!(flags.to_string(), letters);
        }
        let commit = Flags::from_letters(b"FWFSM");
        assert!(commit.preflush() && commit.fua() && commit.sync() && commit.meta() && commit.writes());
    }

    #[test]
    fn a_flush_command_is_the_same_in_every_tool() {
        let tracefs = Flags::from_letters(b"FF");
        assert_eq!(tracefs, Flags::from_letters(b"FN"));
        assert_eq!(tracefs, Flags::from_categories(0x145, 0));
        assert_eq!(tracefs.operation, Operation::Flush);
        // With data the same bits would be a read behind a flush, which nobody issues.
        assert_eq!(Flags::from_categories(0x145, 512).operation, Operation::Read);
    }

    #[test]
    fn category_bits_say_what_the_letters_say() {
        for (categories, bytes, letters) in [
            (0x901e, 1024, "FWFSM"),
            (0x1e, 0, "FWS"),
            (0x101a, 512, "WSM"),
            (0x811, 4096, "RA"),
            (0x11, 0, "N"),
            (0x2012, 4096, "D"),
        ] {
            assert_eq!(Flags::from_categories(categories, bytes).to_string(), letters);
        }
        assert_eq!(Flags::from_categories(0x300 | 2, 512).operation, Operation::Passthrough);
    }

    #[test]
    fn letters_that_nobody_knows_do_no_harm() {
        assert_eq!(Flags::from_letters(b"").operation, Operation::None);
        assert_eq!(Flags::from_letters(b"WSQ"), Flags::from_letters(b"WS"));
        assert_eq!(Flags::from_letters(b"ZR").operation, Operation::Zone);
        assert_eq!(Flags::from_letters(b"F").operation, Operation::Flush);
    }
}
