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

/// A room with this share of a kernel's objects has all of them, but those that the next patch changes.
const COMPLETE: f64 = 0.8;

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
    /// The room had no objects when it began.
    from_nothing: bool,
}

impl Meter {
    pub(super) fn new(what: String, room_key: Option<&str>) -> Meter {
        let lacks = room_key.map(missing);
        let expected = lacks.as_ref().map_or(0, |lacks| lacks.objects);
        let from_nothing = lacks.is_some_and(|lacks| lacks.all);
        Meter { what, begun: Instant::now(), objects: std::cell::Cell::new(0), expected, from_nothing }
    }

    /// Objects made so far.
    pub(super) fn step(&self, objects: u64) -> Step<'_> {
        self.objects.set(objects);
        let known = self.expected > objects && objects > self.expected / 50;
        let left_s = known
            .then(|| self.begun.elapsed().as_secs_f64() * (self.expected - objects) as f64 / objects as f64);
        Step { what: &self.what, objects, of: self.expected, left_s }
    }

    /// Keeps what it took, if it made all objects: what went on with another build says nothing of the next one from nothing.
    pub(super) fn finished(&self, room: Option<&str>) {
        if self.from_nothing {
            remember(room, self.objects.get(), self.begun.elapsed());
        }
    }
}

/// What a room lacks of a whole kernel.
struct Lacks {
    objects: u64,
    seconds: f64,
    /// It has none.
    all: bool,
}

fn missing(room: &str) -> Lacks {
    let (whole, seconds) = known(room).unwrap_or((OBJECTS, WHOLE_CPU_S / processors()));
    let there = room::objects(room);
    let left = 1.0 - there as f64 / whole as f64;
    let left = if left <= 1.0 - COMPLETE { 0.0 } else { left };
    Lacks { objects: (whole as f64 * left) as u64, seconds: seconds * left, all: there == 0 }
}

fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// Seconds that a build will take; `shared`: after another one in the same room.
pub(super) fn expected_s(room_key: Option<&str>, shared: bool) -> f64 {
    match room_key {
        None if shared => SHARED_MODULES_S,
        None => MODULES_CPU_S / processors(),
        Some(_) if shared => SHARED_S,
        Some(key) => missing(key).seconds.max(SHARED_S),
    }
}

/// Seconds of a whole kernel in a room like this, from nothing.
pub(super) fn whole_s(room_key: Option<&str>) -> f64 {
    room_key.and_then(known).map_or(WHOLE_CPU_S / processors(), |(_, seconds)| seconds)
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

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    /// A room with this many objects, of a kernel that had 200 and took 400 s.
    fn room(objects: u64) -> &'static str {
        remember(Some("room"), 200, Duration::from_secs(400));
        let place = cache::directory("rooms").unwrap().join("room").join(room::OBJECTS);
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("fs")).unwrap();
        for at in 0..objects {
            std::fs::write(place.join(format!("fs/{at}.o")), "").unwrap();
        }
        std::fs::write(place.join("fs/file.c"), "").unwrap();
        left_as("whole\n");
        "room"
    }

    fn left_as(state: &str) {
        std::fs::write(cache::place("rooms").unwrap().join("room/state"), state).unwrap();
    }

    #[test]
    fn a_build_that_was_ended_goes_on_with_what_it_lacks() {
        fake::alone(module_path!(), "a_build_that_was_ended_goes_on_with_what_it_lacks", |_| {
            for (there, objects, seconds) in [(0, 200, 400.0), (50, 150, 300.0), (190, 0, SHARED_S)] {
                let key = room(there);
                assert_eq!(expected_s(Some(key), false), seconds, "{there} objects");
                let meter = Meter::new("building".to_owned(), Some(key));
                assert_eq!(meter.step(40).of, objects, "{there} objects");
                assert_eq!(meter.step(40).left_s.is_some(), objects > 0, "{there} objects");
            }
            left_as("in use\n");
            assert_eq!(expected_s(Some("room"), false), 400.0, "a room in which assay was killed is emptied");
        });
    }

    #[test]
    fn only_a_build_from_nothing_says_how_long_one_takes() {
        fake::alone(module_path!(), "only_a_build_from_nothing_says_how_long_one_takes", |_| {
            for (there, known_after) in [(50, 200), (0, 300)] {
                let key = room(there);
                let meter = Meter::new("building".to_owned(), Some(key));
                meter.step(300);
                meter.finished(Some(key));
                assert_eq!(known(key).unwrap().0, known_after, "{there} objects");
            }
        });
    }
}
