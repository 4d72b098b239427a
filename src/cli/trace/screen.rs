//! What a trace says as text: at most 24 lines of 80 columns, and the histograms for whoever asks for them.
//!
//! Enters: the summary. Leaves: lines. What does not fit is in the JSON form.

use std::fmt::Write;

use crate::trace::{
    AuditSummary, Class, DeviceSummary, Form, Quantiles, Stage, Summary, Totals, Verdict, WriteCache,
};
use crate::units::{Unit, counted, format_number, pretty_duration};

/// Columns of the text.
const WIDTH: usize = 80;

/// The whole screen.
pub(super) fn text(summary: &Summary, form: Form, files: usize) -> String {
    let (totals, device) = (&summary.totals, &summary.device);
    let mut lines = folded(&format!("{}:", device.device), &head(totals, device, form, files));
    lines.extend(missing(totals));
    lines.extend(mistakable(device.unfinished_beside_another));
    lines.extend(other_devices(totals, device));
    lines.push(String::new());
    lines.extend(latencies(device));
    lines.push(String::new());
    lines.extend(counts(device));
    lines.extend(audit(&device.audit));
    lines.join("\n") + "\n"
}

fn head(totals: &Totals, device: &DeviceSummary, form: Form, files: usize) -> String {
    let time = pretty_duration(totals.duration_ns as f64 / 1e9);
    let files = if files == 1 { String::new() } else { format!("{files} files of ") };
    format!(
        "{} of {} events in {time} on {} CPUs ({files}{})",
        device.events,
        totals.events,
        totals.cpus,
        form.name()
    )
}

/// What is missing of the trace.
fn missing(totals: &Totals) -> impl Iterator<Item = String> {
    let least = if totals.lost_unknown { "at least " } else { "" };
    let lost = (totals.holes > 0).then(|| {
        format!(
            "LOST {least}{} events at {} places: counts are too low, no latency spans a place",
            totals.lost_events, totals.holes
        )
    });
    let unwritten = (totals.unwritten_events > 0).then(|| {
        format!("MISSING {}, of which there is no record", counted(totals.unwritten_events, "event"))
    });
    lost.into_iter().chain(unwritten)
}

/// That a latency may lie between the beginning of one I/O and the end of another.
fn mistakable(ends: u64) -> Vec<String> {
    if ends == 0 {
        return Vec::new();
    }
    let (are, which) = if ends == 1 { ("is", "its I/O") } else { ("are", "their I/Os") };
    let text = format!(
        "{} {are} not in the trace, or {which} had not ended yet; I/Os with the same sectors overlapped: latencies may be of the wrong one",
        counted(ends, "end")
    );
    folded("MISSING", &text)
}

fn other_devices(totals: &Totals, device: &DeviceSummary) -> Option<String> {
    let others: Vec<(&String, &u64)> =
        totals.by_device.iter().filter(|(name, _)| **name != device.device).collect();
    let (first, events) = others.first()?;
    let more = if others.len() > 1 { format!(" and {} more", others.len() - 1) } else { String::new() };
    let counts = &device.counts;
    let (bios, requests) =
        (counts.reads_queued + counts.writes_queued, counts.reads_issued + counts.writes_issued);
    // Bios name the partition, requests the disk.
    let remedy = if bios == 0 && requests > 0 {
        format!("if that is a partition of it: --partition {first}={}", device.device)
    } else {
        "--device reports another".to_owned()
    };
    Some(format!("also in it: {first} ({events} events){more}; {remedy}"))
}

/// The table of classes.
fn latencies(device: &DeviceSummary) -> Vec<String> {
    let columns = ["Q2I p50", "I2D p50", "D2C p50", "D2C p99", "Q2C p50", "Q2C p99"];
    let mut head = format!("{:<13}{:>8}", "", "ended");
    for column in columns {
        let _ = write!(head, " {column:>8}");
    }
    if device.latencies.is_empty() {
        return vec!["nothing ended in the trace that began in it".to_owned()];
    }
    let mut lines = vec![head];
    for class in Class::ALL {
        let Some(stages) = device.latencies.get(&class) else { continue };
        let stage = |stage: Stage| stages.get(&stage);
        let ended = stage(Stage::Q2c).or(stage(Stage::D2c)).map_or(0, |times| times.count);
        let mut line = format!("{:<13}{ended:>8}", class.name());
        let median = |times: &Quantiles| times.p50_ns;
        let high = |times: &Quantiles| times.p99_ns;
        let cells = [
            stage(Stage::Q2i).map(median),
            stage(Stage::I2d).map(median),
            stage(Stage::D2c).map(median),
            stage(Stage::D2c).map(high),
            stage(Stage::Q2c).map(median),
            stage(Stage::Q2c).map(high),
        ];
        for cell in cells {
            let cell =
                cell.map_or("-".to_owned(), |time_ns| format_number(&Unit::Nanoseconds, time_ns as f64));
            let _ = write!(line, " {cell:>8}");
        }
        lines.push(line);
    }
    lines
}

