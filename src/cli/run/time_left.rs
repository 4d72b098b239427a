//! The longest time a run still takes, from its own trials as soon as there are any.
//!
//! Enters: what the plan expects of each cell, and each trial as it ends. Leaves: seconds.

use std::time::Instant;

use crate::record::Run;

/// What is known of the time of a run's trials.
pub(in crate::cli) struct TimeLeft {
    /// By cell, in seconds; `None`: the plan cannot know.
    planned_s: Vec<Option<f64>>,
    /// By cell: seconds of its trials and lead-ins, and how many there were.
    seen: Vec<(f64, u32)>,
    begun: Instant,
    /// Trials of this session that ended, and those of them that were thrown out.
    ended: u32,
    thrown_out: u32,
}

impl TimeLeft {
    /// From what each trial of a cell is expected to take.
    pub(in crate::cli) fn new(planned_s: Vec<Option<f64>>) -> TimeLeft {
        let seen = vec![(0.0, 0); planned_s.len()];
        TimeLeft { planned_s, seen, begun: Instant::now(), ended: 0, thrown_out: 0 }
    }

    /// A session begins now.
    pub(in crate::cli) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// A trial or lead-in of a cell ended after so many seconds.
    pub(in crate::cli) fn ended(&mut self, cell: u32, elapsed_s: f64) {
        if let Some((seconds, count)) = self.seen.get_mut(cell as usize) {
            *seconds += elapsed_s;
            *count += 1;
        }
    }

    /// How many of the trials that ended count for nothing: about as many of the others will have to be made up for.
    pub(in crate::cli) fn counted(&mut self, ended: u32, thrown_out: u32) {
        self.ended += ended;
        self.thrown_out += thrown_out;
    }

    /// Longest time still to come, with so many trials left at most; `None`: nothing is known yet.
    pub(in crate::cli) fn left_s(&self, run: &Run, trials_left: u64) -> Option<f64> {
        let seen = || self.seen.iter().filter(|(_, count)| *count > 0);
        let mean = |(seconds, count): &(f64, u32)| seconds / f64::from(*count);
        // What trials took beyond what was planned, they will go on to take.
        let beyond: Vec<f64> = self
            .seen
            .iter()
            .zip(&self.planned_s)
            .filter(|((_, count), _)| *count > 0)
            .filter_map(|(seen, planned)| Some(mean(seen) - (*planned)?))
            .collect();
        let beyond = if beyond.is_empty() { 0.0 } else { beyond.iter().sum::<f64>() / beyond.len() as f64 };
        let usual = match seen().count() {
            0 => None,
            cells => Some(seen().map(mean).sum::<f64>() / cells as f64),
        };
        let of_cell = |(seen, planned): (&(f64, u32), &Option<f64>)| match (seen.1, planned) {
            (1.., _) => Some(mean(seen)),
            (0, Some(planned)) => Some((planned + beyond).max(0.0)),
            (0, None) => usual,
        };
        let cells = self.seen.len().max(1) as f64;
        let round_s = self.seen.iter().zip(&self.planned_s).map(of_cell).sum::<Option<f64>>()?;
        let rounds_left = trials_left as f64 / cells;
        let led = if run.design.lead_in { 1.0 + 1.0 / cells } else { 1.0 };
        let counting = f64::from(self.ended - self.thrown_out.min(self.ended)) / f64::from(self.ended.max(1));
        let again = if self.ended == 0 { 1.0 } else { 1.0 / counting.max(0.5) };
        // Boots, the store and whatever else lies between the trials.
        let measured: f64 = seen().map(|(seconds, _)| seconds).sum();
        let between = if measured > 0.0 { self.begun.elapsed().as_secs_f64() / measured } else { 1.0 };
        let left = round_s * rounds_left * led * again * between.clamp(1.0, 3.0);
        let budget = run.design.stop.time_budget_s;
        Some(budget.map_or(left, |budget| {
            left.min((budget - self.begun.elapsed().as_secs_f64()).max(0.0) + round_s / cells)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lead_in: bool) -> Run {
        let design = serde_json::json!({
            "factors": [{ "name": "n", "levels": ["1", "2"] }], "compare": 0, "paired": true, "primary": null,
            "lead_in": lead_in, "stop": crate::record::StopRule::default(),
        });
        serde_json::from_value(serde_json::json!({
            "version": 1, "id": null, "name": "", "source": "measured", "state": "running", "assay_version": "",
            "started_unix_ns": 0, "command_line": [], "seed": 1, "engine": "", "job_text": null, "experiment": null,
            "design": design, "aa": false, "facts": [], "metrics": [], "cells": [{ "levels": [0] }, { "levels": [1] }],
            "trials": [], "notes": [],
        }))
        .unwrap()
    }

    fn is_about(left: Option<f64>, expected: f64) -> bool {
        left.is_some_and(|left| (left - expected).abs() < 0.01 * expected)
    }

    #[test]
    fn before_the_first_trial_it_is_what_was_planned() {
        let planned = TimeLeft::new(vec![Some(1.0), Some(2.0)]);
        assert!(is_about(planned.left_s(&run(false), 20), 30.0));
        assert!(is_about(planned.left_s(&run(true), 20), 45.0));
        assert_eq!(TimeLeft::new(vec![None, Some(2.0)]).left_s(&run(true), 20), None);
    }

    #[test]
    fn trials_take_its_place() {
        // The cell that was not run yet takes as much longer than planned as the other one.
        let mut left = TimeLeft::new(vec![Some(1.0), Some(2.0)]);
        left.ended(0, 1.5);
        assert!(is_about(left.left_s(&run(false), 20), 40.0));
        left.ended(1, 3.0);
        assert!(is_about(left.left_s(&run(false), 20), 45.0));
        // Of two that nothing was known of, one is as the other.
        let mut unknown = TimeLeft::new(vec![None, None]);
        unknown.ended(1, 3.0);
        assert!(is_about(unknown.left_s(&run(false), 20), 60.0));
    }

    #[test]
    fn trials_thrown_out_are_made_up_for() {
        let mut left = TimeLeft::new(vec![Some(1.0), Some(1.0)]);
        left.counted(4, 1);
        assert!(is_about(left.left_s(&run(false), 12), 16.0));
    }
}
