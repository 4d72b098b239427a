//! Rates as an open loop, pauses, and the depth that keeps a latency: the native engine alone and beside fio.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use assay::engine::EngineKind;
use assay::launch::{Answer, Reply};
use assay::record::{Direction, LatencyHistogram, LatencyKind, Outcome, Run, Trial};

use crate::loop_device::LoopDevice;
use crate::native_engine::{agent, answered, done, started, work};
use crate::sandbox::Sandbox;
use crate::spoiled::{expect, unless_spoiled};
use crate::tools::{available, is_root, skipped};

fn value(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.samples.iter().find(|sample| sample.metric.name == name);
    found.unwrap_or_else(|| panic!("no {name}")).value
}

fn ios(outcome: &Outcome) -> [f64; 2] {
    ["read.total_ios", "write.total_ios"].map(|name| {
        outcome.samples.iter().find(|sample| sample.metric.name == name).map_or(0.0, |sample| sample.value)
    })
}

/// The histogram of one kind, unpacked.
fn latencies(outcome: &Outcome, direction: Direction, kind: LatencyKind) -> hdrhistogram::Histogram<u64> {
    let found: Vec<&LatencyHistogram> =
        outcome.histograms.iter().filter(|h| h.direction == direction && h.kind == kind).collect();
    assert_eq!(found.len(), 1, "{direction:?} {kind:?}");
    found[0].unpack().unwrap()
}

/// What both engines must make of the same job: I/Os, and how long it takes.
struct Paced {
    options: &'static str,
    /// Reads, writes; whether to the last one.
    ios: [f64; 2],
    ios_within: f64,
    seconds: f64,
}

const PACED: &[Paced] = &[
    // The first of 128 is due at once: 127 gaps.
    Paced { options: "rw=write\nrate=1m\nsize=512k", ios: [0.0, 128.0], ios_within: 0.0, seconds: 0.496 },
    Paced {
        options: "rw=randread\nrate_iops=100\nsize=64k\nloops=4",
        ios: [64.0, 0.0],
        ios_within: 0.0,
        seconds: 0.63,
    },
    // Each direction keeps its own rate, whatever the mix of 50 % says.
    Paced {
        options: "rw=randrw\nrate_iops=100,300\nsize=512k",
        ios: [32.0, 96.0],
        ios_within: 3.0,
        seconds: 0.316,
    },
    Paced {
        options: "rw=randread\nrate_iops=500\nsize=64k\ntime_based\nruntime=600ms",
        ios: [300.0, 0.0],
        ios_within: 3.0,
        seconds: 0.6,
    },
    // An I/O that is not due within the runtime is not made, and the job ends at its runtime.
    Paced {
        options: "rw=randread\nrate_iops=2\nsize=1m\nruntime=700ms",
        ios: [2.0, 0.0],
        ios_within: 0.0,
        seconds: 0.7,
    },
    Paced {
        options: "ioengine=libaio\niodepth=8\ndirect=1\nrate=256k\nrw=write\nsize=128k",
        ios: [0.0, 32.0],
        ios_within: 0.0,
        seconds: 0.484,
    },
    // Four pauses, also behind the last I/O.
    Paced {
        options: "rw=randread\nsize=64k\nthinktime=50ms\nthinktime_blocks=4",
        ios: [16.0, 0.0],
        ios_within: 0.0,
        seconds: 0.2,
    },
    Paced {
        options: "rw=randread\nsize=64k\nthinktime=30ms\nthinktime_spin=10ms\nioengine=libaio\niodepth=8",
        ios: [16.0, 0.0],
        ios_within: 0.0,
        seconds: 0.27,
    },
    // The schedule goes on during a pause: what was due in it comes right after it.
    Paced {
        options: "rw=read\nsize=128k\nrate_iops=100\nthinktime=20ms",
        ios: [32.0, 0.0],
        ios_within: 0.0,
        seconds: 0.645,
    },
];

