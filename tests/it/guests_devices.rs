//! What a guest is made of, and what is measured in it: machines as factors, devices, filesystems, tools, files that commands name.

use assay::record::{Run, Status};

use crate::guests::{JOB, fact, kernels, refused, succeed, value};
use crate::sandbox::Sandbox;
use crate::tools;

/// Each trial's level of the first factor with one of its facts.
fn facts_by_level(run: &Run, name: &str) -> Vec<(u32, String)> {
    let level = |cell: u32| run.cells[cell as usize].levels[0];
    let all = run.trials.iter().enumerate();
    let mut pairs: Vec<_> =
        all.map(|(at, trial)| (level(trial.cell), fact(run, at, name).to_owned())).collect();
    pairs.sort();
    pairs
}

fn all_done(run: &Run, trials: usize) {
    assert_eq!(run.trials.len(), trials, "{:?}", run.notes);
    run.trials.iter().for_each(|trial| assert_eq!(trial.status, Status::Done));
}

#[test]
fn machines_are_factors_whose_facts_are_declared() {
    let Some((kernels, _alone)) = kernels() else { return };
    let kernel = format!("kernel={}", kernels[0]);
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    // All that a machine can differ in at once: a boot of each.
    let machines = "job = \"job.fio\"\nengine = \"null\"\n[[factor]]\nname = \"machine\"\n\
        [[factor.level]]\nlabel = \"small\"\nset = { kernel_args = \"mitigations=auto\", cpus = 1, memory = \"512m\" }\n\
        [[factor.level]]\nlabel = \"large\"\nset = { kernel_args = \"mitigations=off\", cpus = 2, memory = \"640m\" }\n";
    sandbox.write("machines.toml", machines);
    let run = succeed(&sandbox, &["run", "machines.toml", "-q", "--rounds", "1", "-t", &kernel]);
    all_done(&run, 2);
    for (name, expected) in [
        ("kernel.cmdline", ["mitigations=auto", "mitigations=off"]),
        ("cpu.count", ["1", "2"]),
        ("guest.memory", ["512 MiB", "640 MiB"]),
    ] {
        for ((level, found), wanted) in facts_by_level(&run, name).iter().zip(expected) {
            assert!(found.ends_with(wanted), "{name}, level {level}: {found}");
        }
    }
    let report = sandbox.succeed(&["report", "1"]);
    assert!(!report.contains("undeclared difference"), "{report}");
}

#[test]
fn every_filesystem_is_made_and_written_in_one_boot() {
    let Some((kernels, _alone)) = kernels() else { return };
    let mut names = Vec::new();
    for (name, tool) in
        [("xfs", "mkfs.xfs"), ("ext4", "mkfs.ext4"), ("btrfs", "mkfs.btrfs"), ("f2fs", "mkfs.f2fs")]
    {
        if tools::installed(tool) {
            names.push(name);
        }
    }
    if names.len() < 2 {
        return tools::skipped("two filesystems are needed");
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let (kernel, vary) = (format!("kernel={}", kernels[1]), format!("fs={}", names.join(",")));
    let words = ["run", "job.fio", "-q", "--vary", &vary, "--rounds", "1"];
    let run =
        succeed(&sandbox, &[&words[..], &["-t", &kernel, "-t", "virtio_blk:400m:cache=unsafe"]].concat());
    all_done(&run, names.len());
    for ((_, found), wanted) in facts_by_level(&run, "fs.type").iter().zip(&names) {
        assert_eq!(found, wanted);
    }
    for (at, _) in run.trials.iter().enumerate() {
        assert_eq!(value(&run, at, "write.io_bytes"), Some(4_194_304.0));
        assert!(value(&run, at, "dev.write_bytes").unwrap() >= 4_194_304.0);
    }
    let boots: std::collections::BTreeSet<_> =
        facts_by_level(&run, "now.guest.boot_s").into_iter().map(|b| b.1).collect();
    assert_eq!(boots.len(), 1, "one round, one boot: {boots:?}");
}

#[test]
fn every_kind_of_device_is_there_in_one_boot() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nio_size=2m\nend_fsync=1\n");
    let devices = [
        ("virtio_blk:64m", "virtio"),
        ("nvme:64m", "nvme"),
        ("pmem:128m", "persistent memory"),
        ("ram:64m", "memory"),
        ("null_blk:64m", "null"),
        ("scsi_debug:64m", "scsi"),
        ("zram:64m", "zram"),
        ("loop:64m", "loop"),
    ];
    let kernel = format!("kernel={}", kernels[0]);
    let vary = format!("device={}", devices.map(|(name, _)| name).join(","));
    let words = ["run", "job.fio", "-q", "--vary", &vary, "--rounds", "1", "-t", &kernel];
    let run = succeed(&sandbox, &words);
    all_done(&run, devices.len());
    for (((_, found), (_, kind)), (name, wanted)) in
        facts_by_level(&run, "target.device").iter().zip(&facts_by_level(&run, "device.kind")).zip(devices)
    {
        assert!(found.starts_with(name), "{found}");
        assert!(kind.contains(wanted), "{name} is {kind}");
    }
    for (at, _) in run.trials.iter().enumerate() {
        assert_eq!(value(&run, at, "write.io_bytes"), Some(2_097_152.0));
    }
}

