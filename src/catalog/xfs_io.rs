//! xfs_io: its settings, and its output as outcomes: bytes and operations a second of what it read and wrote.
//!
//! Enters: the text of one or more invocations of xfs_io, with what bash's `time` printed behind it. Leaves: one
//! [`ToolTrial`] an invocation. It must not know who ran xfs_io.
//!
//! Meanings: xfs_io(8), `pread` and `pwrite`: `wrote DONE/WANTED bytes at offset O`, then bytes, operations, time and two
//! rates. The counts are exact; time comes from whichever of time and `ops/sec` is printed with more digits. Commands
//! without such lines (fsync, sync, falloc …) are part of the whole command's run time only.

use super::engine_descriptor::{EngineDescriptor, Output, SectionMetric, Settings, tool};
use super::program::Program;
use super::setting::{Setting, Value, said};
use super::tool_output::{ToolOutputError, ToolTrial, amount, count, sample};
use super::xfs_io_script;
use crate::record::{Outcome, Unit};
use crate::units::parse_bytes;

/// The row of the table.
pub(super) const XFS_IO: EngineDescriptor = tool(
    Program { name: "xfs_io", package: "xfsprogs" },
    Settings { known: SETTINGS, together, file: Some("file"), lasts_s: |_| None, takes },
    Output { format: "xfs_io output", is_line, read: outcomes_from_xfs_io, metrics },
);

const SETTINGS: &[Setting] = &[
    // A line each; `;` divides them in a level.
    Setting::new("commands", Value::Own(xfs_io_script::read)),
    Setting::new("prepare", Value::Own(xfs_io_script::read)),
    Setting::new("file", Value::Name),
    Setting::new("direct", Value::Truth),
    Setting::new("sync", Value::Truth),
];

fn together(has: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    (!has("commands")).then_some("engine xfs_io needs [xfs_io] commands = [\"pwrite 0 64m\", \"fsync\"]")
}

/// Commands behind which less may be there than was written.
const FREES: [&str; 7] = ["truncate", "t", "fpunch", "fcollapse", "fzero", "freesp", "unresvsp"];

/// Bytes of all that is written, each place once: between them the file has holes. A file elsewhere is not looked at, nor one that is cut.
fn takes(settings: &[(String, String)]) -> Option<u64> {
    let scripts = ["prepare", "commands"].map(|name| said(settings, name).unwrap_or_default());
    let commands = || scripts.iter().flat_map(|script| script.lines());
    let frees = |command: &str| command.split_whitespace().next().is_some_and(|name| FREES.contains(&name));
    if said(settings, "file").is_some_and(|file| file.starts_with('/')) || commands().any(frees) {
        return None;
    }
    let mut written: Vec<(u64, u64)> = commands().filter_map(written_range).collect();
    written.sort_unstable();
    let mut bytes = 0;
    let mut end = 0;
    for (from, until) in &written {
        bytes += until.saturating_sub(*from.max(&end));
        end = end.max(*until);
    }
    (!written.is_empty()).then_some(bytes)
}

/// Where `pwrite OFFSET LENGTH` begins and ends.
fn written_range(command: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (&[at, length], "pwrite" | "w") = (words.last_chunk::<2>()?, *words.first()?) else { return None };
    let at = parse_bytes(at, 1024).ok()?;
    Some((at, at.checked_add(parse_bytes(length, 1024).ok()?)?))
}

/// What its transfers have in common, by kind.
fn metrics(settings: &[(String, String)]) -> Vec<SectionMetric> {
    let commands = said(settings, "commands").unwrap_or_default();
    let does = |names: &[&str]| {
        let mut first = commands.lines().filter_map(|command| command.split_whitespace().next());
        first.any(|word| names.contains(&word))
    };
    let kinds = [("write", does(&["pwrite", "w"])), ("read", does(&["pread", "r"]))];
    let copies = ["sendfile", "reflink", "dedupe"].map(|kind| (kind, does(&[kind])));
    let done = kinds.into_iter().chain(copies).filter(|(_, done)| *done);
    done.flat_map(|(kind, _)| {
        ["bw", "iops", "runtime", "total_ios", "io_bytes"].map(|name| ("", format!("{kind}.{name}")))
    })
    .collect()
}

/// One command's result.
#[derive(Clone, Debug, PartialEq)]
pub struct XfsIoTransfer {
    /// `write`, `read`, `sendfile`, `reflink` or `dedupe`.
    pub kind: &'static str,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes asked for.
    pub wanted: u64,
    /// Where.
    pub offset: u64,
    /// System calls.
    pub ops: u64,
    /// Time they took.
    pub seconds: f64,
}

