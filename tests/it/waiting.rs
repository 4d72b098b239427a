//! What it costs a job of the native engine to wait for its rate, or to pause.

use assay::engine::EngineKind;

use crate::native_engine::{done, work};
use crate::spoiled::{expect, unless_spoiled};

/// Nine waits of 100 ms each: how often the job let the processor go.
fn sleeps(options: &str) -> f64 {
    let (_base, work) = work();
    let job = format!("[w]\nrw=write\nbs=4k\nsize=40k\n{options}\n");
    let outcome = done(EngineKind::Native, &job, work.path());
    let value = |name: &str| outcome.samples.iter().find(|sample| sample.metric.name == name).unwrap().value;
    assert_eq!(value("write.total_ios"), 10.0, "{options}");
    assert!(value("runtime") > 0.89, "{options}: {} s", value("runtime"));
    value("ctx.voluntary")
}

/// Woken every 8 ms it would be 112 times and more, each with 60 µs of spinning behind it.
#[test]
fn a_long_wait_is_slept_in_one_go() {
    for method in ["psync", "libaio", "io_uring"] {
        for how in ["rate_iops=10", "thinktime=100ms"] {
            let options = format!("ioengine={method}\n{how}");
            // A job that was kept from running is late, and does not wait for what is due already.
            unless_spoiled(|| {
                let found = sleeps(&options);
                expect((9.0..60.0).contains(&found), || format!("{options}: {found} sleeps in nine waits"))
            });
        }
    }
}