/// A table a stage: a column a class, a row a power of two of time.
pub(super) fn histograms(summary: &Summary) -> String {
    let latencies = &summary.device.latencies;
    let mut lines = Vec::new();
    for (stage, title) in STAGES {
        let of_class = |class: Class| Some((class.name(), latencies.get(&class)?.get(&stage)?));
        let columns: Vec<(&str, &Quantiles)> = Class::ALL.into_iter().filter_map(of_class).collect();
        // As many columns as a line has room for.
        for columns in columns.chunks((WIDTH - FROM) / (COLUMN + 1)) {
            lines.extend(["".to_owned(), title.to_owned()]);
            lines.extend(histogram(columns));
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Columns of the beginning of a row, and of each count.
const FROM: usize = 10;
const COLUMN: usize = 8;
const STAGES: [(Stage, &str); 4] = [
    (Stage::Q2i, "Q2I, from a bio's queueing to its request's insertion: how many took how long"),
    (Stage::I2d, "I2D, from insertion to the driver"),
    (Stage::D2c, "D2C, the device"),
    (Stage::Q2c, "Q2C, all of it"),
];

fn histogram(columns: &[(&str, &Quantiles)]) -> Vec<String> {
    let octaves = || columns.iter().map(|(_, times)| &times.octaves);
    let first = octaves().map(|octaves| octaves.from_ns.ilog2()).min().unwrap_or(0);
    let end = octaves().map(|octaves| octaves.from_ns.ilog2() + octaves.counts.len() as u32).max();
    let row = |begin: &str, cells: &mut dyn Iterator<Item = String>| {
        cells.fold(format!("{begin:>FROM$}"), |line, cell| line + &format!(" {cell:>COLUMN$}"))
    };
    // `write sync` is one word above the other.
    let words = || columns.iter().map(|(name, _)| name.rsplit_once(' ').unwrap_or(("", name)));
    let above = row("", &mut words().map(|(above, _)| above.to_owned())).trim_end().to_owned();
    let mut lines = Vec::from_iter((!above.is_empty()).then_some(above));
    lines.push(row("from", &mut words().map(|(_, below)| below.to_owned())));
    for power in first..end.unwrap_or(first) {
        let from_ns = 1_u64 << power;
        let count = |(_, times): &(&str, &Quantiles)| match times.octaves.at(from_ns) {
            0 => "-".to_owned(),
            count => count.to_string(),
        };
        lines.push(row(&format_number(&Unit::Nanoseconds, from_ns as f64), &mut columns.iter().map(count)));
    }
    lines
}

fn bytes(sectors: u64) -> String {
    format_number(&Unit::Bytes, sectors as f64 * 512.0)
}

/// Lines of counts, each with its word in front.
fn counts(device: &DeviceSummary) -> Vec<String> {
    let counts = &device.counts;
    let mut lines = Vec::new();
    let mut line = |word: &str, text: String| lines.extend(folded(word, &text));
    if counts.reads_queued + counts.reads_issued > 0 {
        let sectors = counts.read_sectors_queued.max(counts.read_sectors_issued);
        line(
            "reads",
            format!("{} bios, {} requests, {}", counts.reads_queued, counts.reads_issued, bytes(sectors)),
        );
    }
    if counts.writes_queued + counts.writes_issued > 0 {
        let sectors = counts.write_sectors_queued.max(counts.write_sectors_issued);
        let journal = if counts.journal_writes > 0 {
            format!("; journal {} in {} bios", bytes(counts.journal_sectors), counts.journal_writes)
        } else {
            String::new()
        };
        let metadata = if counts.metadata_sectors > 0 {
            format!("; metadata {}", bytes(counts.metadata_sectors))
        } else {
            String::new()
        };
        line(
            "writes",
            format!(
                "{} bios, {} requests, {}{journal}{metadata}",
                counts.writes_queued,
                counts.writes_issued,
                bytes(sectors)
            ),
        );
    }
    let flushes = counts.flush_bios + counts.flush_commands + counts.preflush_writes + counts.fua_writes;
    let each = device.flush_commands_per_call.map_or(String::new(), |each| format!(" ({each:.2} an fsync)"));
    line(
        "flushes",
        if flushes == 0 {
            "none".to_owned()
        } else {
            format!(
                "{} commands{each}, {} flush bios; writes: {} after a flush, {} FUA",
                counts.flush_commands, counts.flush_bios, counts.preflush_writes, counts.fua_writes
            )
        },
    );
    if let (Some(ratio), Some(share)) = (device.merge_ratio, device.sequential_share) {
        line(
            "order",
            format!(
                "{ratio:.2} bios a request; {:.0} % of requests begin where the last ended",
                share * 100.0
            ),
        );
    }
    if let Some(amplification) = device.write_amplification {
        line("written", format!("{amplification:.2} bytes for each byte asked"));
    }
    if device.unfinished + counts.errors + counts.requeues > 0 {
        line(
            "missing",
            format!(
                "the end of {} bios; {} errors, {} requests given back",
                device.unfinished, counts.errors, counts.requeues
            ),
        );
    }
    lines
}

/// Lines of the audit.
fn audit(audit: &AuditSummary) -> Vec<String> {
    let filesystem = audit.filesystem.map_or("unknown filesystem", |filesystem| filesystem.name());
    let cache = match (audit.write_cache, audit.write_cache_from_trace) {
        (Some(WriteCache::Back), true) => "write-back, as its flushes show",
        (Some(WriteCache::Back), false) => "write-back",
        (Some(WriteCache::Through), _) => "write-through",
        (None, _) => "unknown cache",
    };
    let around = format!("{filesystem}, {cache}");
    let mut text = match audit.verdict {
        Verdict::Pass if audit.write_cache == Some(WriteCache::Through) => {
            format!(
                "PASS by the device's word: the writes of {} calls were complete ({around})",
                audit.passed
            )
        }
        Verdict::Pass => {
            format!(
                "PASS: data and commit of {} calls were behind a flush or FUA, in order ({around})",
                audit.passed
            )
        }
        Verdict::Undecidable => {
            let reasons: Vec<String> = audit
                .undecided
                .iter()
                .map(|(reason, calls)| format!("{} ({calls} calls)", reason.name()))
                .collect();
            let reasons = if reasons.is_empty() {
                audit.reason.map_or("", |reason| reason.name()).to_owned()
            } else {
                reasons.join("; ")
            };
            let passed = if audit.calls > 0 {
                format!("; {} of {} calls pass", audit.passed, audit.calls)
            } else {
                String::new()
            };
            format!("UNDECIDABLE: {reasons}{passed} ({around})")
        }
        Verdict::Violation => {
            let calls: u64 = audit.violations.values().sum();
            format!("VIOLATION: {calls} of {} calls returned too early ({around})", audit.calls)
        }
    };
    if let Some(first) = &audit.first_violation {
        let file = match (first.inode, first.descriptor) {
            (Some(inode), _) => format!("inode {inode}"),
            (None, Some(descriptor)) => format!("descriptor {descriptor}"),
            (None, None) => "an unknown file".to_owned(),
        };
        let commit =
            first.sector.map_or(String::new(), |sector| format!(" (commit record at sector {sector})"));
        let _ = write!(
            text,
            "; first: {} of {file} by {} ({}), returned {:.6} s after the trace's begin: {}{commit}",
            first.call,
            if first.comm.is_empty() { "a task" } else { &first.comm },
            first.pid,
            first.returned_ns as f64 / 1e9,
            first.reason.name()
        );
    }
    let commits = audit.commits;
    if commits.queued > 0 && audit.write_cache != Some(WriteCache::Through) {
        // A device without requests does not show when one goes to it.
        let in_order = match commits.in_order + commits.out_of_order {
            0 => String::new(),
            _ => format!(" {} after a flush,", commits.in_order),
        };
        let _ = write!(text, "; commit records: {},{in_order} {} durable", commits.queued, commits.durable);
    }
    folded("audit", &text)
}

/// Text behind a word, folded at the width.
fn folded(word: &str, text: &str) -> Vec<String> {
    let mut lines = vec![format!("{word:<8}")];
    for part in text.split(' ') {
        let last = lines.len() - 1;
        if lines[last].chars().count() + 1 + part.chars().count() > WIDTH {
            lines.push(format!("{:<8} {part}", ""));
        } else {
            lines[last].push(' ');
            lines[last].push_str(part);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_was_not_seen_may_have_been_to_come() {
        let words = |ends: u64| mistakable(ends).join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(0), "");
        assert!(words(1).starts_with("MISSING 1 end is not in the trace, or its I/O had not ended yet; "));
        assert!(
            words(2).starts_with("MISSING 2 ends are not in the trace, or their I/Os had not ended yet; ")
        );
    }

    #[test]
    fn long_text_is_folded_behind_its_word() {
        let lines = folded("audit", &"word ".repeat(40));
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert!(lines[0].starts_with("audit    word"));
        assert!(lines[1].starts_with("         word"));
    }
}
