//! What decides a section of a job, and which metrics a report lists.

use crate::sandbox::Sandbox;

const DATABASE: &str = "[global]\nsize=256k\nbs=4k\nruntime=100ms\ntime_based\n[wal]\nrw=write\nrate_iops=200\n\
                        [checkpoint]\nrw=randwrite\n";

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_section_with_a_rate_is_judged_by_its_latency() {
    let sandbox = Sandbox::new();
    let job = sandbox.write("db.fio", DATABASE);
    let job = job.to_str().unwrap();
    let report =
        words(&sandbox.succeed(&["run", "-q", "--vary", "ioengine=sync,psync", "--rounds", "4", job]));
    assert!(report.contains("write.lat_ns.mean in "), "{report}");
    assert!(report.contains("write.bw in "), "{report}");
    let run = sandbox.export("1");
    assert_eq!(run.design.primary.as_deref(), Some("wal:write.lat_ns.mean"));
}

#[test]
fn a_metric_of_one_section_decides_alone() {
    let sandbox = Sandbox::new();
    let job = sandbox.write("db.fio", DATABASE);
    let run = ["run", "-q", "--vary", "ioengine=sync,psync", "--rounds", "4", job.to_str().unwrap()];
    sandbox.succeed(&[&run[..], &["--primary", "checkpoint:write.iops"]].concat());
    let asked = sandbox.export("1").design.primary;
    assert_eq!(asked.as_deref(), Some("checkpoint:write.iops"));
    let report = words(&sandbox.succeed(&["report", "1"]));
    assert!(report.contains("write.iops in ") && !report.contains("write.lat_ns.mean in "), "{report}");
    // The same of metrics that are chosen afterwards.
    for (primary, has_latency) in
        [("checkpoint:write.bw", false), ("checkpoint:write.bw,wal:write.lat_ns.mean", true)]
    {
        let report = words(&sandbox.succeed(&["report", "1", "--primary", primary]));
        let both = (report.contains("write.bw in "), report.contains("write.lat_ns.mean in "));
        assert_eq!(both, (true, has_latency), "{primary}: {report}");
    }
    // A section that reads back what it wrote is there for the writes, whatever stands beside it.
    let verify =
        "[global]\nsize=256k\nbs=4k\n[ver]\nrw=randwrite\nverify=crc32c\n[mix]\nstonewall\nrw=randrw\n";
    let job = sandbox.write("verify.fio", verify);
    sandbox.succeed(&["run", "-q", "--vary", "ioengine=sync,psync", "--rounds", "4", job.to_str().unwrap()]);
    assert_eq!(sandbox.export("2").design.primary.as_deref(), Some("ver:write.bw"));
}

#[test]
fn what_counts_work_is_compared_for_each_operation() {
    let sandbox = Sandbox::new();
    let job = sandbox.write("db.fio", DATABASE);
    let job = job.to_str().unwrap();
    // Arms that do different amounts of work on any machine, however busy.
    sandbox.succeed(&["run", "-q", "--vary", "runtime=100ms,400ms", "--rounds", "4", job]);
    let unlisted = |section: &str, name: &str| {
        let json = sandbox.succeed(&["report", "1", "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        let comparisons = report["analysis"]["comparisons"].as_array().unwrap().clone();
        let found =
            comparisons.into_iter().find(|c| c["metric"]["job"] == section && c["metric"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {section}:{name}"))["unlisted"].clone()
    };
    assert_eq!(unlisted("checkpoint", "write.iops")["same_as"]["metric"], "write.bw");
    assert_eq!(unlisted("", "usr_cpu")["form"]["metric"], "usr_cpu_per_op");
    assert!(unlisted("", "usr_cpu_per_op").is_null());
    let all = sandbox.succeed(&["report", "1", "--all-metrics"]);
    assert!(all.contains("usr_cpu_per_op") && all.contains("write.iops"), "{all}");
    let chosen = sandbox.succeed(&["report", "1", "--primary", "usr_cpu_per_op"]);
    assert!(words(&chosen).contains("judged by usr_cpu_per_op, chosen after the run"), "{chosen}");
}

/// Counts that are the same in every trial of an arm have no spread at all.
#[test]
fn a_count_that_never_varies_decides() {
    let sandbox = Sandbox::new();
    let job = sandbox.write("w.fio", "[w]\nrw=write\nbs=4k\nsize=256k\n");
    for lead_in in [&[][..], &["--no-lead-in"]] {
        let wanted = ["--vary", "bs=4k,8k", "--rounds", "10", "--primary", "write.total_ios"];
        let run = [&["run", "-q"], &wanted[..], lead_in, &[job.to_str().unwrap()]].concat();
        let report = words(&sandbox.succeed(&run));
        assert!(report.contains("−50.00 % [−50.00, −50.00]"), "{report}");
        assert!(!report.contains("leaves behind"), "{report}");
    }
}
