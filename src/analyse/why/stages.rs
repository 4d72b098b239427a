//! The time of a request, split by stage of the block layer, in both arms of a pair.
//!
//! Enters: a run with its [`Analysis`], and where there is one a run that watched the same cells (`--observe blocks`). Leaves: for each pair
//! that decides and each direction the mean time of each stage, with the difference over rounds. It must not know pictures.

use serde::Serialize;

use super::super::comparison::{Analysis, RowKey};
use super::super::table::Table;
use super::cause::Evidence;
use super::pair::{Pair, WatchedRun};
use super::standing::pairs;
use crate::record::{Direction, Run, Unit};

/// A stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStage {
    /// From the bio to the request (Q2I, as blktrace calls it): splits, merges, waiting for a free request.
    Queued,
    /// From the request to the driver (I2D): the scheduler.
    Waiting,
    /// At the driver and the device (D2C).
    Device,
}

impl RequestStage {
    /// All of them, in order.
    pub const ALL: [RequestStage; 3] = [RequestStage::Queued, RequestStage::Waiting, RequestStage::Device];

    /// In the names of metrics.
    fn metric(self) -> &'static str {
        match self {
            RequestStage::Queued => "q2i",
            RequestStage::Waiting => "i2d",
            RequestStage::Device => "d2c",
        }
    }
}

/// The mean time of the requests of one direction in both arms, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestTimes {
    /// The row, without a job: observers cannot tell the jobs of a trial apart.
    pub row: RowKey,
    /// The baseline's label.
    pub baseline: String,
    /// The candidate's label.
    pub candidate: String,
    /// Of reads or of writes.
    pub direction: Direction,
    /// Stages that both arms have: a device without a queue has none of the first two.
    pub stages: Vec<(RequestStage, Evidence)>,
    /// From the bio to its end (Q2C). Means of stages are of requests, this one of bios: where many bios make a request, or one makes many, it
    /// is not their sum.
    pub whole: Evidence,
    /// Watching made the trials slower by more than 5 %: these times are too long.
    pub distorted: bool,
}

/// The times of requests of the pairs that decide.
#[must_use]
pub fn request_times(run: &Run, analysis: &Analysis, watched: Option<&Run>) -> Vec<RequestTimes> {
    let has_them = |run: &Run| run.metrics.iter().any(|metric| metric.name.starts_with("blocks."));
    if !run.design.paired || !(has_them(run) || watched.is_some_and(has_them)) {
        return Vec::new();
    }
    let (own, other) = (Table::new(run), watched.map(WatchedRun::new));
    let mut all: Vec<RequestTimes> = Vec::new();
    for (comparisons, _) in pairs(run, analysis) {
        let of = comparisons[0];
        let row = RowKey { levels: of.row.levels.clone(), job: String::new() };
        if all.iter().any(|known| known.row == row && known.candidate == of.candidate.arm) {
            continue;
        }
        let pair = Pair::new((run, &own), other.as_ref(), analysis, of);
        let Some(watched) = pair.and_then(|pair| pair.watched) else { continue };
        let source = watched.source;
        for direction in [Direction::Read, Direction::Write] {
            let mean = |stage: &str| {
                source.plain(&format!("blocks.{}.{stage}.mean", direction.name()), Unit::Seconds)
            };
            let Some(whole) = mean("q2c") else { continue };
            let stages =
                RequestStage::ALL.into_iter().filter_map(|stage| Some((stage, mean(stage.metric())?)));
            all.push(RequestTimes {
                row: row.clone(),
                baseline: of.baseline.arm.clone(),
                candidate: of.candidate.arm.clone(),
                direction,
                stages: stages.collect(),
                whole,
                distorted: watched.requests_distorted,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::super::{Options, analyse};
    use super::super::made_pair::run_with;
    use super::*;

    #[test]
    fn each_direction_has_the_stages_that_both_arms_have() {
        let run = run_with(&[
            ("blocks.lost", 0.0, 0.0),
            ("blocks.write.q2i.mean", 2e-6, 2e-6),
            ("blocks.write.i2d.mean", 1e-6, 9e-6),
            ("blocks.write.d2c.mean", 20e-6, 20e-6),
            ("blocks.write.q2c.mean", 23e-6, 31e-6),
            // Nothing was read from end to end.
            ("blocks.read.d2c.mean", 1e-6, 1e-6),
        ]);
        let found = request_times(&run, &analyse(&run, &Options::default()), None);
        assert_eq!(found.len(), 1);
        let times = &found[0];
        assert_eq!((times.direction, times.stages.len()), (Direction::Write, 3));
        let (stage, waiting) = &times.stages[1];
        let difference = waiting.difference.unwrap();
        assert_eq!(*stage, RequestStage::Waiting);
        assert!((difference.estimate - 8e-6).abs() < 1e-6 && difference.low > 0.0, "{waiting:?}");
        assert!((times.whole.candidate / times.whole.baseline - 31.0 / 23.0).abs() < 0.05);
        assert_eq!(request_times(&run_with(&[]), &analyse(&run, &Options::default()), None), []);
    }
}
