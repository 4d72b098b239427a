//! Every decoder of block traces on arbitrary bytes, to the end, and the analysis of what it gives. Nothing may panic, and no latency may be
//! longer than the trace.
#![no_main]

use std::sync::{Arc, OnceLock};

use assay::trace::{
    Analysis, BlkparseText, BlktraceFile, Formats, Item, Names, Pages, PerfText, Settings, Source,
    TracefsText,
};
use libfuzzer_sys::fuzz_target;

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
    drain(BlktraceFile::new(bytes, "fuzz"));
    drain(BlkparseText::new(bytes, "fuzz"));
    drain(PerfText::new(bytes, "fuzz"));
    drain(TracefsText::new(bytes, "fuzz"));
    drain(Pages::new(bytes, "fuzz", 0, formats()));
});
