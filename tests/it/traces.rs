//! Captured block traces: every form decodes to exactly the events that the other forms of it have, and to the figures of other tools.
//!
//! tests/data/traces/README.md says where they come from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay::trace::{
    Action, Analysis, Class, Device, Event, Filesystem, Item, JournalRange, Operation, Settings, Stage,
    Summary, Trace, Verdict, analyse, open,
};

const XFS_JOURNAL: (u64, u64) = (3_145_776, 3_276_848);
const EXT4_JOURNAL: (u64, u64) = (2_883_584, 3_014_656);
const RAW: [&str; 3] = ["xfs_fsync", "ext4_fsync", "xfs_fsync_iclog"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces")
}

fn opened(files: &[&str]) -> Trace {
    let paths: Vec<PathBuf> = files.iter().map(|file| directory().join(file)).collect();
    open(&paths, None).unwrap()
}

fn raw(name: &str) -> Trace {
    opened(&[&format!("{name}.cpu0.raw"), &format!("{name}.cpu1.raw")])
}

fn text_of(file: &str) -> String {
    std::fs::read_to_string(directory().join(file)).unwrap()
}

/// All events with the names of those that have only a name.
fn events(mut trace: Trace) -> Vec<(Event, String)> {
    let mut events = Vec::new();
    while let Some(item) = trace.next_item().unwrap() {
        let Item::Event(event) = item else { panic!("nothing was lost: {item:?}") };
        let name = match event.action {
            Action::Other(name) => trace.names().all()[usize::from(name)].clone(),
            _ => String::new(),
        };
        events.push((event, name));
    }
    events
}

fn summary(trace: Trace, settings: Settings) -> Summary {
    analyse(trace, settings).unwrap()
}

fn settings(filesystem: Filesystem, (first, end): (u64, u64)) -> Settings {
    Settings { filesystem: Some(filesystem), journal: JournalRange::new(first, end), ..Settings::default() }
}

/// Counts by key.
fn counted<T>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> Option<String>,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for key in items.into_iter().filter_map(|item| key(&item)) {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// The event's name in a line of tracefs, read without assay.
fn tracefs_name(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(": ").filter(|_| !line.starts_with('#'))?;
    let name = rest.split([':', '(', ' ']).next()?;
    let call = name.strip_prefix("sys_");
    Some(match call {
        Some(call) => format!("{}_{call}", if rest.contains("->") { "exit" } else { "enter" }),
        None => name.to_owned(),
    })
}

/// The name under which an event of this name is counted.
fn kind(name: &str) -> String {
    let kinds = [
        ("block_bio_queue", "queue"),
        ("block_bio_backmerge", "back_merge"),
        ("block_getrq", "get_request"),
        ("block_rq_insert", "insert"),
        ("block_rq_issue", "issue"),
        ("block_rq_complete", "complete"),
        ("block_split", "split"),
        ("tracing_mark_write", "marker"),
        ("xfs_file_fsync", "file_sync"),
        ("ext4_sync_file_enter", "file_sync"),
        ("ext4_sync_file_exit", "file_sync_end"),
    ];
    kinds.iter().find(|(event, _)| *event == name).map_or(name, |(_, kind)| kind).to_owned()
}

#[test]
fn raw_pages_have_every_event_of_their_text() {
    for name in RAW {
        let text = text_of(&format!("{name}.txt"));
        let written = counted(text.lines(), |line| tracefs_name(line).map(|name| kind(&name)));
        let found = summary(raw(name), Settings::default()).totals;
        assert_eq!(found.by_kind, written, "{name}");
        assert_eq!(found.events, written.values().sum::<u64>());
        // The kernel's own count of what it kept, less the two records of the tracer's text header where it has one.
        let stated: u64 = text_of(&format!("{name}.stats"))
            .lines()
            .filter_map(|line| line.strip_prefix("entries: ")?.parse::<u64>().ok())
            .sum();
        assert_eq!(found.events, stated, "{name}");
    }
}

#[test]
fn raw_pages_and_text_agree_in_every_field() {
    for name in RAW {
        let (pages, text) = (events(raw(name)), events(opened(&[&format!("{name}.txt")])));
        assert_eq!(pages.len(), text.len());
        for ((page, page_name), (line, line_name)) in pages.iter().zip(&text) {
            // The text is rounded to microseconds; pages have the task's name only where the event has it.
            let comm = if page.comm.is_empty() { page.comm } else { line.comm };
            let action = if page_name.is_empty() { line.action } else { page.action };
            let device = if page_name.is_empty() { line.device } else { page.device };
            let rounded = Event { time_ns: (page.time_ns + 500) / 1000 * 1000, ..*page };
            assert_eq!((rounded, page_name), (Event { comm, action, device, ..*line }, line_name), "{name}");
        }
    }
}

/// Counts of blkparse's lines by action and flags, read without assay. `FN` is a flush command.
fn blkparse_counts() -> BTreeMap<String, u64> {
    counted(text_of("xfs_fsync.blkparse.txt").lines(), |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_event = words.len() > 6 && words[0].contains(',') && words[3].contains('.');
        is_event.then(|| format!("{} {}", words[5], if words[6] == "FN" { "FF" } else { words[6] }))
    })
}

