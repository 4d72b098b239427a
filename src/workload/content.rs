//! What is in the blocks that are written, how it is proven afterwards, and in what memory it lies.
//!
//! Enters: nothing. Leaves: plain values that `draft` fills and the engine's buffers follow.

/// What is in the buffers that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferFill {
    /// Random bytes made once, a few words changed in every block (fio's default, `scramble_buffers=1`).
    Scrambled,
    /// Random bytes made once and used again unchanged (`scramble_buffers=0`).
    Fixed,
    /// Zeroes (`zero_buffers`).
    Zero,
    /// New random bytes for every write (`refill_buffers`).
    Refill,
}

/// `buffer_compress_percentage`, `buffer_compress_chunk`, `dedupe_percentage`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Redundancy {
    /// Percent of each chunk that compresses away, 0–100.
    pub compress_percent: u8,
    /// Bytes of a chunk (fio's default is 512); 0: the smallest block.
    pub compress_chunk: u32,
    /// Percent of the blocks that are copies of others, 0–100.
    pub dedupe_percent: u8,
}

/// `verify` and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// How a block proves itself.
    pub method: VerifyMethod,
    /// `do_verify`: read back what was written, after it or in between.
    pub read_back: bool,
    /// `verify_fatal`: the first wrong block ends the job; else all are counted, then reported.
    pub fatal: bool,
    /// `verify_backlog`: read back after so many writes; 0: when all are written.
    pub backlog: u64,
    /// `verify_backlog_batch`: blocks to read back each time; 0: as many as `backlog`.
    pub backlog_batch: u64,
    /// `verify_interval`: bytes a header covers; 0: the whole block.
    pub interval: u32,
    /// `verify_pattern`, for [`VerifyMethod::Pattern`] and as the content under a checksum.
    pub pattern: Vec<PatternPart>,
}

/// The values of `verify` that are native.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMethod {
    /// `crc32c`, fio's header and checksum.
    Crc32c,
    /// `xxhash`: fio's header and 32-bit xxHash.
    Xxhash,
    /// `pattern`: the bytes alone, no header.
    Pattern,
}

/// One part of a `verify_pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternPart {
    /// These bytes.
    Bytes(Vec<u8>),
    /// `%o`: the offset of the block, eight bytes, little endian.
    Offset,
}

/// `mem`, `lockmem`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BufferMemory {
    /// `mem=mmaphuge`, `mem=shmhuge`: on huge pages.
    pub huge_pages: bool,
    /// `mem=…shared`: shared with other processes.
    pub shared: bool,
    /// `lockmem`: bytes of memory that an instance locks (mlock) besides its buffers, which are locked then, too, so that
    /// the machine has as much less; 0: nothing is locked.
    pub locked_bytes: u64,
}
