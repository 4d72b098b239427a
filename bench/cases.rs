//! What `make bench` compares, and what is promised of it: a case is an experiment file of this directory.

use crate::promise::Promise;

/// A level of the factor `engine` over another one.
pub(crate) struct Pair {
    pub(crate) level: &'static str,
    pub(crate) over: &'static str,
    pub(crate) promise: Promise,
}

/// One experiment.
pub(crate) struct Case {
    /// The run's name, which is that of the file.
    pub(crate) run: &'static str,
    /// What is measured, in words.
    pub(crate) what: &'static str,
    /// I/Os a second.
    pub(crate) rates: &'static [Pair],
    /// User time an I/O.
    pub(crate) user_times: &'static [Pair],
}

impl Pair {
    /// The level that makes the same system calls with nothing around them.
    pub(crate) fn bare(&self) -> String {
        self.level.replace("native", "bare")
    }
}

const PLAIN: (&str, &str) = ("native", "fio");
const TUNED: (&str, &str) = ("native tuned", "fio tuned");

const HALF: &[Pair] = &[pair(PLAIN, Promise::AtMost(0.5))];
const BOTH_HALF: &[Pair] = &[pair(PLAIN, Promise::AtMost(0.5)), pair(TUNED, Promise::AtMost(0.5))];
/// Both change the same two cache lines a sector of what they write, and most of the user time is waiting for these.
const SHOWN: &[Pair] = &[pair(PLAIN, Promise::None)];
/// Beside the system call in a loop.
const NEAR_BARE: &[Pair] =
    &[pair(("native", "bare"), Promise::AtLeast(0.97)), pair(("fio", "bare"), Promise::None)];
/// I/Os end while they are submitted: all there is to measure is the engine and the kernel's entry. The system call in a loop says
/// how much there is to gain.
const INLINE: &[Pair] = &[
    pair(PLAIN, Promise::AtLeastOrBare(1.3)),
    pair(TUNED, Promise::AtLeastOrBare(1.15)),
    pair(("native", "bare"), Promise::None),
    pair(("native tuned", "bare tuned"), Promise::None),
    pair(("bare", "fio"), Promise::None),
    pair(("bare tuned", "fio tuned"), Promise::None),
];
/// I/Os wait for a device: the engine must not be in its way.
const DEVICE: &[Pair] = &[pair(PLAIN, Promise::NotSlower), pair(TUNED, Promise::NotSlower)];

/// The same beside a disk, where a batch as deep as the queue is a load of its own.
const DISK: &[Pair] = &[
    pair(PLAIN, Promise::NotSlower),
    pair(TUNED, Promise::NotSlower),
    pair(("native bursts", "fio bursts"), Promise::None),
];

/// All of them, in the order of the page.
pub(crate) const CASES: &[Case] = &[
    case("null", "null, 1 job", &[pair(PLAIN, Promise::AtLeast(5.0))], HALF),
    case("psync-tmpfs", "psync, cached file of a tmpfs", NEAR_BARE, HALF),
    case("psync-zram", "psync, direct, zram", NEAR_BARE, HALF),
    case("uring-warm", "io_uring, depth 32, cached file", INLINE, BOTH_HALF),
    case("libaio-warm", "libaio, depth 32, cached file", INLINE, BOTH_HALF),
    case("uring-zram", "io_uring, depth 32, direct, zram", DEVICE, &[]),
    case("uring-loop", "io_uring, depth 32, direct, loop device", DEVICE, &[]),
    case("uring-disk", "io_uring, depth 32, direct, a file on a disk", DISK, &[]),
    case("uring-cold", "io_uring, depth 32, an uncached file on a disk", DEVICE, &[]),
    case("libaio-disk", "libaio, depth 32, direct, a file on a disk", DEVICE, &[]),
    case("libaio-read", "libaio, depth 1024, batches of 32, zram", &[pair(PLAIN, Promise::NotSlower)], HALF),
    case("libaio-write", "the same, random writes", &[pair(PLAIN, Promise::NotSlower)], SHOWN),
];

const fn pair((level, over): (&'static str, &'static str), promise: Promise) -> Pair {
    Pair { level, over, promise }
}

const fn case(
    run: &'static str,
    what: &'static str,
    rates: &'static [Pair],
    user_times: &'static [Pair],
) -> Case {
    Case { run, what, rates, user_times }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_its_experiment_file() {
        for case in CASES {
            let path = format!("{}/bench/{}.toml", env!("CARGO_MANIFEST_DIR"), case.run);
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(text.contains(&format!("name = \"{}\"", case.run)), "{path}");
            for pair in case.rates.iter().chain(case.user_times) {
                for level in [pair.level, pair.over] {
                    assert!(text.contains(&format!("\"{level}\"")), "{path} has no level {level}");
                }
            }
        }
    }
}
