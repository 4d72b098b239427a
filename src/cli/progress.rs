//! The terminal as a sink: a line that moves with an ETA on a terminal, plain lines elsewhere.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::run::operations::{Operations, operations};
use super::run::time_left::TimeLeft;
use crate::analyse::deciding;
use crate::record::{FailureKind, Run, Status, Trial};
use crate::report::{shortened, wrapped};
use crate::run::{Event, Sink, SinkError};
use crate::sys::terminal::{err, error_columns, visible, visible_line};
use crate::units::{format_number, pretty_duration};

/// Plain lines come at most this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Shorter runs do not say beforehand how long they take.
const WORTH_TELLING_S: f64 = 10.0;

/// Columns of the bar; fewer where the terminal has few.
const BAR: [usize; 2] = [24, 8];
/// Terminals narrower than this have few.
const FEW_COLUMNS: usize = 100;
/// Where the terminal does not say how wide it is.
const USUAL_COLUMNS: usize = 80;
/// Between bar and message.
const OF_TRIALS: &str = " trials  ";
/// With less room than this the names of levels say nothing.
const LEAST_LABEL: usize = 6;

/// Shows how far a run is, on standard error.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    time_left: TimeLeft,
    /// Most that are still to come.
    trials_left: u64,
    done: u64,
    last_line: Instant,
    quiet: bool,
    told: Vec<Told>,
    /// That a quantile has too few operations.
    told_few: bool,
}

/// A reason that was told, and how many other trials ended for it.
struct Told {
    what: &'static str,
    reason: String,
    others: u64,
}

