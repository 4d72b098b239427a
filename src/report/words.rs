//! How numbers, arms and rows are worded, the same in every format.
//!
//! Enters: values and names. Leaves: words in UTF-8; lkml spells them in ASCII afterwards. What a verdict is called stands in
//! [`super::verdict_words`].

use super::layout::{one_line, width};
use crate::analyse::{ArmSummary, Comparison, Interval, RowKey};
use crate::record::{Factor, Run, Source};
use crate::units::{Better, Scale, Unit, counted};

/// Keeps a number and what belongs to it on one line; text and lkml print a blank.
pub(super) const NBSP: char = '\u{a0}';

/// `1 round`, `8 rounds`.
pub(super) fn count(n: u64, what: &str) -> String {
    counted(n, what).replacen(' ', &NBSP.to_string(), 1)
}

/// Names of arms and rows as the reader knows them.
pub(super) struct Names<'a> {
    factor: &'a str,
    bare: bool,
    /// The levels of a file's path say by themselves what they are.
    alone: bool,
    /// Factors of one level: the head of a report has them, and no row.
    fixed: Vec<String>,
    /// Whether an arm is compared with itself.
    pub(super) aa: bool,
}

impl<'a> Names<'a> {
    /// Imported files have no factor of their own: their labels stand alone.
    pub(super) fn new(run: &Run, factor: &'a str) -> Self {
        let imported = run.source != Source::Measured;
        let bare =
            factor.is_empty() || imported && matches!(factor, "arm" | "arms" | "file" | "files" | "label");
        let mut levels =
            run.design.factors.iter().filter(|known| known.name == factor).flat_map(|f| &f.levels);
        let alone = is_path(factor) && levels.all(|level| says_what_it_is(level));
        let one_level = run.design.factors.iter().filter(|known| known.levels.len() == 1);
        let fixed = one_level.map(|known| known.name.clone()).filter(|name| name != factor).collect();
        Names { factor, bare: bare || run.aa, alone, fixed, aa: run.aa }
    }

    /// Names of the levels of a factor, for tests of sections.
    #[cfg(test)]
    pub(super) fn of_factor(factor: &'a str) -> Self {
        Names { factor, bare: false, alone: false, fixed: Vec::new(), aa: false }
    }

    /// What varies, where arms are called after it.
    pub(super) fn factor(&self) -> Option<String> {
        (!self.bare).then(|| one_line(self.factor))
    }

    /// The place of the compared factor in a run's design, which need not be the one that the run was made to compare.
    pub(super) fn compared(&self, run: &Run) -> usize {
        compared(run, self.factor)
    }

    /// `direct=1`, or the label alone.
    pub(super) fn arm(&self, label: &str) -> String {
        let label = one_line(label);
        if self.bare || self.alone { label } else { format!("{}={label}", one_line(short_key(self.factor))) }
    }

    /// `bs=4k, rw=read, job randwrite1`, without what all rows have; empty when the run has one row only.
    pub(super) fn row(&self, row: &RowKey) -> String {
        let levels = row.levels.iter().filter(|(factor, _)| !self.is_fixed(factor)).cloned().collect();
        row_label(&RowKey { levels, job: row.job.clone() })
    }

    /// The row before what is said of it: `bs=4k, rw=read: `, or nothing.
    pub(super) fn before(&self, row: &RowKey) -> String {
        let row = self.row(row);
        if row.is_empty() { row } else { format!("{row}: ") }
    }

    /// The same for pictures, where room is short: `bs=4k fsync=0`.
    pub(super) fn short_row(&self, row: &RowKey) -> String {
        self.row(row).replace(", ", " ")
    }

    /// Whether all rows have the same level of a factor.
    pub(super) fn is_fixed(&self, factor: &str) -> bool {
        self.fixed.iter().any(|fixed| fixed == factor)
    }

    /// `direct=1 against direct=0`, or `write back against write through (write_cache)`.
    pub(super) fn against(&self, candidate: &str, baseline: &str) -> String {
        let both = format!("{} against {}", self.arm(candidate), self.arm(baseline));
        if self.alone && !self.bare { format!("{both} ({})", one_line(short_key(self.factor))) } else { both }
    }
}

