//! `$ASSAY_METRICS`: the lines in which a hook gives metrics back.
//!
//! Enters: the file. Leaves: samples, and notes about lines that are none. It must not know who wrote them.

use std::path::Path;

use crate::record::{Better, Sample, Unit};
use crate::sys::regular_file;

/// Names the file in which a hook may leave metrics.
pub(super) const METRICS_VARIABLE: &str = "ASSAY_METRICS";
/// What the metrics of hooks begin with.
const PREFIX: &str = "hook.";
/// Bytes of that file.
const MOST_BYTES: u64 = 64 << 10;
/// Metrics that one hook may leave.
const MOST_METRICS: usize = 64;
/// Lines without a metric that are told one by one, and letters of each.
const MOST_TOLD: usize = 5;
const MOST_LETTERS: usize = 60;

/// Samples and notes.
pub(super) type Metrics = (Vec<Sample>, Vec<String>);

/// The metrics in a hook's file. A hook that removed the file gives none.
pub(super) fn read(which: &str, place: &Path) -> Metrics {
    if std::fs::symlink_metadata(place).is_err() {
        return Metrics::default();
    }
    match regular_file::read_text(place, MOST_BYTES) {
        Ok(text) => parse(which, &text),
        Err(error) => {
            let note = format!("the {which} hook's {METRICS_VARIABLE} is not read: {error}");
            (Vec::new(), vec![note])
        }
    }
}

/// Lines of `NAME=VALUE[UNIT][:higher|lower]`; of a name that comes twice the last one counts.
pub(super) fn parse(which: &str, text: &str) -> Metrics {
    let (mut samples, mut wrong) = (Vec::<Sample>::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match sample(line) {
            Ok(sample) => {
                samples.retain(|known| known.metric.name != sample.metric.name);
                samples.push(sample);
            }
            Err(why) => {
                let shown: String = line.chars().take(MOST_LETTERS).collect();
                wrong.push(format!(
                    "line {} of the {which} hook's {METRICS_VARIABLE} gives no metric: {why}: {shown}",
                    number + 1
                ));
            }
        }
    }
    if samples.len() > MOST_METRICS {
        let extra = samples.len() - MOST_METRICS;
        samples.truncate(MOST_METRICS);
        wrong.insert(
            0,
            format!("the {which} hook gives more than {MOST_METRICS} metrics: {extra} are left out"),
        );
    }
    let untold = wrong.len().saturating_sub(MOST_TOLD);
    let mut notes: Vec<String> = wrong.into_iter().take(MOST_TOLD).collect();
    if untold > 0 {
        notes.push(format!("{untold} more lines of the {which} hook's {METRICS_VARIABLE} give no metric"));
    }
    (samples, notes)
}

/// `commit_ms=12.5ms` as the metric `hook.commit_ms`. Without a direction that of the unit, or of a count the one that its name
/// tells: more of a rate is better, less of anything else.
fn sample(line: &str) -> Result<Sample, &'static str> {
    let (name, rest) = line.split_once('=').ok_or("write NAME=VALUE[UNIT][:higher|lower]")?;
    let (rest, better) = match rest.trim().rsplit_once(':') {
        None => (rest, None),
        Some((rest, "higher")) => (rest, Some(Better::Higher)),
        Some((rest, "lower")) => (rest, Some(Better::Lower)),
        Some(_) => return Err("the direction is higher or lower"),
    };
    let (name, rest) = (name.trim(), rest.trim());
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name.is_empty() || name.len() > MOST_LETTERS || !name.chars().all(plain) {
        return Err("a name has letters, digits, '.', '_' and '-', 60 at most");
    }
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && !"+-.eE".contains(letter));
    // `5e` is not a number, and no unit begins like this.
    let (number, unit) = rest.split_at(end.unwrap_or(rest.len()));
    let value: f64 = number.parse().map_err(|_| "the value is not a number")?;
    let value = if value.is_finite() { value } else { return Err("the value is not a number") };
    match Unit::parse(unit.trim()) {
        (Unit::Other(_), _) => Err("the unit is not known"),
        (unit, factor) => {
            let mut sample = Sample::new("", &format!("{PREFIX}{name}"), unit, value * factor);
            let implied = (sample.metric.unit == Unit::Count).then(|| Better::implied(name)).flatten();
            sample.metric.better = better.or(implied).unwrap_or(sample.metric.better);
            Ok(sample)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_metrics_with_base_units() {
        let (samples, notes) =
            parse("after", "# a comment\n\nfrag=3\n frag = 4 \ncommit.max=1.5ms\nrate=2e3 MiB/s\nx=-1%\n");
        let told: Vec<(&str, f64, &Unit)> =
            samples.iter().map(|s| (s.metric.name.as_str(), s.value, &s.metric.unit)).collect();
        let expected = [
            ("hook.frag", 4.0, &Unit::Count),
            ("hook.commit.max", 1.5e6, &Unit::Nanoseconds),
            ("hook.rate", 2e3 * 1_048_576.0, &Unit::BytesPerSecond),
            ("hook.x", -1.0, &Unit::Percent),
        ];
        assert_eq!(told, expected);
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn a_line_that_is_not_understood_is_a_note() {
        for (line, why) in [
            ("hello", "write NAME=VALUE[UNIT]"),
            ("=3", "a name has letters"),
            ("a b=3", "a name has letters"),
            ("a=", "the value is not a number"),
            ("a=nan", "the value is not a number"),
            ("a=3:up", "the direction is higher or lower"),
            ("a=1e999", "the value is not a number"),
            ("a=3 parsecs", "the unit is not known"),
        ] {
            let (samples, notes) = parse("before", &format!("{line}\n"));
            assert!(samples.is_empty(), "{line}");
            let start = "line 1 of the before hook's ASSAY_METRICS gives no metric: ";
            assert!(notes[0].starts_with(&format!("{start}{why}")), "{line}: {:?}", notes);
        }
        let (_, notes) = parse("before", &"nothing\n".repeat(20));
        assert_eq!(notes.len(), MOST_TOLD + 1);
        assert!(notes[MOST_TOLD].starts_with("15 more lines"), "{:?}", notes);
        let many: String = (0..70).map(|n| format!("m{n}=1\n")).collect();
        let (samples, notes) = parse("before", &many);
        assert_eq!((samples.len(), notes.len()), (MOST_METRICS, 1));
    }

    #[test]
    fn a_hook_that_replaced_its_file_gives_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("metrics");
        assert_eq!(read("after", &place), Metrics::default());
        std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
        let (samples, notes) = read("after", &place);
        assert!(samples.is_empty() && notes[0].contains("is not read"), "{notes:?}");
    }

    #[test]
    fn a_direction_is_that_of_the_line_or_of_the_unit() {
        let (samples, notes) = parse("after", "tps=850:higher\nlost=3:lower\nrate=1 MiB/s\nfrag=3\n");
        let directions: Vec<Better> = samples.iter().map(|sample| sample.metric.better).collect();
        assert_eq!(directions, [Better::Higher, Better::Lower, Better::Higher, Better::Lower]);
        assert_eq!(notes, Vec::<String>::new());
    }
}
