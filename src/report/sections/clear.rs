//! What differs clearly where the metric that decides is undecided: counts decide where times cannot.
//!
//! Enters: the comparisons of pairs without a verdict. Leaves: a sentence a pair, behind the verdicts. It must not judge: a count is told
//! only where analyse claims a difference beyond δ.

use super::Material;
use crate::analyse::{Caveat, Comparison, Role, Unlisted, Verdict};
use crate::report::comparisons::{arms_of, group, of_role};
use crate::report::format::Detail;
use crate::report::scale_of_medians::scale_of;
use crate::report::section::{Block, Heading, Section};
use crate::report::verdict_words::is_beyond_delta;
use crate::report::words::{NBSP, Names, printed_alike};
use crate::units::{Better, Unit};

/// Counts told of a pair.
const MOST_COUNTS: usize = 3;
/// Pairs that a screen has room for.
const MOST_PAIRS: usize = 3;

const OP: &str = "an operation";
const TRIAL: &str = "a trial";

/// Metrics that count one thing, the one that says it best first, each with what it is counted for.
struct Kind {
    /// What is counted.
    noun: &'static str,
    /// Names of metrics; one that ends in a point is of places, of which the one that differs most is told.
    metrics: &'static [(&'static str, &'static str)],
}

/// In the order in which they are told, one of each.
const KINDS: [Kind; 7] = [
    Kind {
        noun: "flushes",
        metrics: &[
            // Of several sections one may sync, and the operations are those of all.
            ("dev.flushes_per_sync", "a sync"),
            ("dev.flushes_per_op", OP),
            ("blocks.flushes_per_op", OP),
            ("dev.flushes", TRIAL),
            ("blocks.flushes", TRIAL),
        ],
    },
    Kind { noun: "FUA writes", metrics: &[("blocks.fua_writes_per_op", OP), ("blocks.fua_writes", TRIAL)] },
    Kind { noun: "waits at", metrics: &[("waits.waits_at_per_op.", OP), ("waits.waits_at.", TRIAL)] },
    Kind { noun: "waits for", metrics: &[("locks.waits_at_per_op.", OP), ("locks.waits_at.", TRIAL)] },
    Kind {
        noun: "bytes written by the device",
        metrics: &[
            ("dev.write_bytes_per_byte", "for each byte"),
            ("dev.write_bytes_per_op", OP),
            ("dev.write_bytes", TRIAL),
        ],
    },
    Kind {
        noun: "bytes read by the device",
        metrics: &[
            ("dev.read_bytes_per_byte", "for each byte"),
            ("dev.read_bytes_per_op", OP),
            ("dev.read_bytes", TRIAL),
        ],
    },
    Kind { noun: "", metrics: &[("extents.", "")] },
];

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { analysis, options, names, primary, .. } = material;
    let pairs = group(primary, |c| (&c.row.levels, arms_of(c)));
    let several = pairs.len() > 1;
    let in_turn = !analysis.caveats.contains(&Caveat::Sequential);
    let undecided = pairs.into_iter().filter(|pair| pair.iter().all(|c| is_undecided(c)));
    let mut told: Vec<String> = undecided
        .filter_map(|pair| {
            let decides = *pair.first()?;
            let of_pair = |c: &&Comparison| {
                c.row.levels == decides.row.levels && arms_of(c) == arms_of(decides) && is_clear(c)
            };
            // What a device did in one hour and in another may be its neighbours'.
            let is_own = |c: &&Comparison| in_turn || !c.metric.name.starts_with("dev.");
            let clear: Vec<&Comparison> =
                of_role(analysis, Role::Exploratory).filter(of_pair).filter(is_own).collect();
            sentence(&clear, several.then_some(decides), names)
        })
        .collect();
    let hidden = told.len() > MOST_PAIRS && options.detail == Detail::Screen;
    if hidden {
        told.truncate(MOST_PAIRS);
    }
    let remarks = (!told.is_empty()).then_some(Block::Remarks(told));
    let withheld = hidden.then_some(Block::Withheld("what is clear of other pairs"));
    Section::new("clear", Heading::None, remarks.into_iter().chain(withheld).collect())
}

/// Whether rounds were judged and showed nothing.
pub(super) fn is_undecided(c: &Comparison) -> bool {
    matches!(c.verdict, Verdict::Undecided { .. })
}

/// Whether a count differs beyond δ, is a count of work that can be compared, and its medians show it.
fn is_clear(c: &Comparison) -> bool {
    let counts = !matches!(c.unlisted, Some(Unlisted::Form { .. } | Unlisted::Few));
    let up = c.candidate.median > c.baseline.median;
    let agrees = c.is_better().is_some_and(|good| up == (good == (c.metric.better == Better::Higher)));
    is_beyond_delta(&c.verdict) && counts && agrees && !printed_alike(c)
}

