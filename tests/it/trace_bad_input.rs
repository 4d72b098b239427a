//! Damaged, foreign and incomplete block traces: one clear message or the right numbers, and never a panic.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay::trace::{
    Analysis, BlkparseText, BlktraceFile, Formats, Item, Names, Pages, PerfText, Settings, Source, Summary,
    TraceError, TracefsText, analyse, open,
};
use proptest::prelude::*;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces")
}

fn bytes_of(file: &str) -> Vec<u8> {
    std::fs::read(directory().join(file)).unwrap()
}

fn formats() -> Arc<Formats> {
    Arc::new(Formats::read(&directory().join("formats")).unwrap())
}

/// A directory with these files, and the layouts of pages.
fn laid_out(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let place = tempfile::tempdir().unwrap();
    for name in ["formats", "header_page.txt", "header_event.txt"] {
        std::os::unix::fs::symlink(directory().join(name), place.path().join(name)).unwrap();
    }
    let paths = files.iter().map(|(name, bytes)| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    });
    let paths = paths.collect();
    (place, paths)
}

fn read(paths: &[PathBuf]) -> Result<Summary, TraceError> {
    analyse(open(paths, None)?, Settings::default())
}

/// What is said of these files; the directory's name is taken off.
fn said(files: &[(&str, &[u8])]) -> String {
    let (place, paths) = laid_out(files);
    let error = read(&paths).unwrap_err();
    assert!(!error.hint().is_empty(), "{error}");
    error.to_string().replace(&format!("{}/", place.path().display()), "")
}

#[test]
fn a_truncated_trace_is_named_with_its_place() {
    let records = bytes_of("xfs_fsync.blktracer.bin");
    assert_eq!(
        said(&[("t.bin", &records[..1000])]),
        "t.bin is truncated: it ends within a record at byte 984"
    );
    let pages = bytes_of("xfs_fsync.cpu0.raw");
    assert_eq!(said(&[("t.raw", &pages[..5000])]), "t.raw is truncated: it ends within a page at byte 4096");
    let text = bytes_of("xfs_fsync.txt");
    assert!(said(&[("t.txt", &text[..text.len() - 30])]).starts_with("t.txt is damaged at line 12"));
    let text = bytes_of("xfs_fsync.perf-script.txt");
    assert!(said(&[("t.txt", &text[..text.len() - 20])]).starts_with("t.txt is damaged at line 480"));
    let text = bytes_of("xfs_fsync.blkparse.txt");
    assert!(said(&[("t.txt", &text[..5_030])]).starts_with("t.txt is damaged at line 7"));
}

