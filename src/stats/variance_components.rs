//! Variance between and within clusters: the one-way random effects model, by the method of moments.
//!
//! Enters: values by cluster, of one or more arms with means of their own. Leaves: both variances, and how many repeats a
//! cluster would serve best. It must not know what a cluster is.
//! Source: Searle, Casella & McCulloch, *Variance Components* (1992) §3.6; for unequal clusters n0 stands for their size. Best number
//! of repeats: Cochran, *Sampling Techniques* (1977) §10.6.

use super::descriptive::mean;

/// Variances between and within clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Components {
    /// Variance between clusters, 0 where the estimate is negative.
    pub between: f64,
    /// Variance within clusters.
    pub within: f64,
    /// Mean square between clusters.
    pub mean_square_between: f64,
    /// The size of clusters that stands for unequal ones.
    pub size: f64,
}

/// Both variances, pooled over `arms`, each a list of clusters of values. `None` where no arm has two clusters or no cluster two
/// values.
#[must_use]
pub fn one_way(arms: &[Vec<Vec<f64>>]) -> Option<Components> {
    let (mut square_between, mut square_within) = (0.0, 0.0);
    let (mut free_between, mut free_within) = (0.0, 0.0);
    let mut sizes = 0.0;
    for arm in arms {
        let clusters: Vec<&Vec<f64>> = arm.iter().filter(|cluster| !cluster.is_empty()).collect();
        let n: f64 = clusters.iter().map(|cluster| cluster.len() as f64).sum();
        if clusters.len() < 2 {
            continue;
        }
        let all: f64 = clusters.iter().flat_map(|cluster| cluster.iter()).sum::<f64>() / n;
        for cluster in &clusters {
            let own = mean(cluster);
            square_between += cluster.len() as f64 * (own - all).powi(2);
            square_within += cluster.iter().map(|value| (value - own).powi(2)).sum::<f64>();
        }
        free_between += clusters.len() as f64 - 1.0;
        free_within += n - clusters.len() as f64;
        sizes += n - clusters.iter().map(|cluster| (cluster.len() as f64).powi(2)).sum::<f64>() / n;
    }
    if free_between < 1.0 || free_within < 1.0 {
        return None;
    }
    let (mean_square_between, within) = (square_between / free_between, square_within / free_within);
    let size = sizes / free_between;
    let between = ((mean_square_between - within) / size).max(0.0);
    Some(Components { between, within, mean_square_between, size })
}

/// The repeats in a cluster that give the most for the time, where a new cluster takes as long as `cost` repeats:
/// √(within/between · cost). `None` where clusters do not differ: then as many as there is time for.
#[must_use]
pub fn best_repeats(between: f64, within: f64, cost: f64) -> Option<u32> {
    let best = (within / between * cost).sqrt();
    (best.is_finite() && best < 1e6).then(|| (best.round() as u32).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(rows: &[&[f64]]) -> Vec<Vec<f64>> {
        rows.iter().map(|row| row.to_vec()).collect()
    }

    fn close(have: f64, want: f64, tolerance: f64) {
        assert!((have - want).abs() <= tolerance, "{have} is not {want}");
    }

    #[test]
    fn dyestuff() {
        // Davies & Goldsmith (1972), table 6.1: yields of six batches; lme4's `Dyestuff` gives 1764.05 and 2451.25.
        let yields = clusters(&[
            &[1545.0, 1440.0, 1440.0, 1520.0, 1580.0],
            &[1540.0, 1555.0, 1490.0, 1560.0, 1495.0],
            &[1595.0, 1550.0, 1605.0, 1510.0, 1560.0],
            &[1445.0, 1440.0, 1595.0, 1465.0, 1545.0],
            &[1595.0, 1630.0, 1515.0, 1635.0, 1625.0],
            &[1520.0, 1455.0, 1450.0, 1480.0, 1445.0],
        ]);
        let found = one_way(&[yields]).unwrap();
        close(found.mean_square_between, 11_271.5, 1e-6);
        close(found.within, 2_451.25, 1e-6);
        close(found.between, 1_764.05, 1e-6);
        close(found.size, 5.0, 1e-12);
    }

    #[test]
    fn calcium_in_turnip_leaves() {
        // Snedecor & Cochran, Statistical Methods, one-way classification with random effects: .2961, .0066 and .0724.
        let calcium = clusters(&[
            &[3.28, 3.09, 3.03, 3.03],
            &[3.52, 3.48, 3.38, 3.38],
            &[2.88, 2.80, 2.81, 2.76],
            &[3.34, 3.38, 3.23, 3.26],
        ]);
        let found = one_way(&[calcium]).unwrap();
        close(found.mean_square_between, 0.2961, 5e-5);
        close(found.within, 0.0066, 5e-5);
        close(found.between, 0.0724, 5e-5);
    }

    #[test]
    fn unequal_clusters_and_two_arms_by_hand() {
        // Clusters {1, 3}, {6}: grand mean 10/3, SSB 32/3, SSW 2, n0 = 3 − 5/3 = 4/3.
        let one = clusters(&[&[1.0, 3.0], &[6.0]]);
        let found = one_way(std::slice::from_ref(&one)).unwrap();
        close(found.mean_square_between, 32.0 / 3.0, 1e-12);
        close(found.within, 2.0, 1e-12);
        close(found.between, (32.0 / 3.0 - 2.0) * 0.75, 1e-12);
        // An arm that is 100 higher changes nothing: each has a mean of its own.
        let higher: Vec<Vec<f64>> =
            one.iter().map(|cluster| cluster.iter().map(|value| value + 100.0).collect()).collect();
        let pooled = one_way(&[one, higher]).unwrap();
        close(pooled.between, found.between, 1e-9);
        close(pooled.within, found.within, 1e-9);
    }

    #[test]
    fn negative_estimates_are_zero_and_too_little_is_none() {
        let alike = clusters(&[&[1.0, 5.0], &[1.0, 5.0], &[1.0, 5.0]]);
        let found = one_way(&[alike]).unwrap();
        assert_eq!((found.between, best_repeats(found.between, found.within, 10.0)), (0.0, None));
        assert!(one_way(&[clusters(&[&[1.0, 2.0]])]).is_none(), "one cluster");
        assert!(one_way(&[clusters(&[&[1.0], &[2.0]])]).is_none(), "no repeats");
        assert!(one_way(&[]).is_none());
    }

    #[test]
    fn best_repeats_by_hand() {
        assert_eq!(best_repeats(4.0, 1.0, 10.0), Some(2));
        assert_eq!(best_repeats(4.0, 1.0, 1.0), Some(1));
        assert_eq!(best_repeats(1.0, 4.0, 16.0), Some(8));
    }
}