#[test]
fn rates_and_pauses_take_as_long_as_with_fio() {
    let with_fio = available("fio");
    for case in PACED {
        let job = format!("[paced]\nbs=4k\n{}\n", case.options);
        for engine in [EngineKind::Native, EngineKind::Fio] {
            // fio 3.33 sleeps for ever when it was busy for longer than the whole pause, which a loaded machine brings about.
            let may_hang = case.options.contains("thinktime_spin");
            if engine == EngineKind::Fio && (may_hang || !with_fio) {
                continue;
            }
            unless_spoiled(|| {
                let (_base, work) = work();
                let outcome = done(engine, &job, work.path());
                let (found, seconds) = (ios(&outcome), value(&outcome, "runtime"));
                let close = found
                    .iter()
                    .zip(case.ios)
                    .all(|(found, wanted)| (found - wanted).abs() <= case.ios_within);
                expect(close, || format!("{engine:?} {}: {found:?} I/Os", case.options))?;
                // Never shorter than the schedule (fio counts milliseconds); longer by what a busy machine takes.
                let longer = seconds - case.seconds;
                assert!(longer >= -0.012, "{engine:?} {}: {seconds} s", case.options);
                expect(longer < 0.25, || format!("{engine:?} {}: {seconds} s", case.options))
            });
        }
    }
}

#[test]
fn a_poisson_process_has_its_rate_and_repeats_with_the_seed() {
    let log = |seed: u32| {
        let (_base, work) = work();
        let job = format!(
            "[p]\nrw=randread\nbs=4k\nsize=2m\nrate_iops=1000\nrate_process=poisson\nrandseed={seed}\nioengine=null\n"
        );
        value(&done(EngineKind::Native, &job, work.path()), "runtime")
    };
    unless_spoiled(|| {
        let (one, again, other) = (log(1), log(1), log(2));
        // 511 exponential gaps of 1 ms: the standard deviation of their sum is 23 ms.
        let as_asked = (0.40..0.65).contains(&one) && (0.40..0.65).contains(&other);
        expect(as_asked, || format!("{one} {other}"))?;
        expect((one - again).abs() < 0.02, || format!("{one} {again}"))?;
        expect((one - other).abs() > 0.0005, || format!("another seed has other gaps: {one} {other}"))
    });
}

#[test]
fn a_job_that_falls_behind_its_rate_is_told_with_its_share() {
    let told = |rate: u32, method: &str| {
        let (_base, work) = work();
        let job = format!(
            "[w]\nrw=write\nbs=4k\nsize=1m\ntime_based\nruntime=500ms\nrate_iops={rate}\nioengine={method}\n"
        );
        let notes = done(EngineKind::Native, &job, work.path()).notes;
        notes.into_iter().map(|note| note.text).find(|text| text.contains(" % of its rate; lat_ns counts"))
    };
    // One I/O in 5 ns is more than any processor does.
    for method in ["psync", "null", "io_uring"] {
        let note = told(200_000_000, method).unwrap_or_else(|| panic!("nothing is said of {method}"));
        assert!(note.starts_with("job w: ") && note.starts_with("job w: it did "), "{note}");
    }
    unless_spoiled(|| {
        let kept = told(200, "psync");
        expect(kept.is_none(), || kept.clone().unwrap_or_default())
    });
}

#[test]
fn pauses_are_in_no_latency() {
    // The rate asks for I/Os within the pauses, the queue would hold them meanwhile.
    for method in
        ["psync\nrate_iops=200", "psync", "io_uring\niodepth=8", "io_uring\niodepth=8\nrate_iops=200"]
    {
        let job = format!(
            "[t]\nrw=randread\nbs=4k\nsize=64k\nnorandommap\nthinktime=300ms\nthinktime_blocks=4\nioengine={method}\n"
        );
        unless_spoiled(|| {
            let (_base, work) = work();
            let outcome = done(EngineKind::Native, &job, work.path());
            assert!(value(&outcome, "runtime") > 0.55, "{method}");
            for histogram in &outcome.histograms {
                let max_ms = histogram.unpack().unwrap().max() as f64 / 1e6;
                // Those due in a pause begin together behind it, and the last of them waits for the others.
                expect(max_ms < 240.0, || format!("{method} {:?}: {max_ms} ms", histogram.kind))?;
            }
            Ok(())
        });
    }
}

