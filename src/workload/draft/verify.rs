//! Options of content: what proves a block, what compresses, what repeats.
//!
//! Enters: an option and its value. Leaves: what it says, in the draft.

use super::Draft;
use crate::workload::content::{PatternPart, Verify, VerifyMethod};
use crate::workload::issue::IoMethod;
use crate::workload::job::{BlockRange, Job};
use crate::workload::nearest;
use crate::workload::values::{Fault, Value, bad, boolean, greatest_common_divisor, number};
use crate::workload::{ProblemKind, pattern_text};

/// fio's other values of `verify`.
const FIO_METHODS: &[&str] = &[
    "md5", "crc64", "crc32", "crc16", "crc7", "sha1", "sha256", "sha512", "sha3-224", "sha3-256", "sha3-384",
    "sha3-512", "meta", "null",
];
const NATIVE_METHODS: &[(&str, Option<VerifyMethod>)] = &[
    ("0", None),
    ("crc32c", Some(VerifyMethod::Crc32c)),
    ("crc32c-intel", Some(VerifyMethod::Crc32c)),
    ("xxhash", Some(VerifyMethod::Xxhash)),
    ("pattern", Some(VerifyMethod::Pattern)),
];
/// Bytes of fio's header.
const HEADER: u64 = 40;
/// Bytes of header and checksum in front of what is covered.
const OVERHEAD: u64 = 44;

/// What was said of verification.
pub(super) struct VerifyDraft {
    method: Option<VerifyMethod>,
    read_back: bool,
    fatal: bool,
    backlog: u64,
    backlog_batch: u64,
    interval: u32,
    pattern: Vec<PatternPart>,
}

impl Default for VerifyDraft {
    fn default() -> VerifyDraft {
        VerifyDraft {
            method: None,
            read_back: true,
            fatal: false,
            backlog: 0,
            backlog_batch: 0,
            interval: 0,
            pattern: Vec::new(),
        }
    }
}

impl Draft {
    pub(super) fn apply_content(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        let verify = &mut self.verify;
        let redundancy = &mut self.job.redundancy;
        let percent = |text: &str| number(text, kb, 0, 100).map(|percent| percent as u8);
        let count = |text: &str, most: u32| number(text, kb, 0, u64::from(most));
        Some(match name {
            "verify" => method(text).map(|method| verify.method = method),
            "verify_pattern" => pattern_text::parse(text).map(|pattern| verify.pattern = pattern),
            "do_verify" => boolean(Some(text)).map(|on| verify.read_back = on),
            "verify_fatal" => boolean(Some(text)).map(|on| verify.fatal = on),
            "verify_backlog" => number(text, kb, 0, u64::MAX).map(|count| verify.backlog = count),
            "verify_backlog_batch" => count(text, u32::MAX).map(|count| verify.backlog_batch = count),
            // fio's least: two headers.
            "verify_interval" => {
                number(text, kb, 2 * HEADER, u64::from(u32::MAX)).map(|bytes| verify.interval = bytes as u32)
            }
            "buffer_compress_percentage" => {
                percent(text).map(|percent| redundancy.compress_percent = percent)
            }
            "buffer_compress_chunk" => {
                count(text, 1 << 30).map(|bytes| redundancy.compress_chunk = bytes as u32)
            }
            "dedupe_percentage" => percent(text).map(|percent| redundancy.dedupe_percent = percent),
            _ => return None,
        })
    }

    /// Puts what the content is into the job, as fio's fixup_options does; what does not fit together.
    pub(super) fn finish_content(&mut self) -> Vec<(ProblemKind, String)> {
        let redundancy = &mut self.job.redundancy;
        if redundancy.compress_percent == 100 {
            self.zero = true;
            redundancy.compress_percent = 0;
        }
        let fresh = redundancy.dedupe_percent > 0
            || ((redundancy.compress_percent > 0 || self.verify.method.is_some()) && self.refill.is_none());
        if fresh {
            self.refill = Some(true);
        }
        let pattern = !self.verify.pattern.is_empty();
        let verify = &self.verify;
        let Some(method) = verify.method else {
            let unsaid = "verify_pattern without verify= makes fio write headers without a checksum, which the \
                          native engine does not have; add verify=pattern or verify=crc32c";
            return if pattern { vec![(ProblemKind::NotNative, unsaid.to_owned())] } else { Vec::new() };
        };
        let wrong = verify_contradictions(verify, method, &self.job);
        let sizes = self.job.block_sizes;
        let reads = self.job.pattern.mix.reads().then_some(sizes.read);
        self.job.verify = Some(Verify {
            method,
            read_back: verify.read_back,
            fatal: verify.fatal,
            backlog: verify.backlog,
            backlog_batch: verify.backlog_batch,
            interval: interval(verify.interval, reads, sizes.write),
            pattern: std::mem::take(&mut self.verify.pattern),
        });
        wrong
    }
}