fn letter(action: Action) -> &'static str {
    match action {
        Action::Queue => "Q",
        Action::GetRequest => "G",
        Action::Insert => "I",
        Action::Issue => "D",
        Action::Complete => "C",
        Action::BackMerge => "M",
        Action::Plug => "P",
        Action::Unplug => "U",
        Action::Split => "X",
        other => panic!("{other:?}"),
    }
}

#[test]
fn binary_records_and_the_text_of_blkparse_agree() {
    let written = blkparse_counts();
    assert_eq!(written.values().sum::<u64>(), 1476);
    assert_eq!((written["C FF"], written["Q FWFSM"], written["X WSM"]), (21, 9, 1));
    let text = events(opened(&["xfs_fsync.blkparse.txt"]));
    for file in ["xfs_fsync.blktracer.bin", "xfs_fsync.blkparse-d.bin"] {
        let records = events(opened(&[file]));
        let found = counted(&records, |(event, _)| Some(format!("{} {}", letter(event.action), event.flags)));
        assert_eq!(found, written, "{file}");
        let begin = records[0].0.time_ns;
        for ((record, _), (line, _)) in records.iter().zip(&text) {
            // blkparse names no device's cache and no bytes of an end without sectors; its times begin with the first event.
            let shifted = Event { time_ns: record.time_ns - begin, ..*record };
            let mut line = *line;
            if line.sectors == 0 {
                line.sector = shifted.sector;
            }
            assert_eq!(shifted, line, "{file}");
        }
    }
}

#[test]
fn the_text_of_perf_has_every_event_by_device_and_flags() {
    let text = text_of("xfs_fsync.perf-script.txt");
    let written = counted(text.lines(), |line| {
        let (_, rest) = line.split_once("block:")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        Some(format!("{} {} {}", kind(words[0].trim_end_matches(':')), words[1].replace(',', ":"), words[2]))
    });
    let found = counted(&events(opened(&["xfs_fsync.perf-script.txt"])), |(event, _)| {
        let kind = Action::name_at(event.action.index().unwrap());
        Some(format!("{kind} {} {}", event.device, event.flags))
    });
    assert_eq!(found, written);
    assert_eq!(found.values().sum::<u64>(), 480);
    // A second disk was traced too; the busier one is reported, the other on request.
    let two = summary(opened(&["xfs_fsync.perf-script.txt"]), Settings::default());
    assert_eq!((two.device.device.as_str(), two.totals.by_device["254:0"]), ("7:1", 104));
    let other = Settings { device: Device::new(254, 0), ..Settings::default() };
    assert_eq!(summary(opened(&["xfs_fsync.perf-script.txt"]), other).device.events, 104);
}

#[test]
fn figures_are_those_of_btt_where_they_mean_the_same() {
    let trace = || opened(&["xfs_fsync.blktracer.bin"]);
    let device = summary(trace(), settings(Filesystem::Xfs, XFS_JOURNAL)).device;
    let btt = text_of("xfs_fsync.btt.txt");
    let row = |name: &str| -> Vec<f64> {
        let line = btt.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect()
    };
    let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
    // I2D: the ten requests that were inserted. btt gives min, mean, max, count.
    let i2d = &device.latencies[&Class::WriteMeta][&Stage::I2d];
    let said = row("I2D");
    assert_eq!(
        (i2d.min_ns, i2d.max_ns, i2d.count),
        (nanoseconds(said[0]), nanoseconds(said[2]), said[3] as u64)
    );
    assert_eq!(i2d.mean_ns.floor() as u64, nanoseconds(said[1]));
    // D2C's ends; its mean is one of bios, ours of requests.
    let requests: Vec<_> = device
        .latencies
        .iter()
        .filter(|(class, _)| **class != Class::FlushCommand)
        .filter_map(|(_, stages)| stages.get(&Stage::D2c))
        .collect();
    let said = row("D2C");
    assert_eq!(requests.iter().map(|stage| stage.min_ns).min(), Some(nanoseconds(said[0])));
    assert_eq!(requests.iter().map(|stage| stage.max_ns).max(), Some(nanoseconds(said[2])));
    // #Q, #D, the ratio, blocks in all.
    let said: Vec<f64> = btt.lines().filter(|line| line.contains("(  7,  1)")).nth(1).unwrap()
        ["(  7,  1) |".len() + 1..]
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let counts = &device.counts;
    assert_eq!(
        (counts.reads_queued + counts.writes_queued, counts.reads_issued + counts.writes_issued),
        (378, 170)
    );
    assert_eq!(said[0..2], [378.0, 170.0]);
    assert!((device.merge_ratio.unwrap() - said[2]).abs() < 0.05);
    assert_eq!(counts.read_sectors_issued + counts.write_sectors_issued, said[6] as u64);
    q2c_of_btt(&events(trace()), &device.latencies, &row("Q2C"));
}

