//! Rules on the place that will be written: filesystem, mount, device, queue.

use super::super::FALLS_BACK;
use super::{Finding, Rule, Severity, holds, number};
use crate::record::HostFacts;
use crate::units::{Unit, format_number};

pub(super) const RULES: &[Rule] = &[
    no_device, full, io_limit, direct_io, device_kind, iostats, stacked, array, members, rotational,
    write_cache, writeback_throttle, scheduler, mount_options,
];

fn no_device(facts: &HostFacts) -> Option<Finding> {
    facts.get("device.none")?;
    let kind = facts.get("fs.type")?;
    let fact = format!("the path is on {kind}, with no block device of its own");
    Some(if matches!(kind, "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs") {
        let effect =
            "Files live in memory: no device, no flush, no queue is measured. Give a path on a disk.";
        Finding::new("no-device", Severity::Bad, fact, effect).look("findmnt --real")
    } else {
        let effect = "The device's counters cannot be watched, and part of the path (a lower filesystem, a network, \
                      a server) cannot be observed by assay.";
        Finding::new("no-device", Severity::Warning, fact, effect).look("findmnt --real")
    })
}

fn full(facts: &HostFacts) -> Option<Finding> {
    let percent = number(facts, "now.fs.used_percent").filter(|percent| *percent > 80.0)?;
    let severity = if percent > 95.0 { Severity::Bad } else { Severity::Warning };
    let free = number(facts, "now.fs.free_bytes")
        .map_or_else(String::new, |bytes| format!(", {} are free", format_number(&Unit::Bytes, bytes)));
    let effect = "Free space comes in small pieces: the allocator works harder with each trial, flash devices garbage \
                  collect, and later trials are slower than earlier ones.";
    Some(Finding::new("full", severity, format!("the filesystem is {percent} % full{free}"), effect))
}

fn io_limit(facts: &HostFacts) -> Option<Finding> {
    let seen = limits_of(facts.get("cgroup.io.max")?, facts)?;
    let effect = "The figures show the limit, and its stops make the tail of the latencies.";
    let fact = format!("a control group limits I/O ({seen})");
    Some(Finding::new("io-limit", Severity::Bad, fact, effect).mend("systemd-run --user --scope assay run …"))
}

/// What a control group says of the device and of those that it is built on; where they are not known, of any. `None`: no limit.
fn limits_of(all: &str, facts: &HostFacts) -> Option<String> {
    let numbers: Option<Vec<&str>> = facts.get("now.device.numbers").map(|all| all.split(' ').collect());
    if numbers.is_none() && facts.get("device.none").is_some() {
        return None;
    }
    let is_ours = |number: &str| numbers.as_ref().is_none_or(|ours| ours.contains(&number));
    let mut found = Vec::new();
    for part in all.split("; ") {
        // Version 1 has a file a limit: `write_bps_device 8:0 1048576, 8:16 4096`.
        let (file, lines) = match part.split_once("_device ") {
            Some((file, lines)) => (Some(file), lines),
            None => (None, part),
        };
        for line in lines.split(", ") {
            let Some((number, limits)) = line.split_once(' ').filter(|(number, _)| is_ours(number)) else {
                continue;
            };
            let is_limit = |word: &str| word.split_once('=').is_some_and(|(_, value)| value != "max");
            match file {
                Some(file) => found.push(format!("{number} {file}={limits}")),
                None if limits.split(' ').any(is_limit) => found.push(line.to_owned()),
                None => {}
            }
        }
    }
    (!found.is_empty()).then(|| found.join("; "))
}

fn direct_io(facts: &HostFacts) -> Option<Finding> {
    let (fact, effect) = match facts.get("o_direct")? {
        "no" => (
            "files here cannot be opened with O_DIRECT",
            "Jobs with direct=1 fail here; jobs with direct=0 measure the page cache as well as the device.",
        ),
        FALLS_BACK => (
            "files here are opened with O_DIRECT, but use the page cache all the same",
            "Jobs with direct=1 measure the page cache as well as the device, as with direct=0.",
        ),
        _ => return None,
    };
    Some(
        Finding::new("direct-io", Severity::Warning, fact, effect)
            .look("findmnt --real -t ext4,xfs,btrfs,f2fs"),
    )
}

fn device_kind(facts: &HostFacts) -> Option<Finding> {
    let (fact, effect) = match facts.get("device.kind")? {
        "loop" => (
            format!("the device is a loop device on {}", facts.get("device.loop_file").unwrap_or("a file")),
            "Two filesystems and two page caches are measured, one above the other; fsync goes through both.",
        ),
        kind @ ("zram" | "memory" | "null") => (
            format!("the device is a {kind} device"),
            "Nothing reaches a disk: good for the cost of the software above, not for flushes, caches or seeks.",
        ),
        "network" => (
            "the device is on the network".to_owned(),
            "Latency is mostly the network's and the server's, with its other clients.",
        ),
        _ => return None,
    };
    Some(Finding::new("device-kind", Severity::Warning, fact, effect))
}

fn iostats(facts: &HostFacts) -> Option<Finding> {
    holds(facts, "queue.iostats", "0")?;
    let file = format!("/sys/block/{}/queue/iostats", facts.get("device")?);
    let effect = "The kernel counts nothing but flushes of this device: there are no other dev.* metrics, and foreign I/O is not seen.";
    Some(
        Finding::new("iostats", Severity::Warning, "the device's counters are off", effect)
            .other_value(&file, "1", "0"),
    )
}