/// `verify_interval` as fio corrects it: a divisor of the sizes of writes, and no larger than a read.
fn interval(wanted: u32, reads: Option<BlockRange>, writes: BlockRange) -> u32 {
    let mut bytes = u64::from(wanted);
    if bytes == 0 && writes.is_fixed() {
        return 0;
    }
    if bytes == 0 || bytes > writes.min {
        bytes = writes.min;
    } else if let Some(reads) = reads {
        bytes = bytes.min(reads.min);
    }
    if !writes.min.is_multiple_of(bytes) || !writes.max.is_multiple_of(bytes) {
        bytes = greatest_common_divisor(writes.min, writes.max);
    }
    u32::try_from(bytes).unwrap_or(0)
}

fn verify_contradictions(
    verify: &VerifyDraft,
    method: VerifyMethod,
    job: &Job,
) -> Vec<(ProblemKind, String)> {
    let mix = job.pattern.mix;
    let mut wrong = Vec::new();
    let mut add = |message: String| wrong.push((ProblemKind::Inconsistent, message));
    if mix.trims() {
        add("has verify with trims, which leave nothing to prove; leave verify out".to_owned());
    }
    if job.method == IoMethod::Null {
        add("has verify with ioengine=null, which transfers nothing; leave verify out".to_owned());
    }
    if method == VerifyMethod::Pattern && verify.pattern.is_empty() {
        add("verify=pattern needs verify_pattern=, e.g. verify_pattern=0xdeadbeef".to_owned());
    }
    if method != VerifyMethod::Pattern && job.min_block() <= OVERHEAD {
        add(format!(
            "a block of {} bytes has no room for verify's header and checksum of {OVERHEAD}",
            job.min_block()
        ));
    }
    let never = mix.writes() && !mix.reads() && job.time_based && verify.backlog == 0;
    if verify.read_back && never {
        add("verify never reads back, because the writes take the whole runtime; set verify_backlog= or \
             do_verify=0"
            .to_owned());
    }
    wrong
}

/// `verify`.
fn method(text: &str) -> Value<Option<VerifyMethod>> {
    if let Some((_, method)) = NATIVE_METHODS.iter().find(|(name, _)| *name == text) {
        return Ok(*method);
    }
    if FIO_METHODS.contains(&text) {
        return Err(Fault::NotNative(format!("'{text}' (it has crc32c, xxhash and pattern)")));
    }
    let known = NATIVE_METHODS.iter().map(|(name, _)| *name).chain(FIO_METHODS.iter().copied());
    bad(match nearest(text, known, 1).first() {
        Some(near) => format!("fio has no verification '{text}'; did you mean {near}?"),
        None => format!("fio has no verification '{text}'; write crc32c, xxhash or pattern"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_divides_the_writes() {
        let range = |min, max| BlockRange { min, max };
        assert_eq!(interval(0, None, range(4096, 4096)), 0);
        assert_eq!(interval(0, None, range(4096, 16384)), 4096);
        assert_eq!(interval(8192, None, range(4096, 16384)), 4096);
        assert_eq!(interval(4096, Some(range(1024, 1024)), range(4096, 16384)), 1024);
        assert_eq!(interval(1000, None, range(4096, 16384)), 4096);
        assert_eq!(interval(512, None, range(4096, 4096)), 512);
    }

    #[test]
    fn methods_by_name() {
        assert_eq!(method("crc32c-intel"), Ok(Some(VerifyMethod::Crc32c)));
        assert_eq!(method("0"), Ok(None));
        assert!(matches!(method("sha3-256"), Err(Fault::NotNative(_))));
        assert!(matches!(method("crc32d"), Err(Fault::Bad(message)) if message.contains("crc32")));
    }
}
