//! The same requests take the device longer: then it is the device, not the software.
//!
//! Needs: the device's counters. Concludes: as many requests for each operation, as large, as many under way at once, and each takes longer
//! in the worse arm. Silent where one of these differs, or the number of flushes, since then the load of the device does, and where hardly any
//! request reaches the device. Where nobody counts flushes, as of LVM and crypt devices without `--observe blocks`, a job that writes may
//! have more of them. Silent, too, where the arms differ in a setting of the device's queue: the time of a request has that in it; where they
//! are loop, dm or md devices, which are software; where the slower one is made of memory, as zram and ramdisks are: the processors of the
//! machine do its requests; where the factor changes which places of the device are read or written (sequential
//! against random, another filesystem);
//! where a kernel or what it does is compared, or a loop device has a file below it, and nobody watched how long the driver had the requests
//! (`--observe blocks`), or that did not rise; and where most of the difference is processor time of the workers: then the device, such as zram, works on theirs.

use super::super::super::budget::BudgetPart;
use super::super::super::facts::for_any_filesystem;
use super::super::cause::{Cause, Evidence, Grade, What};
use super::super::names::DEVICE_TIMES;
use super::super::pair::Pair;
use super::more_flushes::flushes_of;
use super::queue_depth::{DEPTH, TIMES, at_least_one};
use super::rule::Rule;
use crate::record::{Direction, Factor, Unit};

/// Requests alike differ by less than this share.
const ALIKE: f64 = 0.1;
/// As many under way at once: the counters have ticks of milliseconds.
const AS_MANY: f64 = 0.25;
/// Longer by less than this share is nothing that a device could be blamed for.
const LEAST_RISE: f64 = 0.15;
/// Fewer requests for each operation than this are not the load's own.
const REACHES: f64 = 0.1;
/// Flushes that are fewer for each operation than this delay hardly any request.
const FEW_FLUSHES: f64 = 0.01;

/// Kinds of devices whose requests the processors do: `memory` is a ramdisk (brd), `null` is null_blk, `ublk` a program's.
const MADE_OF_MEMORY: [&str; 5] = ["zram", "memory", "persistent memory", "null", "ublk"];

/// This share of the whole difference is most of it.
const MOST: f64 = 0.5;

pub(super) const RULE: Rule = Rule { name: "slower_device", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let is_no_device = |factor: &Factor| {
        sets_the_queue(factor)
            || is_made_by_software(factor)
            || puts_software_between(factor)
            || leads_to_other_places(factor)
            || names_devices(factor) && is_on_others(pair)
    };
    if pair.factor.is_some_and(is_no_device) || works_on_their_processors(pair) || is_of_memory(pair) {
        return Vec::new();
    }
    let of = |(direction, seen): (Direction, &str)| {
        let name = direction.name();
        let [bytes, ios, time] = ["bytes", "ios", "time"].map(|what| format!("dev.{name}_{what}"));
        let requests = pair.own.each(&ios, Unit::Count)?;
        let size = pair.own.ratio(&[&bytes], &[&ios], "size of a request", Unit::Bytes)?;
        let depth = pair.own.ratio(&TIMES, &["dev.busy"], DEPTH, Unit::Count)?;
        let called = format!("time of a {name} request at the device");
        let took = pair.own.ratio(&[&time], &[&ios], &called, Unit::Seconds)?;
        let values = [took.baseline, took.candidate];
        let discards = pair.own.each("dev.discards", Unit::Count);
        let same = flushes_of(pair).map_or(!pair.does(Direction::Write), |flushes| flushes_alike(&flushes))
            && discards.is_none_or(|discards| flushes_alike(&discards))
            && Pair::is_alike(&requests, ALIKE)
            && Pair::is_alike(&size, ALIKE)
            && Pair::is_alike(&at_least_one(depth), AS_MANY);
        let reach = requests.baseline.min(requests.candidate) >= REACHES;
        let rises = |values: [f64; 2]| values[pair.worse] > (1.0 + LEAST_RISE) * values[1 - pair.worse];
        let watched = pair.watched.as_ref().and_then(|watched| watched.source.plain(seen, Unit::Seconds));
        // What the driver had it for, where that was watched. The counters have the way through the kernel in them, too.
        let of_driver = watched.as_ref().map(|shown| rises([shown.baseline, shown.candidate]));
        let may_be_the_way = pair.factor.is_some_and(changes_the_kernel) || is_on_a_file(pair);
        let longer = rises(values) && of_driver.unwrap_or(!may_be_the_way);
        (same && reach && longer && pair.costs(&took)).then(|| {
            let evidence = [Some(took), watched, Some(requests)].into_iter().flatten().collect();
            Cause::new(RULE.name, Grade::GoesWith, What::SlowerDevice { direction }, evidence)
        })
    };
    let done = [Direction::Read, Direction::Write]
        .into_iter()
        .zip(DEVICE_TIMES)
        .filter(|(direction, _)| pair.does(*direction));
    done.filter_map(of).collect()
}

