//! How it scales, in words: the law of each arm and in what two laws differ, or why there is none with what was measured.
//!
//! Enters: the scaling of one group of curves. Leaves: sentences. It must not fit anything.

use crate::analyse::{Interval, NoLaw, RowKey, Scaling, ScalingCurve, ScalingDifference, ScalingLaw};
use crate::report::format::Detail;
use crate::report::words::{NBSP, Names, change, effect_decimals, ends, interval, percent, plain_percent};
use crate::units::{Scale, format_number};

/// Laws, differences of laws and refusals, of which those with one reason are said together.
pub(super) fn sentences(scaling: &Scaling, names: &Names<'_>, detail: Detail) -> Vec<String> {
    let place = names.row(&RowKey { levels: scaling.row.clone(), job: scaling.job.clone() });
    let head = match place.as_str() {
        "" => format!("scaling with {}", scaling.factor),
        _ => format!("{place}: scaling with {}", scaling.factor),
    };
    let label = |curve: &ScalingCurve| curve_label(curve, names);
    let fitted = scaling.curves.iter().filter_map(|curve| Some((curve, curve.law.as_ref()?)));
    let mut parts: Vec<String> = fitted
        .map(|(curve, found)| format!("{}; {}", measured(curve, names, detail), law(curve, found, detail)))
        .collect();
    parts.extend(scaling.differences.iter().map(|difference| {
        let [first, other] = difference.curves.map(|at| label(&scaling.curves[at]));
        format!("{other} against {first}: {}", laws_differ(difference))
    }));
    let mut lines = Vec::new();
    if !parts.is_empty() {
        lines.push(format!("{head}: {}", parts.join("; ")));
    }
    let mut told: Vec<&NoLaw> = Vec::new();
    for curve in &scaling.curves {
        let Some(reason) = curve.refused.as_ref().filter(|reason| !told.contains(reason)) else { continue };
        told.push(reason);
        let same: Vec<&ScalingCurve> =
            scaling.curves.iter().filter(|other| other.refused.as_ref() == Some(reason)).collect();
        let points: Vec<String> = same.iter().map(|curve| measured(curve, names, detail)).collect();
        lines.push(format!("{head}: no law, because {}; {}", no_law(reason, scaling), points.join("; ")));
    }
    lines
}

/// What tells a curve from the others: the arm as readers know it.
pub(super) fn curve_label(curve: &ScalingCurve, names: &Names<'_>) -> String {
    match curve.of.as_slice() {
        [(factor, level)] if names.factor().as_deref() == Some(factor.as_str()) => names.arm(level),
        levels => names.row(&RowKey { levels: levels.to_vec(), job: String::new() }),
    }
}

/// `law up to 32: 95.4 MiB/s for one, serial share 5.0 % [4.5, 5.5], crosstalk 0.20 % [0.18, 0.22], peak at 22 [21, 23], ceiling 1.86
/// GiB/s`; where room is short without what one does, which is measured, the ceiling, and the intervals but the peak's.
fn law(curve: &ScalingCurve, law: &ScalingLaw, detail: Detail) -> String {
    let is_short = detail <= Detail::Screen;
    let share = |i: Interval, decimals: usize| {
        let [estimate, low, high] =
            [i.estimate, i.low, i.high].map(|end| format!("{:.decimals$}", 100.0 * end));
        let ends = if is_short { String::new() } else { format!(" [{low},{NBSP}{high}]") };
        format!("{estimate}{NBSP}%{ends}")
    };
    // Two digits of crosstalk, however small it is.
    let decimals = digits(100.0 * law.beta.estimate);
    let crosstalk = if law.beta.estimate > 0.0 { share(law.beta, decimals) } else { "none".to_owned() };
    let horizon = 2 * law.last;
    let peak = match law.peak {
        peak if peak.estimate <= f64::from(horizon) => {
            let is_near = peak.high <= f64::from(horizon);
            let high = if is_near { format!("{:.0}", peak.high) } else { format!("beyond{NBSP}{horizon}") };
            format!("peak at {:.0} [{:.0},{NBSP}{high}]", peak.estimate, peak.low)
        }
        _ => format!("no peak up to {horizon}"),
    };
    let unit = |value: f64| format_number(&curve.metric.unit, value).replace(' ', "\u{a0}");
    let ceiling = law.ceiling.filter(|_| !is_short);
    let ceiling = ceiling.map(|ceiling| format!(", ceiling {}", unit(ceiling))).unwrap_or_default();
    let one = if is_short { String::new() } else { format!("{} for one, ", unit(law.gamma.estimate)) };
    let left_out = if curve.points.iter().all(|point| point.fitted) {
        ""
    } else {
        ", as further workers have no processor of their own"
    };
    format!(
        "law up to {}{left_out}: {one}serial share {}, crosstalk {crosstalk}, {peak}{ceiling}",
        law.last,
        share(law.alpha, 1)
    )
}

