//! Tests of settings put together. What fio 3.33 does was seen by running it.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::workload::JobFile;
use crate::workload::content::{PatternPart, VerifyMethod};
use crate::workload::fio_options::fio_option;
use crate::workload::issue::MethodOptions;
use crate::workload::job::CpuPolicy;
use crate::workload::pace::{RateLimit, RateProcess};
use crate::workload::placement::{BlockShare, Distribution};

/// The job of these settings.
fn made(settings: &str) -> Result<Job, Vec<String>> {
    let file = JobFile::parse(&format!("[a]\nsize=1m\n{settings}\n"), "t", Path::new(".")).unwrap();
    let section = &file.sections[0];
    let mut draft = Draft::new("a", 1);
    for setting in &section.settings {
        let name = fio_option(&setting.name).unwrap().name;
        match draft.apply(name, setting.value.as_deref()) {
            Some(Ok(())) => {}
            other => return Err(vec![format!("{name}: {other:?}")]),
        }
    }
    draft.finish(section).map_err(|problems| problems.into_iter().map(|problem| problem.message).collect())
}

fn job(settings: &str) -> Job {
    made(settings).unwrap()
}

fn refused(settings: &str, why: &str) {
    let told = made(settings).unwrap_err().join("\n");
    assert!(told.contains(why), "{settings}: {told}");
}

#[test]
fn rates_fill_the_directions() {
    let bytes = |bytes| Some(RateLimit::BytesPerSecond(bytes));
    assert_eq!(job("rate=1m").rate.limits, [bytes(1 << 20); 3]);
    assert_eq!(job("rate=1m,500k").rate.limits, [bytes(1 << 20), bytes(500 << 10), bytes(500 << 10)]);
    assert_eq!(job("rate=,1m").rate.limits, [None, bytes(1 << 20), bytes(1 << 20)]);
    assert_eq!(job("rate=1m,").rate.limits, [bytes(1 << 20), None, None]);
    let poisson = job("rate_iops=1k\nrate_process=poisson").rate;
    assert_eq!(poisson.limits[0], Some(RateLimit::IosPerSecond(1024)));
    assert_eq!(poisson.process, RateProcess::Poisson);
    assert!(!job("rate=0").rate.is_limited());
    refused("rate=1m,\nrate_iops=,100", "both rate and rate_iops");
    refused("rate_process=burst", "is none of linear, poisson");
}

#[test]
fn pauses_and_latency_targets() {
    let think = job("thinktime=10ms\nthinktime_spin=20ms\nthinktime_blocks=4").thinktime;
    assert_eq!((think.pause, think.spin, think.every_ios), (Duration::from_millis(10), think.pause, 4));
    let target =
        job("latency_target=500\nlatency_window=2s\nlatency_percentile=99.5").latency_target.unwrap();
    assert_eq!((target.target, target.window), (Duration::from_micros(500), Duration::from_secs(2)));
    assert_eq!(target.percentile, 99.5);
    assert_eq!(job("latency_window=2s").latency_target, None);
    refused("latency_target=1ms", "needs latency_window=");
    refused("latency_percentile=0", "not a percentile");
    refused("thinktime_blocks=0", "write 1 or more");
}

#[test]
fn a_split_bounds_the_block_sizes() {
    let job = job("rw=randrw\nbssplit=4k/10:64k/90,8k");
    assert_eq!(job.block_sizes.read, BlockRange { min: 4096, max: 65536 });
    assert_eq!(job.block_sizes.write, BlockRange { min: 8192, max: 8192 });
    assert_eq!(job.block_split[0][1], BlockShare { bytes: 65536, percent: 90 });
    assert!(job.block_split[1].is_empty());
    refused("bssplit=4k/50:8k/50\nbsrange=4k-16k", "both bsrange and bssplit");
}

#[test]
fn only_a_uniform_distribution_keeps_the_map() {
    assert!(job("rw=randread").random_map && job("rw=randread\npercentage_random=50").random_map);
    assert!(!job("rw=randread\nrandom_distribution=zipf:1.2").random_map);
    let zoned = job("rw=randread\nrandom_distribution=zoned:90/10:10/90");
    assert!(!zoned.random_map && matches!(zoned.distribution, Distribution::Zoned(_)));
    assert_eq!(job("percentage_random=50,20").percentage_random, [50, 20, 20]);
}

#[test]
fn verification() {
    let written = job("rw=write\nverify=crc32c\nverify_fatal=1\nverify_backlog=32\nverify_interval=512");
    let verify = written.verify.unwrap();
    assert_eq!((verify.method, verify.fatal, verify.backlog), (VerifyMethod::Crc32c, true, 32));
    assert_eq!((verify.interval, verify.read_back), (512, true));
    assert_eq!(written.buffers, BufferFill::Refill);
    assert_eq!(job("rw=write\nverify=crc32c\nrefill_buffers=0").buffers, BufferFill::Scrambled);
    let pattern = job("rw=write\nverify_pattern=%o\nverify=pattern").verify.unwrap();
    assert_eq!((pattern.method, pattern.pattern), (VerifyMethod::Pattern, vec![PatternPart::Offset]));
    assert_eq!(job("verify=0").verify, None);
    refused("rw=write\nverify_pattern=1", "add verify=pattern or verify=crc32c");
    refused("rw=write\nverify=pattern", "needs verify_pattern=");
    refused("rw=trim\nverify=crc32c", "verify with trims");
    refused("rw=write\nioengine=null\nverify=crc32c", "ioengine=null");
    refused("rw=write\nbs=16\nverify=crc32c", "no room for verify's header and checksum of 44");
    refused("rw=write\nruntime=1\ntime_based\nverify=crc32c", "verify never reads back");
    refused("rw=write\nverify=md5", "NotNative");
    refused("verify_interval=79", "write 80 or more");
}