/// What a stall of about `stall` seconds must look like in a job of 1000 I/Os a second that runs for `seconds`. A busy machine
/// adds to it, or the stall comes when the job has not begun.
fn must_show_the_stall(
    outcome: &Outcome,
    direction: Direction,
    seconds: u64,
    stall: f64,
    in_flight: u64,
) -> Result<(), String> {
    let lat = latencies(outcome, direction, LatencyKind::Lat);
    let clat = latencies(outcome, direction, LatencyKind::Clat);
    assert_eq!(lat.len(), clat.len());
    let ios = seconds * 1000;
    expect((ios - 100..=ios + 1).contains(&lat.len()), || format!("{} I/Os", lat.len()))?;
    let p999 = lat.value_at_quantile(0.999) as f64 / 1e9;
    expect((-0.1..0.25).contains(&(p999 - stall)), || format!("p99.9 of lat {p999} s, the stall {stall} s"))?;
    let over =
        |histogram: &hdrhistogram::Histogram<u64>, ns: u64| histogram.len() - histogram.count_between(0, ns);
    // Those meant to start in the first `stall` - 0.5 s of it.
    let (slow, wanted) = (over(&lat, 500_000_000) as f64, (stall - 0.5) * 1000.0);
    expect((-100.0..250.0).contains(&(slow - wanted)), || {
        format!("{slow} I/Os above 0.5 s, {wanted} expected")
    })?;
    let slow = over(&clat, 200_000_000);
    expect(slow <= in_flight, || format!("{slow} slow I/Os in clat, {in_flight} were in flight"))
}

/// SIGSTOP: the whole job stands still, as on a machine that is suspended.
#[test]
fn a_job_that_is_stopped_for_a_second_shows_it() {
    // From the cache: a slow disk is not the subject.
    let job = "[s]\nrw=randread\nbs=4k\nsize=1m\ninvalidate=0\nrate_iops=1000\ntime_based\nruntime=2\n";
    unless_spoiled(|| {
        let (_base, work) = work();
        let (reply, stopped_s) = stopped_meanwhile(job, work.path());
        let Answer::Done(outcome) = reply.answer else { panic!("{:?}", reply.answer) };
        must_show_the_stall(&outcome, Direction::Read, 2, stopped_s, 1)
    });
}

/// One trial whose processes are all stopped in the middle, and for how long.
fn stopped_meanwhile(job: &str, directory: &Path) -> (Reply, f64) {
    let child = started(EngineKind::Native, job, directory);
    let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    wait_for_the_job(child.id());
    std::thread::sleep(Duration::from_millis(400));
    let signal = |signal| rustix::process::kill_process_group(group, signal).unwrap();
    signal(rustix::process::Signal::STOP);
    let begun = std::time::Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    signal(rustix::process::Signal::CONT);
    let stopped_s = begun.elapsed().as_secs_f64();
    (answered(child), stopped_s)
}

