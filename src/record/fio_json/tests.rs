//! Real outputs of fio 3.33 (tests/data/fio) and the ways they get damaged.

use super::*;

fn read(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/data/fio/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn one(name: &str) -> FioTrial {
    let mut trials = outcome_from_fio_json(&read(name)).unwrap();
    assert_eq!(trials.len(), 1, "{name}");
    trials.remove(0)
}

fn value(trial: &FioTrial, job: &str, name: &str) -> f64 {
    let found = trial.outcome.samples.iter().find(|s| s.metric.job == job && s.metric.name == name);
    found.unwrap_or_else(|| panic!("{job}: no {name}")).value
}

/// The raw number at a pointer in the file, to compare with.
fn raw(name: &str, pointer: &str) -> f64 {
    let document: serde_json::Value = serde_json::from_str(&read(name)).unwrap();
    document.pointer(pointer).unwrap().as_f64().unwrap()
}

#[test]
fn every_job_and_direction_has_fios_numbers() {
    let trial = one("groups.json");
    assert_eq!(trial.version, "fio-3.33");
    assert_eq!(trial.jobs, ["w", "rw"]);
    let option = |job: &str, key: &str, value: &str| (job.to_owned(), key.to_owned(), value.to_owned());
    assert!(
        trial.options.contains(&option("", "bs", "4k")) && trial.options.contains(&option("w", "fsync", "8"))
    );
    assert_eq!(value(&trial, "w", "write.bw"), raw("groups.json", "/jobs/0/write/bw_bytes"));
    assert_eq!(value(&trial, "w", "write.total_ios"), 64.0);
    assert_eq!(value(&trial, "w", "write.io_bytes"), 262_144.0);
    assert_eq!(value(&trial, "rw", "read.iops"), raw("groups.json", "/jobs/1/read/iops"));
    let both = raw("groups.json", "/jobs/1/read/bw_bytes") + raw("groups.json", "/jobs/1/write/bw_bytes");
    assert_eq!(value(&trial, "rw", "bw"), both);
    assert_eq!(
        value(&trial, "rw", "write.clat_ns.p99.9"),
        raw("groups.json", "/jobs/1/write/clat_ns/percentile/99.900000")
    );
    assert!(
        trial.outcome.samples.iter().all(|s| !(s.metric.job == "w" && s.metric.name.starts_with("read.")))
    );
    assert!(trial.outcome.samples.iter().all(|s| !(s.metric.job == "w" && s.metric.name == "bw")));
    assert_eq!(value(&trial, "w", "sync.total_ios"), 7.0);
    assert_eq!(value(&trial, "w", "sync.lat_ns.mean"), raw("groups.json", "/jobs/0/sync/lat_ns/mean"));
}

/// As fio 3.28 writes it (Ubuntu 22.04): syncs have a number of 0 beside their latencies, a side without I/O may have short ones, and no
/// `job_start` says when a job began.
#[test]
fn fio_3_28_is_read() {
    let none = r#"{"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}"#;
    let side = |bytes: u64, ios: u64, short: u64, clat: &str, lat: &str| {
        format!(
            r#"{{"io_bytes": {bytes}, "io_kbytes": {}, "bw_bytes": {bytes}, "bw": {}, "iops": {ios}.0, "runtime": {}, "total_ios": {ios},
            "short_ios": {short}, "drop_ios": 0, "slat_ns": {none}, "clat_ns": {clat}, "lat_ns": {lat}, "bw_min": 1516, "bw_max": 1706,
            "bw_agg": 100.0, "bw_mean": 1613.6, "bw_dev": 35.7, "bw_samples": 27, "iops_min": 1516, "iops_max": 1706,
            "iops_mean": 1613.6, "iops_stddev": 35.7, "iops_samples": 27}}"#,
            bytes / 1024,
            bytes / 1024,
            if ios > 0 { 1000 } else { 0 },
        )
    };
    let clat = r#"{"min": 2000, "max": 9000, "mean": 4000.5, "stddev": 100.0, "N": 4, "percentile": {"50.000000": 3984, "99.000000": 9024},
        "bins": {"3984": 3, "9024": 1}}"#;
    let lat = r#"{"min": 2100, "max": 9100, "mean": 4100.5, "stddev": 100.0, "N": 4}"#;
    let sync = r#"{"total_ios": 0, "lat_ns": {"min": 300000, "max": 500000, "mean": 400000.0, "stddev": 10.0, "N": 4,
        "percentile": {"50.000000": 399360}, "bins": {"399360": 4}}}"#;
    let (read, write, trim) =
        (side(0, 0, 3, none, none), side(16384, 4, 0, clat, lat), side(0, 0, 0, none, none));
    let text = format!(
        r#"{{"fio version": "fio-3.28", "timestamp": 1691679955, "timestamp_ms": 1691679955590, "time": "Thu Aug 10 15:05:55 2023",
        "global options": {{"rw": "write", "ioengine": "sync", "fdatasync": "1"}},
        "jobs": [{{"jobname": "j", "groupid": 0, "error": 0, "eta": 0, "elapsed": 2, "job options": {{"name": "j"}},
        "read": {read}, "write": {write}, "trim": {trim}, "sync": {sync}, "job_runtime": 1000, "usr_cpu": 1.5, "sys_cpu": 5.5,
        "ctx": 72, "majf": 0, "minf": 16, "latency_depth": 1, "latency_target": 0, "latency_percentile": 100.0, "latency_window": 0}}]}}"#
    );
    let mut all = outcome_from_fio_json(&text).unwrap();
    let trial = all.pop().unwrap();
    assert_eq!((all.len(), trial.version.as_str(), trial.error.as_deref()), (0, "fio-3.28", None));
    for (name, expected) in [
        ("write.total_ios", 4.0),
        ("write.bw", 16384.0),
        ("write.clat_ns.mean", 4000.5),
        ("write.clat_ns.p99", 9024.0),
        ("write.lat_ns.mean", 4100.5),
        ("sync.total_ios", 4.0),
        ("sync.lat_ns.mean", 400_000.0),
        ("usr_cpu", 0.015),
    ] {
        let found = value(&trial, "j", name);
        assert!((found - expected).abs() < 1e-9, "{name}: {found}");
    }
    assert!(trial.outcome.samples.iter().all(|sample| !sample.metric.name.starts_with("read.")));
}

