//! What a block carries to prove itself, in the layout of fio 3.33, so that each engine can check the other's files.
//!
//! Enters: blocks to be stamped or judged. Leaves: stamped blocks; for a wrong one what is wrong with it. It must not
//! know files or which write was the last.
//!
//! Every `interval` of a block begins with a header of 40 bytes (magic, method, length, seed of the content, offset in
//! the file, time, who wrote it, number of the write, crc32c of all that), then the checksum of the bytes behind it.
//! With the method `pattern` there is neither: the bytes themselves are known. Numbers are in the machine's own order.

use std::ops::Range;

use crate::workload::{Job, PatternPart, Verify, VerifyMethod};

const MAGIC: u16 = 0xacca;
const MAGIC_AT: Range<usize> = 0..2;
const METHOD_AT: Range<usize> = 2..4;
const LENGTH_AT: Range<usize> = 4..8;
const SEED_AT: Range<usize> = 8..16;
const OFFSET_AT: Range<usize> = 16..24;
const SECONDS_AT: Range<usize> = 24..28;
const NANOSECONDS_AT: Range<usize> = 28..32;
const WRITER_AT: Range<usize> = 32..34;
const NUMBER_AT: Range<usize> = 34..36;
const HEADER_SUM_AT: Range<usize> = 36..40;
const SUM_AT: Range<usize> = 40..44;
/// Header and checksum: a block must be larger.
pub(super) const OVERHEAD: usize = 44;

/// What is written into the headers of one block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamp {
    pub(super) seed: u64,
    pub(super) seconds: u32,
    pub(super) nanoseconds: u32,
    pub(super) writer: u16,
    pub(super) number: u16,
}

/// The first thing wrong with a part of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Of the part, in the file.
    pub(super) offset: u64,
    /// Bytes the part has.
    pub(super) length: usize,
    /// What was expected and found.
    pub(super) what: String,
}

/// How the blocks of a job prove themselves.
pub(super) struct BlockProof {
    method: VerifyMethod,
    interval: usize,
    pattern: Pattern,
}

impl BlockProof {
    /// As the job asks.
    pub(super) fn new(job: &Job, verify: &Verify) -> BlockProof {
        let pattern = Pattern::new(&verify.pattern, job.max_block() as usize);
        BlockProof { method: verify.method, interval: interval(job, verify), pattern }
    }

    /// Whether the content under the proof is a pattern, and not random.
    pub(super) fn has_pattern(&self) -> bool {
        !self.pattern.is_empty()
    }

    /// Puts pattern and headers into a block that is about to be written at `offset`.
    pub(super) fn stamp(&mut self, block: &mut [u8], offset: u64, stamp: &Stamp) {
        if self.has_pattern() {
            let content = self.pattern.at(offset, block.len());
            block.copy_from_slice(content);
        }
        if self.method == VerifyMethod::Pattern {
            return;
        }
        let mut place = offset;
        let interval = self.part(block.len());
        for part in block.chunks_mut(interval) {
            // A rest too small for a header proves nothing; fio's sizes leave none.
            if part.len() > OVERHEAD {
                header(part, place, self.method, stamp);
            }
            place += part.len() as u64;
        }
    }

    /// Judges a block read from `offset`, with the number of the write where that is known: how many parts are wrong,
    /// and the first of them.
    pub(super) fn judge(&mut self, block: &[u8], offset: u64, number: Option<u16>) -> (u64, Option<Wrong>) {
        if self.method == VerifyMethod::Pattern {
            let wrong = self.judge_pattern(block, offset);
            return (u64::from(wrong.is_some()), wrong);
        }
        let (mut count, mut first, mut place) = (0, None, offset);
        for part in block.chunks(self.part(block.len())).filter(|part| part.len() > OVERHEAD) {
            if let Some(what) = judge_part(part, place, self.method, number) {
                count += 1;
                first.get_or_insert(Wrong { offset: place, length: part.len(), what });
            }
            place += part.len() as u64;
        }
        (count, first)
    }

