//! Which documents are reports of one running fio, and which are fios of their own.

use super::*;

/// A document: when it was written, how old its fio was, and the bytes and run time (ms) of its jobs.
fn document(at: &str, elapsed: u64, options: &str, jobs: &[(u64, u64)]) -> String {
    let jobs: Vec<String> = jobs
        .iter()
        .enumerate()
        .map(|(number, (bytes, runtime))| {
            format!(
                r#"{{"jobname":"j{number}","groupid":{number},"elapsed":{elapsed},"job options":{{"rw":"write"{options}}},
                "write":{{"io_bytes":{bytes},"bw_bytes":1000,"iops":1.0,"runtime":{runtime},"total_ios":{}}}}}"#,
                bytes / 4096
            )
        })
        .collect();
    format!(r#"{{"fio version":"fio-3.36",{at},"jobs":[{}]}}"#, jobs.join(",")) + "\n"
}

fn trials(documents: &[String]) -> usize {
    outcome_from_fio_json(&documents.concat()).unwrap().len()
}

fn at_ms(ms: u64) -> String {
    format!(r#""timestamp":{},"timestamp_ms":{ms}"#, ms / 1000)
}

#[test]
fn fios_side_by_side_are_trials() {
    let at = |after_ms: u64| at_ms(1_700_000_010_000 + after_ms);
    let (a, b) = (r#","filename":"a""#, r#","filename":"b""#);
    let other = [document(&at(0), 10, a, &[(8192, 9999)]), document(&at(50), 10, b, &[(9000, 9999)])];
    assert_eq!(trials(&other), 2);
    // The same options and another beginning.
    let later = [document(&at(0), 10, a, &[(8192, 9999)]), document(&at(3000), 10, a, &[(9000, 9999)])];
    assert_eq!(trials(&later), 2);
    let same = [document(&at(0), 10, a, &[(8192, 9999)]), document(&at(3000), 13, a, &[(9000, 12_999)])];
    assert_eq!(trials(&same), 1);
}

#[test]
fn fios_one_behind_the_other_that_tell_whole_seconds_are_trials() {
    let documents: Vec<String> = (0..5)
        .map(|run| {
            document(&format!(r#""timestamp":{}"#, 1_700_000_000 + run * 10), 10, "", &[(8192 + run, 10_005)])
        })
        .collect();
    assert_eq!(trials(&documents), 5);
}

#[test]
fn reports_of_jobs_that_are_shorter_than_the_interval_are_one_trial() {
    let jobs = |done: usize| -> Vec<(u64, u64)> {
        (0..4).map(|number| if number < done { (8192, 5000) } else { (0, 0) }).collect()
    };
    let reports: Vec<String> = [(10_000, 2), (20_000, 4), (20_200, 4)]
        .into_iter()
        .map(|(ms, done)| {
            document(&at_ms(1_700_000_000_000 + ms), ms.div_ceil(1000), r#","stonewall":"""#, &jobs(done))
        })
        .collect();
    assert_eq!(trials(&reports), 1);
}
