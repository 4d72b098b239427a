//! Latency quantile curves of each arm, from merged histograms. For drawing only, never for a verdict: pooled
//! order statistics over operations covered 64 % instead of 95 %.
//!
//! Enters: the trials that count. Leaves: [`QuantileCurve`]s.

use hdrhistogram::Histogram;

use super::comparison::QuantileCurve;
use super::layout::{Layout, Row};
use super::table::Table;
use crate::record::{Direction, LatencyHistogram, LatencyKind, Trial};

/// Most trials whose histograms are merged, shared evenly by the cells; of more, every k-th is taken.
const MOST_MERGED: usize = 2_000;
/// Each cell gets as many as this in any case.
const LEAST_MERGED: usize = 50;

/// Curves of every row, arm, direction and kind that has histograms.
pub(super) fn curves(layout: &Layout, table: &Table) -> Vec<QuantileCurve> {
    let mut found = Vec::new();
    let cells = layout.rows.iter().flat_map(|row| &row.cells).flatten().count();
    let most = (MOST_MERGED / cells.max(1)).max(LEAST_MERGED);
    for row in &layout.rows {
        let mut merged: Vec<Merged> = Vec::new();
        for (arm, cell) in row.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            merge_arm(&mut merged, arm, row, *cell, table, most);
        }
        // Without syncs writes are durable when they have ended: one curve is enough.
        let syncs = merged.iter().any(|m| m.kind == LatencyKind::Sync);
        merged.retain(|m| m.kind != LatencyKind::Durable || syncs);
        merged.sort_by_key(|m| (m.direction, m.kind, m.arm));
        found.extend(merged.into_iter().filter(|m| !m.histogram.is_empty()).map(|m| QuantileCurve {
            row: row.key.clone(),
            arm: layout.arms[m.arm].clone(),
            direction: m.direction,
            kind: m.kind,
            count: m.histogram.len(),
            points: points(&m.histogram),
        }));
    }
    found
}

struct Merged {
    arm: usize,
    direction: Direction,
    kind: LatencyKind,
    histogram: Histogram<u64>,
}

fn merge_arm(merged: &mut Vec<Merged>, arm: usize, row: &Row, cell: u32, table: &Table, most: usize) {
    let trials: Vec<&Trial> = table
        .latest()
        .iter()
        .copied()
        .filter(|trial| trial.cell == cell && trial.counts() && !trial.histograms.is_empty())
        .collect();
    for trial in trials.iter().step_by(trials.len().div_ceil(most).max(1)) {
        for packed in trial.histograms.iter().filter(|h| h.job == row.key.job) {
            // Bytes that cannot be read back are left out: they would have to be damaged in the store.
            let Ok(histogram) = packed.unpack() else { continue };
            let same = |m: &Merged| (m.arm, m.direction, m.kind) == (arm, packed.direction, packed.kind);
            let at = merged.iter().position(same).unwrap_or_else(|| {
                let (direction, kind) = (packed.direction, packed.kind);
                let mut histogram = LatencyHistogram::empty();
                // An importer's histogram may go beyond assay's own bounds.
                histogram.auto(true);
                merged.push(Merged { arm, direction, kind, histogram });
                merged.len() - 1
            });
            // Adding fails only without auto-resize.
            let _ = merged[at].histogram.add(histogram);
        }
    }
}

/// Dense enough to draw: even steps of −log10(1 − q) up to where fewer than ten operations are beyond.
fn points(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    const STEPS_A_DECADE: u32 = 16;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut add = |q: f64| points.push((q, histogram.value_at_quantile(q) as f64));
    // The lower half has no tail to stretch: even steps of q.
    (0..10).for_each(|step| add(f64::from(step) * 0.05));
    for step in 0.. {
        let beyond = 0.5 * 10_f64.powf(-f64::from(step) / f64::from(STEPS_A_DECADE));
        if beyond * (histogram.len() as f64) < 10.0 {
            break;
        }
        add(1.0 - beyond);
    }
    for named in [0.9, 0.99, 0.999, 0.9999, 0.99999] {
        if (1.0 - named) * histogram.len() as f64 >= 10.0 - 1e-6 {
            add(named);
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 == b.0);
    points
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::options::Options;
    use super::*;

    #[test]
    fn arms_are_merged_by_themselves() {
        let mut run = run_of(&Made::default(), 4);
        for trial in &mut run.trials {
            let mut histogram = LatencyHistogram::empty();
            let latency = 1_000 * (1 + u64::from(trial.cell));
            histogram.record_n(latency, 900).unwrap();
            histogram.record_n(10 * latency, 100).unwrap();
            trial.histograms =
                vec![LatencyHistogram::pack("", Direction::Write, LatencyKind::Clat, &histogram)];
        }
        let table = Table::new(&run);
        let layout = Layout::new(&run, &Options::default(), &table);
        let curves = curves(&layout, &table);
        assert_eq!(
            curves.iter().map(|c| (c.arm.as_str(), c.count)).collect::<Vec<_>>(),
            [("0", 4_000), ("1", 4_000)]
        );
        let at = |curve: &QuantileCurve, q: f64| curve.points.iter().find(|p| p.0 == q).unwrap().1;
        assert!((at(&curves[0], 0.5) / 1_000.0 - 1.0).abs() < 0.001);
        assert!((at(&curves[1], 0.99) / 20_000.0 - 1.0).abs() < 0.001);
        assert!(curves[0].points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
        assert!(curves[0].points.last().unwrap().0 < 0.9976, "fewer than ten operations lie beyond");
    }
}