/// Until the agent has forked its job, which runs within milliseconds then.
fn wait_for_the_job(agent: u32) {
    let children = format!("/proc/{agent}/task/{agent}/children");
    for _ in 0..12_000 {
        let found = std::fs::read_to_string(&children).unwrap_or_default();
        if !found.trim().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no job was forked");
}

/// A mounted ext4 image, in memory, so that only the test makes it slow; unmounted, thawed first, also when the test fails.
pub(crate) struct Frozen {
    /// Goes before its image.
    device: LoopDevice,
    _image: tempfile::NamedTempFile,
    pub(crate) at: PathBuf,
}

impl Frozen {
    /// `None` where one cannot mount; says so.
    pub(crate) fn mount(directory: &Path) -> Option<Frozen> {
        if !is_root() {
            return None;
        }
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory } else { directory };
        let image = tempfile::Builder::new().prefix("assay-test-").tempfile_in(place).unwrap();
        let device = LoopDevice::on(image.path(), 16 << 20)?;
        let at = directory.join("mnt");
        std::fs::create_dir(&at).unwrap();
        let frozen = Frozen { device, _image: image, at };
        let device = &frozen.device.path;
        // No background writing of inode tables, no discards: nothing but the job's own.
        let options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        let formatted = Command::new("mkfs.ext4").args(["-q", "-E", options]).arg(device).status().unwrap();
        assert!(formatted.success());
        let mounted = Command::new("mount").arg(device).arg(&frozen.at).status().unwrap();
        if !mounted.success() {
            skipped("mount is not permitted here");
            return None;
        }
        Some(frozen)
    }

    pub(crate) fn set(&self, frozen: bool) -> bool {
        let how = if frozen { "-f" } else { "-u" };
        Command::new("fsfreeze").arg(how).arg(&self.at).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let quiet = |name: &str, arguments: &[&std::ffi::OsStr]| {
            let status = Command::new(name).args(arguments).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let at = self.at.as_os_str();
        quiet("fsfreeze", &["-u".as_ref(), at]);
        // A ring lets go of its files a while after its process has ended.
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            quiet("umount", &[at])
        });
        if !gone {
            eprintln!("{} is still mounted", self.at.display());
        }
    }
}

/// FIFREEZE: the filesystem takes no writes for a second, as a device that hangs.
#[test]
fn a_filesystem_that_hangs_for_a_second_shows_it() {
    let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(frozen) = Frozen::mount(base.path()) else { return };
    // A synchronous job has one I/O in the stall, io_uring as many as its queue holds: the others wait for a slot.
    for (method, in_flight) in [("psync", 1), ("io_uring\niodepth=16", 16)] {
        let job = format!(
            "[w]\nrw=randwrite\nbs=4k\nsize=1m\noverwrite=1\ndirect=1\nrate_iops=1000\ntime_based\nruntime=2\n\
             ioengine={method}\nfilename={}/data\n",
            frozen.at.display()
        );
        unless_spoiled(|| {
            let (_base, work) = work();
            let child = started(EngineKind::Native, &job, work.path());
            wait_for_the_job(child.id());
            std::thread::sleep(Duration::from_millis(400));
            let begun = std::time::Instant::now();
            assert!(frozen.set(true), "fsfreeze");
            std::thread::sleep(Duration::from_secs(1));
            // Not left frozen at the first failure: the job would never end.
            assert!((0..20).any(|_| frozen.set(false)), "fsfreeze");
            let stall = begun.elapsed().as_secs_f64();
            let Answer::Done(outcome) = answered(child).answer else { panic!("no outcome: {method}") };
            must_show_the_stall(&outcome, Direction::Write, 2, stall, in_flight)?;
            let slow = latencies(&outcome, Direction::Write, LatencyKind::Clat);
            let hung = slow.max() > 900_000_000;
            expect(hung, || format!("{method}: no write hung: the freeze came at the wrong time"))
        });
    }
}

#[test]
fn the_largest_depth_that_keeps_a_latency_is_found() {
    let with_fio = available("fio");
    let job = "[l]\nioengine=libaio\niodepth=24\ndirect=1\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=20\n\
               latency_target=10s\nlatency_window=20ms\n";
    for engine in [EngineKind::Native, EngineKind::Fio] {
        if engine == EngineKind::Fio && !with_fio {
            continue;
        }
        unless_spoiled(|| {
            let (_base, work) = work();
            let outcome = done(engine, job, work.path());
            assert_eq!(value(&outcome, "latency_depth"), 24.0, "{engine:?}");
            // The figures are those of the last window, and the job ended with it.
            let seconds = value(&outcome, "runtime");
            expect((0.015..0.5).contains(&seconds), || format!("{engine:?}: {seconds} s"))
        });
    }
    let (_base, work) = work();
    let outcome = done(EngineKind::Native, job, work.path());
    let note = outcome.notes.iter().find(|note| note.text.contains("latency_target")).unwrap();
    assert!(note.text.contains("up to 24 I/Os in flight"), "{note}");
}