#[test]
fn foreign_files_are_recognised() {
    for (content, reason) in [
        (&b"hello\nworld\n"[..], "it begins with 'hello'"),
        (b"{\"fio version\": 1}", "it begins with '{\"fio version\": 1}'"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0", "it holds other binary data"),
        (&[0; 8192], "it holds other binary data"),
    ] {
        assert_eq!(said(&[("f", content)]), format!("f is not a trace that assay knows: {reason}"));
    }
    assert_eq!(said(&[("empty", b"")]), "the trace has no events");
    assert!(matches!(open(&["/nonexistent".into()], None), Err(TraceError::Unreadable { .. })));
}

#[test]
fn events_out_of_order_are_refused() {
    let text = String::from_utf8(bytes_of("xfs_fsync.txt")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(100, 120);
    let message = said(&[("t.txt", lines.join("\n").as_bytes())]);
    assert!(message.starts_with("events of t.txt are out of order: line 1"), "{message}");
    let records = bytes_of("xfs_fsync.blktracer.bin");
    let turned = [&records[48..96], &records[..48]].concat();
    assert_eq!(
        said(&[("t.bin", &turned)]),
        "events of t.bin are out of order: byte 48 is 46076 ns before the event in front of it"
    );
    let pages = bytes_of("xfs_fsync.cpu0.raw");
    let turned = [&pages[4096..8192], &pages[..4096]].concat();
    assert!(said(&[("t.raw", &turned)]).starts_with("events of t.raw are out of order: byte 41"));
}

#[test]
fn a_missing_cpu_is_named() {
    let (zero, one) = (bytes_of("xfs_fsync.cpu0.raw"), bytes_of("xfs_fsync.cpu1.raw"));
    // It lies beside the other.
    let (_place, paths) = laid_out(&[("t.cpu0.raw", &zero), ("t.cpu1.raw", &one)]);
    let error = read(&paths[..1]).unwrap_err();
    assert!(error.to_string().starts_with("the file of CPU 1 is missing: "), "{error}");
    assert!(error.hint().starts_with("name "));
    assert_eq!(read(&paths).unwrap().totals.events, 1193);
    // It lies nowhere: its number is missing, or its events are.
    assert_eq!(
        said(&[("t.cpu0.raw", &zero), ("t.cpu2.raw", &one)]),
        "the file of CPU 1 is missing: t.cpu1.raw"
    );
    assert_eq!(
        said(&[("t.cpu0.raw", &zero)]),
        "59 of 88 completions on 7:1 have no issue in the trace: events of a CPU or of a time are missing"
    );
    // It was offline.
    let (_place, paths) = laid_out(&[("t.cpu0.raw", &zero), ("t.cpu1.raw", b""), ("t.cpu2.raw", &one)]);
    assert_eq!(read(&paths).unwrap().totals.events, 1193);
    let (_place, mut paths) = laid_out(&[("t.cpu0.raw", &zero), ("t.cpu1.raw", &one)]);
    paths.push(paths[0].clone());
    assert!(read(&paths).unwrap_err().to_string().ends_with("are both of CPU 0"));
}

#[test]
fn files_of_other_forms_and_pages_without_layout_are_refused() {
    let message = said(&[("a", &bytes_of("xfs_fsync.txt")), ("b", &bytes_of("xfs_fsync.blkparse.txt"))]);
    assert_eq!(message, "a is tracefs text, b is blkparse text: one trace has one form");
    let place = tempfile::tempdir().unwrap();
    let alone = place.path().join("t.raw");
    std::fs::write(&alone, bytes_of("ext4_fsync.cpu0.raw")).unwrap();
    let message = read(&[alone]).unwrap_err().to_string();
    assert!(message.contains("the layouts of its events are not there: there is no "), "{message}");
}

#[test]
fn lost_events_are_said_and_nothing_spans_them() {
    // The second page of a CPU says that seven events are missing in front of it; how many stands behind its records.
    let mut zero = bytes_of("xfs_fsync.cpu0.raw");
    let length = u16::from_le_bytes([zero[4096 + 8], zero[4096 + 9]]);
    zero[4096 + 11] |= 0xc0;
    let stored = 4096 + 16 + usize::from(length);
    zero[stored..stored + 8].copy_from_slice(&7u64.to_le_bytes());
    let (_place, paths) = laid_out(&[("t.cpu0.raw", &zero), ("t.cpu1.raw", &bytes_of("xfs_fsync.cpu1.raw"))]);
    let found = read(&paths).unwrap();
    assert_eq!((found.totals.events, found.totals.holes, found.totals.lost_events), (1193, 1, 7));
    let whole =
        read(&["xfs_fsync.cpu0.raw", "xfs_fsync.cpu1.raw"].map(|name| directory().join(name))).unwrap();
    let ended = |summary: &Summary| -> u64 {
        summary.device.latencies.values().flat_map(|stages| stages.values()).map(|stage| stage.count).sum()
    };
    assert!(ended(&found) <= ended(&whole));
    // Text says it with a line of its own.
    let text = String::from_utf8(bytes_of("xfs_fsync.txt")).unwrap();
    let cut = text.replacen("          xfs_io-10812", "CPU:1 [LOST 12 EVENTS]\n          xfs_io-10812", 1);
    let (_place, paths) = laid_out(&[("t.txt", cut.as_bytes())]);
    let found = read(&paths).unwrap();
    assert_eq!((found.totals.lost_events, found.device.audit.passed), (12, 0));
}

/// Everything of a source, whatever it is.
fn drain(mut source: impl Source) {
    let mut names = Names::default();
    let mut analysis = Analysis::new(Settings::default());
    let mut events = 0_u64;
    while let Ok(Some(item)) = source.next(&mut names) {
        analysis.feed(&item);
        events += u64::from(matches!(item, Item::Event(_)));
    }
    if let Ok(summary) = analysis.finish(&names) {
        assert_eq!(summary.totals.events, events);
        assert!(serde_json::to_string(&summary).is_ok());
    }
}

fn every_source(bytes: &[u8], formats: &Arc<Formats>) {
    drain(BlktraceFile::new(bytes, "t"));
    drain(BlkparseText::new(bytes, "t"));
    drain(PerfText::new(bytes, "t"));
    drain(TracefsText::new(bytes, "t"));
    drain(Pages::new(bytes, "t", 0, Arc::clone(formats)));
}

const SAMPLES: [&str; 6] = [
    "xfs_fsync.blktracer.bin", "xfs_fsync.cpu0.raw", "ext4_fsync.cpu1.raw", "xfs_fsync.txt",
    "xfs_fsync.blkparse.txt", "xfs_fsync.perf-script.txt",
];

proptest! {
    #[test]
    fn damaged_traces_never_panic(
        sample in 0..SAMPLES.len(),
        begin in 0_usize..20_000,
        length in 0_usize..20_000,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
    ) {
        let whole = bytes_of(SAMPLES[sample]);
        let begin = begin.min(whole.len());
        let mut bytes = whole[begin..(begin + length).min(whole.len())].to_vec();
        for (place, value) in changes {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
        }
        every_source(&bytes, &formats());
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        every_source(&bytes, &formats());
    }
}
