//! Options of placement: skewed offsets, shares of block sizes, which file is next.
//!
//! Enters: an option and its value. Leaves: what it says, in the draft.

use super::Draft;
use crate::workload::job::BlockRange;
use crate::workload::placement::{BlockShare, Distribution, FileOrder, FileService, Zone, ZoneSize};
use crate::workload::values::{Fault, Value, bad, decimal, directions, number, size};

/// fio's theta when none is given.
const ZIPF_THETA: f64 = 1.1;
/// fio's h when none is given.
const PARETO_H: f64 = 0.2;
/// Most sizes of one direction, as in fio.
const MOST_SHARES: usize = 64;
/// Most zones of one direction, as in fio.
const MOST_ZONES: usize = 256;

impl Draft {
    pub(super) fn apply_placement(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        Some(match name {
            "bssplit" => {
                let before = self.splits.clone();
                directions(text, before, |part| split(part, kb).map(Some)).map(|splits| {
                    // A split sets the bounds, as a bsrange does; the last of both holds.
                    for (at, split) in splits.iter().enumerate() {
                        if let Some((range, _)) = split.as_ref().filter(|_| *split != self.splits[at]) {
                            self.ranged_blocks[at] = *range;
                        }
                    }
                    self.splits = splits;
                })
            }
            "percentage_random" => {
                let before = self.job.percentage_random;
                directions(text, before, |part| number(part, kb, 0, 100).map(|percent| percent as u8))
                    .map(|percent| self.job.percentage_random = percent)
            }
            "random_distribution" => distribution(text, kb).map(|chosen| self.job.distribution = chosen),
            "file_service_type" => file_service(text, kb).map(|chosen| self.job.file_service = chosen),
            _ => return None,
        })
    }

    /// Puts the placement into the job; what does not fit together.
    pub(super) fn finish_placement(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        let sizes = self.job.block_sizes;
        for (at, range) in [sizes.read, sizes.write, sizes.trim].into_iter().enumerate() {
            if let Some((bounds, shares)) = self.splits[at].take() {
                if bounds != range {
                    wrong.push("has both bsrange and bssplit; leave one of them out".to_owned());
                }
                if !range.is_fixed() {
                    self.job.block_split[at] = shares;
                }
            }
        }
        wrong.dedup();
        if self.job.distribution != Distribution::Uniform {
            // fio's fixup_options: what is hit more often than the rest cannot be hit once.
            self.job.random_map = false;
        }
        wrong
    }
}

/// The sizes of one direction: bounds and shares.
pub(super) type Split = (BlockRange, Vec<BlockShare>);

/// `SIZE[/PERCENT]:…`. As in fio, what is left over is divided evenly among sizes without a percentage (whole
/// percents), and what then is still missing to 100 goes to the size with the largest share. Ascending by share.
fn split(text: &str, kb: u64) -> Value<Split> {
    let mut entries = Vec::new();
    for part in text.split(':').map(str::trim) {
        let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
        let bytes = size(bytes.trim(), kb)?;
        if bytes == 0 || bytes > 1 << 30 {
            return bad(format!("a block of {bytes} bytes; write 1 byte to 1 GiB"));
        }
        let percent = match percent.trim() {
            "" => 0,
            percent => number(percent, kb, 0, 100)?,
        };
        entries.push((bytes, percent));
    }
    if entries.len() > MOST_SHARES {
        return bad(format!("{} sizes; at most {MOST_SHARES} can be given", entries.len()));
    }
    let given: u64 = entries.iter().map(|(_, percent)| percent).sum();
    let open = entries.iter().filter(|(_, percent)| *percent == 0).count() as u64;
    if given > 100 {
        return bad(format!("'{text}': the shares add up to {given} %, more than 100"));
    }
    let min = entries.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1);
    let max = entries.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1);
    if let Some((odd, _)) = entries.iter().find(|(bytes, _)| bytes % min != 0) {
        return bad(format!("{odd} is not a multiple of {min}, the smallest size; fio would round it down"));
    }
    let each = (100 - given).checked_div(open).unwrap_or(0);
    let mut shares: Vec<BlockShare> = entries
        .iter()
        .map(|(bytes, percent)| if *percent == 0 { (*bytes, each) } else { (*bytes, *percent) })
        .filter(|(_, percent)| *percent > 0)
        .map(|(bytes, percent)| BlockShare { bytes, percent: percent as u8 })
        .collect();
    shares.sort_by_key(|share| share.percent);
    let sum: u8 = shares.iter().map(|share| share.percent).sum();
    if let Some(last) = shares.last_mut() {
        last.percent += 100 - sum;
    }
    Ok((BlockRange { min, max }, shares))
}

/// `NAME[:VALUE[:CENTER]]`: the value checked by `fits`, which says what would be right.
fn skew(text: &str, default: f64, fits: fn(f64) -> bool, right: &str) -> Value<(f64, Option<f64>)> {
    let mut parts = text.split(':').skip(1).map(str::trim);
    let value = parts.next().map_or(Ok(default), decimal)?;
    let center = parts.next().map(decimal).transpose()?;
    if parts.next().is_some() {
        return bad(format!("'{text}' has too many parts"));
    }
    if !fits(value) {
        return bad(format!("'{text}': {value} is out of range; write {right}"));
    }
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return bad(format!("'{text}': a center lies between 0 and 1 of the region"));
    }
    Ok((value, center))
}

