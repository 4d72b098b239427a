//! Known answers, through the real `assay compare`: the published studies in tests/data/published and benchstat's own
//! test data. Nothing here was computed by assay beforehand.

use std::collections::BTreeMap;

use crate::compare::ok;

type Record = BTreeMap<String, String>;

fn records(text: &str) -> Vec<Record> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    reader
        .records()
        .map(|record| heads.iter().cloned().zip(record.unwrap().iter().map(str::to_owned)).collect())
        .collect()
}

fn published(name: &str) -> Vec<Record> {
    records(&std::fs::read_to_string(format!("{}/{name}", path("published"))).unwrap())
}

fn path(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn number(record: &Record, column: &str) -> f64 {
    record[column].parse().unwrap_or_else(|_| panic!("{column} of {record:?}"))
}

const F2FS: [&str; 6] = ["--arm", "variant", "--row", "write,io_size", "--value", "kb_s:higher"];

fn f2fs(more: &[&str]) -> String {
    let table = path("published/f2fs-dio-serialize.csv");
    let mut arguments = vec!["compare", &table];
    arguments.extend(F2FS);
    arguments.extend(more);
    ok(&arguments)
}

#[test]
fn every_average_of_the_f2fs_study_comes_from_its_runs() {
    let found = records(&f2fs(&["--format", "csv"]));
    let averages = published("f2fs-dio-serialize-averages.csv");
    assert_eq!(averages.len(), 16);
    for average in &averages {
        let of_row = found
            .iter()
            .filter(|c| c["row.write"] == average["write"] && c["row.io_size"] == average["io_size"]);
        let mean = of_row
            .flat_map(|c| [(&c["baseline"], "baseline_mean", c), (&c["candidate"], "candidate_mean", c)])
            .find(|(arm, ..)| **arm == average["variant"])
            .map(|(_, column, c)| number(c, column));
        // The published averages are sums of eight integers over eight: exact.
        assert_eq!(mean, Some(number(average, "kb_s")), "{average:?}");
    }
}

#[test]
fn what_the_published_f2fs_reading_missed_is_said() {
    let turned = ["--format", "csv", "--baseline", "serialize none"];
    let found = records(&f2fs(&turned));
    let row = |io_size: &str| {
        found
            .iter()
            .find(|c| {
                c["row.write"] == "append" && c["row.io_size"] == io_size && c["candidate"] == "serialize all"
            })
            .unwrap()
    };
    // "All append cases gain": +8.4, +19 and +2.1 % do or may; +1.2 % shows nothing.
    for (io_size, published_percent) in [("4K", 8.4), ("128K", 19.3), ("2M", 2.1), ("4K-1024K", 1.2)] {
        let percent = number(row(io_size), "mean_change") * 100.0;
        assert!((percent - published_percent).abs() < 0.05, "{io_size}: {percent}");
    }
    for gain in ["128K", "2M"] {
        assert!(row(gain)["verdict"].starts_with("faster"), "{gain}");
    }
    let missed = row("4K-1024K");
    assert_eq!(missed["verdict"], "undecided");
    assert!(number(missed, "change_low") < 0.0 && number(missed, "change_high") > 0.0);
    for arm in ["baseline", "candidate"] {
        let spread = number(missed, &format!("{arm}_stddev")) / number(missed, &format!("{arm}_mean"));
        assert!((0.03..=0.046).contains(&spread), "{arm}: {spread}");
    }
    let text = f2fs(&["--verbose"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "write=append, io_size=4K-1024K: undecided whether variant=serialize none differs from variant=serialize all";
    assert!(text.contains(words), "{text}");
}

#[test]
fn an_arm_that_exists_in_some_rows_only_is_compared_there_only() {
    let found = records(&f2fs(&["--format", "csv"]));
    let partial: Vec<&Record> = found.iter().filter(|c| c["candidate"] == "serialize partial").collect();
    let compared: Vec<&str> =
        partial.iter().filter(|c| c["verdict"] != "not_measured").map(|c| &*c["row.io_size"]).collect();
    assert_eq!(compared, ["4K-1024K", "4K-1024K"]);
}

#[test]
fn every_percentage_of_the_mmtests_table() {
    let table = path("published/dbench-mmtests-amean.csv");
    let columns = ["--row", "clients", "--arm-columns", "vanilla,patched:lower", "--format", "mmtests"];
    let out = ok(&[&["compare", &table], &columns[..]].concat());
    let expected = published("dbench-mmtests-amean.csv");
    assert_eq!(expected.len(), 7);
    for line in &expected {
        let printed = out
            .lines()
            .map(|text| text.replace(['(', ')', '%', '*'], " "))
            .map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .find(|fields| fields.len() == 6 && fields[0] == "Amean" && fields[1] == line["clients"])
            .unwrap_or_else(|| panic!("no row for {} clients in\n{out}", line["clients"]));
        assert_eq!((&printed[2], &printed[4]), (&line["vanilla"], &line["patched"]));
        let percent: f64 = printed[5].parse().unwrap();
        assert!((percent - number(line, "published_percent")).abs() < 0.0101, "{printed:?} against {line:?}");
    }
}

const NINE: [&str; 9] =
    ["read_bw", "read_iops", "read_msec", "write_bw", "write_iops", "write_msec", "usr", "sys", "csw"];

/// The table under `% DIFFERENCE, kernel=… -> kernel=candidate`: job → nine cells as printed.
fn difference_table(report: &str, candidate: &str) -> BTreeMap<String, Vec<String>> {
    let mut heading = String::new();
    let mut rows = BTreeMap::new();
    for line in report.lines() {
        if line.starts_with("% DIFFERENCE") {
            heading = line.to_owned();
        } else if !heading.is_empty() && line.trim_start().starts_with("READ") {
            if !heading.contains(&format!("-> kernel={candidate} ")) {
                heading.clear();
            }
        } else if !heading.is_empty() && line.is_empty() {
            heading.clear();
        } else if !heading.is_empty() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.len() == 10 && fields[0] != "Job" {
                rows.insert(fields[0].to_owned(), fields[1..].iter().map(|f| (*f).to_owned()).collect());
            } else {
                heading = format!("{heading} {}", line.trim());
            }
        }
    }
    rows
}

#[test]
fn all_270_cells_of_the_block_device_study() {
    let table = path("published/bdev-fio-averages.csv");
    let values = "read_kb_s,read_iops,read_msec,write_kb_s,write_iops,write_msec,usr_pct,sys_pct,csw";
    let expected = published("bdev-fio-percent-diff.csv");
    let mut reports: BTreeMap<String, String> = BTreeMap::new();
    let mut cells = 0;
    for line in &expected {
        let baseline = &line["baseline"];
        let report = reports.entry(baseline.clone()).or_insert_with(|| {
            let columns = ["--arm", "kernel", "--row", "job", "--value", values, "--format", "lkml"];
            ok(&[&["compare", &table][..], &columns, &["--hide-below", "5", "--baseline", baseline]].concat())
        });
        let rows = difference_table(report, &line["candidate"]);
        let printed = rows.get(&line["job"]).unwrap_or_else(|| panic!("no row for {line:?} in\n{report}"));
        for (column, cell) in NINE.iter().zip(printed) {
            assert_eq!(cell, &line[*column], "{column} of {line:?}");
            cells += 1;
        }
    }
    assert_eq!(cells, 270);
}

#[test]
fn a_report_of_repeats_has_the_deviations_of_the_layout() {
    let table = path("published/f2fs-dio-serialize.csv");
    let out = ok(&[&["compare", &table][..], &F2FS, &["--format", "lkml"]].concat());
    assert!(out.contains("STANDARD DEVIATION in %") && out.lines().all(|line| line.len() <= 72), "{out}");
    assert!(out.is_ascii());
}

/// Short jobs on a clock of milliseconds: all trials of a row may have one rate, one time and no kernel time.
#[test]
fn what_never_changes_has_its_columns_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("steady.csv");
    let csv = "kernel,job,read_kb_s,read_iops,read_msec,write_kb_s,write_iops,write_msec,usr_pct,sys_pct,csw\n\
               old,same,4096,1024,6,0,0,0,12.50,0,150\n\
               new,same,4096,1024,6,0,0,0,12.50,0,150\n\
               old,write1,0,0,0,4096,1024,6,12.50,0,150\n\
               new,write1,0,0,0,8192,1024,6,25.00,0,150\n";
    std::fs::write(&table, csv).unwrap();
    let values = "read_kb_s,read_iops,read_msec,write_kb_s,write_iops,write_msec,usr_pct,sys_pct,csw";
    let columns = ["--arm", "kernel", "--row", "job", "--value", values, "--format", "lkml"];
    let report = ok(&[&["compare", table.to_str().unwrap()][..], &columns].concat());
    let rows = |heading: &str| {
        let lines = report.lines().skip_while(|line| *line != heading).skip(3).take(2);
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let same = "same 4096 1024 6 0 0 0 12.50 0.00 150.00";
    assert_eq!(
        rows("AVERAGES, kernel=old"),
        [same, "write1 0 0 0 4096 1024 6 12.50 0.00 150.00"],
        "{report}"
    );
    assert_eq!(
        rows("AVERAGES, kernel=new"),
        [same, "write1 0 0 0 8192 1024 6 25.00 0.00 150.00"],
        "{report}"
    );
    let unchanged = "same 0 0 0 0 0 0 0.00 0.00 0.00";
    assert_eq!(
        rows("% DIFFERENCE, kernel=old -> kernel=new"),
        [unchanged, "write1 0 0 0 100 0 0 100.00 0.00 0.00"],
        "{report}"
    );
}

#[test]
fn a_page_of_many_comparisons_has_a_sentence_for_each_when_unfolded() {
    let table = path("published/f2fs-dio-serialize.csv");
    let page = |more: &[&str]| ok(&[&["compare", &table][..], &F2FS, &["--format", "html"], more].concat());
    let summary = "<summary>a sentence for each comparison</summary>";
    let unfolded = page(&[]).split_once(summary).map(|(_, rest)| rest.to_owned()).unwrap();
    assert_eq!(unfolded.split("</details>").next().unwrap().matches("<li>").count(), 9);
    assert!(!page(&["--verbose"]).contains(summary), "there they are without unfolding");
}

fn benchstat(old: &str, new: &str) -> Vec<Record> {
    let (old, new) = (path(&format!("benchstat/{old}")), path(&format!("benchstat/{new}")));
    records(&ok(&["compare", &old, &new, "--format", "csv"]))
}

fn median_change_percent(record: &Record) -> f64 {
    (number(record, "candidate_median") / number(record, "baseline_median") - 1.0) * 100.0
}

#[test]
fn benchstats_own_answers() {
    let found = benchstat("old.txt", "new.txt");
    let of =
        |name: &str| found.iter().find(|c| c["row.benchmark"] == format!("Encode/format={name}")).unwrap();
    assert!(
        (median_change_percent(of("json")) + 17.20).abs() < 0.005,
        "{}",
        median_change_percent(of("json"))
    );
    assert!((number(of("json"), "p") - 1.1e-5).abs() < 0.05e-5);
    assert_eq!(of("json")["verdict"], "faster_beyond_delta");
    assert!((number(of("gob"), "p") - 0.446_102).abs() < 5e-7);

    let crc = benchstat("crc-old.txt", "crc-new.txt");
    let of_time = crc.iter().filter(|c| c["metric"] == "ns/op");
    let rounded: Vec<String> = of_time.take(4).map(|c| format!("{:.3}", number(c, "p"))).collect();
    assert_eq!(rounded, ["0.008", "0.539", "0.006", "0.003"]);
}

#[test]
fn a_table_with_a_column_an_arm() {
    let table = path("published/dax-write.csv");
    let columns = [
        "--row",
        "state,block_size",
        "--arm-columns",
        "pagecache_mib_s,dax_mib_s",
        "--arm-columns",
        "pagecache_runtime_s,dax_runtime_s",
    ];
    let found =
        records(&ok(&[&["compare", &table][..], &columns, &["--format", "csv", "--all-metrics"]].concat()));
    let of = |state: &str, block: &str, metric: &str| {
        found
            .iter()
            .find(|c| c["row.state"] == state && c["row.block_size"] == block && c["metric"] == metric)
            .unwrap_or_else(|| panic!("{state} {block} {metric}"))
    };
    let slow = of("allocate", "4k", "mib_s");
    assert_eq!(
        (slow["baseline"].as_str(), slow["candidate"].as_str(), slow["unit"].as_str()),
        ("pagecache", "dax", "MiB/s")
    );
    // "Allocation and zeroing make DAX 4x slower; overwritten, it takes half the time"; three runs: no interval.
    assert!((number(slow, "mean_change") + 0.72).abs() < 0.01, "{}", number(slow, "mean_change"));
    assert!((number(of("overwrite", "4k", "runtime_s"), "mean_change") + 0.49).abs() < 0.01);
    assert_eq!(slow["verdict"], "too_few");
    assert_eq!(slow["change_low"], "");
}
