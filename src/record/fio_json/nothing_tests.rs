//! Jobs and directions that did nothing: a device that hung is no trial without values.

use super::*;

const NONE: &str = r#"{"io_bytes":0,"bw_bytes":0,"bw":0,"iops":0.0,"runtime":0,"total_ios":0}"#;
const SIDE: &str = r#"{"io_bytes":4000,"bw_bytes":2000,"bw":2,"iops":2.0,"runtime":2000,"total_ios":4}"#;

/// A document with one job of these options, reads and writes; `more` are further fields of the job.
fn document(options: &str, read: &str, write: &str, more: &str) -> FioTrial {
    let text = format!(
        r#"{{"fio version":"fio-3.36","jobs":[{{"jobname":"j","error":0,"job options":{{{options}}},"read":{read},"write":{write},
        "trim":{NONE},"job_runtime":2000{more}}}]}}"#
    );
    outcome_from_fio_json(&text).unwrap().remove(0)
}

fn found(trial: &FioTrial, name: &str) -> Option<f64> {
    trial.outcome.samples.iter().find(|sample| sample.metric.name == name).map(|sample| sample.value)
}

#[test]
fn a_job_that_did_no_io_has_failed() {
    let hung = document(r#""rw":"randwrite""#, NONE, NONE, "");
    assert_eq!(hung.error.as_deref(), Some("job 'j' did no I/O"));
    assert_eq!((hung.jobs, hung.outcome.samples.len()), (vec!["j".to_owned()], 0));
    let all_failed = document(r#""rw":"randwrite""#, NONE, NONE, r#","total_err":7,"first_error":5"#);
    assert!(all_failed.error.is_some() && all_failed.outcome.notes[0].text.contains("7 I/Os failed"));
    let summed = format!(r#","mixed":{NONE}"#);
    assert!(document(r#""rw":"randrw""#, NONE, NONE, &summed).error.is_some());
}

#[test]
fn what_was_to_do_no_io_has_not_failed() {
    let syncs = r#","sync":{"total_ios":0,"lat_ns":{"min":1,"max":3,"mean":2.0,"N":5}}"#;
    for (options, more) in [
        (r#""rw":"write""#, syncs),
        (r#""rw":"write","create_only":"1""#, ""),
        (r#""create_only":"""#, ""),
        (r#""ioengine":"cpuio""#, ""),
    ] {
        let trial = document(options, NONE, NONE, more);
        assert_eq!(trial.error, None, "{options}");
        assert_eq!((found(&trial, "write.bw"), found(&trial, "read.bw")), (None, None), "{options}");
    }
    // The end of another job ended it: that it had done nothing by then is its result.
    let ended = document(r#""rw":"randwrite","exitall":"""#, NONE, NONE, "");
    assert_eq!((ended.error.as_deref(), found(&ended, "write.iops")), (None, Some(0.0)));
}

#[test]
fn exitall_of_one_job_ends_all() {
    let of = |option: &str| {
        let text = format!(
            r#"{{"fio version":"fio-3.36","jobs":[
            {{"jobname":"a","error":0,"job options":{{"rw":"write"{option}}},"read":{NONE},"write":{SIDE},"trim":{NONE}}},
            {{"jobname":"b","error":0,"job options":{{"rw":"write"}},"read":{NONE},"write":{NONE},"trim":{NONE}}}]}}"#
        );
        outcome_from_fio_json(&text).unwrap().remove(0).error
    };
    assert_eq!(of(""), Some("job 'b' did no I/O".to_owned()));
    assert_eq!(of(r#","exitall":"""#), None);
    assert_eq!(of(r#","exitall":"0""#), Some("job 'b' did no I/O".to_owned()));
}

#[test]
fn the_sum_of_all_clients_is_no_job() {
    let text = format!(
        r#"{{"fio version":"fio-3.36","client_stats":[
        {{"jobname":"j","error":0,"job options":{{"rw":"write","create_only":"1"}},"read":{NONE},"write":{NONE},"trim":{NONE}}},
        {{"jobname":"All clients","error":0,"read":{NONE},"write":{NONE},"trim":{NONE}}}]}}"#
    );
    assert_eq!(outcome_from_fio_json(&text).unwrap().remove(0).error, None);
}

#[test]
fn a_starved_direction_is_zero_and_stays_in_the_sum() {
    for options in [r#""rw":"randrw""#, r#""readwrite":"rw:4""#, r#""rw":"randrw","rwmixread":"70""#] {
        let trial = document(options, SIDE, NONE, "");
        for name in ["write.bw", "write.iops", "write.total_ios"] {
            assert_eq!(found(&trial, name), Some(0.0), "{options} {name}");
        }
        assert_eq!((found(&trial, "bw"), found(&trial, "iops")), (Some(2000.0), Some(2.0)), "{options}");
        assert_eq!((found(&trial, "write.runtime"), &trial.error), (None, &None));
    }
    for options in [r#""rw":"read""#, r#""rw":"randrw","rwmixread":"100""#, r#""bs":"4k""#] {
        let trial = document(options, SIDE, NONE, "");
        assert_eq!((found(&trial, "write.bw"), found(&trial, "bw")), (None, None), "{options}");
    }
}
