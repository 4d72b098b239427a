//! The longest time a run still takes, from its own trials as soon as there are any.
//!
//! Enters: what the plan expects of each cell, and each trial and round as it ends. Leaves: seconds.

use std::time::{Duration, Instant};

use crate::record::Run;

/// What the plan says of the time to come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::cli) struct Planned {
    /// Of a trial of each cell, in seconds; `None`: the plan cannot know.
    pub(in crate::cli) trials_s: Vec<Option<f64>>,
    /// Of booting the guests of a round. Those of the first one run already.
    pub(in crate::cli) boots_s: f64,
    /// Rounds that are run for each one that counts.
    pub(in crate::cli) rounds_for_one: f64,
}

/// What is known of the time of a run's trials.
pub(in crate::cli) struct TimeLeft {
    planned: Planned,
    /// By cell: seconds of its trials and lead-ins, and how many there were.
    seen: Vec<(f64, u32)>,
    begun: Instant,
    round_begun: Instant,
    /// Trials of the round that is being run.
    in_round: u32,
    /// Whole rounds: their time, with boots and all that lies between trials, and their trials.
    whole: (Duration, u32),
    /// Trials of this session that ended, and those of them that were thrown out.
    ended: u32,
    thrown_out: u32,
}

impl TimeLeft {
    /// From what is planned.
    pub(in crate::cli) fn new(planned: Planned) -> TimeLeft {
        let (seen, now) = (vec![(0.0, 0); planned.trials_s.len()], Instant::now());
        TimeLeft {
            planned,
            seen,
            begun: now,
            round_begun: now,
            in_round: 0,
            whole: (Duration::ZERO, 0),
            ended: 0,
            thrown_out: 0,
        }
    }

    /// A session begins now.
    pub(in crate::cli) fn begin(&mut self) {
        self.begun = Instant::now();
        self.round_begun = self.begun;
    }

    /// A trial or lead-in of a cell ended after so many seconds.
    pub(in crate::cli) fn ended(&mut self, cell: u32, elapsed_s: f64) {
        if let Some((seconds, count)) = self.seen.get_mut(cell as usize) {
            *seconds += elapsed_s;
            *count += 1;
        }
    }

    /// How many trials ended, and how many of those that ended count for nothing: about as many of the others will have to be made
    /// up for.
    pub(in crate::cli) fn counted(&mut self, ended: u32, thrown_out: u32) {
        self.ended += ended;
        self.in_round += ended;
        self.thrown_out += thrown_out;
    }

    /// All trials of a round have ended.
    pub(in crate::cli) fn round_ended(&mut self) {
        self.round_took(self.round_begun.elapsed());
        self.round_begun = Instant::now();
    }

    fn round_took(&mut self, elapsed: Duration) {
        let trials = std::mem::take(&mut self.in_round);
        // The guests of the first round were booted before it.
        if self.planned.boots_s == 0.0 || self.ended > trials {
            self.whole = (self.whole.0 + elapsed, self.whole.1 + trials);
        }
    }

    /// Longest time still to come, with so many trials left at most; `None`: nothing is known yet.
    pub(in crate::cli) fn left_s(&self, run: &Run, trials_left: u64) -> Option<f64> {
        let cells = self.seen.len().max(1) as f64;
        let trial_s = match self.whole {
            (elapsed, trials @ 1..) => elapsed.as_secs_f64() / f64::from(trials),
            _ => self.round_s(run)? / cells,
        };
        // In the first round its guests run already.
        let booted_s = if self.ended == self.in_round { self.planned.boots_s } else { 0.0 };
        let left = (trial_s * trials_left as f64 * self.trials_for_one(cells) - booted_s).max(0.0);
        let budget = run.design.stop.time_budget_s;
        Some(budget.map_or(left, |budget| {
            left.min((budget - self.begun.elapsed().as_secs_f64()).max(0.0) + trial_s)
        }))
    }

