//! What jobs and tools are foreseen to report.

use super::*;
use crate::experiment::CommandLine;
use crate::plan::Plan;

const JOB: &str =
    "[global]\nsize=1m\n[wal]\nrw=write\nfsync=1\nrate=1m\n[scan]\nrw=randread\nioengine=io_uring\n";

fn names(job: &str, engine: &str) -> Option<MetricNames> {
    let line = CommandLine { aa: true, engine: Some(engine.to_owned()), ..CommandLine::default() };
    let experiment = Experiment::from_job(job, "j.fio", Path::new("/"), &line).unwrap();
    let plan = Plan::new(&experiment, 1, Path::new("/"), "own").unwrap();
    MetricNames::of(&experiment, &plan.cells)
}

#[test]
fn a_smallest_difference_is_of_a_metric_that_may_be_reported() {
    let may = |job: &str, engine: &str, metric: &str| {
        let own = MetricDelta { metric: metric.to_owned(), delta: 0.1 };
        names(job, engine).unwrap().may_have(&own)
    };
    for metric in ["p99", "wal:p99", "clat_ns", "write.bw", "runtime", "wal:write.clat_ns.p99"] {
        assert!(may(JOB, "native", metric), "{metric}");
    }
    for metric in ["p98", "nobody:p99", "scan:write", "hook.x"] {
        assert!(!may(JOB, "native", metric), "{metric}");
    }
    let chosen = JOB.replace("size=1m", "size=1m\npercentile_list=98");
    assert!(may(&chosen, "fio", "p98") && may(&chosen, "fio", "wal:write.clat_ns.p98.5"));
    assert!(!may(&chosen, "fio", "q98"));
}

#[test]
fn an_only_section_is_the_trial() {
    let only = names("[w]\nrw=write\nsize=1m\n", "native").unwrap();
    for primary in ["w:write.clat_ns.p99", "write.clat_ns.p99"] {
        assert_eq!(only.check(primary), Ok(()));
        assert_eq!(only.without_the_only_section(primary), "write.clat_ns.p99");
    }
    assert_eq!(only.without_the_only_section("w:write.bw, runtime"), "write.bw,runtime");
    assert!(only.check("x:write.bw").unwrap_err().contains("no section reports as 'x'"));
    let several = names(JOB, "native").unwrap();
    assert_eq!(several.without_the_only_section("wal:write.bw"), "wal:write.bw");
}

#[test]
fn a_job_says_what_it_will_report() {
    let native = names(JOB, "native").unwrap();
    for good in [
        "write.bw",
        "wal:write.lat_ns.p99",
        "wal:sync.lat_ns.p99.9",
        "scan:read.slat_ns.mean",
        "wal:write.bw,scan:read.clat_ns.p50",
        "dev.flushes_per_op",
        "dev.flushes_per_sync",
        "dev.write_bytes_per_byte",
        "usr_cpu",
    ] {
        assert_eq!(native.check(good), Ok(()), "{good}");
    }
    for (wrong, words) in [
        ("write.bww", "no metric 'write.bww'; did you mean write.bw?"),
        ("write.bw_per_banana", "no metric 'write.bw_per_banana'; did you mean write.bw"),
        ("write.total_ios_per_op", "no metric 'write.total_ios_per_op'; did you mean write.total_ios"),
        ("usr_cpu_per_banana", "no metric 'usr_cpu_per_banana'; did you mean usr_cpu"),
        ("bw", "did you mean write.bw or read.bw?"),
        ("write.p99", "did you mean write.clat_ns.p99 or write.lat_ns.p99 or sync.lat_ns.p99?"),
        ("p99.9", "did you mean "),
        ("write.clat.p99", "did you mean write.clat_ns.p99"),
        ("trim.bw", "no metric 'trim.bw'; did you mean "),
        ("wall:write.bw", "no section reports as 'wall'; did you mean wal?"),
        ("disk:write.bw", "no section reports as 'disk'; there are scan, wal"),
        ("scan:sync.lat_ns.mean", "no metric 'sync.lat_ns.mean' of section scan"),
        ("throughput", "there are write.bw, write.iops"),
        ("scan:write.bw", "no metric 'write.bw' of section scan; did you mean read.bw?"),
    ] {
        let said = native.check(wrong).unwrap_err();
        assert!(said.contains(words), "{wrong}: {said}");
    }
}

