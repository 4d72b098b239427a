//! Every report format against files that were read by eye; `UPDATE_GOLDEN=1` writes them anew.

use assay::analyse::{Analysis, Caveat, Interval, Role};
use assay::record::Run;
use assay::report::{Detail, Document, Format, Options, RenderOptions, render, render_with};
use rustix::time::{ClockId, clock_gettime};

use crate::fixtures;

fn report(fixture: &(Run, Analysis), format: Format, options: &Options) -> String {
    render(&Document::build(&fixture.0, &fixture.1, options), format)
}

/// Compares with `tests/it/golden/NAME`.
fn golden(name: &str, actual: &str) {
    let path = format!("{}/tests/it/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some(at) = wanted.lines().zip(actual.lines()).position(|(a, b)| a != b) {
        let (was, is) = (wanted.lines().nth(at).unwrap(), actual.lines().nth(at).unwrap());
        panic!("{name} line {}:\n  was {was}\n  is  {is}\nUPDATE_GOLDEN=1 accepts it", at + 1);
    }
    assert_eq!(wanted.len(), actual.len(), "{name} is longer or shorter; UPDATE_GOLDEN=1 accepts it");
}

/// What the command line asks of a format unless told otherwise: text fits one screen, and lkml is a mail.
fn usual(format: Format) -> Options {
    let is_short = matches!(format, Format::Text | Format::Lkml);
    let detail = if is_short { Detail::Screen } else { Detail::Page };
    Options { detail, ..Options::default() }
}

fn ending(format: Format) -> &'static str {
    match format {
        Format::Text => "txt",
        Format::Lkml => "lkml",
        Format::Mmtests => "mmtests",
        Format::Markdown => "md",
        Format::Json => "json",
        Format::Csv => "csv",
        Format::Html => "html",
        Format::Junit => "xml",
    }
}

#[test]
fn a_measured_run_in_every_format() {
    let fixture = fixtures::measured();
    for format in Format::ALL {
        golden(&format!("measured.{}", ending(format)), &report(&fixture, format, &usual(format)));
    }
    let all = Options { all_metrics: true, detail: Detail::All, ..Options::default() };
    golden("measured-all.txt", &report(&fixture, Format::Text, &all));
    // With `--verbose` alone.
    let verbose = Options { detail: Detail::All, ..Options::default() };
    let verbose = report(&fixture, Format::Lkml, &verbose);
    let also = verbose.split("ALSO, direct=0 -> direct=1").nth(1).unwrap_or_default();
    assert!(also.contains("\nwrite.clat_ns.p99"), "a metric without a column: {verbose}");
    golden("measured-verbose.lkml", &verbose);
}

#[test]
fn the_published_studies() {
    let hide = Options { hide_below_pct: Some(5.0), ..usual(Format::Lkml) };
    golden("bdev.lkml", &report(&fixtures::bdev("3.6.0-rc5+", "3.6.0-rc5.mikulas.3+"), Format::Lkml, &hide));
    golden("dbench.mmtests", &report(&fixtures::dbench(), Format::Mmtests, &Options::default()));
    golden("dbench.txt", &report(&fixtures::dbench(), Format::Text, &usual(Format::Text)));
    golden("dbench.lkml", &report(&fixtures::dbench(), Format::Lkml, &usual(Format::Lkml)));
}

#[test]
fn a_nasty_run_in_every_format() {
    let fixture = fixtures::nasty();
    let all = Options { all_metrics: true, hide_below_pct: Some(1.0), ..Options::default() };
    for format in Format::ALL {
        golden(&format!("nasty.{}", ending(format)), &report(&fixture, format, &all));
    }
}