/// What all rows have: `fs=xfs, where=zram`, the factors of one level but for the one that is compared.
pub(super) fn in_all_rows(run: &Run, factor: &str) -> Option<String> {
    let is_fixed = |known: &&Factor| known.levels.len() == 1 && known.name != factor;
    let fixed = run.design.factors.iter().filter(is_fixed);
    let told: Vec<String> =
        fixed.map(|known| one_line(&format!("{}={}", short_key(&known.name), known.levels[0]))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// The place of a factor in a run's design; where it has none of this name, that of the one it was made to compare.
pub(super) fn compared(run: &Run, factor: &str) -> usize {
    run.design.factors.iter().position(|known| known.name == factor).unwrap_or(run.design.compare)
}

/// Whether a factor is a file below /sys or /proc/sys.
fn is_path(factor: &str) -> bool {
    factor.starts_with("sysfs:")
}

/// The key of a factor without the way to it: `write_cache` of `sysfs:queue/write_cache`.
pub(super) fn short_key(factor: &str) -> &str {
    if is_path(factor) { factor.rsplit(['/', ':']).next().unwrap_or(factor) } else { factor }
}

/// Whether a level needs no key to be understood: `write back`, not `0` or `none`.
fn says_what_it_is(level: &str) -> bool {
    const NOTHING: [&str; 12] = [
        "on", "off", "yes", "no", "true", "false", "none", "default", "always", "never", "enabled",
        "disabled",
    ];
    level.contains(char::is_alphabetic) && level.len() > 2 && !NOTHING.contains(&level)
}

/// What heads two columns: the arms, both without their factor when either would be long.
pub(super) fn heads_of(names: &Names<'_>, comparison: &Comparison) -> [String; 2] {
    const MOST: usize = 12;
    let labels = [&comparison.baseline.arm, &comparison.candidate.arm];
    let full = labels.map(|label| names.arm(label));
    if full.iter().any(|head| width(head) > MOST) { labels.map(|label| one_line(label)) } else { full }
}

/// `bs=4k, rw=read, job randwrite1`, with every factor there is.
pub(super) fn row_label(row: &RowKey) -> String {
    let mut parts: Vec<String> =
        row.levels.iter().map(|(factor, level)| format!("{}={level}", short_key(factor))).collect();
    if !row.job.is_empty() {
        parts.push(format!("job {}", row.job));
    }
    one_line(&parts.join(", "))
}

/// A ratio − 1 in percent with its sign, `−31.2`; a dash when it is not a number.
pub(super) fn percent(ratio: f64, decimals: usize) -> String {
    if ratio.is_nan() {
        return "-".to_owned();
    }
    if ratio.is_infinite() {
        return if ratio > 0.0 { "+∞".to_owned() } else { "−∞".to_owned() };
    }
    let value = ratio * 100.0;
    let digits = if value.abs() >= 99_999.5 {
        format!("{:.1e}", value.abs())
    } else if value.abs() >= 999.95 {
        format!("{:.0}", value.abs())
    } else {
        format!("{:.decimals$}", value.abs())
    };
    let zero = digits.chars().all(|c| c == '0' || c == '.');
    let sign = if zero {
        ""
    } else if value < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{digits}")
}

/// A ratio − 1 from which on a change is told as a factor: percents of four digits and more are not read as what they are.
const MANY_TIMES: f64 = 9.0;

fn is_many_times(ratio: f64) -> bool {
    ratio.is_finite() && ratio >= MANY_TIMES
}

/// `×314` of a ratio − 1.
fn factor(ratio: f64) -> String {
    match ratio + 1.0 {
        times if times.is_nan() => "-".to_owned(),
        times if times.is_infinite() => "×∞".to_owned(),
        times if times >= 99_999.5 => format!("×{times:.1e}"),
        times if times > 0.0 && times < 0.005 => "<×0.01".to_owned(),
        times if times >= 99.95 => format!("×{times:.0}"),
        times if times >= 9.995 => format!("×{times:.1}"),
        // Near 1 the digits decide on which side of it, or of δ, an end is.
        times if (0.8..1.25).contains(&times) => format!("×{times:.4}"),
        times => format!("×{times:.2}"),
    }
}

/// A ratio − 1 in a column of percents: `−31.2`, or `×314` of a large one.
pub(super) fn change_cell(ratio: f64, decimals: usize) -> String {
    if is_many_times(ratio) { factor(ratio) } else { percent(ratio, decimals) }
}

/// The same with its unit: `−31.2 %`, or `×314`.
pub(super) fn change(ratio: f64, decimals: usize) -> String {
    if is_many_times(ratio) { factor(ratio) } else { format!("{}{NBSP}%", percent(ratio, decimals)) }
}

/// The change shown for a comparison, in a column of percents.
pub(super) fn shown_cell(c: &Comparison) -> String {
    let (ratio, decimals) = (shown_change(c), effect_decimals(c.effect));
    // A share of the baseline's size is no ratio of two values.
    if c.difference.is_some() { percent(ratio, decimals) } else { change_cell(ratio, decimals) }
}

/// Digits after the point that an effect deserves: one, or two when the interval is narrower than 0.2 points.
pub(super) fn effect_decimals(effect: Option<Interval>) -> usize {
    match effect {
        Some(interval) if interval.high - interval.low < 0.002 => 2,
        _ => 1,
    }
}

/// `[−33.0, −29.1]`, or nothing.
pub(super) fn interval(effect: Option<Interval>) -> String {
    beside(None, effect, true)
}

/// The interval of a comparison: an end that is not δ does not read like δ, so that it says the same as the verdict.
pub(super) fn interval_of(c: &Comparison) -> String {
    beside(Some(c.delta), c.effect, c.difference.is_none())
}

/// The same of a comparison's interval as the only one that decides.
pub(super) fn interval_alone(c: &Comparison) -> String {
    beside(None, c.alone, c.difference.is_none())
}

/// The same of an effect that is a ratio.
pub(super) fn interval_beside(delta: f64, effect: Option<Interval>) -> String {
    beside(Some(delta), effect, true)
}

/// Most digits behind the point that tell an end from δ.
const MOST_DECIMALS: usize = 4;

/// Digits with which an end, a ratio − 1, reads as within δ or beyond it as it is. δ is a ratio, whose inverse is the band's other end:
/// what lies between that and −δ is beyond, and no digits say so.
fn decimals_beside(delta: f64, end: f64, decimals: usize) -> usize {
    let printed = |decimals: usize| {
        let ten = 10_f64.powi(decimals as i32);
        (end.abs() * 100.0 * ten).round() / ten - delta * 100.0
    };
    let is_delta = |rest: f64| rest.abs() < 1e-9;
    let beyond = end > delta || end < -delta / (1.0 + delta);
    if !is_delta(printed(decimals)) {
        return decimals;
    }
    let tells = |at: &usize| !is_delta(printed(*at)) && (printed(*at) > 0.0) == beyond;
    (decimals + 1..=MOST_DECIMALS).find(tells).unwrap_or(decimals)
}

fn beside(delta: Option<f64>, effect: Option<Interval>, is_ratio: bool) -> String {
    match effect {
        Some(i) if is_ratio && is_many_times(i.estimate) => {
            format!("[{},{NBSP}{}]", factor(i.low), factor(i.high))
        }
        Some(i) if i.low.is_finite() || i.high.is_finite() => {
            let decimals = effect_decimals(effect);
            let digits = |end: f64| delta.map_or(decimals, |delta| decimals_beside(delta, end, decimals));
            ends(i, digits)
        }
        _ => String::new(),
    }
}

/// From this ratio − 1 on the upper end of an interval whose estimate is no large factor says no more than that there is no end.
const NO_END: f64 = 99.0;
/// What is printed as −100 % though something is left.
const NEARLY_NOTHING: f64 = -0.9995;

/// An end that says how little is known: `<−99.9`, `>+9900`.
fn far_end(end: f64) -> Option<String> {
    match end {
        _ if end > -1.0 && end < NEARLY_NOTHING => Some("<−99.9".to_owned()),
        _ if end.is_finite() && end > NO_END => Some(">+9900".to_owned()),
        _ => None,
    }
}

/// `[−33.0, −29.1]`, each end with so many digits after the point.
pub(super) fn ends(i: Interval, digits: impl Fn(f64) -> usize) -> String {
    let is_zero = |text: &str| text.chars().all(|c| matches!(c, '0' | '.'));
    // Where both ends are far they say how far.
    let says_nothing = i.low <= NO_END && i.high >= NEARLY_NOTHING;
    let far = |end: f64| far_end(end).filter(|_| says_nothing);
    let end = |end: f64| match far(end).unwrap_or_else(|| percent(end, digits(end))) {
        // An end that is beside 0 must not read like one that holds it.
        zero if is_zero(&zero) && i.low > 0.0 && end == i.low => format!(">{zero}"),
        zero if is_zero(&zero) && i.high < 0.0 && end == i.high => format!("<{zero}"),
        other => other,
    };
    format!("[{},{NBSP}{}]", end(i.low), end(i.high))
}

/// A plain share or δ in percent without sign and without needless digits: `2 %`, `0.5 %`.
pub(super) fn plain_percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    let text = if value.abs() >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") };
    let trimmed = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}{NBSP}%", if trimmed.is_empty() || trimmed == "-" { "0" } else { trimmed })
}