    /// What a round takes, by single trials.
    fn round_s(&self, run: &Run) -> Option<f64> {
        let seen = || self.seen.iter().filter(|(_, count)| *count > 0);
        let mean = |(seconds, count): &(f64, u32)| seconds / f64::from(*count);
        // What trials took beyond what was planned, they will go on to take.
        let beyond: Vec<f64> = self
            .seen
            .iter()
            .zip(&self.planned.trials_s)
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
        let trials_s = self.seen.iter().zip(&self.planned.trials_s).map(of_cell).sum::<Option<f64>>()?;
        let led = if run.design.lead_in { 1.0 + 1.0 / self.seen.len().max(1) as f64 } else { 1.0 };
        Some(trials_s * led + self.planned.boots_s)
    }

    /// Trials that are run for each one that counts. What was expected weighs as much as one round.
    fn trials_for_one(&self, cells: f64) -> f64 {
        let counting = f64::from(self.ended - self.thrown_out.min(self.ended));
        let expected = self.planned.rounds_for_one.max(1.0);
        // After twice as many rounds as wanted a run ends.
        ((f64::from(self.ended) + cells) / (counting + cells / expected)).min(2.0)
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

    fn planned(trials_s: [Option<f64>; 2]) -> TimeLeft {
        TimeLeft::new(Planned { trials_s: trials_s.to_vec(), boots_s: 0.0, rounds_for_one: 1.0 })
    }

    fn is_about(left: Option<f64>, expected: f64) -> bool {
        left.is_some_and(|left| (left - expected).abs() < 0.01 * expected)
    }

    #[test]
    fn before_the_first_trial_it_is_what_was_planned() {
        let left = planned([Some(1.0), Some(2.0)]);
        assert!(is_about(left.left_s(&run(false), 20), 30.0));
        assert!(is_about(left.left_s(&run(true), 20), 45.0));
        assert_eq!(planned([None, Some(2.0)]).left_s(&run(true), 20), None);
        let mut busy = planned([Some(1.0), Some(2.0)]);
        busy.planned.rounds_for_one = 2.0;
        assert!(is_about(busy.left_s(&run(false), 20), 60.0));
    }

    #[test]
    fn trials_take_its_place() {
        // The cell that was not run yet takes as much longer than planned as the other one.
        let mut left = planned([Some(1.0), Some(2.0)]);
        left.ended(0, 1.5);
        assert!(is_about(left.left_s(&run(false), 20), 40.0));
        left.ended(1, 3.0);
        assert!(is_about(left.left_s(&run(false), 20), 45.0));
        // Of two that nothing was known of, one is as the other.
        let mut unknown = planned([None, None]);
        unknown.ended(1, 3.0);
        assert!(is_about(unknown.left_s(&run(false), 20), 60.0));
    }

    #[test]
    fn whole_rounds_take_the_place_of_trials() {
        // With what lies between the trials, and the lead-in.
        let mut left = planned([Some(1.0), Some(1.0)]);
        left.counted(2, 0);
        left.round_took(Duration::from_secs(5));
        assert!(is_about(left.left_s(&run(true), 8), 20.0));
    }

    #[test]
    fn guests_are_booted_for_all_rounds_but_the_first() {
        let mut left = planned([Some(1.0), Some(1.0)]);
        left.planned.boots_s = 10.0;
        assert!(is_about(left.left_s(&run(false), 8), 38.0));
        left.counted(2, 0);
        left.round_took(Duration::from_secs(2));
        assert!(is_about(left.left_s(&run(false), 6), 36.0), "that round had none");
        left.counted(2, 0);
        left.round_took(Duration::from_secs(14));
        assert!(is_about(left.left_s(&run(false), 4), 28.0));
    }

    #[test]
    fn trials_thrown_out_are_made_up_for() {
        // One of three rounds; what was expected counts as a fourth.
        let mut left = planned([Some(1.0), Some(1.0)]);
        left.counted(6, 2);
        assert!(is_about(left.left_s(&run(false), 12), 16.0));
        left.counted(100, 100);
        assert!(is_about(left.left_s(&run(false), 12), 24.0), "a run ends after twice its rounds");
    }
}