/// btt ends a write with flushes at its first completion, and leaves out the bio that was cut. With both put right, its sum over
/// 377 bios is ours.
fn q2c_of_btt(
    events: &[(Event, String)],
    ours: &BTreeMap<Class, BTreeMap<Stage, assay::trace::Quantiles>>,
    said: &[f64],
) {
    let stages: Vec<_> = ours
        .iter()
        .filter(|(class, _)| !matches!(class, Class::FlushBio | Class::WriteFlush))
        .filter_map(|(_, stages)| stages.get(&Stage::Q2c))
        .collect();
    let plain: u64 = stages.iter().map(|stage| stage.sum_ns).sum();
    let count: u64 = stages.iter().map(|stage| stage.count).sum();
    let first_end = |queued: &Event, sector: u64| {
        let ends = |event: &&(Event, String)| {
            event.0.action == Action::Complete
                && event.0.sector == sector
                && event.0.sectors > 0
                && event.0.time_ns > queued.time_ns
        };
        events.iter().find(ends).unwrap().0.time_ns - queued.time_ns
    };
    let is_sequence = |event: &&(Event, String)| {
        let flags = event.0.flags;
        event.0.action == Action::Queue && event.0.sectors > 0 && (flags.preflush() || flags.fua())
    };
    let sequences: Vec<u64> =
        events.iter().filter(is_sequence).map(|(event, _)| first_end(event, event.sector)).collect();
    let cut = events.iter().find(|(event, _)| event.action == Action::Split).unwrap().0;
    let is_cut = |event: &Event| {
        event.action == Action::Queue && event.sector == cut.sector && event.flags == cut.flags
    };
    let queued = events.iter().find(|(event, _)| is_cut(event)).unwrap().0;
    let cut_ns = first_end(&queued, cut.sector).max(first_end(&queued, cut.end()));
    assert_eq!(count + sequences.len() as u64 - 1, said[3] as u64);
    let mean = (plain + sequences.iter().sum::<u64>() - cut_ns) as f64 / said[3];
    assert!((mean - said[1] * 1e9).abs() < 1.0, "{mean} {said:?}");
}

/// Flush commands that were issued between two texts of the script.
fn flush_commands_of(name: &str, segment: &str) -> usize {
    let text = text_of(&format!("{name}.txt"));
    let begin = text.lines().position(|line| line.ends_with(segment)).unwrap();
    // Texts have no name in pages: the same place in the order of all events.
    let heads = text.lines().filter(|line| line.starts_with('#')).count();
    let issued = |(event, _): &&(Event, String)| {
        event.action == Action::Issue && event.flags.operation == Operation::Flush
    };
    events(raw(name)).iter().skip(begin - heads).filter(issued).count()
}

#[test]
fn an_umount_takes_7_flush_commands_on_xfs_and_13_on_ext4() {
    assert_eq!(flush_commands_of("xfs_fsync", "E umount"), 7);
    assert_eq!(flush_commands_of("ext4_fsync", "E umount"), 13);
}

#[test]
fn the_journals_counts_are_those_of_the_text() {
    for (name, filesystem, journal) in
        [("xfs_fsync", Filesystem::Xfs, XFS_JOURNAL), ("ext4_fsync", Filesystem::Ext4, EXT4_JOURNAL)]
    {
        let (mut writes, mut sectors, mut flush_bios, mut flush_commands) = (0, 0, 0, 0);
        for line in text_of(&format!("{name}.txt")).lines() {
            if line.contains("block_rq_issue: 7,1 FF ") {
                flush_commands += 1;
            }
            let Some((_, rest)) = line.split_once("block_bio_queue: 7,1 ") else { continue };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let (sector, length): (u64, u64) = (words[1].parse().unwrap(), words[3].parse().unwrap());
            if words[0].contains('W') && length == 0 {
                flush_bios += 1;
            } else if words[0].contains('W') && (journal.0..journal.1).contains(&sector) {
                writes += 1;
                sectors += length;
            }
        }
        let counts = summary(raw(name), settings(filesystem, journal)).device.counts;
        assert_eq!((counts.journal_writes, counts.journal_sectors), (writes, sectors), "{name}");
        assert_eq!((counts.flush_bios, counts.flush_commands), (flush_bios, flush_commands), "{name}");
    }
}

