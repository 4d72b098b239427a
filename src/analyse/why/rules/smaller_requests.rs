//! Smaller requests at the device: merging was lost, or files lie in pieces.
//!
//! Needs: the device's counters, or `--observe blocks`. Concludes: the mean request of the worse arm is smaller. Merges stand beside it.
//! Silent where requests are as large, or hardly any reach the device, and about a direction in which the job does nothing. The kernel counts a bio that only asks for a flush as a write of no
//! bytes: where there are many of those, the counters say nothing of the size of writes, and only `--observe blocks` does.

use super::super::cause::{Cause, Grade, What};
use super::super::names::{FLUSH_BIOS, REQUEST_SIZES, WRITE_BIOS};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::{Direction, Unit};

/// Fewer requests for each operation than this are not the load's own.
const REACHES: f64 = 0.01;
/// With more flushes than this for each write their mean size is no size of requests.
const FLUSHES: f64 = 0.05;

pub(super) const RULE: Rule = Rule { name: "smaller_requests", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let of = |(direction, seen): (Direction, &str)| {
        let name = direction.name();
        let [bytes, ios, merges] = ["bytes", "ios", "merges"].map(|what| format!("dev.{name}_{what}"));
        let called = format!("bytes of a {name} request of the device");
        let counted = pair.own.ratio(&[&bytes], &[&ios], &called, Unit::Bytes);
        let counted = counted.filter(|_| direction == Direction::Read || !has_flushes(pair, &ios));
        let found = counted.or_else(|| pair.watched.as_ref()?.source.plain(seen, Unit::Bytes))?;
        let requests = pair.own.each(&ios, Unit::Count);
        let reach = requests.is_none_or(|each| each.baseline.min(each.candidate) >= REACHES);
        let merged = pair.own.each(&merges, Unit::Count).filter(|merged| pair.lacks(merged));
        (reach && pair.lacks(&found)).then(|| {
            let evidence = [Some(found), merged].into_iter().flatten().collect();
            Cause::new(RULE.name, Grade::GoesWith, What::SmallerRequests { direction }, evidence)
        })
    };
    let done = [Direction::Read, Direction::Write]
        .into_iter()
        .zip(REQUEST_SIZES)
        .filter(|(direction, _)| pair.does(*direction));
    done.filter_map(of).collect()
}

/// Whether many of the writes may have been flushes: also where neither the device counts them, as dm and md do not, nor anybody watched.
fn has_flushes(pair: &Pair<'_>, ios: &str) -> bool {
    let called = "flushes for each write";
    let watched = || pair.watched.as_ref()?.source.ratio(&[FLUSH_BIOS], &[WRITE_BIOS], called, Unit::Count);
    let found = pair.own.ratio(&["dev.flushes"], &[ios], called, Unit::Count).or_else(watched);
    found.is_none_or(|found| found.baseline.max(found.candidate) > FLUSHES)
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::What;
    use super::super::super::made_pair::found;
    use crate::record::Direction;

    #[test]
    fn smaller_requests_go_with_the_worse_arm() {
        let counters = [
            ("dev.write_bytes", 4e8, 4e8),
            ("dev.write_ios", 1e4, 1e5),
            ("dev.write_merges", 9e4, 0.0),
            ("dev.flushes", 0.0, 0.0),
        ];
        let causes = found(&counters, "smaller_requests");
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        // Nobody knows how many of the writes are flushes, unless their bios were watched.
        assert_eq!(found(&counters[..3], "smaller_requests"), []);
        let watched = |flushes: f64| {
            let seen = [("blocks.write_bios", 1e5, 1e5), ("blocks.flush_bios", flushes, flushes)];
            found(&[&counters[..3], &seen[..], &[("blocks.lost", 0.0, 0.0)]].concat(), "smaller_requests")
                .len()
        };
        assert_eq!((watched(100.0), watched(5e4)), (1, 0));
        assert_eq!(cause.what, What::SmallerRequests { direction: Direction::Write });
        assert!(
            (cause.evidence[0].baseline - 40_000.0).abs() < 1.0 && cause.evidence.len() == 2,
            "{cause:?}"
        );
    }

    #[test]
    fn larger_requests_as_large_ones_and_few_are_silent() {
        let of = |bytes: f64, ios: (f64, f64)| {
            let flushes = ("dev.flushes", 0.0, 0.0);
            let counters = [("dev.write_bytes", bytes, bytes), ("dev.write_ios", ios.0, ios.1), flushes];
            found(&counters, "smaller_requests")
        };
        assert_eq!(of(4e8, (1e5, 1e4)), []);
        assert_eq!(of(4e8, (1e5, 1e5)), []);
        assert_eq!(of(4e5, (10.0, 100.0)), [], "not the load's own");
    }

    #[test]
    fn reads_of_others_are_no_cause_for_a_job_that_writes() {
        let counters = [("dev.read_bytes", 4e8, 4e8), ("dev.read_ios", 1e4, 1e5)];
        assert_eq!(found(&counters, "smaller_requests"), [], "the made-up job only writes");
        let reads = [("read.io_bytes", 4e8, 4e8), counters[0], counters[1]];
        assert_eq!(found(&reads, "smaller_requests").len(), 1);
    }

    #[test]
    fn flushes_are_no_smaller_requests() {
        let counters =
            [("dev.write_bytes", 4e8, 4e8), ("dev.write_ios", 1e5, 2e5), ("dev.flushes", 0.0, 1e5)];
        assert_eq!(found(&counters, "smaller_requests"), []);
        let seen = [("blocks.lost", 0.0, 0.0), ("blocks.write_request_size", 8192.0, 4096.0)];
        assert_eq!(found(&[&counters[..], &seen].concat(), "smaller_requests").len(), 1);
    }
}