/// Whether a line is one that only xfs_io prints.
fn is_line(line: &str) -> bool {
    first_line(line).is_some()
}

/// `wrote 1048576/1048576 bytes at offset 0` as kind, bytes, wanted, offset.
fn first_line(line: &str) -> Option<(&'static str, u64, u64, u64)> {
    let (verb, rest) = line.split_once(' ')?;
    let kind = match verb {
        "wrote" => "write",
        "read" => "read",
        "sent" => "sendfile",
        "linked" => "reflink",
        "deduped" => "dedupe",
        _ => return None,
    };
    let (bytes, rest) = rest.split_once('/')?;
    let (wanted, rest) = rest.split_once(" bytes ")?;
    let offset = rest.strip_prefix("at offset ").or_else(|| rest.strip_prefix("from offset "))?;
    Some((kind, bytes.parse().ok()?, wanted.parse().ok()?, offset.trim().parse().ok()?))
}

/// `4 MiB, 1024 ops; 0.0024 sec (1.617 GiB/sec and 423841.0596 ops/sec)` as operations and seconds.
fn second_line(line: &str) -> Option<(u64, f64)> {
    let (_, rest) = line.split_once(", ")?;
    let (ops, rest) = rest.split_once(" ops; ")?;
    let ops: u64 = ops.parse().ok()?;
    let (time, rest) = rest.split_once(" (")?;
    let rate = rest.rsplit_once(" and ")?.1.strip_suffix(" ops/sec)")?;
    let (printed_s, resolution_s) = printed_time(time.trim())?;
    let rate = amount(rate)?;
    // Four digits stand behind the rate's point.
    let by_rate = ops as f64 / rate;
    let seconds =
        if by_rate.is_finite() && 0.0001 / rate < resolution_s / printed_s { by_rate } else { printed_s };
    Some((ops, seconds))
}

/// `0.0024 sec`, `0:00:01.21` or `1.21 sec` in seconds, and what its last digit stands for.
fn printed_time(text: &str) -> Option<(f64, f64)> {
    let bare = text.strip_suffix("sec").unwrap_or(text).trim();
    let mut seconds = 0.0;
    for part in bare.split(':') {
        seconds = seconds * 60.0 + amount(part)?;
    }
    let digits = bare.rsplit_once('.').map_or(0, |(_, digits)| digits.len());
    Some((seconds, 10_f64.powi(-(digits.min(12) as i32))))
}

/// `real\t0m1.133s`, as bash's `time` prints it, in seconds.
fn real_time(line: &str) -> Option<f64> {
    let rest = line.strip_prefix("real")?.trim().strip_suffix('s')?;
    let (minutes, seconds) = rest.split_once('m')?;
    Some(amount(minutes)? * 60.0 + amount(seconds)?)
}

/// Every result in the text, in its order, each with its line from 1; a result cut short is an error.
///
/// # Errors
/// A line that announces a transfer without the line of its time.
pub fn xfs_io_transfers(text: &str) -> Result<Vec<(usize, XfsIoTransfer)>, ToolOutputError> {
    let mut transfers = Vec::new();
    let mut lines = text.lines().map(str::trim).enumerate();
    while let Some((at, line)) = lines.next() {
        let Some((kind, bytes, wanted, offset)) = first_line(line) else { continue };
        let next = lines.next().and_then(|(_, next)| second_line(next));
        let Some((ops, seconds)) = next else {
            let message = format!("'{line}' is not followed by xfs_io's line of operations and time");
            return Err(ToolOutputError::at(at + 1, message));
        };
        transfers.push((at + 1, XfsIoTransfer { kind, bytes, wanted, offset, ops, seconds }));
    }
    Ok(transfers)
}

