//! Tests of resolving. Expected amounts and errors were seen in fio 3.33.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::workload::{BlockRange, BufferFill, IoMethod, Job, Mix, SeedRule, SyncMode};

fn file(text: &str) -> JobFile {
    JobFile::parse(text, "t.fio", Path::new(".")).unwrap()
}

fn jobs(text: &str) -> Vec<Job> {
    match Workload::resolve(&file(text)) {
        Ok(workload) => workload.jobs,
        Err(errors) => panic!("{errors}"),
    }
}

fn job(options: &str) -> Job {
    jobs(&format!("[a]\nsize=1m\n{options}\n")).remove(0)
}

fn errors(options: &str) -> WorkloadErrors {
    Workload::resolve(&file(&format!("[a]\nsize=1m\n{options}\n"))).unwrap_err()
}

#[test]
fn defaults_are_fios() {
    let job = job("");
    assert_eq!(job.method, IoMethod::Psync);
    assert_eq!(job.block_sizes.read, BlockRange { min: 4096, max: 4096 });
    assert_eq!((job.seed, job.random_map, job.invalidate), (SeedRule::Repeat(0x89), true, true));
    assert_eq!((job.numjobs, job.nrfiles, job.loops), (1, 1, 1));
    assert_eq!(job.buffers, BufferFill::Scrambled);
}

#[test]
fn globals_accumulate_and_only_reach_down() {
    let jobs = jobs("[global]\nsize=4k\nrw=write\n[a]\nbs=1k\n[global]\nsize=8k\ndirect=1\n[b]\n");
    assert_eq!((jobs[0].size, jobs[0].direct, jobs[0].min_block()), (Some(4096), false, 1024));
    assert_eq!((jobs[1].size, jobs[1].direct, jobs[1].min_block()), (Some(8192), true, 4096));
    assert!(jobs[1].pattern.mix.writes());
    assert_eq!((jobs[0].line, jobs[1].line), (4, 9));
}

#[test]
fn a_range_wins_over_a_fixed_block_size_wherever_they_stand() {
    for text in ["bs=1k\nbsrange=4k-4k", "bsrange=4k-4k\nbs=1k"] {
        assert_eq!(job(&format!("rw=write\n{text}")).min_block(), 4096, "{text}");
    }
    assert_eq!(jobs("[global]\nbsrange=4k-4k\n[a]\nrw=write\nsize=8k\nbs=1k\n")[0].min_block(), 4096);
}

#[test]
fn the_last_share_of_a_mix_holds() {
    let mix = |text: &str| job(&format!("rw=rw\n{text}")).pattern.mix;
    assert_eq!(mix("rwmixread=30\nrwmixwrite=10"), Mix::ReadWrite { read_percent: 90 });
    assert_eq!(mix("rwmixwrite=10\nrwmixread=30"), Mix::ReadWrite { read_percent: 30 });
}

#[test]
fn kilobase_holds_for_the_whole_job() {
    assert_eq!(job("bs=1k\nkb_base=1000").min_block(), 1000);
    assert_eq!(job("size=3mib").size, Some(3_000_000));
}

/// The sizes that fio 3.33 writes: each section's lines are read with the base that is known there.
#[test]
fn kilobase_of_a_section_is_not_for_what_it_inherits() {
    let text = "[global]\nkb_base=1000\nsize=3k\nbs=1\n[a]\n[b]\nkb_base=1024\n[global]\nkb_base=1024\nsize=5k\n[c]\n[global]\nkb_base=1000\n[d]\n";
    let sizes: Vec<Option<u64>> = jobs(text).iter().map(|job| job.size).collect();
    assert_eq!(sizes, [3000, 3000, 5120, 5120].map(Some));
}

#[test]
fn depth_is_corrected_as_fio_does() {
    let batches = "iodepth=1024\niodepth_batch=32\niodepth_batch_complete=1\n";
    let depth = job(&format!("ioengine=libaio\n{batches}")).depth;
    assert_eq!((depth.iodepth, depth.submit, depth.complete_min, depth.complete_max), (1024, 32, 1, 1));
    assert_eq!(depth.low, 1024);
    assert_eq!(job("iodepth=32").depth.iodepth, 1);
    assert_eq!(job("ioengine=io_uring\niodepth=4\niodepth_batch=99").depth.submit, 4);
    assert_eq!(job("ioengine=io_uring\niodepth=4\niodepth_batch=0").depth.submit, 4);
    assert_eq!(job("ioengine=io_uring\niodepth=4\niodepth_batch_complete_max=3").depth.complete_max, 3);
    assert_eq!(job("ioengine=io_uring\niodepth=4\niodepth_batch_complete_min=2").depth.complete_max, 2);
}