/// Whether most of what the worse arm takes longer is processor time of the workers in the kernel.
fn works_on_their_processors(pair: &Pair<'_>) -> bool {
    let in_kernel = pair.part(BudgetPart::Kernel).or_else(|| pair.part(BudgetPart::Processor));
    in_kernel.is_some_and(|line| pair.share_of(&line).is_some_and(|share| share >= MOST))
}

/// Whether the levels of a factor are what the device mapper puts above the device.
fn puts_software_between(factor: &Factor) -> bool {
    let is_one = |key: &String| key.strip_prefix("target.").unwrap_or(key) == "dm";
    std::iter::once(&factor.name).chain(&factor.sets).any(is_one)
}

fn names_devices(factor: &Factor) -> bool {
    let is_one = |key: &String| key.strip_prefix("target.").unwrap_or(key) == "device";
    std::iter::once(&factor.name).chain(&factor.sets).any(is_one)
}

/// Whether the device of any trial is made of others, as `/dev/VG/LV` and `/dev/disk/by-id/…` may be.
fn is_on_others(pair: &Pair<'_>) -> bool {
    pair.has_fact("device.on", |below| !below.is_empty())
        || pair.has_fact("device.kind", |kind| matches!(kind, "device mapper" | "md raid"))
}

/// Whether the device of the worse arm is made of memory or of nothing: its requests are work of the processors, in the thread that submits
/// them or in another one.
fn is_of_memory(pair: &Pair<'_>) -> bool {
    pair.worse_has_fact("device.kind", |kind| MADE_OF_MEMORY.contains(&kind))
}

/// Whether the device of any trial is a file of a filesystem below it.
fn is_on_a_file(pair: &Pair<'_>) -> bool {
    pair.has_fact("device.kind", |kind| kind == "loop")
}

/// Whether the levels of a factor are devices that the kernel makes of files, or one of them of other devices.
fn is_made_by_software(factor: &Factor) -> bool {
    let is_stacked =
        |level: &String| ["/dev/dm-", "/dev/mapper/", "/dev/md"].iter().any(|at| level.starts_with(at));
    names_devices(factor)
        && (factor.levels.iter().all(|level| level.starts_with("loop:"))
            || factor.levels.iter().any(is_stacked))
}

/// What says which places of the device the requests are for, and in which order.
const PLACES: [&str; 27] = [
    "rw", "readwrite", "size", "io_size", "filesize", "filename", "directory", "nrfiles",
    "file_service_type", "offset", "offset_increment", "random_distribution", "random_generator",
    "percentage_random", "percentage_sequential", "norandommap", "rw_sequencer", "rwmixread", "rwmixwrite",
    "fallocate", "fs", "mkfs", "mount", "log", "state", "extsize", "zonemode",
];

/// What changes the way of a request through the kernel.
const KERNELS: [&str; 10] =
    ["kernel", "patch", "rev", "source", "config", "kernel_args", "modules", "cpus", "memory", "hipri"];

fn changes_the_kernel(factor: &Factor) -> bool {
    let is_one = |key: &String| {
        let key = key.strip_prefix("target.").or_else(|| key.strip_prefix("job.")).unwrap_or(key);
        KERNELS.contains(&key)
    };
    std::iter::once(&factor.name).chain(&factor.sets).any(is_one)
}

fn leads_to_other_places(factor: &Factor) -> bool {
    let is_one = |key: &String| {
        let key = key.strip_prefix("target.").or_else(|| key.strip_prefix("job.")).unwrap_or(key);
        PLACES.contains(&for_any_filesystem(key))
    };
    std::iter::once(&factor.name).chain(&factor.sets).any(is_one)
}

/// Whether the levels of a factor are settings of the device's queue or what requests wait by there: they are counted from then on.
fn sets_the_queue(factor: &Factor) -> bool {
    let is_of_queue = |key: &str| {
        let key = key.strip_prefix("target.").unwrap_or(key);
        matches!(key, "scheduler" | "nr_requests")
            || key.split(['/', '.', ':']).any(|part| matches!(part, "queue" | "iosched"))
            || key.rsplit(['.', ':']).next().is_some_and(is_a_priority)
    };
    std::iter::once(&factor.name).chain(&factor.sets).any(|key| is_of_queue(key))
}

