//! When I/Os are issued: rates, pauses, and the depth that keeps a latency.
//!
//! Enters: nothing. Leaves: plain values that `draft` fills and the engine's loops follow.

use std::time::Duration;

/// `rate`, `rate_iops`, `rate_process`: an open loop, whose I/Os are due at times of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Per direction (read, write, trim); `None`: as fast as it goes.
    pub limits: [Option<RateLimit>; 3],
    /// How the due times follow each other.
    pub process: RateProcess,
}

impl Rate {
    /// Whether any direction is limited.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.limits.iter().any(Option::is_some)
    }
}

/// The limit of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// `rate`: bytes a second.
    BytesPerSecond(u64),
    /// `rate_iops`: I/Os a second.
    IosPerSecond(u64),
}

/// `rate_process`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly spaced.
    #[default]
    Linear,
    /// A Poisson process: exponential gaps of the same mean.
    Poisson,
}

/// `latency_target`: find the largest depth at which so many I/Os are within the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// `latency_target`.
    pub target: Duration,
    /// `latency_window`: how long each depth is tried.
    pub window: Duration,
    /// `latency_percentile`: percent of the I/Os that must be within the target; 100 by default.
    pub percentile: f64,
    /// `latency_run`: the search goes on for as long as the job does; else the job ends with it.
    pub goes_on: bool,
}

/// `thinktime`, `thinktime_spin`, `thinktime_blocks`: pauses between I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTime {
    /// `thinktime`: the whole pause; zero: none.
    pub pause: Duration,
    /// `thinktime_spin`: how much of the pause is spent busy.
    pub spin: Duration,
    /// `thinktime_blocks`: I/Os between pauses.
    pub every_ios: u32,
}

impl Default for ThinkTime {
    fn default() -> ThinkTime {
        ThinkTime { pause: Duration::ZERO, spin: Duration::ZERO, every_ios: 1 }
    }
}
