//! Latency histograms: HDR at three significant digits, kept whole and merged, never averaged.

use base64::Engine as Base64Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

use super::Direction;

named! {
    /// Which part of an I/O's life was timed, in fio's words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum LatencyKind {
        /// Submission.
        Slat = "slat_ns",
        /// Completion.
        Clat = "clat_ns",
        /// Both.
        Lat = "lat_ns",
        /// fsync, fdatasync.
        Sync = "sync_ns",
        /// Until a write was durable: the sync behind it had ended, or with `sync=` it had itself.
        Durable = "durable_ns",
    }
}

impl LatencyKind {
    /// What its metrics begin with, of I/Os in this direction: `write.clat_ns`, `sync.lat_ns`, `durable.lat_ns`.
    #[must_use]
    pub fn metric(self, direction: Direction) -> String {
        match self {
            LatencyKind::Sync => "sync.lat_ns".to_owned(),
            LatencyKind::Durable => "durable.lat_ns".to_owned(),
            kind => format!("{}.{}", direction.name(), kind.name()),
        }
    }
}

/// Significant digits that are kept.
const DIGITS: u32 = 3;

/// Why stored histogram bytes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// Not HDR V2 bytes.
    #[error("stored histogram is damaged: {0}")]
    Damaged(String),
}

/// All latencies of one job and direction in one trial, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyHistogram {
    /// The job or group; empty for the whole trial.
    pub job: String,
    /// Read, write or trim.
    pub direction: Direction,
    /// Which latency.
    pub kind: LatencyKind,
    /// HDR histogram of nanoseconds, V2 serialised (base64 in JSON).
    #[serde(with = "base64_bytes")]
    pub hdr: Vec<u8>,
}

impl LatencyHistogram {
    /// Packs a histogram.
    #[must_use]
    pub fn pack(job: &str, direction: Direction, kind: LatencyKind, histogram: &Histogram<u64>) -> Self {
        let mut hdr = Vec::new();
        // Writing to a Vec cannot fail; an empty blob would be refused on reading rather than misread.
        let _ = V2Serializer::new().serialize(histogram, &mut hdr);
        LatencyHistogram { job: job.to_owned(), direction, kind, hdr }
    }

    /// Unpacks it.
    ///
    /// # Errors
    /// [`HistogramError::Damaged`] when the bytes are not an HDR V2 histogram.
    pub fn unpack(&self) -> Result<Histogram<u64>, HistogramError> {
        // At most what `pack` makes: with five digits and the whole range of u64 a few bytes would take 50 MB.
        let digits = self.hdr.get(12..16).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        if digits.is_none_or(|digits| digits > DIGITS) {
            return Err(HistogramError::Damaged("it is not one of three digits".to_owned()));
        }
        Deserializer::new()
            .deserialize(&mut self.hdr.as_slice())
            .map_err(|error| HistogramError::Damaged(error.to_string()))
    }

    /// An empty histogram with assay's bounds: 1 ns to about 1000 s, three digits.
    #[must_use]
    #[expect(clippy::unwrap_used, reason = "the bounds are constants that HDR accepts")]
    pub fn empty() -> Histogram<u64> {
        Histogram::new_with_bounds(1, 1_000_000_000_000, DIGITS as u8).unwrap()
    }
}

/// Bytes as a base64 text.
pub(super) mod base64_bytes {
    use super::{Base64Engine, Deserialize, STANDARD};
    use serde::{Deserializer, Serializer, de::Error};

    pub(in super::super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_and_unpacks_whole() {
        let mut histogram = LatencyHistogram::empty();
        for latency in [100, 2_000, 2_000, 5_000_000] {
            histogram.record(latency).unwrap();
        }
        let packed = LatencyHistogram::pack("j", Direction::Write, LatencyKind::Clat, &histogram);
        let json = serde_json::to_string(&packed).unwrap();
        let back: LatencyHistogram = serde_json::from_str(&json).unwrap();
        assert_eq!(back.unpack().unwrap(), histogram);
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let packed = LatencyHistogram {
            job: String::new(),
            direction: Direction::Read,
            kind: LatencyKind::Lat,
            hdr: vec![1, 2, 3],
        };
        assert!(packed.unpack().is_err());
    }
}