fn zipf(text: &str) -> Value<(f64, Option<f64>)> {
    skew(
        text,
        ZIPF_THETA,
        |theta| theta > 0.0 && theta < 100.0 && theta != 1.0,
        "a number above 0 that is not 1",
    )
}

fn pareto(text: &str) -> Value<(f64, Option<f64>)> {
    skew(text, PARETO_H, |h| h > 0.0 && h < 1.0, "a number between 0 and 1")
}

fn normal(text: &str) -> Value<(f64, Option<f64>)> {
    skew(text, 0.0, |percent| (0.0..100.0).contains(&percent), "a deviation from 0 to below 100 percent")
}

/// `random_distribution`.
fn distribution(text: &str, kb: u64) -> Value<Distribution> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    Ok(match name {
        "random" if rest.is_empty() => Distribution::Uniform,
        "zipf" => zipf(text).map(|(theta, center)| Distribution::Zipf { theta, center })?,
        "pareto" => pareto(text).map(|(h, center)| Distribution::Pareto { h, center })?,
        "normal" => normal(text)
            .map(|(deviation_percent, center)| Distribution::Normal { deviation_percent, center })?,
        "zoned" | "zoned_abs" => {
            let absolute = name == "zoned_abs";
            let none = [const { Vec::new() }; 3];
            Distribution::Zoned(directions(rest, none, |part| zones(part, absolute, kb))?)
        }
        _ => {
            return bad(format!(
                "'{text}' is none of random, zipf:THETA, pareto:H, normal:DEVIATION, zoned:ACCESS/SIZE:…, zoned_abs"
            ));
        }
    })
}

/// `ACCESS/SIZE:…` of one direction.
fn zones(text: &str, absolute: bool, kb: u64) -> Value<Vec<Zone>> {
    let mut zones = Vec::new();
    for part in text.split(':').map(str::trim) {
        let (access, length) = part.split_once('/').unwrap_or((part, ""));
        let access_percent = number(access.trim(), kb, 0, 100)? as u8;
        let size = match (absolute, length.trim()) {
            (true, "") => return bad(format!("'{part}' has no size; write ACCESS/SIZE, e.g. 60/4g")),
            (true, length) => ZoneSize::Bytes(size(length, kb)?),
            (false, "") => ZoneSize::Percent(0),
            (false, length) => ZoneSize::Percent(number(length, kb, 0, 100)? as u8),
        };
        zones.push(Zone { access_percent, size });
    }
    if zones.len() > MOST_ZONES {
        return bad(format!("{} zones; at most {MOST_ZONES} can be given", zones.len()));
    }
    let accesses: u32 = zones.iter().map(|zone| u32::from(zone.access_percent)).sum();
    if accesses != 100 {
        return bad(format!("'{text}': the accesses add up to {accesses} %, not 100"));
    }
    fill_sizes(&mut zones, text)?;
    if zones.iter().any(|zone| zone.access_percent > 0 && zone.size.is_nothing()) {
        return bad(format!("'{text}': a zone of no size has a share of the accesses"));
    }
    if zones.iter().try_fold(0_u64, |sum, zone| sum.checked_add(zone.size.bytes())).is_none() {
        return bad(format!("'{text}': the zones reach beyond the largest file"));
    }
    Ok(zones)
}

/// Divides the percents of the region that are left over among the zones that have none, as fio does.
fn fill_sizes(zones: &mut [Zone], text: &str) -> Value<()> {
    let percent = |zone: &Zone| match zone.size {
        ZoneSize::Percent(percent) => u32::from(percent),
        ZoneSize::Bytes(_) => 0,
    };
    let given: u32 = zones.iter().map(percent).sum();
    if given > 100 {
        return bad(format!("'{text}': the zones add up to {given} % of the region, more than 100"));
    }
    let open = zones.iter().filter(|zone| zone.size == ZoneSize::Percent(0)).count() as u32;
    let each = (100 - given).checked_div(open).unwrap_or(0) as u8;
    for zone in zones.iter_mut().filter(|zone| zone.size == ZoneSize::Percent(0)) {
        zone.size = ZoneSize::Percent(each);
    }
    Ok(())
}

impl ZoneSize {
    fn is_nothing(self) -> bool {
        matches!(self, ZoneSize::Percent(0) | ZoneSize::Bytes(0))
    }

    fn bytes(self) -> u64 {
        match self {
            ZoneSize::Percent(_) => 0,
            ZoneSize::Bytes(bytes) => bytes,
        }
    }
}