impl Progress {
    /// A bar on a terminal, lines elsewhere, nothing but failures when `quiet`.
    pub(super) fn new(quiet: bool, time_left: TimeLeft) -> Progress {
        let bar = (!quiet && std::io::stderr().is_terminal())
            .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        let now = Instant::now();
        Progress {
            bar,
            time_left,
            trials_left: 0,
            done: 0,
            last_line: now,
            quiet,
            told: Vec::new(),
            told_few: false,
        }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(visible(line)),
            // Nobody to tell is no reason to end a run.
            None => drop(writeln!(err(), "{line}")),
        }
    }

    fn begin(&mut self, run: &Run, trials_left: u64) {
        self.trials_left = trials_left;
        self.time_left.begin();
        let left_s = self.time_left.left_s(run, trials_left).filter(|left_s| *left_s >= WORTH_TELLING_S);
        if let Some(left_s) = left_s.filter(|_| !self.quiet && self.bar.is_none()) {
            self.say(&format!("{trials_left} trials, up to about {}", pretty_duration(left_s)));
        }
        if let Some(bar) = &self.bar {
            bar.set_length(trials_left.max(1));
            // What does not fit is cut once more there, should the terminal have become narrower.
            let template = format!("{{bar:{}}} {{pos}}/{{len}}{OF_TRIALS}{{wide_msg}}", bar_columns());
            let style = ProgressStyle::with_template(&template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(250));
        }
    }

    /// Longest time still to come, from the trials so far.
    fn eta(&self, run: &Run) -> String {
        let left_s = self.time_left.left_s(run, self.trials_left);
        left_s.filter(|_| self.trials_left > 0).map_or_else(String::new, more)
    }

    /// What is being done now, in the columns that are left of the line.
    fn doing(&self, run: &Run, what: &str, round: u32, cell: u32) -> String {
        let counted = self.done.max(1).to_string().len() + self.trials_left.to_string().len() + 1;
        let length = (self.done + self.trials_left).max(1).to_string().len();
        let taken = bar_columns() + 1 + counted.max(2 * length + 1) + OF_TRIALS.len();
        let columns = error_columns().unwrap_or(USUAL_COLUMNS);
        let label = parts_of(run, cell);
        fitted(&self.eta(run), &format!("{what}{}", round + 1), &label, columns.saturating_sub(taken))
    }

    /// Whether nothing ended for that reason before; what was told already is only counted.
    fn is_new(&mut self, what: &'static str, reason: &str) -> bool {
        let known = self.told.iter_mut().find(|told| told.what == what && told.reason == reason);
        match known {
            Some(told) => {
                told.others += 1;
                false
            }
            None => {
                self.told.push(Told { what, reason: reason.to_owned(), others: 0 });
                true
            }
        }
    }

    fn failed(&mut self, place: &str, trial: &Trial) {
        let Status::Failed { kind, reason, command, output } = &trial.status else { return };
        let again = trial.attempt > 0;
        if again && self.told.iter().any(|told| told.what == "failed" && told.reason == *reason) {
            return self.say(&format!("{place}: failed again"));
        }
        if !self.is_new("failed", reason) {
            return;
        }
        let what = match kind {
            FailureKind::Outside | FailureKind::Passing if again => "failed again",
            FailureKind::Outside | FailureKind::Passing => "failed, will be tried once more",
            FailureKind::Lasting => "failed, and would again",
            FailureKind::WrongData => "failed, its data are wrong",
        };
        self.say(&wrapped(&format!("{place}: {what}: {reason}"), "  "));
        if !command.is_empty() {
            self.say(&format!("  command: {command}"));
        }
        let lines: Vec<&str> = output.lines().collect();
        for line in &lines[lines.len().saturating_sub(12)..] {
            self.say(&format!("  | {line}"));
        }
    }

    /// What was not said for each trial.
    fn tell_others(&self) {
        for Told { what, reason, others } in self.told.iter().filter(|told| told.others > 0) {
            let trials = if *others == 1 { "trial" } else { "trials" };
            self.say(&wrapped(
                &format!("{others} other {trials} {what} for the same reason: {reason}"),
                "  ",
            ));
        }
    }

    fn trial_ended(&mut self, run: &Run, trial: &Trial) {
        let place = format!("round {}, {}", trial.round + 1, cell_label(run, trial.cell));
        match &trial.status {
            Status::Done => {
                self.done += 1;
                if let Some(why) = few_operations(run, trial).filter(|_| !self.quiet && !self.told_few) {
                    self.told_few = true;
                    self.say(&wrapped(&format!("{place}: {why}"), "  "));
                }
            }
            Status::Failed { .. } => {
                self.done += u64::from(trial.is_final());
                self.failed(&place, trial);
            }
            Status::Skipped { reason } => {
                self.done += 1;
                if self.is_new("skipped", reason) {
                    self.say(&wrapped(&format!("{place}: skipped: {reason}"), "  "));
                }
            }
        }
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => {
                // Cells that are given up make it shorter.
                bar.set_length((self.done + self.trials_left).max(1));
                bar.set_position(self.done);
                bar.set_message(self.eta(run));
            }
            // What else came of it has been said.
            None if trial.status == Status::Done && self.last_line.elapsed() >= PLAIN_INTERVAL => {
                self.last_line = Instant::now();
                let eta = Some(self.eta(run)).filter(|eta| !eta.is_empty());
                let eta = eta.map(|eta| format!(" ({eta})")).unwrap_or_default();
                self.say(&format!("{place}: {}{eta}", headline(run, trial)));
            }
            None => {}
        }
    }
}

