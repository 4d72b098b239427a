//! Sleep at one place of the kernel that is neither a flush nor a commit nor a lock that was watched.
//!
//! Needs: `--observe waits`. Concludes: the time that workers sleep in that function, a part of the sleep, or of waiting for storage where
//! that is counted. Silent about places at which half of the sleep or more is for a watched lock whose waiters only sleep, and where the sleep differs by less than
//! what matters.

use super::super::cause::{Cause, What};
use super::super::names::{LOCKS_WATCHED, Place, WAITS_AT, is_mutex, place};
use super::super::pair::Pair;
use super::rule::{Rule, add_waker};
use super::storage_wait::{is_told_by_a_lock, part_here};

pub(super) const RULE: Rule = Rule { name: "sleep_place", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let Some(watched) = &pair.watched else { return Vec::new() };
    let locks_watched = watched.source.rounds_with(&[LOCKS_WATCHED]) > 0;
    let mut causes = pair.places(RULE.name, WAITS_AT, |function| {
        let told = match place(function) {
            Place::Flush | Place::Commit => true,
            Place::Lock => locks_watched && !is_mutex(function),
            Place::Other => is_told_by_a_lock(pair, function),
        };
        let what = What::Sleep { at: function.to_owned() };
        (!told).then(|| (what, Some(part_here(pair, function))))
    });
    causes.iter_mut().for_each(|cause| add_waker(pair, cause));
    causes
}

#[cfg(test)]
mod tests {
    use super::super::super::made_pair::{found, ns};

    const WATCHED: (&str, f64, f64) = ("waits.lost", 0.0, 0.0);

    #[test]
    fn the_place_of_the_sleep_is_named() {
        let causes = found(&[WATCHED, ("waits.at.__iomap_dio_rw", 0.0, 0.7)], "sleep_place");
        assert_eq!((causes.len(), (ns(&causes[0]) + 50) / 100), (1, 70), "{causes:?}");
    }

    #[test]
    fn who_ended_most_of_the_sleep_is_named_beside_it() {
        let of = |waker: &str| format!("waits.woken_at.__iomap_dio_rw.{waker}");
        let (most, few) = (of("interrupt"), of("kworker"));
        let woken = [(&*most, 0.0, 0.6), (&*few, 0.0, 0.1)];
        let sleep = ("waits.at.__iomap_dio_rw", 0.0, 0.7);
        let causes = found(&[WATCHED, sleep, woken[0], woken[1]], "sleep_place");
        let shown: Vec<&str> = causes[0].evidence.iter().map(|shown| &*shown.metric).collect();
        assert_eq!(shown[1..], ["ended by interrupt, an operation"]);
        let unseen = (&*of("unseen"), 0.0, 0.65);
        let causes = found(&[WATCHED, sleep, woken[1], unseen], "sleep_place");
        assert_eq!(causes[0].evidence.len(), 1, "most of it was ended by nobody who was seen");
        let less = [(&*most, 0.6, 0.1)];
        let causes = found(&[WATCHED, sleep, less[0]], "sleep_place");
        assert_eq!(causes[0].evidence.len(), 1, "it moves the other way");
    }

    #[test]
    fn a_lock_that_has_little_of_a_sleep_does_not_hide_it() {
        let of = |locked: f64| {
            let lock = ("locks.at.rwsem_W.f", 0.0, locked);
            let seen = [WATCHED, ("locks.lost", 0.0, 0.0), lock, ("waits.at.f", 0.0, 0.7)];
            let part = |rule: &str| found(&seen, rule).first().map(|cause| cause.part.is_some());
            (part("sleep_place"), part("lock_wait"))
        };
        assert_eq!(of(0.5), (None, Some(true)));
        assert_eq!(of(0.1), (Some(true), Some(false)), "the lock's time is in the sleep");
    }

    #[test]
    fn a_watched_lock_is_not_counted_twice() {
        let lock = ("locks.at.rwsem_W.ext4_buffered_write_iter", 0.0, 0.7);
        let sleep = ("waits.at.ext4_buffered_write_iter", 0.0, 0.7);
        let way_in = ("waits.at.down_write", 0.0, 0.5);
        let both = [WATCHED, ("locks.lost", 0.0, 0.0), lock, sleep, way_in];
        assert_eq!(found(&both, "sleep_place"), []);
        assert_eq!(found(&[WATCHED, sleep, way_in], "sleep_place").len(), 2, "nobody watched locks");
        let mutex = [("locks.at.mutex.f", 0.0, 0.7), ("waits.at.__mutex_lock", 0.0, 0.5)];
        let causes = found(&[WATCHED, ("locks.lost", 0.0, 0.0), mutex[0], mutex[1]], "sleep_place");
        assert_eq!(causes.len(), 1, "who waits for a mutex may have spun: {causes:?}");
    }
}
