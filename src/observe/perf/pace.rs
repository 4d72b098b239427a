//! Which of two clocks samples a load: one for each of its threads, or one of the whole machine.
//!
//! Enters: what is watched, and how often the threads of the load leave their processors. Leaves: when an event is watched, and the moment at
//! which the clock of the machine takes over. A clock of a thread is started and stopped at each switch, which costs direct writes to a fast
//! device much of their speed. A clock of the machine wakes idle processors, too, which a load that never sleeps pays for.

use std::time::Instant;

use perf_event::events::Software;
use perf_event::{Builder, Counter};
use rustix::io::Errno;

use super::{Watched, errno_of};

/// When an event is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// All the time.
    Always,
    /// Until the clock of the machine takes over.
    First,
    /// From then on.
    Second,
}

impl Turn {
    /// That of one of those that are watched.
    pub(super) fn of(what: Watched, watched: &[Watched]) -> Turn {
        let has_clock = |wanted: bool| {
            watched
                .iter()
                .any(|what| matches!(what, Watched::Clock { of_machine, .. } if *of_machine == wanted))
        };
        match what {
            Watched::Clock { of_machine: false, .. } if has_clock(true) => Turn::First,
            Watched::Clock { of_machine: true, .. } if has_clock(false) => Turn::Second,
            _ => Turn::Always,
        }
    }
}

/// How often the threads of the load leave their processors.
pub(super) struct Pace {
    switches: Counter,
    looked: (Instant, u64),
}

impl Pace {
    /// So many switches a second cost about what the clock of the machine does.
    const FAST: f64 = 2000.0;

    /// That of this thread and of all that it starts.
    pub(super) fn counted() -> Result<Pace, Errno> {
        let mut builder = Builder::new(Software::CONTEXT_SWITCHES);
        builder.observe_self().any_cpu().inherit(true).include_kernel();
        let mut switches = builder.build().map_err(|error| errno_of(&error))?;
        switches.enable().map_err(|error| errno_of(&error))?;
        Ok(Pace { switches, looked: (Instant::now(), 0) })
    }

    /// Whether they did since the last look so often that the clock of the machine costs less.
    pub(super) fn is_fast(&mut self) -> bool {
        let (now, switches) = (Instant::now(), self.switches.read().unwrap_or(0));
        let (then, before) = std::mem::replace(&mut self.looked, (now, switches));
        switches.saturating_sub(before) as f64 > Pace::FAST * now.duration_since(then).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_the_machine_takes_over_only_beside_another() {
        let clock = |of_machine| Watched::Clock { of_machine, hertz: 1, kernel: true, user_stacks: false };
        let both = [clock(false), clock(true), Watched::Starts];
        assert_eq!(both.map(|what| Turn::of(what, &both)), [Turn::First, Turn::Second, Turn::Always]);
        assert_eq!(Turn::of(clock(false), &both[..1]), Turn::Always);
    }
}