/// `file_service_type`.
fn file_service(text: &str, kb: u64) -> Value<FileService> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let without_center = |found: (f64, Option<f64>)| match found {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Fault::NotNative(format!("'{text}': a center for the choice of files"))),
    };
    let (order, turns) = match name {
        "roundrobin" => (FileOrder::RoundRobin, rest),
        "random" => (FileOrder::Random, rest),
        "sequential" => (FileOrder::Sequential, rest),
        "zipf" => (FileOrder::Zipf(without_center(zipf(text)?)?), ""),
        "pareto" => (FileOrder::Pareto(without_center(pareto(text)?)?), ""),
        "normal" | "gauss" => (FileOrder::Normal(without_center(normal(text)?)?), ""),
        _ => {
            return bad(format!(
                "'{text}' is none of roundrobin, random, sequential, zipf, pareto, normal, gauss"
            ));
        }
    };
    let ios_a_turn = if turns.is_empty() { 1 } else { number(turns, kb, 1, u64::from(u32::MAX))? as u32 };
    Ok(FileService { order, ios_a_turn })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(text: &str) -> Vec<(u64, u8)> {
        split(text, 1024).unwrap().1.iter().map(|share| (share.bytes, share.percent)).collect()
    }

    #[test]
    fn shares_that_are_missing_are_filled_as_in_fio() {
        assert_eq!(shares("4k/25:8k/75"), [(4096, 25), (8192, 75)]);
        assert_eq!(shares("8k/75:4k/25"), [(4096, 25), (8192, 75)]);
        assert_eq!(shares("4k/50:8k:16k"), [(8192, 25), (16384, 25), (4096, 50)]);
        // Three times 33 %; the last of them gets the percent that is left.
        assert_eq!(shares("1k:2k:4k"), [(1024, 33), (2048, 33), (4096, 34)]);
        assert_eq!(shares("4k/10:8k/20"), [(4096, 10), (8192, 90)]);
        assert_eq!(shares("4k/100:8k"), [(4096, 100)]);
        assert_eq!(split("4k/100:8k", 1024).unwrap().0, BlockRange { min: 4096, max: 8192 });
        for text in ["4k/60:8k/60", "4k/101", "", "4k/50:6k/50", "0/100", "4k/x", "4k/50::8k"] {
            assert!(matches!(split(text, 1024), Err(Fault::Bad(_))), "{text}");
        }
    }

    #[test]
    fn distributions() {
        let zipf = |theta, center| Ok(Distribution::Zipf { theta, center });
        assert_eq!(distribution("zipf", 1024), zipf(1.1, None));
        assert_eq!(distribution("zipf:1.2:0.25", 1024), zipf(1.2, Some(0.25)));
        assert_eq!(distribution("pareto", 1024), Ok(Distribution::Pareto { h: 0.2, center: None }));
        assert_eq!(
            distribution("normal:10", 1024),
            Ok(Distribution::Normal { deviation_percent: 10.0, center: None })
        );
        assert_eq!(distribution("random", 1024), Ok(Distribution::Uniform));
        for text in [
            "zipf:1", "zipf:x", "zipf:-1", "zipf:nan", "zipf:1.2:2", "zipf:1.2:0:0", "pareto:1", "pareto:0",
            "normal:100", "gauss", "random:1", "zoned", "zoned:", "zoned:50/10:40/20", "zoned:100/0:0/100",
            "zoned:50/60:50/60", "zoned_abs:100", "zoned_abs:100/0",
        ] {
            assert!(matches!(distribution(text, 1024), Err(Fault::Bad(_))), "{text}");
        }
    }

    #[test]
    fn zones_share_what_is_left_of_the_region() {
        let zone = |access_percent, percent| Zone { access_percent, size: ZoneSize::Percent(percent) };
        let Ok(Distribution::Zoned(zones)) = distribution("zoned:60/10:30/20:8:2/,50/5:50/95", 1024) else {
            panic!("no zones")
        };
        assert_eq!(zones[0], [zone(60, 10), zone(30, 20), zone(8, 35), zone(2, 35)]);
        assert_eq!(zones[1], [zone(50, 5), zone(50, 95)]);
        assert_eq!(zones[2], zones[1]);
        let Ok(Distribution::Zoned(zones)) = distribution("zoned_abs:60/4k:40/1m,", 1024) else {
            panic!("no zones")
        };
        assert_eq!(zones[0][1], Zone { access_percent: 40, size: ZoneSize::Bytes(1 << 20) });
        assert!(zones[1].is_empty() && zones[2].is_empty());
    }

    #[test]
    fn orders_of_files() {
        let service = |order, ios_a_turn| Ok(FileService { order, ios_a_turn });
        assert_eq!(file_service("roundrobin:8", 1024), service(FileOrder::RoundRobin, 8));
        assert_eq!(file_service("random", 1024), service(FileOrder::Random, 1));
        assert_eq!(file_service("sequential", 1024), service(FileOrder::Sequential, 1));
        assert_eq!(file_service("gauss:5", 1024), service(FileOrder::Normal(5.0), 1));
        assert_eq!(file_service("zipf", 1024), service(FileOrder::Zipf(1.1), 1));
        assert!(matches!(file_service("zipf:1.2:0.5", 1024), Err(Fault::NotNative(_))));
        for text in ["roundrobin:0", "any", "random:x", "pareto:2"] {
            assert!(matches!(file_service(text, 1024), Err(Fault::Bad(_))), "{text}");
        }
    }
}
