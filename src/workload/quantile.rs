//! How many operations a quantile of their latencies needs: below 10/(1 − q) it is one or two operations' luck.

/// q of a metric named `….pNN` or `….pNN.N`, strictly between 0 and 1.
#[must_use]
pub fn quantile_of(name: &str) -> Option<f64> {
    let at = name.rfind(".p")?;
    let percent: f64 = name[at + 2..].parse().ok()?;
    (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
}

/// Operations a trial must have for quantile q.
#[must_use]
pub fn operations_for(q: f64) -> u64 {
    // 1 − 0.99 is a little less than 0.01 in binary; a count is not to hang on that.
    (10.0 / (1.0 - q) - 1e-6).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_needs() {
        assert_eq!(quantile_of("write.clat_ns.p99"), Some(0.99));
        assert_eq!(quantile_of("write.clat_ns.p99.9").map(operations_for), Some(10_000));
        assert_eq!(quantile_of("read.lat_ns.p50").map(operations_for), Some(20));
        assert_eq!(quantile_of("write.clat_ns.p99").map(operations_for), Some(1_000));
        assert_eq!(quantile_of("write.clat_ns.p99.99").map(operations_for), Some(100_000));
        assert!(quantile_of("write.bw").is_none() && quantile_of("x.pages").is_none());
        assert!(quantile_of("x.p100").is_none());
    }
}
