//! What a reader of a job's results must know, whatever the results are: options without effect, what its latencies count.
//!
//! Enters: a job. Leaves: notes.

use crate::workload::{IoMethod, Job, RateProcess};

const MORE_SYNCS: &str = "one sync after every so many writes; fio 3.33 makes several times as many where I/Os are in flight beside the \
                          writes, or reads among them";

/// Whether fio 3.33 makes more syncs than one after every N writes: it counts writes when they are issued and looks for a sync when the one
/// before has ended, with each I/O that it takes.
fn syncs_more_seldom_than_fio(job: &Job) -> bool {
    let syncs =
        job.fsync > 1 || job.fdatasync > 1 || (job.fsync.max(job.fdatasync) > 0 && job.pattern.mix.reads());
    // libaio syncs in place, with nothing between.
    let beside = job.method == IoMethod::IoUring && job.depth.iodepth > 1;
    syncs && job.pattern.mix.writes() && (beside || job.pattern.mix.reads())
}

/// All notes of a job.
pub(super) fn of(job: &Job) -> Vec<String> {
    let (method, depth, think) = (job.method, job.depth.asked, job.thinktime);
    let options = job.method_options;
    let mut said = Vec::new();
    if !method.is_asynchronous() && depth > 1 {
        // fio says so, too.
        let has = format!("ioengine={}, which has one I/O in flight", method.name());
        said.push(format!("iodepth={depth} has no effect with {has}"));
    }
    if think.pause.is_zero() && (!think.spin.is_zero() || think.every_ios != 1) {
        said.push("thinktime_spin and thinktime_blocks have no effect without thinktime".to_owned());
    }
    if !options.polled && options.polled_percent != 100 {
        said.push("hipri_percentage has no effect without hipri".to_owned());
    }
    if !job.rate.is_limited() && job.rate.process != RateProcess::Linear {
        said.push("rate_process has no effect without rate or rate_iops".to_owned());
    }
    if job.rate.is_limited() {
        said.push(
            "its rate is an open loop: lat_ns counts from the time an I/O was due, clat_ns from the time it was issued \
             (service time)"
                .to_owned(),
        );
    }
    if !think.pause.is_zero() {
        said.push("the pauses of thinktime are in no latency".to_owned());
    }
    if syncs_more_seldom_than_fio(job) {
        said.push(MORE_SYNCS.to_owned());
    }
    if job.create_on_open {
        said.push("its files are made before the clock starts; fio makes each while it runs, which --engine fio measures".to_owned());
    }
    said.into_iter().map(|text| format!("job {}: {text}", job.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{JobFile, Workload};

    fn said(options: &str) -> String {
        let text = format!("[j]\nsize=1m\n{options}\n");
        let file = JobFile::parse(&text, "test.fio", std::path::Path::new(".")).unwrap();
        of(&Workload::resolve(&file).unwrap().jobs[0]).join("|")
    }

    #[test]
    fn options_without_effect_and_what_latencies_count_are_said() {
        assert_eq!(said("rw=write"), "");
        let deep = said("iodepth=8");
        assert!(deep.contains("iodepth=8 has no effect with ioengine=psync"), "{deep}");
        assert_eq!(said("iodepth=8\nioengine=libaio"), "");
        assert!(said("rw=randrw\nfdatasync=1").contains("fio 3.33 makes several times as many"));
        assert!(said("rw=write\nfsync=32\nioengine=io_uring\niodepth=8").contains("fio 3.33 makes several"));
        assert_eq!(said("rw=write\nfsync=32") + &said("rw=write\nfsync=4\nioengine=libaio\niodepth=8"), "");
        assert!(said("rw=write\ncreate_on_open=1").contains("made before the clock starts"));
        assert!(said("thinktime_spin=5").contains("thinktime_spin and thinktime_blocks have no effect"));
        assert!(said("ioengine=pvsync2\nhipri_percentage=50").contains("without hipri"));
        assert_eq!(said("ioengine=pvsync2\nhipri_percentage=50\nhipri"), "");
        assert!(said("rate_process=poisson").contains("rate_process has no effect"));
        let paced = said("rate_iops=100\nthinktime=1ms");
        assert!(paced.contains("lat_ns counts from the time an I/O was due"), "{paced}");
        assert!(paced.contains("pauses of thinktime are in no latency"), "{paced}");
    }
}