#[test]
fn what_compresses_or_repeats_is_made_anew() {
    let content = |settings: &str| {
        let job = job(settings);
        (job.buffers, job.redundancy.compress_percent, job.redundancy.dedupe_percent)
    };
    assert_eq!(content("buffer_compress_percentage=50"), (BufferFill::Refill, 50, 0));
    assert_eq!(content("buffer_compress_percentage=100"), (BufferFill::Zero, 0, 0));
    assert_eq!(content("buffer_compress_percentage=50\nrefill_buffers=0"), (BufferFill::Scrambled, 50, 0));
    assert_eq!(content("dedupe_percentage=30"), (BufferFill::Refill, 0, 30));
    assert_eq!(job("").redundancy.compress_chunk, 512);
}

#[test]
fn methods_have_options_of_their_own() {
    let options =
        job("ioengine=io_uring\nhipri\nfixedbufs=1\nsqthread_poll\nsqthread_poll_cpu=1\nnonvectored=0")
            .method_options;
    assert!(options.polled && options.fixed_buffers && options.submission_thread && options.vectored);
    assert_eq!((options.submission_cpu, options.polled_percent), (Some(1), 100));
    assert!(job("ioengine=libaio\nnowait=1").method_options.no_wait);
    assert!(made("ioengine=psync\nhipri=0").is_ok());
    refused("ioengine=psync\nhipri", "hipri is an option of ioengine=io_uring, pvsync2, not of psync");
    refused("ioengine=libaio\nfixedbufs", "fixedbufs is an option of ioengine=io_uring, not of libaio");
}

#[test]
fn a_method_does_nothing_that_the_job_does_not_ask_for() {
    let plain = MethodOptions { polled_percent: 100, ..MethodOptions::default() };
    for method in ["io_uring", "libaio"] {
        let job = job(&format!("ioengine={method}\niodepth=32"));
        assert_eq!(job.method_options, plain, "{method}");
        let depth = Depth { iodepth: 32, asked: 32, submit: 1, complete_min: 1, complete_max: 1, low: 32 };
        assert_eq!(job.depth, depth, "{method}");
    }
    assert!(!plain.fixed_buffers && !plain.registered_files && !plain.submission_thread);
}

#[test]
fn what_is_read_beforehand_stays_in_the_cache() {
    let of = |settings: &str| {
        let job = job(settings);
        (job.pre_read, job.invalidate)
    };
    assert_eq!(of(""), (false, true));
    assert_eq!(of("invalidate=0"), (false, false));
    assert_eq!(of("pre_read=0"), (false, true));
    // fio clears it, too, whichever stands first.
    assert_eq!(of("pre_read=1"), (true, false));
    assert_eq!(of("pre_read=1\ninvalidate=1"), (true, false));
    refused("pre_read=1\ndirect=1", "pre_read=1 fills the page cache");
    refused("pre_read=2", "pre_read");
}

#[test]
fn surroundings() {
    let job =
        job("lockmem=64m\niomem=mmaphuge\ncpus_allowed=0-1\ncpus_allowed_policy=split\nnuma_cpu_nodes=0\n\
         write_iolog=x.log\nunlink=1\nfsync_on_close=1\ncreate_on_open=1\nfile_append=1\nexitall");
    assert_eq!(job.memory.locked_bytes, 64 << 20);
    assert!(job.memory.huge_pages && !job.memory.shared);
    assert_eq!((job.cpu_policy, job.numa_cpu_nodes), (CpuPolicy::Split, vec![0]));
    assert_eq!(job.io_log.as_deref(), Some(Path::new("x.log")));
    assert!(job.unlink && job.fsync_on_close && job.create_on_open && job.file_append && job.exitall);
    refused("exitall=0", "fio takes exitall=0 as exitall");
}

#[test]
fn what_no_engine_runs_has_no_hint_to_another_engine() {
    for (option, hint) in
        [("ioscheduler=none", "--target scheduler=NAME"), ("read_iolog=trace.log", "run fio yourself")]
    {
        let text = format!("[a]\nrw=read\nsize=1m\n{option}\n");
        let file = JobFile::parse(&text, "j.fio", Path::new("/")).unwrap();
        let errors = crate::workload::Workload::resolve(&file).unwrap_err();
        assert!(errors.hint().to_string().contains(hint), "{option}: {}", errors.hint());
    }
}

#[test]
fn a_clone_beyond_its_file_is_refused() {
    let moved =
        |clones: u32| format!("rw=read\nfilename=f\nfilesize=64m\noffset_increment=32m\nnumjobs={clones}");
    assert!(made(&moved(2)).is_ok());
    refused(&moved(3), "offset_increment for the last clone");
}

#[test]
fn refusals_say_what_to_do() {
    for (settings, why) in [
        ("write_hint=short", "leave it out"),
        ("flow=3", "rate_iops="),
        ("io_submit_mode=offload", "leave it at inline"),
        ("io_submit_mode=other", "none of inline, offload"),
        ("allow_mounted_write=1", "never writes to a device that is mounted"),
    ] {
        refused(settings, why);
    }
    assert!(made("write_hint=none\nflow=0\nio_submit_mode=inline\nallow_mounted_write=0").is_ok());
}