#[test]
fn reads_and_writes_summed_by_fio_are_read() {
    let trial = one("mixed.json");
    assert_eq!(value(&trial, "m", "bw"), raw("mixed.json", "/jobs/0/mixed/bw_bytes"));
    assert_eq!(value(&trial, "m", "iops"), raw("mixed.json", "/jobs/0/mixed/iops"));
    assert_eq!(value(&trial, "m", "runtime"), raw("mixed.json", "/jobs/0/mixed/runtime") / 1e3);
    assert!(
        trial.outcome.notes[0].text.contains("unified_rw_reporting=both reports each"),
        "{:?}",
        trial.outcome.notes
    );
}

#[test]
fn clones_are_added_up_also_where_fio_sums_reads_and_writes() {
    let text = read("mixed.json");
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut clone = document["jobs"][0].clone();
    clone["total_err"] = 3.into();
    document["jobs"].as_array_mut().unwrap().push(clone);
    let trials = outcome_from_fio_json(&document.to_string()).unwrap();
    let one = raw("mixed.json", "/jobs/0/mixed/bw_bytes");
    assert!((value(&trials[0], "m", "bw") / one - 2.0).abs() < 0.05);
    let notes: Vec<&str> = trials[0].outcome.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(notes.iter().any(|note| note.contains("3 I/Os failed")), "{notes:?}");
}

#[test]
fn what_was_reported_in_a_ramp_is_no_trial() {
    let report = |time_ms: u64, elapsed: u64, bytes: u64| {
        format!(
            "{{\"fio version\": \"fio-3.33\", \"timestamp_ms\": {time_ms}, \"global options\": {{\"ramp_time\": \"3\"}}, \
             \"jobs\": [{{\"jobname\": \"a\", \"elapsed\": {elapsed}, \"read\": {{\"io_bytes\": {bytes}, \"bw_bytes\": 1000, \
             \"iops\": 1, \"runtime\": 2000, \"total_ios\": 2}}}}]}}\n"
        )
    };
    // The counts begin anew when the ramp ends; the fio is the same.
    let text = report(1_000_002_000, 3, 9000) + &report(1_000_005_000, 6, 4000);
    let trials = outcome_from_fio_json(&text).unwrap();
    assert_eq!(trials.len(), 1);
    assert_eq!(value(&trials[0], "a", "read.io_bytes"), 4000.0);
    // Another fio, begun later.
    let text = report(1_000_002_000, 3, 9000) + &report(1_000_010_000, 6, 4000);
    assert_eq!(outcome_from_fio_json(&text).unwrap().len(), 2);
}