#[test]
fn a_note_of_mmtests_has_its_mark_in_a_row() {
    for fixture in [fixtures::measured(), fixtures::nasty()] {
        let text = report(&fixture, Format::Mmtests, &usual(Format::Mmtests));
        let is_row = |line: &&str| line.starts_with("Amean") || line.starts_with("Hmean");
        let rows: String = text.lines().filter(is_row).collect();
        let notes: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        assert!(!notes.is_empty(), "{text}");
        for note in notes {
            let mark = note.split_inclusive(']').next().unwrap();
            assert!(rows.contains(mark), "{mark} in {text}");
        }
        for mark in rows.split('[').skip(1).filter_map(|rest| rest.split_once(']')) {
            let is_number = mark.0.bytes().all(|byte| byte.is_ascii_digit());
            assert!(!is_number || text.contains(&format!("\n[{}] ", mark.0)), "{mark:?} in {text}");
        }
    }
}

#[test]
fn mmtests_has_all_rows_of_a_metric_and_the_command() {
    let text = report(&fixtures::measured(), Format::Mmtests, &usual(Format::Mmtests));
    let iops = text.split("write.iops in k/s").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(iops.matches("Hmean").count(), 4, "{iops}");
    assert!(iops.contains("%="), "no difference is proven of one: {iops}");
    assert!(text.contains("to repeat it (seed 42)\n  assay run randwrite.fio"), "{text}");
    assert!(text.contains("bs=4k: direct=1 is slower than direct=0 by more than 2 %"), "{text}");
    assert!(text.contains("intervals: 95 % for all 4 rows together"), "{text}");
}

#[test]
fn a_primary_chosen_afterwards_heads_every_format() {
    let mut fixture = fixtures::measured();
    for c in fixture.1.comparisons.iter_mut().filter(|c| c.role == Role::Primary) {
        c.caveats.push(Caveat::ChosenAfterwards { instead_of: Some("runtime".to_owned()) });
    }
    for format in Format::ALL {
        let text = report(&fixture, format, &Options::default());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("chosen after the run"), "{format:?}");
        let head: String = words.chars().take(400).collect();
        assert!(
            [Format::Csv, Format::Html, Format::Junit].contains(&format) || head.contains("its own: runtime"),
            "{head}"
        );
    }
}

#[test]
fn differences_are_told_as_the_table_has_them() {
    let mut fixture = fixtures::measured();
    let raw = Interval { estimate: -3.1e6, low: -5.2e6, high: -1.0e6 };
    fixture.1.comparisons[0].difference = Some(raw);
    let text = report(&fixture, Format::Text, &Options::default());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("] of the baseline's size, medians ") && !words.contains("−3027 KiB/s"),
        "{words}"
    );
}

#[test]
fn text_keeps_80_columns_and_lkml_72_of_ascii() {
    for fixture in [
        fixtures::measured(),
        fixtures::nasty(),
        fixtures::dbench(),
        fixtures::bdev("3.6.0-rc5+", "3.6.0-rc5.mikulas.4+"),
    ] {
        for detail in [Detail::Screen, Detail::Page, Detail::All] {
            let options = Options { all_metrics: detail == Detail::All, detail, ..Options::default() };
            for line in report(&fixture, Format::Text, &options).lines() {
                assert!(line.chars().count() <= 80, "over 80 columns: {line}");
                assert!(!line.chars().any(char::is_control), "control character: {line:?}");
            }
            for line in report(&fixture, Format::Lkml, &options).lines() {
                assert!(line.len() <= 72, "over 72 columns: {line}");
                assert!(line.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "not ASCII: {line:?}");
            }
        }
    }
}

#[test]
fn colour_only_when_asked() {
    let fixture = fixtures::measured();
    let options = Options::default();
    let document = Document::build(&fixture.0, &fixture.1, &options);
    assert!(!render(&document, Format::Text).contains('\u{1b}'));
    let coloured =
        render_with(&document, Format::Text, RenderOptions { colour: true, ..RenderOptions::default() });
    assert!(coloured.contains("\u{1b}[31m"), "a slower row is red");
    let narrow =
        render_with(&document, Format::Text, RenderOptions { width: Some(64), ..RenderOptions::default() });
    assert!(narrow.lines().all(|line| line.chars().count() <= 64));
}

