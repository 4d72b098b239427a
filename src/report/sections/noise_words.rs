//! The noise floor in words.
//!
//! Enters: a run and what A/A runs of it found. Leaves: a sentence, or the hint how to measure it.

use crate::analyse::{Analysis, Role};
use crate::record::{Factor, Run, Source};
use crate::report::words::{NBSP, count, p_equals, plain_percent};

/// What shows when nothing differs, or how to learn it; `None` for results that assay did not measure.
pub(super) fn noise(run: &Run, analysis: &Analysis) -> Option<String> {
    let Some(floor) = &analysis.noise_floor else {
        let hint = run.source == Source::Measured && !run.aa;
        return hint.then(|| {
            "noise floor unknown: the same command with --aa measures what shows here when nothing differs".to_owned()
        });
    };
    let whose =
        floor.run.map_or_else(|| "noise floor".to_owned(), |id| format!("noise floor (A/A run {id})"));
    let together = match floor.pooled_runs {
        0 | 1 => String::new(),
        runs => format!(", {runs}{NBSP}A/A runs together"),
    };
    let mut text = format!(
        "{whose}: {}{} against itself spreads by {} from round to round ({} to {}{together}), interval ±{NBSP}{}; \
         the smallest effect that {} would show{} is {}",
        floor.metric.name,
        baseline(run),
        plain_percent(floor.s_d),
        plain_percent(floor.s_d_low),
        plain_percent(floor.s_d_high),
        plain_percent(floor.half_width),
        count(u64::from(floor.rounds), "round"),
        if deciding(analysis) > 1 { " in one comparison alone" } else { "" },
        plain_percent(floor.smallest_effect)
    );
    if floor.aa_runs > 0 {
        text.push_str(&format!(
            "; {} of {} claimed a difference (at most 5{NBSP}% should; binomial {})",
            floor.aa_claims,
            count(u64::from(floor.aa_runs), "A/A run"),
            p_equals(floor.aa_p)
        ));
    }
    Some(text)
}

/// ` of bs=4k, direct=0`: an A/A run measures the baseline, and no other row.
fn baseline(run: &Run) -> String {
    let first = |factor: &Factor| Some(format!("{}={}", factor.name, factor.levels.first()?));
    let levels: Vec<String> = run.design.factors.iter().filter(|_| !run.aa).filter_map(first).collect();
    if levels.is_empty() { String::new() } else { format!(" of {}", levels.join(", ")) }
}

fn deciding(analysis: &Analysis) -> usize {
    analysis.comparisons.iter().filter(|comparison| comparison.role == Role::Primary).count()
}
