//! Reads a trace to its end: one thread decodes while another analyses.
//!
//! Enters: an open trace, and what is known beside it. Leaves: a [`Summary`].

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use super::analysis::Analysis;
use super::error::TraceError;
use super::open::Trace;
use super::source::Item;
use super::summary::{Settings, Summary};

/// Items that go from one thread to the other at once.
const BATCH: usize = 4096;
/// Batches that wait for the analysis.
const WAITING: usize = 2;

/// Reads the trace to its end.
///
/// # Errors
/// A file that is not what it seemed to be, or a trace that cannot be answered from.
pub fn analyse(trace: Trace, settings: Settings) -> Result<Summary, TraceError> {
    analyse_and(trace, settings, |_| ())
}

/// The same, and each item is shown to somebody else, too.
///
/// # Errors
/// As [`analyse`].
pub fn analyse_and(
    mut trace: Trace,
    settings: Settings,
    mut show: impl FnMut(&Item),
) -> Result<Summary, TraceError> {
    let mut analysis = Analysis::new(settings);
    let (full, filled) = sync_channel::<Vec<Item>>(WAITING);
    let (used, empty) = channel::<Vec<Item>>();
    let read = std::thread::scope(|scope| {
        let trace = &mut trace;
        // The sender goes with the thread, so that the channel ends with it.
        let reader = scope.spawn(move || decode(trace, &full, &empty));
        for mut batch in filled {
            for item in &batch {
                show(item);
                analysis.feed(item);
            }
            batch.clear();
            // The reader may have ended already.
            let _ = used.send(batch);
        }
        reader.join()
    });
    match read {
        Ok(read) => read?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    analysis.finish(trace.names())
}

/// Decodes batch by batch, in vectors that come back.
fn decode(
    trace: &mut Trace,
    full: &SyncSender<Vec<Item>>,
    empty: &Receiver<Vec<Item>>,
) -> Result<(), TraceError> {
    loop {
        let mut batch = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let more = trace.read(&mut batch, BATCH)?;
        if full.send(batch).is_err() || !more {
            return Ok(());
        }
    }
}
