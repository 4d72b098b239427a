//! The metric that decides where nobody names one.

use super::*;

#[test]
fn what_a_rate_fixes_does_not_decide() {
    let decides = |job: &str, levels: &[&str]| plan(job, levels).unwrap().primary;
    let paced = "[a]\nrw=write\nsize=1m\nrate_iops=100\n";
    assert_eq!(decides(paced, &["bs=4k,8k"]).as_deref(), Some("write.lat_ns.mean"));
    assert_eq!(
        decides(&paced.replace("write", "randread"), &["bs=4k,8k"]).as_deref(),
        Some("read.lat_ns.mean")
    );
    assert_eq!(
        decides("[a]\nrw=write\nsize=1m\nrate=${R}\n", &["R=1m,2m"]).as_deref(),
        Some("write.lat_ns.mean")
    );
    // Reads may become slower where writes do not.
    let mixed = paced.replace("rw=write", "rw=randrw\nrwmixread=90");
    assert_eq!(decides(&mixed, &["bs=4k,8k"]).as_deref(), Some("read.lat_ns.mean,write.lat_ns.mean"));
    assert_eq!(
        decides(&format!("{mixed}[scan]\nrw=read\nsize=1m\n"), &["bs=4k,8k"]).as_deref(),
        Some("a:read.lat_ns.mean,a:write.lat_ns.mean")
    );
    // fio's lat_ns is another quantity.
    assert_eq!(decides(paced, &["engine=native,fio"]).as_deref(), Some("write.clat_ns.mean"));
    assert_eq!(decides(paced, &["engine=fio", "bs=4k,8k"]).as_deref(), Some("write.clat_ns.mean"));
    assert_eq!(
        decides(&format!("{paced}gtod_reduce=1\n"), &["engine=fio", "bs=4k,8k"]),
        None,
        "it measures none"
    );
    assert_eq!(
        decides(&format!("{paced}gtod_reduce=0\n"), &["engine=fio", "bs=4k,8k"]).as_deref(),
        Some("write.clat_ns.mean")
    );
    // What has a meaning only to fio is judged by its pace as well.
    let of_fio = "[a]\nrw=randwrite:8\nsize=50%\nprio=3\nrate_iops=500\n[b]\nrw=read\nsize=50%\n";
    assert_eq!(decides(of_fio, &["engine=fio", "bs=4k,8k"]).as_deref(), Some("a:write.clat_ns.mean"));
    // By section: bandwidth decides for the others.
    let two = "[checkpoint]\nrw=write\nsize=1m\n[wal]\nrw=read\nsize=1m\n";
    let beside = |paced: &str| decides(&format!("{two}{paced}\n"), &["bs=4k,8k"]);
    assert_eq!(beside("rate=1m").as_deref(), Some("wal:read.lat_ns.mean"));
    // A pace goes before what is read back.
    let verified = |pace: &str| {
        let job = format!("[global]\nrw=write\nsize=1m\nverify=crc32c\n[a]\n{pace}\n[b]\n");
        decides(&job, &["bs=4k,8k"])
    };
    assert_eq!(verified("").as_deref(), Some("write.bw"));
    assert_eq!(verified("rate=1m").as_deref(), Some("a:write.lat_ns.mean,b:write.bw"));
    let paced_of = |job: &str| {
        let made = Plan::new(&experiment(job, &vary(&["bs=4k,8k"])), 1, Path::new("/"), "own").unwrap();
        made.paced
    };
    assert_eq!(paced_of(&format!("{two}thinktime=2ms\n")), ["wal"]);
    assert_eq!(paced_of(two), [""; 0]);
    assert_eq!(beside("rate_iops=50").as_deref(), Some("wal:read.lat_ns.mean"));
    assert_eq!(beside("thinktime=2ms").as_deref(), Some("wal:read.clat_ns.mean"), "nothing is due");
    assert_eq!(beside(""), None);
    assert_eq!(beside("rate=1m\nstonewall\ngroup_reporting").as_deref(), Some("wal:read.lat_ns.mean"));
    let grouped = two.replace("rw=write", "group_reporting\nrw=write") + "group_reporting\nrate=1m\n";
    assert_eq!(decides(&grouped, &["bs=4k,8k"]), None, "they report together");
    assert_eq!(decides(&format!("{two}rate=${{R}}\n"), &["R=0,1m"]), None, "not in all cells");
    assert_eq!(
        decides("[a]\nrw=write\nsize=1m\nverify=crc32c\n", &["bs=4k,8k"]).as_deref(),
        Some("write.bw")
    );
    assert_eq!(decides("[a]\nrw=read\nsize=1m\nverify=crc32c\n", &["bs=4k,8k"]), None);
    let line = CommandLine { primary: Some("usr_cpu".to_owned()), ..vary(&["bs=4k,8k"]) };
    let named = Plan::new(&experiment(paced, &line), 1, Path::new("/"), "own").unwrap();
    assert_eq!(named.primary.as_deref(), Some("usr_cpu"));
}

#[test]
fn how_long_a_write_takes_with_its_own_sync_decides() {
    let decides = |job: &str, levels: &[&str]| plan(job, levels).unwrap().primary;
    let paced = "[a]\nrw=write\nsize=1m\nrate_iops=100\n";
    // The latency of a write has no sync, unless it is one.
    let synced = format!("{paced}fdatasync=1\n");
    assert_eq!(decides(&synced, &["bs=4k,8k"]).as_deref(), Some("durable.lat_ns.mean"));
    assert_eq!(decides(&synced, &["sync=none,dsync"]).as_deref(), Some("durable.lat_ns.mean"));
    assert_eq!(decides(paced, &["fdatasync=0,1"]).as_deref(), Some("write.lat_ns.mean"), "not in all cells");
    assert_eq!(decides(&synced, &["engine=native,fio"]).as_deref(), Some("write.clat_ns.mean"));
    for other in ["nrfiles=2", "ioengine=io_uring\niodepth=8", "fsync=8\nfdatasync=0"] {
        assert_eq!(
            decides(&format!("{synced}{other}\n"), &["bs=4k,8k"]).as_deref(),
            Some("write.lat_ns.mean"),
            "{other}"
        );
    }
    let deep = format!("{paced}sync=dsync\nioengine=io_uring\niodepth=8\n");
    assert_eq!(decides(&deep, &["bs=4k,8k"]).as_deref(), Some("durable.lat_ns.mean"));
    let with_another = format!("{synced}[b]\nrw=write\nsize=1m\nrate_iops=9\n");
    assert_eq!(
        decides(&with_another, &["bs=4k,8k"]).as_deref(),
        Some("a:durable.lat_ns.mean,b:write.lat_ns.mean")
    );
    // Whoever names it: fio does not have it.
    let line = CommandLine { primary: Some("durable.lat_ns.p99".to_owned()), ..vary(&["engine=native,fio"]) };
    let named = Plan::new(&experiment(&synced, &line), 1, Path::new("/"), "own").unwrap();
    assert_eq!(named.latency_that_fio_lacks(), Some("durable.lat_ns.p99"));
    assert_eq!(plan(&synced, &["sync=none,dsync"]).unwrap().latency_that_fio_lacks(), None);
}
