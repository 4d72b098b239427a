//! What dbench, fs_mark and xfs_io print, arbitrarily damaged: nothing may panic, and every value that is read is finite and not
//! negative.
#![no_main]

use assay::catalog::{
    ToolTrial, outcomes_from_dbench, outcomes_from_fs_mark, outcomes_from_xfs_io, xfs_io_outcome, xfs_io_transfers,
};
use libfuzzer_sys::fuzz_target;

fn sane(trials: &[ToolTrial]) {
    for sample in trials.iter().flat_map(|trial| &trial.outcome.samples) {
        assert!(sample.value.is_finite() && sample.value >= 0.0, "{sample:?}");
        assert!(!sample.metric.name.is_empty());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for read in [outcomes_from_dbench, outcomes_from_fs_mark, outcomes_from_xfs_io] {
        if let Ok(trials) = read(&text) {
            assert!(!trials.is_empty(), "neither a result nor an error");
            sane(&trials);
        }
    }
    if let Ok(transfers) = xfs_io_transfers(&text) {
        let transfers: Vec<_> = transfers.into_iter().map(|(_, transfer)| transfer).collect();
        sane(&[ToolTrial { outcome: xfs_io_outcome(&transfers), ..ToolTrial::default() }]);
    }
});
