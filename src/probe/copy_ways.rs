//! How a block is copied: by the caches, past them, or by them with every line written back.
//!
//! Enters: two blocks of one length. Leaves: the copy. Which instructions there are is asked beforehand. Sources: Intel 64 and IA-32
//! Architectures Software Developer's Manual, volume 2 (MOVNTDQ, CLWB, CLFLUSHOPT, SFENCE).

/// The C library turns to stores past the caches in calls longer than most of the last cache: in such pieces it never does.
const PIECE: usize = 4096;
/// Bytes of a cache line on x86.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// A way to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Out of the large area into the block, as a read from the page cache does.
    Read,
    /// Into the area by the caches, as a write to the page cache does.
    Cached,
    /// Into the area past the caches.
    NonTemporal,
    /// Into the area by the caches, then every line is written back to memory.
    WriteBack(LineWriter),
}

/// The instruction that writes a line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineWriter {
    /// `clwb`: the line may stay in the cache.
    Clwb,
    /// `clflushopt`: the line leaves the cache.
    Clflushopt,
}

impl Way {
    /// Its name in what is stored.
    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Cached => "cached",
            Way::NonTemporal => "non_temporal",
            Way::WriteBack(_) => "write_back",
        }
    }

    /// The ways of a processor with these features, and which it lacks.
    pub(super) fn of_processor(flags: &[String]) -> (Vec<Way>, Vec<&'static str>) {
        let (mut ways, mut lacking) = (vec![Way::Read, Way::Cached], Vec::new());
        if !cfg!(target_arch = "x86_64") {
            return (ways, vec!["non-temporal copies", "copies with write-back of the lines"]);
        }
        // Part of every x86-64.
        ways.push(Way::NonTemporal);
        let has = |name: &str| flags.iter().any(|flag| flag == name);
        match () {
            () if has("clwb") => ways.push(Way::WriteBack(LineWriter::Clwb)),
            () if has("clflushopt") => ways.push(Way::WriteBack(LineWriter::Clflushopt)),
            () => lacking.push("copies with write-back of the lines"),
        }
        (ways, lacking)
    }

    /// Copies `from` to `to`, which have one length, a multiple of 4096, and begin at pages. The caller has asked whether the processor
    /// has the instructions.
    pub(super) fn copy(self, to: &mut [u8], from: &[u8]) {
        match self {
            Way::Read | Way::Cached => in_pieces(to, from),
            Way::NonTemporal => past_the_caches(to, from),
            Way::WriteBack(writer) => {
                in_pieces(to, from);
                write_back(to, writer);
            }
        }
    }
}

/// What this processor can do, in the words of `/proc/cpuinfo`; empty where it has none.
pub(super) fn features() -> Vec<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':'));
    line.map(|(_, words)| words.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
}

fn in_pieces(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
        to.copy_from_slice(from);
    }
}

#[cfg(target_arch = "x86_64")]
fn past_the_caches(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_sfence, _mm_stream_si128};
    const WORD: usize = 16;
    let (to_words, from_words) = (to.as_mut_ptr().cast::<__m128i>(), from.as_ptr().cast::<__m128i>());
    let words = to.len().min(from.len()) / WORD;
    assert!(to_words.is_aligned() && from_words.is_aligned(), "blocks begin at pages");
    for line in 0..words / 4 {
        #[expect(unsafe_code, reason = "the instruction is reached by an intrinsic only")]
        // SAFETY: SSE2 is part of x86-64; both addresses are aligned (asserted), and `line * 4 + 3` is below `words`, which both
        // slices have. They cannot overlap: one is borrowed mutably.
        unsafe {
            let at = line * 4;
            let four = [0, 1, 2, 3].map(|word| _mm_load_si128(from_words.add(at + word)));
            for (word, value) in four.into_iter().enumerate() {
                _mm_stream_si128(to_words.add(at + word), value);
            }
        }
    }
    #[expect(unsafe_code, reason = "the instruction is reached by an intrinsic only")]
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        _mm_sfence();
    }
}

#[cfg(target_arch = "x86_64")]
fn write_back(block: &mut [u8], writer: LineWriter) {
    use std::arch::asm;
    for line in block.chunks_mut(LINE) {
        let address = line.as_mut_ptr();
        #[expect(unsafe_code, reason = "there is no intrinsic for it")]
        // SAFETY: the caller has seen that the processor has the instruction, which changes no contents; the address is that of
        // memory borrowed here.
        unsafe {
            match writer {
                LineWriter::Clwb => asm!("clwb [{}]", in(reg) address, options(nostack, preserves_flags)),
                LineWriter::Clflushopt => {
                    asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags));
                }
            }
        }
    }
    #[expect(unsafe_code, reason = "the instruction is reached by an intrinsic only")]
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Never chosen by [`Way::of_processor`] here.
#[cfg(not(target_arch = "x86_64"))]
fn past_the_caches(to: &mut [u8], from: &[u8]) {
    in_pieces(to, from);
}

/// Never chosen by [`Way::of_processor`] here.
#[cfg(not(target_arch = "x86_64"))]
fn write_back(_: &mut [u8], _: LineWriter) {}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::*;

    #[test]
    fn every_way_that_is_there_copies_every_byte() {
        for way in Way::of_processor(&features()).0 {
            let from = Memory::filled(3 * PIECE, 7).unwrap();
            let mut to = Memory::untouched(3 * PIECE).unwrap();
            way.copy(&mut to, &from);
            assert!(to[..] == from[..], "{way:?}");
        }
    }

    #[test]
    fn what_a_processor_lacks_is_named() {
        let flags = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (plain, lacking) = Way::of_processor(&flags(&["sse2"]));
        assert!(!plain.iter().any(|way| matches!(way, Way::WriteBack(_))) && !lacking.is_empty());
        if cfg!(target_arch = "x86_64") {
            let best = |words| Way::of_processor(&flags(words)).0.pop();
            assert_eq!(best(&["clwb", "clflushopt"]), Some(Way::WriteBack(LineWriter::Clwb)));
            assert_eq!(best(&["clflushopt"]), Some(Way::WriteBack(LineWriter::Clflushopt)));
            assert_eq!(plain, [Way::Read, Way::Cached, Way::NonTemporal]);
        }
    }
}
