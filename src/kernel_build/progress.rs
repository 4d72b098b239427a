//! How far a build is, and how long one takes: by the objects of the last one, which are as many again.
//!
//! Enters: counts of objects. Leaves: a [`Step`] with the time still to come; what was seen is kept in the cache.

use std::time::{Duration, Instant};

use super::room;
use crate::sys::{cache, regular_file};

/// Seconds of a whole small kernel on one processor, where nothing is known.
const WHOLE_CPU_S: f64 = 600.0;
/// Of a few modules: some 30 objects of f2fs, 110 of xfs.
const MODULES_CPU_S: f64 = 100.0;
/// Objects of a small kernel, where nothing is known.
const OBJECTS: u64 = 1500;
/// What a kernel takes whose room has all objects but those of a patch, and the same of modules.
const SHARED_S: f64 = 30.0;
const SHARED_MODULES_S: f64 = 10.0;

/// What is being done.
pub struct Step<'s> {
    /// In words.
    pub what: &'s str,
    /// Objects compiled so far.
    pub objects: u64,
    /// Of how many, as far as that is known; 0: it is not.
    pub of: u64,
    /// Seconds still to come.
    pub left_s: Option<f64>,
}

/// Follows one build.
pub(super) struct Meter {
    what: String,
    begun: Instant,
    objects: std::cell::Cell<u64>,
    expected: u64,
}

impl Meter {
    pub(super) fn new(what: String, room_key: Option<&str>) -> Meter {
        let expected = match room_key {
            Some(key) if room::is_filled(key) => 0,
            Some(key) => known(key).map_or(OBJECTS, |(objects, _)| objects),
            None => 0,
        };
        Meter { what, begun: Instant::now(), objects: std::cell::Cell::new(0), expected }
    }

    /// Objects made so far.
    pub(super) fn step(&self, objects: u64) -> Step<'_> {
        self.objects.set(objects);
        let known = self.expected > objects && objects > self.expected / 50;
        let left_s = known
            .then(|| self.begun.elapsed().as_secs_f64() * (self.expected - objects) as f64 / objects as f64);
        Step { what: &self.what, objects, of: self.expected, left_s }
    }

    pub(super) fn objects(&self) -> u64 {
        self.objects.get()
    }
}

/// Seconds that a build will take; `shared`: after another one in the same room.
pub(super) fn expected_s(room_key: Option<&str>, shared: bool) -> f64 {
    let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
    match room_key {
        None if shared => SHARED_MODULES_S,
        None => MODULES_CPU_S / processors,
        Some(key) if shared || room::is_filled(key) => SHARED_S,
        Some(key) => known(key).map_or(WHOLE_CPU_S / processors, |(_, seconds)| seconds),
    }
}

/// `about 5 minutes`.
pub(super) fn about(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("about {:.0} s", (s / 10.0).ceil() * 10.0),
        s => format!("about {:.0} min", (s / 60.0).ceil()),
    }
}

/// Objects and seconds of the last build from nothing in a room like this.
fn known(room: &str) -> Option<(u64, f64)> {
    let path = cache::place("build-times")?.join(room);
    let text = regular_file::read_text(&path, 64).ok()?;
    let mut words = text.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Keeps what a build from nothing took; one of a few objects says nothing of the next.
pub(super) fn remember(room: Option<&str>, objects: u64, took: Duration) {
    let Some(room) =
        room.filter(|room| known(room).is_none_or(|(before, _)| objects > before / 2) && objects > 100)
    else {
        return;
    };
    let _ = cache::directory("build-times")
        .map(|place| std::fs::write(place.join(room), format!("{objects} {:.0}\n", took.as_secs_f64())));
}