/// Whether an option of fio is the priority of requests, by which a scheduler lets them wait.
fn is_a_priority(option: &str) -> bool {
    matches!(option, "prio" | "prioclass") || option.starts_with("cmdprio")
}

/// As many flushes for each operation, or hardly any.
fn flushes_alike(found: &Evidence) -> bool {
    found.baseline.max(found.candidate) < FEW_FLUSHES || Pair::is_alike(found, ALIKE)
}

#[cfg(test)]
mod tests {
    use super::super::super::cause::What;
    use super::super::super::made_pair::{explained, found, run_with};
    use crate::record::Direction;

    #[test]
    fn a_device_that_works_on_the_workers_processors_is_not_blamed() {
        let found_with = |in_kernel: f64| {
            let counters = [
                ("sys_cpu", 0.3, in_kernel),
                ("read.io_bytes", 4e8, 4e8),
                ("dev.read_ios", 1e5, 1e5),
                ("dev.read_bytes", 4e8, 4e8),
                ("dev.read_time", 1.0, 2.0),
                ("dev.busy", 1.0, 2.0),
                ("dev.flushes", 0.0, 0.0),
            ];
            found(&counters, "slower_device").len()
        };
        assert_eq!((found_with(0.5), found_with(1.2)), (1, 0), "a fifth of the difference, and nine tenths");
    }

    /// The device's counters of reads where the candidate's requests are as many times more, smaller and longer.
    fn device(more: f64, smaller: f64, longer: f64, depth: f64) -> Vec<super::Cause> {
        let time = more * longer;
        let counters = [
            ("read.io_bytes", 4e8, 4e8),
            ("dev.read_ios", 1e5, 1e5 * more),
            ("dev.read_bytes", 4e8, 4e8 * more / smaller),
            ("dev.read_time", 1.0, time),
            ("dev.busy", 1.0, time / depth),
            ("dev.flushes", 0.0, 0.0),
        ];
        found(&counters, "slower_device")
    }

    #[test]
    fn the_device_is_blamed_where_only_its_time_differs() {
        let causes = device(1.0, 1.0, 3.0, 1.0);
        let [cause] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!(cause.what, What::SlowerDevice { direction: Direction::Read });
        let took = &cause.evidence[0];
        assert!((took.baseline - 1e-5).abs() < 1e-8 && (took.candidate - 3e-5).abs() < 1e-8, "{took:?}");
    }

    #[test]
    fn a_setting_of_the_queue_is_no_device() {
        for (key, is_of_queue) in [
            ("scheduler", true),
            ("target.nr_requests", true),
            ("sysfs:queue/iosched/low_latency", true),
            ("prio", true),
            ("job.prioclass", true),
            ("wal:prio", true),
            ("cmdprio_percentage", true),
            ("fs", false),
            ("queue_depth", false),
        ] {
            assert_eq!(super::sets_the_queue(&super::Factor::new(key, Vec::new())), is_of_queue, "{key}");
        }
    }

    #[test]
    fn other_places_of_the_device_are_no_slower_device() {
        let of = |name: &str| super::leads_to_other_places(&super::Factor::new(name, Vec::new()));
        assert!(of("rw") && of("job.size") && of("target.fs") && of("mount") && of("target.mkfs.xfs"));
        assert!(!of("device") && !of("kernel") && !of("iodepth"));
        let of_kernel = |name: &str| super::changes_the_kernel(&super::Factor::new(name, Vec::new()));
        assert!(
            of_kernel("kernel")
                && of_kernel("target.patch")
                && of_kernel("job.hipri")
                && !of_kernel("device")
        );
        let sets = super::Factor { sets: vec!["rw".to_owned()], ..super::Factor::new("pattern", Vec::new()) };
        assert!(super::leads_to_other_places(&sets));
    }

    #[test]
    fn loop_devices_with_other_options_are_software() {
        let of = |name: &str, levels: &[&str]| {
            let levels = levels.iter().map(|level| (*level).to_owned()).collect();
            super::is_made_by_software(&super::Factor::new(name, levels))
        };
        assert!(of("device", &["loop:1g:direct_io=1", "loop:1g:direct_io=0"]));
        assert!(
            of("device", &["/dev/sdb", "/dev/mapper/crypt"])
                && of("target.device", &["/dev/sdb", "/dev/md0"])
        );
        assert!(!of("device", &["loop:1g", "zram:1g"]) && !of("fs", &["loop:1g"]));
        let between = |name: &str| super::puts_software_between(&super::Factor::new(name, Vec::new()));
        assert!(between("dm") && between("target.dm") && !between("device"));
    }