#[test]
fn errors_that_fio_went_on_after_are_told() {
    let text = read("groups.json").replacen(
        "\"error\" : 0,",
        "\"error\" : 0, \"total_err\" : 12, \"first_error\" : 5,",
        1,
    );
    let trials = outcome_from_fio_json(&text).unwrap();
    let told = &trials[0].outcome.notes[0].text;
    assert!(told.contains("12 I/Os failed, the first with error 5 (Input/output error)"), "{told}");
}

#[test]
fn cpu_is_seconds_of_the_jobs_run_time() {
    let trial = one("groups.json");
    let percent = raw("groups.json", "/jobs/1/sys_cpu");
    let seconds = percent / 100.0 * raw("groups.json", "/jobs/1/job_runtime") / 1e3;
    assert_eq!(value(&trial, "rw", "sys_cpu"), seconds);
    assert_eq!(value(&trial, "rw", "runtime"), raw("groups.json", "/jobs/1/write/runtime") / 1e3);
}

#[test]
fn quantiles_from_the_bins_are_those_fio_prints() {
    let trial = one("groups.json+");
    for percent in ["50", "90", "95", "99"] {
        let printed = raw("groups.json+", &format!("/jobs/1/write/clat_ns/percentile/{percent}.000000"));
        assert_eq!(value(&trial, "rw", &format!("write.clat_ns.p{percent}")), printed, "p{percent}");
    }
    let clat =
        trial.outcome.histograms.iter().find(|h| h.job == "rw" && h.direction == Direction::Write).unwrap();
    assert_eq!(clat.kind, LatencyKind::Clat);
    let histogram = clat.unpack().unwrap();
    assert_eq!(histogram.len() as f64, raw("groups.json+", "/jobs/1/write/total_ios"));
    let sync = trial.outcome.histograms.iter().find(|h| h.kind == LatencyKind::Sync).unwrap();
    assert_eq!(sync.unpack().unwrap().len(), 7);
}

#[test]
fn a_jobs_own_percentile_list_is_kept_whole() {
    let trial = one("percentile-list.json");
    for (kind, percent) in [("lat_ns", "50"), ("lat_ns", "75"), ("lat_ns", "99.5")] {
        assert!(value(&trial, "j", &format!("read.{kind}.p{percent}")) > 0.0);
    }
}

#[test]
fn jobs_of_one_name_become_one_as_under_group_reporting() {
    let trial = one("numjobs.json");
    assert_eq!(trial.jobs, ["same"]);
    assert_eq!(value(&trial, "same", "write.io_bytes"), 524_288.0);
    let slower =
        raw("numjobs.json", "/jobs/0/write/runtime").max(raw("numjobs.json", "/jobs/1/write/runtime"));
    assert!((value(&trial, "same", "write.bw") - 524_288.0 * 1e3 / slower).abs() < 1e-6);
    assert!(trial.outcome.samples.iter().all(|s| !s.metric.name.contains(".p99")));
    assert!(
        trial.outcome.notes.iter().any(|note| note.text.contains("cannot be averaged")),
        "{:?}",
        trial.outcome.notes
    );

    let with_bins = one("numjobs.json+");
    assert!(value(&with_bins, "same", "write.clat_ns.p99") > 0.0);
    assert_eq!(with_bins.outcome.histograms[0].unpack().unwrap().len(), 128);
    assert_eq!(one("numjobs-grouped.json+").outcome.histograms[0].unpack().unwrap().len(), 128);
}

#[test]
fn client_stats_give_the_jobs_and_the_sum_of_the_clients() {
    let trial = one("client.json");
    assert_eq!(trial.jobs, ["w", "rw"]);
    assert_eq!(value(&trial, "w", "write.total_ios"), 64.0);
    assert_eq!(value(&trial, "", "write.total_ios"), raw("client.json", "/client_stats/2/write/total_ios"));
}

