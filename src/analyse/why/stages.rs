//! The time of a request, split by stage of the block layer, in both arms of a pair.
//!
//! Enters: a run with its [`Analysis`], and where there is one a run that watched the same cells (`--observe blocks`). Leaves: for each pair
//! that decides and each direction the mean time of each stage, with the difference over rounds. It must not know pictures.

use serde::Serialize;

use super::super::comparison::{Analysis, RowKey};
use super::super::table::Table;
use super::cause::{Evidence, RequestStage};
use super::pair::{Pair, WatchedRun};
use super::standing::pairs;
use crate::record::{Direction, Run, Unit};

/// Where fewer of the requests were inserted in either arm, the rest went to the driver at once, and nobody would know the two stages before.
const INSERTED: f64 = 0.9;

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
    /// Stages that both arms have: a device without a queue has none of the first two, and instead of these it is all the way to the driver
    /// where some requests did not wait to be issued.
    pub stages: Vec<(RequestStage, Evidence)>,
    /// Bios were merged or split in either arm.
    pub merged: bool,
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
            let share = format!("blocks.{}.inserted_share", direction.name());
            let were_inserted = |share: Evidence| share.baseline.min(share.candidate) >= INSERTED;
            // Runs from before there was that share have the means of what was inserted, and no other.
            let inserted = source.plain(&share, Unit::Count).map_or(mean("q2d").is_none(), were_inserted);
            let before: &[RequestStage] = match inserted {
                true => &[RequestStage::Queued, RequestStage::Waiting],
                false => &[RequestStage::Issued],
            };
            let stages = before.iter().chain([&RequestStage::Device]).copied();
            let stages = stages.filter_map(|stage| Some((stage, mean(stage.name())?)));
            let some = |name: &str| {
                source.plain(name, Unit::Count).is_some_and(|of| of.baseline.max(of.candidate) > 0.0)
            };
            all.push(RequestTimes {
                row: row.clone(),
                baseline: of.baseline.arm.clone(),
                candidate: of.candidate.arm.clone(),
                direction,
                stages: stages.collect(),
                merged: some("blocks.merges") || some("blocks.splits"),
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
            ("blocks.merges", 0.0, 0.0),
            ("blocks.write.inserted_share", 1.0, 0.95),
            ("blocks.write.q2i.mean", 2e-6, 2e-6),
            ("blocks.write.i2d.mean", 1e-6, 9e-6),
            ("blocks.write.q2d.mean", 3e-6, 11e-6),
            ("blocks.write.d2c.mean", 20e-6, 20e-6),
            ("blocks.write.q2c.mean", 23e-6, 31e-6),
            // Nothing was read from end to end.
            ("blocks.read.d2c.mean", 1e-6, 1e-6),
        ]);
        let found = request_times(&run, &analyse(&run, &Options::default()), None);
        assert_eq!(found.len(), 1);
        let times = &found[0];
        assert_eq!((times.direction, times.stages.len(), times.merged), (Direction::Write, 3, false));
        let (stage, waiting) = &times.stages[1];
        let difference = waiting.difference.unwrap();
        assert_eq!(*stage, RequestStage::Waiting);
        assert!((difference.estimate - 8e-6).abs() < 1e-6 && difference.low > 0.0, "{waiting:?}");
        assert!((times.whole.candidate / times.whole.baseline - 31.0 / 23.0).abs() < 0.05);
        // Without a scheduler most requests go to the driver at once.
        let run = run_with(&[
            ("blocks.lost", 0.0, 0.0),
            ("blocks.merges", 0.0, 8.0),
            ("blocks.write.inserted_share", 1.0, 0.03),
            ("blocks.write.q2i.mean", 2e-6, 0.2e-6),
            ("blocks.write.i2d.mean", 1e-6, 9e-6),
            ("blocks.write.q2d.mean", 3e-6, 2e-6),
            ("blocks.write.d2c.mean", 20e-6, 20e-6),
            ("blocks.write.q2c.mean", 23e-6, 22e-6),
        ]);
        let times = request_times(&run, &analyse(&run, &Options::default()), None).remove(0);
        let stages: Vec<RequestStage> = times.stages.iter().map(|(stage, _)| *stage).collect();
        assert_eq!((stages, times.merged), (vec![RequestStage::Issued, RequestStage::Device], true));
        assert_eq!(request_times(&run_with(&[]), &analyse(&run, &Options::default()), None), []);
    }
}
