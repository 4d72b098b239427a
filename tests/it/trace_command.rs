//! `assay trace` as people use it: one screen, JSON with everything, one message for what is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

fn trace(arguments: &[&str]) -> Output {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces");
    Command::new(env!("CARGO_BIN_EXE_assay")).arg("trace").args(arguments).current_dir(data).output().unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = trace(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const XFS: [&str; 5] =
    ["xfs_fsync.cpu0.raw", "xfs_fsync.cpu1.raw", "--fs", "xfs", "--journal=3145776-3276848"];

#[test]
fn a_trace_fits_one_screen() {
    let screens: [&[&str]; 5] = [
        &XFS,
        &["ext4_fsync.txt", "--journal", "2883584-3014656", "--asked", "1028k"],
        &["xfs_fsync.perf-script.txt"],
        &["xfs_fsync.blkparse.txt", "--fs", "xfs"],
        &["xfs_fsync.txt", "--fs", "xfs", "--write-cache", "through"],
    ];
    for arguments in screens {
        let text = text(arguments);
        assert!(text.lines().count() <= 24, "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line, line.trim_end());
        }
    }
}

#[test]
fn the_screen_says_counts_and_the_audit() {
    let said = text(&XFS);
    for line in [
        "7:1:     1166 of 1193 events in 0.7 s on 2 CPUs (2 files of ring-buffer pages)",
        "reads    100 bios, 100 requests, 1.11 MiB",
        "writes   278 bios, 70 requests, 7.15 MiB; journal 3.45 MiB in 56 bios;",
        "flushes  21 commands (4.20 an fsync), 2 flush bios; writes: 10 after a flush, 9",
        "order    2.22 bios a request; 35 % of requests begin where the last ended",
        "audit    PASS: data and commit of 5 calls were behind a flush or FUA, in order",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    let said = text(&["xfs_fsync.txt"]);
    assert!(said.contains("audit    UNDECIDABLE: the filesystem is not known (--fs) (5 calls)"), "{said}");
    let said = text(&["xfs_fsync.perf-script.txt", "--device", "254:0"]);
    assert!(said.starts_with("254:0:   104 of 480 events"), "{said}");
    assert!(said.contains("also in it: 7:1 (376 events)"), "{said}");
}

#[test]
fn histograms_have_every_request_of_the_text() {
    let said = text(&["xfs_fsync.txt", "--histograms"]);
    assert!(said.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{said}");
    // All rows of D2C, as read without assay: from the issue at a sector to the end there, of what has sectors.
    let trace = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces/xfs_fsync.txt"),
    );
    let (mut issued, mut expected) = (BTreeMap::new(), BTreeMap::new());
    for line in trace.unwrap().lines() {
        let event = |name: &str| line.split_once(&format!(": {name}: 7,1 "));
        let Some((begin, rest)) = event("block_rq_issue").or_else(|| event("block_rq_complete")) else {
            continue;
        };
        let (place, sectors) = rest.split_once(") ").unwrap().1.split_once(" + ").unwrap();
        let seconds = begin.split_whitespace().last().unwrap();
        let microseconds: u64 = seconds.replace('.', "").parse().unwrap();
        if sectors.starts_with("0 ") {
            continue;
        }
        if event("block_rq_issue").is_some() {
            issued.insert(place.to_owned(), microseconds);
        } else if let Some(begin) = issued.remove(place) {
            *expected.entry((1000 * (microseconds - begin)).max(1).ilog2()).or_insert(0_u64) += 1;
        }
    }
    let table = said.split("\nD2C, the device\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Ten columns of time, then nine each.
    let cells = |line: &str| -> Vec<String> {
        let counts: Vec<char> = line.chars().skip(10).collect();
        counts.chunks(9).map(|cell| cell.iter().collect::<String>().trim().to_owned()).collect()
    };
    let mut lines = table.lines();
    let (above, below) = (cells(lines.next().unwrap()), cells(lines.next().unwrap()));
    assert_eq!((&*above[0], &*below[0]), ("read", "ahead"), "{said}");
    let is_data = |at: usize| above.get(at).is_none_or(|word| word != "flush");
    let of_line = |line: &str| -> u64 {
        let counts = cells(line).into_iter().enumerate().filter(|(at, _)| is_data(*at));
        counts.map(|(_, cell)| cell.parse().unwrap_or(0)).sum()
    };
    let rows: Vec<u64> = lines.map(of_line).collect();
    let first = *expected.keys().next().unwrap();
    let last = *expected.keys().last().unwrap();
    let wanted: Vec<u64> = (first..=last).map(|power| expected.get(&power).copied().unwrap_or(0)).collect();
    // Where flushes took less or more time there are rows without data.
    let some = |counts: Vec<u64>| {
        let begin = counts.iter().position(|count| *count > 0);
        let end = counts.iter().rposition(|count| *count > 0);
        counts[begin.unwrap()..=end.unwrap()].to_vec()
    };
    assert_eq!(some(rows), wanted, "{said}");
}

#[test]
fn a_trace_may_come_through_a_pipe() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces");
    let text = std::fs::File::open(data.join("xfs_fsync.blkparse.txt")).unwrap();
    let mut cat = Command::new("cat").stdin(text).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["trace", "/dev/stdin"])
        .stdin(cat.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(cat.wait().unwrap().success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("7:1:     1476 of 1476 events"), "{said}");
}

#[test]
fn layouts_of_raw_pages_are_where_the_option_says() {
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["xfs_fsync.cpu0.raw", "xfs_fsync.cpu1.raw"] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces");
        std::fs::copy(data.join(name), elsewhere.path().join(name)).unwrap();
    }
    let files = ["xfs_fsync.cpu0.raw", "xfs_fsync.cpu1.raw"].map(|name| elsewhere.path().join(name));
    let files = files.each_ref().map(|path| path.to_str().unwrap());
    let words = [&files[..], &XFS[2..]].concat();
    // Beside them there are none.
    let refused = trace(&words);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no ") && said.contains("--formats"), "{said}");
    assert_eq!(text(&[&words[..], &["--formats", "formats"]].concat()), text(&XFS));
}

#[test]
fn json_has_every_class_stage_and_kind() {
    let arguments = [&XFS[..], &["--json", "--asked", "4m"]].concat();
    let found: serde_json::Value = serde_json::from_str(&text(&arguments)).unwrap();
    let at = |pointer: &str| found.pointer(pointer).unwrap_or_else(|| panic!("{pointer}\n{found:#}")).clone();
    assert_eq!(at("/totals/by_kind/queue"), 380);
    assert_eq!(at("/device/counts/flush_commands"), 21);
    assert_eq!(at("/device/latencies/write_flush/q2c/count"), 10);
    assert_eq!(at("/device/latencies/flush_command/d2c/max_ns"), 5_013_585);
    assert_eq!(at("/device/audit/verdict"), "PASS");
    assert_eq!(at("/device/audit/commits/durable"), 9);
    let amplification = at("/device/write_amplification").as_f64().unwrap();
    assert!((amplification - 14_637.0 * 512.0 / f64::from(4 << 20)).abs() < 1e-9, "{amplification}");
}

#[test]
fn what_is_refused_has_one_message_and_a_hint() {
    let cases: [(&[&str], &str); 7] = [
        (&["README.md"], "assay: README.md is not a trace that assay knows: it begins with"),
        (&["nothing.txt"], "assay: cannot read nothing.txt"),
        (&["xfs_fsync.cpu0.raw"], "assay: the file of CPU 1 is missing: xfs_fsync.cpu1.raw"),
        (
            &["xfs_fsync.txt", "--device", "8:0"],
            "assay: the trace has no events of device 8:0; it has 7:1 (1166 events)",
        ),
        (&["xfs_fsync.txt", "--journal", "9-3"], "it is two sector numbers"),
        (&["xfs_fsync.txt", "--fs", "zfs"], "known are xfs, ext4, btrfs and f2fs"),
        (&["xfs_fsync.txt", "--asked", "much"], "assay: --asked: "),
    ];
    for (arguments, message) in cases {
        let output = trace(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty());
        assert!(said.contains(message), "{said}");
    }
    let said = String::from_utf8(trace(&["xfs_fsync.cpu0.raw"]).stderr).unwrap();
    assert!(said.ends_with("hint: name xfs_fsync.cpu1.raw too\n"), "{said}");
}

/// One end is missing, and the next write of these sectors takes it for its own.
#[test]
fn an_end_that_may_be_of_another_io_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hot.txt");
    let line = |number: usize, ns: usize, action: &str| {
        format!(
            "  8,0    0 {number:8}     0.{ns:09}   100  {action}  WS 64 + 8 [{}]\n",
            if action == "C" { "0" } else { "dd" }
        )
    };
    for (lost, told) in [(Some(3), true), (None, false)] {
        let mut lines = String::new();
        let mut number = 0;
        for round in 0..9 {
            for (action, after) in [("Q", 0), ("D", 10), ("C", 100)] {
                if action != "C" || Some(round) != lost {
                    number += 1;
                    lines += &line(number, 1000 * round + after, action);
                }
            }
        }
        std::fs::write(&path, lines).unwrap();
        let screen = text(&[path.to_str().unwrap()]);
        assert_eq!(screen.contains("MISSING  1 end is not in the trace"), told, "{screen}");
    }
}