/// p as people print it: three digits, or `<0.001`.
pub(super) fn p_value(p: f64) -> String {
    if !p.is_finite() {
        "-".to_owned()
    } else if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

/// `p = 0.004`, `p < 0.001`.
pub(super) fn p_equals(p: f64) -> String {
    let p = p_value(p);
    match p.strip_prefix('<') {
        Some(bound) => format!("p{NBSP}<{NBSP}{bound}"),
        None => format!("p{NBSP}={NBSP}{p}"),
    }
}

/// A number of a table column; one that would be too wide is written with an exponent.
pub(super) fn cell_number(scale: &Scale, value: f64) -> String {
    let plain = scale.number(value);
    if plain.len() > 10 && value.is_finite() { format!("{:.3e}", value / scale.divisor) } else { plain }
}

/// Whether the medians of both arms are printed as one number; what has no median is not.
pub(super) fn printed_alike(c: &Comparison) -> bool {
    let (a, b) = (c.baseline.median, c.candidate.median);
    let scale = Scale::for_column(&c.metric.unit, [a, b]);
    a.is_finite() && b.is_finite() && cell_number(&scale, a) == cell_number(&scale, b)
}

/// Whether neither arm has any of it, so that there is no change of it either.
pub(super) fn is_nothing(c: &Comparison) -> bool {
    c.baseline.median == 0.0 && c.candidate.median == 0.0
}

/// The change shown for a comparison: that of the typical trial where it is estimated, else the change of the mean.
pub(super) fn shown_change(comparison: &Comparison) -> f64 {
    let typical = comparison.effect.map(|effect| effect.estimate).or(comparison.typical);
    typical.unwrap_or(comparison.mean_change.estimate)
}

/// Whether the change of a comparison can be told as a share. Where some values are 0 and others are not, the typical difference as a
/// share of a median says what the medians do not.
pub(super) fn has_share(c: &Comparison) -> bool {
    let zeros = |arm: &ArmSummary| arm.values.iter().filter(|(.., value)| *value == 0.0).count();
    let [base, cand] = [&c.baseline, &c.candidate].map(zeros);
    let is_mixed = base > 0 || cand > 0 && cand < c.candidate.values.len();
    c.difference.is_none() || c.effect.is_some() && !is_mixed
}

/// A step relative to the value, `10 %`.
pub(super) fn step_size(step: f64) -> String {
    if step.is_finite() { plain_percent(step) } else { format!("more than 100{NBSP}%") }
}

/// `higher is better`.
pub(super) fn direction(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
    }
}

/// The scale's symbol for captions; a plain count has none.
pub(super) fn unit_words(scale: &Scale, unit: &Unit) -> String {
    match (unit, scale.symbol.as_str()) {
        (_, "") => String::new(),
        (_, symbol) if symbol.starts_with("per ") => format!(" {symbol}"),
        (Unit::Count, "k") => " in thousands".to_owned(),
        (Unit::Count, "M") => " in millions".to_owned(),
        (Unit::Count, prefix) => format!(" in {prefix}"),
        (_, symbol) => format!(" in {symbol}"),
    }
}

#[cfg(test)]
mod tests;