#[test]
fn text_around_the_json_is_skipped() {
    let text = read("warning.json");
    assert!(text.starts_with("note:"));
    assert_eq!(one("warning.json").outcome.samples[0].metric.name, "write.bw");
    let braces = format!("fio: {{odd}} warning\n{}\ntrailing words\n", read("single-4k-1.json"));
    assert_eq!(outcome_from_fio_json(&braces).unwrap().len(), 1);
}

#[test]
fn documents_of_one_line_are_all_read() {
    let one = |bytes: u64| {
        format!(
            r#"{{"fio version":"fio-3.36","jobs":[{{"jobname":"a","write":{{"io_bytes":{bytes},"bw_bytes":{bytes},"iops":1,"runtime":9,
            "total_ios":1}}}}]}}"#
        )
        .replace('\n', " ")
    };
    let three = [one(1), one(2), one(3)];
    for text in [
        format!("[{}]", three.join(",")),
        format!("[\n{}\n]", three.join(", ")),
        three.concat(),
        three.join("\n"),
        format!("run 1: {}\nrun 2: {} run 3: {}", three[0], three[1], three[2]),
    ] {
        let trials = outcome_from_fio_json(&text).unwrap();
        let bytes: Vec<f64> = trials.iter().map(|trial| value(trial, "a", "write.io_bytes")).collect();
        assert_eq!(bytes, [1.0, 2.0, 3.0], "{text}");
    }
}

#[test]
fn documents_are_trials_but_status_reports_are_one() {
    let two = outcome_from_fio_json(&read("concatenated.json")).unwrap();
    assert_eq!(two.len(), 2);
    assert!(two[0].started_unix_ns > 1_700_000_000_000_000_000);
    let status = one("status-interval.json");
    assert!(value(&status, "j", "write.runtime") >= 3.9);
    assert!(
        status.outcome.notes[0].text.starts_with("4 earlier status reports"),
        "{:?}",
        status.outcome.notes
    );
}

#[test]
fn a_failed_job_is_named() {
    let trial = one("failed.json");
    assert_eq!(trial.error.as_deref(), Some("job 'j' ended with error 1 (Operation not permitted)"));
    assert!(trial.outcome.samples.is_empty());
}

#[test]
fn a_single_jobs_name_can_be_dropped() {
    let mut trial = one("single-4k-1.json");
    trial.drop_single_job_name();
    assert!(value(&trial, "", "write.bw") > 0.0);
    let mut several = one("groups.json");
    several.drop_single_job_name();
    assert!(value(&several, "w", "write.bw") > 0.0);
}

#[test]
fn fio_2_units_are_converted() {
    let text = r#"{"fio version":"fio-2.16","jobs":[{"jobname":"a","read":{"io_bytes":1024,"bw":512,"iops":128.0,"runtime":2000,
        "total_ios":256,"clat":{"min":10,"max":40,"mean":20.5,"percentile":{"99.000000":30}}},"usr_cpu":1.5}]}"#;
    let trial = outcome_from_fio_json(text).unwrap().remove(0);
    assert_eq!(value(&trial, "a", "read.bw"), 524_288.0);
    assert_eq!(value(&trial, "a", "read.io_bytes"), 1_048_576.0);
    assert_eq!(value(&trial, "a", "read.clat_ns.mean"), 20_500.0);
    assert_eq!(value(&trial, "a", "read.clat_ns.p99"), 30_000.0);
    // Its amounts are KiB also where directions, or jobs of one name, are added up.
    let side = r#"{"io_bytes":1024,"bw":512,"iops":128.0,"runtime":2000,"total_ios":256}"#;
    let job = format!("{{\"jobname\":\"a\",\"read\":{side},\"write\":{side}}}");
    let text = format!("{{\"fio version\":\"fio-2.16\",\"jobs\":[{job},{job}]}}");
    let trial = outcome_from_fio_json(&text).unwrap().remove(0);
    assert_eq!(value(&trial, "a", "write.io_bytes"), 2_097_152.0);
    assert_eq!(value(&trial, "a", "write.bw"), 1_048_576.0);
    assert_eq!((value(&trial, "a", "bw"), value(&trial, "a", "iops")), (2_097_152.0, 512.0));
}

