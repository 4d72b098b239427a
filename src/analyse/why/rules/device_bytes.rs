//! The device moves more bytes for each byte asked.
//!
//! Needs: the device's counters and the bytes that were asked for; `--observe blocks` adds what the journal took. Concludes: journal,
//! metadata, read-ahead or partial blocks make the worse arm's device move more. Silent where the other arm's device hardly moves anything:
//! that is the page cache.

use super::super::cause::{Cause, Grade, What};
use super::super::names::JOURNAL_BYTES;
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::{Direction, Unit};

/// Less than this for each byte asked is no I/O of the load's own.
const REACHES: f64 = 0.5;

pub(super) const RULE: Rule = Rule { name: "device_bytes", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let of = |direction: Direction| {
        let name = direction.name();
        let (device, asked) = (format!("dev.{name}_bytes"), format!("{name}.io_bytes"));
        let called = format!("{device} for each byte asked");
        let found = pair.own.ratio(&[&device], &[&asked], &called, Unit::Count)?;
        let both_reach = found.baseline.min(found.candidate) >= REACHES;
        let journal = || pair.watched.as_ref()?.source.each(JOURNAL_BYTES, Unit::Bytes);
        let journal = journal().filter(|journal| direction == Direction::Write && pair.costs(journal));
        let evidence = [Some(found.clone()), journal].into_iter().flatten().collect();
        (both_reach && pair.costs(&found))
            .then(|| Cause::new(RULE.name, Grade::GoesWith, What::DeviceBytes { direction }, evidence))
    };
    let done = [Direction::Read, Direction::Write].into_iter().filter(|direction| pair.does(*direction));
    done.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::What;
    use super::super::super::made_pair::found;
    use crate::record::Direction;

    const ASKED: (&str, f64, f64) = ("write.io_bytes", 4e8, 4e8);

    #[test]
    fn a_journal_that_holds_data_writes_twice() {
        let journal = [("blocks.lost", 0.0, 0.0), ("blocks.journal_bytes", 1e6, 4e8)];
        let causes = found(&[ASKED, ("dev.write_bytes", 4e8, 8e8), journal[0], journal[1]], "device_bytes");
        assert_eq!((causes.len(), &causes[0].what), (1, &What::DeviceBytes { direction: Direction::Write }));
        assert!((causes[0].evidence[0].candidate - 2.0).abs() < 1e-9, "{causes:?}");
        assert!((causes[0].evidence[1].candidate - 4000.0).abs() < 40.0, "{causes:?}");
    }

    #[test]
    fn fewer_bytes_as_many_and_the_page_cache_are_silent() {
        for device in [(8e8, 4e8), (4e8, 4e8), (4e6, 4e8)] {
            assert_eq!(found(&[ASKED, ("dev.write_bytes", device.0, device.1)], "device_bytes"), []);
        }
    }
}
