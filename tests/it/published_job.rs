//! The published block-device study's job (24 jobs in six groups; only the device and the sizes are changed) under both
//! engines, and its report in the published layout.

use assay::record::Run;

use crate::sandbox::{Sandbox, errors};
use crate::tools::available;

const JOB: &str = include_str!("../data/jobs/bdev-mix.fio");
/// Rows of the published tables: the first job of each group stands for its four.
const GROUPS: [(&str, bool, bool); 6] = [
    ("write1", false, true),
    ("read1", true, false),
    ("randwrite1", false, true),
    ("randread1", true, false),
    ("readwrite1", true, true),
    ("randrw1", true, true),
];
/// Four jobs of 1 MiB.
const GROUP_BYTES: f64 = 4_194_304.0;

#[test]
fn only_the_device_and_the_sizes_are_changed() {
    let lines: Vec<&str> = JOB.lines().filter(|line| !line.starts_with(';') && !line.is_empty()).collect();
    let published = "[global] ioengine=libaio direct=1 iodepth=1024 iodepth_batch=32 iodepth_batch_complete=1 blocksize=4k \
                     filename=/dev/XXX size=8g group_reporting=1 readwrite=write";
    let cut: Vec<String> = lines[..11]
        .iter()
        .map(|line| line.replace("bdev-mix.dat", "/dev/XXX").replace("size=1m", "size=8g"))
        .collect();
    assert_eq!(cut.join(" "), published);
    for (number, (first, ..)) in GROUPS.iter().enumerate() {
        let kind = first.trim_end_matches('1');
        let at = |line: &str| lines.iter().position(|known| *known == line);
        assert!(at(&format!("readwrite={kind}")) < at(&format!("[{first}]")), "{kind}");
        for job in 1..=4 {
            let section = at(&format!("[{kind}{job}]")).expect("four jobs a group");
            let stonewall = usize::from(number > 0 && job == 1);
            assert_eq!(lines[section + 1] == "stonewall", stonewall == 1, "{kind}{job}");
            let offset = if job == 1 { "offset=0".to_owned() } else { format!("offset={}m", job - 1) };
            assert_eq!(lines[section + 1 + stonewall], offset);
        }
    }
}

#[test]
fn it_runs_under_the_native_engine_and_reports_as_published() {
    runs("native");
}

#[test]
fn it_runs_under_fio_and_reports_as_published() {
    if available("fio") {
        runs("fio");
    }
}

fn runs(engine: &str) {
    let sandbox = Sandbox::new();
    sandbox.write("bdev-mix.fio", JOB);
    let output = sandbox.run(&[
        "run", "bdev-mix.fio", "--vary", "iodepth=64,1024", "--rounds", "2", "--engine", engine, "--quiet",
    ]);
    assert!(output.status.success(), "{}", errors(&output));
    let run = sandbox.export("1");
    moved_what_was_asked(&run);
    let text = sandbox.succeed(&["report", "1", "--format", "lkml"]);
    has_the_published_layout(&text);
    cpu_is_the_share_of_one_process(&run, &text);
    decided_by_what_is_no_column(&sandbox);
    assert!(!sandbox.names().iter().any(|name| name.contains("bdev-mix.dat")), "{:?}", sandbox.names());
}

/// fio's scale: seconds of processor time by the run times of the group's four processes together.
fn cpu_is_the_share_of_one_process(run: &Run, text: &str) {
    for (group, cells) in table(text, "AVERAGES, iodepth=64") {
        let values = |name: &str| -> Vec<f64> {
            let metric = run.metrics.iter().position(|m| m.job == group && m.name == name);
            let metric = metric.unwrap_or_else(|| panic!("{group} has no {name}: {:?}", run.metrics)) as u32;
            let of_arm = run.trials.iter().filter(|trial| run.cells[trial.cell as usize].levels[0] == 0);
            of_arm.map(|trial| trial.value(metric).unwrap()).collect()
        };
        let (all, longest) = (values("job_runtime"), values("runtime"));
        for (sum, one) in all.iter().zip(&longest) {
            assert!(*sum > *one && *sum <= *one * 4.0 + 0.01, "{group}: {sum} {one}");
        }
        for (name, cell) in [("usr_cpu", &cells[6]), ("sys_cpu", &cells[7])] {
            let used = values(name);
            let shares = used.iter().zip(&all).map(|(used, all)| used / all * 100.0);
            let mean = shares.sum::<f64>() / used.len() as f64;
            let printed: f64 = cell
                .parse()
                .unwrap_or_else(|_| panic!("{group} {name} is {cell}, {used:?} of {all:?}:\n{text}"));
            assert!((printed - mean).abs() < 0.006 && printed <= 105.0, "{group} {name}: {printed} {mean}");
        }
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("of all processes of the job together, as fio prints them"), "{text}");
}

