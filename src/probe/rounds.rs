//! The order of the probes: rounds in which each has a slice of time.
//!
//! Enters: settings. Leaves: an [`Outcome`]. A probe that fails is left out with what the kernel said; the others go on.

use std::time::{Duration, Instant};

use super::{Group, LeftOut, Measured, Outcome, Probe, ProbeError, Settings, calls, copies, device, locks};

/// A slice is neither shorter, or starting threads would be what is measured, nor longer, which would tell nothing more.
const SLICES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(250)];

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Slices that have ended.
    pub done: usize,
    /// Slices in all.
    pub of: usize,
    /// What is measured next.
    pub next: &'a str,
    /// What is still to come, as far as can be said.
    pub left: Duration,
}

/// Measures everything that is asked for.
///
/// # Errors
/// [`ProbeError::Place`]: nothing was measured.
pub fn measure(settings: &Settings, told: &mut dyn FnMut(&Progress<'_>)) -> Result<Outcome, ProbeError> {
    let begun = Instant::now();
    let mut left_out = Vec::new();
    let probes = probes(settings, &mut left_out)?;
    let mut all: Vec<Taken> =
        probes.into_iter().map(|probe| Taken { probe, values: Vec::new(), failed: None }).collect();
    let left = settings.time.saturating_sub(begun.elapsed());
    let slice = slice(left, settings.rounds, all.len());
    let (mut rounds, mut longest) = (0, Duration::ZERO);
    while rounds < settings.rounds {
        let round = Instant::now();
        // To and fro, so that no probe always follows the same one.
        let there: Vec<usize> = (0..all.len()).collect();
        let order: Vec<usize> = if rounds % 2 == 0 { there } else { there.into_iter().rev().collect() };
        for (place, at) in order.into_iter().enumerate() {
            let (done, of) = (rounds as usize * all.len() + place, settings.rounds as usize * all.len());
            told(&Progress {
                done,
                of,
                next: &all[at].name(),
                left: expected(begun.elapsed(), done, of, slice),
            });
            all[at].take(slice);
        }
        rounds += 1;
        longest = longest.max(round.elapsed());
        // A slow device takes longer than its slices.
        if begun.elapsed() + longest > settings.longest {
            break;
        }
    }
    let mut measured = Vec::new();
    for mut taken in all {
        match taken.failed.take() {
            Some(why) => left_out.push(LeftOut { what: taken.name(), why }),
            None => {
                let Probe { group, name, unit, .. } = taken.probe;
                measured.push(Measured { group, name, unit, values: taken.values });
            }
        }
    }
    Ok(Outcome { measured, left_out, rounds })
}

/// A probe with what it gave so far.
struct Taken {
    probe: Probe,
    values: Vec<f64>,
    failed: Option<String>,
}

impl Taken {
    fn name(&self) -> String {
        format!("{} {}", self.probe.group.name(), self.probe.name)
    }

    fn take(&mut self, slice: Duration) {
        if self.failed.is_some() {
            return;
        }
        match (self.probe.sample)(slice) {
            Ok(value) if value.is_finite() && value > 0.0 => self.values.push(value),
            Ok(_) => self.failed = Some("nothing was done in its time".to_owned()),
            Err(error) => self.failed = Some(error.to_string()),
        }
    }
}

fn probes(settings: &Settings, left_out: &mut Vec<LeftOut>) -> Result<Vec<Probe>, ProbeError> {
    let mut all = Vec::new();
    let wants = |group: Group| settings.groups.contains(&group);
    // The place first: where it is wrong, nothing else is begun.
    let device = match wants(Group::Device) {
        true => device::probes(&settings.directory, settings.no_direct.as_deref(), left_out)
            .map_err(|source| ProbeError::Place { directory: settings.directory.clone(), source })?,
        false => Vec::new(),
    };
    if wants(Group::Copies) {
        match copies::probes(left_out) {
            Ok(probes) => all.extend(probes),
            Err(error) => left_out.push(LeftOut { what: "copies".to_owned(), why: error.to_string() }),
        }
    }
    if wants(Group::Locks) {
        all.extend(locks::probes());
    }
    if wants(Group::Calls) {
        all.extend(calls::probes(left_out));
    }
    all.extend(device);
    Ok(all)
}

/// What a probe has in a round.
fn slice(time: Duration, rounds: u32, probes: usize) -> Duration {
    let slices = rounds.max(1).saturating_mul(probes.max(1) as u32);
    (time / slices).clamp(SLICES[0], SLICES[1])
}

/// What is left after `done` of `of` slices, by what they took; before the first by what they should take.
fn expected(elapsed: Duration, done: usize, of: usize, slice: Duration) -> Duration {
    let left = of.saturating_sub(done) as f64;
    match done {
        0 => slice.mul_f64(left),
        done => elapsed.mul_f64(left / done as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_shared_out_within_limits() {
        assert_eq!(slice(Duration::from_secs(45), 9, 50), Duration::from_millis(100));
        assert_eq!(slice(Duration::from_secs(45), 9, 1), SLICES[1]);
        assert_eq!(slice(Duration::ZERO, 9, 50), SLICES[0]);
        assert_eq!(slice(Duration::from_secs(1), 0, 0), SLICES[1]);
    }

    #[test]
    fn what_is_left_follows_what_slices_took() {
        let (slice, elapsed) = (Duration::from_millis(100), Duration::from_secs(4));
        assert_eq!(expected(Duration::ZERO, 0, 50, slice), Duration::from_secs(5));
        assert_eq!(expected(elapsed, 20, 50, slice), Duration::from_secs(6));
        assert_eq!(expected(elapsed, 50, 50, slice), Duration::ZERO);
    }

    #[test]
    fn a_round_measures_everything_once_and_says_how_far_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings {
            groups: vec![Group::Calls, Group::Device],
            directory: directory.path().to_owned(),
            no_direct: Some("it is not asked for".to_owned()),
            rounds: 3,
            time: Duration::from_millis(10),
            longest: Duration::from_secs(600),
        };
        let mut seen = Vec::new();
        let outcome = measure(&settings, &mut |progress| seen.push((progress.done, progress.of))).unwrap();
        assert_eq!(outcome.rounds, 3);
        assert!(outcome.measured.iter().all(|measured| measured.values.len() == 3), "{outcome:?}");
        let probes = outcome.measured.len();
        assert_eq!(seen, (0..3 * probes).map(|done| (done, 3 * probes)).collect::<Vec<_>>());
        let names: Vec<&str> = outcome.measured.iter().map(|measured| &*measured.name).collect();
        assert!(names.starts_with(&["system_call", "context_switch", "page_fault"]), "{names:?}");
        assert_eq!(names.last(), Some(&"fsync.one_page"));
        // No time left: one round is made all the same.
        let hurried = Settings { longest: Duration::ZERO, ..settings.clone() };
        assert_eq!(measure(&hurried, &mut |_| {}).unwrap().rounds, 1);
        let wrong = Settings { directory: directory.path().join("missing"), ..settings };
        let error = measure(&wrong, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("missing") && error.contains("No such file"), "{error}");
    }
}
