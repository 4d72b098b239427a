//! How near the arms came to what this machine can do, where a probe of it is stored.
//!
//! Enters: the limits that analyse found. Leaves: a line an arm and ceiling. It must not judge: what is a cause is analyse's.

use jiff::Timestamp;

use super::Material;
use crate::analyse::{Limit, LimitKind};
use crate::report::format::Detail;
use crate::report::section::{Block, Heading, Line, List, Section};
use crate::report::words::Names;
use crate::units::format_number;

/// The section: in full only where all is asked for.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { analysis, options, names, .. } = material;
    let lines = || analysis.limits.iter().map(|limit| Line::from(line(limit, names))).collect();
    let blocks = match options.detail {
        _ if analysis.limits.is_empty() => Vec::new(),
        Detail::All => {
            let caption = Some("beside what this machine can do (assay probe)".to_owned());
            vec![Block::List(List { caption, lines: lines() })]
        }
        _ => vec![Block::Withheld("how near it is to what this machine can do")],
    };
    Section::new("limits", Heading::None, blocks)
}

fn line(limit: &Limit, names: &Names<'_>) -> String {
    let number = |value: f64| format_number(&limit.unit, value).replace(' ', "\u{a0}");
    let row = names.row(&limit.row);
    let row = if row.is_empty() { row } else { format!("{row}, ") };
    let (ceiling, at) = match limit.kind {
        LimitKind::DeviceReads => ("device reads at saturation in 4\u{a0}KiB", "at depth"),
        LimitKind::DeviceWrites => ("device writes at saturation in 4\u{a0}KiB", "at depth"),
        LimitKind::CopiesOut => ("processors copy out of memory", "threads:"),
        LimitKind::CopiesIn => ("processors copy into memory", "threads:"),
        LimitKind::Fsync => return fsync(limit, &row, names),
    };
    let cause = match limit.is_cause {
        true if (limit.share * 100.0).round() > 100.0 => {
            "; this is above what the probe measured, and the limit: the workers' time agrees"
        }
        true => "; this is the limit: the workers' time agrees",
        false => "",
    };
    format!(
        "{row}{}: {} is {:.0}\u{a0}% of what this machine's {ceiling} ({}, {at} {}; probe of {}){cause}",
        names.arm(&limit.arm),
        number(limit.value),
        limit.share * 100.0,
        number(limit.limit),
        limit.at,
        date(limit.probed_unix_ns)
    )
}

/// A time: more is worse.
fn fsync(limit: &Limit, row: &str, names: &Names<'_>) -> String {
    let number = |value: f64| format_number(&limit.unit, value).replace(' ', "\u{a0}");
    let cause = if limit.is_cause { "; this is the limit: the workers' time agrees" } else { "" };
    format!(
        "{row}{}: a sync takes {}, {:.0}\u{a0}% of what an fsync of a changed page takes here ({}; probe of {}){cause}",
        names.arm(&limit.arm),
        number(limit.value),
        limit.share * 100.0,
        number(limit.limit),
        date(limit.probed_unix_ns)
    )
}

fn date(unix_ns: u64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns));
    time.map_or_else(|_| "an unknown day".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::RowKey;
    use crate::units::Unit;

    #[test]
    fn a_line_names_both_figures_and_the_probe() {
        let mut limit = Limit {
            row: RowKey { levels: vec![("bs".to_owned(), "4k".to_owned())], job: String::new() },
            arm: "1".to_owned(),
            kind: LimitKind::DeviceWrites,
            unit: Unit::PerSecond,
            value: 45_000.0,
            limit: 50_000.0,
            at: 8,
            share: 0.9,
            is_cause: true,
            probed_unix_ns: 1_795_392_000_000_000_000,
        };
        let run = crate::report::section_tests::made_up().0;
        let names = Names::new(&run, "cache");
        let words = |limit: &Limit| line(limit, &names).replace('\u{a0}', " ");
        assert_eq!(
            words(&limit),
            "bs=4k, cache=1: 45.0 k/s is 90 % of what this machine's device writes at saturation in 4 KiB \
             (50.0 k/s, at depth 8; probe of 2026-11-23); this is the limit: the workers' time agrees"
        );
        limit.share = 1.1;
        assert!(words(&limit).contains("; this is above what the probe measured, and the limit:"));
        (limit.kind, limit.unit, limit.is_cause) = (LimitKind::CopiesOut, Unit::BytesPerSecond, false);
        assert!(words(&limit).ends_with("copy out of memory (48.8 KiB/s, threads: 8; probe of 2026-11-23)"));
        (limit.kind, limit.unit, limit.value) = (LimitKind::Fsync, Unit::Nanoseconds, 55_000.0);
        assert_eq!(
            words(&limit),
            "bs=4k, cache=1: a sync takes 55.0 µs, 110 % of what an fsync of a changed page takes here (50.0 µs; probe of 2026-11-23)"
        );
    }
}
