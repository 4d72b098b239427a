//! Did the throughput inside the trials settle.
//!
//! Enters: the series of the primary metric. Leaves: a caveat when MSER-5 would cut more than half of a trial.

use super::comparison::Caveat;
use super::draft::{Case, Setting};
use crate::record::{Series, Trial};
use crate::stats::mser::{self, Refusal};

/// Shortest series that is judged: ten batches of five.
const SHORTEST: usize = 50;

/// Told when more than this share of the trials never settled: by chance alone one in eight short level series is
/// refused.
const NOTABLE_SHARE: f64 = 0.5;

pub(super) fn caveat(setting: &Setting, case: &Case) -> Option<Caveat> {
    let metric = &setting.table.metrics()[case.metric as usize];
    let cells = case.cells();
    let own = |series: &&Series| {
        series.job == metric.job && series.name == metric.name && series.values.len() >= SHORTEST
    };
    let (mut trials, mut of) = (0, 0);
    let counted =
        setting.table.latest().iter().filter(|t: &&&Trial| t.counts() && cells.contains(&Some(t.cell)));
    for series in counted.filter_map(|trial| trial.series.iter().find(own)) {
        of += 1;
        trials += u32::from(mser::warm_up(&series.values) == Err(Refusal::NeverSettled));
    }
    (f64::from(trials) > NOTABLE_SHARE * f64::from(of)).then_some(Caveat::NeverSettled { trials, of })
}