/// Reads every invocation in the text: one ends where `time` has printed its own, or where the transfer that began it
/// begins again (same kind, offset and length), as it does when a loop has run one command several times. Its time is
/// the first printed behind its last transfer; those of other commands (`time sync`) are nobody's.
///
/// # Errors
/// No result at all, one cut short, or one that moved nothing.
pub fn outcomes_from_xfs_io(text: &str) -> Result<Vec<ToolTrial>, ToolOutputError> {
    let transfers = xfs_io_transfers(text)?;
    if transfers.is_empty() {
        return Err(ToolOutputError::whole("there is no result of xfs_io in it: no line 'wrote N/N bytes'"));
    }
    if let Some((line, _)) = transfers.iter().find(|(_, transfer)| transfer.ops == 0) {
        return Err(ToolOutputError::at(*line, "xfs_io moved nothing here"));
    }
    let ends: Vec<(usize, f64)> = text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| real_time(line.trim()).map(|seconds| (at + 1, seconds)))
        .collect();
    let mut trials = Vec::new();
    let mut one: Vec<XfsIoTransfer> = Vec::new();
    let mut ends = ends.into_iter().peekable();
    for (line, transfer) in transfers {
        let again = one.first().is_some_and(|first| {
            (first.kind, first.offset, first.wanted) == (transfer.kind, transfer.offset, transfer.wanted)
        });
        let mut runtime = None;
        while let Some((_, seconds)) = ends.next_if(|(end, _)| *end < line) {
            runtime.get_or_insert(seconds);
        }
        if !one.is_empty() && (again || runtime.is_some()) {
            trials.push(trial(&std::mem::take(&mut one), runtime));
        }
        one.push(transfer);
    }
    trials.push(trial(&one, ends.next().map(|(_, seconds)| seconds)));
    Ok(trials)
}

fn trial(transfers: &[XfsIoTransfer], runtime_s: Option<f64>) -> ToolTrial {
    let mut outcome = xfs_io_outcome(transfers);
    outcome.samples.extend(runtime_s.map(|seconds| sample("runtime", Unit::Seconds, seconds)));
    ToolTrial { outcome, ..ToolTrial::default() }
}

