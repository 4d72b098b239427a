//! The longest time a run still takes, from its own trials as soon as there are any.
//!
//! Enters: what the plan expects of each cell, and each trial and round as it ends. Leaves: seconds.

use std::time::{Duration, Instant};

use crate::record::Run;
use crate::stats::descriptive;

/// What the plan says of the time to come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::cli) struct Planned {
    /// Of a trial of each cell, in seconds; `None`: the plan cannot know.
    pub(in crate::cli) trials_s: Vec<Option<f64>>,
    /// Of booting the guests of a round. Those of the first one run already.
    pub(in crate::cli) boots_s: f64,
    /// Rounds that are run for each one that counts.
    pub(in crate::cli) rounds_for_one: f64,
    /// What is left of the time budget when the first trial begins.
    pub(in crate::cli) budget: Option<Duration>,
}

/// So many rounds, or trials of a cell, speak for themselves: one that was slow by chance is not taken for what all will be.
const ENOUGH: usize = 3;

/// What is known of the time of a run's trials.
pub(in crate::cli) struct TimeLeft {
    planned: Planned,
    /// By cell: seconds of its trials and lead-ins.
    seen: Vec<Vec<f64>>,
    /// How much longer than planned those took of which that is known.
    beyond: Vec<f64>,
    /// Seconds between them, as for a device that is waited for.
    gaps: Vec<f64>,
    last_end: Instant,
    begun: Instant,
    round_begun: Instant,
    /// Trials of the round that is being run.
    in_round: u32,
    /// Whole rounds: seconds for each of their trials, with boots and all that lies between trials.
    whole: Vec<f64>,
    /// Trials of this session that ended, and those of them that were thrown out.
    ended: u32,
    thrown_out: u32,
}

impl TimeLeft {
    /// From what is planned.
    pub(in crate::cli) fn new(planned: Planned) -> TimeLeft {
        let (seen, now) = (vec![Vec::new(); planned.trials_s.len()], Instant::now());
        TimeLeft {
            planned,
            seen,
            beyond: Vec::new(),
            gaps: Vec::new(),
            last_end: now,
            begun: now,
            round_begun: now,
            in_round: 0,
            whole: Vec::new(),
            ended: 0,
            thrown_out: 0,
        }
    }

    /// A session begins now.
    pub(in crate::cli) fn begin(&mut self) {
        self.begun = Instant::now();
        self.round_begun = self.begun;
        self.last_end = self.begun;
    }

    /// A trial or lead-in of a cell ended after so many seconds.
    pub(in crate::cli) fn ended(&mut self, cell: u32, elapsed_s: f64) {
        let Some(seen) = self.seen.get_mut(cell as usize) else { return };
        seen.push(elapsed_s);
        self.beyond.extend(self.planned.trials_s[cell as usize].map(|planned| elapsed_s - planned));
        // Guests are booted in front of a round's first trial.
        if self.planned.boots_s == 0.0 || self.in_round > 0 {
            self.gaps.push((self.last_end.elapsed().as_secs_f64() - elapsed_s).max(0.0));
        }
        self.last_end = Instant::now();
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
        if trials > 0 && (self.planned.boots_s == 0.0 || self.ended > trials) {
            self.whole.push(elapsed.as_secs_f64() / f64::from(trials));
        }
    }

    /// Longest time still to come, with so many trials left at most; `None`: nothing is known yet.
    pub(in crate::cli) fn left_s(&self, run: &Run, trials_left: u64) -> Option<f64> {
        let cells = self.seen.len().max(1) as f64;
        // What boots take, only rounds know.
        let enough = if self.planned.boots_s > 0.0 { 1 } else { ENOUGH };
        let trial_s = match median(&self.whole).filter(|_| self.whole.len() >= enough) {
            Some(trial_s) => trial_s,
            None => self.round_s(run)? / cells,
        };
        // In the first round its guests run already.
        let booted_s = if self.ended == self.in_round { self.planned.boots_s } else { 0.0 };
        let left = (trial_s * trials_left as f64 * self.trials_for_one(cells) - booted_s).max(0.0);
        Some(self.planned.budget.map_or(left, |budget| {
            left.min(budget.saturating_sub(self.begun.elapsed()).as_secs_f64() + trial_s)
        }))
    }

    /// What a round takes, by single trials.
    fn round_s(&self, run: &Run) -> Option<f64> {
        let beyond = median(&self.beyond).unwrap_or(0.0);
        let known: Vec<f64> = self.seen.iter().filter_map(|seen| median(seen)).collect();
        let usual = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
        // What trials took beyond what was planned, they will go on to take.
        let of_cell = |(seen, planned): (&Vec<f64>, &Option<f64>)| match planned {
            Some(planned) if seen.len() < ENOUGH => Some((planned + beyond).max(0.0)),
            _ => median(seen).or(usual),
        };
        let trials_s = self.seen.iter().zip(&self.planned.trials_s).map(of_cell).sum::<Option<f64>>()?;
        let cells = self.seen.len().max(1) as f64;
        let led = if run.design.lead_in { 1.0 + 1.0 / cells } else { 1.0 };
        Some((trials_s + self.gap_s() * cells) * led + self.planned.boots_s)
    }

    /// What lies between two trials: none, until two have shown otherwise.
    fn gap_s(&self) -> f64 {
        let mut gaps = self.gaps.clone();
        gaps.push(0.0);
        gaps.sort_by(f64::total_cmp);
        gaps[(gaps.len() - 1) / 2]
    }

    /// Trials that are run for each one that counts. What was expected weighs as much as one round.
    fn trials_for_one(&self, cells: f64) -> f64 {
        let counting = f64::from(self.ended - self.thrown_out.min(self.ended));
        let expected = self.planned.rounds_for_one.max(1.0);
        // After twice as many rounds as wanted a run ends.
        ((f64::from(self.ended) + cells) / (counting + cells / expected)).min(2.0)
    }
}

fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| descriptive::median(values))
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
        TimeLeft::new(Planned {
            trials_s: trials_s.to_vec(),
            boots_s: 0.0,
            rounds_for_one: 1.0,
            budget: None,
        })
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
        for seconds in [5, 5, 60] {
            left.counted(2, 0);
            left.round_took(Duration::from_secs(seconds));
        }
        assert!(is_about(left.left_s(&run(true), 8), 20.0), "one of three was slow");
    }

    #[test]
    fn one_slow_wait_is_not_taken_for_what_all_will_be() {
        // Sixty trials of a second; something was waited for by the second one.
        let mut left = planned([Some(1.0), Some(1.0)]);
        left.ended(0, 1.0);
        left.ended(1, 15.0);
        left.ended(0, 1.0);
        left.counted(2, 0);
        left.round_took(Duration::from_secs(17));
        assert!(is_about(left.left_s(&run(false), 60), 60.0), "{:?}", left.left_s(&run(false), 60));
        // Between trials, too.
        left.gaps = vec![0.1, 14.0, 0.1];
        assert!(is_about(left.left_s(&run(false), 60), 66.0), "{:?}", left.left_s(&run(false), 60));
        // All of them slow: so it will go on.
        for _ in 0..4 {
            left.ended(0, 15.0);
            left.ended(1, 15.0);
        }
        left.gaps.clear();
        assert!(is_about(left.left_s(&run(false), 60), 900.0), "{:?}", left.left_s(&run(false), 60));
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
