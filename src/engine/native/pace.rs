//! When the I/Os of a rate-limited job are due, and how they are waited for.
//!
//! Enters: the limits, the directions drawn, the bytes issued, readings of the clock. Leaves: the direction of the next
//! I/O and the moment it is meant to start, whatever became of those before it: an open loop. The schedule knows
//! neither files nor methods and reads no clock; only the waits do.

use std::num::NonZeroU64;
use std::time::Duration;

use super::clock::Clock;
use super::start_line::StartLine;
use crate::workload::{DataDirection, Job, Mix, RateLimit, RateProcess, SplitMix};

/// The last stretch of a wait is spent busy. Measured in a virtual machine with a timer slack of 1 ns, a sleep ends
/// 32 µs late in the median and 56 µs late in one case of a hundred.
const BUSY_NS: u64 = 60_000;
/// Longest wait for completions in one go: who is told to stop does not wake from it.
const SLICE: Duration = Duration::from_millis(8);
/// Stands for an I/O that is due whenever it can be made: later than any reading of the clock.
pub(super) const WHENEVER: u64 = u64::MAX;

/// The due times of a job with `rate` or `rate_iops`.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    lanes: [Option<Lane>; 3],
    process: RateProcess,
    /// Both directions take part, so that one may go before the other.
    mixed: bool,
    random: SplitMix,
}

/// One limited direction.
#[derive(Clone, Copy, Debug)]
struct Lane {
    bytes_per_second: u64,
    /// Bytes of all I/Os of this direction so far.
    issued: u64,
    /// Mean distance of a poisson process, nanoseconds.
    mean_gap_ns: f64,
    origin_ns: u64,
    due_ns: u64,
}

impl Schedule {
    /// The schedule of `job`, whose first I/O is due at `origin_ns`; `None` when nothing is limited.
    pub(super) fn new(job: &Job, origin_ns: u64, seed: u64) -> Option<Schedule> {
        if !job.rate.is_limited() {
            return None;
        }
        let blocks = [job.block_sizes.read.min, job.block_sizes.write.min, job.block_sizes.trim.min];
        let lane = |at: usize| {
            let block = blocks[at].max(1);
            // As fio has it, so many I/Os of the smallest block are so many bytes.
            let bytes_per_second = match job.rate.limits[at]? {
                RateLimit::BytesPerSecond(bytes) => bytes,
                RateLimit::IosPerSecond(ios) => ios.saturating_mul(block),
            };
            let bytes_per_second = bytes_per_second.max(1);
            let mean_gap_ns = 1e9 * block as f64 / bytes_per_second as f64;
            Some(Lane { bytes_per_second, issued: 0, mean_gap_ns, origin_ns, due_ns: origin_ns })
        };
        let mixed =
            matches!(job.pattern.mix, Mix::ReadWrite { read_percent } if (1..100).contains(&read_percent));
        Some(Schedule {
            lanes: [lane(0), lane(1), lane(2)],
            process: job.rate.process,
            mixed,
            random: SplitMix::new(seed ^ 0x2545_f491_4f6c_dd1d),
        })
    }

    /// The direction of the next I/O when the job's mix has `drawn` one. As in fio a direction that is behind its rate
    /// goes before one that is ahead of it, so that each keeps its own rate whatever the mix says.
    pub(super) fn choose(&self, drawn: DataDirection, now_ns: u64) -> DataDirection {
        let other = match drawn {
            DataDirection::Read if self.mixed => DataDirection::Write,
            DataDirection::Write if self.mixed => DataDirection::Read,
            _ => return drawn,
        };
        // An unlimited direction is always due.
        let due = |direction| self.lanes[direction as usize].map_or(0, |lane: Lane| lane.due_ns);
        if due(drawn) <= now_ns || (due(other) > now_ns && due(drawn) <= due(other)) { drawn } else { other }
    }

    /// Begins anew: the next I/O of each direction is due at `now_ns`.
    pub(super) fn restart(&mut self, now_ns: u64) {
        for lane in self.lanes.iter_mut().flatten() {
            (lane.origin_ns, lane.due_ns, lane.issued) = (now_ns, now_ns, 0);
        }
    }

    /// The first due time behind `due_ns`.
    pub(super) fn following_ns(&self, due_ns: u64) -> Option<u64> {
        self.lanes.iter().flatten().map(|lane| lane.due_ns).filter(|due| *due > due_ns).min()
    }

