//! The classes that latencies are kept by: direction and flags.
//!
//! Enters: flags and length of a bio or request. Leaves: its class.

use super::flags::{Flags, Operation};

named! {
    /// A class of bios or requests, in the order of reports, with names of at most 13 letters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Class {
        /// Reads that somebody waits for.
        Read = "read",
        /// Reads ahead.
        ReadAhead = "read ahead",
        /// Reads of metadata, ahead or not.
        ReadMeta = "read meta",
        /// Writes that nobody waits for.
        Write = "write",
        /// Writes that somebody waits for.
        WriteSync = "write sync",
        /// Writes of metadata and of the journal.
        WriteMeta = "write meta",
        /// Writes with data that ask for a flush before them or for FUA.
        WriteFlush = "write flush",
        /// Bios that only ask for a flush.
        FlushBio = "flush bio",
        /// Flush commands as the driver gets them.
        FlushCommand = "flush command",
        /// Discards and secure erases.
        Discard = "discard",
        /// Zeroes, zones, commands of drivers and of user space.
        Other = "other",
    }
}

impl Class {
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