impl Sink for Progress {
    fn event(&mut self, event: &Event<'_>) -> Result<(), SinkError> {
        match event {
            Event::RunBegins { run, trials_left } => self.begin(run, *trials_left),
            Event::LeadInBegins { run, cell, round } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(self.doing(run, "into round ", *round, *cell));
                }
            }
            // A failure that matters is told with a trial that counts.
            Event::LeadInEnds { run, index } => {
                let lead_in = &run.lead_ins[*index];
                self.time_left.ended(lead_in.cell, lead_in.elapsed_s);
            }
            Event::TrialBegins { run, cell, round, .. } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(self.doing(run, "round ", *round, *cell));
                }
            }
            Event::TrialEnds { run, index, trials_left } => {
                self.trials_left = *trials_left;
                let trial = &run.trials[*index];
                self.time_left.ended(trial.cell, trial.elapsed_s);
                self.time_left.counted(1, 0);
                self.trial_ended(run, &run.trials[*index]);
            }
            Event::RoundExcluded { run, round, cells, rule } => {
                let lost = run.trials.iter().rev().take_while(|trial| trial.round == *round);
                let lost = lost.filter(|trial| cells.contains(&trial.cell)).count();
                self.time_left.counted(0, lost as u32);
                let rows = run.row_of_cells();
                let all: BTreeSet<u32> = rows.iter().copied().collect();
                let of: BTreeSet<u32> = cells.iter().map(|cell| rows[*cell as usize]).collect();
                let part = match of.len() < all.len() {
                    true => format!(" for {} of {} rows", of.len(), all.len()),
                    false => String::new(),
                };
                if !self.quiet {
                    self.say(&format!("round {} is thrown out{part}: {rule}", round + 1));
                }
            }
            Event::RoundEnds { .. } => self.time_left.round_ended(),
            Event::RunEnds { .. } => {
                self.tell_others();
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
            }
        }
        Ok(())
    }
}

/// That a trial had too few operations for the quantile that decides: who waits for the last trial to be told so has waited in vain.
fn few_operations(run: &Run, trial: &Trial) -> Option<String> {
    deciding(run).into_iter().find_map(|index| {
        let Operations { metric, needed, had } = operations(run, trial, index)?;
        (had < needed).then(|| {
            format!(
                "{metric} needs {needed} operations a trial and will be refused where there are fewer: a longer runtime= gives more"
            )
        })
    })
}

/// `direct=1 bs=4k` for a cell.
pub(super) fn cell_label(run: &Run, cell: u32) -> String {
    parts_of(run, cell).join(" ")
}

/// `direct=1` and `bs=4k`.
fn parts_of(run: &Run, cell: u32) -> Vec<String> {
    let levels = &run.cells[cell as usize].levels;
    let factors = run.design.factors.iter().zip(levels);
    factors.map(|(factor, level)| format!("{}={}", factor.name, factor.levels[*level as usize])).collect()
}

/// `up to about 3 min 20 s more`: an estimate, and sequential runs may end sooner.
fn more(left_s: f64) -> String {
    if left_s < 1.0 {
        return "less than 1 s more".to_owned();
    }
    format!("up to about {} more", pretty_duration(left_s))
}

fn bar_columns() -> usize {
    let wide = error_columns().unwrap_or(USUAL_COLUMNS) >= FEW_COLUMNS;
    BAR[usize::from(!wide)]
}

/// The time left, the round and the cell in `room` columns: names of levels give way in their middle, the longest first.
fn fitted(eta: &str, round: &str, parts: &[String], room: usize) -> String {
    let gap = if eta.is_empty() { "" } else { "  " };
    let head = format!("{eta}{gap}{round}");
    let parts: Vec<String> = parts.iter().map(|part| visible_line(part).into_owned()).collect();
    let wide = |text: &str| text.chars().count();
    let left = room.saturating_sub(wide(&head) + 2 + parts.len().saturating_sub(1));
    let with_at_most = |most: usize| parts.iter().map(|part| wide(part).min(most)).sum::<usize>();
    let widest = parts.iter().map(|part| wide(part)).max().unwrap_or(0);
    let most = (0..=widest).rev().find(|most| with_at_most(*most) <= left).unwrap_or(0);
    if most < LEAST_LABEL.min(widest) {
        return shortened(&head, room);
    }
    let short: Vec<String> = parts.iter().map(|part| shortened(part, most)).collect();
    format!("{head}, {}", short.join(" "))
}

/// A value of a trial as a sign that something was measured.
fn headline(run: &Run, trial: &Trial) -> String {
    headline_of(run, trial, &deciding(run)).unwrap_or_else(|| "no values".to_owned())
}