#[test]
fn a_direction_that_no_job_has_decides_nothing() {
    let of = |options: &str, engine: &str| names(&format!("[w]\nsize=1m\n{options}\n"), engine).unwrap();
    for engine in ["native", "fio"] {
        let writes = of("rw=randwrite", engine);
        let refused = writes.check("read.bw").unwrap_err();
        assert_eq!(refused, "no metric 'read.bw'; did you mean write.bw?", "{engine}");
        assert!(writes.check("write.bw,read.clat_ns.p99").is_err());
        assert!(of("rw=read", engine).check("write.iops").is_err());
        // What reads back what it wrote, and what does both, has both.
        for both in ["rw=write\nverify=crc32c", "rw=randrw", "rw=rw\nrwmixread=10"] {
            let names = of(both, engine);
            assert_eq!(names.check("read.bw,write.bw"), Ok(()), "{engine} {both}");
            assert_eq!(names.check("bw").is_err(), both.contains("verify"), "{engine} {both}");
        }
    }
    // Which percentiles fio has is its own affair, but not which direction.
    let asked = of("rw=write\nlat_percentiles=1", "fio");
    assert!(asked.check("write.lat_ns.p99.5").is_ok() && asked.check("read.lat_ns.p99.5").is_err());
}

#[test]
fn fios_percentiles_are_of_the_completion_unless_asked() {
    let job = "[w]\nsize=1m\nrw=write\n";
    let fio = names(job, "fio").unwrap();
    assert_eq!(fio.check("write.clat_ns.p99"), Ok(()));
    assert!(fio.check("write.lat_ns.p99").is_err() && fio.check("write.lat_ns.mean").is_ok());
    let asked = names(&format!("{job}lat_percentiles=1\n"), "fio").unwrap();
    assert_eq!(asked.check("write.lat_ns.p99.5"), Ok(()));
    assert!(names(job, "native").unwrap().check("write.lat_ns.mean").is_err(), "psync has no lat");
    assert_eq!(names(job, "bare"), None);
}

#[test]
fn a_tool_says_what_it_reports_before_it_has_run() {
    let of = |text: &str| {
        let file = format!("aa = true\n{text}");
        let experiment =
            Experiment::from_toml(&file, "e.toml", Path::new("/"), &CommandLine::default()).unwrap();
        let plan = Plan::new(&experiment, 1, Path::new("/"), "own").unwrap();
        MetricNames::of(&experiment, &plan.cells).unwrap()
    };
    let dbench = of("engine = \"dbench\"\n[dbench]\nclients = 2\n");
    assert!(!dbench.are_all());
    for good in ["bw", "lat_ns.max", "Flush.lat_ns.mean", "dev.flushes_per_sync", "usr_cpu", "runtime"] {
        assert_eq!(dbench.check(good), Ok(()), "{good}");
    }
    assert_eq!(dbench.check("bww").unwrap_err(), "no metric 'bww'; did you mean bw?");
    assert!(dbench.check("a.b.lat_ns.mean").is_err() && dbench.check(".count").is_err());
    let fs_mark = of("engine = \"fs_mark\"\n[fs_mark]\nfiles = 9\nphases = \"create,unlink\"\n");
    for good in ["files_per_s", "fsync.lat_ns.max", "create:runtime", "unlink:lat_ns.mean,create:dev.flushes"]
    {
        assert_eq!(fs_mark.check(good), Ok(()), "{good}");
    }
    for wrong in ["chown:runtime", "create:lat_ns.mean", "file_per_s"] {
        assert!(fs_mark.check(wrong).is_err(), "{wrong}");
    }
    let xfs_io = of("engine = \"xfs_io\"\n[xfs_io]\ncommands = [\"pwrite 0 1m\", \"fsync\"]\n");
    assert!(xfs_io.are_all() && xfs_io.check("write.bw,usr_cpu_per_byte").is_ok());
    assert!(xfs_io.check("read.bw").unwrap_err().contains("did you mean write.bw?"));
}

#[test]
fn forms_are_of_what_counts_work_and_has_its_load_beside_it() {
    let reads = names("[r]\nsize=1m\nrw=read\n", "native").unwrap();
    for good in ["usr_cpu_per_op", "ctx_per_byte", "dev.read_bytes_per_byte", "dev.read_bytes_per_op"] {
        assert_eq!(reads.check(good), Ok(()), "{good}");
    }
    for wrong in ["runtime_per_op", "minf_per_op", "dev.write_ios_per_op", "dev.read_ios_per_byte"] {
        assert!(reads.check(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn with_a_ramp_nothing_of_the_device_is_for_each_operation() {
    let ramp = names("[r]\nsize=1m\nrw=read\nruntime=9\nramp_time=1\n", "native").unwrap();
    for good in ["usr_cpu_per_op", "dev.read_bytes", "read.bw"] {
        assert_eq!(ramp.check(good), Ok(()), "{good}");
    }
    for wrong in ["dev.read_bytes_per_byte", "dev.flushes_per_op", "dev.flushes_per_sync"] {
        assert!(ramp.check(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_group_reports_under_its_first_job() {
    let job = "[global]\nsize=1m\ngroup_reporting\n[a]\nrw=write\n[b]\nrw=read\n[c]\nnew_group\nrw=read\n";
    let names = names(job, "native").unwrap();
    assert_eq!(names.check("a:read.bw"), Ok(()));
    assert!(names.check("b:read.bw").unwrap_err().contains("no section reports as 'b'"));
}