    fn judge_pattern(&mut self, block: &[u8], offset: u64) -> Option<Wrong> {
        let wanted = self.pattern.at(offset, block.len());
        if block == wanted {
            return None;
        }
        let at = block.iter().zip(wanted).position(|(found, wanted)| found != wanted)?;
        let many = block.iter().zip(wanted).filter(|(found, wanted)| found != wanted).count();
        let what = format!(
            "byte {at} of the block, at offset {}, is {:#04x} where the pattern has {:#04x} ({many} bytes differ)",
            offset + at as u64,
            block[at],
            wanted[at]
        );
        Some(Wrong { offset, length: block.len(), what })
    }

    /// Bytes a header covers in a block of that length.
    fn part(&self, length: usize) -> usize {
        if self.interval <= length { self.interval } else { length }
    }
}

/// Bytes a header covers; without `verify_interval` the whole block as it is written.
fn interval(job: &Job, verify: &Verify) -> usize {
    let covered = if verify.interval == 0 { job.block_sizes.write.min } else { u64::from(verify.interval) };
    covered.max(1) as usize
}

fn header(part: &mut [u8], offset: u64, method: VerifyMethod, stamp: &Stamp) {
    let length = part.len() as u32;
    part[MAGIC_AT].copy_from_slice(&MAGIC.to_ne_bytes());
    part[METHOD_AT].copy_from_slice(&number_of(method).to_ne_bytes());
    part[LENGTH_AT].copy_from_slice(&length.to_ne_bytes());
    part[SEED_AT].copy_from_slice(&stamp.seed.to_ne_bytes());
    part[OFFSET_AT].copy_from_slice(&offset.to_ne_bytes());
    part[SECONDS_AT].copy_from_slice(&stamp.seconds.to_ne_bytes());
    part[NANOSECONDS_AT].copy_from_slice(&stamp.nanoseconds.to_ne_bytes());
    part[WRITER_AT].copy_from_slice(&stamp.writer.to_ne_bytes());
    part[NUMBER_AT].copy_from_slice(&stamp.number.to_ne_bytes());
    let sum = crc32c(&part[..HEADER_SUM_AT.start]);
    part[HEADER_SUM_AT].copy_from_slice(&sum.to_ne_bytes());
    let sum = checksum(method, &part[OVERHEAD..]);
    part[SUM_AT].copy_from_slice(&sum.to_ne_bytes());
}

/// What is wrong with a part that begins with a header; in fio's order of checks.
fn judge_part(part: &[u8], offset: u64, method: VerifyMethod, number: Option<u16>) -> Option<String> {
    let magic = u16_at(part, MAGIC_AT);
    if magic != MAGIC {
        return Some(format!(
            "it begins with {magic:#06x} and not with the header's magic number {MAGIC:#06x}"
        ));
    }
    let length = u32_at(part, LENGTH_AT) as usize;
    if length != part.len() {
        return Some(format!(
            "its header is of {length} bytes; use the bs and verify_interval it was written with"
        ));
    }
    let said = u64_at(part, OFFSET_AT);
    if said != offset {
        return Some(format!("its header says that it belongs at offset {said}"));
    }
    let found = u16_at(part, NUMBER_AT);
    if let Some(number) = number.filter(|number| *number != found) {
        let writer = u16_at(part, WRITER_AT);
        return Some(format!(
            "it is write {found} of the job numbered {writer}, and this job's last one there was {number}"
        ));
    }
    let (wanted, found) = (u32_at(part, HEADER_SUM_AT), crc32c(&part[..HEADER_SUM_AT.start]));
    if wanted != found {
        return Some(format!("its header is damaged: crc32c {found:#010x}, expected {wanted:#010x}"));
    }
    let (wanted, found) = (u32_at(part, SUM_AT), checksum(method, &part[OVERHEAD..]));
    if wanted == found {
        return None;
    }
    let written_as = u16_at(part, METHOD_AT);
    let name = if method == VerifyMethod::Xxhash { "xxhash" } else { "crc32c" };
    // fio has two numbers for crc32c, with and without hardware.
    let other = written_as != number_of(method) && !(method == VerifyMethod::Crc32c && written_as == 6);
    let hint = if other { "; it was written with another verify=" } else { "" };
    Some(format!("{name} {found:#010x}, expected {wanted:#010x}{hint}"))
}