/// Which of the three parameters differ, and by how much.
fn laws_differ(difference: &ScalingDifference) -> String {
    let of = |name: &String| match name.as_str() {
        "gamma" => {
            let gamma = Some(difference.gamma);
            format!(
                "one worker {} {}",
                change(difference.gamma.estimate, effect_decimals(gamma)),
                interval(gamma)
            )
        }
        "alpha" => format!("serial share {}", points(difference.alpha)),
        _ => format!("crosstalk {}", points(difference.beta)),
    };
    let differs: Vec<String> = difference.differs.iter().map(of).collect();
    if differs.is_empty() { "no parameter of the law differs".to_owned() } else { differs.join(", ") }
}

/// `−0.04 points [−0.06, −0.02]`: a difference of shares with its interval.
fn points(i: Interval) -> String {
    let decimals = digits(100.0 * i.estimate.abs());
    format!("{} points {}", percent(i.estimate, decimals), ends(i, |_| decimals))
}

/// Digits after the point that show two of a number, however small it is; at least one.
fn digits(value: f64) -> usize {
    (1.0 - value.log10().floor()).clamp(1.0, 8.0) as usize
}

/// Why there is no law, as a clause.
fn no_law(reason: &NoLaw, scaling: &Scaling) -> String {
    match reason {
        NoLaw::NoThroughput { metric } => format!("{metric} is not a throughput"),
        NoLaw::FewLevels { levels, of } if levels < of => {
            let processors = scaling.processors.map(|n| n.to_string()).unwrap_or_default();
            format!("{levels} of {of} levels have a processor for each ({processors} here), and it takes 6")
        }
        NoLaw::FewLevels { levels, .. } => format!("it takes 6 levels and there are {levels}"),
        NoLaw::NarrowRange { from, to } => format!("{from} to {to} is less than a factor 4"),
        NoLaw::FewRounds { rounds } => {
            format!("it takes 4 rounds that all levels have, and there are {rounds}")
        }
        NoLaw::NotPositive => "a throughput of 0 has none".to_owned(),
        NoLaw::Misses { residual } => {
            format!("it misses the points by {}, and 10 % is the most", plain_percent(*residual))
        }
        NoLaw::PeakUnknown { low, high } => {
            let end = |end: Option<f64>| end.map_or("∞".to_owned(), |end| format!("{end:.0}"));
            format!("the peak is not known within a factor 2 [{}, {}]", end(*low), end(*high))
        }
    }
}

