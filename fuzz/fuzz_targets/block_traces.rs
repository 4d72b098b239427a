//! Every decoder of block traces on arbitrary bytes, to the end, and the analysis of what it gives, for one of the filesystems, with or
//! without events that the kernel counted and did not write. Nothing may panic, and no latency may be longer than the trace.
#![no_main]

use std::sync::{Arc, OnceLock};

use assay::trace::{
    Analysis, BlkparseText, BlktraceFile, Filesystem, Formats, Item, JournalRange, Names, Pages, PerfText,
    Settings, Source, TracefsText, Unwritten, WriteCache,
};
use libfuzzer_sys::fuzz_target;

/// What is known beside a trace of so many bytes: the length is as arbitrary as they are.
fn beside(length: usize) -> (Settings, Option<Unwritten>) {
    let one_of = |count: usize, of: usize| (length / of) % count;
    let filesystem = Filesystem::ALL.get(one_of(Filesystem::ALL.len() + 1, 1)).copied();
    let settings = Settings {
        filesystem,
        journal: JournalRange::new(64, 4096).filter(|_| one_of(2, 5) == 1),
        write_cache: [None, Some(WriteCache::Back), Some(WriteCache::Through)][one_of(3, 10)],
        queues: [None, Some(1), Some(2)][one_of(3, 30)],
        ..Settings::default()
    };
    let unwritten = [None, Some(Unwritten { ends: 3, others: 0 }), Some(Unwritten { ends: 0, others: 1 })];
    (settings, unwritten[one_of(3, 90)])
}

fn drain(mut source: impl Source, length: usize) {
    let mut names = Names::default();
    let (settings, unwritten) = beside(length);
    let mut analysis = Analysis::new(settings);
    let mut events = 0_u64;
    while let Ok(Some(item)) = source.next(&mut names) {
        analysis.feed(&item);
        events += u64::from(matches!(item, Item::Event(_)));
    }
    // Behind all events, as in kept traces.
    if let Some(unwritten) = unwritten {
        analysis.feed(&Item::Unwritten(unwritten));
    }
    if let Ok(summary) = analysis.finish(&names) {
        assert_eq!(summary.totals.events, events);
        for stage in summary.device.latencies.values().flat_map(|stages| stages.values()) {
            assert!(stage.count > 0 && stage.min_ns <= stage.p50_ns && stage.p50_ns <= stage.max_ns);
            assert!(stage.max_ns <= summary.totals.duration_ns, "{stage:?}");
        }
    }
}

fn formats() -> Arc<Formats> {
    static FORMATS: OnceLock<Arc<Formats>> = OnceLock::new();
    let read = || {
        let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/traces/formats");
        Arc::new(Formats::read(beside.as_ref()).unwrap_or_else(|error| panic!("{error}")))
    };
    Arc::clone(FORMATS.get_or_init(read))
}

fuzz_target!(|bytes: &[u8]| {
    drain(BlktraceFile::new(bytes, "fuzz"), bytes.len());
    drain(BlkparseText::new(bytes, "fuzz"), bytes.len());
    drain(PerfText::new(bytes, "fuzz"), bytes.len());
    drain(TracefsText::new(bytes, "fuzz"), bytes.len());
    drain(Pages::new(bytes, "fuzz", 0, formats()), bytes.len());
});