/// fio's number of the method.
fn number_of(method: VerifyMethod) -> u16 {
    match method {
        VerifyMethod::Crc32c => 5,
        VerifyMethod::Xxhash => 15,
        VerifyMethod::Pattern => 18,
    }
}

fn checksum(method: VerifyMethod, bytes: &[u8]) -> u32 {
    match method {
        VerifyMethod::Xxhash => twox_hash::XxHash32::oneshot(1, bytes),
        VerifyMethod::Crc32c | VerifyMethod::Pattern => crc32c(bytes),
    }
}

/// CRC-32C (Castagnoli) as fio has it: without the final inversion.
fn crc32c(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

fn u16_at(part: &[u8], at: Range<usize>) -> u16 {
    u16::from_ne_bytes([part[at.start], part[at.start + 1]])
}

fn u32_at(part: &[u8], at: Range<usize>) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&part[at]);
    u32::from_ne_bytes(bytes)
}

fn u64_at(part: &[u8], at: Range<usize>) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&part[at]);
    u64::from_ne_bytes(bytes)
}

/// A `verify_pattern`, repeated over a whole block.
struct Pattern {
    once: Vec<u8>,
    /// Where the block's offset stands in it.
    offsets: Vec<usize>,
    /// The largest block, filled for `filled_for`.
    block: Vec<u8>,
    filled_for: Option<u64>,
}

