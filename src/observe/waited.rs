//! Waits added up: how many, how long, and where most of the time went.
//!
//! Enters: single waits. Leaves: samples in the names that all observers of waits share. It must not know what was waited for.

use crate::record::{Sample, Unit};

/// Places that are named.
const MOST_PLACES: usize = 16;
/// A place is named where at least this share of all waiting was: a place that is not named counts as 0 beside an arm that names it.
const LEAST_SHARE: f64 = 0.01;

/// Waits of one kind or at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waited {
    /// How many.
    pub(super) count: u64,
    /// How long, added up.
    pub(super) sum_ns: u64,
    /// The longest.
    pub(super) longest_ns: u64,
}

impl Waited {
    /// One wait.
    pub(super) fn once(ns: u64) -> Waited {
        Waited { count: 1, sum_ns: ns, longest_ns: ns }
    }

    /// Adds others.
    pub(super) fn add(&mut self, other: Waited) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }

    /// The sum of several.
    pub(super) fn sum<'w>(all: impl IntoIterator<Item = &'w Waited>) -> Waited {
        all.into_iter().fold(Waited::default(), |mut sum, waited| {
            sum.add(*waited);
            sum
        })
    }
}

/// A time of the whole trial.
pub(super) fn seconds(name: &str, ns: u64) -> Sample {
    Sample::new("", name, Unit::Seconds, ns as f64 / 1e9)
}

/// A count of the whole trial.
pub(super) fn count(name: &str, count: u64) -> Sample {
    Sample::new("", name, Unit::Count, count as f64)
}

/// `OBSERVER.at.PLACE` (s), `OBSERVER.waits_at.PLACE` and `OBSERVER.longest_at.PLACE` of the places where most of the time went; `places`
/// have the longest sum first.
pub(super) fn of_places(observer: &str, places: &[(String, Waited)], all: Waited) -> Vec<Sample> {
    let matters =
        |waited: &Waited| waited.sum_ns > 0 && waited.sum_ns as f64 >= LEAST_SHARE * all.sum_ns as f64;
    let named = places.iter().filter(|(_, waited)| matters(waited)).take(MOST_PLACES);
    let samples = |(place, waited): &(String, Waited)| {
        [
            seconds(&format!("{observer}.at.{place}"), waited.sum_ns),
            count(&format!("{observer}.waits_at.{place}"), waited.count),
            seconds(&format!("{observer}.longest_at.{place}"), waited.longest_ns),
        ]
    };
    named.flat_map(samples).collect()
}

/// Sorts places so that the longest sum comes first.
pub(super) fn rank(places: &mut [(String, Waited)]) {
    places.sort_by(|a, b| (b.1.sum_ns, &a.0).cmp(&(a.1.sum_ns, &b.0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_with_a_hundredth_of_the_time_are_named_up_to_sixteen() {
        let mut places: Vec<(String, Waited)> =
            [("a", 10), ("b", 40), ("c", 4), ("d", 20), ("e", 15), ("f", 11)]
                .map(|(place, ns)| (place.to_owned(), Waited::once(ns)))
                .to_vec();
        rank(&mut places);
        let all = Waited::sum(places.iter().map(|(_, waited)| waited));
        assert_eq!(all, Waited { count: 6, sum_ns: 100, longest_ns: 40 });
        let names: Vec<String> = of_places("x", &places, all).into_iter().map(|s| s.metric.name).collect();
        assert_eq!(names.len(), 18);
        assert_eq!(names[..3], ["x.at.b", "x.waits_at.b", "x.longest_at.b"]);
        let mut many: Vec<(String, Waited)> = (0..40_u64)
            .map(|at| (format!("p{at:02}"), Waited::once(if at < 30 { 100 } else { 1 })))
            .collect();
        rank(&mut many);
        let all = Waited::sum(many.iter().map(|(_, waited)| waited));
        assert_eq!(of_places("x", &many, all).len(), 3 * 16);
        let small =
            of_places("x", &many[25..], all).into_iter().filter(|s| s.metric.name.starts_with("x.at."));
        assert_eq!(small.count(), 5, "the others have less than a hundredth");
        assert_eq!(of_places("x", &[("a".to_owned(), Waited::default())], Waited::default()), []);
    }
}
