//! Where I/Os go besides "everywhere alike": skewed offsets, block sizes by share, which file is next.
//!
//! Enters: nothing. Leaves: plain values that `draft` fills and the generators read.

/// `random_distribution`: how often each part of a region is hit.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// `random`: every block alike.
    #[default]
    Uniform,
    /// `zipf:THETA[:CENTER]`: the n-th most popular block is hit in proportion to n^-theta.
    Zipf {
        /// Above 0 and not 1.
        theta: f64,
        /// Where the most popular block is, 0 to 1 of the region; `None`: anywhere. The others are scattered by a hash
        /// all the same, as in fio.
        center: Option<f64>,
    },
    /// `pareto:H[:CENTER]`: a share of `h` of the blocks has a share of 1 − `h` of the hits, again within those.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// As for zipf.
        center: Option<f64>,
    },
    /// `normal:DEVIATION[:CENTER]`: a bell over the region.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// As for zipf.
        center: Option<f64>,
    },
    /// `zoned:ACCESS/SIZE:…`: shares of the hits in consecutive parts of the region, for reads, writes and trims.
    Zoned([Vec<Zone>; 3]),
}

impl Distribution {
    /// Bytes of a region that `zoned_abs` needs; 0 for all others.
    #[must_use]
    pub fn zoned_bytes(&self) -> u64 {
        let Distribution::Zoned(zones) = self else { return 0 };
        let bytes = |zone: &Zone| match zone.size {
            ZoneSize::Bytes(bytes) => bytes,
            ZoneSize::Percent(_) => 0,
        };
        zones.iter().map(|zones| zones.iter().map(bytes).sum()).max().unwrap_or(0)
    }
}

/// One zone of [`Distribution::Zoned`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Percent of the accesses.
    pub access_percent: u8,
    /// Percent of the region (`zoned`) or bytes (`zoned_abs`).
    pub size: ZoneSize,
}

/// How large a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSize {
    /// Of the region.
    Percent(u8),
    /// Of its own (`zoned_abs`).
    Bytes(u64),
}

/// One size of a `bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShare {
    /// Bytes.
    pub bytes: u64,
    /// Percent of the I/Os.
    pub percent: u8,
}

/// `file_service_type`: which file the next I/O goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileService {
    /// In what order.
    pub order: FileOrder,
    /// I/Os until another file is chosen (`file_service_type=roundrobin:N`); 1 by default.
    pub ios_a_turn: u32,
}

impl Default for FileService {
    fn default() -> FileService {
        FileService { order: FileOrder::RoundRobin, ios_a_turn: 1 }
    }
}

/// The orders of [`FileService`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileOrder {
    /// One after the other.
    RoundRobin,
    /// Any that is not done.
    Random,
    /// One to its end, then the next.
    Sequential,
    /// `zipf:THETA`.
    Zipf(f64),
    /// `pareto:H`.
    Pareto(f64),
    /// `normal:DEVIATION`, percent of the number of files.
    Normal(f64),
}