#[test]
fn every_fsync_of_the_captured_traces_passes() {
    // ext4's write with O_DSYNC is a sync of the file without a system call for it.
    for (name, filesystem, journal, calls, elsewhere, commits) in [
        ("xfs_fsync", Filesystem::Xfs, XFS_JOURNAL, 5, 0, 9),
        ("xfs_fsync_iclog", Filesystem::Xfs, XFS_JOURNAL, 5, 4, 9),
        ("ext4_fsync", Filesystem::Ext4, EXT4_JOURNAL, 6, 27, 5),
    ] {
        for trace in [raw(name), opened(&[&format!("{name}.txt")])] {
            let audit = summary(trace, settings(filesystem, journal)).device.audit;
            assert_eq!((audit.verdict, audit.calls, audit.passed), (Verdict::Pass, calls, calls), "{name}");
            assert_eq!((audit.calls_elsewhere, audit.write_cache_from_trace), (elsewhere, true), "{name}");
            let found = audit.commits;
            assert_eq!((found.queued, found.in_order, found.durable), (commits, commits, commits), "{name}");
        }
    }
}

#[test]
fn without_its_flushes_the_same_trace_is_a_violation() {
    // What barrier=0 takes away: flags of bios and the commands that the block layer makes of them.
    let stripped = |item: &Item| match item {
        Item::Event(event) => {
            let flush =
                event.flags.operation == Operation::Flush || event.sectors == 0 && event.flags.writes();
            let letters = event.flags.to_string();
            let kept =
                if letters.starts_with('F') || letters.contains("WF") { "WSM" } else { letters.as_str() };
            (!flush).then(|| {
                Item::Event(Event { flags: assay::trace::Flags::from_letters(kept.as_bytes()), ..*event })
            })
        }
        Item::Lost(_) | Item::Unwritten(_) => None,
    };
    for (name, filesystem, journal) in
        [("xfs_fsync", Filesystem::Xfs, XFS_JOURNAL), ("ext4_fsync", Filesystem::Ext4, EXT4_JOURNAL)]
    {
        let write_cache = Some(assay::trace::WriteCache::Back);
        let mut analysis = Analysis::new(Settings { write_cache, ..settings(filesystem, journal) });
        let mut trace = raw(name);
        while let Some(item) = trace.next_item().unwrap() {
            stripped(&item).iter().for_each(|item| analysis.feed(item));
        }
        let audit = analysis.finish(trace.names()).unwrap().device.audit;
        assert_eq!(audit.verdict, Verdict::Violation, "{name}");
        let first = audit.first_violation.unwrap();
        assert_eq!((first.call, first.descriptor), ("fsync", Some(3)), "{name}");
    }
}

#[test]
fn a_made_trace_has_the_counts_it_was_made_with() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().join("made");
    for (cpu, stream) in crate::made_trace::made_trace(8000, 3).iter().enumerate() {
        std::fs::write(format!("{}.blktrace.{cpu}", base.display()), stream).unwrap();
    }
    // The name alone stands for the files of all CPUs.
    let found = summary(open(&[base], None).unwrap(), settings(Filesystem::Xfs, (0, u64::MAX)));
    let (totals, counts) = (&found.totals, &found.device.counts);
    assert_eq!((totals.events, totals.cpus, totals.holes), (8 * 8 + 7992 * 5 + 500 * 2, 3, 0));
    assert_eq!((counts.writes_queued, counts.writes_issued, counts.flush_commands), (8000, 8000, 16));
    assert_eq!((counts.fua_writes, counts.preflush_writes, counts.merges), (8, 8, 0));
    assert_eq!((found.device.unfinished, found.device.without_issue), (0, 0));
    let stage = |class: Class, stage: Stage| &found.device.latencies[&class][&stage];
    // Each I/O is inserted 600 ns after its queueing and issued 600 ns later; a commit ends after 1,500,500 ns.
    let inserted = stage(Class::WriteSync, Stage::Q2i);
    assert_eq!((inserted.count, inserted.min_ns, inserted.max_ns), (7992, 600, 600));
    assert_eq!(stage(Class::WriteSync, Stage::I2d).sum_ns, 600 * 7992);
    assert_eq!(stage(Class::WriteFlush, Stage::Q2c).sum_ns, 1_500_500 * 8);
    assert!(
        stage(Class::WriteSync, Stage::D2c).min_ns >= 20_000
            && stage(Class::WriteSync, Stage::D2c).max_ns < 120_000
    );
    let commits = found.device.audit.commits;
    assert_eq!((commits.queued, commits.in_order, commits.durable), (8, 8, 8));
}