    #[test]
    fn a_device_that_flushes_more_is_not_slower_by_itself() {
        let counters = |before: f64, after: f64| {
            [
                ("dev.write_ios", 1e5, 1e5),
                ("dev.write_bytes", 4e8, 4e8),
                ("dev.write_time", 1.0, 3.0),
                ("dev.busy", 1.0, 3.0),
                ("dev.flushes", before, after),
            ]
        };
        assert_eq!(found(&counters(0.0, 1e5), "slower_device"), []);
        assert_eq!(found(&counters(1e5, 1e5), "slower_device").len(), 1);
        assert_eq!(found(&counters(0.0, 3.0), "slower_device").len(), 1);
        // Of a device without requests nobody counts them but those who watch its bios.
        let unknown = &counters(0.0, 0.0)[..4];
        assert_eq!(found(unknown, "slower_device"), []);
        let watched = |flushes: f64| {
            let seen = [
                ("blocks.lost", 0.0, 0.0),
                ("blocks.flushes", 0.0, 0.0),
                ("blocks.flush_bios", 0.0, flushes),
            ];
            found(&[unknown, &seen[..]].concat(), "slower_device").len()
        };
        assert_eq!((watched(0.0), watched(1e5)), (1, 0));
    }

    /// How often a device is blamed that takes longer for as many requests, where the factor is called so and all trials have this fact.
    fn found_with(fact: (&str, &str), factor: &str, seen: &[(&str, f64, f64)]) -> usize {
        let counters = [
            ("dev.write_ios", 1e5, 1e5),
            ("dev.write_bytes", 4e8, 4e8),
            ("dev.write_time", 1.0, 3.0),
            ("dev.busy", 1.0, 3.0),
            ("dev.flushes", 0.0, 0.0),
        ];
        let mut run = run_with(&[&counters[..], seen].concat());
        run.design.factors[0].name = factor.to_owned();
        run.facts[0].set(fact.0, fact.1);
        explained(&run).causes.iter().filter(|cause| cause.rule == "slower_device").count()
    }

    #[test]
    fn a_loop_device_is_blamed_where_its_driver_was_watched() {
        let driver = [("blocks.lost", 0.0, 0.0), ("blocks.write.d2c.mean", 1e-5, 3e-5)];
        let of = |kind: &str, seen| found_with(("device.kind", kind), "iodepth", seen);
        assert_eq!((of("loop", &[]), of("loop", &driver), of("nvme", &[])), (0, 1, 1));
    }

    #[test]
    fn a_device_that_is_made_of_memory_is_not_blamed() {
        let driver = [("blocks.lost", 0.0, 0.0), ("blocks.write.d2c.mean", 1e-5, 3e-5)];
        for kind in ["zram", "memory", "persistent memory", "null", "ublk"] {
            assert_eq!(found_with(("device.kind", kind), "iodepth", &driver), 0, "{kind}");
        }
        assert_eq!(found_with(("device.kind", "mmc"), "iodepth", &driver), 1);
    }

    #[test]
    fn a_device_that_is_made_of_others_is_software_whatever_its_name() {
        let found_on = |fact, factor| found_with(fact, factor, &[]);
        assert_eq!(found_on(("device.on", "sda2"), "device"), 0, "/dev/VG/LV");
        assert_eq!(found_on(("device.kind", "device mapper"), "target.device"), 0, "/dev/disk/by-id/…");
        assert_eq!(found_on(("device.kind", "nvme"), "device"), 1);
        assert_eq!(found_on(("device.on", "sda2"), "iodepth"), 1, "the same device in both arms");
    }

    #[test]
    fn another_load_of_the_device_is_not_the_device() {
        for (more, smaller, longer, depth) in [
            (2.0, 1.0, 3.0, 1.0),
            (1.0, 2.0, 3.0, 1.0),
            (1.0, 1.0, 3.0, 3.0),
            (1.0, 1.0, 1.0, 1.0),
            (1.0, 1.0, 0.5, 1.0),
        ] {
            assert_eq!(device(more, smaller, longer, depth), [], "{more} {smaller} {longer} {depth}");
        }
    }
}