#[test]
fn the_device_mapper_is_between_the_disk_and_the_filesystem() {
    let Some((kernels, _alone)) = kernels() else { return };
    if !tools::installed("mkfs.ext4") {
        return tools::skipped("mkfs.ext4 is needed");
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=randwrite\nbs=4k\nsize=4m\ndirect=1\noverwrite=1\nio_size=80k\n");
    let kernel = format!("kernel={}", kernels[1]);
    let vary = "dm=none,linear,crypt,crypt:no_write_workqueue:sector_size=4096,delay:ms=20";
    let words =
        ["run", "job.fio", "-q", "--vary", vary, "--rounds", "1", "-t", &kernel, "-t", "virtio_blk:64m"];
    let run = succeed(&sandbox, &[&words[..], &["-t", "fs=ext4", "-t", "scheduler=mq-deadline"]].concat());
    all_done(&run, 5);
    let of = |name| facts_by_level(&run, name).into_iter().map(|(_, value)| value).collect::<Vec<_>>();
    assert_eq!(of("device.kind")[1..], ["device mapper"; 4]);
    assert_eq!(
        of("sysfs.queue/scheduler"),
        ["mq-deadline"; 5],
        "that of the disk, which the mapper has none of"
    );
    let level = |at: usize| run.cells[run.trials[at].cell as usize].levels[0];
    for (at, _) in run.trials.iter().enumerate() {
        let usual = value(&run, at, "write.clat_ns.p50").unwrap();
        assert!(level(at) != 4 || usual >= 19e6, "held back for 20 ms: {usual} ns");
        assert_eq!(value(&run, at, "write.total_ios"), Some(20.0));
    }
    let report = sandbox.succeed(&["report", "1", "-v"]);
    assert!(!report.contains("undeclared difference"), "{report}");
}

#[test]
fn disks_differ_by_their_cache_and_pmem_by_its_size() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let kernel = format!("kernel={}", kernels[1]);
    let vary = "device=virtio_blk:64m,virtio_blk:64m:cache=unsafe,nvme:64m,nvme:64m:cache=writeback,pmem:256m,pmem:128m";
    let words = ["run", "job.fio", "-q", "--vary", vary, "--rounds", "1", "-t", &kernel];
    let run = succeed(&sandbox, &words);
    all_done(&run, 6);
    let of = |name| facts_by_level(&run, name).into_iter().map(|(_, value)| value).collect::<Vec<_>>();
    let devices = of("now.device");
    assert_eq!(devices[..2], ["vda", "vdb"], "in the order in which the machine was given them");
    assert!(
        devices[2] != devices[3] && devices[2..4].iter().all(|name| name.starts_with("nvme")),
        "{devices:?}"
    );
    let sizes = of("device.size");
    assert_eq!(sizes, [64, 64, 64, 64, 256, 128].map(|mib: u64| (mib << 20).to_string()));
    let boots: std::collections::BTreeSet<_> = of("now.guest.boot_s").into_iter().collect();
    assert!(boots.len() <= 2, "{boots:?}");
}

#[test]
fn tools_measure_in_guests_with_the_files_they_read() {
    let Some((kernels, _alone)) = kernels() else { return };
    let kernel = format!("kernel={}", kernels[1]);
    let target = ["-t", &kernel, "-t", "ram:128m", "-t", "fs=ext4", "--rounds", "1", "-q"];
    for (tool, text, vary, metric) in [
        ("dbench", "[dbench]\ntime = 2\n", "clients=1,2", "bw"),
        ("fs_mark", "[fs_mark]\nfiles = 30\nsize = \"4k\"\n", "sync=0,1", "files_per_s"),
        ("xfs_io", "[xfs_io]\ncommands = [\"pwrite -b ${bs} 0 1m\", \"fsync\"]\n", "bs=4k,64k", "write.bw"),
    ] {
        if !tools::installed(tool) {
            continue;
        }
        let sandbox = Sandbox::new();
        sandbox.write("e.toml", text);
        let run = succeed(&sandbox, &[&["run", "e.toml", "--vary", vary][..], &target[..]].concat());
        all_done(&run, 2);
        for (at, _) in run.trials.iter().enumerate() {
            assert!(value(&run, at, metric).unwrap() > 0.0, "{tool}");
            assert!(!fact(&run, at, "guest.accelerator").is_empty());
            assert_eq!(fact(&run, at, "fs.type"), "ext4");
        }
    }
}

#[test]
fn files_that_a_command_names_are_in_the_guest() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("data")).unwrap();
    sandbox.write("data/words", "one two three\n");
    sandbox.write("count.sh", "#!/bin/sh\nwc -w <data/words >&2; wc -w < \"$1\"; cat data/words\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(sandbox.path().join("count.sh"), mode).unwrap();
    let kernel = format!("kernel={}", kernels[0]);
    // What a script calls comes with it; what it reads must be named.
    let words = [
        "run", "-q", "-t", &kernel, "--vary", "n=1,2", "--rounds", "1", "--metric", "words=^([0-9]+)$", "--",
    ];
    let run = succeed(&sandbox, &[&words[..], &["./count.sh", "data/words", "${n}"]].concat());
    all_done(&run, 2);
    assert_eq!(value(&run, 0, "words"), Some(3.0));
    // The directory as a whole is not copied, and that is said before anything is booted.
    let words = ["run", "-q", "-t", &kernel, "--vary", "n=1,2", "--", "ls", "./data", "${n}"];
    refused(
        &Sandbox::new(),
        &["run", "-q", "-t", &kernel, "--vary", "n=1,2", "--", "ls", "/usr/share", "${n}"],
        "the command names the directory /usr/share, which is not copied into guests",
    );
    let output = crate::guests::run(&sandbox, &words);
    assert_eq!(output.status.code(), Some(2), "{}", crate::sandbox::errors(&output));
    assert!(tools::available("qemu-system-x86_64"));
}