    /// When the next I/O in this direction, of so many `bytes`, is due ([`WHENEVER`]: it is not limited). Moves on.
    pub(super) fn next_due(&mut self, direction: DataDirection, bytes: u64) -> u64 {
        let Some(lane) = &mut self.lanes[direction as usize] else { return WHENEVER };
        let due_ns = lane.due_ns;
        lane.issued = lane.issued.saturating_add(bytes);
        lane.due_ns = match self.process {
            RateProcess::Linear => {
                let ns = u128::from(lane.issued) * 1_000_000_000 / u128::from(lane.bytes_per_second);
                lane.origin_ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
            }
            RateProcess::Poisson => due_ns.saturating_add(exponential(&mut self.random, lane.mean_gap_ns)),
        };
        due_ns
    }
}

/// A draw from the exponential distribution by inversion: −mean · ln(U), U uniform in (0, 1] (Devroye, Non-Uniform
/// Random Variate Generation, 1986, II.2).
fn exponential(random: &mut SplitMix, mean: f64) -> u64 {
    let uniform = ((random.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-uniform.ln() * mean) as u64
}

/// How much of a wait may be slept before it is time to be busy; `None`: nothing.
fn to_sleep(until_ns: u64, now_ns: u64) -> Option<Duration> {
    let sleep_ns = until_ns.saturating_sub(now_ns).saturating_sub(BUSY_NS);
    (sleep_ns > 0).then(|| Duration::from_nanos(sleep_ns))
}

/// How long to wait in one go for completions or for `until_ns`; `None`: it is time to be busy.
pub(super) fn slice(until_ns: u64, now_ns: u64) -> Option<Duration> {
    to_sleep(until_ns, now_ns).map(|sleep| sleep.min(SLICE))
}

/// Whether a wait takes more than one slice: with nothing to complete meanwhile it is better slept at once.
pub(super) fn is_long(until_ns: u64, now_ns: u64) -> bool {
    to_sleep(until_ns, now_ns).is_some_and(|sleep| sleep > SLICE)
}

/// Sleeps until it is time to be busy, or until told to stop.
pub(super) fn doze(clock: &Clock, line: &StartLine, until_ns: u64) {
    line.sleep_until(clock, until_ns.saturating_sub(BUSY_NS));
}

/// Sleeps, then spins, until the clock shows `until_ns` or all are told to stop; the last reading of the clock.
pub(super) fn sleep_until(clock: &Clock, line: &StartLine, until_ns: u64) -> u64 {
    doze(clock, line, until_ns);
    let mut now = clock.now_ns();
    while now < until_ns && !line.stopped() {
        std::hint::spin_loop();
        now = clock.now_ns();
    }
    now
}

/// Lets the sleeps of this thread end when they should: by default Linux may let them last 50 µs longer.
pub(super) fn sharpen_sleep() {
    // Without it waits are spent as they are; no job fails for that.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::native::start_line::Wave;
    use crate::workload::{JobFile, Workload};

    const ORIGIN: u64 = 5_000_000_000;

    /// A schedule for options that are not parsed yet where these tests begin.
    fn schedule(rw: &str, limits: [Option<RateLimit>; 3], process: RateProcess) -> Schedule {
        let text = format!("[a]\nrw={rw}\nbs=4k\nsize=1m\n");
        let file = JobFile::parse(&text, "test.fio", std::path::Path::new(".")).unwrap();
        let mut job = Workload::resolve(&file).unwrap().jobs.remove(0);
        job.rate.limits = limits;
        job.rate.process = process;
        Schedule::new(&job, ORIGIN, 42).unwrap()
    }

    #[test]
    fn a_schedule_that_begins_anew_has_no_backlog() {
        let limits = [Some(RateLimit::IosPerSecond(1000)), None, None];
        let mut behind = schedule("randread", limits, RateProcess::Linear);
        for _ in 0..100 {
            behind.next_due(DataDirection::Read, 4096);
        }
        behind.restart(2 * ORIGIN);
        let due: Vec<u64> = (0..3).map(|_| behind.next_due(DataDirection::Read, 4096) - 2 * ORIGIN).collect();
        assert_eq!(due, [0, 1_000_000, 2_000_000]);
    }

    /// Due times of `count` reads of `bytes` each, after the origin.
    fn due_times(schedule: &mut Schedule, count: usize, bytes: u64) -> Vec<u64> {
        (0..count).map(|_| schedule.next_due(DataDirection::Read, bytes) - ORIGIN).collect()
    }

    #[test]
    fn linear_is_start_plus_n_gaps_and_no_rounding_adds_up() {
        let three = Some(RateLimit::IosPerSecond(3));
        let mut schedule = schedule("read", [three, None, None], RateProcess::Linear);
        let due = due_times(&mut schedule, 3001, 4096);
        assert_eq!(due[..4], [0, 333_333_333, 666_666_666, 1_000_000_000]);
        assert_eq!(due[3000], 1_000_000_000_000);
    }

    #[test]
    fn rate_is_bytes_whatever_the_block() {
        let rate = Some(RateLimit::BytesPerSecond(1 << 20));
        let mut schedule = schedule("read", [rate, None, None], RateProcess::Linear);
        assert_eq!(due_times(&mut schedule, 2, 262_144), [0, 250_000_000]);
        assert_eq!(schedule.following_ns(ORIGIN + 250_000_000), Some(ORIGIN + 500_000_000));
        assert_eq!(schedule.following_ns(ORIGIN + 500_000_000), None);
        assert_eq!(due_times(&mut schedule, 2, 1 << 20), [500_000_000, 1_500_000_000]);
    }

    #[test]
    fn poisson_has_the_mean_and_the_spread_of_its_law_and_repeats() {
        let rate = Some(RateLimit::IosPerSecond(1000));
        let limits = [rate, None, None];
        let due = due_times(&mut schedule("read", limits, RateProcess::Poisson), 20_001, 4096);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard error of the mean 0.7 %, of the deviation (kurtosis 9) 1 %; four of them.
        assert!((mean - 1.0).abs() < 0.03, "{mean} ms");
        assert!((variance.sqrt() - 1.0).abs() < 0.04, "{} ms", variance.sqrt());
        let longer_than_three = gaps.iter().filter(|gap| **gap > 3.0).count() as f64 / gaps.len() as f64;
        assert!((longer_than_three - (-3.0_f64).exp()).abs() < 0.007, "{longer_than_three}");
        assert_eq!(due, due_times(&mut schedule("read", limits, RateProcess::Poisson), 20_001, 4096));
    }

    #[test]
    fn each_direction_keeps_its_own_rate() {
        let limits = [Some(RateLimit::IosPerSecond(100)), Some(RateLimit::IosPerSecond(300)), None];
        let mut schedule = schedule("rw", limits, RateProcess::Linear);
        let mut toggle = false;
        let (mut now, mut counts) = (ORIGIN, [0_u64; 3]);
        loop {
            toggle = !toggle;
            let drawn = if toggle { DataDirection::Read } else { DataDirection::Write };
            let direction = schedule.choose(drawn, now);
            let due = schedule.next_due(direction, 4096);
            if due > ORIGIN + 999_999_999 {
                break;
            }
            assert!(due >= now, "an I/O had to wait for the other direction");
            now = due;
            counts[direction as usize] += 1;
        }
        assert_eq!(counts, [100, 300, 0]);
    }

    #[test]
    fn an_unlimited_direction_goes_while_the_other_waits() {
        let limits = [None, Some(RateLimit::IosPerSecond(10)), None];
        let mut schedule = schedule("rw", limits, RateProcess::Linear);
        assert_eq!(schedule.choose(DataDirection::Write, ORIGIN), DataDirection::Write);
        assert_eq!(schedule.next_due(DataDirection::Write, 4096), ORIGIN);
        assert_eq!(schedule.choose(DataDirection::Write, ORIGIN + 1), DataDirection::Read);
        assert_eq!(schedule.next_due(DataDirection::Read, 4096), WHENEVER);
        assert_eq!(schedule.choose(DataDirection::Write, ORIGIN + 100_000_000), DataDirection::Write);
    }

    #[test]
    fn waits_end_in_time_and_when_told_to() {
        let (wave, clock) = (Wave::new(1, 1).unwrap(), Clock::new());
        let line = wave.line(0);
        for wait_ns in [1_000, 100_000, 2_000_000] {
            let until = clock.now_ns() + wait_ns;
            let ended = sleep_until(&clock, &line, until);
            assert!(ended >= until && ended < until + 10_000_000_000, "{}", ended - until);
        }
        wave.stop_all();
        let until = clock.now_ns() + 60_000_000_000;
        assert!(sleep_until(&clock, &line, until) < until);
    }

    #[test]
    fn a_long_wait_is_busy_at_its_end_only() {
        assert_eq!(slice(100_000, 50_000), None);
        assert_eq!(slice(1_000_000, 0), Some(Duration::from_nanos(1_000_000 - BUSY_NS)));
        let (until, mut now, mut slices) = (100_000_000, 0, 0);
        while let Some(sleep) = slice(until, now) {
            assert!(sleep <= SLICE);
            // Woken late each time.
            now += sleep.as_nanos() as u64 + 30_000;
            slices += 1;
        }
        assert!(until - now <= BUSY_NS, "{now}");
        assert_eq!(slices, 13);
        assert!(is_long(8_100_000, 0) && !is_long(8_060_000, 0));
    }
}