#[test]
fn a_latency_that_cannot_be_kept_fails_the_trial() {
    let (_base, work) = work();
    let job = |more: &str| {
        format!(
            "[l]\nrw=randread\nbs=64k\nsize=1m\ntime_based\nruntime=300ms\nlatency_target=1us\nlatency_window=20ms\n{more}"
        )
    };
    let Answer::Failed { reason, so_far, .. } = agent(EngineKind::Native, &job(""), work.path()).answer
    else {
        panic!("1 µs was kept");
    };
    assert!(
        reason.contains("even with one I/O in flight") && reason.contains("latency_percentile"),
        "{reason}"
    );
    assert!(!so_far.is_empty());
    // With a share allowed to be late it goes on, as in fio, and says that nothing was found.
    let outcome = done(EngineKind::Native, &job("latency_percentile=99.5\n"), work.path());
    assert_eq!(value(&outcome, "latency_depth"), 1.0);
    assert!(outcome.notes.iter().any(|note| note.text.contains("ended before")), "{:?}", outcome.notes);
}

/// The two engines measure the same on a job whose load is the same for both: their medians differ by less than one
/// engine's own figures do from round to round.
#[test]
fn native_and_fio_agree_on_the_latency_of_a_rate_limited_job() {
    if !available("fio") {
        return;
    }
    for method in ["psync", "libaio\niodepth=4"] {
        unless_spoiled(|| clat_agrees(method));
    }
}

fn clat_agrees(method: &str) -> Result<(), String> {
    let sandbox = Sandbox::new();
    let job = format!(
        "[paced]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nrate_iops=2000\ntime_based\nruntime=400ms\nioengine={method}\n"
    );
    sandbox.write("paced.fio", &job);
    let arguments = ["run", "paced.fio", "--vary", "engine=native,fio", "--rounds", "6", "--verbose"];
    let report = sandbox.succeed(&arguments);
    let run = sandbox.export("1");
    // What the two do not mean by the same name does not decide between them, and that is said.
    assert_eq!(run.design.primary.as_deref(), Some("read.clat_ns.mean"));
    let said = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("fio counts lat_ns from the issue of an I/O"), "{report}");
    assert!(said.contains("Compare engines by clat_ns (engine=fio)"), "{report}");
    // Not p99: beside other tests it is how long they kept the processor. The native engine watches the clock until an I/O is due and
    // is made to wait for its turn, fio sleeps and is not.
    for name in ["read.clat_ns.mean", "read.clat_ns.p50"] {
        let arms: Vec<Vec<f64>> = (0..2).map(|level| values(&run, level, name)).collect();
        let difference = (median(&arms[0]) - median(&arms[1])).abs();
        let spread = arms.iter().map(|arm| range(arm)).fold(0.0, f64::max);
        eprintln!("{method} {name}: native {:?}, fio {:?}: {difference} of {spread} ns", arms[0], arms[1]);
        assert!(arms.iter().all(|arm| arm.len() == 6), "{arms:?}");
        expect(difference < spread, || format!("{method} {name}: native {:?}, fio {:?}", arms[0], arms[1]))?;
    }
    Ok(())
}

fn range(values: &[f64]) -> f64 {
    let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(l, m), v| (v.min(l), v.max(m)));
    most - least
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// A metric of one arm in the order of the rounds.
fn values(run: &Run, level: u32, name: &str) -> Vec<f64> {
    let metric = run.metrics.iter().position(|metric| metric.name == name).unwrap() as u32;
    let of_arm = |trial: &&Trial| run.cells[trial.cell as usize].levels == [level];
    run.trials.iter().filter(of_arm).filter_map(|trial| trial.value(metric)).collect()
}