impl Pattern {
    fn new(parts: &[PatternPart], max_block: usize) -> Pattern {
        let (mut once, mut offsets) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                PatternPart::Bytes(bytes) => once.extend_from_slice(bytes),
                PatternPart::Offset => {
                    offsets.push(once.len());
                    once.extend_from_slice(&[0; 8]);
                }
            }
        }
        let block = if once.is_empty() { Vec::new() } else { vec![0; max_block] };
        Pattern { once, offsets, block, filled_for: None }
    }

    fn is_empty(&self) -> bool {
        self.once.is_empty()
    }

    /// The content of a block of `length` bytes (at most the largest) at `offset`; `%o` is that of the whole block.
    fn at(&mut self, offset: u64, length: usize) -> &[u8] {
        let changes = !self.offsets.is_empty();
        if self.filled_for.is_none() || (changes && self.filled_for != Some(offset)) {
            for at in &self.offsets {
                self.once[*at..*at + 8].copy_from_slice(&offset.to_le_bytes());
            }
            for copy in self.block.chunks_mut(self.once.len()) {
                copy.copy_from_slice(&self.once[..copy.len()]);
            }
            self.filled_for = Some(offset);
        }
        &self.block[..length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(method: VerifyMethod, interval: usize, parts: &[PatternPart]) -> BlockProof {
        BlockProof { method, interval, pattern: Pattern::new(parts, 65_536) }
    }

    fn wrong(proof: &mut BlockProof, block: &[u8], offset: u64, number: Option<u16>) -> String {
        let (count, first) = proof.judge(block, offset, number);
        assert!(count > 0);
        first.unwrap().what
    }

    /// The check values of the CRC catalogue (CRC-32/ISCSI) and of the xxHash sources, seed 1.
    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(crc32c(b"123456789"), !0xe306_9283);
        assert_eq!(twox_hash::XxHash32::oneshot(0, b""), 0x02cc_5d05);
        assert_eq!(checksum(VerifyMethod::Xxhash, b""), 0x0b2c_b792);
    }

    #[test]
    fn stamped_blocks_are_right_and_every_flipped_bit_is_found() {
        for (method, interval) in
            [(VerifyMethod::Crc32c, 4096), (VerifyMethod::Crc32c, 512), (VerifyMethod::Xxhash, 1024)]
        {
            let mut proof = proof(method, interval, &[]);
            let mut block = vec![0x5a; 4096];
            let stamp = Stamp { number: 7, writer: 1, ..Stamp::default() };
            proof.stamp(&mut block, 8192, &stamp);
            assert_eq!(proof.judge(&block, 8192, Some(7)), (0, None));
            assert_eq!(proof.judge(&block, 8192, None), (0, None));
            for at in (0..4096).step_by(7) {
                // The method and the writer are only covered by the header's own checksum.
                block[at] ^= 1;
                let (count, first) = proof.judge(&block, 8192, None);
                let first = first.unwrap();
                assert_eq!((count, first.length), (1, interval), "{at}");
                assert_eq!(first.offset, 8192 + (at / interval * interval) as u64, "{at}");
                block[at] ^= 1;
            }
        }
    }

    #[test]
    fn every_kind_of_wrong_block_is_worded() {
        let mut crc = proof(VerifyMethod::Crc32c, 4096, &[]);
        let mut block = vec![1; 4096];
        assert!(wrong(&mut crc, &block, 0, None).contains("begins with 0x0101"));
        crc.stamp(&mut block, 0, &Stamp { number: 3, ..Stamp::default() });
        assert!(wrong(&mut crc, &block, 4096, None).contains("belongs at offset 0"));
        assert!(
            wrong(&mut crc, &block, 0, Some(9))
                .contains("it is write 3 of the job numbered 0, and this job's last one there was 9")
        );
        assert!(wrong(&mut crc, &block[..2048], 0, None).contains("header is of 4096 bytes"));
        let mut damaged = block.clone();
        damaged[33] ^= 0x10;
        assert!(wrong(&mut crc, &damaged, 0, None).contains("header is damaged"));
        let mut damaged = block.clone();
        damaged[4095] ^= 0x10;
        let what = wrong(&mut crc, &damaged, 0, None);
        assert!(what.starts_with("crc32c 0x") && what.contains("expected 0x"), "{what}");
        let mut other = proof(VerifyMethod::Xxhash, 4096, &[]);
        assert!(wrong(&mut other, &block, 0, None).contains("another verify="));
    }

    #[test]
    fn a_pattern_repeats_and_carries_the_offset() {
        let parts = [PatternPart::Bytes(vec![0xab]), PatternPart::Offset, PatternPart::Bytes(b"xy".to_vec())];
        let mut pattern = proof(VerifyMethod::Pattern, 4096, &parts);
        let mut block = vec![0; 4096];
        pattern.stamp(&mut block, 0x1234, &Stamp::default());
        assert_eq!(block[..12], [0xab, 0x34, 0x12, 0, 0, 0, 0, 0, 0, b'x', b'y', 0xab]);
        assert_eq!(pattern.judge(&block, 0x1234, Some(1)), (0, None));
        let what = wrong(&mut pattern, &block, 0x1235, None);
        assert!(
            what.starts_with("byte 1 of the block, at offset 4662, is 0x34 where the pattern has 0x35"),
            "{what}"
        );
        block[100] ^= 1;
        let what = wrong(&mut pattern, &block, 0x1234, None);
        assert!(
            what.starts_with("byte 100 of the block, at offset 4760") && what.contains("1 bytes differ"),
            "{what}"
        );
    }

    #[test]
    fn a_pattern_can_lie_under_headers() {
        let mut proof = proof(VerifyMethod::Crc32c, 512, &[PatternPart::Bytes(vec![0xde, 0xad])]);
        let mut block = vec![0; 1024];
        proof.stamp(&mut block, 0, &Stamp::default());
        assert_eq!(block[OVERHEAD..OVERHEAD + 4], [0xde, 0xad, 0xde, 0xad]);
        assert_eq!(u64_at(&block[512..], OFFSET_AT), 512);
        assert_eq!(proof.judge(&block, 0, Some(0)), (0, None));
    }
}