/// `data: write.bw 759 MiB/s`: the value of a trial that decides in the section that the compared factor changes, or else the first that
/// decides, or else the first; `None`: it has no values. The only section of a job has no name here.
pub(super) fn headline_of(run: &Run, trial: &Trial, deciding: &BTreeSet<u32>) -> Option<String> {
    let decide: Vec<&(u32, f64)> =
        trial.values.iter().filter(|(metric, _)| deciding.contains(metric)).collect();
    let of_changed =
        decide.iter().find(|(metric, _)| is_changed(run, &run.metrics[*metric as usize].job)).copied();
    let (metric, value) = of_changed.or(decide.first().copied()).or(trial.values.first())?;
    let metric = &run.metrics[*metric as usize];
    let section = if metric.job.is_empty() { String::new() } else { format!("{}: ", metric.job) };
    Some(format!("{section}{} {}", metric.name, format_number(&metric.unit, *value)))
}

/// Whether the compared factor sets an option of this section alone (`data:iodepth`).
fn is_changed(run: &Run, section: &str) -> bool {
    let Some(factor) = run.design.factors.get(run.design.compare) else { return false };
    let mut keys = std::iter::once(&factor.name).chain(&factor.sets);
    keys.any(|key| {
        let key = key.strip_prefix("job.").unwrap_or(key);
        key.rsplit_once(':').is_some_and(|(of, _)| of == section)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Factor, Sample};
    use crate::units::Unit;

    #[test]
    fn the_line_fits_its_room_and_keeps_what_differs() {
        let parts = ["kernel=/boot/vmlinuz-6.12.0-rc5-amd64".to_owned(), "bs=4k".to_owned()];
        let of = |room| fitted("at most 4 min 10 s more", "round 12", &parts, room);
        assert_eq!(of(120), format!("at most 4 min 10 s more  round 12, {} bs=4k", parts[0]));
        for room in [20, 35, 48, 60, 79] {
            assert!(of(room).chars().count() <= room, "{room}: {}", of(room));
        }
        assert!(of(60).starts_with("at most 4 min 10 s more  round 12, kernel") && of(60).contains('…'));
        assert!(of(60).ends_with("amd64 bs=4k"), "{}", of(60));
        assert_eq!(of(35), "at most 4 min 10 s more  round 12");
        assert_eq!(fitted("", "into round 1", &["n=1".to_owned()], 30), "into round 1, n=1");
    }

    #[test]
    fn the_value_shown_is_of_the_section_that_is_changed() {
        let mut run: Run = serde_json::from_value(serde_json::json!({
            "version": crate::record::RECORD_VERSION, "id": 3, "name": "r", "source": "measured", "state": "running",
            "assay_version": "0", "started_unix_ns": 0, "command_line": [], "seed": 1, "engine": "", "job_text": null,
            "experiment": null, "aa": false, "facts": [], "metrics": [], "cells": [], "trials": [], "notes": [],
            "design": { "factors": [], "compare": 0, "paired": true, "primary": null, "stop": crate::record::StopRule::default() },
        }))
        .unwrap();
        let metric = |job: &str| Sample::new(job, "iops", Unit::Other("x".to_owned()), 1.0).metric;
        run.metrics = vec![metric("log"), metric("data")];
        let trial = Trial { values: vec![(0, 1.0), (1, 2.0)], ..Trial::default() };
        let deciding = BTreeSet::from([0, 1]);
        let shown = |run: &Run| headline_of(run, &trial, &deciding).unwrap();
        assert!(shown(&run).starts_with("log: iops 1"), "{}", shown(&run));
        for (name, section) in [("data:iodepth", "data: iops 2"), ("bs", "log: iops 1")] {
            run.design.factors = vec![Factor::new(name, vec!["1".to_owned(), "16".to_owned()])];
            assert!(shown(&run).starts_with(section), "{name}: {}", shown(&run));
        }
        run.metrics[0].job.clear();
        run.design.factors[0].sets = vec!["data:iodepth".to_owned()];
        assert!(shown(&run).starts_with("data: iops 2"), "{}", shown(&run));
        assert_eq!(headline_of(&run, &Trial::default(), &deciding), None);
    }

    #[test]
    fn less_than_a_second_has_no_figures() {
        assert_eq!([0.0, 0.052, 0.99].map(more), ["less than 1 s more"; 3]);
        assert_eq!(more(64.0), "up to about 1 min 04 s more");
    }
}