#[test]
fn times_switches_and_names() {
    let job = job(
        "runtime=500ms\ntime_based\nramp_time=2\nstartdelay=1-3\nthinktime=7\nbuffered=0\nsync=dsync\nname=shown\n\
         stonewall=1\nstonewall=0\nzero_buffers\nrandseed=5\ncpus_allowed=1,0\nthread\nwrite_iolog=all.iolog\n",
    );
    assert_eq!(job.runtime, Some(Duration::from_millis(500)));
    assert_eq!((job.ramp_time, job.thinktime.pause), (Duration::from_secs(2), Duration::from_micros(7)));
    assert_eq!(job.start_delay, (Duration::from_secs(1), Duration::from_secs(3)));
    assert_eq!((job.direct, job.sync, job.stonewall), (true, SyncMode::Dsync, false));
    assert_eq!((job.name.as_str(), job.section.as_str()), ("shown", "a"));
    assert_eq!((job.buffers, job.seed), (BufferFill::Zero, SeedRule::Repeat(5)));
    assert_eq!(job.cpus_allowed, [0, 1]);
    assert_eq!(job.io_log.as_deref(), Some(Path::new("all.iolog")));
}

#[test]
fn options_only_fio_has_are_reported_all_at_once() {
    let text = "[global]\nzonemode=zbd\nsize=1m\n[a]\nioengine=posixaio\nrate_min=1m\n[b]\nrw=trimwrite\nsize=50%\nunlink=0\n";
    let errors = Workload::resolve(&file(text)).unwrap_err();
    let told = errors.to_string();
    // Which methods there are is not what this test is about.
    let (before, after) = told.split_once("(it has ").unwrap();
    let told = format!("{before}(it has METHODS){}", after.split_once(')').unwrap().1);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines,
        [
            "t.fio:2: zonemode=zbd: the native engine does not have this option",
            "t.fio:5: ioengine: the native engine does not have 'posixaio' (it has METHODS)",
            "t.fio:6: rate_min=1m: the native engine does not have this option",
            "t.fio:8: rw: the native engine does not have 'trimwrite'",
            "t.fio:9: size: the native engine does not have '50%': a percentage",
        ]
    );
    assert_eq!(errors.hint(), "--engine fio runs it".into());
}

#[test]
fn each_mistake_says_what_would_be_right() {
    for (options, expected) in [
        ("iodpeth=4", "did you mean iodepth?"),
        ("ioengine=psynk", "did you mean psync?"),
        ("bs=8q", "'q' in '8q' is not a unit of size"),
        ("bs=", "bs needs a value"),
        ("direct", "direct needs a value"),
        ("direct=yes", "'yes' is neither 0 nor 1"),
        ("rw=readwrit", "is none of read, write"),
        ("numjobs=0", "write 1 or more"),
        ("rwmixread=101", "write at most 100"),
        ("time_based", "time_based needs runtime="),
        ("runtime=5parsec", "'parsec' in '5parsec' is not a unit of time"),
        ("bs=2m", "a size of 1048576 bytes is below its block of 2097152 bytes"),
        ("sync=2", "'2' is none of none, 0, sync"),
        ("numjobs=5000", "write at most 4096"),
        ("numjobs=4096\nnrfiles=1000", "4096000 files; at most"),
        ("offset=99000000000g", "more than 2^64"),
        ("offset=9300000000000000000", "beyond the largest file"),
        ("loops=2\nio_size=2m", "loops together with io_size"),
        ("kb_base=1023", "neither 1024 nor 1000"),
        ("bssplit=4k/60:8k/60", "the shares add up to 120 %, more than 100"),
        ("random_distribution=zipf:1", "write a number above 0 that is not 1"),
        ("percentage_random=101", "write at most 100"),
        ("file_service_type=roundrobin:0", "write 1 or more"),
    ] {
        let error = errors(options);
        assert!(error.to_string().contains(expected), "{options}: {error}");
        assert!(error.to_string().starts_with("t.fio"), "{error}");
    }
    let missing = Workload::resolve(&file("[a]\nrw=read\n")).unwrap_err();
    assert_eq!(missing.to_string(), "t.fio:1: [a] needs size=, e.g. size=64m");
    assert!(Workload::resolve(&file("[a]\nrw=read\nfilename=existing\n")).is_ok());
}

#[test]
fn the_published_block_device_job_is_native() {
    let text = std::fs::read_to_string("tests/data/jobs/bdev-mix.fio").unwrap();

    let file = file(&text);
    let workload = Workload::resolve(&file).unwrap();
    let instances = workload.instances(Path::new("/t"));
    assert_eq!((workload.jobs.len(), instances.len()), (24, 24));
    assert_eq!(instances.iter().map(|instance| instance.wave).max(), Some(5));
    assert_eq!(instances.iter().map(|instance| instance.report).max(), Some(5));
    assert!(instances.iter().all(|instance| instance.files[0].path == Path::new("/t/bdev-mix.dat")));
    assert_eq!(workload.jobs.iter().map(|job| job.offset).max(), Some(3 << 20));
}