/// `clear all the same: 1.00 more flushes an operation (1.86 → 2.87)`.
fn sentence(clear: &[&Comparison], pair: Option<&Comparison>, names: &Names<'_>) -> Option<String> {
    let told: Vec<String> = KINDS.iter().filter_map(|kind| first_of(kind, clear)).take(MOST_COUNTS).collect();
    let of = pair.map_or_else(String::new, |c| {
        format!(
            "{}{} against {}: ",
            names.before(&c.row),
            names.arm(&c.candidate.arm),
            names.arm(&c.baseline.arm)
        )
    });
    (!told.is_empty()).then(|| format!("{of}clear all the same: {}", told.join(", ")))
}

/// The metric that says it best, in words.
fn first_of(kind: &Kind, clear: &[&Comparison]) -> Option<String> {
    kind.metrics.iter().find_map(|(name, per)| {
        let is_its = |c: &&&Comparison| match name.ends_with('.') {
            true => c.metric.name.starts_with(name),
            false => c.metric.name == *name,
        };
        let apart = |c: &Comparison| (c.candidate.median - c.baseline.median).abs();
        let most = clear.iter().filter(is_its).max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
        let place = most.metric.name.strip_prefix(name).unwrap_or_default();
        Some(words(most, kind.noun, place, per))
    })
}

fn words(c: &Comparison, noun: &str, place: &str, per: &str) -> String {
    let scale = scale_of(&[c]);
    let [base, cand] = [c.baseline.median, c.candidate.median];
    let is_of_many = scale.symbol.starts_with("per ");
    let unit =
        if is_of_many || scale.symbol.is_empty() { String::new() } else { format!("{NBSP}{}", scale.symbol) };
    let medians = format!("{}{NBSP}→{NBSP}{}{unit}", scale.number(base), scale.number(cand));
    if noun.is_empty() {
        return format!("{} {medians}", c.metric.name);
    }
    let word = match (cand > base, &c.metric.unit) {
        (true, _) => "more",
        (false, Unit::Bytes) => "less",
        (false, _) => "fewer",
    };
    let noun = if c.metric.unit == Unit::Bytes { noun.trim_start_matches("bytes ") } else { noun };
    let what = if place.is_empty() { noun.to_owned() } else { format!("{noun} {place}") };
    // Where there is room words are whole.
    let per = if is_of_many { scale.symbol.replace("ops", "operations") } else { per.to_owned() };
    format!("{}{unit} {word} {what} {per} ({medians})", scale.number((cand - base).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::format::Options;
    use crate::report::operation_times::tests::observed;
    use crate::report::section_tests::{made_up, remarks};

    fn counted(name: &str, unit: Unit, medians: [f64; 2]) -> Comparison {
        let mut c = observed(name, medians);
        (c.metric.unit, c.metric.better) = (unit, Better::Lower);
        let good = medians[1] < medians[0];
        c.verdict = match good {
            true => Verdict::Faster { beyond_delta: true },
            false => Verdict::Slower { beyond_delta: true },
        };
        c
    }

    /// What is told beside a primary with this verdict.
    fn told(verdict: Verdict, of: &[Comparison]) -> String {
        let (run, mut analysis) = made_up();
        analysis.comparisons[0].verdict = verdict;
        analysis.comparisons.extend(of.iter().cloned());
        remarks(&section(&mut Material::new(&run, &analysis, None, &Options::default())))
    }

    #[test]
    fn counts_that_differ_stand_behind_an_undecided_verdict() {
        let unclear = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
        let flushes = counted("blocks.flushes_per_op", Unit::Count, [1.86, 2.87]);
        let all = [
            counted("dev.write_bytes", Unit::Bytes, [2.5 * 1048576.0, 2.75 * 1048576.0]),
            counted("waits.waits_at.xfs_file_fsync", Unit::Count, [0.0, 510.0]),
            counted("waits.waits_at.xlog_force_lsn", Unit::Count, [280.0, 174.0]),
            flushes.clone(),
            counted("extents.extents", Unit::Count, [1.0, 4.0]),
        ];
        assert_eq!(
            told(unclear.clone(), &all),
            "clear all the same: 1.01 more flushes an operation (1.86 → 2.87), 510 more waits at xfs_file_fsync a trial (0 → \
             510), 0.25 MiB more written by the device a trial (2.50 → 2.75 MiB)"
        );
        assert_eq!(told(Verdict::Slower { beyond_delta: true }, &all), "", "Why has it");
        let maybe = Comparison { verdict: Verdict::Slower { beyond_delta: false }, ..flushes.clone() };
        assert_eq!(told(unclear.clone(), &[maybe]), "", "it may be less than δ");
        let form = Unlisted::Form { metric: "dev.flushes_per_op".to_owned() };
        let more_work =
            Comparison { unlisted: Some(form), ..counted("dev.flushes", Unit::Count, [9.0, 19.0]) };
        assert_eq!(told(unclear, &[more_work]), "", "trials did different amounts of work");
    }
}
