//! How far a build of a kernel is, on standard error.
//!
//! Enters: steps of a build. Leaves: lines; nobody to tell is no reason to end a run.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::kernel_build::Step;
use crate::sys::terminal::{err, visible};
use crate::units::pretty_duration;

/// Plain lines come at most this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// Says how far a build is: a line that moves on a terminal, a line now and then elsewhere.
pub(super) struct Teller {
    bar: Option<ProgressBar>,
    quiet: bool,
    what: String,
    last: Instant,
}

impl Teller {
    /// Nothing was told yet.
    pub(super) fn new(quiet: bool) -> Teller {
        let bar = (!quiet && std::io::stderr().is_terminal())
            .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        if let Some(bar) = &bar {
            let style = ProgressStyle::with_template("{spinner} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        }
        Teller { bar, quiet, what: String::new(), last: Instant::now() }
    }

    /// Says how far it is now.
    pub(super) fn tell(&mut self, step: &Step<'_>) {
        let about = if step.is_limit { "at most" } else { "about" };
        let of = if step.of > 0 { format!(" of {about} {}", step.of) } else { String::new() };
        let left = step.left_s.map_or_else(String::new, |s| format!(", {about} {} more", pretty_duration(s)));
        let line = match step.objects {
            0 => step.what.to_owned(),
            objects => format!("{}: {objects}{of} objects{left}", step.what),
        };
        if let Some(bar) = &self.bar {
            bar.set_message(visible(&line).into_owned());
            bar.tick();
        } else if !self.quiet && (self.what != step.what || self.last.elapsed() >= PLAIN_INTERVAL) {
            // Nobody to tell is no reason to end a run.
            let _ = writeln!(err(), "{line}");
            self.last = Instant::now();
        }
        step.what.clone_into(&mut self.what);
    }

    /// Removes the line.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