#[test]
fn all_directions_together_have_the_bytes_over_the_longest_time() {
    let of = |options: &str| {
        let text = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"a","job options":{"#.to_owned()
            + options
            + r#"},"read":{"io_bytes":3000,"bw_bytes":3000,"iops":3.0,"runtime":1000,"total_ios":3},
                "write":{"io_bytes":1000,"bw_bytes":500,"iops":0.5,"runtime":2000,"total_ios":1}}]}"#;
        let trial = outcome_from_fio_json(&text).unwrap().remove(0);
        let found = |name: &str| {
            let of = |sample: &&Sample| sample.metric.name == name;
            trial.outcome.samples.iter().find(of).map(|sample| sample.value)
        };
        (found("bw"), found("iops"))
    };
    assert_eq!(of(r#""rw":"randrw""#), (Some(2000.0), Some(2.0)));
    // The check of what was written is no load beside the writes, but what is read between them is.
    assert_eq!(of(r#""rw":"randwrite:8","verify":"crc32c""#), (None, None));
    assert!(of(r#""rw":"write","verify":"crc32c","verify_backlog":"8""#).0.is_some());
    assert!(
        of(r#""rw":"rw","verify":"crc32c""#).0.is_some() && of(r#""rw":"write","verify":"0""#).0.is_some()
    );
}

#[test]
fn damage_is_named_with_its_line() {
    assert_eq!(outcome_from_fio_json("fio: no output\n"), Err(FioJsonError::NoDocument));
    let lines = read("truncated.json").lines().count();
    assert_eq!(outcome_from_fio_json(&read("truncated.json")), Err(FioJsonError::Truncated { line: lines }));
    let nan = read("single-4k-1.json").replacen("\"bw_agg\" : ", "\"bw_agg\" : nan, \"x\" : ", 1);
    match outcome_from_fio_json(&nan) {
        Err(FioJsonError::NotANumber { line, text }) => {
            assert_eq!(text, "nan");
            assert!(nan.lines().nth(line - 1).unwrap().contains("nan"));
        }
        other => panic!("{other:?}"),
    }
    let negative = read("single-4k-1.json").replacen("\"total_ios\" : 2048", "\"total_ios\" : -2048", 1);
    assert!(
        matches!(outcome_from_fio_json(&negative), Err(FioJsonError::Negative { field, .. }) if field == "write.total_ios")
    );
    assert_eq!(outcome_from_fio_json("x\n{\"a\": 1}"), Err(FioJsonError::NoJobs { line: 2 }));
    assert!(matches!(outcome_from_fio_json("{\"jobs\": 7}"), Err(FioJsonError::Syntax { line: 1, .. })));
    let deep = "{\"jobs\":".to_owned() + &"[".repeat(100_000);
    assert!(outcome_from_fio_json(&deep).is_err());
}

/// Old versions say neither how many latencies they measured nor how long each job ran.
#[test]
fn clones_of_one_job_are_weighed_by_their_ios_and_alike() {
    let job = |ios: u32, mean: f64, cpu: u32| {
        format!(
            r#"{{"jobname":"a","groupid":0,"usr_cpu":{cpu},"sys_cpu":0,"write":{{"io_bytes":{},"total_ios":{ios},"runtime":1000,
            "clat_ns":{{"min":1,"max":2,"mean":{mean:?},"stddev":0}}}}}}"#,
            ios * 4096
        )
    };
    let jobs = [job(100_000, 1e5, 10), job(1000, 1e7, 10), job(1000, 1e7, 10), job(1000, 1e7, 90)].join(",");
    let text = format!(r#"{{"fio version":"fio-3.1","jobs":[{jobs}]}}"#);
    let trial = outcome_from_fio_json(&text).unwrap().remove(0);
    let mean = (100_000.0 * 1e5 + 3000.0 * 1e7) / 103_000.0;
    assert!((value(&trial, "a", "write.clat_ns.mean") - mean).abs() < 1.0, "{:?}", trial.outcome.samples);
    assert_eq!(value(&trial, "a", "usr_cpu"), 30.0);
}
