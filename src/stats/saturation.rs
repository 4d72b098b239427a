//! From which point on more of something brings next to nothing.
//!
//! Enters: rates by ascending depth. Leaves: the place of the saturation point. It must not know what is measured.

/// The first of `rates`, by ascending depth, that is within `within` (0.05: 5 %) of the largest of them; `None` where there is no
/// finite rate above 0. A peak behind which rates fall is found as well as a plateau.
#[must_use]
pub fn saturation(rates: &[f64], within: f64) -> Option<usize> {
    let finite = rates.iter().copied().filter(|rate| rate.is_finite());
    let most = finite.fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    rates.iter().position(|rate| *rate >= most * (1.0 - within))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A closed queue of depth d before a device that serves s at once: X = min(d, s)/R (Denning & Buzen 1978, "The operational
    /// analysis of queueing network models": the asymptotic bounds meet at d = s).
    fn bounds(depths: &[u32], servers: u32) -> Vec<f64> {
        depths.iter().map(|depth| f64::from((*depth).min(servers)) / 1e-4).collect()
    }

    #[test]
    fn the_knee_of_the_asymptotic_bounds_is_found() {
        let depths = [1, 2, 4, 8, 16, 32, 64];
        for (servers, expected) in [(1, 1), (4, 4), (6, 8), (32, 32), (1000, 64)] {
            let found = saturation(&bounds(&depths, servers), 0.05).unwrap();
            assert_eq!(depths[found], expected, "{servers} servers");
        }
    }

    #[test]
    fn a_peak_is_found_and_nothing_in_nothing() {
        assert_eq!(saturation(&[10.0, 20.0, 38.0, 40.0, 30.0], 0.05), Some(2));
        assert_eq!(saturation(&[10.0, 20.0, 37.9, 40.0, 30.0], 0.05), Some(3));
        assert_eq!(saturation(&[f64::NAN, 5.0], 0.05), Some(1));
        assert_eq!(saturation(&[], 0.05), None);
        assert_eq!(saturation(&[0.0, f64::NAN, f64::INFINITY], 0.05), None);
    }
}
