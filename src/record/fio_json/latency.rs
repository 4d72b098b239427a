//! Quantiles and histograms from fio's latency bins.

use hdrhistogram::Histogram;

use super::LatencyHistogram;
use super::wire::Latency;

/// Percentiles kept from fio's default list of seventeen; a job's own `percentile_list` is kept whole.
const KEPT: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// fio's default list (`options.c`, `def_percentile_list`).
const FIO_DEFAULT: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// (percent, ns) of the percentiles kept: from the bins when there are any, else as fio printed them.
pub(super) fn quantiles(latency: &Latency) -> Vec<(f64, f64)> {
    let printed = &latency.percentile.0;
    let of_default = printed.iter().all(|(percent, _)| FIO_DEFAULT.contains(percent));
    let bins = &latency.bins.0;
    if bins.is_empty() {
        let kept = |percent: &f64| !of_default || KEPT.contains(percent);
        return printed.iter().copied().filter(|(percent, _)| kept(percent)).collect();
    }
    let wanted: Vec<f64> =
        if of_default { KEPT.to_vec() } else { printed.iter().map(|(percent, _)| *percent).collect() };
    wanted.into_iter().filter_map(|percent| Some((percent, quantile(bins, percent)? as f64))).collect()
}

/// fio's own rule (`stat.c`, `calc_clat_percentiles`): the first bin at which the running count reaches the share.
fn quantile(bins: &[(u64, u64)], percent: f64) -> Option<u64> {
    let total: u64 = bins.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count));
    let wanted = percent / 100.0 * total as f64;
    let mut seen = 0_u64;
    for (ns, count) in bins {
        seen = seen.saturating_add(*count);
        if seen as f64 >= wanted {
            return Some(*ns);
        }
    }
    bins.last().map(|(ns, _)| *ns)
}

/// An HDR histogram of the bins; fio's are coarser (1/64), so that nothing is lost.
pub(super) fn pack_bins(bins: &[(u64, u64)]) -> Histogram<u64> {
    let mut histogram = LatencyHistogram::empty();
    for (ns, count) in bins.iter().filter(|(_, count)| *count > 0) {
        histogram.saturating_record_n((*ns).max(1), *count);
    }
    histogram
}