/// The rule the published study states: below 5 % is 0, integer columns are truncated toward zero.
#[test]
fn all_270_published_differences() {
    let text = std::fs::read_to_string(fixtures::data("published/bdev-fio-percent-diff.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let hide = Options { hide_below_pct: Some(5.0), ..Options::default() };
    let mut cells = 0;
    for pair in rows.chunk_by(|a, b| a[..2] == b[..2]) {
        let lkml = report(&fixtures::bdev(pair[0][0], pair[0][1]), Format::Lkml, &hide);
        let table = lkml.split("% DIFFERENCE").nth(1).unwrap();
        for row in pair {
            let line = table.lines().find(|line| line.starts_with(&format!("{} ", row[2]))).unwrap();
            let shown: Vec<&str> = line.split_whitespace().skip(1).collect();
            assert_eq!(shown, row[3..], "{} against {}, {}", row[1], row[0], row[2]);
            cells += shown.len();
        }
    }
    assert_eq!(cells, 270);
}

#[test]
fn the_published_percents_of_mmtests() {
    let text = std::fs::read_to_string(fixtures::data("published/dbench-mmtests-amean.csv")).unwrap();
    let table = report(&fixtures::dbench(), Format::Mmtests, &Options::default());
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let published: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let shown = table
            .lines()
            .find(|row| {
                row.split_whitespace().nth(1) == Some(&published[0].to_string()) && row.starts_with("Amean")
            })
            .unwrap();
        let percent: f64 = shown.rsplit('(').next().unwrap().trim_end_matches("%)").trim().parse().unwrap();
        assert!((percent - published[3]).abs() <= 0.0101, "{shown} against {}", published[3]);
        rows += 1;
    }
    assert_eq!(rows, 7);
}

#[test]
fn json_and_csv_read_back() {
    for fixture in [fixtures::measured(), fixtures::nasty()] {
        let json: serde_json::Value =
            serde_json::from_str(&report(&fixture, Format::Json, &Options::default())).unwrap();
        assert_eq!(json["format"], "assay-report");
        assert_eq!(json["version"], 2);
        assert_eq!(json["analysis"]["comparisons"].as_array().unwrap().len(), fixture.1.comparisons.len());
        let csv = report(&fixture, Format::Csv, &Options::default());
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(records.len(), fixture.1.comparisons.len());
    }
}

/// Programs read these names: one that is missing or new must be told in docs/FORMAT.md.
#[test]
fn the_json_has_the_documented_fields() {
    let text = report(&fixtures::measured(), Format::Json, &Options::default());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let documented =
        std::fs::read_to_string(format!("{}/docs/FORMAT.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let section =
        documented.split("## `assay report --format json`").nth(1).unwrap().split("\n## ").next().unwrap();
    let comparison = &json["analysis"]["comparisons"][0];
    for object in
        [&json, &json["run"], &json["verdicts"][0], &json["failures"][0], comparison, &comparison["baseline"]]
    {
        for name in object.as_object().unwrap().keys() {
            let told =
                section.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == name);
            assert!(told, "docs/FORMAT.md does not tell of {name}");
        }
    }
}

#[test]
fn a_run_of_100_000_trials_is_written_fast() {
    let run = fixtures::long(50_000);
    let analysis = fixtures::analysis_of(&run, "write.bw");
    let options = Options::default();
    // Processor time of this thread: others may have the processor meanwhile.
    let begun = clock_gettime(ClockId::ThreadCPUTime);
    let text = render(&Document::build(&run, &analysis, &options), Format::Text);
    let took = clock_gettime(ClockId::ThreadCPUTime) - begun;
    let took_s = took.tv_sec as f64 + took.tv_nsec as f64 / 1e9;
    assert!(text.contains("50000 rounds"), "{text}");
    assert!(took_s < 0.5, "took {took_s} s");
    let html = render(&Document::build(&run, &analysis, &options), Format::Html);
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}