/// The transfers of one invocation as samples, those of a kind together. `xfs_io -c 'pwrite 0 1m' -c 'pwrite 1m 1m'` has
/// one `write.bw`: all bytes over all time.
#[must_use]
pub fn xfs_io_outcome(transfers: &[XfsIoTransfer]) -> Outcome {
    let mut outcome = Outcome::default();
    for kind in ["write", "read", "sendfile", "reflink", "dedupe"] {
        let of_kind = || transfers.iter().filter(|transfer| transfer.kind == kind);
        let bytes: f64 = of_kind().map(|transfer| transfer.bytes as f64).sum();
        let ops: f64 = of_kind().map(|transfer| transfer.ops as f64).sum();
        let seconds: f64 = of_kind().map(|transfer| transfer.seconds).sum();
        if of_kind().next().is_none() {
            continue;
        }
        if seconds > 0.0 {
            outcome.samples.push(sample(&format!("{kind}.bw"), Unit::BytesPerSecond, bytes / seconds));
            outcome.samples.push(sample(&format!("{kind}.iops"), Unit::PerSecond, ops / seconds));
        }
        outcome.samples.push(sample(&format!("{kind}.runtime"), Unit::Seconds, seconds));
        outcome.samples.push(count(&format!("{kind}.total_ios"), Unit::Count, ops));
        outcome.samples.push(count(&format!("{kind}.io_bytes"), Unit::Bytes, bytes));
        let short = of_kind().filter(|transfer| transfer.bytes < transfer.wanted).count();
        if short > 0 {
            outcome
                .notes
                .push(format!("{short} of xfs_io's {kind} commands moved less than was asked for").into());
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_what_is_written_and_no_holes() {
        let of = |commands: &str, file: &str| {
            takes(&[("commands".to_owned(), commands.to_owned()), ("file".to_owned(), file.to_owned())])
        };
        assert_eq!(of("pwrite -b 64k 16m 32m\nfsync\npwrite 0 1m", ""), Some(33 << 20));
        assert_eq!(of("pwrite 1t 4k\npwrite 0 8k\npwrite 4k 8k\npwrite 0 4k", ""), Some(16 << 10));
        assert_eq!(of("pwrite 0 1g\ntruncate 0\npwrite 1g 1g", ""), None);
        assert_eq!(of("pread 0 1m", ""), None);
        assert_eq!(of("pwrite 0 1m", "/dev/x"), None);
    }

    fn read(name: &str) -> String {
        let path = format!("{}/tests/data/xfs_io/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    }

    fn value(trial: &ToolTrial, name: &str) -> f64 {
        trial.outcome.samples.iter().find(|s| s.metric.name == name).unwrap().value
    }

    #[test]
    fn rates_come_from_exact_counts_and_the_finer_time() {
        let trials = outcomes_from_xfs_io(&read("write-read-timed.txt")).unwrap();
        let [trial] = trials.as_slice() else { panic!("{trials:?}") };
        // 1024 operations at 423841.0596 a second: the printed 0.0024 s has two digits only.
        assert!((value(trial, "write.runtime") - 1024.0 / 423_841.059_6).abs() < 1e-12);
        assert!((value(trial, "write.bw") - 4096.0 * 423_841.059_6).abs() < 1.0);
        assert!((value(trial, "read.iops") - 91_954.023).abs() < 1e-6);
        assert_eq!(value(trial, "read.total_ios"), 64.0);
        assert_eq!(value(trial, "write.io_bytes"), 4_194_304.0);
        assert_eq!(value(trial, "runtime"), 0.011);
        let seconds = outcomes_from_xfs_io(&read("seconds.txt")).unwrap().remove(0);
        assert!((value(&seconds, "write.iops") - 82.6003).abs() < 1e-9);
        let slow =
            "wrote 8/8 bytes at offset 0\n8 bytes, 1 ops; 0:02:00.33 (0.066 bytes/sec and 0.0083 ops/sec)\n";
        let slow = outcomes_from_xfs_io(slow).unwrap().remove(0);
        assert!((value(&slow, "write.runtime") - 120.33).abs() < 1e-9);
    }

    #[test]
    fn one_command_run_again_is_another_trial() {
        let trials = outcomes_from_xfs_io(&read("three-writes.txt")).unwrap();
        let iops: Vec<f64> = trials.iter().map(|trial| value(trial, "write.iops")).collect();
        assert_eq!(iops.len(), 3);
        assert!((iops[2] - 296_296.296_3).abs() < 1e-6);
        let timed = read("write-read-timed.txt");
        let other = timed.replace("offset 0", "offset 4096").replace("0m0.011s", "1m0.5s");
        let trials = outcomes_from_xfs_io(&format!("{timed}{other}")).unwrap();
        let runtimes: Vec<f64> = trials.iter().map(|trial| value(trial, "runtime")).collect();
        assert_eq!(runtimes, [0.011, 60.5]);
    }

    #[test]
    fn times_of_other_commands_belong_to_no_trial() {
        let wrote =
            "wrote 8/8 bytes at offset 0\n8 bytes, 1 ops; 0.0001 sec (1 MiB/sec and 10000.0000 ops/sec)\n";
        let real = |seconds: u32| format!("real\t0m{seconds}.000s\n");
        // `time xfs_io …; time sync` so often, and before them a `time` of something else.
        for repeats in 1..=3 {
            let mut text = real(9);
            for at in 0..repeats {
                text.push_str(&format!("{wrote}{}{}", real(2 * at + 1), real(2 * at + 2)));
            }
            let trials = outcomes_from_xfs_io(&text).unwrap();
            let runtimes: Vec<f64> = trials.iter().map(|trial| value(trial, "runtime")).collect();
            assert_eq!(runtimes, [1.0, 3.0, 5.0][..repeats as usize]);
        }
        // An invocation of two transfers is one trial, whatever was timed before it.
        let other = wrote.replace("offset 0", "offset 8");
        let text = format!("{wrote}{}{}{wrote}{other}{}", real(1), real(2), real(3));
        let trials = outcomes_from_xfs_io(&text).unwrap();
        let seen: Vec<(f64, f64)> =
            trials.iter().map(|trial| (value(trial, "write.io_bytes"), value(trial, "runtime"))).collect();
        assert_eq!(seen, [(8.0, 1.0), (16.0, 3.0)]);
    }

    #[test]
    fn what_is_no_result_is_said() {
        let nothing = "read 0/1048576 bytes at offset 5242880\n\
                       0.000000 bytes, 0 ops; 0.0000 sec (0.000000 bytes/sec and 0.0000 ops/sec)\n";
        for (text, words) in
            [("", "no result"), ("wrote 1/1 bytes at offset 0\n", "not followed"), (nothing, "moved nothing")]
        {
            let error = outcomes_from_xfs_io(text).unwrap_err();
            assert!(error.message.contains(words), "{error}");
        }
        let short =
            "read 4096/8192 bytes at offset 0\n4 KiB, 1 ops; 0.0001 sec (1 MiB/sec and 10000.0000 ops/sec)\n";
        let trial = outcomes_from_xfs_io(short).unwrap().remove(0);
        assert!(trial.outcome.notes[0].text.contains("less than was asked for"));
    }
}
