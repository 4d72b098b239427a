//! The clock of every latency: the processor's time stamp counter where the kernel itself trusts it, else the
//! vDSO's `CLOCK_MONOTONIC`. Neither is a system call.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How long the counter is compared with `CLOCK_MONOTONIC` before a trial; ±20 ns of it are 1 part in 10^5.
const CALIBRATION: Duration = Duration::from_millis(3);
/// Fixed point of nanoseconds a tick.
const SHIFT: u32 = 32;

/// Nanoseconds of `CLOCK_MONOTONIC`; copies made before a fork agree in all processes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// ticks × multiplier >> 32 nanoseconds after a common origin.
    Tsc { origin_ticks: u64, origin_ns: u64, multiplier: u64 },
    /// clock_gettime.
    Vdso,
}

/// Both clocks at one moment, to be compared with a later one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    ticks: u64,
    ns: u64,
    taken: Instant,
}

impl Reading {
    /// Reads both now.
    pub(super) fn now() -> Reading {
        let (ticks, ns) = both();
        Reading { ticks, ns, taken: Instant::now() }
    }
}

impl Clock {
    /// The fastest clock that can be trusted here; takes as long as the calibration.
    #[cfg(test)]
    pub(super) fn new() -> Clock {
        Clock::since(Reading::now())
    }

    /// The same; an earlier reading saves the time that has passed since.
    pub(super) fn since(before: Reading) -> Clock {
        if counter_is_trusted() { Clock::calibrated(before) } else { Clock::Vdso }
    }

    fn calibrated(before: Reading) -> Clock {
        while before.taken.elapsed() < CALIBRATION {
            std::hint::spin_loop();
        }
        let (ticks_before, ns_before) = (before.ticks, before.ns);
        let (ticks_after, ns_after) = both();
        let (ticks, ns) = (ticks_after.saturating_sub(ticks_before), ns_after - ns_before);
        if ticks == 0 {
            return Clock::Vdso;
        }
        let multiplier = ((u128::from(ns) << SHIFT) / u128::from(ticks)) as u64;
        // The first pair, not the last: another CPU's counter may be a few ticks behind, but not milliseconds.
        Clock::Tsc { origin_ticks: ticks_before, origin_ns: ns_before, multiplier }
    }

    /// Nanoseconds now.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        match *self {
            Clock::Tsc { origin_ticks, origin_ns, multiplier } => {
                let ticks = counter().wrapping_sub(origin_ticks);
                let ns = (u128::from(ticks) * u128::from(multiplier)) >> SHIFT;
                origin_ns.wrapping_add(ns as u64)
            }
            Clock::Vdso => monotonic_ns(),
        }
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Both clocks at one moment: the pair with the least time between its two readings of the counter.
fn both() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..16 {
        let before = counter();
        let ns = monotonic_ns();
        let width = counter().wrapping_sub(before);
        if width < best.0 {
            best = (width, before.wrapping_add(width / 2), ns);
        }
    }
    (best.1, best.2)
}

/// The kernel checks the counter (same rate in all states, same value on all CPUs) before it makes it its clock.
#[cfg(target_arch = "x86_64")]
fn counter_is_trusted() -> bool {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let kernel_uses_it = std::fs::read_to_string(CURRENT).is_ok_and(|name| name.trim() == "tsc");
    // Leaf 0x8000_0007, EDX bit 8: invariant TSC.
    let invariant = core::arch::x86_64::__cpuid(0x8000_0000).eax >= 0x8000_0007
        && core::arch::x86_64::__cpuid(0x8000_0007).edx & (1 << 8) != 0;
    kernel_uses_it && invariant
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    #[expect(unsafe_code, reason = "the intrinsic is unsafe by signature only")]
    // SAFETY: rdtsc exists on every x86_64 and has no precondition.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_trusted() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_agrees_with_the_kernels() {
        let clock = Clock::new();
        for _ in 0..3 {
            let before = monotonic_ns();
            let now = clock.now_ns();
            let after = monotonic_ns();
            assert!(now + 100_000 >= before && now <= after + 100_000, "{before} {now} {after} {clock:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn it_never_runs_backwards_on_one_thread() {
        let clock = Clock::new();
        let mut last = clock.now_ns();
        for _ in 0..100_000 {
            let now = clock.now_ns();
            assert!(now >= last || last - now < 1000, "{last} {now}");
            last = last.max(now);
        }
    }
}
