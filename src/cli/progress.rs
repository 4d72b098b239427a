//! The terminal as a sink: a line that moves with an ETA on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::record::{Run, Status, Trial};
use crate::run::{Event, Sink, SinkError};
use crate::units::{format_number, pretty_duration};

/// Plain lines come at most this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Shows how far a run is, on standard error.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    begun: Instant,
    trials_left: u64,
    done: u64,
    last_line: Instant,
    quiet: bool,
}

impl Progress {
    /// A bar on a terminal, lines elsewhere, nothing but failures when `quiet`.
    pub(super) fn new(quiet: bool) -> Progress {
        let bar = (!quiet && std::io::stderr().is_terminal())
            .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        let now = Instant::now();
        Progress { bar, begun: now, trials_left: 0, done: 0, last_line: now, quiet }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // Nobody to tell is no reason to end a run.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    fn begin(&mut self, trials_left: u64) {
        self.trials_left = trials_left;
        self.begun = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_length(trials_left.max(1));
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} trials at most  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(250));
        }
    }

    /// Longest time still to come, from the trials so far.
    fn eta(&self) -> String {
        if self.done == 0 {
            return String::new();
        }
        let left = self.trials_left.saturating_sub(self.done) as f64;
        let eta = self.begun.elapsed().as_secs_f64() / self.done as f64 * left;
        format!("at most {} more", pretty_duration(eta))
    }

    fn trial_ended(&mut self, run: &Run, trial: &Trial) {
        let place = format!("round {}, {}", trial.round + 1, cell_label(run, trial.cell));
        match &trial.status {
            Status::Done => self.done += 1,
            Status::Failed { reason, command, output } => {
                self.done += u64::from(trial.attempt > 0);
                let what =
                    if trial.attempt == 0 { "failed, will be tried once more" } else { "failed again" };
                self.say(&format!("{place}: {what}: {reason}"));
                if !command.is_empty() {
                    self.say(&format!("  command: {command}"));
                }
                let lines: Vec<&str> = output.lines().collect();
                for line in &lines[lines.len().saturating_sub(12)..] {
                    self.say(&format!("  | {line}"));
                }
            }
            Status::Skipped { reason } => {
                self.done += 1;
                self.say(&format!("{place}: skipped: {reason}"));
            }
        }
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done);
                bar.set_message(self.eta());
            }
            None if self.last_line.elapsed() >= PLAIN_INTERVAL => {
                self.last_line = Instant::now();
                self.say(&format!("{place}: {} ({})", headline(run, trial), self.eta()));
            }
            None => {}
        }
    }
}

impl Sink for Progress {
    fn event(&mut self, event: &Event<'_>) -> Result<(), SinkError> {
        match event {
            Event::RunBegins { trials_left, .. } => self.begin(*trials_left),
            Event::TrialBegins { run, cell, round, .. } => {
                if let Some(bar) = &self.bar {
                    let at = format!("{}  round {}, {}", self.eta(), round + 1, cell_label(run, *cell));
                    bar.set_message(at);
                }
            }
            Event::TrialEnds { run, index } => self.trial_ended(run, &run.trials[*index]),
            Event::RoundExcluded { round, rule, .. } => {
                self.say(&format!("round {} is thrown out: {rule}", round + 1));
            }
            Event::RoundEnds { .. } => {}
            Event::RunEnds { .. } => {
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
            }
        }
        Ok(())
    }
}

/// `direct=1 bs=4k` for a cell.
pub(super) fn cell_label(run: &Run, cell: u32) -> String {
    let levels = &run.cells[cell as usize].levels;
    let parts: Vec<String> = run
        .design
        .factors
        .iter()
        .zip(levels)
        .map(|(factor, level)| format!("{}={}", factor.name, factor.levels[*level as usize]))
        .collect();
    parts.join(" ")
}

/// The first value of a trial, as a sign that something was measured.
fn headline(run: &Run, trial: &Trial) -> String {
    match trial.values.first() {
        Some((metric, value)) => {
            let metric = &run.metrics[*metric as usize];
            format!("{} {}", metric.name, format_number(&metric.unit, *value))
        }
        None => "no values".to_owned(),
    }
}
