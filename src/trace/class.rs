//! The classes that latencies are kept by: direction and flags.
//!
//! Enters: flags and length of a bio or request. Leaves: its class.

use super::flags::{Flags, Operation};

/// A class of bios or requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Reads that somebody waits for.
    Read,
    /// Reads ahead.
    ReadAhead,
    /// Reads of metadata, ahead or not.
    ReadMeta,
    /// Writes that nobody waits for.
    Write,
    /// Writes that somebody waits for.
    WriteSync,
    /// Writes of metadata and of the journal.
    WriteMeta,
    /// Writes with data that ask for a flush before them or for FUA.
    WriteFlush,
    /// Bios that only ask for a flush.
    FlushBio,
    /// Flush commands as the driver gets them.
    FlushCommand,
    /// Discards and secure erases.
    Discard,
    /// Zeroes, zones, commands of drivers and of user space.
    Other,
}

impl Class {
    /// All, in the order of reports.
    pub const ALL: [Class; 11] = [
        Class::Read,
        Class::ReadAhead,
        Class::ReadMeta,
        Class::Write,
        Class::WriteSync,
        Class::WriteMeta,
        Class::WriteFlush,
        Class::FlushBio,
        Class::FlushCommand,
        Class::Discard,
        Class::Other,
    ];

    /// Those that read.
    pub const READS: [Class; 3] = [Class::Read, Class::ReadAhead, Class::ReadMeta];

    /// Those that write data.
    pub const WRITES: [Class; 4] = [Class::Write, Class::WriteSync, Class::WriteMeta, Class::WriteFlush];

    /// The class of a bio or request of this length.
    #[must_use]
    pub fn of(flags: Flags, sectors: u32) -> Class {
        match flags.operation {
            Operation::Read if flags.meta() => Class::ReadMeta,
            Operation::Read if flags.ahead() => Class::ReadAhead,
            Operation::Read => Class::Read,
            Operation::Write if sectors == 0 && flags.preflush() => Class::FlushBio,
            Operation::Write if flags.preflush() || flags.fua() => Class::WriteFlush,
            Operation::Write if flags.meta() => Class::WriteMeta,
            Operation::Write if flags.sync() => Class::WriteSync,
            Operation::Write => Class::Write,
            Operation::Flush => Class::FlushCommand,
            Operation::Discard | Operation::SecureErase => Class::Discard,
            Operation::None | Operation::WriteZeroes | Operation::Zone | Operation::Passthrough => {
                Class::Other
            }
        }
    }

    /// For people, at most 13 letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::ReadAhead => "read ahead",
            Class::ReadMeta => "read meta",
            Class::Write => "write",
            Class::WriteSync => "write sync",
            Class::WriteMeta => "write meta",
            Class::WriteFlush => "write flush",
            Class::FlushBio => "flush bio",
            Class::FlushCommand => "flush command",
            Class::Discard => "discard",
            Class::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_their_class() {
        for (letters, sectors, class) in [
            ("R", 8, Class::Read),
            ("RA", 8, Class::ReadAhead),
            ("RAM", 8, Class::ReadMeta),
            ("RSM", 8, Class::ReadMeta),
            ("W", 8, Class::Write),
            ("WS", 8, Class::WriteSync),
            ("WSM", 8, Class::WriteMeta),
            ("WFS", 8, Class::WriteFlush),
            ("FWFSM", 8, Class::WriteFlush),
            ("FWS", 0, Class::FlushBio),
            ("FF", 0, Class::FlushCommand),
            ("FN", 0, Class::FlushCommand),
            ("DS", 8, Class::Discard),
            ("N", 0, Class::Other),
        ] {
            assert_eq!(Class::of(Flags::from_letters(letters.as_bytes()), sectors), class, "{letters}");
        }
    }
}
