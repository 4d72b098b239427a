//! Zones with shares of the hits: `random_distribution=zoned`, `zoned_abs`.
//!
//! Enters: zones, how many blocks the region has. Leaves: blocks. It must not know what a block is.

use super::SplitMix;
use crate::workload::job::BlockRange;
use crate::workload::placement::{Zone, ZoneSize};

/// First block and number of blocks of the zone that each percent of the hits falls into.
type Table = [(u64, u64); 100];

/// The zones of each direction; `None`: all of the region alike.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    tables: [Option<Table>; 3],
    blocks: [u64; 3],
}

impl Zones {
    pub(super) fn new(zones: &[Vec<Zone>; 3], sizes: [BlockRange; 3], length: u64) -> Zones {
        let blocks = sizes.map(|range| length / range.min.max(1));
        let mut direction = 0..3;
        let tables = [(); 3].map(|()| {
            let at = direction.next()?;
            (!zones[at].is_empty()).then(|| table(&zones[at], sizes[at].min.max(1), blocks[at]))
        });
        Zones { tables, blocks }
    }

    /// A block of the region; `None`: it has none.
    #[inline]
    pub(super) fn draw(&self, direction: usize, random: &mut SplitMix) -> Option<u64> {
        let (first, count) = match &self.tables[direction] {
            Some(table) => table[random.below(100) as usize],
            None => (0, self.blocks[direction]),
        };
        let last = self.blocks[direction].checked_sub(1)?;
        Some((first + random.below(count)).min(last))
    }
}

/// Percents are cut to whole blocks as fio cuts them.
fn table(zones: &[Zone], block: u64, blocks: u64) -> Table {
    let mut table = [(0, blocks); 100];
    let share = |percent: u64| (u128::from(blocks) * u128::from(percent) / 100) as u64;
    let (mut entry, mut percent, mut bytes) = (0, 0, 0_u64);
    for zone in zones {
        let (first, count) = match zone.size {
            ZoneSize::Percent(size) => (share(percent), share(u64::from(size))),
            ZoneSize::Bytes(size) => (bytes / block, (bytes + size) / block - bytes / block),
        };
        let end = (entry + usize::from(zone.access_percent)).min(100);
        table[entry..end].fill((first, count));
        entry = end;
        match zone.size {
            ZoneSize::Percent(size) => percent += u64::from(size),
            ZoneSize::Bytes(size) => bytes += size,
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_their_shares_and_places() {
        let zone = |access_percent, size| Zone { access_percent, size };
        let relative = vec![
            zone(60, ZoneSize::Percent(10)),
            zone(0, ZoneSize::Percent(40)),
            zone(40, ZoneSize::Percent(20)),
        ];
        let absolute = vec![zone(90, ZoneSize::Bytes(100 * 4096)), zone(10, ZoneSize::Bytes(50 * 4096))];
        let range = BlockRange { min: 4096, max: 4096 };
        let zones = Zones::new(&[relative, absolute, Vec::new()], [range; 3], 1000 * 4096);
        let mut random = SplitMix::new(2);
        let mut hits = |direction| -> Vec<u64> {
            (0..20_000).map(|_| zones.draw(direction, &mut random).unwrap()).collect()
        };
        let within = |hits: &[u64], from, to| hits.iter().filter(|hit| (from..to).contains(*hit)).count();
        let first = hits(0);
        assert!(within(&first, 0, 100).abs_diff(12_000) < 300);
        assert_eq!(within(&first, 0, 100) + within(&first, 500, 700), first.len());
        let second = hits(1);
        assert!(within(&second, 0, 100).abs_diff(18_000) < 300);
        assert_eq!(within(&second, 0, 150), second.len());
        assert!(within(&hits(2), 0, 500).abs_diff(10_000) < 400);
    }
}
