//! How far a build is, and how long one takes: by the objects of the last one, which are as many again. Where there was none, a whole
//! kernel's are estimated from its configuration, and those of modules are at most as many as their sources.
//!
//! Enters: counts of objects. Leaves: a [`Step`] with the time still to come; what was seen is kept in the cache.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::room;
use super::size::Size;
use crate::sys::{cache, regular_file};

/// Seconds of a whole small kernel on one processor, where nothing is known.
const WHOLE_CPU_S: f64 = 1000.0;
/// Of a few modules: some 30 objects of f2fs, 110 of xfs.
const MODULES_CPU_S: f64 = 100.0;
/// What a kernel takes whose room has all objects but those of a patch, and the same of modules.
const SHARED_S: f64 = 30.0;
const SHARED_MODULES_S: f64 = 10.0;

/// Seconds of compiling that say how long the rest takes.
const ENOUGH_S: f64 = 1.0;
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
    /// It can be fewer objects, and sooner.
    pub is_limit: bool,
}

/// A whole kernel, by the room that it is built in and about how much that is.
pub(super) struct Whole {
    pub(super) room: String,
    pub(super) size: Size,
}

/// Follows one build.
pub(super) struct Meter {
    what: String,
    begun: Instant,
    /// The first object: what comes before it is no measure of what comes behind.
    compiling: Cell<Option<Instant>>,
    /// Objects of the programs that have ended, and of the one that runs: each counts its own.
    objects: Cell<(u64, u64)>,
    expected: Cell<u64>,
    is_limit: Cell<bool>,
    /// The room had no objects when it began.
    from_nothing: bool,
    /// Directories of sources that are not counted yet: they are laid out after the build was begun.
    directories: Cell<Vec<PathBuf>>,
}

impl Meter {
    pub(super) fn new(what: String, whole: Option<&Whole>) -> Meter {
        let lacks = whole.map(missing);
        Meter {
            what,
            begun: Instant::now(),
            compiling: Cell::new(None),
            objects: Cell::new((0, 0)),
            expected: Cell::new(lacks.as_ref().map_or(0, |lacks| lacks.objects)),
            is_limit: Cell::new(false),
            from_nothing: lacks.is_some_and(|lacks| lacks.all),
            directories: Cell::new(Vec::new()),
        }
    }

    /// Sources below these directories become an object each, those that the configuration leaves out excepted. Where some have one already,
    /// nobody knows how many more there will be.
    pub(super) fn compiles(&self, directories: Vec<PathBuf>) {
        let is_new = directories.iter().map(|directory| count(directory, &["o"])).sum::<u64>() == 0;
        self.directories.set(if is_new { directories } else { Vec::new() });
    }

    /// Objects that the program which runs has made so far.
    pub(super) fn step(&self, objects: u64) -> Step<'_> {
        let (mut ended, last) = self.objects.get();
        if objects < last {
            ended += last;
        }
        self.objects.set((ended, objects));
        let objects = ended + objects;
        if objects > 0 {
            let directories = self.directories.take();
            if !directories.is_empty() {
                let sources = directories.iter().map(|directory| count(directory, &["c", "S"]));
                self.expected.set(sources.sum());
                self.is_limit.set(true);
            }
            if self.compiling.get().is_none() {
                self.compiling.set(Some(Instant::now()));
            }
        }
        // More than were expected: nobody knows how many.
        let of = Some(self.expected.get()).filter(|expected| *expected > objects).unwrap_or(0);
        let took_s = self.compiling.get().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        let is_enough = objects > of / 50 && took_s >= ENOUGH_S;
        let left_s = (of > 0 && is_enough).then(|| took_s * (of - objects) as f64 / objects as f64);
        Step { what: &self.what, objects, of, left_s, is_limit: self.is_limit.get() }
    }

    /// Keeps what it took, if it made all objects: what went on with another build says nothing of the next one from nothing.
    pub(super) fn finished(&self, whole: Option<&Whole>) {
        if let Some(whole) = whole.filter(|_| self.from_nothing) {
            let (ended, last) = self.objects.get();
            remember(&whole.room, ended + last, self.begun.elapsed());
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

fn missing(whole: &Whole) -> Lacks {
    let (objects, seconds) = from_nothing(whole);
    let there = room::objects(&whole.room);
    let left = 1.0 - there as f64 / objects as f64;
    let left = if left <= 1.0 - COMPLETE { 0.0 } else { left };
    Lacks { objects: (objects as f64 * left) as u64, seconds: seconds * left, all: there == 0 }
}

/// Objects and seconds of a kernel from nothing.
fn from_nothing(whole: &Whole) -> (u64, f64) {
    known(&whole.room).unwrap_or_else(|| {
        let times = whole.size.objects as f64 / Size::SMALL.objects as f64;
        (whole.size.objects, WHOLE_CPU_S * times / processors())
    })
}

/// The share of a kernel's objects that a room lacks.
pub(super) fn lacking(whole: &Whole) -> f64 {
    missing(whole).objects as f64 / from_nothing(whole).0.max(1) as f64
}

/// Files below a directory whose names end so.
fn count(directory: &Path, kinds: &[&str]) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => count(&entry.path(), kinds),
        Ok(_) => {
            let path = entry.path();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            u64::from(kinds.contains(&kind))
        }
        Err(_) => 0,
    };
    entries.map(of).sum()
}

fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// Seconds that a build will take; `shared`: after another one in the same room.
pub(super) fn expected_s(whole: Option<&Whole>, shared: bool) -> f64 {
    match whole {
        None if shared => SHARED_MODULES_S,
        None => MODULES_CPU_S / processors(),
        Some(_) if shared => SHARED_S,
        Some(whole) => missing(whole).seconds.max(SHARED_S),
    }
}

/// Seconds that a build takes at most in a room that has another revision's objects.
pub(super) fn at_most_s(whole: Option<&Whole>) -> f64 {
    whole.map_or(MODULES_CPU_S / processors(), |whole| from_nothing(whole).1)
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
pub(super) fn remember(room: &str, objects: u64, took: Duration) {
    if objects <= 100 || known(room).is_some_and(|(before, _)| objects <= before / 2) {
        return;
    }
    let _ = cache::directory("build-times")
        .map(|place| std::fs::write(place.join(room), format!("{objects} {:.0}\n", took.as_secs_f64())));
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    /// A room with this many objects, of a kernel that had 200 and took 400 s.
    fn room(objects: u64) -> Whole {
        remember("room", 200, Duration::from_secs(400));
        let place = cache::directory("rooms").unwrap().join("room").join(room::OBJECTS);
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("fs")).unwrap();
        for at in 0..objects {
            std::fs::write(place.join(format!("fs/{at}.o")), "").unwrap();
        }
        std::fs::write(place.join("fs/file.c"), "").unwrap();
        left_as("whole\n");
        Whole { room: "room".to_owned(), size: Size::SMALL }
    }

    fn left_as(state: &str) {
        std::fs::write(cache::place("rooms").unwrap().join("room/state"), state).unwrap();
    }

    #[test]
    fn a_build_that_was_ended_goes_on_with_what_it_lacks() {
        fake::alone(module_path!(), "a_build_that_was_ended_goes_on_with_what_it_lacks", |_| {
            for (there, objects, seconds) in [(0, 200, 400.0), (50, 150, 300.0), (190, 0, SHARED_S)] {
                let whole = room(there);
                assert_eq!(expected_s(Some(&whole), false), seconds, "{there} objects");
                let meter = Meter::new("building".to_owned(), Some(&whole));
                assert_eq!(meter.step(40).of, objects, "{there} objects");
                meter.compiling.set(Instant::now().checked_sub(Duration::from_secs(10)));
                assert_eq!(meter.step(40).left_s.is_some(), objects > 0, "{there} objects");
            }
            let whole = room(50);
            left_as("in use\n");
            assert_eq!(expected_s(Some(&whole), false), 400.0, "a room in which assay was killed is emptied");
        });
    }

    #[test]
    fn only_a_build_from_nothing_says_how_long_one_takes() {
        fake::alone(module_path!(), "only_a_build_from_nothing_says_how_long_one_takes", |_| {
            for (there, known_after) in [(50, 200), (0, 300)] {
                let whole = room(there);
                let meter = Meter::new("building".to_owned(), Some(&whole));
                meter.step(300);
                meter.finished(Some(&whole));
                assert_eq!(known(&whole.room).unwrap().0, known_after, "{there} objects");
            }
        });
    }

    #[test]
    fn a_larger_configuration_takes_as_much_longer() {
        fake::alone(module_path!(), "a_larger_configuration_takes_as_much_longer", |_| {
            let of = |size: Size| from_nothing(&Whole { room: "other".to_owned(), size }).1;
            let larger = Size { objects: Size::SMALL.objects * 10, ..Size::SMALL };
            assert!((of(larger) / of(Size::SMALL) - 10.0).abs() < 1e-9);
        });
    }

    #[test]
    fn the_objects_of_all_programs_are_added_up() {
        let meter = Meter::new("building".to_owned(), None);
        let objects = [0, 3, 7, 0, 2, 0].map(|objects| meter.step(objects).objects);
        assert_eq!(objects, [0, 3, 7, 7, 9, 9]);
    }

    #[test]
    fn modules_are_at_most_as_many_objects_as_they_have_sources() {
        let place = tempfile::tempdir().unwrap();
        let put = |name: &str| std::fs::write(place.path().join(name), "").unwrap();
        let meter = || {
            let meter = Meter::new("building".to_owned(), None);
            meter.compiles(vec![place.path().to_owned()]);
            meter
        };
        std::fs::create_dir(place.path().join("below")).unwrap();
        let first = meter();
        // As they are laid out after the build was begun.
        ["a.c", "b.c", "below/c.c", "d.S", "x.h", "Makefile"].into_iter().for_each(put);
        assert_eq!(first.step(0).of, 0);
        assert!(first.step(1).of == 4 && first.step(1).is_limit);
        put("a.o");
        assert!(first.step(3).of == 4 && first.step(4).of == 0 && first.step(5).of == 0);
        // What a patch changes of objects that are there, nobody counts.
        let again = meter();
        assert!(again.step(1).of == 0 && again.step(1).left_s.is_none());
    }
}