fn stacked(facts: &HostFacts) -> Option<Finding> {
    let (below, device) = (facts.get("device.on")?, facts.get("device")?);
    let effect = "Scheduler, write cache and flushes are those of the devices below; settings of the upper one alone \
                  do not tell what happens. Others on the same disks disturb the trials: assay counts their I/O, too.";
    let settings = [("below.scheduler", "scheduler "), ("below.write_cache", "cache ")];
    let set = settings.iter().filter_map(|(fact, word)| Some(format!("{word}{}", facts.get(fact)?)));
    let set: Vec<String> = facts.get("now.below").map(str::to_owned).into_iter().chain(set).collect();
    let disks = if set.is_empty() { String::new() } else { format!(", at the bottom {}", set.join(", ")) };
    Some(
        Finding::new("stacked", Severity::Note, format!("{device} is built on {below}{disks}"), effect)
            .look(format!("lsblk -s /dev/{device}")),
    )
}

fn array(facts: &HostFacts) -> Option<Finding> {
    if let Some(arrays) = facts.get("now.rebuilding") {
        let effect = "It reads and writes its disks all the time: trials share them with it, and are slower than usual.";
        let fact = format!("an array is being rebuilt or checked: {arrays}");
        return Some(Finding::new("array", Severity::Bad, fact, effect).look("cat /proc/mdstat"));
    }
    let missing = number(facts, "device.md_degraded").filter(|missing| *missing > 0.0)?;
    let effect = "Reads and writes take other ways than in a whole array.";
    let fact = format!("{} lacks {missing} of its disks", facts.get("device")?);
    Some(Finding::new("array", Severity::Warning, fact, effect).look("cat /proc/mdstat"))
}

fn members(facts: &HostFacts) -> Option<Finding> {
    let count = facts.get("device.members")?;
    let effect = "dev.* counts them together. The observer blocks watches the first alone.";
    let fact = format!("the filesystem is on {count} devices");
    Some(Finding::new("members", Severity::Note, fact, effect).look("lsblk -f"))
}

fn rotational(facts: &HostFacts) -> Option<Finding> {
    holds(facts, "queue.rotational", "1")?;
    let effect = "On a real disk speed depends on where files lie (the outer tracks are twice as fast) and on seeks; \
                  virtual disks often say rotational whatever they are.";
    Some(Finding::new("rotational", Severity::Note, "the device says that it rotates", effect))
}

fn write_cache(facts: &HostFacts) -> Option<Finding> {
    let virtual_machine = facts.get("virt").is_some_and(|virt| virt != "none");
    match facts.get("queue.write_cache")? {
        "write back" => {
            let effect = "A write is done when the device's volatile cache has it. What durability costs shows only \
                          in jobs that flush (fsync, fdatasync, sync, end_fsync).";
            Some(Finding::new(
                "write-cache",
                Severity::Note,
                "the device's write cache is write back",
                effect,
            ))
        }
        "write through" if virtual_machine => {
            let effect = "The kernel sends no flushes: fsync costs less than on a device with a volatile cache, and \
                          whether data is safe is up to the host.";
            Some(Finding::new("write-cache", Severity::Note, "the virtual device says write through", effect))
        }
        _ => None,
    }
}

fn writeback_throttle(facts: &HostFacts) -> Option<Finding> {
    let us = number(facts, "queue.wbt_lat_usec").filter(|us| *us > 0.0)?;
    let file = format!("/sys/block/{}/queue/wbt_lat_usec", facts.get("device")?);
    let effect = "The kernel holds buffered writes back to keep reads fast; how much depends on recent latencies, so \
                  that mixed and buffered jobs have a memory.";
    let fact = format!("writeback is throttled for a latency of {us} µs");
    Some(Finding::new("writeback-throttle", Severity::Note, fact, effect).other_value(
        &file,
        "0",
        &us.to_string(),
    ))
}

fn scheduler(facts: &HostFacts) -> Option<Finding> {
    let seen = facts.get("queue.scheduler").filter(|seen| *seen != "none")?;
    let file = format!("/sys/block/{}/queue/scheduler", facts.get("device")?);
    let effect = "It reorders and merges, and costs CPU time: right for production, but a part of what is measured. \
                  When that is the question: assay run --vary scheduler=none,mq-deadline.";
    Some(
        Finding::new("scheduler", Severity::Note, format!("the I/O scheduler is {seen}"), effect)
            .other_value(&file, "none", seen),
    )
}

fn mount_options(facts: &HostFacts) -> Option<Finding> {
    let options: Vec<&str> = facts.get("mount.options")?.split(',').collect();
    let effects = [
        ("sync", "Every write waits for the device, whatever the job says."),
        ("dirsync", "Creating and removing files waits for the device."),
        ("discard", "Blocks freed by one trial are trimmed on the device while a later one runs."),
        ("strictatime", "Reads write: each updates the file's time of access."),
    ];
    let (odd, effect) = effects.into_iter().find(|(option, _)| options.contains(option))?;
    let fact = format!("the filesystem is mounted with {odd}");
    Some(Finding::new("mount-options", Severity::Note, fact, effect))
}
