//! What a text report says on one screen, and what `--verbose` adds.

use assay::analyse::{Analysis, Interval, Role};
use assay::record::Run;
use assay::report::{Detail, Document, Format, Options, render};

use crate::fixtures;
use crate::sandbox::Sandbox;

/// One pair of the made-up run, with notes, differences, failures and a noise floor.
fn one_pair() -> (Run, Analysis) {
    let (mut run, mut analysis) = fixtures::measured();
    analysis.comparisons.retain(|c| c.row.levels[0].1 == "64k");
    for n in 0..6 {
        run.notes.push(format!("note {n}: {}", "many words about the machine ".repeat(9)).into());
    }
    (run, analysis)
}

fn text(fixture: &(Run, Analysis), detail: Detail) -> String {
    let options = Options { detail, ..Options::default() };
    render(&Document::build(&fixture.0, &fixture.1, &options), Format::Text)
}

#[test]
fn one_pair_fits_one_screen() {
    let fixture = one_pair();
    let (screen, all) = (text(&fixture, Detail::Screen), text(&fixture, Detail::All));
    assert!(screen.lines().count() <= 40, "{} lines:\n{screen}", screen.lines().count());
    assert!(screen.contains("--verbose adds: "), "{screen}");
    assert!(screen.contains("the typical trial and the mean disagree"), "{screen}");
    assert!(screen.contains("exploratory metrics differ clearly: write.clat_ns.p99 +155.9 %"), "{screen}");
    for (what, words) in [
        ("the host", "cpu.model AMD EPYC"),
        ("other metrics", "(medians; exploratory)"),
        ("the job", "ioengine=psync"),
        ("what a failed trial said", "write: No space left on device"),
        ("footnotes that change no verdict", "the baseline drifted"),
    ] {
        assert!(all.contains(words) && !screen.contains(words), "{what}:\n{screen}\n{all}");
    }
    assert!(all.lines().count() > 60, "{all}");
}

/// Two sections that decide are still one pair of arms.
#[test]
fn one_pair_with_two_sections_fits_one_screen() {
    let mut fixture = one_pair();
    let mut other = fixture.1.comparisons.iter().find(|c| c.role == Role::Primary).unwrap().clone();
    other.row.job = "checkpoint".to_owned();
    other.metric.job = "checkpoint".to_owned();
    fixture.1.comparisons.push(other);
    let screen = text(&fixture, Detail::Screen);
    assert!(screen.lines().count() <= 40, "{} lines:\n{screen}", screen.lines().count());
    assert!(screen.contains("checkpoint") && screen.contains("--verbose adds: "), "{screen}");
}

#[test]
fn verbose_shows_the_interval_of_each_row_alone() {
    let mut fixture = fixtures::measured();
    for c in fixture.1.comparisons.iter_mut().filter(|c| c.role == Role::Primary) {
        c.alone = c.effect.map(|i| Interval { low: i.low + 0.001, high: i.high - 0.001, ..i });
    }
    let all = text(&fixture, Detail::All);
    let table = all.split("of each row alone").nth(1).unwrap();
    assert!(table.contains("4k   [−32.4, −29.5]  [−32.3, −29.6]"), "{table}");
    let screen = text(&fixture, Detail::Screen).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("the interval of each row alone"), "{screen}");
    let verbose = Options { detail: Detail::All, ..Options::default() };
    let mail = render(&Document::build(&fixture.0, &fixture.1, &verbose), Format::Lkml);
    let table = mail.split("of each row alone").nth(1).unwrap();
    assert!(table.contains("4k   [-32.4, -29.5]  [-32.3, -29.6]"), "{mail}");
}

#[test]
fn the_options_a_report_names_work_on_run() {
    let sandbox = Sandbox::new();
    let words = ["run", "-q", "--vary", "n=1,2", "--rounds", "4"];
    let command = ["--", "sh", "-c", "exit 0 ${n}"];
    let run = |options: &[&str]| sandbox.succeed(&[&words[..], options, &command].concat());
    let plain = run(&[]);
    assert!(plain.contains("--verbose adds: ") && plain.lines().count() <= 40, "{plain}");
    let verbose = run(&["--verbose"]);
    assert!(verbose.contains("\nhost\n") && !verbose.contains("--verbose adds"), "{verbose}");
    let all = run(&["--all-metrics"]);
    assert!(all.contains("(medians; exploratory)") && !all.contains("--all-metrics lists"), "{all}");
    let report = sandbox.succeed(&["report", "1", "-v"]);
    assert!(report.contains("\nhost\n"), "{report}");
}