/// A metric that decides and is none of the nine columns has a table of its own.
fn decided_by_what_is_no_column(sandbox: &Sandbox) {
    let text = sandbox.succeed(&[
        "report",
        "1",
        "--format",
        "lkml",
        "--primary",
        "read.clat_ns.mean,write.clat_ns.mean",
    ]);
    assert!(text.contains("AVERAGES, iodepth=64\n"), "{text}");
    let own = text.split("AVERAGES, write.clat_ns.mean").nth(1).expect("a table of the deciding metric");
    assert!(
        own.contains("randwrite1") && own.contains("STANDARD DEVIATION in %, write.clat_ns.mean"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.len() <= 72 && line.is_ascii()), "{text}");
}

/// Every group moved its 4 MiB once, in the directions of its name.
fn moved_what_was_asked(run: &Run) {
    assert_eq!(run.trials.len(), 4);
    for trial in &run.trials {
        assert!(trial.counts(), "{:?}", trial.status);
        for (job, reads, writes) in GROUPS {
            let bytes = |name: &str| {
                let metric = run.metrics.iter().position(|m| m.job == job && m.name == name);
                metric.and_then(|metric| trial.value(metric as u32)).unwrap_or(0.0)
            };
            let (read, written) = (bytes("read.io_bytes"), bytes("write.io_bytes"));
            assert_eq!(read + written, GROUP_BYTES, "{job}");
            assert_eq!((read > 0.0, written > 0.0), (reads, writes), "{job}");
        }
    }
}

/// The nine columns of each group below `heading`.
fn table(text: &str, heading: &str) -> Vec<(String, Vec<String>)> {
    let mut lines = text.lines().skip_while(|line| *line != heading).skip(1);
    let directions: Vec<&str> = lines.next().expect("a table").split_whitespace().collect();
    assert_eq!(directions, ["READ", "WRITE", "CPU"], "below {heading}");
    let columns: Vec<&str> = lines.next().expect("heads").split_whitespace().collect();
    assert_eq!(columns.join(" "), "Job Name KB/s IOPS msec KB/s IOPS msec usr sys csw");
    lines
        .take_while(|line| !line.is_empty())
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            (words.next().expect("a name"), words.collect())
        })
        .collect()
}

fn has_the_published_layout(text: &str) {
    for line in text.lines() {
        assert!(line.len() <= 72 && line.is_ascii(), "{} columns: {line}", line.len());
    }
    let names: Vec<&str> = GROUPS.iter().map(|(name, ..)| *name).collect();
    for heading in [
        "AVERAGES, iodepth=64",
        "AVERAGES, iodepth=1024",
        "% DIFFERENCE, iodepth=64 -> iodepth=1024",
        "STANDARD DEVIATION in %, iodepth=64",
        "STANDARD DEVIATION in %, iodepth=1024",
    ] {
        let rows = table(text, heading);
        assert_eq!(
            rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            names,
            "{heading}\n{text}"
        );
        for ((name, cells), (_, reads, writes)) in rows.iter().zip(GROUPS) {
            assert_eq!(cells.len(), 9, "{heading}: {name}");
            for (moved, side) in [(reads, &cells[..3]), (writes, &cells[3..6])] {
                let numbers: Vec<f64> = side.iter().map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
                if heading.starts_with("AVERAGES") {
                    assert!(numbers.iter().all(|n| (*n > 0.0) == moved), "{heading}: {name} {cells:?}");
                } else if !moved {
                    assert!(side.iter().all(|cell| cell == "0"), "{heading}: {name} {cells:?}");
                }
            }
        }
    }
    let averages = |arm: &str| table(text, &format!("AVERAGES, iodepth={arm}"));
    let difference = table(text, "% DIFFERENCE, iodepth=64 -> iodepth=1024");
    for ((before, after), (name, cells)) in averages("64").iter().zip(averages("1024")).zip(difference) {
        // Columns of KB/s are whole in both tables: the printed difference follows from the printed averages.
        for column in [0, 3] {
            let number = |cells: &[String]| cells[column].parse::<f64>().unwrap();
            if number(&before.1) > 0.0 {
                let expected = (number(&after.1) / number(&before.1) - 1.0) * 100.0;
                assert!((expected.trunc() - number(&cells)).abs() <= 1.0, "{name}: {expected} {cells:?}");
            }
        }
    }
}
