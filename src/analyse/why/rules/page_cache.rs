//! The page cache takes in one arm what the device gets in the other.
//!
//! Needs: the device's counters and the bytes that were asked for. Concludes: for each byte asked the device moved less than half a byte in
//! the better arm, and at least half a byte and twice as many in the other. Silent where both arms reach the device, or none, where it is
//! the worse arm that the cache serves, where a filesystem compresses, or maps files into memory (DAX), whose bytes no device counts, and where
//! all jobs go past the cache.

use super::super::cause::{Cause, Grade, What};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::{Direction, Unit};

/// A cache serves an arm whose device moves less than this for each byte asked, and less than this share of what it moves for the other: with
/// journal and metadata a device that gets every byte moves more of them for one filesystem than for another.
const SERVED: f64 = 0.5;
/// Less than this for each byte asked is no I/O of the load's own.
const REACHES: f64 = 0.5;

pub(super) const RULE: Rule = Rule { name: "page_cache", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    if pair.has_fact("mount.options", |options| options.split(',').any(moves_bytes_unseen))
        || is_past_the_cache(pair)
    {
        return Vec::new();
    }
    let of = |direction: Direction| {
        let name = direction.name();
        let (device, asked) = (format!("dev.{name}_bytes"), format!("{name}.io_bytes"));
        let called = format!("{device} for each byte asked");
        let found = pair.own.ratio(&[&device], &[&asked], &called, Unit::Count)?;
        let values = [found.baseline, found.candidate];
        let (served, reached) = (values[1 - pair.worse], values[pair.worse]);
        let is_cached = pair.costs(&found) && reached >= REACHES && served < SERVED * reached.min(1.0);
        let arm = pair.arms[1 - pair.worse].to_owned();
        is_cached
            .then(|| Cause::new(RULE.name, Grade::GoesWith, What::PageCache { arm, direction }, vec![found]))
    };
    let done = [Direction::Read, Direction::Write].into_iter().filter(|direction| pair.does(*direction));
    done.filter_map(of).collect()
}

/// A filesystem that compresses writes all of it, as fewer bytes; of a file with DAX the processor copies it.
fn moves_bytes_unseen(option: &str) -> bool {
    option.starts_with("compress") || option == "dax" || option.starts_with("dax=") && option != "dax=never"
}

/// Whether all I/O is direct, where the filesystem takes that as it is meant.
fn is_past_the_cache(pair: &Pair<'_>) -> bool {
    pair.is_direct()
        && pair.has_fact("o_direct", |found| found.starts_with("yes"))
        && !pair.has_fact("o_direct", |found| !found.starts_with("yes"))
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::{Grade, What};
    use super::super::super::made_pair::{explained, found, run_with};
    use crate::record::Direction;

    const ASKED: (&str, f64, f64) = ("write.io_bytes", 4e8, 4e8);

    #[test]
    fn the_arm_that_the_cache_serves_is_named() {
        let causes = found(&[ASKED, ("dev.write_bytes", 4e6, 4e8)], "page_cache");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        let what = What::PageCache { arm: "0".to_owned(), direction: Direction::Write };
        assert_eq!((&cause.what, cause.grade), (&what, Grade::GoesWith));
        assert!((cause.evidence[0].baseline - 0.01).abs() < 1e-9 && cause.time.is_none(), "{cause:?}");
    }

    /// What is found where all trials have this fact.
    fn found_with(direct: bool, fact: (&str, &str)) -> usize {
        let mut run = run_with(&[ASKED, ("dev.write_bytes", 4e6, 4e8)]);
        run.design.direct = direct;
        run.facts[0].set(fact.0, fact.1);
        explained(&run).causes.iter().filter(|cause| cause.rule == "page_cache").count()
    }

    #[test]
    fn dax_is_no_page_cache() {
        for (options, causes) in [
            ("rw,dax=always", 0),
            ("rw,dax", 0),
            ("rw,dax=never", 1),
            ("rw,relatime", 1),
            ("compress=zstd", 0),
        ] {
            assert_eq!(found_with(false, ("mount.options", options)), causes, "{options}");
        }
    }

    #[test]
    fn direct_io_is_none_of_the_caches() {
        let yes = "yes (offset and length: 512 B)";
        assert_eq!(found_with(true, ("o_direct", yes)), 0);
        assert_eq!(found_with(false, ("o_direct", yes)), 1, "an arm may be buffered");
        assert_eq!(found_with(true, ("o_direct", "falls back to the page cache")), 1);
        assert_eq!(found_with(true, ("other", "x")), 1, "nobody knows");
    }

    #[test]
    fn a_cache_that_serves_the_worse_arm_or_both_explains_nothing() {
        // The last one: a device that gets every byte moves more for one filesystem than for another.
        for device in [(4e8, 4e6), (4e6, 5e6), (4e8, 4e8), (3e8, 4e8), (9e8, 2e9)] {
            assert_eq!(found(&[ASKED, ("dev.write_bytes", device.0, device.1)], "page_cache"), []);
        }
        assert_eq!(found(&[], "page_cache"), []);
    }
}