/// What was measured at each level, or where room is short at the first, the best and the last.
fn measured(curve: &ScalingCurve, names: &Names<'_>, detail: Detail) -> String {
    let scale = Scale::for_column(&curve.metric.unit, curve.points.iter().map(|point| point.mean));
    let best = (0..curve.points.len()).max_by(|a, b| curve.points[*a].mean.total_cmp(&curve.points[*b].mean));
    let last = curve.points.len().saturating_sub(1);
    let points = curve.points.iter().enumerate();
    let told =
        points.filter(|(at, _)| detail > Detail::Screen || *at == 0 || *at == last || Some(*at) == best);
    let told: Vec<String> =
        told.map(|(_, point)| format!("{} at {}", scale.number(point.mean), point.level)).collect();
    let symbol = if scale.symbol.is_empty() { String::new() } else { format!(" in {}", scale.symbol) };
    let label = curve_label(curve, names);
    let label = if label.is_empty() { String::new() } else { format!("{label} ") };
    format!("{label}mean {}{symbol}: {}", curve.metric.name, told.join(", "))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::analyse::ScalingPoint;
    use crate::record::{Metric, Run};
    use crate::units::{Better, Unit};

    /// A run without trials that compares direct.
    pub(in crate::report) fn run() -> Run {
        serde_json::from_value(serde_json::json!({
            "version": 1, "id": null, "name": "", "source": "measured", "state": "finished", "assay_version": "",
            "started_unix_ns": 0, "command_line": [], "seed": 0, "engine": "", "job_text": null, "experiment": null,
            "design": { "factors": [{ "name": "direct", "levels": ["0", "1"] }], "compare": 0, "paired": true, "primary": null,
                "stop": { "max_rounds": 30, "rounds": null, "delta": 0.02, "alpha": 0.05, "exact": false, "time_budget_s": null } },
            "aa": false, "facts": [], "metrics": [], "cells": [], "trials": [], "notes": []
        }))
        .unwrap()
    }

    fn scaling(law: Option<&ScalingLaw>, refused: Option<&NoLaw>) -> Scaling {
        let point = |level: u32| ScalingPoint {
            level,
            n: 8,
            mean: 1e6 * f64::from(level),
            min: 1.0,
            max: 2.0,
            fitted: true,
        };
        let curve = |arm: &str| ScalingCurve {
            of: vec![("direct".to_owned(), arm.to_owned())],
            metric: Metric::new("", "write.bw", Unit::BytesPerSecond, Better::Higher),
            points: [1, 2, 8].map(point).to_vec(),
            law: law.cloned(),
            refused: refused.cloned(),
        };
        Scaling {
            factor: "numjobs".to_owned(),
            row: Vec::new(),
            job: String::new(),
            processors: Some(2),
            curves: vec![curve("0"), curve("1")],
            differences: Vec::new(),
        }
    }

    fn names(run: &Run) -> Names<'_> {
        Names::new(run, "direct")
    }

    #[test]
    fn laws_that_differ_have_digits_and_an_interval() {
        let around =
            |estimate: f64, half: f64| Interval { estimate, low: estimate - half, high: estimate + half };
        let difference = ScalingDifference {
            curves: [0, 1],
            gamma: around(0.0, 0.1),
            alpha: around(-0.0004, 0.0002),
            beta: around(0.000_021, 0.000_011),
            differs: ["alpha", "beta"].map(str::to_owned).to_vec(),
        };
        assert_eq!(
            laws_differ(&difference).replace(NBSP, " "),
            "serial share −0.040 points [−0.060, −0.020], crosstalk +0.0021 points [+0.0010, +0.0032]"
        );
    }

    #[test]
    fn laws_and_refusals_in_words() {
        let run = run();
        let few = NoLaw::FewLevels { levels: 2, of: 3 };
        let told = sentences(&scaling(None, Some(&few)), &names(&run), Detail::Screen);
        assert_eq!(
            told,
            [
                "scaling with numjobs: no law, because 2 of 3 levels have a processor for each (2 here), and it takes 6; direct=0 \
              mean write.bw in KiB/s: 977 at 1, 7812 at 8; direct=1 mean write.bw in KiB/s: 977 at 1, 7812 at 8"
            ]
        );
        let law = ScalingLaw {
            gamma: Interval { estimate: 1e8, low: 9.9e7, high: 1.01e8 },
            alpha: Interval { estimate: 0.05, low: 0.045, high: 0.055 },
            beta: Interval { estimate: 0.002, low: 0.0018, high: 0.0022 },
            peak: Interval { estimate: 21.8, low: 20.6, high: 23.1 },
            ceiling: Some(2e9),
            residual: 0.01,
            n: 8,
            last: 32,
        };
        let told = sentences(&scaling(Some(&law), None), &names(&run), Detail::Screen);
        assert_eq!(
            told[0].replace('\u{a0}', " "),
            "scaling with numjobs: direct=0 mean write.bw in KiB/s: 977 at 1, 7812 at 8; law up to 32: serial share 5.0 %, crosstalk 0.20 %, \
             peak at 22 [21, 23]; direct=1 mean write.bw in KiB/s: 977 at 1, 7812 at 8; law up to 32: serial share 5.0 %, crosstalk 0.20 %, \
             peak at 22 [21, 23]"
        );
        let told = sentences(&scaling(Some(&law), None), &names(&run), Detail::All);
        assert_eq!(
            told[0].replace('\u{a0}', " "),
            "scaling with numjobs: direct=0 mean write.bw in KiB/s: 977 at 1, 1953 at 2, 7812 at 8; law up to 32: 95.4 MiB/s for one, serial share 5.0 % \
             [4.5, 5.5], crosstalk 0.20 % [0.18, 0.22], peak at 22 [21, 23], ceiling 1.86 GiB/s; direct=1 mean write.bw in KiB/s: 977 at 1, \
             1953 at 2, 7812 at 8; law up to 32: 95.4 MiB/s for one, serial share 5.0 % [4.5, 5.5], crosstalk 0.20 % [0.18, 0.22], peak at 22 \
             [21, 23], ceiling 1.86 GiB/s"
        );
        let mut partly = scaling(Some(&law), None);
        partly.curves[0].points[2].fitted = false;
        let told = sentences(&partly, &names(&run), Detail::Screen);
        assert_eq!(
            told[0].matches("law up to 32, as further workers have no processor of their own: ").count(),
            1
        );
        let open = Interval { high: 70.0, ..law.peak };
        let told = sentences(
            &scaling(Some(&ScalingLaw { peak: open, ..law.clone() }), None),
            &names(&run),
            Detail::Screen,
        );
        assert!(told[0].replace('\u{a0}', " ").contains("peak at 22 [21, beyond 64]"), "{told:?}");
        let far = ScalingLaw { peak: Interval { estimate: 500.0, low: 90.0, high: f64::INFINITY }, ..law };
        assert!(
            sentences(&scaling(Some(&far), None), &names(&run), Detail::Screen)[0]
                .contains("no peak up to 64")
        );
    }
}
